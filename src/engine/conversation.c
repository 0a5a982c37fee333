/* SPDX-License-Identifier: Apache-2.0
 * A conversation that outgrows the context: what is older gives way to a summary of it.
 *
 *   system | u1 a1 u2 a2 u3 a3 | u4 a4 u5   ->   system | question summary | u4 a4 u5 ....room....
 *            older, half of it           newer
 *
 * The summary stands as the answer to a question, an exchange that took place: roles go on taking
 * turns, as many templates demand. An exchange begins at a user's message; calls of tools and their
 * results stay together with it. System messages among what is older come before the question.
 *
 * Invariant: system messages and the end of the last message are never lost; the caller's messages
 * are not changed. Read next: summary.c. Why so: docs/decisions/0070. */
#include "engine/conversation.h"

#include "base/clock.h"
#include "sample/grammar.h"

#include <string.h>

enum {
    LEAST_SUMMARY = 16, /* tokens */
    MOST_SUMMARY = 512,
    SEAM = 32 /* tokens that the template writes around two messages, at most */
};

pith_status pith_talk_no_memory(pith_talk *talk) {
    return pith_fail_memory(talk->error, "a summary", 0);
}

/* ---- Messages ---- */

const char *pith_talk_role(json_t *messages, size_t index) {
    const char *role = json_string_value(json_object_get(json_array_get(messages, index), "role"));
    return role ? role : "";
}

static bool has_role(json_t *messages, size_t index, const char *role) {
    return strcmp(pith_talk_role(messages, index), role) == 0;
}

/* Whether it stays wherever it stands. */
static bool is_system(json_t *messages, size_t index) {
    return has_role(messages, index, "system") || has_role(messages, index, "developer");
}

static json_t *content_of(json_t *messages, size_t index) {
    return json_object_get(json_array_get(messages, index), "content");
}

static pith_span text_of(const json_t *string) {
    const char *text = json_string_value(string);
    return (pith_span){text ? text : "", json_string_length(string)};
}

void pith_talk_append_content(pith_buffer *text, json_t *messages, size_t index) {
    json_t *content = content_of(messages, index);
    pith_span whole = text_of(content);
    pith_buffer_append(text, whole.data, whole.size);
    for (size_t i = 0; i < json_array_size(content); i++) {
        pith_span part = text_of(json_object_get(json_array_get(content, i), "text"));
        pith_buffer_append(text, part.data, part.size);
    }
}

bool pith_talk_add(json_t *messages, const char *role, pith_span text) {
    return json_array_append_new(messages, json_pack("{s:s, s:s%}", "role", role, "content",
                                                     text.data, text.size)) == 0;
}

bool pith_talk_add_range(json_t *messages, json_t *from, size_t first, size_t end) {
    for (size_t i = first; i < end; i++)
        if (json_array_append(messages, json_array_get(from, i)) != 0) return false;
    return true;
}

size_t pith_talk_cut_before(pith_span text, size_t at) {
    if (at >= text.size) return text.size;
    while (at > 0 && ((unsigned char)text.data[at] & 0xC0) == 0x80) at--;
    for (size_t back = at; back > 0 && at - back < 40; back--)
        if (text.data[back - 1] == ' ' || text.data[back - 1] == '\n') return back;
    return at;
}

/* ---- Counting ---- */

/* Whether the text ends with the mark and any space. */
static bool ends_with(pith_span text, const char *mark) {
    size_t end = text.size, size = mark ? strlen(mark) : 0;
    while (end > 0 && (text.data[end - 1] == '\n' || text.data[end - 1] == ' ')) end--;
    return size > 0 && end >= size && memcmp(text.data + end - size, mark, size) == 0;
}

pith_status pith_talk_count(pith_talk *talk, json_t *messages, bool asks, size_t *n) {
    pith_rendered rendered = {0};
    json_t *context = json_copy(talk->context);
    bool made = context && json_object_set(context, "messages", messages) == 0;
    if (made && asks)
        made = json_object_set_new(context, "add_generation_prompt", json_true()) == 0 &&
               json_object_set_new(context, "enable_thinking", json_false()) == 0;
    pith_status status = made ? PITH_OK : pith_talk_no_memory(talk);
    if (status == PITH_OK)
        status = pith_prompt_compose(talk->model, talk->tpl, context, -1, &rendered, talk->error);
    talk->ids.size = 0;
    if (status == PITH_OK)
        status = pith_prompt_encode(talk->model, &rendered, 0, &talk->ids, talk->error);
    *n = talk->ids.size;
    talk->in_thought =
        ends_with((pith_span){rendered.text.data, rendered.text.size}, talk->thought.thought_begin);
    pith_rendered_deinit(&rendered);
    json_decref(context);
    return status;
}

