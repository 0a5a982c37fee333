/* SPDX-License-Identifier: Apache-2.0
 * A summary by the model itself, in the session of the conversation.
 *
 *   system | u1 a1 u2 a2 u3 a3 | ask   ->   summary
 *
 * Asked for at the end of the messages, in the model's own chat template: what the session has
 * computed of them is not read again. Messages that do not fit as a whole, and a text, are read in
 * pieces instead, each with the summary of those before it. */
#include "engine/conversation.h"

#include <string.h>

const char pith_talk_question[] = "Summarize our conversation so far in a few sentences. Keep the "
                                  "names, numbers, decisions and open questions.";

static const char ask_text[] =
    "Summarize the following text in a few sentences. Keep the names, numbers, decisions and open "
    "questions.";

enum { MOST_TOKEN_BYTES = 16 }; /* on average, in a piece of a text */

static int keep_text(void *user, int32_t id, const char *text, size_t size) {
    (void)id;
    pith_buffer_append(user, text, size);
    return 0;
}

static void trim(pith_buffer *text) {
    size_t first = 0, end = text->size;
    while (end > 0 && strchr(" \t\r\n", text->data[end - 1])) end--;
    while (first < end && strchr(" \t\r\n", text->data[first])) first++;
    if (first > 0) memmove(text->data, text->data + first, end - first);
    text->size = end - first;
}

/* Read again, a text may take more tokens than it was made of. */
static void limit_summary(pith_talk *talk) {
    pith_buffer *summary = &talk->summary;
    while (summary->size > 0) {
        size_t n = pith_talk_text_tokens(talk, (pith_span){summary->data, summary->size});
        if (n <= talk->limit) return;
        size_t size = (size_t)((double)summary->size * (double)talk->limit / (double)n);
        summary->size = pith_talk_cut_before((pith_span){summary->data, summary->size}, size);
    }
}

/* Makes the reply to the prompt in talk->ids; its text goes to talk->summary. */
static pith_status generate(pith_talk *talk, pith_generation *made) {
    const pith_conversation_options *o = talk->options;
    pith_reply *reply = NULL;
    pith_generate_options options = {.size = sizeof options,
                                     .max_tokens = (int32_t)talk->limit,
                                     .on_text = keep_text,
                                     .user = &talk->summary,
                                     .on_prompt = o->on_prompt,
                                     .prompt_user = o->user,
                                     .draft = o->draft,
                                     .draft_session = o->draft_session};
    pith_id_span prompt = {talk->ids.data, talk->ids.size};
    pith_status status =
        pith_reply_open(talk->session, talk->sampler, prompt, &options, &reply, talk->error);
    if (status != PITH_OK) return status;
    while (!pith_reply_is_made(reply)) pith_engine_advance(talk->session->engine);
    status = pith_reply_outcome(reply, made, talk->error);
    pith_reply_close(reply);
    return status;
}

/* What was thought about a summary is no part of it, unless nothing else was written. */
static pith_status drop_thought(pith_talk *talk) {
    pith_reply_reader *reader = NULL;
    const pith_span whole = {talk->summary.data, talk->summary.size};
    if (!talk->thought.thought_begin || whole.size == 0) return PITH_OK;
    pith_status status =
        pith_reply_reader_new(&talk->thought, talk->in_thought, &reader, talk->error);
    if (status == PITH_OK) status = pith_reply_reader_push(reader, whole, true, talk->error);
    if (status == PITH_OK) {
        pith_span content = pith_reply_reader_content(reader);
        if (content.size == 0) content = pith_reply_reader_reasoning(reader);
        pith_buffer_reset(&talk->summary);
        pith_buffer_append(&talk->summary, content.data, content.size);
    }
    pith_reply_reader_free(reader);
    return status;
}

