/* SPDX-License-Identifier: Apache-2.0
 * Passes over a row of logits, block by block (logit_row.h).
 *
 * Invariant: the order of additions is fixed, by lane and block, and exp is computed here with
 * IEEE additions and multiplications alone: the same row gives the same weights on any platform.
 * A logit of -inf adds nothing to any sum, so a row whose ids are masked gives the same bits as one
 * that holds -inf in their places.
 *
 * Does not: know cuts, penalties or randomness (choice.c, stage.c). */
#include "sample/logit_row.h"

#include "base/memory.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LANES = 16, WIDE_LANES = 8, WORD = 32 };

size_t pith_row_blocks(size_t n) {
    return (n + PITH_ROW_BLOCK - 1) / PITH_ROW_BLOCK;
}

bool pith_row_init(pith_logit_row *row, size_t n) {
    size_t n_block = pith_row_blocks(n);
    *row = (pith_logit_row){.n = n, .n_block = n_block};
    row->block = pith_alloc_array(n_block, sizeof *row->block);
    row->changed = pith_alloc_array(n, sizeof *row->changed);
    row->maxima = pith_alloc_array(n_block, sizeof *row->maxima);
    row->is_stale = pith_alloc_array(n_block, sizeof *row->is_stale);
    return row->block && row->changed && row->maxima && row->is_stale;
}

void pith_row_deinit(pith_logit_row *row) {
    pith_free(row->block);
    pith_free(row->changed);
    pith_free(row->maxima);
    pith_free(row->is_stale);
    *row = (pith_logit_row){0};
}

void pith_row_open(pith_logit_row *row, const float *logits) {
    row->logits = logits;
    for (size_t b = 0; b < row->n_block; b++) {
        row->block[b] = logits + b * PITH_ROW_BLOCK;
        row->is_stale[b] = true;
    }
}

static size_t block_size(const pith_logit_row *row, size_t block) {
    size_t left = row->n - block * PITH_ROW_BLOCK;
    return left < PITH_ROW_BLOCK ? left : PITH_ROW_BLOCK;
}

/* ---- Changes ---- */

float pith_row_get(const pith_logit_row *row, int32_t id) {
    const float *x = row->block[(size_t)id / PITH_ROW_BLOCK];
    if (x == NULL) return -INFINITY;
    float logit = x[(size_t)id % PITH_ROW_BLOCK];
    return logit > FLT_MAX ? FLT_MAX : logit;
}

/* Where the block may be written. */
static float *writable(pith_logit_row *row, size_t b) {
    float *own = row->changed + b * PITH_ROW_BLOCK;
    row->is_stale[b] = true;
    if (row->block[b] == own) return own;
    memcpy(own, row->block[b], block_size(row, b) * sizeof *own);
    row->block[b] = own;
    return own;
}

void pith_row_set(pith_logit_row *row, int32_t id, float logit) {
    writable(row, (size_t)id / PITH_ROW_BLOCK)[(size_t)id % PITH_ROW_BLOCK] = logit;
}

static const uint32_t bit_of[WORD] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

/* x[i] = -inf where the bit is clear; a table of bits, since shifts by lane are no vector code on
 * every machine. */
static void mask_word(float *x, size_t n, uint32_t word) {
    for (size_t i = 0; i < n; i++) x[i] = (word & bit_of[i]) == bit_of[i] ? x[i] : -INFINITY;
}

void pith_row_mask(pith_logit_row *row, const uint32_t *mask) {
    for (size_t b = 0; b < row->n_block; b++) {
        const uint32_t *words = mask + b * (PITH_ROW_BLOCK / WORD);
        size_t size = block_size(row, b);
        uint32_t any = 0, all = UINT32_MAX;
        for (size_t first = 0; first < size; first += WORD) {
            size_t bits = size - first;
            uint32_t valid = bits < WORD ? (1u << bits) - 1u : UINT32_MAX;
            any |= words[first / WORD] & valid;
            all &= words[first / WORD] | ~valid;
        }
        if (any == 0) {
            row->block[b] = NULL;
            row->maxima[b] = -INFINITY;
            row->is_stale[b] = false;
        } else if (all != UINT32_MAX) {
            float *own = writable(row, b);
            for (size_t first = 0; first < size; first += WORD) {
                uint32_t word = words[first / WORD];
                size_t bits = size - first < WORD ? size - first : WORD;
                if (word != UINT32_MAX) mask_word(own + first, bits, word);
            }
        }
    }
}

