/* SPDX-License-Identifier: Apache-2.0
 * Products of quantized weights with 128-bit registers, for the tiers neon, dotprod and i8mm
 * (contract: pith_mul in kernel.h). The file that includes this has included dot_neon.h,
 * dot_dotprod.h or dot_i8mm.h before; it names the kernels.
 *
 * A chunk is 256 k of one panel. One or two tokens take codes straight from the panel; more unpack
 * a chunk once (4 KiB) and pass over it in tiles (tiles_128.h). Types of expansion.h come expanded,
 * however few the tokens: then `type` is their form. */
#ifndef PITH_KERNEL_ARM_MUL_INTEGER_128_H
#define PITH_KERNEL_ARM_MUL_INTEGER_128_H

#include "kernel/arm/expansion_128.h"
#include "kernel/arm/tiles_128.h"

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

/* A scale of 4 rows for each of their 4 codes. */
ALWAYS_INLINE int8x16_t scales_spread(int8x16_t rows, const int quad) {
    static const uint8_t index[16] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
    return vqtbl1q_s8(rows, vaddq_u8(vld1q_u8(index), vdupq_n_u8((uint8_t)(4 * quad))));
}

/* is_folded: code * scale, of Q3_K less that. */
ALWAYS_INLINE int8x16_t code_folded(const uint8_t *panel, int j4, const int jj, const int i,
                                    const int quad, int8x16_t scale, const pith_type type) {
    int8x16_t code = vreinterpretq_s8_u8(code_quad(panel, j4, jj, i, quad, type));
    if (type == PITH_TYPE_Q3_K) code = vsubq_s8(vdupq_n_s8((int8_t)code_offset(type)), code);
    return vmulq_s8(code, scale);
}

ALWAYS_INLINE void unpack_folded(int8_t *out, const uint8_t *panel, const pith_type type) {
    row_scales s;
    row_scales_read(&s, panel, type);
    for (int j4 = 0; j4 < GROUPS; j4 += 4) {
        UNROLL for (int jj = 0; jj < 4; jj++) {
            UNROLL for (int i = 0; i < 8; i += 2) {
                UNROLL for (int q = 0; q < 4; q++) {
                    int8x16_t scale = scales_spread(s.scale[2 * (j4 + jj) + i / 4], q);
                    unpacked_store(out, j4 + jj, i, q,
                                   code_folded(panel, j4, jj, i, q, scale, type),
                                   code_folded(panel, j4, jj, i + 1, q, scale, type));
                }
            }
        }
    }
}

/* Panel bytes of 256 k. how: of a form, how the type is expanded; else not used. */
ALWAYS_INLINE size_t step_of(const expansion *how, const pith_type type) {
    return is_form(type) ? how->chunk_bytes : chunk_bytes(type);
}

/* Unpacked codes and factors of n groups; codes and e are where the codes may lie. */
ALWAYS_INLINE void chunk_read(chunk *w, cell_factors *f, int8_t *codes, expanded *e,
                              const uint8_t *panel, int n, const expansion *how,
                              const pith_type type) {
    if (is_form(type)) {
        how->expand(e, panel, n);
        read_again();
        factors_expanded(f, &e->f, n, type);
        w->unpacked = unpacked_from(e, codes, n);
    } else {
        factors_read(f, panel, n, true, type);
        if (is_folded(true, type))
            unpack_folded(codes, panel, type);
        else
            unpack(codes, panel, n, type);
        w->unpacked = codes;
    }
}

/* n tokens are `full` tiles, of which the last may lack a token, and one of `small` tokens (0:
 * none), which has room for 2 or 4. One token has a tile of its own where codes are expanded; else
 * it is two alike. */
typedef struct division {
    uint32_t full, small;
} division;

ALWAYS_INLINE division divide(uint32_t n_token, const uint32_t tile) {
    const uint32_t rest = n_token % tile;
    return (division){n_token / tile + (rest == tile - 1), rest == tile - 1 ? 0 : rest};
}

ALWAYS_INLINE bool has_single(const pith_type type) {
    return is_form(type) && CELL_TOKENS == 1;
}

