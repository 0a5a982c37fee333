/* SPDX-License-Identifier: Apache-2.0
 * What a chunk (256 k of 16 rows) and a tile of tokens need besides codes: scales and minima of the
 * rows as floats laid out for the cells of the tier, scales and sums of the tokens. The file that
 * includes this has included dot_neon.h, dot_dotprod.h or dot_i8mm.h before. Why sums start at
 * MAGIC: tiles_128.h, the only user. */
#ifndef PITH_KERNEL_ARM_FACTORS_128_H
#define PITH_KERNEL_ARM_FACTORS_128_H

#include "kernel/arm/row_scales_128.h"
#include "kernel/expanded.h"

#define MAGIC PITH_ROUND_MAGIC

enum {
    ROW_FLOATS = 16 * CELL_TOKENS,    /* a factor of 16 rows, laid out for cells */
    TOKEN_FLOATS = TILE * CELL_TOKENS /* a scalar of a tile's tokens, the same */
};

/* Whole scales that are in the codes once those are unpacked: tiles_128.h. */
ALWAYS_INLINE bool is_folded(const bool wide, const pith_type type) {
    return FOLDS && wide && (type == PITH_TYPE_Q2_K || type == PITH_TYPE_Q3_K);
}

/* Scales and minima of a chunk: expanded.h's, laid out for cells. */
typedef struct cell_factors {
    float d[GROUPS][ROW_FLOATS];          /* K types: d[0] */
    float scale[GROUPS][2][ROW_FLOATS];   /* of parts that are not apart: s0 - s1, s1 */
    float shift[GROUPS][2][ROW_FLOATS];   /* has_scales: -scale * MAGIC */
    float minimum[GROUPS][2][ROW_FLOATS]; /* of parts */
    float dmin[ROW_FLOATS];
} cell_factors;

/* What a chunk of a tile's tokens needs besides codes. */
typedef struct scalars {
    float d[GROUPS][TOKEN_FLOATS], d_sum[GROUPS][TOKEN_FLOATS];
    float half_sum[2][GROUPS][TOKEN_FLOATS]; /* sum16 of each part: has_half_minima */
    int32_t start[GROUPS][2]
                 [TILE]; /* less the offset of packed codes; where sums start from MAGIC */
} scalars;

ALWAYS_INLINE void factors_rows(float *out, const float32x4_t rows[4]) {
    UNROLL for (int q = 0; q < 4; q++) {
        factor_store(out, q, rows[q]);
    }
}

ALWAYS_INLINE void factors_f16(float *out, const uint16_t *half) {
    float32x4_t rows[4];
    rows_f16(rows, half);
    factors_rows(out, rows);
}

/* Whole scales of a quad, with their shift. */
ALWAYS_INLINE void scale_store(float *scale, float *shift, int quad, float32x4_t rows) {
    factor_store(scale, quad, rows);
    factor_store(shift, quad, vmulq_n_f32(rows, -MAGIC));
}

/* 16 words as scales. */
ALWAYS_INLINE void scales_store(float *scale, float *shift, int16x8_t low, int16x8_t high) {
    float32x4_t rows[4];
    floats_of(rows, low, high);
    UNROLL for (int q = 0; q < 4; q++) {
        scale_store(scale, shift, q, rows[q]);
    }
}

/* Scales of group j of a type in blocks of 256. */
ALWAYS_INLINE void factors_scales(cell_factors *f, const row_scales *s, const uint8_t *panel, int j,
                                  const pith_type type) {
    const int parts = n_part(type);
    int8x16_t last = sub_scale(s, panel, parts * j + parts - 1, type);
    if (parts == 2) {
        int8x16_t first = sub_scale(s, panel, 2 * j, type),
                  less = parts_apart(type) ? vdupq_n_s8(0) : last;
        scales_store(f->scale[j][0], f->shift[j][0],
                     vsubl_s8(vget_low_s8(first), vget_low_s8(less)), vsubl_high_s8(first, less));
    }
    scales_store(f->scale[j][parts - 1], f->shift[j][parts - 1], vmovl_s8(vget_low_s8(last)),
                 vmovl_high_s8(last));
}

