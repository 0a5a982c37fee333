/* SPDX-License-Identifier: Apache-2.0
 * `--overflow summarise`: what is older in a conversation becomes a summary that the model writes.
 *
 *   system | u1 a1 u2 a2 u3 a3 | u4 a4 u5   ->   system | ask summary | u4 a4 u5 ....room....
 *            older, half of it           newer                 an exchange of its own
 *
 * The summary is asked for at the end of the older part, in the model's own chat template: what the
 * session has computed of it is not read again, and the exchange that stays is one that took place.
 * Roles go on taking turns, as many templates demand. An older part that does not fit as a whole,
 * and the beginning of a last message that is too long, are read in pieces instead, each with the
 * summary of those before.
 *
 * Invariant: system messages and the end of the last message are never lost; messages change only
 * when all has worked. Written with pith.h and jansson, so that a server can use it as it stands.
 * Why so: docs/decisions/0070. */
#include "pith/summarise.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_SUMMARY = 16, /* tokens */
    MOST_SUMMARY = 512,
    SEAM = 32 /* tokens that the template writes around two messages, at most */
};

static const char ask_talk[] = "Summarize our conversation so far in a few sentences. Keep the "
                               "names, numbers, decisions and open questions.";
static const char ask_text[] =
    "Summarize the following text in a few sentences. Keep the names, numbers, decisions and open "
    "questions.";

/* One call of pith_summarise. */
typedef struct job {
    const pith_summarise_options *options;
    size_t limit; /* tokens of a summary */
    size_t seam;  /* tokens that come with it */
    int32_t *ids; /* [n_ctx] */
    pith_sampler *sampler;
    pith_buffer summary; /* the last one */
    size_t n_tokens;     /* of it */
    pith_error *error;
} job;

static pith_status no_memory(job *j) {
    return pith_fail_memory(j->error, "a summary", 0);
}

/* ---- Messages ---- */

static const char *member(json_t *messages, size_t index, const char *name) {
    const char *text = json_string_value(json_object_get(json_array_get(messages, index), name));
    return text ? text : "";
}

static bool has_role(json_t *messages, size_t index, const char *role) {
    return strcmp(member(messages, index, "role"), role) == 0;
}

static bool add(json_t *messages, const char *role, const char *text, size_t size) {
    return json_array_append_new(
               messages, json_pack("{s:s, s:s%}", "role", role, "content", text, size)) == 0;
}

/* Appends from[first .. end). */
static bool add_range(json_t *messages, json_t *from, size_t first, size_t end) {
    for (size_t i = first; i < end; i++)
        if (json_array_append(messages, json_array_get(from, i)) != 0) return false;
    return true;
}

static pith_prompt *render(const pith_model *model, json_t *messages, pith_error *error) {
    json_free_t release;
    pith_prompt *prompt = NULL;
    json_t *context = json_pack("{s:O, s:b}", "messages", messages, "add_generation_prompt", 1);
    char *json = context ? json_dumps(context, JSON_COMPACT) : NULL;
    json_decref(context);
    json_get_alloc_funcs(NULL, &release);
    if (json)
        pith_prompt_render(model, NULL, json, &prompt, error);
    else
        pith_fail_memory(error, "the conversation", 0);
    release(json);
    return prompt;
}

bool pith_summarise_count(const pith_model *model, json_t *messages, size_t *n, pith_error *error) {
    *n = 0;
    pith_prompt *prompt = render(model, messages, error);
    if (!prompt) return false;
    pith_status status = pith_prompt_tokenize(model, prompt, NULL, 0, n, error);
    pith_prompt_free(prompt);
    return status == PITH_OK || status == PITH_ERROR_LIMIT;
}

/* ---- Asking the model ---- */

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

/* At a character's start, after a space or a line's end where one is near. */
static size_t cut_before(const char *text, size_t size, size_t at) {
    if (at >= size) return size;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80) at--;
    for (size_t back = at; back > 0 && at - back < 40; back--)
        if (text[back - 1] == ' ' || text[back - 1] == '\n') return back;
    return at;
}

