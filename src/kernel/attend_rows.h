/* SPDX-License-Identifier: Apache-2.0
 * Attention of query rows over one KV page (contract: pith_attend in kernel.h; bits:
 * ref/attend_ref.c). One source for all tiers: the file that includes this has included the vectors
 * of its tier (x86/vector_math_avx2.h, ...) before and set two numbers: ATTEND_ROWS, the rows of
 * the largest block, and ATTEND_LOADS, the vectors of V that are loaded together. It gives `scores`
 * and `load_v` and cuts the rows into blocks.
 *
 * The rows of a block share every load of K and V; those of the first block also ask for the next
 * page. Scores, then weights, of the whole page wait in `block`; values of R rows x C vectors of d
 * stay in registers while the tokens pass in order. What all rows of a block see is done together,
 * the edges row by row. Slots outside a row's range are computed but never used. */
#ifndef PITH_KERNEL_ATTEND_ROWS_H
#define PITH_KERNEL_ATTEND_ROWS_H

#include "kernel/kernel.h"

typedef enum kind { F32, F16, I8 } kind;

enum { TOKENS = PITH_PAGE_TOKENS };

typedef struct block {
    float p[ATTEND_ROWS][TOKENS];
    uint32_t begin[ATTEND_ROWS], end[ATTEND_ROWS]; /* tokens that each row sees */
    const char *ahead_k, *ahead_v;                 /* the page to prefetch */
} block;

/* Asks for n elements from `index` on of the page that comes next, into the second cache: the first
 * is full of this page. */
ALWAYS_INLINE void ask_ahead(const char *page, size_t index, const int n, const kind type) {
    const size_t size = type == F32 ? 4 : type == F16 ? 2 : 1;
    UNROLL for (size_t i = 0; i < (size_t)n * size; i += 64) {
        __builtin_prefetch(page + index * size + i, 0, 2);
    }
}

/* ---- What a tier gives ---- */

/* q . k of R rows from `row` and tokens [first, last) -> b->p, which is zero before. */
ALWAYS_INLINE void scores(const pith_attend *args, block *b, uint32_t row, uint32_t first,
                          uint32_t last, const int R, const kind type);
/* C vectors of V from element `index`: as many as are loaded together, or fewer (1, 2). Of a single
 * one only n elements may exist. */
ALWAYS_INLINE void load_v(vec *out, const void *v, size_t index, uint32_t n, const int C,
                          const kind type);

/* ---- Weights ---- */

/* Scores of row r of the block -> weights exp(s - m); m and l of row `row`. int8: weights times
 * v_scale. */
ALWAYS_INLINE void soften(const pith_attend *args, block *b, uint32_t row, uint32_t r,
                          const kind type) {
    vec top = vec_set(-INFINITY), sums[N_VEC];
    for (uint32_t t = 0; t < TOKENS; t += VEC_LANES) {
        vec s = vec_mul(vec_load(b->p[r] + t), vec_set(args->scale));
        if (args->softcap > 0.0f) {
            vec cap = vec_set(args->softcap);
            s = vec_mul(cap, vec_tanh(vec_div(s, cap)));
        }
        top = vec_choose(vec_between(b->begin[r], b->end[r], t), vec_larger(s, top), top);
        vec_store(b->p[r] + t, s);
    }
    float m = vec_largest(top) + 0.0f;
    if (b->begin[r] < b->end[r] && m == -INFINITY) m = NAN;
    UNROLL for (int h = 0; h < N_VEC; h++) {
        sums[h] = vec_set(0.0f);
    }
    for (uint32_t i = 0; i < TOKENS; i += 16) UNROLL for (uint32_t h = 0; h < N_VEC; h++) {
            const uint32_t t = i + VEC_LANES * h;
            vec_mask in = vec_between(b->begin[r], b->end[r], t);
            vec p = vec_keep(in, vec_exp(vec_sub(vec_load(b->p[r] + t), vec_set(m))));
            sums[h] = vec_add(sums[h], p);
            if (type == I8) p = vec_keep(in, vec_mul(p, vec_load(args->page.v_scale + t)));
            vec_store(b->p[r] + t, p);
        }
    args->m[row] = m;
    args->l[row] = vec_fold(sums);
}

