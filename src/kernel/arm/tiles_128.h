/* SPDX-License-Identifier: Apache-2.0
 * The tiles of products of quantized weights with 128-bit registers: T tokens with 256 k of 16 rows
 * ("chunk") in parts, which have all rows or all tokens. A part is 8 (i8mm: 12) registers ("cells")
 * of integer sums and as many of float chains, which stay in registers over the whole chunk. Minima
 * have a pass of their own (minima_128.h). The file that includes this has included dot_neon.h,
 * dot_dotprod.h or dot_i8mm.h. User: mul_integer_128.h.
 *
 * Integers become floats without a conversion: sums start at the bits of MAGIC = 1.5 * 2^23, so
 * that as floats they are MAGIC + dot, exactly, while |dot| < 2^22. Then dot = sum - MAGIC, and
 * for K types scale * dot = fma(sum, scale, -scale * MAGIC): all are integers that floats hold, so
 * these are exact too. All loops over groups are in increasing k.
 *
 * Where a tier takes codes of 8 bits, unpacked codes of Q2_K (0..3) and Q3_K (-4..3) are multiplied
 * by their scales (0..15, -32..31) before: p is then one dot of 32, the same whole number. Those of
 * Q3_K are also negated, since of -124..128 only the negative numbers are bytes. */
#ifndef PITH_KERNEL_ARM_TILES_128_H
#define PITH_KERNEL_ARM_TILES_128_H

#include "kernel/arm/minima_128.h"

enum {
    PASS = 64, /* tokens that share an unpacked chunk: pass_tokens */
    AHEAD = 2048
};

typedef struct chains {
    float acc[PASS / 4][TILE_FLOATS], acc_min[PASS / 4][TILE_FLOATS];
} chains;

/* Sums of a group that have scales of their own. */
ALWAYS_INLINE int sum_parts(const bool wide, const pith_type type) {
    return is_folded(wide, type) ? 1 : n_part(type);
}

/* ---- parts: T tokens with Q quads of rows from quad `quad`; X x W cells ---- */

/* Tokens of a whole tile: with two sums a group registers are scarce. */
ALWAYS_INLINE int tile_tokens(const bool wide, const pith_type type) {
    return sum_parts(wide, type) == 2 ? 4 : TILE;
}

/* Tokens that share an unpacked chunk: PASS, or as many more as make whole tiles. */
ALWAYS_INLINE int pass_tokens(const pith_type type) {
    const int t = tile_tokens(true, type);
    return (PASS + t - 1) / t * t;
}

/* p of a cell's group. K types: scale * dot, for each part added to the one before, exact. Parts
 * that are not apart share their sums: s0 dot0 + s1 dot1 = (s0 - s1) dot0 + s1 (dot0 + dot1), every
 * term below 2^24. Float scales: the dots of the parts, rounded as the contract says. */
ALWAYS_INLINE float32x4_t product(float32x4_t before, int32x4_t sum, float32x4_t scale,
                                  const float *shift, const int part, const bool wide,
                                  const pith_type type) {
    float32x4_t v = vreinterpretq_f32_s32(sum);
    if (is_folded(wide, type) && type == PITH_TYPE_Q3_K)
        v = vsubq_f32(vec_set(MAGIC), v);
    else if (has_scales(type) && !is_folded(wide, type))
        v = vec_fma(v, scale, load_fresh(shift));
    else
        v = vsubq_f32(v, vec_set(MAGIC));
    if (type == FORM_FLOATS) return part ? vec_fma(v, scale, before) : vmulq_f32(v, scale);
    return part ? vaddq_f32(before, v) : v;
}

/* Group j4 + jj: integer sums, p, and the chain of the contract. */
ALWAYS_INLINE void group(const chunk *w, const cell_factors *f, const tokens *x, const scalars *v,
                         float32x4_t (*chain)[4], int j4, const int jj, int token, const int quad,
                         const int T, const int Q, const bool wide, const pith_type type) {
    const int j = j4 + jj, parts = sum_parts(wide, type), X = T / CELL_TOKENS, W = Q * CELL_TOKENS;
    const bool takes_d = is_super(type) || type == FORM_FLOATS; /* of the token alone */
    const size_t from = (size_t)quad * 4 * CELL_TOKENS;
    float32x4_t p[4][4];
    int32x4_t sum[4][4];
    UNROLL for (int part = 0; part < parts; part++) {
        const int first = 8 / parts * part, last = first + 8 / parts;
        const int32_t *start = !wide && code_offset(type) != 0 ? v->start[j][part] : NULL;
        dot_part(sum, w, x, start, j4, jj, first, last, quad, T, Q, wide, type);
        if (part + 1 == parts) break;
        UNROLL for (int i = 0; i < W; i++) {
            float32x4_t scale = vld1q_f32(f->scale[j][part] + from + 4 * i);
            UNROLL for (int c = 0; c < X; c++) {
                p[c][i] = product(scale, sum[c][i], scale, f->shift[j][part] + from + 4 * i, part,
                                  wide, type);
            }
            read_again();
        }
    }
    const columns d = columns_load(v->d[j] + (size_t)(CELL_TOKENS * token), X);
    UNROLL for (int i = 0; i < W; i++) {
        float32x4_t scale = vld1q_f32(f->scale[j][parts - 1] + from + 4 * i),
                    d_w = vld1q_f32(f->d[takes_d ? 0 : j] + from + 4 * i);
        UNROLL for (int c = 0; c < X; c++) {
            float32x4_t dot = product(p[c][i], sum[c][i], scale,
                                      f->shift[j][parts - 1] + from + 4 * i, parts - 1, wide, type);
            chain[c][i] = takes_d ? fma_column(dot, d, c, chain[c][i])
                                  : vec_fma(dot, times_column(d_w, d, c), chain[c][i]);
        }
        if (CELL_TOKENS > 1) read_again();
    }
}