/* Read again, a text may take more tokens than it was made of. */
static void limit_summary(job *j) {
    for (size_t n = j->limit + 1; j->summary.size > 0;) {
        pith_tokenize(j->options->model, j->summary.data, j->summary.size, 0, NULL, 0, &n, NULL);
        if (n <= j->limit) return;
        size_t size = (size_t)((double)j->summary.size * (double)j->limit / (double)n);
        j->summary.size = cut_before(j->summary.data, j->summary.size, size);
    }
}

/* The reply to messages, whose prompt and reply must fit, becomes the summary. */
static pith_status ask(job *j, json_t *messages) {
    const pith_summarise_options *o = j->options;
    pith_generation made;
    size_t n = 0;
    pith_prompt *prompt = render(o->model, messages, j->error);
    if (!prompt) return j->error->status;
    pith_status status = pith_prompt_tokenize(o->model, prompt, j->ids, o->n_ctx, &n, j->error);
    pith_prompt_free(prompt);
    if (status != PITH_OK) return status;
    pith_buffer_reset(&j->summary);
    pith_generate_options options = {.size = sizeof options,
                                     .max_tokens = (int32_t)j->limit,
                                     .on_text = keep_text,
                                     .user = &j->summary,
                                     .on_prompt = o->on_prompt,
                                     .prompt_user = o->user,
                                     .draft = o->draft,
                                     .draft_session = o->draft_session};
    status = pith_generate(o->session, j->sampler, j->ids, n, &options, &made, j->error);
    if (status != PITH_OK) return status;
    if (made.stop == PITH_STOP_CANCELLED)
        return pith_fail(j->error, PITH_ERROR_CANCELLED, "stopped while a summary was made");
    if (j->summary.failed) return no_memory(j);
    trim(&j->summary);
    limit_summary(j);
    j->n_tokens = made.n_predicted;
    if (j->summary.size > 0) return PITH_OK;
    return pith_fail(j->error, PITH_ERROR_LIMIT,
                     "the context of %zu tokens is full, and the model wrote no summary of what is "
                     "older",
                     o->n_ctx);
}

/* What the model is asked about a piece of a text; the summary of those before is in it. */
static json_t *piece_messages(job *j, const char *text, size_t size) {
    pith_buffer question = {0};
    json_t *messages = json_array();
    pith_buffer_append_text(&question, ask_text);
    if (j->summary.size > 0) {
        pith_buffer_append_text(&question, "\n\nWhat comes before it, summarized: ");
        pith_buffer_append(&question, j->summary.data, j->summary.size);
    }
    pith_buffer_append_text(&question, "\n\n");
    pith_buffer_append(&question, text, size);
    bool ok = !question.failed && add(messages, "user", question.data, question.size);
    pith_buffer_deinit(&question);
    if (ok) return messages;
    json_decref(messages);
    return NULL;
}

/* Summarises as much of text[0 .. size) as fits; *taken bytes of it. */
static pith_status read_piece(job *j, const char *text, size_t size, size_t *taken) {
    size_t most = j->options->n_ctx - j->limit, n = 0;
    for (*taken = size; *taken > 0;) {
        json_t *messages = piece_messages(j, text, *taken);
        if (!messages) return no_memory(j);
        bool ok = pith_summarise_count(j->options->model, messages, &n, j->error);
        bool fits = ok && n <= most;
        pith_status status = fits ? ask(j, messages) : PITH_OK;
        json_decref(messages);
        if (!ok) return j->error->status;
        if (fits) return status;
        size_t next = (size_t)((double)*taken * 0.97 * (double)most / (double)n);
        *taken = cut_before(text, size, next < *taken ? next : *taken - 1);
    }
    return pith_fail(j->error, PITH_ERROR_LIMIT,
                     "a context of %zu tokens is too short to make a summary in",
                     j->options->n_ctx);
}

/* The summary goes on over all of a text. */
static pith_status read_text(job *j, const char *text, size_t size) {
    pith_status status = PITH_OK;
    for (size_t at = 0, taken = 0; status == PITH_OK && at < size; at += taken)
        status = read_piece(j, text + at, size - at, &taken);
    return status;
}

