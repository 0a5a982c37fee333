/* SPDX-License-Identifier: Apache-2.0
 * Products of quantized weights with 256-bit registers, for the tiers avx2 and avxvnni (contract:
 * pith_mul in kernel.h). The file that includes this has included dot_avx2.h or dot_avxvnni.h
 * before; it names the kernels.
 *
 * A chunk is 256 k of one panel. One or two tokens take codes straight from the panel; more
 * unpack a chunk once (4 KiB) and pass over it in tiles. The integer sums of a tile (two
 * registers a token) stay in registers over a group of 32 k, the float chains of the contract
 * lie on the stack. All loops over groups are in increasing k. */
#ifndef PITH_KERNEL_X86_MUL_INTEGER_256_H
#define PITH_KERNEL_X86_MUL_INTEGER_256_H

#include "kernel/x86/planes_256.h"

enum { PASS = 60, AHEAD = 4096 };

/* What a chunk of a tile's tokens needs besides codes. */
typedef struct scalars {
    float d[TILE][GROUPS], d_sum[TILE][GROUPS];
    int32_t bias[TILE][2 * GROUPS];   /* -offset * sum; two scales a group: -offset * sum16 */
    float half_sum[TILE][2 * GROUPS]; /* sum16; Q2_K */
} scalars;

typedef struct chains {
    float acc[PASS][16], acc_min[PASS][16], s[PASS][16]; /* s: of the super-block */
} chains;

ALWAYS_INLINE __m256i bias_of(__m256i sum, int shift) {
    const __m256i zero = _mm256_setzero_si256();
    return shift < 0 ? zero : _mm256_sub_epi32(zero, _mm256_slli_epi32(sum, shift));
}

/* Both halves of n groups, as words. */
ALWAYS_INLINE void halves_read(scalars *v, const int16_t *sum16, __m256i in, const int t,
                               const pith_type type) {
    __m256i both = _mm256_maskload_epi32((const int32_t *)(const void *)sum16, in),
            *bias = (__m256i *)(void *)v->bias[t];
    __m256i first = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(both)),
            second = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(both, 1));
    _mm256_storeu_si256(bias, bias_of(first, offset_shift(type)));
    _mm256_storeu_si256(bias + 1, bias_of(second, offset_shift(type)));
    if (type == PITH_TYPE_Q2_K) ps_store(v->half_sum[t], ps_of((lanes16){first, second}));
}

ALWAYS_INLINE void scalars_read(scalars *v, const pith_q8 *q8, size_t at, int n, const int T,
                                const pith_type type) {
    const __m256i in = first_8(n);
    UNROLL for (int t = 0; t < T; t++) {
        size_t row = at + (size_t)t * q8->d_stride;
        __m256 d = _mm256_maskload_ps(q8->d + row, in);
        __m256i sum = _mm256_maskload_epi32(q8->sum + row, in);
        _mm256_storeu_ps(v->d[t], d);
        if (has_minima(type))
            _mm256_storeu_ps(v->d_sum[t], _mm256_mul_ps(d, _mm256_cvtepi32_ps(sum)));
        if (has_halves(type))
            halves_read(v, q8->sum16 + 2 * row, in, t, type);
        else
            _mm256_storeu_si256((__m256i *)(void *)v->bias[t], bias_of(sum, offset_shift(type)));
    }
    stored();
}