/* Tokens from t0 with an unpacked chunk, whose first group is g0 of all. */
ALWAYS_INLINE void tiles(const pith_q8 *q8, const chunk *w, const cell_factors *f, chains *c,
                         size_t t0, uint32_t n_token, size_t g0, int n, const pith_type type) {
    const uint32_t T = (uint32_t)tile_tokens(true, type);
    const division d = divide(n_token, T);
    for (uint32_t i = 0; i < d.full; i++, t0 += T, n_token -= T)
        tile(q8, w, f, c, i, t0, n_token < T ? n_token : T, g0, n, (int)T, true, type);
    if (has_single(type) && d.small == 1)
        tile(q8, w, f, c, d.full, t0, 1, g0, n, 1, true, type);
    else if (T > 4 && d.small > 2)
        tile(q8, w, f, c, d.full, t0, d.small, g0, n, 4, true, type);
    else if (d.small > 0)
        tile(q8, w, f, c, d.full, t0, d.small, g0, n, 2, true, type);
}

ALWAYS_INLINE void tiles_store(const chains *c, float *y, size_t y_stride, uint32_t n_token,
                               const pith_type type) {
    const uint32_t T = (uint32_t)tile_tokens(true, type);
    const division d = divide(n_token, T);
    for (uint32_t i = 0; i < d.full; i++, y += T * y_stride, n_token -= T)
        chains_store(c, i, y, y_stride, n_token < T ? n_token : T, (int)T, type);
    if (has_single(type) && d.small == 1)
        chains_store(c, d.full, y, y_stride, 1, 1, type);
    else if (T > 4 && d.small > 2)
        chains_store(c, d.full, y, y_stride, d.small, 4, type);
    else if (d.small > 0)
        chains_store(c, d.full, y, y_stride, d.small, 2, type);
}

/* Of the first n tiles. */
ALWAYS_INLINE void chains_clear(chains *c, uint32_t n) {
    memset(c->acc, 0, n * sizeof c->acc[0]);
    memset(c->acc_min, 0, n * sizeof c->acc_min[0]);
}

/* Tokens from t0 with one panel. */
ALWAYS_INLINE void pass_wide(const pith_mul *args, const uint8_t *panel, float *y, uint32_t t0,
                             uint32_t n_token, const expansion *how, const pith_type type) {
    _Alignas(64) int8_t codes[CODE_BYTES];
    _Alignas(64) expanded e;
    cell_factors f;
    chains c;
    chunk w = {NULL, NULL, dot_start()};
    chains_clear(&c, (n_token + 3) / 4);
    for (uint32_t g = 0; g < args->k / PITH_GROUP; g += GROUPS, panel += step_of(how, type)) {
        int n = args->k / PITH_GROUP - g < GROUPS ? (int)(args->k / PITH_GROUP - g) : GROUPS;
        chunk_read(&w, &f, codes, &e, panel, n, how, type);
        registers_free();
        tiles(args->q8, &w, &f, &c, t0, n_token, g, n, type);
    }
    tiles_store(&c, y, args->y_stride, n_token, type);
}

/* T tokens with one panel, codes straight from it. */
ALWAYS_INLINE void pass_few(const pith_mul *args, const uint8_t *panel, float *y, const int T,
                            const pith_type type) {
    cell_factors f;
    chains c;
    chunk w = {NULL, NULL, dot_start()};
    chains_clear(&c, 1);
    for (uint32_t g = 0; g < args->k / PITH_GROUP; g += GROUPS, panel += chunk_bytes(type)) {
        int n = args->k / PITH_GROUP - g < GROUPS ? (int)(args->k / PITH_GROUP - g) : GROUPS;
        w.panel = panel;
        factors_read(&f, panel, n, false, type);
        tile(args->q8, &w, &f, &c, 0, 0, (uint32_t)T, g, n, T, false, type);
    }
    chains_store(&c, 0, y, args->y_stride, (uint32_t)T, T, type);
}

ALWAYS_INLINE void mul_passes(const pith_mul *args, const expansion *how, const pith_type type) {
    const bool has_few = !is_form(type) && CELL_TOKENS == 1;
    const uint32_t most = (uint32_t)pass_tokens(type);
    for (uint32_t t = 0; t < args->n; t += most) {
        uint32_t n_token = args->n - t < most ? args->n - t : most;
        for (uint32_t p = 0; p < args->n_panel; p++) {
            const uint8_t *panel = (const uint8_t *)args->w + p * args->panel_bytes;
            float *y = args->y + t * args->y_stride + PITH_PANEL_ROWS * (size_t)p;
            if (args->n == 1 && has_few)
                pass_few(args, panel, y, 1, type);
            else if (args->n == 2 && has_few)
                pass_few(args, panel, y, 2, type);
            else
                pass_wide(args, panel, y, t, n_token, how, type);
        }
    }
}

ALWAYS_INLINE void mul_integer(const pith_mul *args, const pith_type type) {
    mul_passes(args, NULL, type);
}

#endif