/* ---- What is older ---- */

/* Messages that stay in front: the system's, and whole exchanges within n_keep tokens. */
static size_t find_head(const job *j, json_t *messages, size_t last) {
    size_t head = 0, n = 0;
    while (head < last &&
           (has_role(messages, head, "system") || has_role(messages, head, "developer")))
        head++;
    for (size_t i = head + 1; i < last && j->options->n_keep > 0; i++) {
        if (!has_role(messages, i, "user")) continue;
        json_t *part = json_array();
        bool ok = add_range(part, messages, 0, i) &&
                  pith_summarise_count(j->options->model, part, &n, NULL);
        json_decref(part);
        if (!ok || n > j->options->n_keep) break;
        head = i;
    }
    return head;
}

/* The messages without [head, from), with the summary in their place. NULL without memory. */
static json_t *without(job *j, json_t *messages, size_t head, size_t from) {
    json_t *list = json_array();
    bool ok = add_range(list, messages, 0, head);
    if (ok && from > head && j->summary.size > 0)
        ok = add(list, "user", ask_talk, sizeof ask_talk - 1) &&
             add(list, "assistant", j->summary.data, j->summary.size);
    if (ok && add_range(list, messages, from, json_array_size(messages))) return list;
    json_decref(list);
    return NULL;
}

/* Whether the messages from `from` on, a summary and the reply leave the context within `most`. */
static bool fits(job *j, json_t *messages, size_t head, size_t from, size_t most) {
    size_t n = 0;
    size_t added = j->options->drop ? 0 : j->limit + j->seam;
    json_t *list = without(j, messages, head, from);
    bool ok = list && pith_summarise_count(j->options->model, list, &n, NULL);
    json_decref(list);
    return ok && n + added + j->options->room <= most;
}

/* Tokens of a message's text. */
static size_t text_tokens(const job *j, json_t *messages, size_t index) {
    size_t n = 0;
    const json_t *content = json_object_get(json_array_get(messages, index), "content");
    pith_tokenize(j->options->model, json_string_value(content), json_string_length(content), 0,
                  NULL, 0, &n, NULL);
    return n;
}

/* The first message that stays: a user's, and none before it with which all fits within `most`; the
 * last message where there is none. What messages take is estimated, each by its text and an equal
 * share of the template's tokens, and only what is found is counted. */
static size_t find_from(job *j, json_t *messages, size_t head, size_t total, size_t most) {
    size_t n_messages = json_array_size(messages), texts = 0, gone = 0;
    size_t taken = j->options->room + (j->options->drop ? 0 : j->limit + j->seam);
    for (size_t i = 0; i < n_messages; i++) texts += text_tokens(j, messages, i);
    size_t around = total > texts ? (total - texts) / n_messages : 0;
    for (size_t i = head; i + 1 < n_messages; i++) {
        bool may_fit = i > head && has_role(messages, i, "user") && total + taken <= most + gone;
        if (may_fit && fits(j, messages, head, i, most)) return i;
        gone += text_tokens(j, messages, i) + around;
    }
    return n_messages - 1;
}

/* The newer half stays where that is possible, so that the next turns need no summary again; at
 * worst the last message alone. */
static size_t find_newer(job *j, json_t *messages, size_t head) {
    size_t n_ctx = j->options->n_ctx, half = (n_ctx + j->options->room) / 2, total = 0;
    size_t last = json_array_size(messages) - 1;
    if (!pith_summarise_count(j->options->model, messages, &total, NULL)) return last;
    size_t from = find_from(j, messages, head, total, half);
    return from < last ? from : find_from(j, messages, head, total, n_ctx);
}

/* "user: ...\n\nassistant: ..." */
static pith_status read_transcript(job *j, json_t *messages, size_t first, size_t end) {
    pith_buffer text = {0};
    for (size_t i = first; i < end; i++)
        pith_buffer_append_format(&text, "%s: %s\n\n", member(messages, i, "role"),
                                  member(messages, i, "content"));
    pith_status status = text.failed ? no_memory(j) : read_text(j, text.data, text.size);
    pith_buffer_deinit(&text);
    return status;
}

