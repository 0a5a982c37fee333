/* SPDX-License-Identifier: Apache-2.0
 * The integer dot product of tiers with 128-bit registers, plain NEON form: smull and smlal
 * multiply bytes into 16-bit words, one a k; words of a whole group of 32 k are added up before
 * they are widened. No overflow: a word holds at most 8 * 31 * 127 = 31496 for codes of up to 5
 * bits, 4 * 63 * 127 = 32004 for half a group of 6-bit codes, 2 * 128 * 127 = 32512 for 2 groups of
 * 8-bit codes, which are widened after each 2. All are below 32768. The same names with SDOT:
 * dot_dotprod.h. Users: tiles_128.h, attend_128.h. */
#ifndef PITH_KERNEL_ARM_DOT_NEON_H
#define PITH_KERNEL_ARM_DOT_NEON_H

#include "kernel/arm/lanes_row_128.h"

enum { FOLDS = 0 }; /* words would overflow */

/* The sums of a group's second part start anew. */
ALWAYS_INLINE bool parts_apart(pith_type type) {
    return type == FORM_FLOATS;
}

/* 4 bytes of activations in every lane. */
ALWAYS_INLINE int8x16_t broadcast4(const int8_t *x) {
    return vreinterpretq_s8_s32(vld1q_dup_s32((const int32_t *)(const void *)x));
}

/* Where sums start: once for each of 2 rows, whose words are 2 lanes. */
ALWAYS_INLINE int32x4_t start_rows(int32_t start) {
    return vreinterpretq_s32_u64(vdupq_n_u64((uint32_t)start));
}

ALWAYS_INLINE int32x4_t dot_start(void) {
    return start_rows(MAGIC_BITS);
}

ALWAYS_INLINE int16x8_t multiply_add(int16x8_t words, int8x16_t w, int8x16_t x, const bool high) {
    return high ? vmlal_high_s8(words, w, x) : vmlal_s8(words, vget_low_s8(w), vget_low_s8(x));
}

/* Codes of up to 6 bits: sum[t][q] += code groups first .. last - 1 of group j4 + jj. The first
 * part starts the sums; packed codes have starts of their own, which are added at each part (NULL:
 * none). */
ALWAYS_INLINE void dot_words(int32x4_t (*sum)[4], const chunk *w, const tokens *x,
                             const int32_t *start, int j4, const int jj, const int first,
                             const int last, const int quad, const int T, const int Q,
                             const bool wide, const pith_type type) {
    int16x8_t low[4][4], high[4][4];
    UNROLL for (int i = first; i < last; i++) {
        int8x16_t code[4];
        UNROLL for (int q = 0; q < Q; q++) {
            code[q] = code_at(w, j4, jj, i, quad + q, wide, type);
        }
        UNROLL for (int t = 0; t < T; t++) {
            int8x16_t v = broadcast4(x->row[t] + PITH_GROUP * (j4 + jj) + 4 * i);
            UNROLL for (int q = 0; q < Q; q++) {
                if (i == first) {
                    low[t][q] = vmull_s8(vget_low_s8(code[q]), vget_low_s8(v));
                    high[t][q] = vmull_high_s8(code[q], v);
                } else {
                    low[t][q] = multiply_add(low[t][q], code[q], v, false);
                    high[t][q] = multiply_add(high[t][q], code[q], v, true);
                }
            }
        }
        if (!wide || last - first == 4) read_again();
    }
    UNROLL for (int t = 0; t < T; t++) {
        UNROLL for (int q = 0; q < Q; q++) {
            if (first == 0 || parts_apart(type)) {
                int32x4_t from = start ? start_rows(start[t]) : start_load(w);
                int32x4_t a = vpadalq_s16(from, low[t][q]);
                if (!start) from = start_load(w);
                sum[t][q] = vpaddq_s32(a, vpadalq_s16(from, high[t][q]));
            } else {
                int32x4_t a = vpaddlq_s16(low[t][q]), b = vpaddlq_s16(high[t][q]);
                sum[t][q] = vaddq_s32(sum[t][q], vpaddq_s32(a, b));
                if (start) sum[t][q] = vaddq_s32(sum[t][q], vdupq_n_s32(start[t]));
            }
        }
    }
}

/* The same for signed 8-bit codes, which have one part and no starts of their own. */
ALWAYS_INLINE void dot_bytes(int32x4_t (*sum)[4], const chunk *w, const tokens *x, int j4,
                             const int jj, const int first, const int last, const int quad,
                             const int T, const int Q, const bool wide, const pith_type type) {
    int32x4_t low[4][4], high[4][4];
    UNROLL for (int t = 0; t < T; t++) {
        UNROLL for (int q = 0; q < Q; q++) {
            low[t][q] = start_load(w);
            high[t][q] = start_load(w);
        }
    }
    UNROLL for (int i = first; i < last; i += 2) {
        UNROLL for (int q = 0; q < Q; q++) {
            int8x16_t w0 = code_at(w, j4, jj, i, quad + q, wide, type);
            int8x16_t w1 = code_at(w, j4, jj, i + 1, quad + q, wide, type);
            UNROLL for (int t = 0; t < T; t++) {
                const int8_t *at = x->row[t] + PITH_GROUP * (j4 + jj) + 4 * i;
                int8x16_t x0 = broadcast4(at), x1 = broadcast4(at + 4);
                int16x8_t a = vmull_s8(vget_low_s8(w0), vget_low_s8(x0));
                int16x8_t b = vmull_high_s8(w0, x0);
                low[t][q] = vpadalq_s16(low[t][q], multiply_add(a, w1, x1, false));
                high[t][q] = vpadalq_s16(high[t][q], multiply_add(b, w1, x1, true));
            }
            read_again();
        }
    }
    UNROLL for (int t = 0; t < T; t++) {
        UNROLL for (int q = 0; q < Q; q++) {
            sum[t][q] = vpaddq_s32(low[t][q], high[t][q]);
        }
    }
}

ALWAYS_INLINE void dot_part(int32x4_t (*sum)[4], const chunk *w, const tokens *x,
                            const int32_t *start, int j4, const int jj, const int first,
                            const int last, const int quad, const int T, const int Q,
                            const bool wide, const pith_type type) {
    if (type == PITH_TYPE_Q8_0 || type == PITH_TYPE_IQ4_NL || type == PITH_TYPE_IQ4_XS) {
        dot_bytes(sum, w, x, j4, jj, first, last, quad, T, Q, wide, type);
    } else if (type == FORM_SCALED) { /* codes of 6 bits and sign */
        dot_words(sum, w, x, start, j4, jj, first, 4, quad, T, Q, wide, type);
        dot_words(sum, w, x, start, j4, jj, 4, last, quad, T, Q, wide, type);
    } else {
        dot_words(sum, w, x, start, j4, jj, first, last, quad, T, Q, wide, type);
    }
}

#endif
