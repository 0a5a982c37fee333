/* SPDX-License-Identifier: Apache-2.0
 * Sums of the tiers neon and dotprod: a register ("cell") holds 4 rows of one token, in the order
 * of the panel. Unpacked codes keep the panel's order: [8 groups][8][64]. The same names for i8mm,
 * whose cells are 2 rows of 2 tokens: dot_i8mm.h. */
#ifndef PITH_KERNEL_ARM_LANES_ROW_128_H
#define PITH_KERNEL_ARM_LANES_ROW_128_H

#include "kernel/arm/codes_128.h"
#include "kernel/expanded.h"

enum {
    CELL_TOKENS = 1,
    TILE = 4,        /* tokens */
    PART_TOKENS = 2, /* of a tile's part, which has PART_QUADS of rows */
    PART_QUADS = 4
};

/* The int8 rows of a tile's tokens, at the first k of a chunk. */
typedef struct tokens {
    const int8_t *row[4];
} tokens;

/* Tokens t0 .. t0 + T - 1, of which only the first `valid` exist: the last one stands for the
 * others. */
ALWAYS_INLINE void tokens_read(tokens *x, const pith_q8 *q8, size_t t0, uint32_t valid, size_t g0,
                               int n, const int T) {
    (void)n;
    UNROLL for (uint32_t t = 0; t < (uint32_t)T; t++) {
        x->row[t] = q8->q + (t0 + (t < valid ? t : valid - 1)) * q8->q_stride + g0 * PITH_GROUP;
    }
}

/* Two code groups of group j into unpacked codes. */
ALWAYS_INLINE void unpacked_store(int8_t *out, int j, int i, int quad, int8x16_t first,
                                  int8x16_t second) {
    int8_t *at = out + (size_t)(8 * j + i) * 64 + 16 * (size_t)quad;
    vst1q_s8(at, first);
    vst1q_s8(at + 64, second);
}

/* Unpacked codes of n groups: expanded ones are as they should be. */
ALWAYS_INLINE const int8_t *unpacked_from(const expanded *e, int8_t *codes, int n) {
    (void)codes;
    (void)n;
    return (const int8_t *)e->code;
}

ALWAYS_INLINE int8x16_t code_at(const chunk *w, int j4, const int jj, const int i, int quad,
                                const bool wide, const pith_type type) {
    if (wide) return vld1q_s8(w->unpacked + (size_t)(8 * (j4 + jj) + i) * 64 + 16 * (size_t)quad);
    return vreinterpretq_s8_u8(code_quad(w->panel, j4, jj, i, quad, type));
}

/* Factors of 4 rows as the cells of a tile need them. */
ALWAYS_INLINE void factor_store(float *out, int quad, float32x4_t rows) {
    vst1q_f32(out + 4 * quad, rows);
}

/* fma(a, d of token x, acc); d: 4 tokens. */
ALWAYS_INLINE float32x4_t fma_token(float32x4_t a, float32x4_t d, const int x, float32x4_t acc) {
    switch (x) {
    case 0: return vfmaq_laneq_f32(acc, a, d, 0);
    case 1: return vfmaq_laneq_f32(acc, a, d, 1);
    case 2: return vfmaq_laneq_f32(acc, a, d, 2);
    default: return vfmaq_laneq_f32(acc, a, d, 3);
    }
}

/* A scalar of each token of a part: those of its columns of cells. */
typedef struct columns {
    float32x2_t two;
} columns;

ALWAYS_INLINE columns columns_load(const float *scalar, const int X) {
    (void)X;
    return (columns){vld1_f32(scalar)};
}

ALWAYS_INLINE float32x4_t times_column(float32x4_t a, columns d, const int x) {
    return x == 0 ? vmulq_lane_f32(a, d.two, 0) : vmulq_lane_f32(a, d.two, 1);
}

/* fma(a, d of column x, acc) */
ALWAYS_INLINE float32x4_t fma_column(float32x4_t a, columns d, const int x, float32x4_t acc) {
    return x == 0 ? vfmaq_lane_f32(acc, a, d.two, 0) : vfmaq_lane_f32(acc, a, d.two, 1);
}

/* The scalar of token t. */
ALWAYS_INLINE void scalar_store(float *out, uint32_t t, float value) {
    out[t] = value;
}

/* Cells [T][Q] of 4 Q rows from `row` -> rows of y; only `valid` tokens are written. */
ALWAYS_INLINE void cells_store(float *y, size_t y_stride, const float32x4_t (*cell)[4],
                               uint32_t valid, const int T, const int Q) {
    UNROLL for (int t = 0; t < T; t++) {
        if ((uint32_t)t >= valid) break;
        UNROLL for (int q = 0; q < Q; q++) {
            vst1q_f32(y + (size_t)t * y_stride + 4 * q, cell[t][q]);
        }
    }
}

#endif
