/* SPDX-License-Identifier: Apache-2.0
 * Passes over a row of logits, block by block (logit_row.h).
 *
 * Invariant: the order of additions is fixed, by lane and block, and exp is computed here with
 * IEEE additions and multiplications alone: the same row gives the same weights on any platform.
 *
 * Does not: know cuts, penalties or randomness (sampler.c, selection.c). */
#include "sample/logit_row.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LANES = 16 };

size_t pith_row_blocks(size_t n) {
    return (n + PITH_ROW_BLOCK - 1) / PITH_ROW_BLOCK;
}

/* ---- Maxima ---- */

/* a > b ? a : b is false for NaN, and one instruction. */
static float block_max(const float *x, size_t n) {
    float m[LANES], most = -INFINITY;
    size_t i = 0;
    for (int l = 0; l < LANES; l++) m[l] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) m[l] = x[i + (size_t)l] > m[l] ? x[i + (size_t)l] : m[l];
    for (; i < n; i++) most = x[i] > most ? x[i] : most;
    for (int l = 0; l < LANES; l++) most = m[l] > most ? m[l] : most;
    return most;
}

static size_t block_size(const pith_logit_row *row, size_t block) {
    size_t left = row->n - block * PITH_ROW_BLOCK;
    return left < PITH_ROW_BLOCK ? left : PITH_ROW_BLOCK;
}

void pith_row_scan(const pith_logit_row *row) {
    for (size_t b = 0; b < row->n_block; b++) {
        float max = block_max(row->logits + b * PITH_ROW_BLOCK, block_size(row, b));
        row->maxima[b] = max > FLT_MAX ? FLT_MAX : max;
    }
}

int32_t pith_row_best(const pith_logit_row *row) {
    size_t best = 0;
    for (size_t b = 1; b < row->n_block; b++)
        if (row->maxima[b] > row->maxima[best]) best = b;
    float max = row->maxima[best];
    for (size_t i = best * PITH_ROW_BLOCK; max > -INFINITY; i++)
        if (row->logits[i] >= max) return (int32_t)i;
    return 0;
}

float pith_row_max(const pith_logit_row *row) {
    return block_max(row->maxima, row->n_block);
}

float pith_row_limit(const pith_logit_row *row, size_t k, pith_selector *selector,
                     pith_candidate *scratch) {
    if (k > row->n_block) return -INFINITY;
    for (size_t b = 0; b < row->n_block; b++)
        scratch[b] = (pith_candidate){row->maxima[b], (int32_t)b};
    size_t kept = pith_select_top_k(selector, scratch, row->n_block, k);
    float limit = scratch[0].logit;
    for (size_t i = 1; i < kept; i++)
        if (scratch[i].logit < limit) limit = scratch[i].logit;
    return limit;
}

size_t pith_row_gather(const pith_logit_row *row, float limit, pith_candidate *list) {
    size_t n = 0;
    float least = limit > -FLT_MAX ? limit : -FLT_MAX;
    for (size_t b = 0; b < row->n_block; b++) {
        if (!(row->maxima[b] >= least)) continue;
        size_t first = b * PITH_ROW_BLOCK, size = block_size(row, b);
        for (size_t i = first; i < first + size; i++) {
            float logit = row->logits[i];
            list[n] = (pith_candidate){logit > FLT_MAX ? FLT_MAX : logit, (int32_t)i};
            n += logit >= least;
        }
    }
    return n;
}

/* ---- Weights ---- */

#define LOG2_E         1.44269504088896341f
#define ROUND_MAGIC    12582912.0f /* 1.5 * 2^23: a sum with it is rounded to a whole number */
#define LEAST_EXPONENT (-124.0f)

/* x or +0 without a branch, which would keep the compiler from making vectors. */
static float keep_if(bool condition, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0u - (uint32_t)condition;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* e^x for x <= 0, 0 below 2^-124 and for NaN: 2^n * 2^f with f in [-1/2, 1/2], by the Taylor
 * series of 2^f. */
static float weight_at(float x) {
    float power = x * LOG2_E;
    float t = power + ROUND_MAGIC, f = power - (t - ROUND_MAGIC);
    float y = 1.54035304e-4f; /* ln(2)^6 / 6! */
    uint32_t bits, shift;
    y = y * f + 1.33335581e-3f;
    y = y * f + 9.61812911e-3f;
    y = y * f + 5.55041087e-2f;
    y = y * f + 2.40226507e-1f;
    y = y * f + 6.93147181e-1f;
    y = y * f + 1.0f;
    memcpy(&shift, &t, sizeof shift);
    memcpy(&bits, &y, sizeof bits);
    bits += shift << 23;
    memcpy(&y, &bits, sizeof y);
    return keep_if(power >= LEAST_EXPONENT, y);
}

double pith_row_weigh(const pith_logit_row *row, float temperature, float *weights, double *sums) {
    const float half_max = 0.5f * pith_row_max(row), inverse = 2.0f / temperature;
    double total = 0;
    for (size_t b = 0; b < row->n_block; b++) {
        const float *x = row->logits + b * PITH_ROW_BLOCK;
        float *w = weights + b * PITH_ROW_BLOCK, lane[LANES] = {0};
        size_t size = block_size(row, b), i = 0;
        for (size_t j = 0; j < size; j++) {
            float distance = 0.5f * x[j] - half_max; /* half: the whole one may overflow */
            w[j] = weight_at(keep_if(!(distance >= 0.0f), distance * inverse)); /* NaN goes on */
        }
        for (; i + LANES <= size; i += LANES)
            for (int l = 0; l < LANES; l++) lane[l] += w[i + (size_t)l];
        sums[b] = 0;
        for (; i < size; i++) sums[b] += (double)w[i];
        for (int l = 0; l < LANES; l++) sums[b] += (double)lane[l];
        total += sums[b];
    }
    return total;
}

int32_t pith_row_at(const pith_logit_row *row, const float *weights, const double *sums,
                    double number) {
    size_t block = 0, last = 0;
    for (size_t b = 0; b < row->n_block; b++)
        if (sums[b] > 0) last = b;
    while (block < last && number >= sums[block]) number -= sums[block++];
    size_t first = block * PITH_ROW_BLOCK, end = first + block_size(row, block), id = first;
    for (size_t i = first; i < end; i++) {
        if (!(weights[i] > 0.0f)) continue;
        id = i;
        number -= (double)weights[i];
        if (number < 0) break;
    }
    return (int32_t)id;
}
