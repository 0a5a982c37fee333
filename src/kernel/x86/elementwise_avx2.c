/* SPDX-License-Identifier: Apache-2.0
 * AVX2: activations, gates, sums, scaling, the kernels of elementwise.h with vectors of this tier;
 * and rotation, whose pairs each instruction set takes apart in its own way. Same bits as
 * ref/elementwise_ref.c. Read next: elementwise.h. */
#include "kernel/x86/vector_math_avx2.h"

#include "kernel/elementwise.h"
#include "kernel/x86/x86.h"

void pith_silu_mul_avx2(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, vec_silu);
}
void pith_gelu_mul_avx2(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, vec_gelu);
}
void pith_gelu_erf_mul_avx2(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, vec_gelu_erf);
}
void pith_relu2_mul_avx2(float *y, const float *g, const float *up, uint32_t n) {
    gate(y, g, up, n, vec_relu2);
}
void pith_silu_avx2(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_silu);
}
void pith_gelu_avx2(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_gelu);
}
void pith_gelu_erf_avx2(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_gelu_erf);
}
void pith_relu2_avx2(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_relu2);
}
void pith_exp_avx2(float *y, const float *x, uint32_t n) {
    map(y, x, n, vec_exp);
}
void pith_add_avx2(float *y, const float *a, const float *b, uint32_t n) {
    add(y, a, b, n);
}
void pith_mul_elements_avx2(float *y, const float *a, const float *b, uint32_t n) {
    mul_elements(y, a, b, n);
}
void pith_scale_avx2(float *y, const float *x, float s, uint32_t n) {
    scale(y, x, s, n);
}
void pith_softcap_avx2(float *y, const float *x, float s, uint32_t n) {
    softcap(y, x, s, n);
}

/* Neighbouring pairs: lanes a b a b, table c s c s. Even lanes: fma(a, c, -(b * s)), odd lanes:
 * fma(a, s, b * c). */
void pith_rope_norm_avx2(float *x, const float *table, uint32_t n_rot) {
    for (uint32_t i = 0; i < n_rot; i += 8) {
        __m256 v = load_n(x + i, n_rot - i), cs = load_n(table + i, n_rot - i);
        __m256 a = _mm256_moveldup_ps(v), b = _mm256_movehdup_ps(v),
               sc = _mm256_permute_ps(cs, 0xB1);
        store_n(x + i, n_rot - i, _mm256_fmaddsub_ps(a, cs, _mm256_mul_ps(b, sc)));
    }
}

/* Halves: a from the first, b from the second; 8 pairs of the table are taken apart into cosines
 * and sines. */
void pith_rope_neox_avx2(float *x, const float *table, uint32_t n_rot) {
    const __m256i order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
    uint32_t half = n_rot / 2;
    for (uint32_t i = 0; i < half; i += 8) {
        uint32_t left = half - i;
        __m256 t0 = load_n(table + 2 * i, 2 * left),
               t1 = left > 4 ? load_n(table + 2 * i + 8, 2 * left - 8) : t0;
        __m256 c = _mm256_permutevar8x32_ps(_mm256_shuffle_ps(t0, t1, 0x88), order);
        __m256 s = _mm256_permutevar8x32_ps(_mm256_shuffle_ps(t0, t1, 0xDD), order);
        __m256 a = load_n(x + i, left), b = load_n(x + half + i, left);
        store_n(x + i, left, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
        store_n(x + half + i, left, _mm256_fmadd_ps(a, s, _mm256_mul_ps(b, c)));
    }
}
