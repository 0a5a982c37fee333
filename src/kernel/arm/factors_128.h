/* SPDX-License-Identifier: Apache-2.0
 * What a chunk (256 k of 16 rows) and a tile of tokens need besides codes: scales and minima of the
 * rows as floats laid out for the cells of the tier, scales and sums of the tokens. The file that
 * includes this has included dot_neon.h, dot_dotprod.h or dot_i8mm.h before. Why sums start at
 * MAGIC: mul_integer_128.h, the only user. */
#ifndef PITH_KERNEL_ARM_FACTORS_128_H
#define PITH_KERNEL_ARM_FACTORS_128_H

#include "kernel/arm/row_scales_128.h"

#define MAGIC PITH_ROUND_MAGIC

enum {
    TILE = 4,                     /* tokens */
    ROW_FLOATS = 16 * CELL_TOKENS /* a factor of 16 rows, laid out for cells */
};

/* Scales and minima of a chunk. */
typedef struct factors {
    float d[GROUPS][ROW_FLOATS];        /* K types: d[0] */
    float scale[GROUPS][2][ROW_FLOATS]; /* integer scales of K types; Q6_K: s0 - s1, s1 */
    float shift[GROUPS][2][ROW_FLOATS]; /* -scale * MAGIC */
    float minimum[GROUPS][ROW_FLOATS];
    float dmin[ROW_FLOATS];
} factors;

/* What a chunk of a tile's tokens needs besides codes. */
typedef struct scalars {
    float d[GROUPS][TILE], d_sum[GROUPS][TILE];
    int32_t start[GROUPS][2][TILE]; /* less the offset of packed codes; part 0: from MAGIC */
} scalars;

ALWAYS_INLINE void factors_f16(float *out, const uint16_t *half) {
    UNROLL for (int q = 0; q < 4; q++) {
        factor_store(out, q, vec_load_f16(half + 4 * q));
    }
}

/* 16 words as floats; as scales with their shift. */
ALWAYS_INLINE void factors_words(float *out, float *shift, int16x8_t low, int16x8_t high) {
    float32x4_t v[4] = {
        vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
        vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))};
    UNROLL for (int q = 0; q < 4; q++) {
        factor_store(out, q, v[q]);
        if (shift) factor_store(shift, q, vmulq_n_f32(v[q], -MAGIC));
    }
}

ALWAYS_INLINE void factors_bytes(float *out, float *shift, uint8x16_t bytes) {
    factors_words(out, shift, vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes))),
                  vreinterpretq_s16_u16(vmovl_high_u8(bytes)));
}

/* Of Q4_K and Q5_K. */
ALWAYS_INLINE void factors_k(factors *f, const uint8_t *panel) {
    const pith_panel_q4_k *b = (const void *)panel; /* the fields used here are the same in Q5_K */
    row_scales s;
    scales_k(&s, panel);
    for (int j = 0; j < GROUPS; j++) {
        factors_bytes(f->scale[j][0], f->shift[j][0], vreinterpretq_u8_s8(s.scale[j]));
        factors_bytes(f->minimum[j], NULL, s.minimum[j]);
    }
    factors_f16(f->d[0], b->d);
    factors_f16(f->dmin, b->dmin);
}

ALWAYS_INLINE void factors_read(factors *f, const uint8_t *panel, int n, const pith_type type) {
    if (type == PITH_TYPE_Q6_K) {
        const pith_panel_q6_k *b = (const void *)panel;
        for (int j = 0; j < GROUPS; j++) {
            int8x16_t s0 = vld1q_s8(b->scales[2 * j]), s1 = vld1q_s8(b->scales[2 * j + 1]);
            factors_words(f->scale[j][0], f->shift[j][0],
                          vsubl_s8(vget_low_s8(s0), vget_low_s8(s1)), vsubl_high_s8(s0, s1));
            factors_words(f->scale[j][1], f->shift[j][1], vmovl_s8(vget_low_s8(s1)),
                          vmovl_high_s8(s1));
        }
        factors_f16(f->d[0], b->d);
        return;
    }
    if (is_super(type)) {
        factors_k(f, panel);
        return;
    }
    for (int j = 0; j < n; j++) {
        const uint16_t *half =
            (const uint16_t *)(const void *)(panel + (size_t)j * block_bytes(type));
        factors_f16(f->d[j], half);
        if (has_minima(type)) factors_f16(f->minimum[j], half + PITH_PANEL_ROWS);
    }
}

/* out[j][t] = x[t][j] for 4 rows of 8. */
ALWAYS_INLINE void transpose(float (*out)[TILE], const float32x4_t x[TILE][2]) {
    UNROLL for (int h = 0; h < 2; h++) {
        float32x4_t a = vzip1q_f32(x[0][h], x[2][h]), b = vzip1q_f32(x[1][h], x[3][h]);
        float32x4_t c = vzip2q_f32(x[0][h], x[2][h]), d = vzip2q_f32(x[1][h], x[3][h]);
        vst1q_f32(out[4 * h], vzip1q_f32(a, b));
        vst1q_f32(out[4 * h + 1], vzip2q_f32(a, b));
        vst1q_f32(out[4 * h + 2], vzip1q_f32(c, d));
        vst1q_f32(out[4 * h + 3], vzip2q_f32(c, d));
    }
}

/* 4 tokens and 8 groups. */
ALWAYS_INLINE void scalars_whole(scalars *v, const pith_q8 *q8, size_t at, const pith_type type) {
    float32x4_t d[TILE][2], d_sum[TILE][2];
    UNROLL for (int t = 0; t < TILE; t++) {
        UNROLL for (int h = 0; h < 2; h++) {
            size_t from = at + (size_t)t * q8->d_stride + 4 * (size_t)h;
            d[t][h] = vld1q_f32(q8->d + from);
            d_sum[t][h] = vmulq_f32(d[t][h], vcvtq_f32_s32(vld1q_s32(q8->sum + from)));
        }
    }
    transpose(v->d, d);
    if (has_minima(type)) transpose(v->d_sum, d_sum);
}

/* Of the first `valid` tokens; the last one stands for the others. */
ALWAYS_INLINE void scalars_read(scalars *v, const pith_q8 *q8, size_t at, uint32_t valid, int n,
                                const int T, const bool wide, const pith_type type) {
    const int parts = n_part(type);
    if (wide && T == TILE && valid == TILE && n == GROUPS) {
        scalars_whole(v, q8, at, type);
        return;
    }
    for (uint32_t t = 0; t < (uint32_t)T; t++) {
        size_t row = at + (t < valid ? t : valid - 1) * q8->d_stride;
        for (size_t j = 0; j < (size_t)n; j++) {
            v->d[j][t] = q8->d[row + j];
            v->d_sum[j][t] = q8->d[row + j] * (float)q8->sum[row + j];
            for (size_t p = 0; !wide && p < (size_t)parts; p++)
                v->start[j][p][t] = (p == 0 ? MAGIC_BITS : 0) -
                                    code_offset(type) * (parts == 1 ? q8->sum[row + j]
                                                                    : q8->sum16[2 * (row + j) + p]);
        }
    }
}

#endif
