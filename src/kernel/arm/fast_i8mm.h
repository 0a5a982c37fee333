/* SPDX-License-Identifier: Apache-2.0
 * Tiles of the fast contract, SMMLA form: 8 rows of 6 tokens, which are woven in pairs
 * (dot_i8mm.h), the pairs of a tile side by side, and their scales laid out for cells. Weaving goes
 * through general registers, since storing a vector takes a vector pipe too; and a tile meets
 * several panels. The same names with SDOT: fast_dotprod.h. User: mul_fast_128.h. */
#ifndef PITH_KERNEL_ARM_FAST_I8MM_H
#define PITH_KERNEL_ARM_FAST_I8MM_H

#include "kernel/arm/dot_i8mm.h"

enum {
    FAST_TILE = 6,  /* tokens */
    FAST_QUADS = 2, /* of rows */
    FAST_SUMS = PITH_FAST_BLOCK / PITH_FAST_GROUP
};

/* 256 k of a tile's tokens: [32][pairs][2 tokens][8 k], [groups of 64][pairs][2 tokens][2]. */
typedef struct fast_tokens {
    _Alignas(64) int8_t woven[FAST_TILE * PITH_FAST_BLOCK];
    _Alignas(64) float d[FAST_SUMS * FAST_TILE * 2];
} fast_tokens;

/* Token t of T. */
ALWAYS_INLINE void token_read(fast_tokens *x, const int8_t *q, const float *d, const int t,
                              const int T) {
    UNROLL for (int e = 0; e < PITH_FAST_BLOCK / 8; e++) {
        copy_8(x->woven + 8 * (T * e + t), q + 8 * e);
    }
    UNROLL for (int i = 0; i < FAST_SUMS; i++) {
        copy_twice(x->d + 2 * (T * i + t), d + i);
    }
}

/* Block `block` of tokens t0 .. t0 + T - 1, of which only the first `valid` exist: the last one
 * stands for the others. */
ALWAYS_INLINE void fast_tokens_read(fast_tokens *x, const pith_q8 *q8, size_t t0, uint32_t valid,
                                    size_t block, const int T) {
    UNROLL for (uint32_t t = 0; t < (uint32_t)T; t++) {
        size_t row = t0 + (t < valid ? t : valid - 1);
        token_read(x, q8->q + row * q8->q_stride + PITH_FAST_BLOCK * block,
                   q8->d + row * q8->d_stride + FAST_SUMS * block, (int)t, T);
    }
}

/* sum[c][p] += group i of 64 k with 4 pairs of rows. codes: unpacked, from the first of the rows
 * on. */
ALWAYS_INLINE void fast_dot(int32x4_t (*sum)[4], const int8_t *codes, const fast_tokens *x, int i,
                            const int T) {
    const int8_t *woven = x->woven + i * PITH_FAST_GROUP * T;
    codes += (size_t)i * PITH_FAST_GROUP * 16;
    UNROLL for (int e = 0; e < PITH_FAST_GROUP / 8; e++) {
        int8x16_t v[FAST_TILE / 2];
        UNROLL for (int c = 0; c < T / 2; c++) {
            v[c] = vld1q_s8(woven + 8 * T * e + 16 * c);
        }
        UNROLL for (int p = 0; p < 2 * FAST_QUADS; p++) {
            int8x16_t code = vld1q_s8(codes + 128 * e + 16 * p);
            UNROLL for (int c = 0; c < T / 2; c++) {
                sum[c][p] = vmmlaq_s32(sum[c][p], v[c], code);
            }
        }
        sums_keep(sum, T / 2, 2 * FAST_QUADS);
    }
}

/* fma(dot, scales of group i of token pair c, u) */
ALWAYS_INLINE float32x4_t fast_add(float32x4_t dot, const fast_tokens *x, int i, const int c,
                                   const int T, float32x4_t u) {
    return vfmaq_f32(u, dot, vld1q_f32(x->d + 2 * T * i + 4 * c));
}

#endif
