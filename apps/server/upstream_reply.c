/* SPDX-License-Identifier: Apache-2.0
 * From an upstream's bytes to the client's answer.
 * Invariant: before the first byte goes to the client the answer is known to be of the kind that
 * was asked for; the exchange is answered once, by pith_upstream_reply_end at the latest.
 * Read next: upstream.c. */
#include "server/upstream_reply.h"

#include "base/memory.h"
#include "server/exchange_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void pith_upstream_reply_wrong(pith_upstream_reply *r, const char *code, const char *format, ...) {
    va_list arguments;
    if (r->code) return;
    r->code = code;
    va_start(arguments, format);
    vsnprintf(r->wrong, sizeof r->wrong, format, arguments);
    va_end(arguments);
}

/* ---- The head ---- */

/* Copies printable characters. */
static void copy_value(char *out, size_t capacity, const char *value, size_t size) {
    size_t n = 0;
    while (size > 0 && (*value == ' ' || *value == '\t')) value++, size--;
    while (size > 0 && (unsigned char)value[size - 1] <= ' ') size--;
    for (size_t i = 0; i < size && n + 1 < capacity; i++)
        out[n++] = value[i] >= ' ' && value[i] < 0x7F ? value[i] : '?';
    out[n] = 0;
}

static bool is_header(const char *line, size_t size, const char *name) {
    size_t n = strlen(name);
    return size > n && line[n] == ':' && strncasecmp(line, name, n) == 0;
}

void pith_upstream_reply_line(pith_upstream_reply *r, const char *line, size_t size) {
    enum { TYPE = sizeof "Content-Type", AFTER = sizeof "Retry-After" };
    if (size > 12 && memcmp(line, "HTTP/", 5) == 0) {
        const char *space = memchr(line, ' ', size);
        char number[4] = {0};
        if (space && (size_t)(line + size - space) > 4) memcpy(number, space + 1, 3);
        r->status = strtol(number, NULL, 10);
        r->type[0] = r->retry_after[0] = 0;
    } else if (is_header(line, size, "Content-Type")) {
        copy_value(r->type, sizeof r->type, line + TYPE, size - TYPE);
    } else if (is_header(line, size, "Retry-After")) {
        copy_value(r->retry_after, sizeof r->retry_after, line + AFTER, size - AFTER);
    }
}

static bool is_json_type(const pith_upstream_reply *r) {
    return strncasecmp(r->type, "application/json", 16) == 0 ||
           strncasecmp(r->type, "application/problem+json", 24) == 0;
}

static const char *shown_type(const pith_upstream_reply *r) {
    return r->type[0] ? r->type : "no content type";
}

static bool is_good(const pith_upstream_reply *r) {
    return r->status >= 200 && r->status < 300;
}

/* Of an answer with a good status, by its head. */
static void check_type(pith_upstream_reply *r) {
    bool is_stream = strncasecmp(r->type, "text/event-stream", 17) == 0;
    if (!is_good(r)) return;
    if (r->wants_stream && !is_stream)
        pith_upstream_reply_wrong(r, "upstream_no_stream",
                                  "the upstream was asked for a stream and answered with %s",
                                  shown_type(r));
    if (!r->wants_stream && !is_json_type(r))
        pith_upstream_reply_wrong(
            r, "upstream_not_json",
            "the upstream answered with %s where JSON was expected: is --upstream the address of "
            "an API such as https://host/v1?",
            shown_type(r));
}

/* ---- Streams ---- */

/* The first byte of a stream of events: a field's name, a comment, an empty line, a mark. */
static bool begins_events(char c) {
    return strchr("deir:\r\n\xEF", c) != NULL && c != 0;
}

static void keep_tail(pith_upstream_reply *r, const char *data, size_t size) {
    if (size >= sizeof r->tail) {
        memcpy(r->tail, data + size - sizeof r->tail, sizeof r->tail);
        r->n_tail = sizeof r->tail;
        return;
    }
    size_t keep = sizeof r->tail - size < r->n_tail ? sizeof r->tail - size : r->n_tail;
    memmove(r->tail, r->tail + r->n_tail - keep, keep);
    memcpy(r->tail + keep, data, size);
    r->n_tail = keep + size;
}

