/* SPDX-License-Identifier: Apache-2.0
 * Repetition, frequency and presence penalties over the last tokens.
 *
 * Owns a ring of the last `window` accepted ids and, kept true with it, how often each id occurs.
 * Invariant: the sum of count[] is n_used. So accepting a token is constant time, and a token's
 * count needs no search.
 *
 * Formula, for an id that occurs c > 0 times:
 *   l <- l <= 0 ? l * repeat : l / repeat;   l <- l - (c * frequency + presence)
 *
 * Does not: choose tokens (sampler.c). */
#include "sample/sampler_internal.h"

#include "base/memory.h"

#include <float.h>
#include <string.h>

bool pith_penalty_init(pith_penalty *penalty, int32_t n_vocab, int32_t window) {
    penalty->n_vocab = n_vocab;
    penalty->window = 0;
    penalty->ring = pith_alloc_array((size_t)window, sizeof(int32_t));
    penalty->count = pith_alloc_zero((size_t)n_vocab, sizeof(int32_t));
    if (!penalty->ring || !penalty->count) return false;
    penalty->window = window;
    return true;
}

void pith_penalty_deinit(pith_penalty *penalty) {
    pith_free(penalty->ring);
    pith_free(penalty->count);
    *penalty = (pith_penalty){0};
}

void pith_penalty_accept(pith_penalty *penalty, int32_t id) {
    if (penalty->window == 0 || id < 0 || id >= penalty->n_vocab) return;
    if (penalty->n_used == penalty->window) {
        penalty->count[penalty->ring[penalty->head]]--;
    } else {
        penalty->n_used++;
    }
    penalty->ring[penalty->head] = id;
    penalty->head = penalty->head + 1 == penalty->window ? 0 : penalty->head + 1;
    penalty->count[id]++;
}

/* The logit of a token that occurs `count` > 0 times in the window. */
static float penalised(const pith_penalty *penalty, float logit, int32_t count) {
    float finite = logit > FLT_MAX ? FLT_MAX : logit;
    float value = finite <= 0.0f ? finite * penalty->repeat : finite / penalty->repeat;
    return value - ((float)count * penalty->frequency + penalty->presence);
}

void pith_penalty_apply(const pith_penalty *penalty, const float *logits, float *row) {
    memcpy(row, logits, (size_t)penalty->n_vocab * sizeof *row);
    if (penalty->n_used > penalty->n_vocab) { /* the shorter way round */
        for (int32_t id = 0; id < penalty->n_vocab; id++)
            if (penalty->count[id]) row[id] = penalised(penalty, logits[id], penalty->count[id]);
        return;
    }
    for (int32_t i = 0; i < penalty->n_used; i++) {
        int32_t id = penalty->ring[i];
        row[id] = penalised(penalty, logits[id], penalty->count[id]);
    }
}