size_t pith_talk_text_tokens(pith_talk *talk, pith_span text) {
    pith_ids ids = {0};
    pith_text_span span = {.text = text, .parse_special = false};
    pith_status status = pith_tokenizer_encode(talk->model->tokenizer, &span, 1, false, &ids, NULL);
    size_t n = ids.size;
    talk->starved = talk->starved || status == PITH_ERROR_MEMORY;
    pith_ids_deinit(&ids);
    return n;
}

static size_t message_tokens(pith_talk *talk, json_t *messages, size_t index) {
    pith_buffer text = {0};
    pith_talk_append_content(&text, messages, index);
    size_t n = text.size ? pith_talk_text_tokens(talk, (pith_span){text.data, text.size}) : 0;
    talk->starved = talk->starved || text.failed;
    pith_buffer_deinit(&text);
    return n;
}

/* Tokens that a summary takes beside the messages that stay. */
static size_t summary_tokens(const pith_talk *talk) {
    return talk->options->drop ? 0 : talk->limit + talk->seam;
}

/* ---- What is older ---- */

/* Where the last exchange begins: at the last message of the user, else at the last of all. */
static size_t find_last(json_t *messages) {
    size_t n = json_array_size(messages), last = n - 1;
    while (last > 0 && !has_role(messages, last, "user")) last--;
    return has_role(messages, last, "user") ? last : n - 1;
}

/* A message of the user in (low, high), near the middle; high where there is none. */
static size_t user_between(json_t *messages, size_t low, size_t high) {
    size_t middle = low + (high - low) / 2;
    for (size_t i = middle > low ? middle : low + 1; i < high; i++)
        if (has_role(messages, i, "user")) return i;
    for (size_t i = middle; i > low + 1; i--)
        if (has_role(messages, i - 1, "user")) return i - 1;
    return high;
}

/* *n: tokens of the first `end` messages. */
static pith_status count_first(pith_talk *talk, json_t *messages, size_t end, size_t *n) {
    json_t *part = json_array();
    bool ok = pith_talk_add_range(part, messages, 0, end);
    pith_status status = ok ? pith_talk_count(talk, part, false, n) : pith_talk_no_memory(talk);
    json_decref(part);
    return status;
}

/* Messages that stay in front: the system's, and whole exchanges within n_keep tokens. Looked for
 * from the front in steps that double, then between the last two: few messages are counted. */
static pith_status find_head(pith_talk *talk, json_t *messages, size_t last, size_t *head) {
    size_t n = 0, n_keep = (size_t)talk->options->n_keep, reach = 4, high = last;
    *head = 0;
    while (*head < last && is_system(messages, *head)) ++*head;
    while (n_keep > 0) {
        size_t end = high < last || high - *head < reach ? high : *head + reach;
        size_t middle = user_between(messages, *head, end);
        if (middle == end && end == high) break;
        reach *= 2;
        if (middle == end) continue;
        pith_status status = count_first(talk, messages, middle, &n);
        if (status != PITH_OK) return status;
        if (n > n_keep)
            high = middle;
        else
            *head = middle;
    }
    return PITH_OK;
}

/* The messages without [head, from) but for the system's there, with the summary in their place.
 * NULL without memory. */
static json_t *without(pith_talk *talk, json_t *messages, size_t head, size_t from) {
    json_t *list = json_array();
    bool ok = pith_talk_add_range(list, messages, 0, head);
    for (size_t i = head; ok && i < from; i++)
        if (is_system(messages, i)) ok = pith_talk_add_range(list, messages, i, i + 1);
    if (ok && from > head && talk->summary.size > 0)
        ok = pith_talk_add(list, "user", pith_span_of(pith_talk_question)) &&
             pith_talk_add(list, "assistant", (pith_span){talk->summary.data, talk->summary.size});
    if (ok && pith_talk_add_range(list, messages, from, json_array_size(messages))) return list;
    json_decref(list);
    return NULL;
}

