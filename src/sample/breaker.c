/* SPDX-License-Identifier: Apache-2.0
 * Sequence breakers: short strings over the text of the tokens (DRY).
 *
 * Owns, computed once from the vocabulary, which tokens hold a breaker whole (a bit each) and the
 * bytes of the few that could be a part of one that lies across several tokens; and the end of the
 * text so far, at most one byte shorter than the longest breaker. A token that touches no breaker
 * ends what was begun. So the vocabulary is not needed afterwards.
 *
 * Does not: decide what a breaker ends (dry.c). */
#include "sample/history.h"

#include "base/memory.h"

#include <string.h>

/* ---- Made once ---- */

static bool holds(pith_span piece, const char *text, size_t size) {
    for (size_t at = 0; at + size <= piece.size; at++) {
        const char *first = memchr(piece.data + at, text[0], piece.size - size + 1 - at);
        if (!first) return false;
        if (memcmp(first, text, size) == 0) return true;
        at = (size_t)(first - piece.data);
    }
    return false;
}

/* Whether the piece could be a part of the text, or overlap one end of it. */
static bool touches(pith_span piece, const char *text, size_t size) {
    if (piece.size == 0) return false;
    for (size_t at = 1; at < piece.size + size; at++) { /* the text begins at piece.size - at */
        size_t in_piece = at < piece.size ? piece.size - at : 0;
        size_t in_text = at > piece.size ? at - piece.size : 0;
        size_t n = piece.size - in_piece < size - in_text ? piece.size - in_piece : size - in_text;
        if (memcmp(piece.data + in_piece, text + in_text, n) == 0) return true;
    }
    return false;
}

static bool touches_any(const pith_breakers *breakers, pith_span piece) {
    for (size_t i = 0; i < breakers->n; i++)
        if (breakers->sizes[i] > 1 && touches(piece, breakers->texts[i], breakers->sizes[i]))
            return true;
    return false;
}

static void mark_whole(pith_breakers *breakers, const pith_span *pieces, int32_t n_vocab) {
    for (int32_t id = 0; id < n_vocab; id++)
        for (size_t i = 0; i < breakers->n; i++)
            if (holds(pieces[id], breakers->texts[i], breakers->sizes[i]))
                breakers->whole[id / 32] |= 1u << (id % 32);
}

/* Counts the tokens that touch a breaker, with their bytes; stores them when `store`. */
static size_t take_touching(pith_breakers *breakers, const pith_span *pieces, int32_t n_vocab,
                            bool store) {
    size_t n_bytes = 0, n = 0;
    for (int32_t id = 0; id < n_vocab && breakers->longest > 1; id++) {
        if (!touches_any(breakers, pieces[id])) continue;
        if (store) {
            breakers->touching[n] = id;
            breakers->first_byte[n] = n_bytes;
            memcpy(breakers->bytes + n_bytes, pieces[id].data, pieces[id].size);
        }
        n_bytes += pieces[id].size;
        n++;
    }
    breakers->n_touching = n;
    if (store) breakers->first_byte[n] = n_bytes;
    return n_bytes;
}

static bool allocate(pith_breakers *breakers, size_t n_words, size_t n_bytes) {
    size_t n = breakers->n_touching;
    breakers->touching = pith_alloc_array(n, sizeof *breakers->touching);
    breakers->first_byte = pith_alloc_zero(n + 1, sizeof *breakers->first_byte);
    breakers->bytes = pith_alloc(n_bytes);
    breakers->whole = pith_alloc_zero(n_words, sizeof *breakers->whole);
    return breakers->touching && breakers->first_byte && breakers->bytes && breakers->whole;
}

static size_t words_of(int32_t n_vocab) {
    return ((size_t)n_vocab + 31) / 32;
}

bool pith_breakers_init(pith_breakers *breakers, const pith_span *texts, size_t n,
                        const pith_span *pieces, int32_t n_vocab) {
    *breakers = (pith_breakers){0};
    if (n == 0) return true;
    breakers->n = n;
    for (size_t i = 0; i < n; i++) {
        memcpy(breakers->texts[i], texts[i].data, texts[i].size);
        breakers->sizes[i] = (uint8_t)texts[i].size;
        if (texts[i].size > breakers->longest) breakers->longest = texts[i].size;
    }
    size_t n_bytes = take_touching(breakers, pieces, n_vocab, false);
    if (!allocate(breakers, words_of(n_vocab), n_bytes)) return false;
    take_touching(breakers, pieces, n_vocab, true);
    mark_whole(breakers, pieces, n_vocab);
    return true;
}