/* The part of a later chunk that belongs to a group. */
ALWAYS_INLINE void prefetch(const uint8_t *panel, int j, const pith_type type) {
    const size_t part = chunk_bytes(type) / GROUPS;
    UNROLL for (size_t i = 0; i < part; i += 64) {
        __builtin_prefetch(panel + AHEAD + (size_t)j * part + i);
    }
}

/* One chunk of n groups; acc: the chains of these rows and tokens. */
ALWAYS_INLINE void tile_rows(const chunk *w, const cell_factors *f, const tokens *x,
                             const scalars *v, float *acc, int n, int token, const int quad,
                             const int T, const int Q, const bool wide, const pith_type type) {
    const int X = T / CELL_TOKENS, W = Q * CELL_TOKENS;
    float32x4_t chain[4][4];
    if (is_super(type))
        cells_clear(chain, X, W);
    else
        cells_load(chain, acc, X, W);
    if (wide) {
        for (int j = 0; j < n; j++) group(w, f, x, v, chain, j, 0, token, quad, T, Q, true, type);
    } else {
        for (int j4 = 0; j4 < n; j4 += 4) {
            UNROLL for (int jj = 0; jj < 4; jj++) {
                if (j4 + jj >= n) break;
                prefetch(w->panel, j4 + jj, type);
                group(w, f, x, v, chain, j4, jj, token, quad, T, Q, false, type);
            }
        }
    }
    if (is_super(type))
        cells_end(acc, chain, f->d[0] + (size_t)quad * 4 * CELL_TOKENS, X, W);
    else
        cells_keep(acc, chain, X, W);
}

/* Tokens t0 .. of a chunk, `valid` of T; their chains are c->acc[index]. */
ALWAYS_INLINE void tile(const pith_q8 *q8, const chunk *w, const cell_factors *f, chains *c,
                        uint32_t index, size_t t0, uint32_t valid, size_t g0, int n, const int T,
                        const bool wide, const pith_type type) {
    scalars v;
    tokens x;
    scalars_read(&v, q8, t0 * q8->d_stride + g0, valid, n, T, wide, type);
    if (has_minima(type)) add_minima(f, &v, c->acc_min[index], n, T, type);
    float *acc = c->acc[index];
    for (uint32_t token = 0; token < (uint32_t)T; token += (uint32_t)part_tokens(T)) {
        tokens_read(&x, q8, t0 + token, valid - token, g0, n, part_tokens(T));
        for (int quad = 0; quad < 4; quad += PART_QUADS, acc += PART_FLOATS)
            tile_rows(w, f, &x, &v, acc, n, (int)token, quad, part_tokens(T), PART_QUADS, wide,
                      type);
    }
}

/* Tile `index`: y of `valid` tokens. */
ALWAYS_INLINE void chains_store(const chains *c, uint32_t index, float *y, size_t y_stride,
                                uint32_t valid, const int T, const pith_type type) {
    const int X = part_tokens(T) / CELL_TOKENS, W = PART_QUADS * CELL_TOKENS;
    for (int part = 0; part < n_parts(T); part++) {
        const uint32_t token = (uint32_t)part_token(T, part);
        float32x4_t acc[4][4], acc_min[4][4];
        cells_load(acc, c->acc[index] + part * PART_FLOATS, X, W);
        cells_load(acc_min, c->acc_min[index] + part * PART_FLOATS, X, W);
        UNROLL for (int x = 0; x < X; x++) {
            UNROLL for (int i = 0; i < W; i++) {
                if (has_minima(type))
                    acc[x][i] = is_super(type) ? vsubq_f32(acc[x][i], acc_min[x][i])
                                               : vaddq_f32(acc[x][i], acc_min[x][i]);
            }
        }
        cells_store(y + token * y_stride + 4 * part_quad(T, part), y_stride, acc, valid - token,
                    part_tokens(T), PART_QUADS);
    }
}

#endif