/* Whether the messages from `from` on, a summary and the reply leave the context within `most`. A
 * template that refuses such messages (roles that do not take turns) says no. */
static bool fits(pith_talk *talk, json_t *messages, size_t head, size_t from, size_t most) {
    size_t n = 0;
    pith_error refusal = {PITH_OK, ""}, *error = talk->error;
    json_t *list = without(talk, messages, head, from);
    talk->error = &refusal;
    pith_status status = list ? pith_talk_count(talk, list, false, &n) : pith_talk_no_memory(talk);
    talk->error = error;
    talk->starved = talk->starved || status == PITH_ERROR_MEMORY;
    json_decref(list);
    return status == PITH_OK && n + summary_tokens(talk) + talk->room <= most;
}

/* The first message of a user that may stay: an estimate. What messages take is their text and an
 * equal share of the template's tokens. */
static size_t guess_from(pith_talk *talk, json_t *messages, size_t head, size_t total,
                         size_t most) {
    size_t n_messages = json_array_size(messages), last = find_last(messages);
    size_t gone = 0, n_gone = 0, taken = talk->room + summary_tokens(talk);
    uint64_t around = total > talk->texts ? total - talk->texts : 0;
    for (size_t i = head; i < last; i++) {
        size_t share = (size_t)(around * n_gone / n_messages);
        if (n_gone > 0 && has_role(messages, i, "user") && total + taken <= most + gone + share)
            return i;
        if (is_system(messages, i)) continue;
        gone += message_tokens(talk, messages, i);
        n_gone++;
    }
    return last;
}

/* The first message that stays: a user's with which all fits within `most`; the last exchange where
 * there is none. Looked for from the estimate on, to the front in steps that double, then between
 * the last two: a long conversation is not counted once for each of its messages. */
static size_t find_from(pith_talk *talk, json_t *messages, size_t head, size_t total, size_t most) {
    size_t low = head, high = find_last(messages), reach = 4;
    size_t at = guess_from(talk, messages, head, total, most);
    bool is_low = false; /* with low it does not fit */
    for (;; reach *= 2) {
        if (at < high && fits(talk, messages, head, at, most)) {
            high = at;
        } else if (at < high) {
            low = at;
            is_low = true;
        }
        size_t begin = is_low || high - low <= reach ? low : high - reach;
        at = user_between(messages, begin, high);
        if (at == high && begin == low) return high;
    }
}

/* The newer half stays where that is possible, so that the next turns need no summary again; at
 * worst the last exchange alone. */
static size_t find_newer(pith_talk *talk, json_t *messages, size_t head, size_t total) {
    size_t from = find_from(talk, messages, head, total, (talk->n_ctx + talk->room) / 2);
    if (from < find_last(messages)) return from;
    return find_from(talk, messages, head, total, talk->n_ctx);
}

/* ---- A last message that is too long ---- */

/* The content of a message with another text: in parts where it was, and those that are no text
 * stay. NULL without memory. */
static json_t *content_with(json_t *content, pith_span text) {
    json_t *string = json_stringn(text.data ? text.data : "", text.size);
    if (!json_is_array(content)) return string;
    json_t *parts = json_array();
    bool ok = parts && string;
    for (size_t i = 0; ok && i < json_array_size(content); i++) {
        json_t *part = json_array_get(content, i);
        if (!json_is_string(json_object_get(part, "text")))
            ok = json_array_append(parts, part) == 0;
    }
    if (ok)
        ok = json_array_append_new(parts,
                                   json_pack("{s:s, s:O}", "type", "text", "text", string)) == 0;
    json_decref(string);
    if (ok) return parts;
    json_decref(parts);
    return NULL;
}

