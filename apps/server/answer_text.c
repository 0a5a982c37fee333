/* SPDX-License-Identifier: Apache-2.0
 * Takes replies apart while they come.
 *
 *   START --<think>--> REASONING --</think>--> ANSWER <--</tool_call>-- --<tool_call>--> CALL
 *     \--anything else------------------------>
 *
 * Invariant: what might be the beginning of a mark, and white space that may stand before one, is
 * held until it is known; then it is told or dropped. A call that is no JSON is told as the text
 * that it was. White space around marks is left out.
 * The marks are those of Qwen and Hermes; tool_text.h of another family would take this place. */
#include "server/answer_text.h"

#include "server/fields.h"

#include <string.h>

static const char think_open[] = "<think>", think_close[] = "</think>";
static const char call_open[] = "<tool_call>", call_close[] = "</tool_call>";

static bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

void pith_answer_text_init(pith_answer_text *t, bool reads_reasoning, bool reads_calls,
                           bool starts_reasoning) {
    t->reads_reasoning = reads_reasoning;
    t->reads_calls = reads_calls;
    t->state = reads_reasoning ? PITH_TEXT_START : PITH_TEXT_ANSWER;
    if (reads_reasoning && starts_reasoning) t->state = PITH_TEXT_REASONING;
    t->is_blank = t->state == PITH_TEXT_REASONING;
}

void pith_answer_text_deinit(pith_answer_text *t) {
    pith_buffer_deinit(&t->held);
}

static void drop(pith_answer_text *t, size_t n) {
    memmove(t->held.data, t->held.data + n, t->held.size - n);
    t->held.size -= n;
    t->held.data[t->held.size] = 0;
}

/* Tells the first n bytes of what is held, and drops them. */
static void tell(pith_answer_text *t, size_t n) {
    size_t from = 0;
    while (t->is_blank && from < n && is_space(t->held.data[from])) from++;
    if (from < n) {
        t->is_blank = false;
        pith_reply_part part = {.text = {t->held.data + from, n - from}};
        part.kind = t->state == PITH_TEXT_REASONING ? PITH_PART_REASONING : PITH_PART_TEXT;
        t->tell(t->user, &part);
    }
    if (n > 0) drop(t, n);
}

static size_t find(const pith_buffer *text, size_t from, const char *mark) {
    size_t n = strlen(mark);
    for (size_t i = from; i + n <= text->size; i++) {
        const char *at = memchr(text->data + i, mark[0], text->size - i - n + 1);
        if (!at) break;
        i = (size_t)(at - text->data);
        if (memcmp(at, mark, n) == 0) return i;
    }
    return SIZE_MAX;
}

static size_t without_space(const pith_buffer *text, size_t n) {
    while (n > 0 && is_space(text->data[n - 1])) n--;
    return n;
}

/* Bytes at the front that are certainly no part of a mark, nor white space before one. */
static size_t certain(const pith_buffer *text, const char *mark) {
    size_t n = strlen(mark), keep = text->size < n - 1 ? text->size : n - 1;
    while (keep > 0 && memcmp(text->data + text->size - keep, mark, keep) != 0) keep--;
    return without_space(text, text->size - keep);
}

/* One of the two marks, or not yet: false. */
static bool step_start(pith_answer_text *t) {
    size_t space = 0, n = sizeof think_open - 1;
    while (space < t->held.size && is_space(t->held.data[space])) space++;
    size_t left = t->held.size - space, same = left < n ? left : n;
    if (same > 0 && memcmp(t->held.data + space, think_open, same) != 0) {
        t->state = PITH_TEXT_ANSWER;
        return true;
    }
    if (left < n) return false;
    drop(t, space + n);
    t->state = PITH_TEXT_REASONING;
    t->is_blank = true;
    return true;
}

/* Tells up to the mark and goes on in another state behind it; false: the mark did not come yet. */
static bool step_to(pith_answer_text *t, const char *mark, int next) {
    size_t at = find(&t->held, 0, mark);
    if (at == SIZE_MAX) {
        tell(t, certain(&t->held, mark));
        return false;
    }
    tell(t, without_space(&t->held, at));
    drop(t, find(&t->held, 0, mark) + strlen(mark));
    t->state = next == PITH_TEXT_CALL ? PITH_TEXT_CALL : PITH_TEXT_ANSWER;
    t->is_blank = true;
    t->n_searched = 0;
    return true;
}

/* A call of text[0 .. size-1]; false: it is none. */
static bool tell_call(pith_answer_text *t, const char *text, size_t size) {
    json_t *call = json_loadb(text, size, 0, NULL), *arguments = json_object_get(call, "arguments");
    if (!arguments) arguments = json_object_get(call, "parameters");
    const char *name = json_string_value(json_object_get(call, "name"));
    char *dumped = json_is_string(arguments) || !arguments ? NULL : pith_json_dump(arguments);
    const char *shown = dumped ? dumped : arguments ? json_string_value(arguments) : "{}";
    bool ok = name && shown;
    if (ok) {
        pith_reply_part part = {.text = pith_span_of(shown), .name = name};
        part.kind = PITH_PART_CALL;
        t->n_calls++;
        t->tell(t->user, &part);
    }
    pith_json_release(dumped);
    json_decref(call);
    return ok;
}

static bool step_call(pith_answer_text *t) {
    size_t n = sizeof call_close - 1;
    size_t at = find(&t->held, t->n_searched, call_close);
    if (at == SIZE_MAX) {
        t->n_searched = t->held.size >= n ? t->held.size - n + 1 : 0;
        return false;
    }
    t->state = PITH_TEXT_ANSWER;
    t->n_searched = 0;
    if (tell_call(t, t->held.data, at)) {
        drop(t, at + n);
        t->is_blank = true;
        return true;
    }
    pith_reply_part open = {.kind = PITH_PART_TEXT, .text = {call_open, sizeof call_open - 1}};
    t->tell(t->user, &open);
    t->is_blank = false;
    tell(t, at + n);
    return true;
}

static bool step(pith_answer_text *t) {
    if (t->held.size == 0) return false;
    switch (t->state) {
    case PITH_TEXT_START: return step_start(t);
    case PITH_TEXT_REASONING: return step_to(t, think_close, PITH_TEXT_ANSWER);
    case PITH_TEXT_CALL: return step_call(t);
    case PITH_TEXT_ANSWER: break;
    }
    if (t->reads_calls) return step_to(t, call_open, PITH_TEXT_CALL);
    tell(t, t->held.size);
    return false;
}

void pith_answer_text_push(pith_answer_text *t, const char *data, size_t size) {
    if (size == 0) return;
    pith_buffer_append(&t->held, data, size);
    if (t->held.failed) return;
    while (step(t)) {}
}

void pith_answer_text_end(pith_answer_text *t) {
    if (t->held.failed || !t->held.data) return;
    bool is_call = t->state == PITH_TEXT_CALL;
    if (t->state != PITH_TEXT_REASONING) t->state = PITH_TEXT_ANSWER;
    if (is_call && tell_call(t, t->held.data, t->held.size)) return;
    if (is_call) {
        pith_reply_part open = {.kind = PITH_PART_TEXT, .text = {call_open, sizeof call_open - 1}};
        t->tell(t->user, &open);
        t->is_blank = false;
    }
    tell(t, t->held.size);
}
