/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 activations, gates, sums, scaling and rotation: 16 elements at a time, the last ones
 * under a mask. Formulas and bits: vector_math_avx512.h. Results may overwrite inputs, since each
 * vector is read before it is written. Same bits as ref/elementwise_ref.c. */
#include "kernel/x86/vector_math_avx512.h"
#include "kernel/x86/x86.h"

typedef __m512 (*vector_fn)(__m512 x);

ALWAYS_INLINE void map(float *y, const float *x, uint32_t n, vector_fn f) {
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 in = first_lanes(n - i);
        _mm512_mask_storeu_ps(y + i, in, f(_mm512_maskz_loadu_ps(in, x + i)));
    }
}

ALWAYS_INLINE void gate(float *y, const float *x, const float *up, uint32_t n, vector_fn f) {
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 in = first_lanes(n - i);
        __m512 product =
            _mm512_mul_ps(f(_mm512_maskz_loadu_ps(in, x + i)), _mm512_maskz_loadu_ps(in, up + i));
        _mm512_mask_storeu_ps(y + i, in, product);
    }
}

void pith_silu_mul_avx512(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, ps_silu);
}
void pith_gelu_mul_avx512(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, ps_gelu);
}
void pith_gelu_erf_mul_avx512(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, ps_gelu_erf);
}
void pith_relu2_mul_avx512(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, ps_relu2);
}
void pith_silu_avx512(float *y, const float *x, uint32_t n) {
    map(y, x, n, ps_silu);
}
void pith_gelu_avx512(float *y, const float *x, uint32_t n) {
    map(y, x, n, ps_gelu);
}
void pith_gelu_erf_avx512(float *y, const float *x, uint32_t n) {
    map(y, x, n, ps_gelu_erf);
}
void pith_relu2_avx512(float *y, const float *x, uint32_t n) {
    map(y, x, n, ps_relu2);
}
void pith_exp_avx512(float *y, const float *x, uint32_t n) {
    map(y, x, n, ps_exp);
}

void pith_add_avx512(float *y, const float *a, const float *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 in = first_lanes(n - i);
        __m512 sum =
            _mm512_add_ps(_mm512_maskz_loadu_ps(in, a + i), _mm512_maskz_loadu_ps(in, b + i));
        _mm512_mask_storeu_ps(y + i, in, sum);
    }
}

void pith_mul_elements_avx512(float *y, const float *a, const float *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 in = first_lanes(n - i);
        __m512 product =
            _mm512_mul_ps(_mm512_maskz_loadu_ps(in, a + i), _mm512_maskz_loadu_ps(in, b + i));
        _mm512_mask_storeu_ps(y + i, in, product);
    }
}

void pith_scale_avx512(float *y, const float *x, float s, uint32_t n) {
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 in = first_lanes(n - i);
        _mm512_mask_storeu_ps(y + i, in,
                              _mm512_mul_ps(_mm512_maskz_loadu_ps(in, x + i), ps_set(s)));
    }
}

void pith_softcap_avx512(float *y, const float *x, float s, uint32_t n) {
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 in = first_lanes(n - i);
        __m512 ratio = _mm512_div_ps(_mm512_maskz_loadu_ps(in, x + i), ps_set(s));
        _mm512_mask_storeu_ps(y + i, in, _mm512_mul_ps(ps_set(s), ps_tanh(ratio)));
    }
}

/* Neighbouring pairs: lanes a b a b, table c s c s. Even lanes: fma(a, c, -(b * s)), odd lanes:
 * fma(a, s, b * c). */
void pith_rope_norm_avx512(float *x, const float *table, uint32_t n_rot) {
    for (uint32_t i = 0; i < n_rot; i += 16) {
        __mmask16 in = first_lanes(n_rot - i);
        __m512 v = _mm512_maskz_loadu_ps(in, x + i), cs = _mm512_maskz_loadu_ps(in, table + i);
        __m512 a = _mm512_moveldup_ps(v), b = _mm512_movehdup_ps(v),
               sc = _mm512_permute_ps(cs, 0xB1);
        _mm512_mask_storeu_ps(x + i, in, _mm512_fmaddsub_ps(a, cs, _mm512_mul_ps(b, sc)));
    }
}

/* Halves: a from the first, b from the second; the table is taken apart into cosines and sines. */
void pith_rope_neox_avx512(float *x, const float *table, uint32_t n_rot) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    uint32_t half = n_rot / 2;
    for (uint32_t i = 0; i < half; i += 16) {
        uint32_t left = half - i;
        __mmask16 in = first_lanes(left);
        __m512 t0 = _mm512_maskz_loadu_ps(first_lanes(2 * left), table + 2 * i);
        __m512 t1 =
            _mm512_maskz_loadu_ps(first_lanes(left > 8 ? 2 * left - 16 : 0), table + 2 * i + 16);
        __m512 c = _mm512_permutex2var_ps(t0, even, t1), s = _mm512_permutex2var_ps(t0, odd, t1);
        __m512 a = _mm512_maskz_loadu_ps(in, x + i), b = _mm512_maskz_loadu_ps(in, x + half + i);
        _mm512_mask_storeu_ps(x + i, in, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
        _mm512_mask_storeu_ps(x + half + i, in, _mm512_fmadd_ps(a, s, _mm512_mul_ps(b, c)));
    }
}