/* Group j4 + jj with T tokens: integer sums, p, and the chain of the contract. */
ALWAYS_INLINE void group(const chunk *w, int j4, const int jj, const int8_t *x, size_t stride,
                         const scalars *v, float (*acc)[16], float (*s)[16], const int T,
                         const bool wide, const pith_type type) {
    const int j = j4 + jj, parts = has_halves(type) ? 2 : 1;
    const bool is_scaled = is_super(type) || type == FORM_FLOATS;
    floats16 p[TILE];
    UNROLL for (int part = 0; part < parts; part++) {
        lanes16 sum[TILE];
        UNROLL for (int t = 0; t < T; t++) {
            sum[t] = lanes_set(v->bias[t][parts * j + part]);
        }
        const int first = 8 / parts * part, last = first + 8 / parts;
        if (in_pairs(type))
            dot_group_pairs(w, j4, jj, first, last, x, stride, sum, T, wide, type);
        else if (in_singles(type))
            dot_group_singles(w, j4, jj, first, last, x, stride, sum, T, wide, type);
        else
            dot_groups(w, j4, jj, first, last, x, stride, sum, T, wide, type);
        UNROLL for (int t = 0; t < T; t++) {
            floats16 dot = ps_of(sum[t]), scale = is_scaled ? ps_load(w->f.scale[j][part]) : dot;
            if (!is_scaled)
                p[t] = dot;
            else
                p[t] = part ? ps_fma(dot, scale, p[t]) : ps_mul(dot, scale);
        }
    }
    UNROLL for (int t = 0; t < T; t++) {
        floats16 d = ps_all(v->d[t][j]);
        if (is_super(type))
            ps_fma_store(s[t], p[t], d);
        else if (type == FORM_FLOATS)
            ps_fma_store(acc[t], p[t], d);
        else
            ps_fma_store(acc[t], p[t], ps_mul(ps_load(w->f.d[j]), d));
    }
}

/* acc_m of a chunk (contract: group by group, or over a super-block and then times dmin). */
ALWAYS_INLINE void add_minima(const chunk *w, const scalars *v, int n, float (*acc_min)[16],
                              const int T, const pith_type type) {
    UNROLL for (int t = 0; t < T; t++) {
        floats16 u = is_super(type) ? ps_all(0.0f) : ps_load(acc_min[t]);
        for (int j = 0; j < n; j++) {
            floats16 m = ps_load(w->f.minimum[j][0]);
            if (type == PITH_TYPE_Q2_K) { /* exact */
                m = ps_mul(m, ps_all(v->half_sum[t][2 * j]));
                m = ps_fma(ps_load(w->f.minimum[j][1]), ps_all(v->half_sum[t][2 * j + 1]), m);
            }
            u = ps_fma(m, ps_all(type == PITH_TYPE_Q2_K ? v->d[t][j] : v->d_sum[t][j]), u);
        }
        if (is_super(type))
            ps_fma_store(acc_min[t], u, ps_load(w->f.dmin));
        else
            ps_store(acc_min[t], u);
    }
}

/* The part of a later chunk that belongs to group j. */
ALWAYS_INLINE void prefetch(const uint8_t *panel, int j, const pith_type type) {
    const size_t part = chunk_bytes(type) / GROUPS;
    const char *at = (const char *)panel + AHEAD + (size_t)j * part;
    UNROLL for (size_t i = 0; i < part; i += 64) {
        _mm_prefetch(at + i, _MM_HINT_T0);
    }
}

/* One chunk of n groups with tokens t0 .. t0 + T - 1, whose chains are c[first ..]. */
ALWAYS_INLINE void tile(const pith_q8 *q8, const chunk *w, chains *c, uint32_t t0, uint32_t first,
                        uint32_t g0, int n, const int T, const bool wide, const pith_type type) {
    _Alignas(64) scalars v;
    const int8_t *x = q8->q + t0 * q8->q_stride + (size_t)g0 * PITH_GROUP;
    scalars_read(&v, q8, t0 * q8->d_stride + g0, n, T, type);
    if (has_minima(type)) add_minima(w, &v, n, c->acc_min + first, T, type);
    for (int j4 = 0; j4 < n; j4 += 4) {
        UNROLL for (int jj = 0; jj < 4; jj++) {
            if (j4 + jj >= n) break;
            if (!wide) prefetch(w->panel, j4 + jj, type);
            group(w, j4, jj, x + (size_t)(j4 + jj) * PITH_GROUP, q8->q_stride, &v, c->acc + first,
                  c->s + first, T, wide, type);
        }
    }
    if (!is_super(type)) return;
    UNROLL for (int t = 0; t < T; t++) {
        ps_fma_store(c->acc[first + (uint32_t)t], ps_load(c->s[first + (uint32_t)t]),
                     ps_load(w->f.d[0]));
        ps_store(c->s[first + (uint32_t)t], ps_all(0.0f));
    }
}

