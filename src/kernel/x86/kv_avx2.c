/* SPDX-License-Identifier: Apache-2.0
 * AVX2: joining of attention partials and writing of one token into a KV page (definitions:
 * attend_ref.c, kv_ref.c). K goes to every 16th place of its panel: values are converted 8 at a
 * time and stored one by one. The scale of an int8 vector comes from the largest magnitude as an
 * integer, so that NaN and infinity come out on top. */
#include "kernel/x86/vector_math_avx2.h"
#include "kernel/x86/x86.h"

enum { PANEL = 16 };

void pith_merge_avx2(float *M, float *L, float *O, float m, float l, const float *o,
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
    for (uint32_t d = 0; d < head_dim_v; d += 8) {
        uint32_t n = head_dim_v - d;
        store_n(O + d, n,
                _mm256_fmadd_ps(load_n(o + d, n), ps_set(b),
                                _mm256_mul_ps(load_n(O + d, n), ps_set(a))));
    }
}

void pith_kv_put_f32_avx2(const pith_kv_put *args) {
    float *k =
        (float *)args->k + (size_t)(args->t / PANEL) * args->head_dim * PANEL + args->t % PANEL;
    float *v = (float *)args->v + (size_t)args->t * args->head_dim_v;
    for (uint32_t d = 0; d < args->head_dim; d++) k[(size_t)d * PANEL] = args->k_row[d];
    memcpy(v, args->v_row, args->head_dim_v * sizeof *v);
}

ALWAYS_INLINE void to_f16(uint16_t half[8], const float *x, uint32_t n) {
    _mm_storeu_si128((__m128i *)(void *)half,
                     _mm256_cvtps_ph(load_n(x, n), _MM_FROUND_TO_NEAREST_INT));
}

void pith_kv_put_f16_avx2(const pith_kv_put *args) {
    uint16_t *k =
        (uint16_t *)args->k + (size_t)(args->t / PANEL) * args->head_dim * PANEL + args->t % PANEL;
    uint16_t *v = (uint16_t *)args->v + (size_t)args->t * args->head_dim_v, half[8];
    for (uint32_t d = 0; d < args->head_dim; d += 8) {
        uint32_t n = args->head_dim - d < 8 ? args->head_dim - d : 8;
        to_f16(half, args->k_row + d, n);
        for (uint32_t i = 0; i < n; i++, k += PANEL) *k = half[i];
    }
    for (uint32_t d = 0; d < args->head_dim_v; d += 8) {
        uint32_t n = args->head_dim_v - d < 8 ? args->head_dim_v - d : 8;
        to_f16(half, args->v_row + d, n);
        memcpy(v + d, half, n * sizeof *half);
    }
}

ALWAYS_INLINE float vector_scale(const float *x, uint32_t n, float *inverse) {
    __m256i amax = _mm256_setzero_si256();
    float d;
    for (uint32_t i = 0; i < n; i += 8) {
        __m256i bits = _mm256_castps_si256(load_n(x + i, n - i));
        amax = _mm256_max_epu32(amax, _mm256_and_si256(bits, _mm256_set1_epi32(INT32_MAX)));
    }
    (void)pith_q8_scale(bits_largest(amax), &d, inverse);
    return d;
}

/* Up to 16 codes; zero when there is no scale. */
ALWAYS_INLINE void to_codes(int8_t code[16], const float *x, uint32_t n, float inverse) {
    __m256i q[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (uint32_t h = 0; inverse > 0.0f && 8 * h < n; h++)
        q[h] = _mm256_cvtps_epi32(_mm256_mul_ps(load_n(x + 8 * h, n - 8 * h), ps_set(inverse)));
    _mm_storeu_si128((__m128i *)(void *)code, bytes_of(q[0], q[1]));
}

void pith_kv_put_i8_avx2(const pith_kv_put *args) {
    int8_t *k = (int8_t *)args->k + (size_t)(args->t / PANEL) * args->head_dim * PANEL +
                args->t % PANEL * 4;
    int8_t *v = (int8_t *)args->v + (size_t)args->t * args->head_dim_v, code[16];
    float inverse;
    args->k_scale[args->t] = vector_scale(args->k_row, args->head_dim, &inverse);
    for (uint32_t d = 0; d < args->head_dim; d += 16) {
        uint32_t n = args->head_dim - d < 16 ? args->head_dim - d : 16;
        to_codes(code, args->k_row + d, n, inverse);
        for (uint32_t i = 0; i < n; i += 4, k += PANEL * 4) memcpy(k, code + i, 4);
    }
    args->v_scale[args->t] = vector_scale(args->v_row, args->head_dim_v, &inverse);
    for (uint32_t d = 0; d < args->head_dim_v; d += 16) {
        uint32_t n = args->head_dim_v - d < 16 ? args->head_dim_v - d : 16;
        to_codes(code, args->v_row + d, n, inverse);
        memcpy(v + d, code, n);
    }
}
