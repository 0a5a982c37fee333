/* SPDX-License-Identifier: Apache-2.0
 * f32 to TQ1_0 TQ2_0 MXFP4 NVFP4 Q1_0 Q2_0 (layouts: docs/formats.md). The scale comes from
 * the largest magnitude (Q1_0: the mean magnitude), each code is the nearest one; importance
 * weights are ignored. Layouts: block.h and docs/formats.md. The inverse: decode_ternary_fp4.c. */
#include "quant/block.h"
#include "quant/codec.h"
#include "quant/grid.h"
#include "quant/scale_search.h"

#include <math.h>

enum { SUPER = PITH_BLOCK_SUPER };

static float inverse_of(float d) {
    return d != 0.0f ? 1.0f / d : 0.0f;
}

/* Five base-3 digits (first = most significant) as a fraction of 243, rounded up to 256ths, so that
 * the decoder's carries give the digits back. */
static uint8_t pack_trits(const uint8_t *digits, int stride, int count) {
    unsigned value = 0;
    for (int n = 0; n < 5; n++) value = value * 3 + (n < count ? digits[n * stride] : 0u);
    return (uint8_t)((value * 256 + 242) / 243);
}

void pith_encode_tq1_0(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    pith_block_tq1_0 *b = dst;
    for (size_t c = 0; c + SUPER <= n; c += SUPER, b++) {
        float d = fabsf(pith_largest_signed(src + c, SUPER)), inverse = inverse_of(d);
        uint8_t digits[SUPER];
        for (int i = 0; i < SUPER; i++) {
            digits[i] = (uint8_t)(pith_round_away(src[c + (size_t)i] * inverse, -1, 1) + 1);
        }
        pith_store_f16(b->d, d);
        for (int j = 0; j < 32; j++) b->qs[j] = pack_trits(digits + j, 32, 5);
        for (int j = 0; j < 16; j++) b->qs[32 + j] = pack_trits(digits + 160 + j, 16, 5);
        for (int j = 0; j < 4; j++) b->qh[j] = pack_trits(digits + 240 + j, 4, 4);
    }
}

void pith_encode_tq2_0(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    pith_block_tq2_0 *b = dst;
    for (size_t c = 0; c + SUPER <= n; c += SUPER, b++) {
        float d = fabsf(pith_largest_signed(src + c, SUPER)), inverse = inverse_of(d);
        pith_store_f16(b->d, d);
        memset(b->qs, 0, sizeof b->qs);
        for (int i = 0; i < SUPER; i++) {
            int code = pith_round_away(src[c + (size_t)i] * inverse, -1, 1) + 1;
            uint8_t *q = &b->qs[32 * (i / 128) + i % 32];
            *q = (uint8_t)(*q | code << 2 * (i % 128 / 32));
        }
    }
}

/* The code whose value times d is nearest to x; the first of equals, so never minus zero (8). */
static unsigned nearest_fp4(float x, float d) {
    unsigned best = 0;
    float best_error = fabsf(d * (float)pith_book_fp4[0] - x);
    for (unsigned q = 1; q < 16; q++) {
        float error = fabsf(d * (float)pith_book_fp4[q] - x);
        if (error < best_error) {
            best_error = error;
            best = q;
        }
    }
    return best;
}

/* count bytes: element j in the low nibble of byte j, element j + count in the high one. */
static void pack_fp4(const float *x, float d, int count, uint8_t *qs) {
    for (int j = 0; j < count; j++) {
        qs[j] = (uint8_t)(nearest_fp4(x[j], d) | nearest_fp4(x[j + count], d) << 4);
    }
}

/* floor(log2(magnitude)) - 2 + 127, at least 0; 0 for zero. */
static uint8_t mxfp4_scale(float magnitude) {
    int exponent;
    if (!(magnitude > 0.0f)) return 0;
    if (isinf(magnitude)) return 254;
    frexpf(magnitude, &exponent); /* magnitude = [0.5, 1) * 2^exponent */
    return (uint8_t)pith_clamp_int(exponent - 1 - 2 + 127, 0, 254);
}

void pith_encode_mxfp4(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    pith_block_mxfp4 *b = dst;
    for (size_t c = 0; c + PITH_BLOCK_SMALL <= n; c += PITH_BLOCK_SMALL, b++) {
        b->e = mxfp4_scale(fabsf(pith_largest_signed(src + c, PITH_BLOCK_SMALL)));
        pack_fp4(src + c, pith_f32_of_e8m0_half(b->e), 16, b->qs);
    }
}

/* Nearest unsigned E4M3 of x >= 0, ties to even; 448 (0x7E) at most. */
static uint8_t ue4m3_of_f32(float x) {
    if (!(x > 0.0f)) return 0;
    if (x >= 448.0f) return 0x7E;
    if (x < 0x1p-6f)
        return (uint8_t)pith_round_even(x * 512.0f); /* 8 rounds up to the first normal */
    uint32_t bits = pith_bits_of_f32(x), odd = bits >> 20 & 1u;
    bits = (bits + 0x7FFFFu + odd) >> 20; /* exponent with bias 127, 3 bits of mantissa */
    uint32_t byte = bits - (120u << 3);
    return (uint8_t)(byte < 0x7Eu ? byte : 0x7Eu);
}

void pith_encode_nvfp4(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    pith_block_nvfp4 *b = dst;
    for (size_t c = 0; c + PITH_BLOCK_NVFP4 <= n; c += PITH_BLOCK_NVFP4, b++) {
        for (int s = 0; s < 4; s++) {
            const float *x = src + c + 16 * s;
            b->d[s] = ue4m3_of_f32(fabsf(pith_largest_signed(x, 16)) / 6.0f);
            pack_fp4(x, pith_f32_of_ue4m3_half(b->d[s]), 8, b->qs + 8 * s);
        }
    }
}

void pith_encode_q1_0(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    pith_block_q1_0 *b = dst;
    for (size_t c = 0; c + PITH_BLOCK_Q1_0 <= n; c += PITH_BLOCK_Q1_0, b++) {
        float sum = 0.0f;
        memset(b->qs, 0, sizeof b->qs);
        for (int i = 0; i < PITH_BLOCK_Q1_0; i++) {
            float x = src[c + (size_t)i];
            sum += fabsf(x);
            b->qs[i / 8] = (uint8_t)(b->qs[i / 8] | (x >= 0.0f) << i % 8);
        }
        pith_store_f16(b->d, sum / (float)PITH_BLOCK_Q1_0);
    }
}

void pith_encode_q2_0(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    pith_block_q2_0 *b = dst;
    for (size_t c = 0; c + PITH_BLOCK_Q2_0 <= n; c += PITH_BLOCK_Q2_0, b++) {
        float d = fabsf(pith_largest_signed(src + c, PITH_BLOCK_Q2_0)), inverse = inverse_of(d);
        pith_store_f16(b->d, d);
        memset(b->qs, 0, sizeof b->qs);
        for (int i = 0; i < PITH_BLOCK_Q2_0; i++) {
            int code = pith_round_away(src[c + (size_t)i] * inverse, -1, 2) + 1;
            b->qs[i / 4] = (uint8_t)(b->qs[i / 4] | code << 2 * (i % 4));
        }
    }
}