/* Its minima. */
ALWAYS_INLINE void factors_minima(cell_factors *f, const row_scales *s, int j,
                                  const pith_type type) {
    const int parts = n_part(type);
    for (int part = 0; part < parts; part++) {
        float32x4_t minimum[4];
        floats_of_u8(minimum, s->minimum[parts * j + part]);
        factors_rows(f->minimum[j][part], minimum);
    }
}

ALWAYS_INLINE void factors_super(cell_factors *f, const uint8_t *panel, const bool wide,
                                 const pith_type type) {
    row_scales s;
    row_scales_read(&s, panel, type);
    for (int j = 0; j < GROUPS; j++) {
        if (has_scales(type) && !is_folded(wide, type)) factors_scales(f, &s, panel, j, type);
        if (has_minima(type)) factors_minima(f, &s, j, type);
    }
    factors_rows(f->d[0], s.d);
    if (has_minima(type)) factors_rows(f->dmin, s.dmin);
}

/* 2^(e - 128) of 16 rows. Bits: the larger of (e - 1) << 23 and, for the subnormal e = 0 and 1,
 * (e + 1) << 21; computed in their upper halves. */
ALWAYS_INLINE void factors_e8m0(float *out, const uint8_t *at) {
    uint8x16_t e = vld1q_u8(at);
    int16x8_t bits[2] = {vreinterpretq_s16_u16(vshll_n_u8(vget_low_u8(e), 5)),
                         vreinterpretq_s16_u16(vshll_high_n_u8(e, 5))};
    UNROLL for (int i = 0; i < 2; i++) {
        bits[i] = vmaxq_s16(vsubq_s16(vshlq_n_s16(bits[i], 2), vdupq_n_s16(1 << 7)),
                            vaddq_s16(bits[i], vdupq_n_s16(1 << 5)));
        factor_store(out, 2 * i, vreinterpretq_f32_s32(vshll_n_s16(vget_low_s16(bits[i]), 16)));
        factor_store(out, 2 * i + 1, vreinterpretq_f32_s32(vshll_high_n_s16(bits[i], 16)));
    }
}

ALWAYS_INLINE void factors_read(cell_factors *f, const uint8_t *panel, int n, const bool wide,
                                const pith_type type) {
    if (is_super(type)) {
        factors_super(f, panel, wide, type);
        return;
    }
    for (int j = 0; j < n; j++, panel += block_bytes(type)) {
        const uint16_t *half = (const uint16_t *)(const void *)panel;
        if (type == PITH_TYPE_MXFP4)
            factors_e8m0(f->d[j], panel);
        else
            factors_f16(f->d[j], half);
        if (has_minima(type)) factors_f16(f->minimum[j][0], half + PITH_PANEL_ROWS);
    }
}

/* Of a form: group j, quad q of what was expanded. */
ALWAYS_INLINE void factors_form(cell_factors *f, const factors *from, int j, int q,
                                const pith_type form) {
    float32x4_t first = vld1q_f32(from->scale[j][0] + 4 * q),
                second = vld1q_f32(from->scale[j][1] + 4 * q);
    switch (form) {
    case FORM_GROUP: factor_store(f->d[j], q, vld1q_f32(from->d[j] + 4 * q)); break;
    case FORM_SCALED: scale_store(f->scale[j][0], f->shift[j][0], q, first); break;
    case FORM_HALVES:
        scale_store(f->scale[j][0], f->shift[j][0], q,
                    parts_apart(form) ? first : vsubq_f32(first, second));
        scale_store(f->scale[j][1], f->shift[j][1], q, second);
        break;
    default: /* FORM_FLOATS */
        factor_store(f->scale[j][0], q, first);
        factor_store(f->scale[j][1], q, second);
    }
}

ALWAYS_INLINE void factors_expanded(cell_factors *f, const factors *from, int n,
                                    const pith_type form) {
    for (int j = 0; j < n; j++) UNROLL for (int q = 0; q < 4; q++) {
            factors_form(f, from, j, q, form);
        }
    for (int q = 0; is_super(form) && q < 4; q++)
        factor_store(f->d[0], q, vld1q_f32(from->d[0] + 4 * q));
}

