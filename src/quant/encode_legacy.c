/* SPDX-License-Identifier: Apache-2.0
 * f32 to the 32-element types Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q8_1.
 * Plain: the scale comes from the block's extremes and codes are taken with the scale before it
 * is rounded to f16. With importance weights: scale search (scale_search.c) under weights w *
 * sqrt(mean of x^2 over the row + x^2). The Q8 types ignore weights. Layouts: block.h. Read next:
 * encode_k.c. */
#include "quant/block.h"
#include "quant/codec.h"
#include "quant/scale_search.h"

#include <math.h>

enum { SMALL = PITH_BLOCK_SMALL };

static const pith_affine_grid weighted_grid = {-0.9f, 0.05f, 36, false};

/* Truncated to 0..top; NaN gives 0. */
static uint8_t code_of(float x, int top) {
    if (!(x > 0.0f)) return 0;
    return (uint8_t)(x < (float)top ? (int)x : top);
}

static void pack_nibbles(const uint8_t codes[SMALL], uint8_t qs[16]) {
    for (int j = 0; j < 16; j++) {
        qs[j] = (uint8_t)((codes[j] & 15u) | (codes[j + 16] & 15u) << 4);
    }
}

/* Bit 4 of code i goes to bit i. */
static void pack_fifth_bits(const uint8_t codes[SMALL], uint8_t qh[4]) {
    uint32_t bits = 0;
    for (int j = 0; j < SMALL; j++) bits |= (uint32_t)(codes[j] >> 4) << j;
    pith_store_u32(qh, bits);
}

static float mean_square(const float *x, size_t n) {
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum / (float)n;
}

static void weigh(const float *x, const float *importance, float sigma2, float w[SMALL]) {
    for (int j = 0; j < SMALL; j++) w[j] = importance[j] * sqrtf(sigma2 + x[j] * x[j]);
}

/* Codes around `half` (8 or 16) for x = d * (code - half), plain. */
static float plain_symmetric(const float *x, int half, uint8_t codes[SMALL]) {
    float d = pith_largest_signed(x, SMALL) / -(float)half;
    float inverse = d != 0.0f ? 1.0f / d : 0.0f;
    for (int j = 0; j < SMALL; j++) {
        codes[j] = code_of(x[j] * inverse + ((float)half + 0.5f), 2 * half - 1);
    }
    return d;
}

/* Codes 0..top for x = d * code + m, plain; offset of the result is -m. */
static pith_affine plain_affine(const float *x, int top, uint8_t codes[SMALL]) {
    float low = x[0], high = x[0];
    for (int j = 1; j < SMALL; j++) {
        if (x[j] < low) low = x[j];
        if (x[j] > high) high = x[j];
    }
    float d = (high - low) / (float)top, inverse = d != 0.0f ? 1.0f / d : 0.0f;
    for (int j = 0; j < SMALL; j++) codes[j] = code_of((x[j] - low) * inverse + 0.5f, top);
    return (pith_affine){d, -low};
}

/* Scale and codes of the block at column c of the row; sigma2 is used with weights only. */
static float fit_symmetric_block(const float *x, const float *importance, float sigma2, int half,
                                 uint8_t codes[SMALL]) {
    if (importance == NULL) return plain_symmetric(x, half, codes);
    float w[SMALL];
    weigh(x, importance, sigma2, w);
    return pith_search_symmetric(SMALL, half, x, w, codes);
}

static pith_affine fit_affine_block(const float *x, const float *importance, float sigma2, int top,
                                    uint8_t codes[SMALL]) {
    if (importance == NULL) return plain_affine(x, top, codes);
    float w[SMALL];
    weigh(x, importance, sigma2, w);
    return pith_search_affine(SMALL, top, x, w, &weighted_grid, codes);
}

/* Importance of the columns from c on, or NULL. */
static const float *columns(const float *weights, size_t c) {
    return weights != NULL ? weights + c : NULL;
}

void pith_encode_q4_0(const float *src, void *dst, size_t n, const float *weights) {
    pith_block_q4_0 *b = dst;
    float sigma2 = weights != NULL ? mean_square(src, n) : 0.0f;
    for (size_t c = 0; c + SMALL <= n; c += SMALL, b++) {
        uint8_t codes[SMALL];
        float d = fit_symmetric_block(src + c, columns(weights, c), sigma2, 8, codes);
        pith_store_f16(b->d, d);
        pack_nibbles(codes, b->qs);
    }
}

void pith_encode_q4_1(const float *src, void *dst, size_t n, const float *weights) {
    pith_block_q4_1 *b = dst;
    float sigma2 = weights != NULL ? mean_square(src, n) : 0.0f;
    for (size_t c = 0; c + SMALL <= n; c += SMALL, b++) {
        uint8_t codes[SMALL];
        pith_affine a = fit_affine_block(src + c, columns(weights, c), sigma2, 15, codes);
        pith_store_f16(b->d, a.scale);
        pith_store_f16(b->m, -a.offset);
        pack_nibbles(codes, b->qs);
    }
}

void pith_encode_q5_0(const float *src, void *dst, size_t n, const float *weights) {
    pith_block_q5_0 *b = dst;
    float sigma2 = weights != NULL ? mean_square(src, n) : 0.0f;
    for (size_t c = 0; c + SMALL <= n; c += SMALL, b++) {
        uint8_t codes[SMALL];
        float d = fit_symmetric_block(src + c, columns(weights, c), sigma2, 16, codes);
        pith_store_f16(b->d, d);
        pack_nibbles(codes, b->qs);
        pack_fifth_bits(codes, b->qh);
    }
}

void pith_encode_q5_1(const float *src, void *dst, size_t n, const float *weights) {
    pith_block_q5_1 *b = dst;
    float sigma2 = weights != NULL ? mean_square(src, n) : 0.0f;
    for (size_t c = 0; c + SMALL <= n; c += SMALL, b++) {
        uint8_t codes[SMALL];
        pith_affine a = fit_affine_block(src + c, columns(weights, c), sigma2, 31, codes);
        pith_store_f16(b->d, a.scale);
        pith_store_f16(b->m, -a.offset);
        pack_nibbles(codes, b->qs);
        pack_fifth_bits(codes, b->qh);
    }
}

/* Codes and unrounded scale of a Q8 block; *sum gets the sum of the codes. */
static float fit_q8(const float *x, int8_t qs[SMALL], int *sum) {
    float d = fabsf(pith_largest_signed(x, SMALL)) / 127.0f;
    float inverse = d != 0.0f ? 1.0f / d : 0.0f;
    *sum = 0;
    for (int j = 0; j < SMALL; j++) {
        int code = pith_round_away(x[j] * inverse, -127, 127);
        qs[j] = (int8_t)code;
        *sum += code;
    }
    return d;
}

void pith_encode_q8_0(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    pith_block_q8_0 *b = dst;
    for (size_t c = 0; c + SMALL <= n; c += SMALL, b++) {
        int sum;
        pith_store_f16(b->d, fit_q8(src + c, b->qs, &sum));
    }
}

void pith_encode_q8_1(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    pith_block_q8_1 *b = dst;
    for (size_t c = 0; c + SMALL <= n; c += SMALL, b++) {
        int sum;
        float d = fit_q8(src + c, b->qs, &sum);
        pith_store_f16(b->d, d);
        pith_store_f16(b->s, (float)sum * d);
    }
}
