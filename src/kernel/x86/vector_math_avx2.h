/* SPDX-License-Identifier: Apache-2.0
 * ref/scalar_math.h on 8 lanes: the same operations in the same order, so the same bits. Where
 * the scalar code branches, both sides are computed and one is chosen. Only *_avx2.c include
 * this. */
#ifndef PITH_KERNEL_X86_VECTOR_MATH_AVX2_H
#define PITH_KERNEL_X86_VECTOR_MATH_AVX2_H

#include "kernel/inline.h"
#include "kernel/ref/scalar_math.h"

#include <immintrin.h>

/* All bits of the first n lanes; n may be above 8. */
ALWAYS_INLINE __m256i first_lanes(uint32_t n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n > 8 ? 8 : (int)n), lane);
}

/* The first n floats, others 0; nothing past them is read. */
ALWAYS_INLINE __m256 load_n(const float *x, uint32_t n) {
    return n >= 8 ? _mm256_loadu_ps(x) : _mm256_maskload_ps(x, first_lanes(n));
}

/* Stores the first n lanes. A masked store takes dozens of cycles on some cores. */
ALWAYS_INLINE void store_n(float *y, uint32_t n, __m256 v) {
    float lanes[8];
    if (n >= 8) {
        _mm256_storeu_ps(y, v);
        return;
    }
    _mm256_storeu_ps(lanes, v);
    memcpy(y, lanes, n * sizeof *y);
}

ALWAYS_INLINE __m256 ps_set(float x) {
    return _mm256_set1_ps(x);
}

/* mask ? yes : no */
ALWAYS_INLINE __m256 ps_choose(__m256 mask, __m256 yes, __m256 no) {
    return _mm256_blendv_ps(no, yes, mask);
}

ALWAYS_INLINE __m256 ps_sign(void) {
    return _mm256_castsi256_ps(_mm256_set1_epi32(INT32_MIN));
}
ALWAYS_INLINE __m256 ps_abs(__m256 x) {
    return _mm256_andnot_ps(ps_sign(), x);
}
ALWAYS_INLINE __m256 ps_negate(__m256 x) {
    return _mm256_xor_ps(x, ps_sign());
}

ALWAYS_INLINE __m256 ps_exp(__m256 x) {
    __m256 t = _mm256_fmadd_ps(x, ps_set(PITH_LOG2_E), ps_set(PITH_ROUND_MAGIC));
    __m256 n = _mm256_sub_ps(t, ps_set(PITH_ROUND_MAGIC));
    __m256 r =
        _mm256_fmadd_ps(n, ps_set(-PITH_LN2_LOW), _mm256_fmadd_ps(n, ps_set(-PITH_LN2_HIGH), x));
    __m256 q = _mm256_fmadd_ps(ps_set(PITH_EXP_6), r, ps_set(PITH_EXP_5));
    q = _mm256_fmadd_ps(q, r, ps_set(PITH_EXP_4));
    q = _mm256_fmadd_ps(q, r, ps_set(PITH_EXP_3));
    q = _mm256_fmadd_ps(q, r, ps_set(PITH_EXP_2));
    q = _mm256_fmadd_ps(q, r, ps_set(1.0f));
    q = _mm256_fmadd_ps(q, r, ps_set(1.0f));
    __m256i scale = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    __m256 y = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(q), scale));
    y = ps_choose(_mm256_cmp_ps(x, ps_set(PITH_EXP_MAX), _CMP_GT_OQ), ps_set(INFINITY), y);
    y = _mm256_and_ps(_mm256_cmp_ps(x, ps_set(PITH_EXP_MIN), _CMP_NLT_UQ), y);
    return ps_choose(_mm256_cmp_ps(x, x, _CMP_UNORD_Q), x, y);
}