/* out[j][t] = x[t][j] for 4 rows of 8. */
ALWAYS_INLINE void transpose(float (*out)[TOKEN_FLOATS], const float32x4_t x[4][2]) {
    UNROLL for (int h = 0; h < 2; h++) {
        float32x4_t a = vzip1q_f32(x[0][h], x[2][h]), b = vzip1q_f32(x[1][h], x[3][h]);
        float32x4_t c = vzip2q_f32(x[0][h], x[2][h]), d = vzip2q_f32(x[1][h], x[3][h]);
        vst1q_f32(out[4 * h], vzip1q_f32(a, b));
        vst1q_f32(out[4 * h + 1], vzip2q_f32(a, b));
        vst1q_f32(out[4 * h + 2], vzip1q_f32(c, d));
        vst1q_f32(out[4 * h + 3], vzip2q_f32(c, d));
    }
}

/* Sums of half groups of 8 groups, of part `part`. */
ALWAYS_INLINE void half_sums_whole(scalars *v, const pith_q8 *q8, size_t at, const int part) {
    float32x4_t sum[4][2];
    UNROLL for (int t = 0; t < 4; t++) {
        int16x8_t both = vld2q_s16(q8->sum16 + 2 * (at + (size_t)t * q8->d_stride)).val[part];
        sum[t][0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(both)));
        sum[t][1] = vcvtq_f32_s32(vmovl_high_s16(both));
    }
    transpose(v->half_sum[part], sum);
}

/* 4 tokens and 8 groups, of tiers with a token a cell. */
ALWAYS_INLINE void scalars_whole(scalars *v, const pith_q8 *q8, size_t at, const pith_type type) {
    float32x4_t d[4][2], d_sum[4][2];
    UNROLL for (int t = 0; t < 4; t++) {
        UNROLL for (int h = 0; h < 2; h++) {
            size_t from = at + (size_t)t * q8->d_stride + 4 * (size_t)h;
            d[t][h] = vld1q_f32(q8->d + from);
            d_sum[t][h] = vmulq_f32(d[t][h], vcvtq_f32_s32(vld1q_s32(q8->sum + from)));
        }
    }
    transpose(v->d, d);
    if (has_half_minima(type)) {
        half_sums_whole(v, q8, at, 0);
        half_sums_whole(v, q8, at, 1);
    } else if (has_minima(type)) {
        transpose(v->d_sum, d_sum);
    }
}

/* Group j of token t, which is group `at` of all. */
ALWAYS_INLINE void scalars_of(scalars *v, const pith_q8 *q8, size_t at, size_t j, uint32_t t,
                              const pith_type type) {
    const int16_t *sum16 = q8->sum16 + 2 * at;
    const int parts = n_part(type), offset = code_offset(type);
    scalar_store(v->d[j], t, q8->d[at]);
    if (has_minima(type)) scalar_store(v->d_sum[j], t, q8->d[at] * (float)q8->sum[at]);
    for (int p = 0; has_half_minima(type) && p < 2; p++)
        scalar_store(v->half_sum[p][j], t, (float)sum16[p]);
    if (offset == 0) return;
    v->start[j][0][t] = MAGIC_BITS - offset * (parts == 1 ? q8->sum[at] : sum16[0]);
    if (parts == 2) v->start[j][1][t] = (parts_apart(type) ? MAGIC_BITS : 0) - offset * sum16[1];
}

/* Of the first `valid` tokens; the last one stands for the others. */
ALWAYS_INLINE void scalars_read(scalars *v, const pith_q8 *q8, size_t at, uint32_t valid, int n,
                                const int T, const bool wide, const pith_type type) {
    if (CELL_TOKENS == 1 && wide && T == 4 && valid == 4 && n == GROUPS) {
        scalars_whole(v, q8, at, type);
        return;
    }
    for (uint32_t t = 0; t < (uint32_t)T; t++) {
        size_t row = at + (t < valid ? t : valid - 1) * q8->d_stride;
        for (size_t j = 0; j < (size_t)n; j++) scalars_of(v, q8, row + j, j, t, type);
    }
}

#endif
