/* SPDX-License-Identifier: Apache-2.0
 * Repetition, frequency and presence penalties over the last tokens.
 *
 * Owns how often each id occurs in the window, and a list of the ids that do, so that accepting or
 * taking back a token is constant time and applying the penalties looks at no other ids.
 * Invariant: distinct[0 .. n_distinct-1] are the ids with count > 0, each at its place.
 *
 * Formula, for an id that occurs c > 0 times:
 *   l <- l <= 0 ? l * repeat : l / repeat;   l <- l - (c * frequency + presence)
 *
 * Does not: hold the tokens (history.c) or change logits (stage.c). */
#include "sample/history.h"

#include "base/memory.h"

bool pith_penalty_init(pith_penalty *penalty, int32_t n_vocab, int32_t window) {
    int32_t most = window < n_vocab ? window : n_vocab;
    penalty->window = window;
    penalty->n_distinct = 0;
    penalty->distinct = pith_alloc_array((size_t)most, sizeof *penalty->distinct);
    penalty->place = pith_alloc_array((size_t)n_vocab, sizeof *penalty->place);
    penalty->count = pith_alloc_zero((size_t)n_vocab, sizeof *penalty->count);
    return penalty->distinct && penalty->place && penalty->count;
}

void pith_penalty_deinit(pith_penalty *penalty) {
    pith_free(penalty->distinct);
    pith_free(penalty->place);
    pith_free(penalty->count);
    *penalty = (pith_penalty){0};
}

static void add(pith_penalty *penalty, int32_t id) {
    if (penalty->count[id]++ > 0) return;
    penalty->place[id] = (int32_t)penalty->n_distinct;
    penalty->distinct[penalty->n_distinct++] = id;
}

static void remove_one(pith_penalty *penalty, int32_t id) {
    if (--penalty->count[id] > 0) return;
    int32_t last = penalty->distinct[--penalty->n_distinct];
    penalty->distinct[penalty->place[id]] = last;
    penalty->place[last] = penalty->place[id];
}

void pith_penalty_accept(pith_penalty *penalty, const pith_history *history) {
    uint64_t window = (uint64_t)penalty->window;
    if (window == 0) return;
    if (history->n_total > window) remove_one(penalty, pith_history_at(history, window));
    add(penalty, pith_history_at(history, 0));
}

void pith_penalty_take_back(pith_penalty *penalty, const pith_history *history) {
    uint64_t window = (uint64_t)penalty->window;
    if (window == 0) return;
    remove_one(penalty, pith_history_at(history, 0));
    if (history->n_total > window) add(penalty, pith_history_at(history, window));
}

double pith_penalty_apply(const pith_penalty *penalty, double logit, int32_t count) {
    double repeat = (double)penalty->repeat;
    double value = logit <= 0 ? logit * repeat : logit / repeat;
    return value - ((double)count * (double)penalty->frequency + (double)penalty->presence);
}
