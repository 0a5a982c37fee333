/* SPDX-License-Identifier: Apache-2.0
 * ref/scalar_math.h on 16 lanes: the same operations in the same order, so the same bits. Where
 * the scalar code branches, both sides are computed and one is chosen. Only *_avx512.c include
 * this. */
#ifndef PITH_KERNEL_X86_VECTOR_MATH_AVX512_H
#define PITH_KERNEL_X86_VECTOR_MATH_AVX512_H

#include "kernel/inline.h"
#include "kernel/ref/scalar_math.h"

#include <immintrin.h>

/* The first n lanes. */
ALWAYS_INLINE __mmask16 first_lanes(uint32_t n) {
    return (__mmask16)(n >= 16 ? 0xFFFFu : (1u << n) - 1u);
}

ALWAYS_INLINE __m512 ps_set(float x) {
    return _mm512_set1_ps(x);
}

ALWAYS_INLINE __m512 ps_exp(__m512 x) {
    __m512 t = _mm512_fmadd_ps(x, ps_set(PITH_LOG2_E), ps_set(PITH_ROUND_MAGIC));
    __m512 n = _mm512_sub_ps(t, ps_set(PITH_ROUND_MAGIC));
    __m512 r =
        _mm512_fmadd_ps(n, ps_set(-PITH_LN2_LOW), _mm512_fmadd_ps(n, ps_set(-PITH_LN2_HIGH), x));
    __m512 q = _mm512_fmadd_ps(ps_set(PITH_EXP_6), r, ps_set(PITH_EXP_5));
    q = _mm512_fmadd_ps(q, r, ps_set(PITH_EXP_4));
    q = _mm512_fmadd_ps(q, r, ps_set(PITH_EXP_3));
    q = _mm512_fmadd_ps(q, r, ps_set(PITH_EXP_2));
    q = _mm512_fmadd_ps(q, r, ps_set(1.0f));
    q = _mm512_fmadd_ps(q, r, ps_set(1.0f));
    __m512i y =
        _mm512_add_epi32(_mm512_castps_si512(q), _mm512_slli_epi32(_mm512_castps_si512(t), 23));
    __mmask16 above = _mm512_cmp_ps_mask(x, ps_set(PITH_EXP_MAX), _CMP_GT_OQ);
    __mmask16 not_below = _mm512_cmp_ps_mask(x, ps_set(PITH_EXP_MIN), _CMP_NLT_UQ); /* NaN too */
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    __m512 result = _mm512_mask_mov_ps(_mm512_castsi512_ps(y), above, ps_set(INFINITY));
    return _mm512_mask_mov_ps(_mm512_maskz_mov_ps(not_below, result), nan, x);
}

ALWAYS_INLINE __m512 ps_abs(__m512 x) {
    return _mm512_abs_ps(x);
}

ALWAYS_INLINE __m512 ps_negate(__m512 x) {
    return _mm512_castsi512_ps(
        _mm512_xor_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN)));
}

ALWAYS_INLINE __m512 ps_tanh(__m512 x) {
    __m512 s = _mm512_mul_ps(x, x), a = ps_abs(x);
    __m512 p = _mm512_fmadd_ps(ps_set(PITH_TANH_4), s, ps_set(PITH_TANH_3));
    p = _mm512_fmadd_ps(p, s, ps_set(PITH_TANH_2));
    p = _mm512_fmadd_ps(p, s, ps_set(PITH_TANH_1));
    p = _mm512_fmadd_ps(p, s, ps_set(PITH_TANH_0));
    __m512 small = _mm512_fmadd_ps(_mm512_mul_ps(x, s), p, x);
    __m512 e = _mm512_add_ps(ps_exp(_mm512_add_ps(a, a)), ps_set(1.0f));
    __m512 large = _mm512_sub_ps(ps_set(1.0f), _mm512_div_ps(ps_set(2.0f), e));
    const __m512i sign = _mm512_set1_epi32(INT32_MIN); /* sign ? x : large */
    large = _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(sign, _mm512_castps_si512(x), _mm512_castps_si512(large), 0xCA));
    return _mm512_mask_mov_ps(large, _mm512_cmp_ps_mask(a, ps_set(PITH_TANH_EDGE), _CMP_LT_OQ),
                              small);
}

ALWAYS_INLINE __m512 ps_silu(__m512 x) {
    return _mm512_div_ps(x, _mm512_add_ps(ps_set(1.0f), ps_exp(ps_negate(x))));
}

ALWAYS_INLINE __m512 ps_gelu(__m512 x) {
    __m512 inner = _mm512_fmadd_ps(_mm512_mul_ps(x, x), ps_set(PITH_GELU_A), ps_set(PITH_GELU_B));
    return _mm512_div_ps(x, _mm512_add_ps(ps_set(1.0f), ps_exp(_mm512_mul_ps(x, inner))));
}

ALWAYS_INLINE __m512 ps_gelu_erf(__m512 x) {
    __m512 z = _mm512_mul_ps(ps_abs(x), ps_set(PITH_SQRT_HALF));
    __m512 t = _mm512_div_ps(ps_set(1.0f), _mm512_fmadd_ps(z, ps_set(PITH_ERFC_T), ps_set(1.0f)));
    __m512 p = _mm512_fmadd_ps(ps_set(PITH_ERFC_9), t, ps_set(PITH_ERFC_8));
    p = _mm512_fmadd_ps(p, t, ps_set(PITH_ERFC_7));
    p = _mm512_fmadd_ps(p, t, ps_set(PITH_ERFC_6));
    p = _mm512_fmadd_ps(p, t, ps_set(PITH_ERFC_5));
    p = _mm512_fmadd_ps(p, t, ps_set(PITH_ERFC_4));
    p = _mm512_fmadd_ps(p, t, ps_set(PITH_ERFC_3));
    p = _mm512_fmadd_ps(p, t, ps_set(PITH_ERFC_2));
    p = _mm512_fmadd_ps(p, t, ps_set(PITH_ERFC_1));
    __m512 e = _mm512_mul_ps(ps_set(0.5f), ps_exp(ps_negate(_mm512_mul_ps(z, z))));
    __m512 h = _mm512_mul_ps(e, _mm512_mul_ps(p, t));
    __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
    return _mm512_mul_ps(x, _mm512_mask_mov_ps(_mm512_sub_ps(ps_set(1.0f), h), negative, h));
}

ALWAYS_INLINE __m512 ps_relu2(__m512 x) {
    __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
    __m512 m = _mm512_mask_mov_ps(x, negative, _mm512_setzero_ps());
    return _mm512_mul_ps(m, m);
}

/* pith_fold_lanes */
ALWAYS_INLINE float ps_fold(__m512 lanes) {
    __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}

#endif
