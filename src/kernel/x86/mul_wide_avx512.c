/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 VNNI products with many tokens, for every integer type (contract: pith_mul in kernel.h).
 *
 * 256 k of one panel are unpacked once to unsigned bytes (4 KiB), then met with up to PASS tokens
 * in tiles of 12. So the inner loop is products and the float chain of the contract, nothing else:
 *
 *   SIGNED, AFFINE  acc[t] = fma(cvt(sum of 8 vpdpbusd + bias), d_w * d_x, acc[t])
 *   SUPER, SCALED   s[t]   = fma(cvt(sum + bias) * scale, d_x, s[t])
 *   HALVES, PAIRS   s[t]   = fma(fma(cvt(sum1), scale1, cvt(sum0) * scale0), d_x, s[t])
 *   FLOATS          acc[t] = the same, scales being floats
 *
 * Order of loops: tokens of a pass (their codes stay in L2), panels, 256 k, tiles. Chains rest in
 * `acc` between 256 k. Registers: 12 sums, 12 chains, weight, scale (two scales a group: 8 sums,
 * 8 p, 8 s). Weights of later blocks are prefetched to L2: L1 would lose them to the tokens' codes,
 * and without it unpacking waits for memory (9 tokens took 5.9 times the time of one, now 4.3;
 * Zen 4). Few tokens come here only for types without a kernel of their own for them
 * (mul_expanded_avx512.c); the others: mul_small_avx512.c, mul_super_avx512.c, mul_q6_k_avx512.c,
 * which also hold their unpackers. */
#include "kernel/x86/mul_avx512.h"

enum { PASS = 96, GROUPS = WIDE_GROUPS, SPLIT_TOKENS = 3 };

/* What 256 k of a tile's tokens need besides codes. */
typedef struct scalars {
    float d[TILE_MAX][GROUPS];
    float d_sum[TILE_MAX][GROUPS];        /* d * sum; AFFINE, SUPER */
    int32_t bias[TILE_MAX][2 * GROUPS];   /* -offset * sum; HALVES, FLOATS: -offset * sum16 */
    float half_sum[TILE_MAX][2 * GROUPS]; /* sum16; PAIRS */
} scalars;

ALWAYS_INLINE bool has_minima(const wide_shape shape) {
    return shape == WIDE_AFFINE || shape == WIDE_SUPER || shape == WIDE_PAIRS;
}

ALWAYS_INLINE bool has_halves(const wide_shape shape) {
    return shape == WIDE_HALVES || shape == WIDE_PAIRS || shape == WIDE_FLOATS;
}

typedef struct pass_sums {
    float acc[PASS][16], acc_min[PASS][16];
} pass_sums;

ALWAYS_INLINE void scalars_read(scalars *v, const pith_q8 *q8, size_t at, __mmask8 in, int shift,
                                const int T, const wide_shape shape) {
    const __m128i count = _mm_cvtsi32_si128(shift);
    UNROLL for (int t = 0; t < T; t++) {
        size_t row = at + (size_t)t * q8->d_stride;
        __m256 d = _mm256_maskz_loadu_ps(in, q8->d + row);
        _mm256_store_ps(v->d[t], d);
        if (has_halves(shape)) { /* in pairs, as `in` counts groups */
            __m256i halves = _mm256_maskz_loadu_epi32(in, q8->sum16 + 2 * row);
            __m512i sum = _mm512_cvtepi16_epi32(halves);
            if (shape == WIDE_PAIRS) _mm512_store_ps(v->half_sum[t], _mm512_cvtepi32_ps(sum));
            sum = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_sll_epi32(sum, count));
            _mm512_store_si512(v->bias[t], sum);
            continue;
        }
        __m256i sum = _mm256_maskz_loadu_epi32(in, q8->sum + row);
        if (!has_minima(shape)) {
            sum = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_sll_epi32(sum, count));
            _mm256_store_si256((__m256i *)(void *)v->bias[t], sum);
        } else {
            _mm256_store_ps(v->d_sum[t], _mm256_mul_ps(d, _mm256_cvtepi32_ps(sum)));
        }
    }
    stored();
}

