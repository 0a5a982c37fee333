/* SPDX-License-Identifier: Apache-2.0
 * Panel blocks taken apart with 128-bit registers (layouts: panel.h): a register holds 4 codes of
 * 4 rows ("quad"), four of them are a code group. `type` is always a constant. One chunk is 256 k:
 * a super-block, or up to 8 blocks of 32. For every ARM tier. */
#ifndef PITH_KERNEL_ARM_CODES_128_H
#define PITH_KERNEL_ARM_CODES_128_H

#include "kernel/arm/forms_128.h"
#include "quant/grid.h"

#include <arm_neon.h>

enum {
    CODE_BYTES = GROUPS * 512,
    MAGIC_BITS = 0x4B400000 /* 1.5 * 2^23: where sums start (tiles_128.h) */
};

/* 256 k of a panel: packed codes, or codes unpacked in the order of the tier (dot_*.h). */
typedef struct chunk {
    const uint8_t *panel;
    const int8_t *unpacked; /* CODE_BYTES, signed */
    int32x4_t start;        /* dot_start of the tier */
} chunk;

/* The start of a sum, from memory each time: a load leaves the vector pipes free, a copy of a
 * register takes one. */
ALWAYS_INLINE int32x4_t start_load(const chunk *w) {
    return *(const volatile int32x4_t *)&w->start;
}

/* What was loaded is loaded again, and loads stay where they are written: gcc would rather read all
 * codes of a few groups at once and spill them. */
ALWAYS_INLINE void read_again(void) {
    __asm__ volatile("" ::: "memory");
}

/* No vector lives in a register here. Before a loop that needs all registers: gcc would rather keep
 * constants of other loops in some, and spill its sums. */
