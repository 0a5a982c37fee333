/* SPDX-License-Identifier: Apache-2.0
 * The tiles of products of quantized weights with 128-bit registers: T tokens with 256 k of 16 rows
 * ("chunk"), 8 rows and 4 tokens at a time, or 16 rows of fewer tokens. A tile is 8 registers
 * ("cells") of integer sums and 8 of float chains, which stay in registers over the whole chunk.
 * The file that includes this has included dot_neon.h, dot_dotprod.h or dot_i8mm.h. User:
 * mul_integer_128.h.
 *
 * Integers become floats without a conversion: sums start at the bits of MAGIC = 1.5 * 2^23, so
 * that as floats they are MAGIC + dot, exactly, while |dot| < 2^22. Then dot = sum - MAGIC, and
 * for K types scale * dot = fma(sum, scale, -scale * MAGIC): all are integers that floats hold, so
 * these are exact too. All loops over groups are in increasing k. */
#ifndef PITH_KERNEL_ARM_TILES_128_H
#define PITH_KERNEL_ARM_TILES_128_H

#include "kernel/arm/cells_128.h"
#include "kernel/arm/factors_128.h"

enum {
    PASS = 64, /* tokens that share an unpacked chunk */
    AHEAD = 2048,
    TILE_FLOATS = 16 * TILE
};

typedef struct chains {
    float acc[PASS / TILE][TILE_FLOATS], acc_min[PASS / TILE][TILE_FLOATS];
} chains;

/* ---- tiles: T tokens with Q quads of rows from quad `quad`; X x W cells ---- */

/* p of a group. K types: scale * dot, for each part added to the one before, exact. Two parts share
 * their sums: s0 dot0 + s1 dot1 = (s0 - s1) dot0 + s1 (dot0 + dot1), every term below 2^24. Float
 * scales: the dots of the parts, rounded as the contract says. */
ALWAYS_INLINE void products(float32x4_t (*p)[4], int32x4_t (*sum)[4], const float *scale,
                            const float *shift, const int part, const int X, const int W,
                            const pith_type type) {
    UNROLL for (int i = 0; i < W; i++) {
        UNROLL for (int x = 0; x < X; x++) {
            float32x4_t v = vreinterpretq_f32_s32(sum[x][i]);
            if (has_scales(type))
                v = vec_fma(v, vld1q_f32(scale + 4 * i), load_fresh(shift + 4 * i));
            else
                v = vsubq_f32(v, vec_set(MAGIC));
            if (type == FORM_FLOATS)
                p[x][i] = part ? vec_fma(v, vld1q_f32(scale + 4 * i), p[x][i])
                               : vmulq_f32(v, vld1q_f32(scale + 4 * i));
            else
                p[x][i] = part ? vaddq_f32(p[x][i], v) : v;
        }
    }
}

/* Group j4 + jj: integer sums, p, and the chain of the contract. */
ALWAYS_INLINE void group(const chunk *w, const cell_factors *f, const tokens *x, const scalars *v,
                         float32x4_t (*chain)[4], int j4, const int jj, const int quad, const int T,
                         const int Q, const bool wide, const pith_type type) {
    const int j = j4 + jj, parts = n_part(type), X = T / CELL_TOKENS, W = Q * CELL_TOKENS;
    const bool takes_d = is_super(type) || type == FORM_FLOATS; /* of the token alone */
    const size_t from = (size_t)quad * 4 * CELL_TOKENS;
    float32x4_t p[4][4], d = vld1q_f32(v->d[j]);
    int32x4_t sum[4][4];
    UNROLL for (int part = 0; part < parts; part++) {
        const int first = 8 / parts * part, last = first + 8 / parts;
        const int32_t *start = !wide && code_offset(type) != 0 ? v->start[j][part] : NULL;
        dot_part(sum, w, x, start, j4, jj, first, last, quad, T, Q, wide, type);
        products(p, sum, f->scale[j][part] + from, f->shift[j][part] + from, part, X, W, type);
    }
    UNROLL for (int i = 0; i < W; i++) {
        float32x4_t d_w = takes_d ? d : vld1q_f32(f->d[j] + from + 4 * i);
        UNROLL for (int c = 0; c < X; c++) {
            chain[c][i] = takes_d ? fma_token(p[c][i], d, c, chain[c][i])
                                  : vec_fma(p[c][i], times_token(d_w, d, c), chain[c][i]);
        }
    }
}

/* m0 * sum16_0 + m1 * sum16_1 of token (or pair of tokens) x: exact. */
ALWAYS_INLINE float32x4_t minimum_sum(float32x4_t m0, float32x4_t m1, const scalars *v, int j,
                                      const int x) {
    float32x4_t first = vld1q_f32(v->half_sum[0][j]), second = vld1q_f32(v->half_sum[1][j]);
    return fma_token(m1, second, x, times_token(m0, first, x));
}

