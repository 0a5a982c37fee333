/* SPDX-License-Identifier: Apache-2.0
 * Stop strings and banned strings in streamed text: found across token borders and cut before
 * anybody sees their start.
 *
 *   held   [ ready ............ | may become one of the strings ]
 *            goes out now         waits
 *
 * Invariant: between pushes no string lies whole in `held`. Of several occurrences the one that
 * ends first counts, so that the result does not depend on how the text was cut in chunks. What a
 * banned string means for the reply is reply_ban.c's. */
#include "base/memory.h"
#include "engine/engine.h"

#include <string.h>

/* Checks the strings and makes room for a chunk behind the longest start of one. */
static pith_status take_strings(pith_stop_text *text, const char *const *strings, size_t n,
                                size_t room, pith_error *error) {
    for (size_t i = 0; i < n; i++) {
        size_t size = strings[i] ? strlen(strings[i]) : 0;
        if (size == 0) return pith_fail(error, PITH_ERROR_ARGUMENT, "string %zu is empty", i);
        if (size > text->longest) text->longest = size;
    }
    pith_free(text->held);
    text->capacity = text->longest + room;
    text->held = pith_alloc(text->capacity);
    return text->held ? PITH_OK : pith_fail_memory(error, "stop strings", text->capacity);
}

pith_status pith_stop_text_init(pith_stop_text *text, const char *const *stops, size_t n_stops,
                                size_t max_chunk, pith_error *error) {
    *text = (pith_stop_text){.stops = stops, .n_stops = n_stops};
    return take_strings(text, stops, n_stops, max_chunk, error);
}

/* What cannot be settled before a banned string is decided begins with the token that it begins in:
 * one more chunk. */
pith_status pith_stop_text_ban(pith_stop_text *text, const char *const *banned, size_t n_banned,
                               size_t max_chunk, pith_error *error) {
    text->banned = banned;
    text->n_banned = n_banned;
    return take_strings(text, banned, n_banned, 2 * max_chunk, error);
}

void pith_stop_text_deinit(pith_stop_text *text) {
    pith_free(text->held);
    *text = (pith_stop_text){0};
}

/* Size of the longest of the strings that ends at `end` in held; 0: none does. */
static size_t longest_at(const pith_stop_text *text, const char *const *strings, size_t n,
                         size_t end) {
    size_t longest = 0;
    for (size_t i = 0; i < n; i++) {
        size_t size = strlen(strings[i]);
        if (size <= end && size > longest &&
            memcmp(text->held + end - size, strings[i], size) == 0) {
            longest = size;
        }
    }
    return longest;
}

/* Where the string that ends first, behind the first n_known bytes, begins in held; false: there is
 * none. Of several that end at once the longest begins first. */
static bool find_string(pith_stop_text *text, size_t n_known, size_t *begin) {
    for (size_t end = n_known + 1; end <= text->n_held; end++) {
        size_t size = longest_at(text, text->stops, text->n_stops, end);
        text->is_banned = size == 0;
        if (size == 0) size = longest_at(text, text->banned, text->n_banned, end);
        if (size == 0) continue;
        *begin = end - size;
        return true;
    }
    return false;
}

/* True when held[from..] is a proper start of one of the strings. */
static bool may_become(const pith_stop_text *text, const char *const *strings, size_t n,
                       size_t from) {
    size_t size = text->n_held - from;
    for (size_t i = 0; i < n; i++) {
        if (size < strlen(strings[i]) && memcmp(text->held + from, strings[i], size) == 0) {
            return true;
        }
    }
    return false;
}

size_t pith_stop_text_settled(const pith_stop_text *text) {
    size_t from = text->n_held >= text->longest ? text->n_held - text->longest + 1 : 0;
    if (text->n_banned == 0) return text->n_held;
    while (from < text->n_held && !may_become(text, text->banned, text->n_banned, from)) from++;
    return from;
}

size_t pith_stop_text_push(pith_stop_text *text, const char *chunk, size_t size, bool *found) {
    size_t begin = 0, n_known = text->n_held;
    if (size > text->capacity - text->n_held) size = text->capacity - text->n_held;
    if (size > 0) memcpy(text->held + text->n_held, chunk, size);
    text->n_held += size;
    *found = find_string(text, n_known, &begin);
    if (*found) return begin;
    size_t from = text->n_held >= text->longest ? text->n_held - text->longest + 1 : 0;
    size_t settled = pith_stop_text_settled(text);
    if (text->n_stops == 0) return settled;
    while (from < settled && !may_become(text, text->stops, text->n_stops, from)) from++;
    return from;
}

void pith_stop_text_drop(pith_stop_text *text, size_t n) {
    memmove(text->held, text->held + n, text->n_held - n);
    text->n_held -= n;
}