ALWAYS_INLINE void registers_free(void) {
    __asm__ volatile("" ::
                         : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
                           "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21",
                           "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
}

/* As read_again, and sums are taken as far as here before anything that follows: clang would rather
 * add up one sum after the other, with all codes in registers. (gcc doesn't, and spills for this.)
 */
ALWAYS_INLINE void sums_keep(int32x4_t (*sum)[4], const int X, const int W) {
#if defined(__clang__)
    UNROLL for (int x = 0; x < X; x++) {
        UNROLL for (int i = 0; i < W; i++) {
            __asm__ volatile("" : "+w"(sum[x][i]));
        }
    }
#else
    (void)sum;
    (void)X;
    (void)W;
#endif
    read_again();
}

/* Low or high nibbles of 16 bytes. */
ALWAYS_INLINE uint8x16_t nibbles(const uint8_t *q, const bool high) {
    uint8x16_t v = vld1q_u8(q);
    return high ? vshrq_n_u8(v, 4) : vandq_u8(v, vdupq_n_u8(15));
}

/* Codes with the bits `place`, which are 0, set where bit `bit` of a byte of h is set: to select
 * bits is one instruction. */
ALWAYS_INLINE uint8x16_t with_bit(uint8x16_t code, const uint8_t *h, int bit, uint8_t place) {
    uint8x16_t is_set = vtstq_u8(vld1q_u8(h), vdupq_n_u8((uint8_t)(1 << bit)));
    return vbslq_u8(vdupq_n_u8(place), is_set, code);
}

/* Codes with bits 2 i and 2 i + 1 (i constant) of the bytes of h as bits 4 and 5. */
ALWAYS_INLINE uint8x16_t with_pair(uint8x16_t code, const uint8_t *h, const int i) {
    uint8x16_t v = vld1q_u8(h);
    switch (i) {
    case 0: v = vshlq_n_u8(v, 4); break;
    case 1: v = vshlq_n_u8(v, 2); break;
    case 3: v = vshrq_n_u8(v, 2); break;
    default: break;
    }
    return vbslq_u8(vdupq_n_u8(0x30), v, code);
}

/* Bits 2 i and 2 i + 1 (i constant) of each byte. */
ALWAYS_INLINE uint8x16_t two_bits(const uint8_t *q, const int i) {
    uint8x16_t v = vld1q_u8(q);
    switch (i) {
    case 1: v = vshrq_n_u8(v, 2); break;
    case 2: v = vshrq_n_u8(v, 4); break;
    case 3: return vshrq_n_u8(v, 6);
    default: break;
    }
    return vandq_u8(v, vdupq_n_u8(3));
}

/* Nibbles looked up in a book: signed. */
ALWAYS_INLINE uint8x16_t look_up(const int8_t *book, const uint8_t *q, const bool high) {
    return vreinterpretq_u8_s8(vqtbl1q_s8(vld1q_s8(book), nibbles(q, high)));
}

/* code_quad of the types that have two or three bits or a book. */
ALWAYS_INLINE uint8x16_t code_quad_low(const uint8_t *block, int j4, const int jj, const int i,
                                       int at, const pith_type type) {
    switch (type) {
    case PITH_TYPE_Q2_K: /* j4 is the half, jj the field */
        return two_bits(((const pith_panel_q2_k *)(const void *)block)->q[2 * j4 + i] + at, jj);
    case PITH_TYPE_TQ2_0:
        return two_bits(((const pith_panel_tq2_0 *)(const void *)block)->q[2 * j4 + i] + at, jj);
    case PITH_TYPE_Q3_K: {
        const pith_panel_q3_k_part *part = &((const pith_panel_q3_k *)(const void *)block)->part[i];
        return with_bit(two_bits(part->q[j4 >> 2] + at, jj), part->h + at, j4 + jj, 4);
    }
    case PITH_TYPE_IQ4_NL: {
        const pith_panel_iq4_nl *b = (const void *)block;
        return look_up(pith_book_iq4, b->q[i % 4] + at, i >= 4);
    }
    case PITH_TYPE_MXFP4: {
        const pith_panel_mxfp4 *b = (const void *)block;
        return look_up(pith_book_fp4, b->q[i % 4] + at, i >= 4);
    }
    default: {
        const pith_panel_iq4_xs *b = (const void *)block;
        return look_up(pith_book_iq4, b->q[4 * (j4 + jj) + i % 4] + at, i >= 4);
    }
    }
}

/* Quad `quad` (0..3) of code group i (0..7, constant) of group j = j4 + jj (jj 0..3, constant) of a
 * chunk; unsigned, but Q8_0 and types with a book signed. */
ALWAYS_INLINE uint8x16_t code_quad(const uint8_t *panel, int j4, const int jj, const int i,
                                   int quad, const pith_type type) {
    const int j = j4 + jj;
    const uint8_t *block = is_super(type) ? panel : panel + (size_t)j * block_bytes(type);
    const int at = 16 * quad;
    switch (type) {
    case PITH_TYPE_Q4_0:
        return nibbles(((const pith_panel_q4_0 *)(const void *)block)->q[i % 4] + at, i >= 4);
    case PITH_TYPE_Q4_1:
        return nibbles(((const pith_panel_q4_1 *)(const void *)block)->q[i % 4] + at, i >= 4);
    case PITH_TYPE_Q5_0: {
        const pith_panel_q5_0 *b = (const void *)block;
        return with_bit(nibbles(b->q[i % 4] + at, i >= 4), b->h + at, i, 16);
    }
    case PITH_TYPE_Q5_1: {
        const pith_panel_q5_1 *b = (const void *)block;
        return with_bit(nibbles(b->q[i % 4] + at, i >= 4), b->h + at, i, 16);
    }
    case PITH_TYPE_Q8_0:
        return vreinterpretq_u8_s8(
            vld1q_s8(((const pith_panel_q8_0 *)(const void *)block)->q[i] + at));
    case PITH_TYPE_Q4_K:
        return nibbles(((const pith_panel_q4_k *)(const void *)block)->q[8 * (j >> 1) + i] + at,
                       jj % 2 == 1);
    case PITH_TYPE_Q5_K: {
        const pith_panel_q5_k *b = (const void *)block;
        return with_bit(nibbles(b->q[8 * (j >> 1) + i] + at, jj % 2 == 1), b->h[i] + at, j, 16);
    }
    case PITH_TYPE_Q2_K:
    case PITH_TYPE_Q3_K:
    case PITH_TYPE_IQ4_NL:
    case PITH_TYPE_IQ4_XS:
    case PITH_TYPE_MXFP4:
    case PITH_TYPE_TQ2_0: return code_quad_low(block, j4, jj, i, at, type);
    default: { /* Q6_K: j4 is the half, jj the quarter */
        const pith_panel_q6_k_part *part =
            &((const pith_panel_q6_k *)(const void *)block)->part[j4 >> 2][i];
        return with_pair(nibbles(part->low[jj % 2] + at, jj >= 2), part->high + at, jj);
    }
    }
}

/* The same as numbers. */
ALWAYS_INLINE int8x16_t code_signed(const uint8_t *panel, int j4, const int jj, const int i,
                                    int quad, const pith_type type) {
    int8x16_t code = vreinterpretq_s8_u8(code_quad(panel, j4, jj, i, quad, type));
    if (code_offset(type) == 0) return code;
    return vsubq_s8(code, vdupq_n_s8((int8_t)code_offset(type)));
}

#endif
