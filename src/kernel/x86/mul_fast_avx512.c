/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 VNNI products in the fast contract (mul_fast: pith_mul in kernel.h; the definition:
 * ref/mul_fast_ref.c).
 *
 * 256 k of one panel are unpacked as for the exact contract, then requantized in place to codes
 * + 128 under one scale a row; up to PASS tokens meet them in tiles of 12. So whatever the type,
 * what follows products is two float operations every 64 k, and one every 256:
 *
 *   u[t]   = fma(cvt(sum of 16 vpdpbusd - 128 * sum of x), d_x, u[t])
 *   acc[t] = fma(u[t], scale, acc[t])
 *
 * Requantizing is 16-bit arithmetic, code' = (code * factor + start) >> 8, even bytes and odd bytes
 * apart; factor and start are a row's, so a 32-bit lane, which holds 4 k of one row, has each
 * twice. It costs what 8 tokens cost: PASS is larger than in mul_wide_avx512.c.
 * Registers: 12 sums, 12 u, a code. Read next: mul_wide_avx512.c. */
#include "kernel/x86/mul_avx512.h"
#include "kernel/x86/vector_math_avx512.h"

enum { PASS = 192, GROUPS = WIDE_GROUPS, SUMS = PITH_FAST_BLOCK / PITH_FAST_GROUP };

/* ---- Requantizing ---- */

/* value = scale * code + start, of 16 k (of 32, where a shape has no halves). */
typedef struct affine {
    __m512 scale, start;
} affine;

ALWAYS_INLINE int n_half(const wide_shape shape) {
    return shape == WIDE_HALVES || shape == WIDE_PAIRS ? 2 : 1;
}

ALWAYS_INLINE affine affine_of(const factors *f, int j, int half, const wide_shape shape) {
    affine a = {_mm512_mul_ps(_mm512_load_ps(f->d[0]), _mm512_load_ps(f->scale[j][half])),
                _mm512_setzero_ps()};
    if (shape == WIDE_SUPER || shape == WIDE_PAIRS)
        a.start = _mm512_sub_ps(
            a.start, _mm512_mul_ps(_mm512_load_ps(f->dmin), _mm512_load_ps(f->minimum[j][half])));
    return a;
}

/* The low word of each lane, twice. */
ALWAYS_INLINE __m512i word_twice(__m512i v) {
    return _mm512_mask_blend_epi16(0xAAAAAAAA, v, _mm512_slli_epi32(v, 16));
}

ALWAYS_INLINE void requantize_codes(uint8_t (*code)[64], int n, __m512i factor, __m512i start) {
    const __m512i low = _mm512_set1_epi16(0xFF), high = _mm512_set1_epi16((short)0xFF00);
    UNROLL for (int g = 0; g < n; g++) {
        __m512i v = _mm512_load_si512(code[g]);
        __m512i even = _mm512_and_si512(v, low), odd = _mm512_srli_epi16(v, 8);
        even = _mm512_add_epi16(_mm512_mullo_epi16(even, factor), start);
        odd = _mm512_add_epi16(_mm512_mullo_epi16(odd, factor), start);
        _mm512_store_si512(code[g], join(_mm512_srli_epi16(even, 8), odd, high));
    }
}

/* Codes become codes + 128 under the scale d[0]. */
ALWAYS_INLINE void requantize_shape(expanded *w, const wide_type *type, const wide_shape shape) {
    const __m512 most = vec_set((float)type->code_max);
    affine a[GROUPS][2];
    __m512i amax = _mm512_setzero_si512();
    for (int j = 0; j < GROUPS; j++) UNROLL for (int half = 0; half < n_half(shape); half++) {
            affine *at = &a[j][half];
            *at = affine_of(&w->f, j, half, shape);
            __m512 end = _mm512_fmadd_ps(at->scale, most, at->start);
            amax = _mm512_max_epu32(amax, vec_magnitude(end));
            amax = _mm512_max_epu32(amax, vec_magnitude(at->start));
        }
    __m512 d, inverse;
    __mmask16 used = vec_q8_scale(amax, &d, &inverse);
    inverse = _mm512_mul_ps(inverse, vec_set(256.0f));
    _mm512_store_ps(w->f.d[0], d);
    bool has_offset = shape == WIDE_SCALED || shape == WIDE_HALVES;
    const __m512i offset = _mm512_set1_epi32(has_offset ? 1 << type->offset_shift : 0);
    for (int j = 0; j < GROUPS; j++) UNROLL for (int half = 0; half < n_half(shape); half++) {
            const affine *at = &a[j][half];
            __m512i factor = _mm512_maskz_cvtps_epi32(used, _mm512_mul_ps(at->scale, inverse));
            __m512i start = _mm512_maskz_cvtps_epi32(used, _mm512_mul_ps(at->start, inverse));
            start = _mm512_add_epi32(start, _mm512_set1_epi32(128 * 256 + 128));
            start = _mm512_sub_epi32(start, _mm512_mullo_epi32(factor, offset));
            requantize_codes(w->code[j] + 4 * half, 8 / n_half(shape), word_twice(factor),
                             word_twice(start));
        }
}

static void requantize(expanded *w, const wide_type *type) {
    switch (type->shape) {
    case WIDE_SUPER: requantize_shape(w, type, WIDE_SUPER); break;
    case WIDE_SCALED: requantize_shape(w, type, WIDE_SCALED); break;
    case WIDE_HALVES: requantize_shape(w, type, WIDE_HALVES); break;
    case WIDE_PAIRS: requantize_shape(w, type, WIDE_PAIRS); break;
    default: break; /* no type in blocks of 256 */
    }
    stored();
}

/* ---- Products ---- */

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
        requantize(&w, type);
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