/* sum[t] += code groups first .. last - 1 of group j with the tokens. Three tokens or fewer don't
 * fill the pipe by themselves: each then has two sums, which is no matter for integers. */
ALWAYS_INLINE void dot_groups(const expanded *w, int j, int first, int last, const tile_rows *x,
                              __m512i *sum, const int T) {
    const int n_odd = T <= SPLIT_TOKENS ? T : 0;
    __m512i odd[TILE_MAX];
    UNROLL for (int t = 0; t < n_odd; t++) {
        odd[t] = _mm512_setzero_si512();
    }
    UNROLL for (int g = first; g < last; g++) {
        __m512i code = _mm512_load_si512(w->code[j][g]);
        UNROLL for (int t = 0; t < T; t++) {
            if (n_odd && g % 2)
                DOT(odd[t], code, tile_row(x, t) + 4 * g);
            else
                DOT(sum[t], code, tile_row(x, t) + 4 * g);
        }
    }
    UNROLL for (int t = 0; t < n_odd; t++) {
        sum[t] = _mm512_add_epi32(sum[t], odd[t]);
    }
}

/* SIGNED and AFFINE: n groups, each with its own d. */
ALWAYS_INLINE void tile_small(const expanded *w, tile_rows *x, const scalars *v, int n,
                              float (*acc)[16], const int T, const wide_shape shape) {
    __m512 chain[TILE_MAX];
    UNROLL for (int t = 0; t < T; t++) {
        chain[t] = _mm512_load_ps(acc[t]);
    }
    for (int j = 0; j < n; j++) {
        __m512i sum[TILE_MAX];
        UNROLL for (int t = 0; t < T; t++) {
            sum[t] =
                shape == WIDE_SIGNED ? _mm512_set1_epi32(v->bias[t][j]) : _mm512_setzero_si512();
        }
        dot_groups(w, j, 0, 8, x, sum, T);
        __m512 d = _mm512_load_ps(w->f.d[j]);
        UNROLL for (int t = 0; t < T; t++) {
            __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(v->d[t][j]));
            chain[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[t]), scale, chain[t]);
        }
        tile_rows_next(x);
    }
    UNROLL for (int t = 0; t < T; t++) {
        _mm512_store_ps(acc[t], chain[t]);
    }
}

/* SUPER, SCALED: 8 groups with integer scales under one d. */
ALWAYS_INLINE void tile_super(const expanded *w, tile_rows *x, const scalars *v, float (*acc)[16],
                              const int T, const wide_shape shape) {
    __m512 s[TILE_MAX], d = _mm512_load_ps(w->f.d[0]);
    UNROLL for (int t = 0; t < T; t++) {
        s[t] = _mm512_setzero_ps();
    }
    for (int j = 0; j < GROUPS; j++) {
        __m512i sum[TILE_MAX];
        UNROLL for (int t = 0; t < T; t++) {
            sum[t] =
                shape == WIDE_SCALED ? _mm512_set1_epi32(v->bias[t][j]) : _mm512_setzero_si512();
        }
        dot_groups(w, j, 0, 8, x, sum, T);
        __m512 scale = _mm512_load_ps(w->f.scale[j][0]);
        UNROLL for (int t = 0; t < T; t++) {
            __m512 p = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[t]), scale);
            s[t] = _mm512_fmadd_ps(p, _mm512_set1_ps(v->d[t][j]), s[t]);
        }
        tile_rows_next(x);
    }
    UNROLL for (int t = 0; t < T; t++) {
        fma_store(acc[t], s[t], d);
    }
}

