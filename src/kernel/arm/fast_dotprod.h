/* SPDX-License-Identifier: Apache-2.0
 * Tiles of the fast contract, SDOT form: 16 rows of 3 tokens, whose rows stay where they are. The
 * same names with SMMLA: fast_i8mm.h. User: mul_fast_128.h. */
#ifndef PITH_KERNEL_ARM_FAST_DOTPROD_H
#define PITH_KERNEL_ARM_FAST_DOTPROD_H

#include "kernel/arm/dot_dotprod.h"
#include "kernel/arm/vector_math_neon.h"

enum {
    FAST_TILE = 3,  /* tokens */
    FAST_QUADS = 4, /* of rows */
    FAST_SUMS = PITH_FAST_BLOCK / PITH_FAST_GROUP
};

/* 256 k of a tile's tokens. */
typedef struct fast_tokens {
    const int8_t *row[FAST_TILE];
    const float *d[FAST_TILE]; /* [FAST_SUMS] */
} fast_tokens;

/* Block `block` of tokens t0 .. t0 + T - 1, of which only the first `valid` exist: the last one
 * stands for the others. */
ALWAYS_INLINE void fast_tokens_read(fast_tokens *x, const pith_q8 *q8, size_t t0, uint32_t valid,
                                    size_t block, const int T) {
    UNROLL for (uint32_t t = 0; t < (uint32_t)T; t++) {
        size_t row = t0 + (t < valid ? t : valid - 1);
        x->row[t] = q8->q + row * q8->q_stride + PITH_FAST_BLOCK * block;
        x->d[t] = q8->d + row * q8->d_stride + FAST_SUMS * block;
    }
}

/* sum[t][q] += group i of 64 k with all quads. */
ALWAYS_INLINE void fast_dot(int32x4_t (*sum)[4], const int8_t *codes, const fast_tokens *x, int i,
                            const int T) {
    const size_t at = (size_t)i * PITH_FAST_GROUP;
    codes += 16 * at;
    UNROLL for (int four = 0; four < PITH_FAST_GROUP / 4; four += 4) {
        int8x16_t v[FAST_TILE];
        UNROLL for (int t = 0; t < T; t++) {
            v[t] = vld1q_s8(x->row[t] + at + 4 * four);
        }
        UNROLL for (int g = four; g < four + 4; g++) {
            UNROLL for (int q = 0; q < FAST_QUADS; q++) {
                int8x16_t code = vld1q_s8(codes + 64 * g + 16 * q);
                UNROLL for (int t = 0; t < T; t++) {
                    sum[t][q] = dot_lane(sum[t][q], code, v[t], g % 4);
                }
            }
        }
        sums_keep(sum, T, FAST_QUADS);
    }
}

/* fma(dot, scale of group i of token t, u) */
ALWAYS_INLINE float32x4_t fast_add(float32x4_t dot, const fast_tokens *x, int i, const int t,
                                   const int T, float32x4_t u) {
    (void)T;
    return vfmaq_n_f32(u, dot, x->d[t][i]);
}

#endif
