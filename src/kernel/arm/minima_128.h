/* SPDX-License-Identifier: Apache-2.0
 * The parts of a tile of products, and what minima add to them: u of the contract (pith_mul in
 * kernel.h), for a whole tile, since a chain goes on only every 4 cycles. The file that includes
 * this has included dot_neon.h, dot_dotprod.h or dot_i8mm.h before. User: tiles_128.h. */
#ifndef PITH_KERNEL_ARM_MINIMA_128_H
#define PITH_KERNEL_ARM_MINIMA_128_H

#include "kernel/arm/cells_128.h"
#include "kernel/arm/factors_128.h"

enum { TILE_FLOATS = 16 * TILE, PART_FLOATS = TILE_FLOATS / 2 };

/* Of a tile of T tokens. */
ALWAYS_INLINE int part_tokens(const int T) {
    return T < PART_TOKENS ? T : PART_TOKENS;
}

ALWAYS_INLINE int n_parts(const int T) {
    return T / part_tokens(T) * (4 / PART_QUADS);
}

/* First token and first quad of part i: one of the two is 0. */
ALWAYS_INLINE int part_token(const int T, int i) {
    return part_tokens(T) * (i % (T / part_tokens(T)));
}

ALWAYS_INLINE int part_quad(const int T, int i) {
    return PART_QUADS * (i / (T / part_tokens(T)));
}

/* m0 * sum16_0 + m1 * sum16_1 of column x: exact. */
ALWAYS_INLINE float32x4_t minimum_sum(float32x4_t m0, float32x4_t m1, const columns *half_sum,
                                      const int x) {
    return fma_column(m1, half_sum[1], x, times_column(m0, half_sum[0], x));
}

/* u of a part from token `token` and quad `quad` on, group j. */
ALWAYS_INLINE void minima_group(float32x4_t (*u)[4], const cell_factors *f, const scalars *v, int j,
                                const int token, const int quad, const int X,
                                const pith_type type) {
    const bool halves = has_half_minima(type);
    const size_t at = (size_t)(CELL_TOKENS * token), from = (size_t)quad * 4 * CELL_TOKENS;
    const columns d_sum = columns_load((halves ? v->d[j] : v->d_sum[j]) + at, X),
                  half_sum[2] = {columns_load(v->half_sum[0][j] + at, X),
                                 columns_load(v->half_sum[1][j] + at, X)};
    UNROLL for (int i = 0; i < PART_QUADS * CELL_TOKENS; i++) {
        float32x4_t m0 = vld1q_f32(f->minimum[j][0] + from + 4 * i), m1 = m0;
        if (halves) m1 = vld1q_f32(f->minimum[j][1] + from + 4 * i);
        UNROLL for (int x = 0; x < X; x++) {
            u[x][i] = fma_column(halves ? minimum_sum(m0, m1, half_sum, x) : m0, d_sum, x, u[x][i]);
        }
    }
}

/* acc_m of parts first .. last - 1 of a tile. */
ALWAYS_INLINE void minima_pass(const cell_factors *f, const scalars *v, float *acc_min, int n,
                               const int first, const int last, const int T, const pith_type type) {
    const int X = part_tokens(T) / CELL_TOKENS, W = PART_QUADS * CELL_TOKENS;
    float32x4_t u[2][4][4];
    UNROLL for (int h = first; h < last; h++) {
        if (is_super(type))
            cells_clear(u[h], X, W);
        else
            cells_load(u[h], acc_min + h * PART_FLOATS, X, W);
    }
    ROLLED for (int j = 0; j < n; j++) {
        UNROLL for (int h = first; h < last; h++) {
            minima_group(u[h], f, v, j, part_token(T, h), part_quad(T, h), X, type);
        }
    }
    UNROLL for (int h = first; h < last; h++) {
        const float *dmin = f->dmin + (size_t)part_quad(T, h) * 4 * CELL_TOKENS;
        if (is_super(type))
            cells_end(acc_min + h * PART_FLOATS, u[h], dmin, X, W);
        else
            cells_keep(acc_min + h * PART_FLOATS, u[h], X, W);
    }
}

/* acc_m of a tile's chunk (contract: group by group, or over a super-block and then times dmin).
 * Half minima need registers for three scalars a column, and have enough to do in one part. */
ALWAYS_INLINE void add_minima(const cell_factors *f, const scalars *v, float *acc_min, int n,
                              const int T, const pith_type type) {
    const int at_once = has_half_minima(type) ? 1 : n_parts(T);
    UNROLL for (int h = 0; h < n_parts(T); h += at_once) {
        minima_pass(f, v, acc_min, n, h, h + at_once, T, type);
    }
}

#endif