/* HALVES, PAIRS, FLOATS: n groups (8, but of FLOATS) of two sub-blocks. */
ALWAYS_INLINE void tile_halves(const expanded *w, tile_rows *x, const scalars *v, int n,
                               float (*acc)[16], const int T, const wide_shape shape) {
    __m512 s[TILE_MAX], p[TILE_MAX], d = _mm512_load_ps(w->f.d[0]);
    UNROLL for (int t = 0; t < T; t++) {
        s[t] = shape == WIDE_FLOATS ? _mm512_load_ps(acc[t]) : _mm512_setzero_ps();
    }
    for (int j = 0; j < n; j++) {
        UNROLL for (int part = 0; part < 2; part++) {
            __m512i sum[TILE_MAX];
            UNROLL for (int t = 0; t < T; t++) {
                sum[t] = shape == WIDE_PAIRS ? _mm512_setzero_si512()
                                             : _mm512_set1_epi32(v->bias[t][2 * j + part]);
            }
            dot_groups(w, j, 4 * part, 4 * part + 4, x, sum, T);
            __m512 scale = _mm512_load_ps(w->f.scale[j][part]);
            UNROLL for (int t = 0; t < T; t++) {
                __m512 dot = _mm512_cvtepi32_ps(sum[t]);
                p[t] = part ? _mm512_fmadd_ps(dot, scale, p[t]) : _mm512_mul_ps(dot, scale);
            }
        }
        UNROLL for (int t = 0; t < T; t++) {
            s[t] = _mm512_fmadd_ps(p[t], _mm512_set1_ps(v->d[t][j]), s[t]);
        }
        tile_rows_next(x);
    }
    UNROLL for (int t = 0; t < T; t++) {
        if (shape == WIDE_FLOATS)
            _mm512_store_ps(acc[t], s[t]);
        else
            fma_store(acc[t], s[t], d);
    }
}

/* m * sum of a group of PAIRS: exact. */
ALWAYS_INLINE __m512 minima_of_pair(const expanded *w, const float *half_sum, int j) {
    __m512 first =
        _mm512_mul_ps(_mm512_load_ps(w->f.minimum[j][0]), _mm512_set1_ps(half_sum[2 * j]));
    return _mm512_fmadd_ps(_mm512_load_ps(w->f.minimum[j][1]), _mm512_set1_ps(half_sum[2 * j + 1]),
                           first);
}

/* AFFINE: acc_m += m * (d * sum) group by group; SUPER, PAIRS: over the super-block, then times
 * dmin. */
ALWAYS_INLINE void add_minima(const expanded *w, const scalars *v, int n, float (*acc)[16],
                              const int T, const wide_shape shape) {
    __m512 u[TILE_MAX];
    UNROLL for (int t = 0; t < T; t++) {
        u[t] = shape == WIDE_AFFINE ? _mm512_load_ps(acc[t]) : _mm512_setzero_ps();
    }
    for (int j = 0; j < n; j++) {
        __m512 m = _mm512_load_ps(w->f.minimum[j][0]);
        UNROLL for (int t = 0; t < T; t++) {
            if (shape == WIDE_PAIRS)
                u[t] = _mm512_fmadd_ps(minima_of_pair(w, v->half_sum[t], j),
                                       _mm512_set1_ps(v->d[t][j]), u[t]);
            else
                u[t] = _mm512_fmadd_ps(m, _mm512_set1_ps(v->d_sum[t][j]), u[t]);
        }
    }
    UNROLL for (int t = 0; t < T; t++) {
        if (shape == WIDE_AFFINE)
            _mm512_store_ps(acc[t], u[t]);
        else
            fma_store(acc[t], u[t], _mm512_load_ps(w->f.dmin));
    }
}

/* Tokens first .. first + T - 1 of the pass that starts at token t0, groups g0 .. g0 + n - 1. */
ALWAYS_INLINE void tile(const pith_mul *args, const wide_type *type, const expanded *w,
                        pass_sums *sums, uint32_t t0, uint32_t first, uint32_t g0, int n,
                        const int T, const wide_shape shape) {
    _Alignas(64) scalars v;
    const pith_q8 *q8 = args->q8;
    tile_rows x = tile_rows_at(q8, t0 + first, T);
    UNROLL for (int i = 0; i < 4; i++) {
        x.base[i] += (size_t)g0 * PITH_GROUP;
    }
    __mmask8 in = (__mmask8)((1u << n) - 1);
    scalars_read(&v, q8, (size_t)(t0 + first) * q8->d_stride + g0, in, type->offset_shift, T,
                 shape);
    if (shape == WIDE_SUPER || shape == WIDE_SCALED)
        tile_super(w, &x, &v, sums->acc + first, T, shape);
    else if (has_halves(shape))
        tile_halves(w, &x, &v, n, sums->acc + first, T, shape);
    else
        tile_small(w, &x, &v, n, sums->acc + first, T, shape);
    if (has_minima(shape)) add_minima(w, &v, n, sums->acc_min + first, T, shape);
}