/* Its text becomes the summary and what is left of it. */
static bool set_last(json_t *list, pith_span summary, pith_span rest) {
    pith_buffer text = {0};
    size_t last = json_array_size(list) - 1;
    json_t *message = json_copy(json_array_get(list, last));
    if (summary.size > 0) {
        pith_buffer_append_text(&text, "Summary of what comes before: ");
        pith_buffer_append(&text, summary.data, summary.size);
        pith_buffer_append_text(&text, "\n\n");
    }
    pith_buffer_append(&text, rest.data, rest.size);
    bool ok = !text.failed && message &&
              json_object_set_new(
                  message, "content",
                  content_with(content_of(list, last), (pith_span){text.data, text.size})) == 0;
    pith_buffer_deinit(&text);
    if (ok) return json_array_set_new(list, last, message) == 0;
    json_decref(message);
    return false;
}

/* *cut: bytes at the start of the last message that have no place; its size: nothing has. */
static pith_status find_cut(pith_talk *talk, json_t *list, pith_span text, size_t *cut) {
    size_t n = 0, taken = talk->limit + talk->seam + talk->room;
    for (*cut = 0; *cut < text.size;) {
        pith_span rest = {text.data + *cut, text.size - *cut};
        if (!set_last(list, (pith_span){"", 0}, rest)) return pith_talk_no_memory(talk);
        pith_status status = pith_talk_count(talk, list, false, &n);
        if (status != PITH_OK || n + taken <= talk->n_ctx) return status;
        size_t over = n + taken - talk->n_ctx;
        size_t more = (size_t)((double)rest.size * (double)over / (double)n) + 1;
        size_t next = pith_talk_cut_before(text, *cut + more);
        *cut = next > *cut ? next : *cut + more;
        while (*cut < text.size && ((unsigned char)text.data[*cut] & 0xC0) == 0x80) ++*cut;
    }
    *cut = text.size;
    return PITH_OK;
}

static pith_status too_long(pith_talk *talk) {
    const char *kept = talk->options->n_keep > 0 ? ", the exchanges within n_keep" : "";
    if (talk->options->drop)
        return pith_fail(talk->error, PITH_ERROR_LIMIT,
                         "the system prompt%s and the last exchange do not fit into the context of "
                         "%zu tokens with %zu left for the reply: shorten them, or make the "
                         "context larger",
                         kept, talk->n_ctx, talk->room);
    return pith_fail(
        talk->error, PITH_ERROR_LIMIT,
        "the system prompt%s, a summary of %zu tokens and the last exchange do not fit "
        "into the context of %zu tokens with %zu left for the reply: shorten them, or make the "
        "context larger",
        kept, talk->limit, talk->n_ctx, talk->room);
}

/* Shortens the last message of list, a user's or a tool's text; list may be changed. */
static pith_status shorten_last(pith_talk *talk, json_t *list) {
    size_t index = json_array_size(list) - 1, cut = 0;
    pith_buffer whole = {0};
    pith_talk_append_content(&whole, list, index);
    pith_span text = {whole.data, whole.size};
    bool may = text.size > 0 && !talk->options->drop &&
               (has_role(list, index, "user") || has_role(list, index, "tool"));
    pith_status status = whole.failed ? pith_talk_no_memory(talk)
                         : may        ? find_cut(talk, list, text, &cut)
                                      : too_long(talk);
    if (status == PITH_OK && cut == text.size) status = too_long(talk);
    pith_buffer_reset(&talk->summary);
    if (status == PITH_OK) status = pith_talk_read_text(talk, (pith_span){text.data, cut});
    pith_span summary = {talk->summary.data, talk->summary.size};
    if (status == PITH_OK &&
        !set_last(list, summary, (pith_span){text.data + cut, text.size - cut}))
        status = pith_talk_no_memory(talk);
    pith_buffer_deinit(&whole);
    return status;
}

/* ---- All together ---- */

/* PITH_OK where list and the reply fit; *n: its tokens. */
static pith_status check_fit(pith_talk *talk, json_t *list, size_t *n) {
    pith_status status = pith_talk_count(talk, list, false, n);
    return status == PITH_OK && *n + talk->room > talk->n_ctx ? too_long(talk) : status;
}

