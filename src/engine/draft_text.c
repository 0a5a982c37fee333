/* SPDX-License-Identifier: Apache-2.0
 * Guesses from the text itself: what followed the last time that these tokens stood together.
 *
 *   ids       ... a b c d e ... a b c ?      head["a b c"] -> position of the d, previous -> older
 *
 * Every run of three tokens is known by a hash; candidates are compared token by token, so a
 * collision costs time, never a wrong match. Of the latest eight the longest match wins, the
 * latest of equal ones (Saxena, "Prompt lookup decoding", 2023; suffix matching as in Oliaro et
 * al., "SuffixDecoding", 2024). */
#include "base/memory.h"
#include "engine/draft.h"

enum { MOST_CANDIDATES = 8, MOST_COMPARED = 64 };

static uint32_t hash_run(const pith_draft_text *text, const int32_t *ids) {
    uint64_t hash = 0;
    for (int i = 0; i < PITH_DRAFT_LEAST; i++) {
        hash = (hash ^ (uint32_t)ids[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash >> 32) & (text->n_head - 1);
}

bool pith_draft_text_init(pith_draft_text *text, size_t n_ctx) {
    uint32_t n_head = 256;
    while (n_head < n_ctx && n_head < 1u << 20) n_head *= 2;
    *text = (pith_draft_text){.head = pith_alloc_array(n_head, sizeof *text->head),
                              .previous = pith_alloc_array(n_ctx + 1, sizeof *text->previous),
                              .n_head = n_head};
    if (!text->head || !text->previous) {
        pith_draft_text_deinit(text);
        return false;
    }
    pith_draft_text_clear(text);
    return true;
}

void pith_draft_text_clear(pith_draft_text *text) {
    for (uint32_t i = 0; i < text->n_head; i++) text->head[i] = -1;
    text->n_known = 0;
}

void pith_draft_text_deinit(pith_draft_text *text) {
    pith_free(text->head);
    pith_free(text->previous);
    *text = (pith_draft_text){0};
}

void pith_draft_text_learn(pith_draft_text *text, const int32_t *ids, size_t n_ids) {
    for (size_t at = text->n_known + 1; at <= n_ids; at++) {
        if (at < PITH_DRAFT_LEAST) continue;
        uint32_t slot = hash_run(text, ids + at - PITH_DRAFT_LEAST);
        text->previous[at] = text->head[slot];
        text->head[slot] = (int32_t)at;
    }
    if (n_ids > text->n_known) text->n_known = n_ids;
}

/* Equal tokens before position a and before the end, at most MOST_COMPARED. */
static uint32_t match(const int32_t *ids, size_t a, size_t end) {
    uint32_t n = 0;
    while (n < a && n < MOST_COMPARED && ids[a - 1 - n] == ids[end - 1 - n]) n++;
    return n;
}

uint32_t pith_draft_text_guess(const pith_draft_text *text, const int32_t *ids, size_t n_ids,
                               uint32_t most, int32_t *guesses, uint32_t *n_matched) {
    uint32_t best = PITH_DRAFT_LEAST - 1, n = 0;
    size_t from = 0;
    *n_matched = 0;
    if (n_ids < PITH_DRAFT_LEAST) return 0;
    int32_t at = text->head[hash_run(text, ids + n_ids - PITH_DRAFT_LEAST)];
    for (int i = 0; i < MOST_CANDIDATES && at >= 0; i++, at = text->previous[at]) {
        if ((size_t)at >= n_ids) continue; /* the end itself */
        uint32_t length = match(ids, (size_t)at, n_ids);
        if (length <= best) continue;
        best = length;
        from = (size_t)at;
    }
    if (from == 0) return 0;
    /* A text that repeats itself runs on into its own guesses. */
    for (; n < most; n++) guesses[n] = from + n < n_ids ? ids[from + n] : guesses[from + n - n_ids];
    *n_matched = best;
    return n;
}
