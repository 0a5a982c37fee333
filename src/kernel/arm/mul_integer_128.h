/* SPDX-License-Identifier: Apache-2.0
 * Products of quantized weights with 128-bit registers, for the tiers neon, dotprod and i8mm
 * (contract: pith_mul in kernel.h). The file that includes this has included dot_neon.h,
 * dot_dotprod.h or dot_i8mm.h before; it names the kernels.
 *
 * A chunk is 256 k of one panel. One or two tokens take codes straight from the panel; more unpack
 * a chunk once (4 KiB) and pass over it in tiles of 8 rows and 4 tokens. A tile is 8 registers
 * ("cells") of integer sums and 8 of float chains, which stay in registers over the whole chunk.
 *
 * Integers become floats without a conversion: sums start at the bits of MAGIC = 1.5 * 2^23, so
 * that as floats they are MAGIC + dot, exactly, while |dot| < 2^22. Then dot = sum - MAGIC, and
 * for K types scale * dot = fma(sum, scale, -scale * MAGIC): all are integers that floats hold, so
 * these are exact too. All loops over groups are in increasing k. */
#ifndef PITH_KERNEL_ARM_MUL_INTEGER_128_H
#define PITH_KERNEL_ARM_MUL_INTEGER_128_H

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

/* p of a group: exact. K types: scale * dot, for each part added to the one before. Two parts share
 * their sums: s0 dot0 + s1 dot1 = (s0 - s1) dot0 + s1 (dot0 + dot1), every term below 2^24. */
ALWAYS_INLINE void products(float32x4_t (*p)[4], int32x4_t (*sum)[4], const float *scale,
                            const float *shift, const int part, const int X, const int W,
                            const pith_type type) {
    UNROLL for (int i = 0; i < W; i++) {
        UNROLL for (int x = 0; x < X; x++) {
            float32x4_t v = vreinterpretq_f32_s32(sum[x][i]);
            if (is_super(type))
                v = vec_fma(v, vld1q_f32(scale + 4 * i), load_fresh(shift + 4 * i));
            else
                v = vsubq_f32(v, vec_set(MAGIC));
            p[x][i] = part ? vaddq_f32(p[x][i], v) : v;
        }
    }
}

/* Group j4 + jj: integer sums, p, and the chain of the contract. */
ALWAYS_INLINE void group(const chunk *w, const factors *f, const tokens *x, const scalars *v,
                         float32x4_t (*chain)[4], int j4, const int jj, const int quad, const int T,
                         const int Q, const bool wide, const pith_type type) {
    const int j = j4 + jj, parts = n_part(type), X = T / CELL_TOKENS, W = Q * CELL_TOKENS;
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
        float32x4_t d_w = is_super(type) ? d : vld1q_f32(f->d[j] + from + 4 * i);
        UNROLL for (int c = 0; c < X; c++) {
            chain[c][i] = is_super(type) ? fma_token(p[c][i], d, c, chain[c][i])
                                         : vec_fma(p[c][i], times_token(d_w, d, c), chain[c][i]);
        }
    }
}

