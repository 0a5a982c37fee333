/* SPDX-License-Identifier: Apache-2.0
 * Stop strings in streamed text: found across token borders and cut before anybody sees their
 * start.
 *
 *   held   [ ready ............ | may become a stop string ]
 *            goes out now         waits
 *
 * Invariant: between pushes `held` is the longest end of the text that is a proper start of a
 * stop string. Of several occurrences the one that ends first counts, so that the result does not
 * depend on how the text was cut in chunks. */
#include "base/memory.h"
#include "engine/engine.h"

#include <string.h>

pith_status pith_stop_text_init(pith_stop_text *text, const char *const *stops, size_t n_stops,
                                size_t max_chunk, pith_error *error) {
    *text = (pith_stop_text){.stops = stops, .n_stops = n_stops};
    for (size_t i = 0; i < n_stops; i++) {
        size_t size = stops[i] ? strlen(stops[i]) : 0;
        if (size == 0) return pith_fail(error, PITH_ERROR_ARGUMENT, "stop string %zu is empty", i);
        if (size > text->longest) text->longest = size;
    }
    text->capacity = text->longest + max_chunk;
    text->held = pith_alloc(text->capacity);
    return text->held ? PITH_OK : pith_fail_memory(error, "stop strings", text->capacity);
}

void pith_stop_text_deinit(pith_stop_text *text) {
    pith_free(text->held);
    *text = (pith_stop_text){0};
}

/* Where the stop string that ends first begins and ends in held; false: there is none. */
static bool find_stop(const pith_stop_text *text, size_t *begin) {
    for (size_t end = 1; end <= text->n_held; end++) {
        size_t longest = 0; /* of several that end here the longest begins first */
        for (size_t i = 0; i < text->n_stops; i++) {
            size_t size = strlen(text->stops[i]);
            if (size <= end && size > longest &&
                memcmp(text->held + end - size, text->stops[i], size) == 0) {
                longest = size;
            }
        }
        if (longest == 0) continue;
        *begin = end - longest;
        return true;
    }
    return false;
}

/* True when held[from..] is a proper start of a stop string. */
static bool may_become_stop(const pith_stop_text *text, size_t from) {
    size_t size = text->n_held - from;
    for (size_t i = 0; i < text->n_stops; i++) {
        if (size < strlen(text->stops[i]) && memcmp(text->held + from, text->stops[i], size) == 0) {
            return true;
        }
    }
    return false;
}

size_t pith_stop_text_push(pith_stop_text *text, const char *chunk, size_t size, bool *found) {
    size_t begin = 0;
    if (size > text->capacity - text->n_held) size = text->capacity - text->n_held;
    if (size > 0) memcpy(text->held + text->n_held, chunk, size);
    text->n_held += size;
    *found = find_stop(text, &begin);
    if (*found) return begin;
    size_t from = text->n_held >= text->longest ? text->n_held - text->longest + 1 : 0;
    if (text->n_stops == 0) return text->n_held;
    while (from < text->n_held && !may_become_stop(text, from)) from++;
    return from;
}

void pith_stop_text_drop(pith_stop_text *text, size_t n) {
    memmove(text->held, text->held + n, text->n_held - n);
    text->n_held -= n;
}