ALWAYS_INLINE __m256 ps_tanh(__m256 x) {
    __m256 s = _mm256_mul_ps(x, x), a = ps_abs(x);
    __m256 p = _mm256_fmadd_ps(ps_set(PITH_TANH_4), s, ps_set(PITH_TANH_3));
    p = _mm256_fmadd_ps(p, s, ps_set(PITH_TANH_2));
    p = _mm256_fmadd_ps(p, s, ps_set(PITH_TANH_1));
    p = _mm256_fmadd_ps(p, s, ps_set(PITH_TANH_0));
    __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(x, s), p, x);
    __m256 e = _mm256_add_ps(ps_exp(_mm256_add_ps(a, a)), ps_set(1.0f));
    __m256 large = _mm256_sub_ps(ps_set(1.0f), _mm256_div_ps(ps_set(2.0f), e));
    large = _mm256_or_ps(_mm256_and_ps(ps_sign(), x), _mm256_andnot_ps(ps_sign(), large));
    return ps_choose(_mm256_cmp_ps(a, ps_set(PITH_TANH_EDGE), _CMP_LT_OQ), small, large);
}

ALWAYS_INLINE __m256 ps_silu(__m256 x) {
    return _mm256_div_ps(x, _mm256_add_ps(ps_set(1.0f), ps_exp(ps_negate(x))));
}

ALWAYS_INLINE __m256 ps_gelu(__m256 x) {
    __m256 inner = _mm256_fmadd_ps(_mm256_mul_ps(x, x), ps_set(PITH_GELU_A), ps_set(PITH_GELU_B));
    return _mm256_div_ps(x, _mm256_add_ps(ps_set(1.0f), ps_exp(_mm256_mul_ps(x, inner))));
}

ALWAYS_INLINE __m256 ps_gelu_erf(__m256 x) {
    __m256 z = _mm256_mul_ps(ps_abs(x), ps_set(PITH_SQRT_HALF));
    __m256 t = _mm256_div_ps(ps_set(1.0f), _mm256_fmadd_ps(z, ps_set(PITH_ERFC_T), ps_set(1.0f)));
    __m256 p = _mm256_fmadd_ps(ps_set(PITH_ERFC_9), t, ps_set(PITH_ERFC_8));
    p = _mm256_fmadd_ps(p, t, ps_set(PITH_ERFC_7));
    p = _mm256_fmadd_ps(p, t, ps_set(PITH_ERFC_6));
    p = _mm256_fmadd_ps(p, t, ps_set(PITH_ERFC_5));
    p = _mm256_fmadd_ps(p, t, ps_set(PITH_ERFC_4));
    p = _mm256_fmadd_ps(p, t, ps_set(PITH_ERFC_3));
    p = _mm256_fmadd_ps(p, t, ps_set(PITH_ERFC_2));
    p = _mm256_fmadd_ps(p, t, ps_set(PITH_ERFC_1));
    __m256 e = _mm256_mul_ps(ps_set(0.5f), ps_exp(ps_negate(_mm256_mul_ps(z, z))));
    __m256 h = _mm256_mul_ps(e, _mm256_mul_ps(p, t));
    __m256 negative = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ);
    return _mm256_mul_ps(x, ps_choose(negative, h, _mm256_sub_ps(ps_set(1.0f), h)));
}

ALWAYS_INLINE __m256 ps_relu2(__m256 x) {
    __m256 m = _mm256_andnot_ps(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ), x);
    return _mm256_mul_ps(m, m);
}

/* pith_fold_lanes: lanes 0..7 in a, 8..15 in b. */
ALWAYS_INLINE float ps_fold(__m256 a, __m256 b) {
    __m256 s8 = _mm256_add_ps(a, b);
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}

/* Largest of 8 lanes without NaN. */
ALWAYS_INLINE float ps_largest(__m256 v) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}

/* Largest of 8 lanes of magnitudes (positive as integers). */
ALWAYS_INLINE uint32_t bits_largest(__m256i v) {
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4E));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1)));
}

/* Codes of up to 32 values as bytes: rounded, in order. */
ALWAYS_INLINE __m128i bytes_of(__m256i a, __m256i b) {
    __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xD8);
    return _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

#endif
