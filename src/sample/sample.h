/* SPDX-License-Identifier: Apache-2.0
 * Logits -> next token. Order: penalties, top-k, top-p, min-p, temperature, draw. One
 * sampler serves one sequence and allocates nothing after new. Temperature 0 draws the largest
 * logit, of equal ones that with the lowest id. Read next: sampler.c (the chain), penalty.c,
 * logit_row.c (passes over the vocabulary), selection.c (cuts without a sort). */
#ifndef PITH_SAMPLE_SAMPLE_H
#define PITH_SAMPLE_SAMPLE_H

#include "base/rng.h"
#include "base/status.h"

/* pith_sampler and its options are the public types of pith.h. */

enum { PITH_SAMPLE_MAX_WINDOW = 1 << 24 }; /* published limit of penalty_window, tokens */

/* Checks the options (ranges, NaN) and allocates everything that sampling from n_vocab logits
 * needs. */
pith_status pith_sample_new(int32_t n_vocab, const pith_sampler_options *options,
                            pith_sampler **out, pith_error *error);
void pith_sample_free(pith_sampler *sampler);
/* Size of the logits it was made for. */
int32_t pith_sample_n_vocab(const pith_sampler *sampler);
/* Draws from logits [n_vocab] and remembers the token. Cannot fail, allocates nothing. Id 0 when no
 * logit is finite. */
int32_t pith_sample_next(pith_sampler *sampler, const float *logits);
/* What may come next, asked while drawing: one id, or all of them as bits (id % 32 of word id / 32,
 * [ceil(n_vocab / 32)], valid until the next token is accepted). */
typedef struct pith_token_filter {
    void *user;
    bool (*allows)(void *user, int32_t id);
    const uint32_t *(*mask)(void *user);
} pith_token_filter;
/* As pith_sample_next from the ids that the filter allows, as if the others had no finite logit; -1
 * when none is left. A greedy draw asks for single ids first. */
int32_t pith_sample_next_of(pith_sampler *sampler, const float *logits,
                            const pith_token_filter *filter);
/* Remembers tokens for the penalties; ids outside the vocabulary are ignored. */
void pith_sample_accept(pith_sampler *sampler, const int32_t *ids, size_t n_ids);

#endif
