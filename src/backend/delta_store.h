/* SPDX-License-Identifier: Apache-2.0
 * Private to backend: how a delta lies in memory. delta.c fills it, cpu/adapt.c reads it. */
#ifndef PITH_BACKEND_DELTA_STORE_H
#define PITH_BACKEND_DELTA_STORE_H

#include "backend/delta.h"
#include "base/memory.h"

typedef struct pith_delta_pair {
    const pith_weight *weight; /* of the model */
    uint32_t rank;
    float scale;
    /* Panels of 16 rows, F32, F16 or BF16; A of a lookup: rows. Their data lie in the blocks. */
    pith_weight a, b;
} pith_delta_pair;

/* Matrices lie one behind the other in blocks: a page of their own for each would cost more address
 * translations than reading them takes (docs/decisions/0063). */
typedef struct pith_delta_block {
    pith_region region;
    size_t used;
} pith_delta_block;

struct pith_delta {
    pith_delta_pair *pairs;
    size_t n_pair, pair_capacity;
    /* [n_index] by pith_weight.index: pair + 1, 0: none */
    uint32_t *linear, *lookup;
    size_t n_index;
    pith_delta_block *blocks; /* [n_block]; the last one is being filled */
    size_t n_block;
    uint64_t expected; /* bytes that matrices still to come will take, about */
    float **vectors;   /* [n_layer], NULL: none; each padded with zeros to a multiple of 16 */
    size_t n_layer, n_vector;
    uint32_t width; /* of the vectors */
    uint32_t features, rank;
    uint64_t bytes;
};

/* NULL: the delta leaves this weight alone. */
static inline const pith_delta_pair *pith_delta_find(const pith_delta *delta,
                                                     const pith_weight *weight, bool is_lookup) {
    if (weight->index >= delta->n_index) return NULL;
    uint32_t at = (is_lookup ? delta->lookup : delta->linear)[weight->index];
    if (!at || delta->pairs[at - 1].weight != weight) return NULL;
    return &delta->pairs[at - 1];
}

static inline uint32_t pith_delta_round_rank(uint32_t rank) {
    return (rank + PITH_DELTA_RANK_UNIT - 1) / PITH_DELTA_RANK_UNIT * PITH_DELTA_RANK_UNIT;
}

#endif