/* Whether the stream said that it is at its end: "data: [DONE]". */
static bool is_done(const pith_upstream_reply *r) {
    static const char mark[] = "[DONE]";
    size_t n = r->n_tail, size = sizeof mark - 1;
    while (n > 0 && (r->tail[n - 1] == '\n' || r->tail[n - 1] == '\r')) n--;
    if (n < size || memcmp(r->tail + n - size, mark, size) != 0) return false;
    n -= size;
    while (n > 0 && r->tail[n - 1] == ' ') n--;
    return n >= 5 && memcmp(r->tail + n - 5, "data:", 5) == 0;
}

/* Whether an empty line, which ends an event, is what came last. */
static bool has_ended_event(const pith_upstream_reply *r) {
    size_t n = r->n_tail;
    if (n < 2) return false;
    const char *end = r->tail + n;
    if (end[-1] == '\r') return end[-2] == '\r' || end[-2] == '\n';
    return end[-1] == '\n' && (end[-2] == '\n' || (n > 2 && end[-2] == '\r' && end[-3] == '\n'));
}

static pith_upstream_taken pass_on(pith_upstream_reply *r, const char *data, size_t size) {
    if (r->is_complete) return PITH_UPSTREAM_TAKEN; /* nobody waits for what comes now */
    if (!r->has_begun && !begins_events(data[0])) {
        pith_upstream_reply_wrong(r, "upstream_no_stream",
                                  "the upstream's stream does not consist of events");
        return PITH_UPSTREAM_STOP;
    }
    if (pith_exchange_unsent(r->exchange) > PITH_UPSTREAM_UNSENT_MAX) return PITH_UPSTREAM_LATER;
    if (!r->has_begun) pith_exchange_stream_begin(r->exchange, "text/event-stream");
    r->has_begun = true;
    r->n_bytes += size;
    keep_tail(r, data, size);
    if (!pith_exchange_stream_write(r->exchange, data, size)) {
        r->is_gone = true;
        return PITH_UPSTREAM_STOP;
    }
    r->is_complete = is_done(r) && has_ended_event(r);
    if (r->is_complete) pith_exchange_stream_end(r->exchange);
    return PITH_UPSTREAM_TAKEN;
}

/* Keeps a part of a whole answer, unless it or all of them become too large. */
static void keep(pith_upstream_reply *r, const char *data, size_t size) {
    atomic_ullong *held = &pith_exchange_server(r->exchange)->upstream_held;
    r->n_bytes += size;
    if (r->n_bytes > PITH_UPSTREAM_WHOLE_MAX) {
        pith_upstream_reply_wrong(r, "upstream_too_large",
                                  "the upstream's answer is larger than %d MiB",
                                  PITH_UPSTREAM_WHOLE_MAX >> 20);
        return;
    }
    r->n_held += size;
    bool fits = atomic_fetch_add(held, size) + size <= PITH_UPSTREAM_HELD_MAX;
    if (fits) pith_buffer_append(&r->whole, data, size);
    if (!fits || r->whole.failed)
        pith_upstream_reply_wrong(r, "upstream_memory",
                                  "there is no memory for the upstream's answer");
}

pith_upstream_taken pith_upstream_reply_data(pith_upstream_reply *r, const char *data,
                                             size_t size) {
    if (size == 0) return PITH_UPSTREAM_TAKEN;
    if (r->n_bytes == 0) check_type(r);
    if (r->code) return PITH_UPSTREAM_STOP;
    if (r->wants_stream && is_good(r)) return pass_on(r, data, size);
    keep(r, data, size);
    return r->code ? PITH_UPSTREAM_STOP : PITH_UPSTREAM_TAKEN;
}

/* An error inside a stream that has begun; an event that was cut short is closed first. */
static void end_stream(pith_upstream_reply *r) {
    const pith_http_error what = {502, "upstream_error", r->code, NULL, r->wrong};
    if (!r->code || r->is_complete) {
        pith_exchange_stream_end(r->exchange);
        return;
    }
    size_t breaks = 0;
    while (breaks < 2 && breaks < r->n_tail && r->tail[r->n_tail - 1 - breaks] == '\n') breaks++;
    pith_exchange_stream_write(r->exchange, "\n\n", 2 - breaks);
    pith_exchange_stream_event(r->exchange, NULL, pith_exchange_error_body(r->exchange, &what));
    pith_exchange_stream_end(r->exchange);
}

/* ---- Whole answers ---- */

static void reply_error(pith_upstream_reply *r) {
    pith_http_error what = {502, "upstream_error", r->code, NULL, r->wrong};
    if (strcmp(r->code, "upstream_timeout") == 0) what.status = 504;
    if (strcmp(r->code, "stopping") == 0) what.status = 503;
    pith_exchange_fail(r->exchange, &what);
}

