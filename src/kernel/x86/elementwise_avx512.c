/* SPDX-License-Identifier: Apache-2.0
 * AVX-512: activations, gates, sums, scaling, the kernels of elementwise.h with vectors of this
 * tier; and rotation, whose pairs each instruction set takes apart in its own way. Same bits as
 * ref/elementwise_ref.c. Read next: elementwise.h. */
#include "kernel/x86/vector_math_avx512.h"

#include "kernel/elementwise.h"
#include "kernel/x86/x86.h"

void pith_silu_mul_avx512(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, vec_silu);
}
void pith_gelu_mul_avx512(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, vec_gelu);
}
void pith_gelu_erf_mul_avx512(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, vec_gelu_erf);
}
void pith_relu2_mul_avx512(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, vec_relu2);
}
void pith_silu_avx512(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_silu);
}
void pith_gelu_avx512(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_gelu);
}
void pith_gelu_erf_avx512(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_gelu_erf);
}
void pith_relu2_avx512(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_relu2);
}
void pith_exp_avx512(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_exp);
}
void pith_add_avx512(float *y, const float *a, const float *b, uint32_t n) {
    add(y, a, b, n);
}
void pith_mul_elements_avx512(float *y, const float *a, const float *b, uint32_t n) {
    mul_elements(y, a, b, n);
}
void pith_scale_avx512(float *y, const float *x, float s, uint32_t n) {
    scale(y, x, s, n);
}
void pith_softcap_avx512(float *y, const float *x, float s, uint32_t n) {
    softcap(y, x, s, n);
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
