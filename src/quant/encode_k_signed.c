/* SPDX-License-Identifier: Apache-2.0
 * f32 to the K types without a minimum: Q3_K Q6_K and the activation type Q8_K. Groups of 16
 * share a signed integer scale under one f16 d; after the scales are fixed every element's code
 * is taken again with the scale that a reader will see (where it is 0, the codes of the search
 * stay). Types with a minimum: encode_k.c. Bit packing is the inverse of decode_k.c. */
#include "quant/block.h"
#include "quant/codec.h"
#include "quant/scale_search.h"

#include <math.h>

enum { SUPER = PITH_BLOCK_SUPER };

/* Codes again with scale[s] = d * (scale_codes[s]), around half. */
static void recode(const float *x, float d, const int scale_codes[16], int half,
                   uint8_t codes[SUPER]) {
    for (int i = 0; i < SUPER; i++) {
        int s = i / 16;
        float scale = d * (float)scale_codes[s];
        if (scale == 0.0f) continue;
        int code = pith_round_even(x[i] / scale);
        codes[i] = (uint8_t)(pith_clamp_int(code, -half, half - 1) + half);
    }
}

/* Group scales and codes with importance weights: returns d, fills the 6-bit scale codes. */
static float fit_q3_k_weighted(const float *x, const float *importance, uint8_t codes[SUPER],
                               uint8_t scale_codes[16]) {
    float sum = 0.0f, scales[16], sums[16];
    for (int i = 0; i < SUPER; i++) sum += x[i] * x[i];
    float sigma2 = 2.0f * sum / (float)SUPER;
    for (int s = 0; s < 16; s++) {
        const float *group = x + 16 * s, *qw = importance + 16 * s;
        float w[16];
        sums[s] = 0.0f;
        for (int j = 0; j < 16; j++) {
            w[j] = qw[j] * sqrtf(sigma2 + group[j] * group[j]);
            sums[s] += w[j];
        }
        scales[s] = pith_search_symmetric(16, 4, group, w, codes + 16 * s);
    }
    return pith_search_symmetric(16, 32, scales, sums, scale_codes);
}

static float fit_q3_k_plain(const float *x, uint8_t codes[SUPER], uint8_t scale_codes[16]) {
    float scales[16];
    for (int s = 0; s < 16; s++) {
        scales[s] = pith_search_descent(16, 4, x + 16 * s, codes + 16 * s);
    }
    float largest = pith_largest_signed(scales, 16);
    if (largest == 0.0f) {
        memset(scale_codes, 0, 16);
        return 0.0f;
    }
    float inverse = -32.0f / largest;
    for (int s = 0; s < 16; s++) {
        int code = pith_clamp_int(pith_round_even(inverse * scales[s]), -32, 31);
        scale_codes[s] = (uint8_t)(code + 32);
    }
    return 1.0f / inverse;
}

static void pack_q3_k(const uint8_t codes[SUPER], const uint8_t scale_codes[16],
                      pith_block_q3_k *b) {
    memset(b->hmask, 0, sizeof b->hmask);
    memset(b->scales, 0, sizeof b->scales);
    for (int s = 0; s < 16; s++) { /* low 4 bits in bytes 0..7, high 2 in bytes 8..11 */
        unsigned low = scale_codes[s] & 15u, high = scale_codes[s] >> 4;
        b->scales[s % 8] = (uint8_t)(b->scales[s % 8] | low << 4 * (s / 8));
        b->scales[8 + s % 4] = (uint8_t)(b->scales[8 + s % 4] | high << 2 * (s / 4));
    }
    for (int i = 0; i < SUPER; i++) {
        b->hmask[i % 32] = (uint8_t)(b->hmask[i % 32] | (codes[i] >> 2) << i / 32);
    }
    for (int j = 0; j < 64; j++) {
        const uint8_t *q = codes + 128 * (j / 32) + j % 32;
        unsigned low = (q[0] & 3u) | (q[32] & 3u) << 2;
        b->qs[j] = (uint8_t)(low | (q[64] & 3u) << 4 | (q[96] & 3u) << 6);
    }
}