/* ---- Values ---- */

/* o[r][d ..) of C vectors over tokens [from, to) for R rows of a block from row r0; with C = 1 the
 * vector may be the last one, in part. */
ALWAYS_INLINE void values_at(const pith_attend *args, const block *b, uint32_t row, uint32_t r0,
                             uint32_t d, uint32_t from, uint32_t to, const int R, const int C,
                             const kind type) {
    const int loads = C < ATTEND_LOADS ? C : ATTEND_LOADS;
    vec o[ATTEND_ROWS][4], v[ATTEND_LOADS];
    float *out = args->o + (row + r0) * args->o_stride + d;
    const uint32_t n = C > 1 ? VEC_LANES : args->head_dim_v - d;
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C; c++) {
            o[r][c] = load_n(out + (size_t)r * args->o_stride + VEC_LANES * c, n);
        }
    }
    for (uint32_t t = from; t < to; t++) {
        UNROLL for (int c = 0; c < C; c++) {
            const size_t index = (size_t)t * args->head_dim_v + d + VEC_LANES * (uint32_t)c;
            if (C == 4 && c == 0) ask_ahead(b->ahead_v, index, VEC_LANES * C, type);
            if (c % loads == 0) load_v(v, args->page.v, index, n, loads, type);
            UNROLL for (int r = 0; r < R; r++) {
                o[r][c] = vec_fma(vec_set(b->p[r0 + (uint32_t)r][t]), v[c % loads], o[r][c]);
            }
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int c = 0; c < C; c++) {
            store_n(out + (size_t)r * args->o_stride + VEC_LANES * c, n, o[r][c]);
        }
    }
}

/* All d over tokens [from, to). */
ALWAYS_INLINE void values(const pith_attend *args, const block *b, uint32_t row, uint32_t r0,
                          uint32_t from, uint32_t to, const int R, const kind type) {
    enum { V = VEC_LANES };
    uint32_t d = 0, width = args->head_dim_v;
    if (from >= to) return;
    for (; d + 4 * V <= width; d += 4 * V) values_at(args, b, row, r0, d, from, to, R, 4, type);
    for (; d + 2 * V <= width; d += 2 * V) values_at(args, b, row, r0, d, from, to, R, 2, type);
    for (; d < width; d += V) values_at(args, b, row, r0, d, from, to, R, 1, type);
}

/* ---- A block of R rows ---- */

ALWAYS_INLINE void attend_block(const pith_attend *args, uint32_t row, const int R,
                                const kind type) {
    block b;
    uint32_t first = TOKENS, last = 0, common_begin = 0, common_end = TOKENS;
    for (uint32_t r = 0; r < (uint32_t)R; r++) {
        bool some = args->begin[row + r] < args->end[row + r];
        b.begin[r] = some ? (uint32_t)args->begin[row + r] : 0;
        b.end[r] = some ? (uint32_t)args->end[row + r] : 0;
        if (some && b.begin[r] < first) first = b.begin[r];
        if (b.end[r] > last) last = b.end[r];
        if (b.begin[r] > common_begin) common_begin = b.begin[r];
        if (b.end[r] < common_end) common_end = b.end[r];
        memset(args->o + (row + r) * args->o_stride, 0, args->head_dim_v * sizeof(float));
    }
    memset(b.p, 0, sizeof b.p);
    const bool asks = row == 0 && args->next_k; /* else this page, which costs nothing */
    b.ahead_k = asks ? args->next_k : args->page.k;
    b.ahead_v = asks ? args->next_v : args->page.v;
    scores(args, &b, row, first, last, R, type);
    for (uint32_t r = 0; r < (uint32_t)R; r++) soften(args, &b, row + r, r, type);
    bool shared = common_begin < common_end;
    for (uint32_t r = 0; r < (uint32_t)R; r++)
        values(args, &b, row, r, b.begin[r], shared ? common_begin : b.end[r], 1, type);
    if (!shared) return;
    values(args, &b, row, 0, common_begin, common_end, R, type);
    for (uint32_t r = 0; r < (uint32_t)R; r++)
        values(args, &b, row, r, common_end, b.end[r], 1, type);
}

#endif
