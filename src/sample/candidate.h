/* SPDX-License-Identifier: Apache-2.0
 * Inside of the sample room: the candidate list, and keeping the best of it (selection.c).
 *
 * Every cut by rank (top-k, top-p, ..) keeps a prefix of one total order: larger logit first, lower
 * id first on ties. So a cut needs a selection, never a sort, and the list stays in id order. */
#ifndef PITH_SAMPLE_CANDIDATE_H
#define PITH_SAMPLE_CANDIDATE_H

#include "sample/sample.h"

typedef struct pith_candidate {
    float logit; /* finite */
    int32_t id;
} pith_candidate;

enum {
    PITH_SELECT_BUCKETS = 2048,
    /* Up to this k, top-k keeps a heap: one pass, but k log k work for each new best. */
    PITH_SELECT_HEAP = 128
};

/* Room for a selection, allocated once. */
typedef struct pith_selector {
    uint32_t count[PITH_SELECT_BUCKETS];
    double weight[PITH_SELECT_BUCKETS];
} pith_selector;

/* Each keeps a prefix of the order in place, in id order, and returns how many are left (at least 1
 * when n >= 1). k 0: all. */
size_t pith_select_top_k(pith_selector *selector, pith_candidate *list, size_t n, size_t k);
/* The shortest prefix whose weights [n] together reach `target`. */
size_t pith_select_weight(pith_selector *selector, pith_candidate *list, const double *weights,
                          size_t n, double target);
float pith_candidate_max(const pith_candidate *list, size_t n); /* n >= 1 */
/* Where the id is in a list in id order; n when it is not there. */
size_t pith_candidate_find(const pith_candidate *list, size_t n, int32_t id);

#endif
