/* SPDX-License-Identifier: Apache-2.0
 * The searches for a scale that the encoders share. Each takes n <= 32 values, returns the scale
 * and fills codes; arithmetic is f32, sums run in index order, so that the bytes equal those of
 * the ecosystem's quantizers. */
#ifndef PITH_QUANT_SCALE_SEARCH_H
#define PITH_QUANT_SCALE_SEARCH_H

#include "base/float16.h"

#include <stdbool.h>
#include <stddef.h>

/* Groups whose largest magnitude is below this are stored as zero. */
#define PITH_GROUP_EPSILON 1e-15f
enum { PITH_GROUP_MAX = 32 };

/* Parameters of pith_search_affine: which slopes are tried and which error counts. */
typedef struct pith_affine_grid {
    float first, step; /* slope candidates (first + step * t + top) / (max - min), t = 0..count */
    int count;
    bool absolute; /* weigh |error| instead of its square */
} pith_affine_grid;

typedef struct pith_affine {
    float scale, offset; /* offset >= 0 */
} pith_affine;

/* Nearest integer, ties to even, for |x| <= 4194303; any other input gives some integer. */
static inline int pith_round_even(float x) {
    return (int)(pith_bits_of_f32(x + 12582912.0f) & 0x007FFFFFu) - 0x00400000;
}

/* Nearest integer, halves away from zero, for |x| < 2^23, limited to low..high (NaN: low). */
static inline int pith_round_away(float x, int low, int high) {
    if (!(x > (float)low)) return low;
    if (x >= (float)high) return high;
    int whole = (int)x;
    float rest = x - (float)whole;
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

static inline int pith_clamp_int(int x, int low, int high) {
    return x < low ? low : x > high ? high : x;
}

/* Element of largest magnitude, with its sign (the first of equals); 0 for n = 0 or all zero. */
float pith_largest_signed(const float *x, int n);

/* x ~ scale * (code - half), codes 0 .. 2 * half - 1; weights NULL: x^2. "qx" in the facts. */
float pith_search_symmetric(int n, int half, const float *x, const float *weights, uint8_t *codes);
/* The same without weights by coordinate descent, for Q3_K. "q3". */
float pith_search_descent(int n, int half, const float *x, uint8_t *codes);
/* x ~ scale * code - offset, codes 0 .. top. "qk". */
pith_affine pith_search_affine(int n, int top, const float *x, const float *weights,
                               const pith_affine_grid *grid, uint8_t *codes);
/* x ~ scale * code for x >= 0, codes 0 .. top. "qp". */
float pith_search_positive(int n, int top, const float *x, const float *weights, uint8_t *codes);

#endif
