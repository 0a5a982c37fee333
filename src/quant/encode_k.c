/* SPDX-License-Identifier: Apache-2.0
 * f32 to the K types with a minimum: Q2_K Q4_K Q5_K.
 * Three steps a super-block: (1) per group of 16 or 32, search an affine fit; (2) code the group
 * scales and minima as small integers under the f16 pair d, dmin; (3) take every element's code
 * again with the scales that a reader will see. Where such a scale is 0, the codes of step 1
 * stay. Types without a minimum: encode_k_signed.c. Bit packing is the inverse of decode_k.c. */
#include "quant/block.h"
#include "quant/codec.h"
#include "quant/scale_search.h"

#include <math.h>

enum { SUPER = PITH_BLOCK_SUPER };

static const pith_affine_grid q2_plain = {-0.5f, 0.1f, 15, true};
static const pith_affine_grid q4_plain = {-1.0f, 0.1f, 20, false};
static const pith_affine_grid q5_plain = {-0.5f, 0.1f, 15, false};
static const pith_affine_grid weighted_grid = {-0.9f, 0.05f, 36, false};

/* What steps 1 and 2 find out about a super-block. */
typedef struct super_fit {
    uint8_t codes[SUPER];
    float scales[16], offsets[16]; /* [n_group] */
    float sums[16];                /* [n_group] sum of the weights of a group */
    uint8_t scale_codes[16], min_codes[16];
    float d, dmin; /* before rounding to f16 */
} super_fit;

static float sum_of_squares(const float *x, int n) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}

/* w = importance * sqrt(sigma2 + x^2), and its sum. */
static float weigh(const float *x, const float *importance, float sigma2, int n, float *w) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) {
        w[i] = importance[i] * sqrtf(sigma2 + x[i] * x[i]);
        sum += w[i];
    }
    return sum;
}

/* w = |x| + base: what counts without importance weights. */
static void weigh_plain(const float *x, float base, int n, float *w) {
    for (int i = 0; i < n; i++) w[i] = base + fabsf(x[i]);
}

static float largest(const float *x, int n) {
    float high = 0.0f;
    for (int i = 0; i < n; i++) {
        if (x[i] > high) high = x[i];
    }
    return high;
}

/* Codes 0..top for n non-negative values, plain rule: the largest gets top. Returns the unit. */
static float code_scales(const float *values, int n, int top, uint8_t *codes) {
    float high = largest(values, n), inverse = high > 0.0f ? (float)top / high : 0.0f;
    for (int i = 0; i < n; i++) {
        codes[i] = (uint8_t)pith_clamp_int(pith_round_even(inverse * values[i]), 0, top);
    }
    return high > 0.0f ? high / (float)top : 0.0f;
}

/* Step 2: integers for n_group scales and minima. */
static void code_groups(super_fit *f, int n_group, int top, bool weighted) {
    if (weighted) {
        f->d = pith_search_positive(n_group, top, f->scales, f->sums, f->scale_codes);
        f->dmin = pith_search_positive(n_group, top, f->offsets, f->sums, f->min_codes);
    } else {
        f->d = code_scales(f->scales, n_group, top, f->scale_codes);
        f->dmin = code_scales(f->offsets, n_group, top, f->min_codes);
    }
}

/* Step 3, d and dmin as stored. */
static void recode(super_fit *f, const float *x, int group, int top, float d, float dmin) {
    for (int i = 0; i < SUPER; i++) {
        int s = i / group;
        float scale = d * (float)f->scale_codes[s];
        if (scale == 0.0f) continue;
        float offset = dmin * (float)f->min_codes[s];
        int code = pith_round_even((x[i] + offset) / scale);
        f->codes[i] = (uint8_t)pith_clamp_int(code, 0, top);
    }
}

/* Step 1 for Q4_K and Q5_K: 8 groups of 32, codes 0..top. */
static void fit_groups_32(super_fit *f, const float *x, const float *importance, int top,
                          const pith_affine_grid *plain) {
    float sigma2 = 2.0f * sum_of_squares(x, SUPER) / (float)SUPER;
    for (int s = 0; s < 8; s++) {
        const float *group = x + 32 * s;
        float w[32];
        if (importance != NULL) {
            f->sums[s] = weigh(group, importance + 32 * s, sigma2, 32, w);
        } else {
            weigh_plain(group, sqrtf(sum_of_squares(group, 32) / 32.0f), 32, w);
        }
        const pith_affine_grid *grid = importance != NULL ? &weighted_grid : plain;
        pith_affine a = pith_search_affine(32, top, group, w, grid, f->codes + 32 * s);
        f->scales[s] = a.scale;
        f->offsets[s] = a.offset;
    }
    code_groups(f, 8, 63, importance != NULL);
}

