/* SPDX-License-Identifier: Apache-2.0
 * Passes over a whole row of logits. A vocabulary has up to 262144 of them, so a pass that looks at
 * each with care costs more than a layer of a small model; these look at each once, in blocks, with
 * loops that the compiler turns into vector code, and say which blocks deserve a second look.
 *
 *   row     [ 256 | 256 | 256 | .. ]
 *   maxima  [  m  |  m  |  m  | .. ]     at least k logits reach the k-th largest of them
 *
 * NaN counts as -inf and never wins; +inf as the largest float. Read next: logit_row.c. */
#ifndef PITH_SAMPLE_LOGIT_ROW_H
#define PITH_SAMPLE_LOGIT_ROW_H

#include "sample/sampler_internal.h"

enum { PITH_ROW_BLOCK = 256 };

typedef struct pith_logit_row {
    const float *logits; /* [n] */
    size_t n, n_block;   /* n_block = ceil(n / PITH_ROW_BLOCK) */
    float *maxima;       /* [n_block] the largest of each block, at most FLT_MAX; -inf: no number */
} pith_logit_row;

size_t pith_row_blocks(size_t n);
/* Fills maxima. */
void pith_row_scan(const pith_logit_row *row);
/* The first id of the largest logit; 0 when none is above -inf. */
int32_t pith_row_best(const pith_logit_row *row);
/* The largest logit, at most FLT_MAX. */
float pith_row_max(const pith_logit_row *row);
/* A limit that at least k >= 1 logits reach: the k-th largest maximum, -inf where there are fewer
 * than k blocks. scratch: room for n_block. */
float pith_row_limit(const pith_logit_row *row, size_t k, pith_selector *selector,
                     pith_candidate *scratch);
/* Every id whose logit is above -inf and not below `limit`, in id order. Returns how many. */
size_t pith_row_gather(const pith_logit_row *row, float limit, pith_candidate *list);

/* weights[i] = exp((logit - max) / temperature), max being pith_row_max, which is above -inf; to
 * within 1e-5 of its size, 0 below 2^-124. sums: [n_block] the sum of each block. Returns the sum
 * of all. */
double pith_row_weigh(const pith_logit_row *row, float temperature, float *weights, double *sums);
/* The id in whose stretch of the weights the number lies; the last one that weighs something when
 * rounding left it beyond. number: 0 to the sum of all. */
int32_t pith_row_at(const pith_logit_row *row, const float *weights, const double *sums,
                    double number);

#endif
