/* SPDX-License-Identifier: Apache-2.0
 * Passes over a whole row of logits. A vocabulary has up to 262144 of them, so a pass that looks at
 * each with care costs more than a layer of a small model; these look at each once, in blocks, with
 * loops that the compiler turns into vector code, and say which blocks deserve a second look.
 *
 *   logits  [ 256 | 256 | 256 | 256 | .. ]     as the model made them, never written
 *   block   [  o  |  o  |  c  |  -  | .. ]     where a block is read: there, changed, or nowhere
 *   maxima  [  m  |  m  |  m  |-inf | .. ]     at least k logits reach the k-th largest of them
 *
 * A changed logit costs a copy of its block, a forbidden block costs nothing at all. NaN counts as
 * -inf and never wins; +inf as the largest float. Read next: logit_row.c. */
#ifndef PITH_SAMPLE_LOGIT_ROW_H
#define PITH_SAMPLE_LOGIT_ROW_H

#include "sample/candidate.h"

enum { PITH_ROW_BLOCK = 256 };

typedef struct pith_logit_row {
    const float *logits; /* [n] */
    size_t n, n_block;   /* n_block = ceil(n / PITH_ROW_BLOCK) */
    const float **block; /* [n_block] in logits or in changed; NULL: no id of it is left */
    float *changed;      /* [n] room for changed blocks, each at its own place */
    float *maxima;       /* [n_block] the largest of each block, at most FLT_MAX; -inf: no number */
    bool *is_stale;      /* [n_block] the maximum is to be looked up */
} pith_logit_row;

size_t pith_row_blocks(size_t n);
/* false without memory; pith_row_deinit is allowed then. */
bool pith_row_init(pith_logit_row *row, size_t n);
void pith_row_deinit(pith_logit_row *row);
/* A new row of logits, nothing changed. */
void pith_row_open(pith_logit_row *row, const float *logits);

/* The logit as it is now, at most FLT_MAX. */
float pith_row_get(const pith_logit_row *row, int32_t id);
/* Changes one logit of an id whose logit is above -inf. */
void pith_row_set(pith_logit_row *row, int32_t id, float logit);
/* Leaves the ids whose bit is set: id % 32 of word id / 32. */
void pith_row_mask(pith_logit_row *row, const uint32_t *mask);
/* Makes the maxima true. Everything below wants that. */
void pith_row_scan(pith_logit_row *row);

/* The first id of the largest logit; -1 when none is above -inf. */
int32_t pith_row_best(const pith_logit_row *row);
/* The largest logit, at most FLT_MAX. */
float pith_row_max(const pith_logit_row *row);
/* A limit that at least k >= 1 logits reach: the k-th largest maximum, -inf where there are fewer
 * than k blocks. scratch: room for n_block. */
float pith_row_limit(const pith_logit_row *row, size_t k, pith_selector *selector,
                     pith_candidate *scratch);
/* Every id whose logit is above -inf and not below `limit`, in id order. Returns how many. */
size_t pith_row_gather(const pith_logit_row *row, float limit, pith_candidate *list);

/* weights[i] = exp(beta * (logit - max)), max being pith_row_max, which is above -inf; to within
 * 1e-5 of its size, 0 below 2^-124. sums: [n_block] the sum of each block; the weights of a block
 * that has the sum 0 are not written. Returns the sum of all. */
double pith_row_weigh(const pith_logit_row *row, double beta, float *weights, double *sums);
/* The sum, to within 1e-5 of its size, of the weights >= least > 0. */
double pith_row_weight_above(const pith_logit_row *row, const float *weights, const double *sums,
                             float least);
/* The id in whose stretch of the weights the number lies; the last one that weighs something when
 * rounding left it beyond. number: 0 to the sum of all. */
int32_t pith_row_at(const pith_logit_row *row, const float *weights, const double *sums,
                    double number);
/* Sum of weight * beta * (logit - max) over the row that was weighed, for its entropy. */
double pith_row_slope(const pith_logit_row *row, double beta, const float *weights,
                      const double *sums);

/* How many logits are numbers above -inf, and their standard deviation. */
size_t pith_row_count(const pith_logit_row *row);
double pith_row_deviation(const pith_logit_row *row);

/* The largest of x[0 .. n-1], -inf when there is no number. */
float pith_block_max(const float *x, size_t n);

#endif