/* ---- Maxima ---- */

/* a > b ? a : b is false for NaN, and one instruction. */
float pith_block_max(const float *x, size_t n) {
    float m[LANES], most = -INFINITY;
    size_t i = 0;
    for (int l = 0; l < LANES; l++) m[l] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) m[l] = x[i + (size_t)l] > m[l] ? x[i + (size_t)l] : m[l];
    for (; i < n; i++) most = x[i] > most ? x[i] : most;
    for (int l = 0; l < LANES; l++) most = m[l] > most ? m[l] : most;
    return most;
}

void pith_row_scan(pith_logit_row *row) {
    for (size_t b = 0; b < row->n_block; b++) {
        if (!row->is_stale[b]) continue;
        float max = pith_block_max(row->block[b], block_size(row, b));
        row->maxima[b] = max > FLT_MAX ? FLT_MAX : max;
        row->is_stale[b] = false;
    }
}

int32_t pith_row_best(const pith_logit_row *row) {
    size_t best = 0;
    for (size_t b = 1; b < row->n_block; b++)
        if (row->maxima[b] > row->maxima[best]) best = b;
    float max = row->maxima[best];
    for (size_t i = 0; max > -INFINITY; i++)
        if (row->block[best][i] >= max) return (int32_t)(best * PITH_ROW_BLOCK + i);
    return -1;
}

