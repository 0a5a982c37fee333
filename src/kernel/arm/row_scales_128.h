/* SPDX-License-Identifier: Apache-2.0
 * The integer scales and minima of a super-block (256 k of 16 rows) as bytes, one vector a
 * sub-block, in the order of the panel's rows (layouts: panel.h). Exact products make factors of
 * them (factors_128.h), the fast contract requantizes with them (requantize_128.h). */
#ifndef PITH_KERNEL_ARM_ROW_SCALES_128_H
#define PITH_KERNEL_ARM_ROW_SCALES_128_H

#include "kernel/arm/codes_128.h"
#include "kernel/arm/vector_math_neon.h"

enum { MAX_SUB = 2 * GROUPS };

/* Sub-block s: 32 k, or 16 where a type has two parts a group (n_part). */
typedef struct row_scales {
    int8x16_t scale[MAX_SUB];    /* but for Q6_K (sub_scale), and TQ2_0: all are 1 */
    uint8x16_t minimum[MAX_SUB]; /* has_minima */
    float32x4_t d[4], dmin[4];   /* 16 rows */
} row_scales;

ALWAYS_INLINE int8x16_t as_signed(uint8x16_t v) {
    return vreinterpretq_s8_u8(v);
}

/* The 6-bit fields of Q4_K and Q5_K. */
ALWAYS_INLINE void row_scales_k(row_scales *s, const uint8_t *panel) {
    const pith_panel_q4_k *b = (const void *)panel; /* the fields used here are the same in Q5_K */
    const uint8x16_t six = vdupq_n_u8(63), four = vdupq_n_u8(15), two = vdupq_n_u8(0x30);
    for (int j = 0; j < 4; j++) {
        uint8x16_t s0 = vld1q_u8(b->scales[0] + 16 * j), s1 = vld1q_u8(b->scales[1] + 16 * j),
                   s2 = vld1q_u8(b->scales[2] + 16 * j);
        s->scale[j] = as_signed(vandq_u8(s0, six));
        s->scale[j + 4] = as_signed(vorrq_u8(vandq_u8(s2, four), vandq_u8(vshrq_n_u8(s0, 2), two)));
        s->minimum[j] = vandq_u8(s1, six);
        s->minimum[j + 4] = vorrq_u8(vshrq_n_u8(s2, 4), vandq_u8(vshrq_n_u8(s1, 2), two));
    }
}

/* Nibbles of bytes: low, high. */
ALWAYS_INLINE uint8x16_t half_of(uint8x16_t v, const int high) {
    return high ? vshrq_n_u8(v, 4) : vandq_u8(v, vdupq_n_u8(15));
}

/* Bits 2 i and 2 i + 1 (i constant) of each byte above a nibble, less 32. */
ALWAYS_INLINE int8x16_t scale_6(uint8x16_t low, uint8x16_t high, const int i) {
    const uint8x16_t mask = vdupq_n_u8(0x30);
    switch (i) {
    case 0: high = vshlq_n_u8(high, 4); break;
    case 1: high = vshlq_n_u8(high, 2); break;
    case 3: high = vshrq_n_u8(high, 2); break;
    default: break;
    }
    return vsubq_s8(as_signed(vorrq_u8(low, vandq_u8(high, mask))), vdupq_n_s8(32));
}

/* Bytes 0..3 of the rows' words are the vectors of vld4, bytes 0 and 1 those of vld2. */
ALWAYS_INLINE void row_scales_iq4_xs(row_scales *s, const pith_panel_iq4_xs *b) {
    uint8x16x4_t low = vld4q_u8(b->scales_l);
    uint8x16x2_t high = vld2q_u8((const uint8_t *)b->scales_h);
    UNROLL for (int j = 0; j < GROUPS; j++) {
        s->scale[j] = scale_6(half_of(low.val[j / 2], j % 2), high.val[j / 4], j % 4);
    }
}

ALWAYS_INLINE void row_scales_q2_k(row_scales *s, const pith_panel_q2_k *b) {
    UNROLL for (int i = 0; i < 4; i++) {
        uint8x16x4_t v = vld4q_u8(b->scales[i]);
        UNROLL for (int j = 0; j < 4; j++) {
            s->scale[4 * i + j] = as_signed(half_of(v.val[j], 0));
            s->minimum[4 * i + j] = half_of(v.val[j], 1);
        }
    }
}

ALWAYS_INLINE void row_scales_q3_k(row_scales *s, const pith_panel_q3_k *b) {
    uint8x16x4_t low[2] = {vld4q_u8(b->scales[0]), vld4q_u8(b->scales[1])},
                 high = vld4q_u8(b->scales[2]);
    UNROLL for (int i = 0; i < MAX_SUB; i++) {
        s->scale[i] = scale_6(half_of(low[i % 8 / 4].val[i % 4], i / 8), high.val[i % 4], i / 4);
    }
}

/* 16 words as floats. */
ALWAYS_INLINE void floats_of(float32x4_t out[4], int16x8_t low, int16x8_t high) {
    out[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(low)));
    out[1] = vcvtq_f32_s32(vmovl_high_s16(low));
    out[2] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(high)));
    out[3] = vcvtq_f32_s32(vmovl_high_s16(high));
}

ALWAYS_INLINE void floats_of_u8(float32x4_t out[4], uint8x16_t v) {
    floats_of(out, vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(v))),
              vreinterpretq_s16_u16(vmovl_high_u8(v)));
}

ALWAYS_INLINE void rows_f16(float32x4_t out[4], const uint16_t *half) {
    UNROLL for (int q = 0; q < 4; q++) {
        out[q] = vec_load_f16(half + 4 * q);
    }
}

ALWAYS_INLINE void row_scales_read(row_scales *s, const uint8_t *panel, const pith_type type) {
    const uint16_t *half = (const uint16_t *)(const void *)panel;
    rows_f16(s->d, half);
    if (has_minima(type)) rows_f16(s->dmin, half + PITH_PANEL_ROWS);
    switch (type) {
    case PITH_TYPE_Q4_K:
    case PITH_TYPE_Q5_K: row_scales_k(s, panel); break;
    case PITH_TYPE_Q2_K: row_scales_q2_k(s, (const void *)panel); break;
    case PITH_TYPE_Q3_K: row_scales_q3_k(s, (const void *)panel); break;
    case PITH_TYPE_IQ4_XS: row_scales_iq4_xs(s, (const void *)panel); break;
    default: break;
    }
}

/* The scale of sub-block i of the panel that s was read from. */
ALWAYS_INLINE int8x16_t sub_scale(const row_scales *s, const uint8_t *panel, int i,
                                  const pith_type type) {
    switch (type) {
    case PITH_TYPE_Q6_K: return vld1q_s8(((const pith_panel_q6_k *)(const void *)panel)->scales[i]);
    case PITH_TYPE_TQ2_0: return vdupq_n_s8(1);
    default: return s->scale[i];
    }
}

#endif
