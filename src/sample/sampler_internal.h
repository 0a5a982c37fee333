/* SPDX-License-Identifier: Apache-2.0
 * Inside of the sample room: the candidate list and the two things that work on it.
 *
 *   logits --penalties--> row --first cut--> candidates (id order) --other cuts--> candidates
 *   --temperature, draw--> id                    (no cut at all: drawn from the row)
 *
 * Every cut (top-k, top-p, min-p) keeps a prefix of one total order: larger logit first, lower id
 * first on ties. So a cut needs a selection, never a sort, and the list stays in id order. The
 * first cut, on the whole vocabulary, finds a limit that its prefix does not go below
 * (logit_row.h); only what reaches that becomes a candidate. */
#ifndef PITH_SAMPLE_SAMPLER_INTERNAL_H
#define PITH_SAMPLE_SAMPLER_INTERNAL_H

#include "sample/sample.h"

typedef struct pith_candidate {
    float logit; /* finite */
    int32_t id;
} pith_candidate;

/* The last tokens, with counts, for the penalties. */
typedef struct pith_penalty {
    float repeat, frequency, presence; /* repeat 1: off; the others 0: off */
    int32_t n_vocab;
    int32_t window; /* tokens remembered; 0: the stage is off */
    int32_t n_used; /* tokens in the ring, up to window */
    int32_t head;   /* where the next token goes */
    int32_t *ring;  /* [window] */
    int32_t *count; /* [n_vocab] occurrences in the ring */
} pith_penalty;

/* false without memory; pith_penalty_deinit is allowed then. The three factors are set by the
 * caller before. */
bool pith_penalty_init(pith_penalty *penalty, int32_t n_vocab, int32_t window);
void pith_penalty_deinit(pith_penalty *penalty);
void pith_penalty_accept(pith_penalty *penalty,
                         int32_t id); /* ids outside the vocabulary are ignored */
/* row = logits [n_vocab] with the penalties. */
void pith_penalty_apply(const pith_penalty *penalty, const float *logits, float *row);

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

/* weights: room for n. Each keeps a prefix of the order in place, in id order, and returns how many
 * are left (at least 1 when n >= 1). */
size_t pith_select_top_k(pith_selector *selector, pith_candidate *list, size_t n, size_t k);
size_t pith_select_top_p(pith_selector *selector, pith_candidate *list, double *weights, size_t n,
                         double p);
/* The shortest prefix whose weights [n] together reach `target`. */
size_t pith_select_weight(pith_selector *selector, pith_candidate *list, const double *weights,
                          size_t n, double target);
size_t pith_select_min_p(pith_candidate *list, size_t n, double p);
float pith_candidate_max(const pith_candidate *list, size_t n); /* n >= 1 */

#endif