ALWAYS_INLINE void tiles(const pith_q8 *q8, const chunk *w, chains *c, uint32_t t0, uint32_t tokens,
                         uint32_t g0, int n, const bool wide, const pith_type type) {
    const uint32_t T = (uint32_t)tile_tokens(type);
    uint32_t t = 0;
    for (; t + T <= tokens; t += T) tile(q8, w, c, t0 + t, t, g0, n, tile_tokens(type), wide, type);
    for (; t + 2 <= tokens; t += 2) tile(q8, w, c, t0 + t, t, g0, n, 2, wide, type);
    if (t < tokens) tile(q8, w, c, t0 + t, t, g0, n, 1, wide, type);
}

ALWAYS_INLINE void chains_clear(chains *c, uint32_t tokens) {
    for (uint32_t t = 0; t < tokens; t++) {
        ps_store(c->acc[t], ps_all(0.0f));
        ps_store(c->acc_min[t], ps_all(0.0f));
        ps_store(c->s[t], ps_all(0.0f));
    }
}

ALWAYS_INLINE void chains_store(const chains *c, float *y, size_t y_stride, uint32_t tokens,
                                const pith_type type) {
    for (uint32_t t = 0; t < tokens; t++) {
        floats16 acc = ps_load(c->acc[t]), acc_min = ps_load(c->acc_min[t]);
        if (has_minima(type)) acc = is_super(type) ? ps_sub(acc, acc_min) : ps_add(acc, acc_min);
        ps_store(y + t * y_stride, acc);
    }
}

/* Up to PASS tokens from t0 with one panel. */
ALWAYS_INLINE void pass_wide(const pith_mul *args, const uint8_t *panel, float *y, uint32_t t0,
                             uint32_t tokens, const pith_type type) {
    _Alignas(64) uint8_t codes[MAX_CODES];
    _Alignas(64) chains c;
    _Alignas(64) chunk w;
    w.unpacked = codes;
    w.panel = NULL;
    chains_clear(&c, tokens);
    for (uint32_t g = 0; g < args->k / PITH_GROUP; g += GROUPS, panel += chunk_bytes(type)) {
        int n = args->k / PITH_GROUP - g < GROUPS ? (int)(args->k / PITH_GROUP - g) : GROUPS;
        factors_read(&w.f, panel, n, type);
        unpack(codes, panel, n, type);
        tiles(args->q8, &w, &c, t0, tokens, g, n, true, type);
    }
    chains_store(&c, y, args->y_stride, tokens, type);
}

/* T tokens with one panel, codes straight from it. */
ALWAYS_INLINE void pass_few(const pith_mul *args, const uint8_t *panel, float *y, const int T,
                            const pith_type type) {
    _Alignas(64) chains c;
    _Alignas(64) chunk w;
    w.unpacked = NULL;
    chains_clear(&c, (uint32_t)T);
    for (uint32_t g = 0; g < args->k / PITH_GROUP; g += GROUPS, panel += chunk_bytes(type)) {
        int n = args->k / PITH_GROUP - g < GROUPS ? (int)(args->k / PITH_GROUP - g) : GROUPS;
        w.panel = panel;
        factors_read(&w.f, panel, n, type);
        tile(args->q8, &w, &c, 0, 0, g, n, T, false, type);
    }
    chains_store(&c, y, args->y_stride, (uint32_t)T, type);
}

ALWAYS_INLINE void mul_integer(const pith_mul *args, const pith_type type) {
    for (uint32_t t = 0; t < args->n; t += PASS) {
        uint32_t tokens = args->n - t < PASS ? args->n - t : PASS;
        for (uint32_t p = 0; p < args->n_panel; p++) {
            const uint8_t *panel = (const uint8_t *)args->w + p * args->panel_bytes;
            float *y = args->y + t * args->y_stride + PITH_PANEL_ROWS * (size_t)p;
            if (args->n == 1)
                pass_few(args, panel, y, 1, type);
            else if (args->n == 2)
                pass_few(args, panel, y, 2, type);
            else
                pass_wide(args, panel, y, t, tokens, type);
        }
    }
}

/* Of a type that has a kernel for one token (mul_one_avx2.h), which serves both tiers: one token is
 * bound by memory and by its loads' order, so vpdpbusd gains it nothing. */
ALWAYS_INLINE void mul_integer_or_one(const pith_mul *args, pith_mul_fn one, const pith_type type) {
    if (args->n == 1)
        one(args);
    else
        mul_integer(args, type);
}

#endif
