/* SPDX-License-Identifier: Apache-2.0
 * Vectors of 16 floats for the tier avx512: the operations that kernel/vector_math.h and the other
 * sources shared by all tiers are written in. Each is one IEEE operation a lane, so what is built
 * of them has the bits of the scalar code. Same names: vector_math_avx2.h. */
#ifndef PITH_KERNEL_X86_VECTOR_MATH_AVX512_H
#define PITH_KERNEL_X86_VECTOR_MATH_AVX512_H

#include "kernel/inline.h"

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

typedef __m512 vec;
typedef __mmask16 vec_mask;
typedef __m512i vec_bits;

enum { VEC_LANES = 16 };

/* ---- Memory ---- */

ALWAYS_INLINE vec vec_load(const float *x) {
    return _mm512_loadu_ps(x);
}
ALWAYS_INLINE void vec_store(float *y, vec v) {
    _mm512_storeu_ps(y, v);
}

/* The first n lanes; n may be above 16. */
ALWAYS_INLINE __mmask16 first_lanes(uint32_t n) {
    return (__mmask16)(n >= 16 ? 0xFFFFu : (1u << n) - 1u);
}

/* The first n floats, others 0; nothing past them is read. */
ALWAYS_INLINE vec load_n(const float *x, uint32_t n) {
    return n >= 16 ? _mm512_loadu_ps(x) : _mm512_maskz_loadu_ps(first_lanes(n), x);
}

/* Stores the first n lanes. */
ALWAYS_INLINE void store_n(float *y, uint32_t n, vec v) {
    if (n >= 16)
        _mm512_storeu_ps(y, v);
    else
        _mm512_mask_storeu_ps(y, first_lanes(n), v);
}

ALWAYS_INLINE vec vec_load_f16(const uint16_t *half) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)half));
}
ALWAYS_INLINE void vec_store_f16(uint16_t *half, vec v) {
    /* All lanes by a mask: gcc's unmasked form is a macro that converts -1, which we forbid. */
    _mm256_storeu_si256((__m256i *)(void *)half,
                        _mm512_maskz_cvtps_ph(0xFFFF, v, _MM_FROUND_TO_NEAREST_INT));
}

/* ---- Arithmetic ---- */

ALWAYS_INLINE vec vec_set(float x) {
    return _mm512_set1_ps(x);
}
ALWAYS_INLINE vec vec_add(vec a, vec b) {
    return _mm512_add_ps(a, b);
}
ALWAYS_INLINE vec vec_sub(vec a, vec b) {
    return _mm512_sub_ps(a, b);
}
ALWAYS_INLINE vec vec_mul(vec a, vec b) {
    return _mm512_mul_ps(a, b);
}
ALWAYS_INLINE vec vec_div(vec a, vec b) {
    return _mm512_div_ps(a, b);
}
/* a * b + c, rounded once. */
ALWAYS_INLINE vec vec_fma(vec a, vec b, vec c) {
    return _mm512_fmadd_ps(a, b, c);
}
ALWAYS_INLINE vec vec_abs(vec x) {
    return _mm512_abs_ps(x);
}
ALWAYS_INLINE vec vec_negate(vec x) {
    return _mm512_castsi512_ps(
        _mm512_xor_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN)));
}

/* ---- Choice ---- */

/* a < b, a > b: false where one is NaN. */
ALWAYS_INLINE vec_mask vec_less(vec a, vec b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
ALWAYS_INLINE vec_mask vec_greater(vec a, vec b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
/* !(a < b): true where one is NaN. */
ALWAYS_INLINE vec_mask vec_not_less(vec a, vec b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ);
}
ALWAYS_INLINE vec_mask vec_is_nan(vec x) {
    return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
}
/* mask ? yes : no */
ALWAYS_INLINE vec vec_choose(vec_mask mask, vec yes, vec no) {
    return _mm512_mask_mov_ps(no, mask, yes);
}
/* x where the mask is set, else +0. */
ALWAYS_INLINE vec vec_keep(vec_mask mask, vec x) {
    return _mm512_maskz_mov_ps(mask, x);
}
/* Lanes e of which begin <= first + e < end. */
ALWAYS_INLINE vec_mask vec_between(uint32_t begin, uint32_t end, uint32_t first) {
    const __m512i t =
        _mm512_add_epi32(_mm512_set1_epi32((int)first),
                         _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    return _mm512_cmpge_epu32_mask(t, _mm512_set1_epi32((int)begin)) &
           _mm512_cmplt_epu32_mask(t, _mm512_set1_epi32((int)end));
}
/* v in the first n lanes, `old` in the others. */
ALWAYS_INLINE vec vec_keep_n(vec old, vec v, uint32_t n) {
    return _mm512_mask_mov_ps(old, first_lanes(n), v);
}
/* Larger of two; `old` where x is NaN: maxps gives its second operand then. */
ALWAYS_INLINE vec vec_larger(vec x, vec old) {
    return _mm512_max_ps(x, old);
}
/* |x| with the sign of `sign`; x >= 0. */
ALWAYS_INLINE vec vec_copy_sign(vec x, vec sign) {
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
        _mm512_set1_epi32(INT32_MIN), _mm512_castps_si512(sign), _mm512_castps_si512(x), 0xCA));
}
/* x * 2^n: n is in the low bits of t, which is PITH_ROUND_MAGIC + n. */
ALWAYS_INLINE vec vec_times_power(vec x, vec t) {
    __m512i n = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), n));
}

/* ---- All lanes together ---- */

/* pith_fold_lanes */
ALWAYS_INLINE float vec_fold(const vec s[1]) {
    __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(s[0]), _mm512_extractf32x8_ps(s[0], 1));
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}
/* Largest lane; none is NaN. */
ALWAYS_INLINE float vec_largest(vec v) {
    return _mm512_reduce_max_ps(v);
}

/* Magnitudes as integers: NaN and infinity come out on top. */
ALWAYS_INLINE vec_bits vec_magnitude(vec x) {
    return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MAX));
}
ALWAYS_INLINE vec_bits vec_bits_larger(vec_bits a, vec_bits b) {
    return _mm512_max_epu32(a, b);
}
ALWAYS_INLINE uint32_t vec_bits_largest(vec_bits v) {
    return _mm512_reduce_max_epu32(v);
}

/* int8 codes of 16 values: x * inverse rounded to nearest even. */
ALWAYS_INLINE void vec_store_codes(int8_t code[16], const vec x[1], float inverse) {
    __m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(x[0], vec_set(inverse)));
    _mm_storeu_si128((__m128i *)(void *)code, _mm512_cvtsepi32_epi8(q));
}

#include "kernel/vector_math.h"

/* pith_q8_scale on 16 lanes. */
ALWAYS_INLINE __mmask16 vec_q8_scale(__m512i amax, __m512 *d, __m512 *inverse) {
    __m512 one = vec_set(1.0f), x = _mm512_div_ps(_mm512_castsi512_ps(amax), vec_set(127.0f));
    __mmask16 finite = _mm512_cmplt_epu32_mask(amax, _mm512_set1_epi32(0x7F800000));
    __mmask16 used = _mm512_mask_cmp_ps_mask(finite, x, _mm512_setzero_ps(), _CMP_GT_OQ);
    __m512 y = _mm512_maskz_div_ps(used, one, x);
    used = _mm512_mask_cmp_ps_mask(used, y, vec_set(INFINITY), _CMP_LT_OQ);
    *inverse = _mm512_maskz_mov_ps(used, y);
    x = _mm512_maskz_mov_ps(used, x);
    *d = _mm512_mask_mov_ps(_mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000)), finite, x);
    return used;
}

#endif