void pith_breakers_deinit(pith_breakers *breakers) {
    pith_free(breakers->whole);
    pith_free(breakers->touching);
    pith_free(breakers->first_byte);
    pith_free(breakers->bytes);
    *breakers = (pith_breakers){0};
}

bool pith_breakers_copy(pith_breakers *out, const pith_breakers *from, int32_t n_vocab) {
    size_t n = from->n_touching, n_words = words_of(n_vocab);
    *out = *from;
    out->whole = NULL, out->touching = NULL, out->first_byte = NULL, out->bytes = NULL;
    if (from->n == 0) return true;
    size_t n_bytes = from->first_byte[n];
    if (!allocate(out, n_words, n_bytes)) return false;
    memcpy(out->whole, from->whole, n_words * sizeof *out->whole);
    memcpy(out->touching, from->touching, n * sizeof *out->touching);
    memcpy(out->first_byte, from->first_byte, (n + 1) * sizeof *out->first_byte);
    memcpy(out->bytes, from->bytes, n_bytes);
    return true;
}

/* ---- Asked for each token ---- */

bool pith_breakers_is_whole(const pith_breakers *breakers, int32_t id) {
    return breakers->n > 0 && (breakers->whole[id / 32] >> (id % 32) & 1) != 0;
}

/* The bytes of a token that touches a breaker; none for others. */
static pith_span touching_bytes(const pith_breakers *breakers, int32_t id) {
    size_t low = 0, high = breakers->n_touching;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (breakers->touching[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == breakers->n_touching || breakers->touching[low] != id) return (pith_span){NULL, 0};
    size_t first = breakers->first_byte[low];
    return (pith_span){breakers->bytes + first, breakers->first_byte[low + 1] - first};
}

/* Whether a breaker begins in the tail and ends in the piece. */
static bool ends_across(const pith_breakers *breakers, pith_span piece) {
    char joined[2 * PITH_SAMPLE_MAX_BREAKER];
    size_t n_more = piece.size < breakers->longest ? piece.size : breakers->longest;
    memcpy(joined, breakers->tail, breakers->n_tail);
    memcpy(joined + breakers->n_tail, piece.data, n_more);
    for (size_t i = 0; i < breakers->n; i++) {
        size_t size = breakers->sizes[i];
        for (size_t at = 0; at < breakers->n_tail; at++) {
            if (at + size <= breakers->n_tail || at + size > breakers->n_tail + n_more) continue;
            if (memcmp(joined + at, breakers->texts[i], size) == 0) return true;
        }
    }
    return false;
}

/* The last bytes of tail and piece become the tail. */
static void keep_tail(pith_breakers *breakers, pith_span piece) {
    size_t room = breakers->longest - 1;
    if (piece.size >= room) {
        memcpy(breakers->tail, piece.data + (piece.size - room), room);
        breakers->n_tail = room;
        return;
    }
    size_t kept = room - piece.size < breakers->n_tail ? room - piece.size : breakers->n_tail;
    memmove(breakers->tail, breakers->tail + (breakers->n_tail - kept), kept);
    memcpy(breakers->tail + kept, piece.data, piece.size);
    breakers->n_tail = kept + piece.size;
}

bool pith_breakers_push(pith_breakers *breakers, int32_t id) {
    bool ends = pith_breakers_is_whole(breakers, id);
    if (breakers->longest < 2) return ends;
    pith_span piece = touching_bytes(breakers, id);
    if (piece.size == 0) {
        breakers->n_tail = 0;
        return ends;
    }
    ends = ends_across(breakers, piece) || ends;
    keep_tail(breakers, piece);
    return ends;
}

void pith_breakers_return(pith_breakers *breakers, const pith_history *history) {
    size_t n = 0;
    breakers->n_tail = 0;
    if (breakers->longest < 2) return;
    while (n < breakers->longest && n < history->n_total &&
           touching_bytes(breakers, pith_history_at(history, n)).size > 0)
        n++;
    while (n-- > 0) keep_tail(breakers, touching_bytes(breakers, pith_history_at(history, n)));
}