float pith_row_max(const pith_logit_row *row) {
    return pith_block_max(row->maxima, row->n_block);
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

static bool any_reaches(const float *x, float least) {
    int32_t n = 0;
    for (int l = 0; l < LANES; l++) n += x[l] >= least;
    return n > 0;
}

size_t pith_row_gather(const pith_logit_row *row, float limit, pith_candidate *list) {
    size_t n = 0;
    float least = limit > -FLT_MAX ? limit : -FLT_MAX;
    for (size_t b = 0; b < row->n_block; b++) {
        if (!(row->maxima[b] >= least)) continue;
        const float *x = row->block[b];
        size_t first = b * PITH_ROW_BLOCK, size = block_size(row, b);
        for (size_t group = 0; group < size; group += LANES) {
            size_t end = group + LANES < size ? group + LANES : size;
            if (end == group + LANES && !any_reaches(x + group, least)) continue;
            for (size_t i = group; i < end; i++) {
                list[n] = (pith_candidate){x[i] > FLT_MAX ? FLT_MAX : x[i], (int32_t)(first + i)};
                n += x[i] >= least;
            }
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

double pith_row_weigh(const pith_logit_row *row, double beta, float *weights, double *sums) {
    const float half_max = 0.5f * pith_row_max(row);
    const float twice = 2.0 * beta < (double)FLT_MAX ? (float)(2.0 * beta) : FLT_MAX;
    double total = 0;
    for (size_t b = 0; b < row->n_block; b++) {
        const float *x = row->block[b];
        float *w = weights + b * PITH_ROW_BLOCK, lane[LANES] = {0};
        size_t size = block_size(row, b), i = 0;
        sums[b] = 0;
        if (x == NULL) continue;
        for (size_t j = 0; j < size; j++) {
            float distance = 0.5f * x[j] - half_max; /* half: the whole one may overflow */
            w[j] = weight_at(keep_if(!(distance >= 0.0f), distance * twice)); /* NaN goes on */
        }
        for (; i + LANES <= size; i += LANES)
            for (int l = 0; l < LANES; l++) lane[l] += w[i + (size_t)l];
        for (; i < size; i++) sums[b] += (double)w[i];
        for (int l = 0; l < LANES; l++) sums[b] += (double)lane[l];
        total += sums[b];
    }
    return total;
}

double pith_row_weight_above(const pith_logit_row *row, const float *weights, const double *sums,
                             float least) {
    double total = 0;
    for (size_t b = 0; b < row->n_block; b++) {
        if (!(sums[b] >= 0.5 * (double)least)) continue; /* half: sums are rounded */
        const float *w = weights + b * PITH_ROW_BLOCK;
        float used[PITH_ROW_BLOCK], lane[LANES] = {0};
        size_t size = block_size(row, b), i = 0;
        for (size_t j = 0; j < size; j++) used[j] = keep_if(w[j] >= least, w[j]);
        for (; i + LANES <= size; i += LANES)
            for (int l = 0; l < LANES; l++) lane[l] += used[i + (size_t)l];
        for (; i < size; i++) total += (double)used[i];
        for (int l = 0; l < LANES; l++) total += (double)lane[l];
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

/* ---- Moments ---- */

double pith_row_slope(const pith_logit_row *row, double beta, const float *weights,
                      const double *sums) {
    const float half_max = 0.5f * pith_row_max(row);
    double total = 0;
    for (size_t b = 0; b < row->n_block; b++) {
        if (!(sums[b] > 0)) continue;
        const float *x = row->block[b], *w = weights + b * PITH_ROW_BLOCK;
        float products[PITH_ROW_BLOCK], lane[LANES] = {0};
        size_t size = block_size(row, b), i = 0;
        for (size_t j = 0; j < size; j++) {
            float distance = 0.5f * x[j] - half_max;
            products[j] = keep_if(w[j] > 0.0f, w[j] * keep_if(distance < 0.0f, distance));
        }
        for (; i + LANES <= size; i += LANES)
            for (int l = 0; l < LANES; l++) lane[l] += products[i + (size_t)l];
        for (; i < size; i++) total += (double)products[i];
        for (int l = 0; l < LANES; l++) total += (double)lane[l];
    }
    return 2.0 * beta * total;
}

static size_t count_block(const pith_logit_row *row, size_t b) {
    size_t size = block_size(row, b);
    int32_t n = 0;
    for (size_t i = 0; i < size; i++) n += row->block[b][i] >= -FLT_MAX;
    return (size_t)n;
}

size_t pith_row_count(const pith_logit_row *row) {
    size_t n = 0;
    for (size_t b = 0; b < row->n_block; b++)
        if (row->maxima[b] > -INFINITY) n += count_block(row, b);
    return n;
}

/* Distances of a block's numbers from the maximum; returns how many. */
static size_t distances_of(const pith_logit_row *row, size_t b, double max,
                           double out[PITH_ROW_BLOCK]) {
    const float *x = row->block[b];
    size_t size = block_size(row, b), n = 0;
    if (row->maxima[b] < FLT_MAX && count_block(row, b) == size) {
        for (size_t i = 0; i < size; i++) out[i] = (double)x[i] - max;
        return size;
    }
    for (size_t i = 0; i < size; i++)
        if (x[i] >= -FLT_MAX) out[n++] = (double)(x[i] > FLT_MAX ? FLT_MAX : x[i]) - max;
    return n;
}

double pith_row_deviation(const pith_logit_row *row) {
    double max = (double)pith_row_max(row), sum = 0, square = 0, n = 0;
    for (size_t b = 0; b < row->n_block; b++) {
        if (!(row->maxima[b] > -INFINITY)) continue;
        double below[PITH_ROW_BLOCK], sums[WIDE_LANES] = {0}, squares[WIDE_LANES] = {0};
        size_t count = distances_of(row, b, max, below), i = 0;
        n += (double)count;
        for (; i + WIDE_LANES <= count; i += WIDE_LANES)
            for (size_t l = 0; l < WIDE_LANES; l++) {
                sums[l] += below[i + l];
                squares[l] += below[i + l] * below[i + l];
            }
        for (; i < count; i++) {
            sum += below[i];
            square += below[i] * below[i];
        }
        for (int l = 0; l < WIDE_LANES; l++) {
            sum += sums[l];
            square += squares[l];
        }
    }
    double mean = sum / n, variance = square / n - mean * mean;
    return variance > 0 ? sqrt(variance) : 0;
}
