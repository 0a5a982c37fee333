/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 VNNI products in the fast contract (mul_fast: pith_mul in kernel.h; the definition:
 * ref/mul_fast_ref.c).
 *
 * 256 k of one panel are unpacked as for the exact contract, then requantized in place to codes
 * + 128 under one scale a row (requantize_avx512.c); up to PASS tokens meet them in tiles of 12. So
 * whatever the type, what follows products is two float operations every 64 k, and one every 256:
 *
 *   u[t]   = fma(cvt(sum of 16 vpdpbusd - 128 * sum of x), d_x, u[t])
 *   acc[t] = fma(u[t], scale, acc[t])
 *
 * Requantizing costs what 8 tokens cost: PASS is larger than in mul_wide_avx512.c.
 * Registers: 12 sums, 12 u, a code. Read next: mul_wide_avx512.c. */
#include "kernel/x86/mul_avx512.h"
#include "kernel/x86/vector_math_avx512.h"

enum { PASS = 192, GROUPS = WIDE_GROUPS, SUMS = PITH_FAST_BLOCK / PITH_FAST_GROUP };
enum { CODE_ZERO = 128 };

typedef struct scalars {
    float d[TILE_MAX][SUMS];
    int32_t bias[TILE_MAX][SUMS]; /* -128 * sum */
} scalars;

ALWAYS_INLINE void scalars_read(scalars *v, const pith_q8 *q8, size_t at, const int T) {
    UNROLL for (int t = 0; t < T; t++, at += q8->d_stride) {
        __m128i sum = _mm_loadu_si128((const __m128i *)(const void *)(q8->sum + at));
        sum = _mm_sub_epi32(_mm_setzero_si128(), _mm_slli_epi32(sum, 7));
        _mm_store_ps(v->d[t], _mm_loadu_ps(q8->d + at));
        _mm_store_si128((__m128i *)(void *)v->bias[t], sum);
    }
    stored();
}

/* Tokens t0 .. t0 + T - 1 with block `block` of k. */
ALWAYS_INLINE void tile(const pith_q8 *q8, const expanded *w, float (*acc)[16], uint32_t t0,
                        uint32_t block, const int T) {
    _Alignas(64) scalars v;
    __m512 u[TILE_MAX];
    tile_rows x = tile_rows_at(q8, t0, T);
    UNROLL for (int i = 0; i < 4; i++) {
        x.base[i] += (size_t)block * PITH_FAST_BLOCK;
    }
    scalars_read(&v, q8, t0 * q8->d_stride + SUMS * (size_t)block, T);
    UNROLL for (int t = 0; t < T; t++) {
        u[t] = _mm512_setzero_ps();
    }
    for (int i = 0; i < SUMS; i++) {
        __m512i sum[TILE_MAX];
        UNROLL for (int t = 0; t < T; t++) {
            sum[t] = _mm512_set1_epi32(v.bias[t][i]);
        }
        UNROLL for (int half = 0; half < 2; half++) {
            UNROLL for (int g = 0; g < 8; g++) {
                __m512i code = _mm512_load_si512(w->code[2 * i + half][g]);
                UNROLL for (int t = 0; t < T; t++) {
                    DOT(sum[t], code, tile_row(&x, t) + 4 * g);
                }
            }
            tile_rows_next(&x);
        }
        UNROLL for (int t = 0; t < T; t++) {
            u[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[t]), vec_set(v.d[t][i]), u[t]);
        }
    }
    UNROLL for (int t = 0; t < T; t++) {
        fma_store(acc[t], u[t], _mm512_load_ps(w->f.d[0]));
    }
}

static void pass_panel(const pith_mul *args, const wide_type *type, const uint8_t *panel, float *y,
                       uint32_t t0, uint32_t tokens) {
    _Alignas(64) expanded w;
    _Alignas(64) float acc[PASS][16];
    for (uint32_t t = 0; t < tokens; t++) _mm512_store_ps(acc[t], _mm512_setzero_ps());
    for (uint32_t b = 0; b < args->k / PITH_FAST_BLOCK; b++, panel += type->chunk_bytes) {
        uint32_t t = 0;
        type->unpack(&w, panel, GROUPS);
        pith_requantize_avx512(&w, type, CODE_ZERO);
        for (size_t i = 0; i < type->chunk_bytes; i += 64)
            _mm_prefetch((const char *)panel + type->chunk_bytes + AHEAD_L2 + i, _MM_HINT_T1);
        for (; t + 12 <= tokens; t += 12) tile(args->q8, &w, acc + t, t0 + t, b, 12);
        for (; t + 4 <= tokens; t += 4) tile(args->q8, &w, acc + t, t0 + t, b, 4);
        for (; t < tokens; t++) tile(args->q8, &w, acc + t, t0 + t, b, 1);
    }
    for (uint32_t t = 0; t < tokens; t++, y += args->y_stride)
        _mm512_storeu_ps(y, _mm512_load_ps(acc[t]));
}

void pith_mul_fast_wide_avx512(const pith_mul *args, const wide_type *type) {
    for (uint32_t t = 0; t < args->n; t += PASS) {
        uint32_t tokens = args->n - t < PASS ? args->n - t : PASS;
        for (uint32_t p = 0; p < args->n_panel; p++) {
            const uint8_t *panel = (const uint8_t *)args->w + p * args->panel_bytes;
            float *y = args->y + t * args->y_stride + PITH_PANEL_ROWS * (size_t)p;
            pass_panel(args, type, panel, y, t, tokens);
        }
    }
}
