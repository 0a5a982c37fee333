/* SPDX-License-Identifier: Apache-2.0
 * AVX-512: joining of attention partials and writing of one token into a KV page (definitions:
 * attend_ref.c, kv_ref.c). K goes to every 16th place of its panel: values are converted 16 at a
 * time and stored one by one. The scale of an int8 vector comes from the largest magnitude as an
 * integer, so that NaN and infinity come out on top. */
#include "kernel/x86/vector_math_avx512.h"
#include "kernel/x86/x86.h"

enum { PANEL = 16 };

void pith_merge_avx512(float *M, float *L, float *O, float m, float l, const float *o,
                       uint32_t head_dim_v) {
    if (m == -INFINITY) return;
    if (*M == -INFINITY) {
        *M = m;
        *L = l;
        memcpy(O, o, head_dim_v * sizeof *O);
        return;
    }
    float top = m > *M ? m : *M, a = pith_exp(*M - top), b = pith_exp(m - top);
    *M = top;
    *L = pith_fma(l, b, *L * a);
    for (uint32_t d = 0; d < head_dim_v; d += 16) {
        __mmask16 in = first_lanes(head_dim_v - d);
        __m512 old = _mm512_mul_ps(_mm512_maskz_loadu_ps(in, O + d), ps_set(a));
        _mm512_mask_storeu_ps(O + d, in,
                              _mm512_fmadd_ps(_mm512_maskz_loadu_ps(in, o + d), ps_set(b), old));
    }
}

void pith_kv_put_f32_avx512(const pith_kv_put *args) {
    float *k =
        (float *)args->k + (size_t)(args->t / PANEL) * args->head_dim * PANEL + args->t % PANEL;
    float *v = (float *)args->v + (size_t)args->t * args->head_dim_v;
    for (uint32_t d = 0; d < args->head_dim; d++) k[(size_t)d * PANEL] = args->k_row[d];
    memcpy(v, args->v_row, args->head_dim_v * sizeof *v);
}

ALWAYS_INLINE __m256i to_f16(const float *x, __mmask16 in) {
    return _mm512_maskz_cvtps_ph(in, _mm512_maskz_loadu_ps(in, x),
                                 _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

void pith_kv_put_f16_avx512(const pith_kv_put *args) {
    uint16_t *k =
        (uint16_t *)args->k + (size_t)(args->t / PANEL) * args->head_dim * PANEL + args->t % PANEL;
    uint16_t *v = (uint16_t *)args->v + (size_t)args->t * args->head_dim_v;
    for (uint32_t d = 0; d < args->head_dim; d += 16) {
        uint32_t n = args->head_dim - d < 16 ? args->head_dim - d : 16;
        uint16_t half[16];
        _mm256_storeu_si256((__m256i *)(void *)half, to_f16(args->k_row + d, first_lanes(n)));
        for (uint32_t i = 0; i < n; i++, k += PANEL) *k = half[i];
    }
    for (uint32_t d = 0; d < args->head_dim_v; d += 16) {
        __mmask16 in = first_lanes(args->head_dim_v - d);
        _mm256_mask_storeu_epi16(v + d, in, to_f16(args->v_row + d, in));
    }
}

ALWAYS_INLINE float vector_scale(const float *x, uint32_t n, float *inverse) {
    __m512i amax = _mm512_setzero_si512();
    float d;
    for (uint32_t i = 0; i < n; i += 16) {
        __m512i v = _mm512_maskz_loadu_epi32(first_lanes(n - i), x + i);
        amax = _mm512_max_epu32(amax, _mm512_and_si512(v, _mm512_set1_epi32(INT32_MAX)));
    }
    (void)pith_q8_scale(_mm512_reduce_max_epu32(amax), &d, inverse);
    return d;
}

/* 16 codes; zero when there is no scale. */
ALWAYS_INLINE __m128i codes(const float *x, float inverse, __mmask16 in) {
    __mmask16 used = inverse > 0.0f ? in : 0;
    return _mm512_cvtsepi32_epi8(
        _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_maskz_loadu_ps(used, x), ps_set(inverse))));
}

void pith_kv_put_i8_avx512(const pith_kv_put *args) {
    int8_t *k = (int8_t *)args->k + (size_t)(args->t / PANEL) * args->head_dim * PANEL +
                args->t % PANEL * 4;
    int8_t *v = (int8_t *)args->v + (size_t)args->t * args->head_dim_v;
    float inverse;
    args->k_scale[args->t] = vector_scale(args->k_row, args->head_dim, &inverse);
    for (uint32_t d = 0; d < args->head_dim; d += 16) {
        uint32_t n = args->head_dim - d < 16 ? args->head_dim - d : 16;
        int8_t code[16];
        _mm_storeu_si128((__m128i *)(void *)code, codes(args->k_row + d, inverse, first_lanes(n)));
        for (uint32_t i = 0; i < n; i += 4, k += PANEL * 4) memcpy(k, code + i, 4);
    }
    args->v_scale[args->t] = vector_scale(args->v_row, args->head_dim_v, &inverse);
    for (uint32_t d = 0; d < args->head_dim_v; d += 16) {
        __mmask16 in = first_lanes(args->head_dim_v - d);
        _mm_mask_storeu_epi8(v + d, in, codes(args->v_row + d, inverse, in));
    }
}