/* Eight pairs of 6-bit numbers in 12 bytes; the inverse of pith_scale_min_get. */
static void pack_scale_mins(const super_fit *f, uint8_t scales[12]) {
    for (int j = 0; j < 4; j++) {
        unsigned scale_high = f->scale_codes[j + 4], min_high = f->min_codes[j + 4];
        scales[j] = (uint8_t)(f->scale_codes[j] | (scale_high >> 4) << 6);
        scales[j + 4] = (uint8_t)(f->min_codes[j] | (min_high >> 4) << 6);
        scales[j + 8] = (uint8_t)((scale_high & 15u) | (min_high & 15u) << 4);
    }
}

/* Low 4 bits of the codes: element t of a chunk of 64 in the low nibble of byte t, element t + 32
 * in the high one. */
static void pack_chunks(const uint8_t codes[SUPER], uint8_t qs[128]) {
    for (int c = 0; c < 4; c++) {
        for (int t = 0; t < 32; t++) {
            unsigned low = codes[64 * c + t] & 15u, high = codes[64 * c + t + 32] & 15u;
            qs[32 * c + t] = (uint8_t)(low | high << 4);
        }
    }
}

static void encode_q2_k_block(const float *x, const float *importance, pith_block_q2_k *b) {
    super_fit f;
    float sigma2 = sum_of_squares(x, SUPER) / (float)SUPER;
    for (int s = 0; s < 16; s++) {
        const float *group = x + 16 * s;
        float w[16];
        if (importance != NULL) {
            f.sums[s] = weigh(group, importance + 16 * s, sigma2, 16, w);
        } else {
            weigh_plain(group, 0.0f, 16, w);
        }
        const pith_affine_grid *grid = importance != NULL ? &weighted_grid : &q2_plain;
        pith_affine a = pith_search_affine(16, 3, group, w, grid, f.codes + 16 * s);
        f.scales[s] = a.scale;
        f.offsets[s] = a.offset;
    }
    code_groups(&f, 16, 15, importance != NULL);
    float d = pith_store_f16(b->d, f.d), dmin = pith_store_f16(b->dmin, f.dmin);
    recode(&f, x, 16, 3, d, dmin);
    for (int s = 0; s < 16; s++) b->scales[s] = (uint8_t)(f.scale_codes[s] | f.min_codes[s] << 4);
    for (int j = 0; j < 64; j++) {
        const uint8_t *q = f.codes + 128 * (j / 32) + j % 32;
        b->qs[j] = (uint8_t)(q[0] | q[32] << 2 | q[64] << 4 | q[96] << 6);
    }
}

void pith_encode_q2_k(const float *src, void *dst, size_t n, const float *weights) {
    pith_block_q2_k *b = dst;
    for (size_t c = 0; c + SUPER <= n; c += SUPER, b++) {
        encode_q2_k_block(src + c, weights != NULL ? weights + c : NULL, b);
    }
}

void pith_encode_q4_k(const float *src, void *dst, size_t n, const float *weights) {
    pith_block_q4_k *b = dst;
    for (size_t c = 0; c + SUPER <= n; c += SUPER, b++) {
        super_fit f;
        fit_groups_32(&f, src + c, weights != NULL ? weights + c : NULL, 15, &q4_plain);
        float d = pith_store_f16(b->d, f.d), dmin = pith_store_f16(b->dmin, f.dmin);
        recode(&f, src + c, 32, 15, d, dmin);
        pack_scale_mins(&f, b->scales);
        pack_chunks(f.codes, b->qs);
    }
}

void pith_encode_q5_k(const float *src, void *dst, size_t n, const float *weights) {
    pith_block_q5_k *b = dst;
    for (size_t c = 0; c + SUPER <= n; c += SUPER, b++) {
        super_fit f;
        fit_groups_32(&f, src + c, weights != NULL ? weights + c : NULL, 31, &q5_plain);
        float d = pith_store_f16(b->d, f.d), dmin = pith_store_f16(b->dmin, f.dmin);
        recode(&f, src + c, 32, 31, d, dmin);
        pack_scale_mins(&f, b->scales);
        pack_chunks(f.codes, b->qs);
        memset(b->qh, 0, sizeof b->qh);
        for (int i = 0; i < SUPER; i++) {
            b->qh[i % 32] = (uint8_t)(b->qh[i % 32] | (f.codes[i] >> 4) << i / 32);
        }
    }
}
