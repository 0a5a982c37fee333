/* SPDX-License-Identifier: Apache-2.0
 * A ring of the last tokens, long enough that taking tokens back restores the window of every
 * stage.
 *
 * Invariant: all tokens within window + n_rewind from the end are in the ring, also after
 * PITH_SAMPLE_MAX_UNDO more have come and gone.
 *
 * Does not: count them (penalty.c) or look for repetitions (dry.c). */
#include "sample/history.h"

#include "base/memory.h"

bool pith_history_init(pith_history *history, size_t window) {
    size_t capacity = 1;
    while (capacity <= window + PITH_SAMPLE_KEPT) capacity *= 2;
    *history = (pith_history){.capacity = capacity};
    history->ids = pith_alloc_array(capacity, sizeof *history->ids);
    history->ends = pith_alloc_array(capacity, sizeof *history->ends);
    return history->ids && history->ends;
}

void pith_history_deinit(pith_history *history) {
    pith_free(history->ids);
    pith_free(history->ends);
    *history = (pith_history){0};
}

void pith_history_push(pith_history *history, int32_t id, bool ends) {
    size_t at = (size_t)history->n_total++ & (history->capacity - 1);
    history->ids[at] = id;
    history->ends[at] = ends;
    if (history->n_rewind < PITH_SAMPLE_MAX_REWIND) history->n_rewind++;
}

void pith_history_pop(pith_history *history) {
    history->n_total--;
    history->n_rewind--;
}

static size_t place_of(const pith_history *history, uint64_t back) {
    return (size_t)(history->n_total - 1 - back) & (history->capacity - 1);
}

int32_t pith_history_at(const pith_history *history, uint64_t back) {
    return history->ids[place_of(history, back)];
}

size_t pith_history_since_break(const pith_history *history, size_t limit) {
    size_t n = 0;
    while (n < limit && n < history->n_total && !history->ends[place_of(history, n)]) n++;
    return n;
}
