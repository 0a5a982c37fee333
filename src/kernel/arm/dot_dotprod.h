/* SPDX-License-Identifier: Apache-2.0
 * The integer dot product of tiers with 128-bit registers, SDOT form: 4 products of bytes a lane
 * are added to a 32-bit sum. The second operand is one lane of a register with 16 activations, so
 * activations need no broadcast. The same names without SDOT: dot_neon.h. Users:
 * tiles_128.h, attend_128.h. */
#ifndef PITH_KERNEL_ARM_DOT_DOTPROD_H
#define PITH_KERNEL_ARM_DOT_DOTPROD_H

#include "kernel/arm/lanes_row_128.h"

enum { FOLDS = 1 }; /* codes may have 8 bits: scales of a few bits go into them (tiles_128.h) */

/* The sums of a group's second part start anew: loading their start is cheaper
 * than the copies that gcc makes of sums that go on. */
ALWAYS_INLINE bool parts_apart(pith_type type) {
    return n_part(type) == 2;
}

/* Where all sums start. */
ALWAYS_INLINE int32x4_t dot_start(void) {
    return vdupq_n_s32(MAGIC_BITS);
}

/* sum + w . 4 activations: lane `lane` (constant) of x. */
ALWAYS_INLINE int32x4_t dot_lane(int32x4_t sum, int8x16_t w, int8x16_t x, const int lane) {
    switch (lane) {
    case 0: return vdotq_laneq_s32(sum, w, x, 0);
    case 1: return vdotq_laneq_s32(sum, w, x, 1);
    case 2: return vdotq_laneq_s32(sum, w, x, 2);
    default: return vdotq_laneq_s32(sum, w, x, 3);
    }
}

/* sum[t][q] += code groups first .. last - 1 of group j4 + jj with quads quad .. quad + Q - 1;
 * first and last are multiples of 4. The first part starts the sums; packed codes have starts of
 * their own, which are added at each part (NULL: none). */
ALWAYS_INLINE void dot_part(int32x4_t (*sum)[4], const chunk *w, const tokens *x,
                            const int32_t *start, int j4, const int jj, const int first,
                            const int last, const int quad, const int T, const int Q,
                            const bool wide, const pith_type type) {
    UNROLL for (int t = 0; t < T; t++) {
        UNROLL for (int q = 0; q < Q; q++) {
            if (first == 0 || parts_apart(type))
                sum[t][q] = start ? vdupq_n_s32(start[t]) : start_load(w);
            else if (start)
                sum[t][q] = vaddq_s32(sum[t][q], vdupq_n_s32(start[t]));
        }
    }
    UNROLL for (int four = first; four < last; four += 4) {
        int8x16_t v[4];
        UNROLL for (int t = 0; t < T; t++) {
            v[t] = vld1q_s8(x->row[t] + PITH_GROUP * (j4 + jj) + 4 * four);
        }
        UNROLL for (int i = four; i < four + 4; i++) {
            UNROLL for (int q = 0; q < Q; q++) {
                int8x16_t code = code_at(w, j4, jj, i, quad + q, wide, type);
                UNROLL for (int t = 0; t < T; t++) {
                    sum[t][q] = dot_lane(sum[t][q], code, v[t], i % 4);
                }
            }
            if (!wide || i % 4 == 3) read_again();
        }
    }
}

#endif
