/* SPDX-License-Identifier: Apache-2.0
 * Products in the fast contract with 128-bit registers, for the tiers dotprod and i8mm (contract:
 * pith_mul in kernel.h; definition: ref/mul_fast_ref.c). The file that includes this has included
 * fast_dotprod.h or fast_i8mm.h before; it names the kernels.
 *
 * 256 k of up to PANELS panels are requantized (requantize_128.h) for up to PASS tokens, which pass
 * over them in tiles of 48 outputs. Every 64 k a tile's 12 sums become floats: a subtraction, since
 * sums start at the bits of MAGIC (tiles_128.h; |dot| <= 64 * 127 * 127 < 2^22), and an fma.
 * So beside two float operations there are 16 SDOT or 8 SMMLA.
 * Registers: 12 sums, 12 chains u, operands. Storing chains every 64 k would cost as much as one of
 * the float operations, so the tile is no larger. */
#ifndef PITH_KERNEL_ARM_MUL_FAST_128_H
#define PITH_KERNEL_ARM_MUL_FAST_128_H

#include "kernel/arm/cells_128.h"
#include "kernel/arm/requantize_128.h"

enum {
    PASS = 258, /* tokens that share requantized codes: that costs what some 16 tokens cost */
    PANELS = 2,
    SMALL_TILE = FAST_TILE / 3,
    PARTS = 4 / FAST_QUADS,         /* tiles of a panel's rows */
    W = FAST_QUADS * CELL_TOKENS,   /* registers of a tile's rows in a column of cells */
    CELLS = FAST_TILE * FAST_QUADS, /* registers of a tile */
    ROW_FLOATS = 16 * CELL_TOKENS   /* a factor of 16 rows, laid out for cells */
};

/* A panel's 256 k. */
typedef struct fast_codes {
    _Alignas(64) int8_t code[CODE_BYTES];
    float scale[ROW_FLOATS];
} fast_codes;

/* y of a panel's rows. */
typedef struct fast_chains {
    float acc[PASS / FAST_TILE][PARTS][4 * CELLS];
} fast_chains;

/* u += dots of 64 k: group i of a tile's rows. codes: from the first of the rows on. */
ALWAYS_INLINE void group(float32x4_t (*u)[4], const int8_t *codes, const fast_tokens *x,
                         const chunk *start, int i, const int T) {
    const int X = T / CELL_TOKENS;
    int32x4_t sum[FAST_TILE][4];
    UNROLL for (int c = 0; c < X; c++) {
        UNROLL for (int r = 0; r < W; r++) {
            sum[c][r] = start_load(start);
        }
    }
    fast_dot(sum, codes, x, i, T);
    UNROLL for (int c = 0; c < X; c++) {
        UNROLL for (int r = 0; r < W; r++) {
            float32x4_t dot =
                vsubq_f32(vreinterpretq_f32_s32(sum[c][r]), vec_set(PITH_ROUND_MAGIC));
            u[c][r] = fast_add(dot, x, i, c, T, u[c][r]);
        }
    }
}

/* 256 k of a tile's rows: acc = fma(u, scale, acc). */
ALWAYS_INLINE void tile_rows(float *acc, const int8_t *codes, const float *scale,
                             const fast_tokens *x, const chunk *start, const int T) {
    const int X = T / CELL_TOKENS;
    float32x4_t u[FAST_TILE][4];
    cells_clear(u, X, W);
    for (int i = 0; i < FAST_SUMS; i++) group(u, codes, x, start, i, T);
    cells_end(acc, u, scale, X, W);
}

/* Tokens t0 .. of a block, `valid` of T, with n panels; their chains are c[..].acc[index]. */
ALWAYS_INLINE void tile(const pith_q8 *q8, const fast_codes *w, fast_chains *c, uint32_t n,
                        uint32_t index, size_t t0, uint32_t valid, size_t block, const int T) {
    const chunk start = {.start = dot_start()};
    fast_tokens x;
    fast_tokens_read(&x, q8, t0, valid, block, T);
    for (uint32_t p = 0; p < n; p++)
        for (int part = 0; part < PARTS; part++)
            tile_rows(c[p].acc[index][part], w[p].code + 64 * part,
                      w[p].scale + part * ROW_FLOATS / PARTS, &x, &start, T);
}