/* All tokens of a pass with one unpacked block. */
ALWAYS_INLINE void pass_block(const pith_mul *args, const wide_type *type, const expanded *w,
                              pass_sums *sums, uint32_t t0, uint32_t tokens, uint32_t g0, int n,
                              const wide_shape shape) {
    uint32_t t = 0;
    for (; !has_halves(shape) && t + 12 <= tokens; t += 12)
        tile(args, type, w, sums, t0, t, g0, n, 12, shape);
    for (; t + 8 <= tokens; t += 8) tile(args, type, w, sums, t0, t, g0, n, 8, shape);
    for (; t + 3 <= tokens; t += 3) tile(args, type, w, sums, t0, t, g0, n, 3, shape);
    for (; t < tokens; t++) tile(args, type, w, sums, t0, t, g0, n, 1, shape);
}

ALWAYS_INLINE void pass_panel(const pith_mul *args, const wide_type *type, const uint8_t *panel,
                              float *y, uint32_t t0, uint32_t tokens, const wide_shape shape) {
    _Alignas(64) expanded w;
    _Alignas(64) pass_sums sums;
    for (uint32_t t = 0; t < tokens; t++) {
        _mm512_store_ps(sums.acc[t], _mm512_setzero_ps());
        _mm512_store_ps(sums.acc_min[t], _mm512_setzero_ps());
    }
    for (uint32_t g = 0; g < args->k / PITH_GROUP; g += GROUPS) {
        uint32_t left = args->k / PITH_GROUP - g;
        int n = left < GROUPS ? (int)left : GROUPS;
        type->unpack(&w, panel, n);
        panel += type->chunk_bytes;
        for (size_t i = 0; tokens > FEW_TOKENS && i < type->chunk_bytes; i += 64)
            _mm_prefetch((const char *)panel + AHEAD_L2 + i, _MM_HINT_T1);
        pass_block(args, type, &w, &sums, t0, tokens, g, n, shape);
    }
    for (uint32_t t = 0; t < tokens; t++, y += args->y_stride) {
        __m512 acc = _mm512_load_ps(sums.acc[t]), acc_min = _mm512_load_ps(sums.acc_min[t]);
        if (shape == WIDE_AFFINE) acc = _mm512_add_ps(acc, acc_min);
        if (shape == WIDE_SUPER || shape == WIDE_PAIRS) acc = _mm512_sub_ps(acc, acc_min);
        _mm512_storeu_ps(y, acc);
    }
}

ALWAYS_INLINE void mul(const pith_mul *args, const wide_type *type, const wide_shape shape) {
    for (uint32_t t = 0; t < args->n; t += PASS) {
        uint32_t tokens = args->n - t < PASS ? args->n - t : PASS;
        for (uint32_t p = 0; p < args->n_panel; p++) {
            const uint8_t *panel = (const uint8_t *)args->w + p * args->panel_bytes;
            float *y = args->y + t * args->y_stride + PITH_PANEL_ROWS * (size_t)p;
            pass_panel(args, type, panel, y, t, tokens, shape);
        }
    }
}

void pith_mul_wide_avx512(const pith_mul *args, const wide_type *type) {
    switch (type->shape) {
    case WIDE_SIGNED: mul(args, type, WIDE_SIGNED); break;
    case WIDE_AFFINE: mul(args, type, WIDE_AFFINE); break;
    case WIDE_SUPER: mul(args, type, WIDE_SUPER); break;
    case WIDE_SCALED: mul(args, type, WIDE_SCALED); break;
    case WIDE_HALVES: mul(args, type, WIDE_HALVES); break;
    case WIDE_PAIRS: mul(args, type, WIDE_PAIRS); break;
    case WIDE_FLOATS: mul(args, type, WIDE_FLOATS); break;
    }
}