/* The shortened messages, a new list; in *out what was done. */
static pith_status shorten(pith_talk *talk, json_t *messages, json_t **list,
                           pith_conversation_info *out) {
    size_t head = 0, last = find_last(messages);
    pith_status status = find_head(talk, messages, last, &head);
    if (status != PITH_OK) return status;
    for (size_t i = 0; i < json_array_size(messages); i++)
        talk->texts += message_tokens(talk, messages, i);
    size_t from = find_newer(talk, messages, head, out->n_prompt);
    if (from > head && !talk->options->drop) {
        status = pith_talk_summarise(talk, messages, head, from);
        out->n_summary = talk->n_summary;
    }
    for (size_t i = head; i < from; i++) out->n_messages += !is_system(messages, i);
    if (status != PITH_OK) return status;
    *list = without(talk, messages, head, from);
    if (!*list) return pith_talk_no_memory(talk);
    status = check_fit(talk, *list, &out->n_prompt);
    if (status != PITH_ERROR_LIMIT) return status;
    status = shorten_last(talk, *list);
    if (status != PITH_OK) return status;
    out->n_summary += talk->n_summary;
    return check_fit(talk, *list, &out->n_prompt);
}

static pith_status prepare(pith_talk *talk) {
    const pith_sampler_options greedy = {.size = sizeof greedy};
    talk->limit = talk->n_ctx / 8 < MOST_SUMMARY ? talk->n_ctx / 8 : MOST_SUMMARY;
    if (talk->limit < LEAST_SUMMARY) talk->limit = LEAST_SUMMARY;
    if (talk->n_ctx < 4 * LEAST_SUMMARY)
        return pith_fail(talk->error, PITH_ERROR_LIMIT,
                         "a context of %zu tokens is too short to make a summary in", talk->n_ctx);
    talk->seam = pith_talk_text_tokens(talk, pith_span_of(pith_talk_question)) + SEAM;
    return pith_sample_new(pith_model_get_info(talk->model).n_vocab, &greedy, &talk->sampler,
                           talk->error);
}

/* Shortens where it must; *list is NULL where the messages fit. */
static pith_status make_fit(pith_talk *talk, json_t *messages, json_t **list,
                            pith_conversation_info *out) {
    pith_status status = pith_talk_count(talk, messages, false, &out->n_prompt);
    size_t before = out->n_prompt;
    if (status != PITH_OK || before + talk->room <= talk->n_ctx) return status;
    status = prepare(talk);
    if (status == PITH_OK) status = shorten(talk, messages, list, out);
    if (talk->starved) status = pith_talk_no_memory(talk);
    if (status != PITH_OK) return status;
    size_t after = out->n_prompt > out->n_summary ? out->n_prompt - out->n_summary : 0;
    out->n_dropped = before > after ? before - after : 0;
    return PITH_OK;
}

/* Tokens to leave for a reply of at most max_tokens (0: no limit). */
static size_t room_of(size_t n_ctx, int32_t max_tokens) {
    size_t room = max_tokens > 0 ? (size_t)max_tokens : n_ctx / 4;
    return room < n_ctx / 2 ? room : n_ctx / 2;
}

pith_status pith_conversation_shorten(pith_session *session, json_t *context,
                                      const pith_conversation_options *options,
                                      pith_conversation_info *out, pith_error *error) {
    pith_error unwanted = {PITH_OK, ""};
    pith_template *template = NULL;
    json_t *list = NULL;
    size_t n_ctx = session->engine->n_ctx;
    uint64_t start = pith_clock_ns();
    pith_talk talk = {.session = session,
                      .model = session->engine->model,
                      .context = context,
                      .options = options,
                      .n_ctx = n_ctx,
                      .room = room_of(n_ctx, options->max_tokens),
                      .error = error ? error : &unwanted};
    const char *text = options->template_text ? options->template_text : talk.model->chat_template;
    *out = (pith_conversation_info){0};
    pith_tool_format_thought(text, &talk.thought);
    pith_status status = pith_template_new(pith_span_of(text), &template, talk.error);
    talk.tpl = template;
    if (status == PITH_OK)
        status = make_fit(&talk, json_object_get(context, "messages"), &list, out);
    if (status == PITH_OK && list && json_object_set(context, "messages", list) != 0)
        status = pith_talk_no_memory(&talk);
    out->ms = (double)(pith_clock_ns() - start) * 1e-6;
    if (status != PITH_OK) *out = (pith_conversation_info){0};
    json_decref(list);
    pith_template_free(template);
    pith_sample_free(talk.sampler);
    pith_ids_deinit(&talk.ids);
    pith_buffer_deinit(&talk.summary);
    return status;
}