ALWAYS_INLINE void chains_store(const fast_chains *c, uint32_t index, float *y, size_t y_stride,
                                uint32_t valid, const int T) {
    for (int part = 0; part < PARTS; part++) {
        float32x4_t acc[FAST_TILE][4];
        cells_load(acc, c->acc[index][part], T / CELL_TOKENS, W);
        cells_store(y + 4 * FAST_QUADS * part, y_stride, (const float32x4_t(*)[4])acc, valid, T,
                    FAST_QUADS);
    }
}

/* Tokens of tile i of n_token. */
ALWAYS_INLINE uint32_t valid_of(uint32_t i, uint32_t n_token) {
    uint32_t rest = n_token - i * FAST_TILE;
    return rest < FAST_TILE ? rest : FAST_TILE;
}

/* Up to PASS tokens from t0. */
static void tiles(const pith_q8 *q8, const fast_codes *w, fast_chains *c, uint32_t n, size_t t0,
                  uint32_t n_token, size_t block) {
    for (uint32_t i = 0; i * FAST_TILE < n_token; i++, t0 += FAST_TILE) {
        uint32_t valid = valid_of(i, n_token);
        if (valid > SMALL_TILE)
            tile(q8, w, c, n, i, t0, valid, block, FAST_TILE);
        else
            tile(q8, w, c, n, i, t0, valid, block, SMALL_TILE);
    }
}

static void store_all(const fast_chains *c, float *y, size_t y_stride, uint32_t n_token) {
    for (uint32_t i = 0; i * FAST_TILE < n_token; i++, y += FAST_TILE * y_stride) {
        uint32_t valid = valid_of(i, n_token);
        if (valid > SMALL_TILE)
            chains_store(c, i, y, y_stride, valid, FAST_TILE);
        else
            chains_store(c, i, y, y_stride, valid, SMALL_TILE);
    }
}

/* Panel bytes of 256 k. */
ALWAYS_INLINE size_t super_bytes(const pith_type type) {
    const expansion how = expansion_of(type);
    return how.expand ? how.chunk_bytes : chunk_bytes(type);
}

ALWAYS_INLINE void codes_read(fast_codes *out, const uint8_t *panel, const pith_type type) {
    float32x4_t scale[4];
    requantize(out->code, scale, panel, type);
    UNROLL for (int q = 0; q < 4; q++) {
        factor_store(out->scale, q, scale[q]);
    }
    for (size_t i = 0; i < super_bytes(type); i += 64)
        __builtin_prefetch(panel + super_bytes(type) + i);
}

/* n panels from `panel` on with up to PASS tokens from t0. */
ALWAYS_INLINE void pass(const pith_mul *args, const uint8_t *panel, uint32_t n, float *y, size_t t0,
                        uint32_t n_token, const pith_type type) {
    fast_codes w[PANELS];
    fast_chains c[PANELS];
    memset(c, 0, sizeof c);
    for (uint32_t b = 0; b < args->k / PITH_FAST_BLOCK; b++, panel += super_bytes(type)) {
        for (uint32_t p = 0; p < n; p++) codes_read(&w[p], panel + p * args->panel_bytes, type);
        tiles(args->q8, w, c, n, t0, n_token, b);
    }
    for (uint32_t p = 0; p < n; p++)
        store_all(&c[p], y + PITH_PANEL_ROWS * (size_t)p, args->y_stride, n_token);
}

ALWAYS_INLINE void mul_fast(const pith_mul *args, const pith_type type) {
    for (uint32_t t = 0; t < args->n; t += PASS) {
        uint32_t n_token = args->n - t < PASS ? args->n - t : PASS;
        for (uint32_t p = 0; p < args->n_panel; p += PANELS) {
            const uint8_t *panel = (const uint8_t *)args->w + p * args->panel_bytes;
            float *y = args->y + t * args->y_stride + PITH_PANEL_ROWS * (size_t)p;
            pass(args, panel, args->n_panel - p < PANELS ? args->n_panel - p : PANELS, y, t,
                 n_token, type);
        }
    }
}

#endif