/* The summary of [head, end): asked for behind them where that fits, else read in pieces. */
static pith_status read_messages(job *j, json_t *messages, size_t head, size_t end) {
    size_t n = 0;
    json_t *list = json_array();
    pith_status status = PITH_OK;
    if (!add_range(list, messages, 0, end) || !add(list, "user", ask_talk, sizeof ask_talk - 1)) {
        status = no_memory(j);
    } else if (!pith_summarise_count(j->options->model, list, &n, j->error)) {
        status = j->error->status;
    } else if (n + j->limit <= j->options->n_ctx) {
        status = ask(j, list);
    } else {
        status = read_transcript(j, messages, head, end);
    }
    json_decref(list);
    return status;
}

/* ---- A last message that is too long ---- */

/* The message with the summary in front of what is left of its text. */
static bool set_last(json_t *list, const pith_buffer *summary, const char *text, size_t size) {
    pith_buffer content = {0};
    if (summary->size > 0) {
        pith_buffer_append_text(&content, "Summary of what comes before: ");
        pith_buffer_append(&content, summary->data, summary->size);
        pith_buffer_append_text(&content, "\n\n");
    }
    pith_buffer_append(&content, text, size);
    json_array_remove(list, json_array_size(list) - 1);
    bool ok = !content.failed && add(list, "user", content.data, content.size);
    pith_buffer_deinit(&content);
    return ok;
}

/* Bytes at the start of the last message that have no place; the message's size: nothing has. */
static size_t find_cut(job *j, json_t *list, const char *text, size_t size) {
    const pith_buffer none = {0};
    size_t n = 0, taken = j->limit + j->seam + j->options->room;
    for (size_t cut = 0; cut < size;) {
        if (!set_last(list, &none, text + cut, size - cut) ||
            !pith_summarise_count(j->options->model, list, &n, j->error))
            return size;
        if (n + taken <= j->options->n_ctx) return cut;
        size_t over = n + taken - j->options->n_ctx;
        size_t more = (size_t)((double)(size - cut) * (double)over / (double)n) + 1;
        size_t next = cut_before(text, size, cut + more);
        cut = next > cut ? next : cut + more;
        while (cut < size && ((unsigned char)text[cut] & 0xC0) == 0x80) cut++;
    }
    return size;
}

static pith_status too_long(job *j) {
    return pith_fail(j->error, PITH_ERROR_LIMIT,
                     "the system prompt, a summary of %zu tokens and the last message do not fit "
                     "into the context of %zu tokens with %zu left for the reply",
                     j->options->drop ? 0 : j->limit, j->options->n_ctx, j->options->room);
}

/* Shortens the last message of list, a copy that may be changed. */
static pith_status shorten_last(job *j, json_t *list) {
    json_t *last = json_incref(json_array_get(list, json_array_size(list) - 1));
    const char *text = json_string_value(json_object_get(last, "content"));
    size_t size = json_string_length(json_object_get(last, "content"));
    size_t cut = text && !j->options->drop ? find_cut(j, list, text, size) : size;
    pith_status status = cut < size ? PITH_OK : too_long(j);
    pith_buffer_reset(&j->summary);
    if (status == PITH_OK) status = read_text(j, text, cut);
    if (status == PITH_OK && !set_last(list, &j->summary, text + cut, size - cut))
        status = no_memory(j);
    json_decref(last);
    return status;
}

/* ---- All together ---- */

/* The shortened messages, a new list. */
static pith_status shorten(job *j, json_t *messages, json_t **out, pith_summary *summary) {
    size_t last = json_array_size(messages) - 1, n = 0;
    size_t head = find_head(j, messages, last);
    size_t from = find_newer(j, messages, head);
    pith_status status = PITH_OK;
    if (from > head && !j->options->drop) {
        status = read_messages(j, messages, head, from);
        summary->n_tokens = j->n_tokens;
    }
    summary->n_messages = from - head;
    *out = status == PITH_OK ? without(j, messages, head, from) : NULL;
    if (status != PITH_OK) return status;
    if (!*out) return no_memory(j);
    if (!pith_summarise_count(j->options->model, *out, &n, j->error)) return j->error->status;
    if (n + j->options->room <= j->options->n_ctx) return PITH_OK;
    status = shorten_last(j, *out);
    summary->n_tokens += status == PITH_OK ? j->n_tokens : 0;
    if (status == PITH_OK && !pith_summarise_count(j->options->model, *out, &n, j->error))
        status = j->error->status;
    if (status == PITH_OK && n + j->options->room > j->options->n_ctx) status = too_long(j);
    return status;
}