/* acc_m of a chunk (contract: group by group, or over a super-block and then times dmin). */
ALWAYS_INLINE void add_minima(const factors *f, const scalars *v, float *acc_min, int n,
                              const int quad, const int T, const int Q, const pith_type type) {
    const int X = T / CELL_TOKENS, W = Q * CELL_TOKENS;
    const size_t from = (size_t)quad * 4 * CELL_TOKENS;
    float32x4_t u[4][4];
    if (is_super(type))
        cells_clear(u, X, W);
    else
        cells_load(u, acc_min, X, W);
    for (int j = 0; j < n; j++) {
        float32x4_t d_sum = vld1q_f32(v->d_sum[j]);
        UNROLL for (int i = 0; i < W; i++) {
            float32x4_t m = vld1q_f32(f->minimum[j] + from + 4 * i);
            UNROLL for (int x = 0; x < X; x++) {
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
ALWAYS_INLINE void tile_rows(const chunk *w, const factors *f, const tokens *x, const scalars *v,
                             float *acc, float *acc_min, int n, const int quad, const int T,
                             const int Q, const bool wide, const pith_type type) {
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

/* Tokens t0 .. of a chunk, `valid` of T; their chains are c->acc[index]. */
ALWAYS_INLINE void tile(const pith_q8 *q8, const chunk *w, const factors *f, chains *c,
                        uint32_t index, size_t t0, uint32_t valid, size_t g0, int n, const int T,
                        const bool wide, const pith_type type) {
    const int Q = wide ? 2 : 4;
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

/* ---- passes ---- */

ALWAYS_INLINE void unpack(int8_t *out, const uint8_t *panel, int n, const pith_type type) {
    for (int j4 = 0; j4 < n; j4 += 4) {
        UNROLL for (int jj = 0; jj < 4; jj++) {
            if (j4 + jj >= n) break;
            UNROLL for (int i = 0; i < 8; i += 2) {
                UNROLL for (int q = 0; q < 4; q++) {
                    unpacked_store(out, j4 + jj, i, q, code_signed(panel, j4, jj, i, q, type),
                                   code_signed(panel, j4, jj, i + 1, q, type));
                }
            }
        }
    }
}

ALWAYS_INLINE void chains_store(const chains *c, uint32_t index, float *y, size_t y_stride,
                                uint32_t valid, const int T, const int Q, const pith_type type) {
    const int X = T / CELL_TOKENS, W = Q * CELL_TOKENS;
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

/* Up to PASS tokens from t0 with one panel. */
ALWAYS_INLINE void pass_wide(const pith_mul *args, const uint8_t *panel, float *y, uint32_t t0,
                             uint32_t n_token, const pith_type type) {
    _Alignas(64) int8_t codes[CODE_BYTES];
    factors f;
    chains c;
    chunk w = {NULL, codes, dot_start()};
    const uint32_t whole = n_token / TILE, rest = n_token % TILE;
    memset(&c, 0, sizeof c);
    for (uint32_t g = 0; g < args->k / PITH_GROUP; g += GROUPS, panel += chunk_bytes(type)) {
        int n = args->k / PITH_GROUP - g < GROUPS ? (int)(args->k / PITH_GROUP - g) : GROUPS;
        factors_read(&f, panel, n, type);
        unpack(codes, panel, n, type);
        for (uint32_t i = 0; i < whole + (rest == 3); i++)
            tile(args->q8, &w, &f, &c, i, t0 + TILE * i, i < whole ? TILE : rest, g, n, TILE, true,
                 type);
        if (rest == 1 || rest == 2)
            tile(args->q8, &w, &f, &c, whole, t0 + TILE * whole, rest, g, n, 2, true, type);
    }
    for (uint32_t i = 0; i < whole + (rest == 3); i++)
        chains_store(&c, i, y + (size_t)i * TILE * args->y_stride, args->y_stride,
                     i < whole ? TILE : rest, TILE, 2, type);
    if (rest == 1 || rest == 2)
        chains_store(&c, whole, y + (size_t)whole * TILE * args->y_stride, args->y_stride, rest, 2,
                     2, type);
}

/* T tokens with one panel, codes straight from it. */
ALWAYS_INLINE void pass_few(const pith_mul *args, const uint8_t *panel, float *y, const int T,
                            const pith_type type) {
    factors f;
    chains c;
    chunk w = {NULL, NULL, dot_start()};
    memset(c.acc[0], 0, sizeof c.acc[0]);
    memset(c.acc_min[0], 0, sizeof c.acc_min[0]);
    for (uint32_t g = 0; g < args->k / PITH_GROUP; g += GROUPS, panel += chunk_bytes(type)) {
        int n = args->k / PITH_GROUP - g < GROUPS ? (int)(args->k / PITH_GROUP - g) : GROUPS;
        w.panel = panel;
        factors_read(&f, panel, n, type);
        tile(args->q8, &w, &f, &c, 0, 0, (uint32_t)T, g, n, T, false, type);
    }
    chains_store(&c, 0, y, args->y_stride, (uint32_t)T, T, 4, type);
}

ALWAYS_INLINE void mul_integer(const pith_mul *args, const pith_type type) {
    for (uint32_t t = 0; t < args->n; t += PASS) {
        uint32_t n_token = args->n - t < PASS ? args->n - t : PASS;
        for (uint32_t p = 0; p < args->n_panel; p++) {
            const uint8_t *panel = (const uint8_t *)args->w + p * args->panel_bytes;
            float *y = args->y + t * args->y_stride + PITH_PANEL_ROWS * (size_t)p;
            if (args->n == 1 && CELL_TOKENS == 1)
                pass_few(args, panel, y, 1, type);
            else if (args->n == 2 && CELL_TOKENS == 1)
                pass_few(args, panel, y, 2, type);
            else
                pass_wide(args, panel, y, t, n_token, type);
        }
    }
}

#endif