/* acc_m of a chunk (contract: group by group, or over a super-block and then times dmin). */
ALWAYS_INLINE void add_minima(const cell_factors *f, const scalars *v, float *acc_min, int n,
                              const int quad, const int T, const int Q, const pith_type type) {
    const int X = T / CELL_TOKENS, W = Q * CELL_TOKENS;
    const size_t from = (size_t)quad * 4 * CELL_TOKENS;
    const bool halves = has_half_minima(type);
    float32x4_t u[4][4];
    if (is_super(type))
        cells_clear(u, X, W);
    else
        cells_load(u, acc_min, X, W);
    for (int j = 0; j < n; j++) {
        float32x4_t d_sum = vld1q_f32(halves ? v->d[j] : v->d_sum[j]);
        UNROLL for (int i = 0; i < W; i++) {
            float32x4_t m0 = vld1q_f32(f->minimum[j][0] + from + 4 * i), m1 = m0;
            if (halves) m1 = vld1q_f32(f->minimum[j][1] + from + 4 * i);
            UNROLL for (int x = 0; x < X; x++) {
                float32x4_t m = halves ? minimum_sum(m0, m1, v, j, x) : m0;
                u[x][i] = fma_token(m, d_sum, x, u[x][i]);
            }
        }
    }
    if (is_super(type))
        cells_end(acc_min, u, f->dmin + from, X, W);
    else
        cells_keep(acc_min, u, X, W);
}

/* The part of a later chunk that belongs to a group. */
ALWAYS_INLINE void prefetch(const uint8_t *panel, int j, const pith_type type) {
    const size_t part = chunk_bytes(type) / GROUPS;
    UNROLL for (size_t i = 0; i < part; i += 64) {
        __builtin_prefetch(panel + AHEAD + (size_t)j * part + i);
    }
}

/* One chunk of n groups; acc, acc_min: the chains of these rows and tokens. */
ALWAYS_INLINE void tile_rows(const chunk *w, const cell_factors *f, const tokens *x,
                             const scalars *v, float *acc, float *acc_min, int n, const int quad,
                             const int T, const int Q, const bool wide, const pith_type type) {
    const int X = T / CELL_TOKENS, W = Q * CELL_TOKENS;
    float32x4_t chain[4][4];
    if (has_minima(type)) add_minima(f, v, acc_min, n, quad, T, Q, type);
    if (is_super(type))
        cells_clear(chain, X, W);
    else
        cells_load(chain, acc, X, W);
    if (wide) {
        for (int j = 0; j < n; j++) group(w, f, x, v, chain, j, 0, quad, T, Q, true, type);
    } else {
        for (int j4 = 0; j4 < n; j4 += 4) {
            UNROLL for (int jj = 0; jj < 4; jj++) {
                if (j4 + jj >= n) break;
                prefetch(w->panel, j4 + jj, type);
                group(w, f, x, v, chain, j4, jj, quad, T, Q, false, type);
            }
        }
    }
    if (is_super(type))
        cells_end(acc, chain, f->d[0] + (size_t)quad * 4 * CELL_TOKENS, X, W);
    else
        cells_keep(acc, chain, X, W);
}

/* Quads of rows that a tile takes at a time: all, where tokens are few. A cell of two tokens leaves
 * no room for that. */
ALWAYS_INLINE int tile_quads(const int T) {
    return T == TILE || CELL_TOKENS > 1 ? 2 : 4;
}

/* Tokens t0 .. of a chunk, `valid` of T; their chains are c->acc[index]. */
ALWAYS_INLINE void tile(const pith_q8 *q8, const chunk *w, const cell_factors *f, chains *c,
                        uint32_t index, size_t t0, uint32_t valid, size_t g0, int n, const int T,
                        const bool wide, const pith_type type) {
    const int Q = tile_quads(T);
    scalars v;
    tokens x;
    scalars_read(&v, q8, t0 * q8->d_stride + g0, valid, n, T, wide, type);
    tokens_read(&x, q8, t0, valid, g0, n, T);
    for (int quad = 0; quad < 4; quad += Q) {
        size_t at = (size_t)quad / 2 * TILE_FLOATS / 2;
        tile_rows(w, f, &x, &v, c->acc[index] + at, c->acc_min[index] + at, n, quad, T, Q, wide,
                  type);
    }
}

/* Tile `index`: y of `valid` tokens. */
ALWAYS_INLINE void chains_store(const chains *c, uint32_t index, float *y, size_t y_stride,
                                uint32_t valid, const int T, const pith_type type) {
    const int Q = tile_quads(T), X = T / CELL_TOKENS, W = Q * CELL_TOKENS;
    for (int quad = 0; quad < 4; quad += Q) {
        size_t at = (size_t)quad / 2 * TILE_FLOATS / 2;
        float32x4_t acc[4][4], acc_min[4][4];
        cells_load(acc, c->acc[index] + at, X, W);
        cells_load(acc_min, c->acc_min[index] + at, X, W);
        UNROLL for (int x = 0; x < X; x++) {
            UNROLL for (int i = 0; i < W; i++) {
                if (has_minima(type))
                    acc[x][i] = is_super(type) ? vsubq_f32(acc[x][i], acc_min[x][i])
                                               : vaddq_f32(acc[x][i], acc_min[x][i]);
            }
        }
        cells_store(y + 4 * quad, y_stride, acc, valid, T, Q);
    }
}

#endif
