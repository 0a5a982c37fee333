/* SPDX-License-Identifier: Apache-2.0
 * A super-block of a panel -> signed codes under one scale a row, in the tier's order of unpacked
 * codes (fast contract: pith_mul in kernel.h; definition: ref/mul_fast_ref.c). Types of expansion.h
 * are expanded before. The file that includes this has included dot_dotprod.h or dot_i8mm.h. User:
 * mul_fast_128.h.
 *
 * code' = (code * factor + start) >> 8 in 16-bit words, even and odd bytes apart; the high bytes of
 * both are woven back by one instruction. A register holds 4 k of 4 rows, so factor and start of a
 * row stand twice in its lane. The word holds the signed result, [-127, 127] in 256ths: what
 * products of 16 bits wrap, the sum wraps back. */
#ifndef PITH_KERNEL_ARM_REQUANTIZE_128_H
#define PITH_KERNEL_ARM_REQUANTIZE_128_H

#include "kernel/arm/expansion_128.h"
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

/* A super-block that is read: where its codes are, its scales. */
typedef struct super_block {
    const uint8_t *panel;
    const expanded *e; /* of types that are expanded */
    row_scales s;      /* of the others; d of all */
} super_block;

/* Sub-blocks with a scale of their own in a group of 32. */
ALWAYS_INLINE int n_scale(const pith_type type) {
    return n_part(form_of(type));
}

/* Codes are signed: 128 is added, since words are made of unsigned bytes. */
ALWAYS_INLINE bool is_signed(const pith_type type) {
    return is_form(form_of(type)) || type == PITH_TYPE_IQ4_XS;
}

ALWAYS_INLINE uint8x16_t code_unsigned(const super_block *w, int j4, const int jj, const int i,
                                       int quad, const pith_type type) {
    uint8x16_t code = is_form(form_of(type)) ? vld1q_u8(w->e->code[j4 + jj][i] + 16 * quad)
                                             : code_quad(w->panel, j4, jj, i, quad, type);
    return is_signed(type) ? veorq_u8(code, vdupq_n_u8(128)) : code;
}

ALWAYS_INLINE void scales_of(float32x4_t scale[4], const super_block *w, int i,
                             const pith_type type) {
    const int parts = n_scale(type);
    if (is_form(form_of(type))) {
        UNROLL for (int q = 0; q < 4; q++) {
            scale[q] = vld1q_f32(w->e->f.scale[i / parts][i % parts] + 4 * q);
        }
    } else {
        int8x16_t bytes = sub_scale(&w->s, w->panel, i, type);
        floats_of(scale, vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes));
    }
}

/* Sub-block i of 16 rows; amax of each row so far. */
ALWAYS_INLINE void affine_read(affine a[4], uint32x4_t amax[4], const super_block *w, int i,
                               const pith_type type) {
    const row_scales *s = &w->s;
    float32x4_t scale[4], minimum[4];
    scales_of(scale, w, i, type);
    if (has_minima(type)) floats_of_u8(minimum, s->minimum[i]);
    UNROLL for (int q = 0; q < 4; q++) {
        a[q].scale = vmulq_f32(s->d[q], scale[q]);
        a[q].start = vec_set(0.0f);
        if (has_minima(type)) {
            a[q].start = vnegq_f32(vmulq_f32(s->dmin[q], minimum[q]));
            amax[q] = vmaxq_u32(amax[q], vec_magnitude(a[q].start));
        }
        float32x4_t end = vec_fma(a[q].scale, vec_set(fast_code_max(type)), a[q].start);
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
    const int offset = is_signed(type) ? 128 : code_offset(type);
    if (offset != 0) start = vmlsq_s32(start, factor, vdupq_n_s32(offset));
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
ALWAYS_INLINE void requantize_group(int8_t *out, const super_block *super, int j4, const int jj,
                                    const word_affine w[2][4], const pith_type type) {
    for (int q = 0; q < 4; q++) {
        UNROLL for (int i = 0; i < 8; i += 2) {
            const word_affine *by = &w[n_scale(type) == 2 ? i / 4 : 0][q];
            int8x16_t first = requantized(code_unsigned(super, j4, jj, i, q, type), by),
                      second = requantized(code_unsigned(super, j4, jj, i + 1, q, type), by);
            unpacked_store(out, j4 + jj, i, q, first, second);
        }
    }
}

/* e: where codes may be expanded to. */
ALWAYS_INLINE void super_read(super_block *w, const uint8_t *panel, expanded *e,
                              const pith_type type) {
    const expansion how = expansion_of(type);
    w->panel = panel;
    w->e = e;
    if (!how.expand) {
        row_scales_read(&w->s, panel, type);
        return;
    }
    how.expand(e, panel, GROUPS);
    read_again();
    UNROLL for (int q = 0; q < 4; q++) {
        w->s.d[q] = vld1q_f32(e->f.d[0] + 4 * q);
    }
}

/* out: CODE_BYTES; d: the scales of the rows. */
ALWAYS_INLINE void requantize(int8_t *out, float32x4_t d[4], const uint8_t *panel,
                              const pith_type type) {
    const int parts = n_scale(type);
    expanded e;
    super_block super;
    affine a[MAX_SUB][4];
    uint32x4_t amax[4] = {vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0)};
    float32x4_t by[4];
    super_read(&super, panel, &e, type);
    for (int i = 0; i < parts * GROUPS; i++) affine_read(a[i], amax, &super, i, type);
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
            requantize_group(out, &super, j4, jj, (const word_affine(*)[4])w, type);
        }
    }
}

#endif
