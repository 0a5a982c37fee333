/* SPDX-License-Identifier: Apache-2.0
 * A super-block of a panel -> signed codes under one scale a row, in the tier's order of unpacked
 * codes (fast contract: pith_mul in kernel.h; definition: ref/mul_fast_ref.c). The file that
 * includes this has included dot_dotprod.h or dot_i8mm.h. User: mul_fast_128.h.
 *
 * code' = (code * factor + start) >> 8 in 16-bit words, even and odd bytes apart; the high bytes of
 * both are woven back by one instruction. A register holds 4 k of 4 rows, so factor and start of a
 * row stand twice in its lane. The word holds the signed result, [-127, 127] in 256ths: what
 * products of 16 bits wrap, the sum wraps back. */
#ifndef PITH_KERNEL_ARM_REQUANTIZE_128_H
#define PITH_KERNEL_ARM_REQUANTIZE_128_H

#include "kernel/arm/row_scales_128.h"
#include "kernel/fast_scale.h"

/* value = scale * code + start, of the rows of a quad in a sub-block. */
typedef struct affine {
    float32x4_t scale, start;
} affine;

/* The same in 256ths of a new code, as words. */
typedef struct word_affine {
    int16x8_t factor, start;
} word_affine;

/* Largest magnitude of a code without its offset; the same numbers: ref/mul_*_ref.c. */
ALWAYS_INLINE float code_max(pith_type type) {
    switch (type) {
    case PITH_TYPE_Q2_K: return 3.0f;
    case PITH_TYPE_Q3_K: return 4.0f;
    case PITH_TYPE_Q4_K: return 15.0f;
    case PITH_TYPE_Q5_K: return 31.0f;
    case PITH_TYPE_Q6_K: return 32.0f;
    case PITH_TYPE_IQ4_XS: return 127.0f;
    default: return 2.0f; /* TQ2_0 */
    }
}

ALWAYS_INLINE void floats_of(float32x4_t out[4], int16x8_t low, int16x8_t high) {
    out[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(low)));
    out[1] = vcvtq_f32_s32(vmovl_high_s16(low));
    out[2] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(high)));
    out[3] = vcvtq_f32_s32(vmovl_high_s16(high));
}

/* Sub-block i of 16 rows; amax of each row so far. */
ALWAYS_INLINE void affine_read(affine a[4], uint32x4_t amax[4], const row_scales *s, int i,
                               const pith_type type) {
    float32x4_t scale[4], minimum[4];
    floats_of(scale, vmovl_s8(vget_low_s8(s->scale[i])), vmovl_high_s8(s->scale[i]));
    if (has_minima(type))
        floats_of(minimum, vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(s->minimum[i]))),
                  vreinterpretq_s16_u16(vmovl_high_u8(s->minimum[i])));
    UNROLL for (int q = 0; q < 4; q++) {
        a[q].scale = vmulq_f32(s->d[q], scale[q]);
        a[q].start = vec_set(0.0f);
        if (has_minima(type)) {
            a[q].start = vnegq_f32(vmulq_f32(s->dmin[q], minimum[q]));
            amax[q] = vmaxq_u32(amax[q], vec_magnitude(a[q].start));
        }
        float32x4_t end = vec_fma(a[q].scale, vec_set(code_max(type)), a[q].start);
        amax[q] = vmaxq_u32(amax[q], vec_magnitude(end));
    }
}

/* The low word of each lane, twice. */
ALWAYS_INLINE int16x8_t word_twice(int32x4_t v) {
    int16x8_t words = vreinterpretq_s16_s32(v);
    return vtrn1q_s16(words, words);
}

/* by: 256 * reciprocal of the rows' scales. Where that is 0, NaN too becomes 0. */
ALWAYS_INLINE word_affine words_of(const affine *a, float32x4_t by, const pith_type type) {
    int32x4_t factor = vcvtnq_s32_f32(vmulq_f32(a->scale, by)), start = vdupq_n_s32(128);
    if (has_minima(type)) start = vaddq_s32(start, vcvtnq_s32_f32(vmulq_f32(a->start, by)));
    if (code_offset(type) != 0) start = vmlsq_s32(start, factor, vdupq_n_s32(code_offset(type)));
    return (word_affine){word_twice(factor), word_twice(start)};
}

/* start is loaded anew each time, since it is overwritten (start_load in codes_128.h). */
ALWAYS_INLINE int8x16_t requantized(uint8x16_t code, const word_affine *w) {
    const volatile int16x8_t *start = &w->start;
    int16x8_t even = vreinterpretq_s16_u8(vandq_u8(code, vreinterpretq_u8_u16(vdupq_n_u16(255))));
    int16x8_t odd = vreinterpretq_s16_u16(vshrq_n_u16(vreinterpretq_u16_u8(code), 8));
    even = vmlaq_s16(*start, even, w->factor);
    odd = vmlaq_s16(*start, odd, w->factor);
    return vtrn2q_s8(vreinterpretq_s8_s16(even), vreinterpretq_s8_s16(odd));
}

/* Group j4 + jj; w: of its sub-blocks and quads. */
ALWAYS_INLINE void requantize_group(int8_t *out, const uint8_t *panel, int j4, const int jj,
                                    const word_affine w[2][4], const pith_type type) {
    for (int q = 0; q < 4; q++) {
        UNROLL for (int i = 0; i < 8; i += 2) {
            const word_affine *by = &w[n_part(type) == 2 ? i / 4 : 0][q];
            int8x16_t first = requantized(code_quad(panel, j4, jj, i, q, type), by),
                      second = requantized(code_quad(panel, j4, jj, i + 1, q, type), by);
            unpacked_store(out, j4 + jj, i, q, first, second);
        }
    }
}

/* out: CODE_BYTES; d: the scales of the rows. */
ALWAYS_INLINE void requantize(int8_t *out, float32x4_t d[4], const uint8_t *panel,
                              const pith_type type) {
    const int parts = n_part(type);
    row_scales s;
    affine a[MAX_SUB][4];
    uint32x4_t amax[4] = {vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0)};
    float32x4_t by[4];
    row_scales_read(&s, panel, type);
    for (int i = 0; i < parts * GROUPS; i++) affine_read(a[i], amax, &s, i, type);
    UNROLL for (int q = 0; q < 4; q++) {
        vec_row_scale(vreinterpretq_f32_u32(amax[q]), &d[q], &by[q]);
        by[q] = vmulq_n_f32(by[q], 256.0f);
    }
    for (int j4 = 0; j4 < GROUPS; j4 += 4) {
        UNROLL for (int jj = 0; jj < 4; jj++) {
            word_affine w[2][4];
            UNROLL for (int part = 0; part < parts; part++) {
                UNROLL for (int q = 0; q < 4; q++) {
                    w[part][q] = words_of(&a[parts * (j4 + jj) + part][q], by[q], type);
                }
            }
            requantize_group(out, panel, j4, jj, (const word_affine(*)[4])w, type);
        }
    }
}

#endif
