/* SPDX-License-Identifier: Apache-2.0
 * Log-probabilities of tokens: log-softmax of the raw logits, temperature 1, before any stage of a
 * sampler.
 *
 * Two passes over the row, no memory but the stack: maxima by blocks with the likeliest ids on the
 * way, then the sum of exp(logit - max) in double. exp is computed here, so that the compiler makes
 * vector code of it: x = n ln 2 + r, e^r by its Taylor series to r^9 (an error below 1e-11 for
 * |r| <= ln(2) / 2).
 *
 * Does not: know samplers. */
#include "sample/logit_row.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { SUM_LANES = 8 };

#define LOG2_E_WIDE 1.4426950408889634
#define LN2_HIGH    0.69314718055966296 /* 41 bits: n * LN2_HIGH is exact for |n| < 2^11 */
#define LN2_LOW     2.8235290563031577e-13
#define MAGIC_WIDE  6755399441055744.0 /* 1.5 * 2^52: a sum with it is rounded to a whole number */
#define LEAST_X     (-700.0)           /* stands for less, too: it adds nothing to a sum >= 1 */

/* e^x for LEAST_X <= x <= 0. */
static double exp_of(double x) {
    double t = x * LOG2_E_WIDE + MAGIC_WIDE, n = t - MAGIC_WIDE;
    double r = (x - n * LN2_HIGH) - n * LN2_LOW;
    double y = 1.0 / 362880;
    uint64_t bits, shift;
    y = y * r + 1.0 / 40320;
    y = y * r + 1.0 / 5040;
    y = y * r + 1.0 / 720;
    y = y * r + 1.0 / 120;
    y = y * r + 1.0 / 24;
    y = y * r + 1.0 / 6;
    y = y * r + 0.5;
    y = y * r + 1.0;
    y = y * r + 1.0;
    memcpy(&shift, &t, sizeof shift);
    memcpy(&bits, &y, sizeof bits);
    bits += shift << 52;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* Sum of exp(logit - max) over n <= PITH_ROW_BLOCK logits; +inf counts as the largest float. */
static double sum_of(const float *x, size_t n, double max) {
    double weights[PITH_ROW_BLOCK], lane[SUM_LANES] = {0}, sum = 0;
    size_t i = 0;
    for (size_t j = 0; j < n; j++) {
        double distance = (double)x[j] - max;
        distance = distance > LEAST_X ? distance : LEAST_X; /* NaN too */
        weights[j] = distance < 0 ? distance : 0;
    }
    for (size_t j = 0; j < n; j++) weights[j] = exp_of(weights[j]); /* apart: vector code */
    for (; i + SUM_LANES <= n; i += SUM_LANES)
        for (size_t l = 0; l < SUM_LANES; l++) lane[l] += weights[i + l];
    for (; i < n; i++) sum += weights[i];
    for (int l = 0; l < SUM_LANES; l++) sum += lane[l];
    return sum;
}

/* Puts what belongs among the n_top best of a block into best, descending; returns how many there
 * are. */
static size_t take_best(pith_candidate *best, size_t kept, size_t n_top, const float *x, size_t n,
                        size_t first) {
    for (size_t i = 0; i < n; i++) {
        float logit = x[i] > FLT_MAX ? FLT_MAX : x[i];
        if (!(logit > -INFINITY) || (kept == n_top && !(logit > best[kept - 1].logit))) continue;
        size_t at = kept < n_top ? kept++ : kept - 1;
        for (; at > 0 && best[at - 1].logit < logit; at--) best[at] = best[at - 1];
        best[at] = (pith_candidate){logit, (int32_t)(first + i)};
    }
    return kept;
}

size_t pith_sample_logprobs(const float *logits, size_t n, int32_t id, double *logprob,
                            pith_logprob *top, size_t n_top) {
    pith_candidate best[PITH_LOGPROBS_MAX];
    size_t kept = 0;
    float max = -INFINITY;
    double sum = 0;
    if (n_top > PITH_LOGPROBS_MAX) n_top = PITH_LOGPROBS_MAX;
    for (size_t first = 0; first < n; first += PITH_ROW_BLOCK) {
        size_t size = n - first < PITH_ROW_BLOCK ? n - first : PITH_ROW_BLOCK;
        float block = pith_block_max(logits + first, size);
        if (block > max) max = block;
        bool may_hold = kept < n_top || (n_top > 0 && block > best[kept - 1].logit);
        if (may_hold) kept = take_best(best, kept, n_top, logits + first, size, first);
    }
    *logprob = (double)-INFINITY;
    if (!(max > -INFINITY)) return 0;
    if (max > FLT_MAX) max = FLT_MAX;
    for (size_t first = 0; first < n; first += PITH_ROW_BLOCK) {
        size_t size = n - first < PITH_ROW_BLOCK ? n - first : PITH_ROW_BLOCK;
        sum += sum_of(logits + first, size, (double)max);
    }
    const double log_sum = log(sum);
    if (id >= 0 && (size_t)id < n && logits[id] > -INFINITY) {
        float own = logits[id] > FLT_MAX ? FLT_MAX : logits[id];
        *logprob = ((double)own - (double)max) - log_sum;
    }
    for (size_t i = 0; i < kept; i++)
        top[i] = (pith_logprob){best[i].id, ((double)best[i].logit - (double)max) - log_sum};
    return kept;
}