/* An error of the upstream's own passes; but not what it says of our key. */
static void judge_status(pith_upstream_reply *r) {
    if (r->status == 401 || r->status == 403)
        pith_upstream_reply_wrong(r, "upstream_key", "the upstream refuses %s%s (status %ld)",
                                  r->key_name ? "the key in "
                                              : "requests without a key: give "
                                                "--upstream-key-env",
                                  r->key_name ? r->key_name : "", r->status);
    if (r->status < 400)
        pith_upstream_reply_wrong(
            r, "upstream_status",
            "the upstream answered with status %ld, which is not followed: give --upstream the "
            "final address",
            r->status);
    if (!json_is_object(r->json))
        pith_upstream_reply_wrong(r, "upstream_status",
                                  "the upstream answered with status %ld and %s", r->status,
                                  shown_type(r));
}

static void judge_whole(pith_upstream_reply *r) {
    check_type(r); /* of an empty answer */
    if (!json_is_object(r->json))
        pith_upstream_reply_wrong(r, "upstream_not_json",
                                  "the upstream's answer of %zu bytes is no JSON object",
                                  r->whole.size);
    else if (!json_is_array(json_object_get(r->json, "choices")))
        pith_upstream_reply_wrong(r, "upstream_not_json", "the upstream's answer has no choices");
}

void pith_upstream_reply_judge(pith_upstream_reply *r) {
    if (r->code) return;
    if (r->has_begun) {
        if (!is_done(r))
            pith_upstream_reply_wrong(r, "upstream_cut",
                                      "the upstream's stream ended before its end");
        return;
    }
    size_t n_values = 0;
    pith_json_depth(r->whole.data, r->whole.size, &n_values);
    if (n_values > PITH_UPSTREAM_VALUES_MAX) {
        pith_upstream_reply_wrong(r, "upstream_too_large",
                                  "the upstream's answer has more than %d values",
                                  PITH_UPSTREAM_VALUES_MAX);
        return;
    }
    if (r->whole.data) r->json = json_loadb(r->whole.data, r->whole.size, JSON_ALLOW_NUL, NULL);
    if (is_good(r))
        judge_whole(r);
    else
        judge_status(r);
}

/* Unchanged. */
static void reply_status(pith_upstream_reply *r) {
    if (r->retry_after[0]) pith_exchange_add_header(r->exchange, "Retry-After", r->retry_after);
    pith_exchange_reply_text(r->exchange, (int)r->status, "application/json",
                             (pith_span){r->whole.data, r->whole.size});
}

/* The upstream's text with {"pith": ...} as its first member. */
static void reply_spliced(pith_upstream_reply *r) {
    pith_buffer text = {0};
    json_t *said = pith_routing_describe(r->exchange);
    char *who = said ? pith_json_dump(said) : NULL, *dumped = NULL;
    if (json_object_get(r->json, "pith")) { /* of another pith: it is replaced */
        json_object_set(r->json, "pith", said);
        dumped = json_dumps(r->json, JSON_COMPACT);
        pith_buffer_append_text(&text, dumped ? dumped : "");
    } else {
        const char *open = memchr(r->whole.data, '{', r->whole.size);
        size_t before = (size_t)(open - r->whole.data) + 1;
        pith_buffer_append(&text, r->whole.data, before);
        pith_buffer_append_format(&text, "\"pith\":%s,", who ? who : "null");
        pith_buffer_append(&text, r->whole.data + before, r->whole.size - before);
    }
    json_decref(said);
    pith_json_release(who);
    pith_json_release(dumped);
    if (text.failed || !text.data)
        pith_exchange_reply(r->exchange, 500, NULL);
    else
        pith_exchange_reply_text(r->exchange, 200, "application/json",
                                 (pith_span){text.data, text.size});
    pith_buffer_deinit(&text);
}

void pith_upstream_reply_end(pith_upstream_reply *r) {
    if (r->has_begun)
        end_stream(r);
    else if (r->code)
        reply_error(r);
    else if (is_good(r))
        reply_spliced(r);
    else
        reply_status(r);
    json_decref(r->json);
    r->json = NULL;
    atomic_fetch_sub(&pith_exchange_server(r->exchange)->upstream_held, r->n_held);
    r->n_held = 0;
    pith_buffer_deinit(&r->whole);
}