/* The reply to messages, whose prompt and reply must fit, becomes the summary. */
static pith_status ask(pith_talk *talk, json_t *messages) {
    pith_generation made = {0};
    size_t n = 0;
    pith_status status = pith_talk_count(talk, messages, true, &n);
    pith_buffer_reset(&talk->summary);
    if (status == PITH_OK) status = generate(talk, &made);
    if (status != PITH_OK) return status;
    if (made.stop == PITH_STOP_CANCELLED)
        return pith_fail(talk->error, PITH_ERROR_CANCELLED, "stopped while a summary was made");
    if (talk->summary.failed) return pith_talk_no_memory(talk);
    status = drop_thought(talk);
    if (status != PITH_OK) return status;
    trim(&talk->summary);
    limit_summary(talk);
    talk->n_summary = made.n_predicted;
    if (talk->summary.size > 0) return PITH_OK;
    return pith_fail(talk->error, PITH_ERROR_LIMIT,
                     "the context of %zu tokens is full, and the model wrote no summary of what is "
                     "older",
                     talk->n_ctx);
}

/* What the model is asked about a piece of a text; the summary of those before is in it. NULL
 * without memory. */
static json_t *piece_messages(pith_talk *talk, pith_span piece) {
    pith_buffer question = {0};
    json_t *messages = json_array();
    pith_buffer_append_text(&question, ask_text);
    if (talk->summary.size > 0) {
        pith_buffer_append_text(&question, "\n\nWhat comes before it, summarized: ");
        pith_buffer_append(&question, talk->summary.data, talk->summary.size);
    }
    pith_buffer_append_text(&question, "\n\n");
    pith_buffer_append(&question, piece.data, piece.size);
    bool ok = !question.failed &&
              pith_talk_add(messages, "user", (pith_span){question.data, question.size});
    pith_buffer_deinit(&question);
    if (ok) return messages;
    json_decref(messages);
    return NULL;
}

/* Summarises as much of the text as fits; *taken bytes of it. Not all of a long text is counted for
 * each piece of it. */
static pith_status read_piece(pith_talk *talk, pith_span text, size_t *taken) {
    size_t most = talk->n_ctx - talk->limit, n = 0;
    for (*taken = pith_talk_cut_before(text, most * MOST_TOKEN_BYTES); *taken > 0;) {
        json_t *messages = piece_messages(talk, (pith_span){text.data, *taken});
        if (!messages) return pith_talk_no_memory(talk);
        pith_status status = pith_talk_count(talk, messages, true, &n);
        bool fits = status == PITH_OK && n <= most;
        if (fits) status = ask(talk, messages);
        json_decref(messages);
        if (fits || status != PITH_OK) return status;
        size_t next = (size_t)((double)*taken * 0.97 * (double)most / (double)n);
        *taken = pith_talk_cut_before(text, next < *taken ? next : *taken - 1);
    }
    return pith_fail(talk->error, PITH_ERROR_LIMIT,
                     "a context of %zu tokens is too short to make a summary in", talk->n_ctx);
}

pith_status pith_talk_read_text(pith_talk *talk, pith_span text) {
    pith_status status = PITH_OK;
    for (size_t at = 0, taken = 0; status == PITH_OK && at < text.size; at += taken)
        status = read_piece(talk, (pith_span){text.data + at, text.size - at}, &taken);
    return status;
}

/* "user: ...\n\nassistant: ..." */
static pith_status read_transcript(pith_talk *talk, json_t *messages, size_t first, size_t end) {
    pith_buffer text = {0};
    for (size_t i = first; i < end; i++) {
        pith_buffer_append_format(&text, "%s: ", pith_talk_role(messages, i));
        pith_talk_append_content(&text, messages, i);
        pith_buffer_append_text(&text, "\n\n");
    }
    pith_status status = text.failed ? pith_talk_no_memory(talk)
                                     : pith_talk_read_text(talk, (pith_span){text.data, text.size});
    pith_buffer_deinit(&text);
    return status;
}

pith_status pith_talk_summarise(pith_talk *talk, json_t *messages, size_t head, size_t end) {
    size_t n = 0;
    json_t *list = json_array();
    pith_status status = PITH_OK;
    if (!pith_talk_add_range(list, messages, 0, end) ||
        !pith_talk_add(list, "user", pith_span_of(pith_talk_question)))
        status = pith_talk_no_memory(talk);
    if (status == PITH_OK) status = pith_talk_count(talk, list, true, &n);
    if (status == PITH_OK)
        status = n + talk->limit <= talk->n_ctx ? ask(talk, list)
                                                : read_transcript(talk, messages, head, end);
    json_decref(list);
    return status;
}