void pith_encode_q3_k(const float *src, void *dst, size_t n, const float *weights) {
    pith_block_q3_k *b = dst;
    for (size_t c = 0; c + SUPER <= n; c += SUPER, b++) {
        uint8_t codes[SUPER], scale_codes[16];
        int signed_scales[16];
        float d = weights != NULL ? fit_q3_k_weighted(src + c, weights + c, codes, scale_codes)
                                  : fit_q3_k_plain(src + c, codes, scale_codes);
        for (int s = 0; s < 16; s++) signed_scales[s] = scale_codes[s] - 32;
        recode(src + c, pith_store_f16(b->d, d), signed_scales, 4, codes);
        pack_q3_k(codes, scale_codes, b);
    }
}

static void pack_q6_k(const uint8_t codes[SUPER], pith_block_q6_k *b) {
    for (int half = 0; half < 2; half++) {
        for (int l = 0; l < 32; l++) {
            const uint8_t *q = codes + 128 * half + l;
            uint8_t *ql = b->ql + 64 * half + l;
            ql[0] = (uint8_t)((q[0] & 15u) | (q[64] & 15u) << 4);
            ql[32] = (uint8_t)((q[32] & 15u) | (q[96] & 15u) << 4);
            unsigned high = (unsigned)q[0] >> 4 | (unsigned)(q[32] >> 4) << 2;
            high |= (unsigned)(q[64] >> 4) << 4 | (unsigned)(q[96] >> 4) << 6;
            b->qh[32 * half + l] = (uint8_t)high;
        }
    }
}

/* Importance weights are used as they are, without the sqrt term of the other types. */
void pith_encode_q6_k(const float *src, void *dst, size_t n, const float *weights) {
    pith_block_q6_k *b = dst;
    for (size_t c = 0; c + SUPER <= n; c += SUPER, b++) {
        uint8_t codes[SUPER];
        float scales[16];
        for (int s = 0; s < 16; s++) {
            const float *w = weights != NULL ? weights + c + 16 * s : NULL;
            scales[s] = pith_search_symmetric(16, 32, src + c + 16 * s, w, codes + 16 * s);
        }
        float largest = pith_largest_signed(scales, 16);
        if (fabsf(largest) < PITH_GROUP_EPSILON) {
            memset(b, 0, sizeof *b);
            continue;
        }
        float inverse = -128.0f / largest, d = pith_store_f16(b->d, 1.0f / inverse);
        int scale_codes[16];
        for (int s = 0; s < 16; s++) {
            scale_codes[s] = pith_clamp_int(pith_round_even(inverse * scales[s]), -128, 127);
            b->scales[s] = (int8_t)scale_codes[s];
        }
        recode(src + c, d, scale_codes, 32, codes);
        pack_q6_k(codes, b);
    }
}

void pith_encode_q8_k(const float *src, void *dst, size_t n, const float *weights) {
    (void)weights;
    pith_block_q8_k *b = dst;
    for (size_t c = 0; c + SUPER <= n; c += SUPER, b++) {
        float largest = pith_largest_signed(src + c, SUPER);
        if (largest == 0.0f) {
            memset(b, 0, sizeof *b);
            continue;
        }
        float inverse = -127.0f / largest;
        for (int j = 0; j < SUPER; j++) {
            int code = pith_clamp_int(pith_round_even(inverse * src[c + (size_t)j]), -128, 127);
            b->qs[j] = (int8_t)code;
        }
        for (int g = 0; g < 16; g++) {
            int sum = 0;
            for (int j = 0; j < 16; j++) sum += b->qs[16 * g + j];
            pith_store_u16(b->bsums + 2 * g, (uint16_t)sum);
        }
        pith_store_u32(b->d, pith_bits_of_f32(1.0f / inverse));
    }
}