/* Without memory the messages are as they were. */
static bool replace(json_t *messages, json_t *list) {
    size_t n = json_array_size(messages);
    if (json_array_extend(messages, list) != 0) return false;
    while (n-- > 0) json_array_remove(messages, 0);
    return true;
}

static pith_status prepare(job *j) {
    const pith_summarise_options *o = j->options;
    const pith_sampler_options greedy = {.size = sizeof greedy};
    j->limit = o->n_ctx / 8 < MOST_SUMMARY ? o->n_ctx / 8 : MOST_SUMMARY;
    if (j->limit < LEAST_SUMMARY) j->limit = LEAST_SUMMARY;
    if (o->n_ctx < 4 * LEAST_SUMMARY)
        return pith_fail(j->error, PITH_ERROR_LIMIT,
                         "a context of %zu tokens is too short to make a summary in", o->n_ctx);
    pith_tokenize(o->model, ask_talk, sizeof ask_talk - 1, 0, NULL, 0, &j->seam, NULL);
    j->seam += SEAM;
    j->ids = pith_alloc_array(o->n_ctx, sizeof *j->ids);
    if (!j->ids) return no_memory(j);
    return pith_sampler_new(o->model, &greedy, &j->sampler, j->error);
}

pith_status pith_summarise(const pith_summarise_options *options, json_t *messages,
                           pith_summary *out, pith_error *error) {
    pith_error unwanted = {PITH_OK, ""};
    job j = {.options = options, .error = error ? error : &unwanted};
    json_t *list = NULL;
    size_t before = 0, after = 0;
    uint64_t start = pith_clock_ns();
    *out = (pith_summary){0};
    if (json_array_size(messages) == 0) return PITH_OK;
    if (!pith_summarise_count(options->model, messages, &before, j.error)) return j.error->status;
    if (before + options->room <= options->n_ctx) return PITH_OK;
    pith_status status = prepare(&j);
    if (status == PITH_OK) status = shorten(&j, messages, &list, out);
    if (status == PITH_OK && !pith_summarise_count(options->model, list, &after, j.error))
        status = j.error->status;
    if (status == PITH_OK) {
        out->n_dropped = before + out->n_tokens > after ? before + out->n_tokens - after : 0;
        status = replace(messages, list) ? PITH_OK : no_memory(&j);
    }
    if (status != PITH_OK) *out = (pith_summary){0};
    out->ms = (double)(pith_clock_ns() - start) * 1e-6;
    json_decref(list);
    pith_sampler_free(j.sampler);
    pith_free(j.ids);
    pith_buffer_deinit(&j.summary);
    return status;
}

size_t pith_summarise_room(size_t n_ctx, int32_t max_tokens) {
    size_t room = max_tokens > 0 ? (size_t)max_tokens : n_ctx / 4;
    return room < n_ctx / 2 ? room : n_ctx / 2;
}

void pith_summarise_describe(const pith_summary *s, char *text, size_t capacity) {
    text[0] = 0;
    if (s->n_dropped == 0) return;
    if (s->n_tokens == 0)
        snprintf(text, capacity, "%zu older messages were left out, %zu tokens", s->n_messages,
                 s->n_dropped);
    else if (s->n_messages == 0)
        snprintf(text, capacity,
                 "%zu tokens at the start of the message were replaced by a summary of %zu",
                 s->n_dropped, s->n_tokens);
    else
        snprintf(text, capacity,
                 "%zu older messages, %zu tokens, were replaced by a summary of %zu tokens",
                 s->n_messages, s->n_dropped, s->n_tokens);
}
