/* SPDX-License-Identifier: Apache-2.0
 * Vectors of 8 floats for the tiers avx2 and avxvnni: the operations that kernel/vector_math.h and
 * the other sources shared by all tiers are written in. Each is one IEEE operation a lane, so what
 * is built of them has the bits of the scalar code. Same names: vector_math_avx512.h. */
#ifndef PITH_KERNEL_X86_VECTOR_MATH_AVX2_H
#define PITH_KERNEL_X86_VECTOR_MATH_AVX2_H

#include "kernel/inline.h"

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

typedef __m256 vec;
typedef __m256 vec_mask; /* all bits of a lane, or none */
typedef __m256i vec_bits;

enum { VEC_LANES = 8 };

/* ---- Memory ---- */

ALWAYS_INLINE vec vec_load(const float *x) {
    return _mm256_loadu_ps(x);
}
ALWAYS_INLINE void vec_store(float *y, vec v) {
    _mm256_storeu_ps(y, v);
}

/* All bits of the first n lanes; n may be above 8. */
ALWAYS_INLINE __m256i first_lanes(uint32_t n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n > 8 ? 8 : (int)n), lane);
}

/* The first n floats, others 0; nothing past them is read. */
ALWAYS_INLINE vec load_n(const float *x, uint32_t n) {
    return n >= 8 ? _mm256_loadu_ps(x) : _mm256_maskload_ps(x, first_lanes(n));
}

/* Stores the first n lanes. A masked store takes dozens of cycles on some cores. */
ALWAYS_INLINE void store_n(float *y, uint32_t n, vec v) {
    float lanes[8];
    if (n >= 8) {
        _mm256_storeu_ps(y, v);
        return;
    }
    _mm256_storeu_ps(lanes, v);
    memcpy(y, lanes, n * sizeof *y);
}

ALWAYS_INLINE vec vec_load_f16(const uint16_t *half) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)half));
}
ALWAYS_INLINE void vec_store_f16(uint16_t *half, vec v) {
    _mm_storeu_si128((__m128i *)(void *)half, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

/* ---- Arithmetic ---- */

ALWAYS_INLINE vec vec_set(float x) {
    return _mm256_set1_ps(x);
}
ALWAYS_INLINE vec vec_add(vec a, vec b) {
    return _mm256_add_ps(a, b);
}
ALWAYS_INLINE vec vec_sub(vec a, vec b) {
    return _mm256_sub_ps(a, b);
}
ALWAYS_INLINE vec vec_mul(vec a, vec b) {
    return _mm256_mul_ps(a, b);
}
ALWAYS_INLINE vec vec_div(vec a, vec b) {
    return _mm256_div_ps(a, b);
}
/* a * b + c, rounded once. */
ALWAYS_INLINE vec vec_fma(vec a, vec b, vec c) {
    return _mm256_fmadd_ps(a, b, c);
}

ALWAYS_INLINE vec vec_sign_bits(void) {
    return _mm256_castsi256_ps(_mm256_set1_epi32(INT32_MIN));
}
ALWAYS_INLINE vec vec_abs(vec x) {
    return _mm256_andnot_ps(vec_sign_bits(), x);
}
ALWAYS_INLINE vec vec_negate(vec x) {
    return _mm256_xor_ps(x, vec_sign_bits());
}

/* ---- Choice ---- */

/* a < b, a > b: false where one is NaN. */
ALWAYS_INLINE vec_mask vec_less(vec a, vec b) {
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
ALWAYS_INLINE vec_mask vec_greater(vec a, vec b) {
    return _mm256_cmp_ps(a, b, _CMP_GT_OQ);
}
/* !(a < b): true where one is NaN. */
ALWAYS_INLINE vec_mask vec_not_less(vec a, vec b) {
    return _mm256_cmp_ps(a, b, _CMP_NLT_UQ);
}
ALWAYS_INLINE vec_mask vec_is_nan(vec x) {
    return _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
}
/* mask ? yes : no */
ALWAYS_INLINE vec vec_choose(vec_mask mask, vec yes, vec no) {
    return _mm256_blendv_ps(no, yes, mask);
}
/* x where the mask is set, else +0. */
ALWAYS_INLINE vec vec_keep(vec_mask mask, vec x) {
    return _mm256_and_ps(mask, x);
}
/* Lanes e of which begin <= first + e < end; all below 2^31. */
ALWAYS_INLINE vec_mask vec_between(uint32_t begin, uint32_t end, uint32_t first) {
    const __m256i t =
        _mm256_add_epi32(_mm256_set1_epi32((int)first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256i early = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)begin), t);
    return _mm256_castsi256_ps(
        _mm256_andnot_si256(early, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)end), t)));
}
/* v in the first n lanes, `old` in the others. */
ALWAYS_INLINE vec vec_keep_n(vec old, vec v, uint32_t n) {
    return n >= 8 ? v : vec_choose(_mm256_castsi256_ps(first_lanes(n)), v, old);
}
/* Larger of two; `old` where x is NaN: maxps gives its second operand then. */
ALWAYS_INLINE vec vec_larger(vec x, vec old) {
    return _mm256_max_ps(x, old);
}
/* |x| with the sign of `sign`; x >= 0. */
ALWAYS_INLINE vec vec_copy_sign(vec x, vec sign) {
    return _mm256_or_ps(_mm256_and_ps(vec_sign_bits(), sign), vec_abs(x));
}
/* x * 2^n: n is in the low bits of t, which is PITH_ROUND_MAGIC + n. */
ALWAYS_INLINE vec vec_times_power(vec x, vec t) {
    __m256i n = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), n));
}

/* ---- All lanes together ---- */

/* pith_fold_lanes: lanes 0..7 in s[0], 8..15 in s[1]. */
ALWAYS_INLINE float vec_fold(const vec s[2]) {
    vec s8 = _mm256_add_ps(s[0], s[1]);
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}
/* Largest lane; none is NaN. */
ALWAYS_INLINE float vec_largest(vec v) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}

/* Magnitudes as integers: NaN and infinity come out on top. */
ALWAYS_INLINE vec_bits vec_magnitude(vec x) {
    return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(INT32_MAX));
}
ALWAYS_INLINE vec_bits vec_bits_larger(vec_bits a, vec_bits b) {
    return _mm256_max_epu32(a, b);
}
ALWAYS_INLINE uint32_t vec_bits_largest(vec_bits v) {
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4E));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1)));
}

/* int8 codes of 16 values: x * inverse rounded to nearest even. */
ALWAYS_INLINE __m128i codes_of(const vec x[2], float inverse) {
    __m256i low = _mm256_cvtps_epi32(_mm256_mul_ps(x[0], vec_set(inverse)));
    __m256i high = _mm256_cvtps_epi32(_mm256_mul_ps(x[1], vec_set(inverse)));
    __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xD8);
    return _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}
ALWAYS_INLINE void vec_store_codes(int8_t code[16], const vec x[2], float inverse) {
    _mm_storeu_si128((__m128i *)(void *)code, codes_of(x, inverse));
}

#include "kernel/vector_math.h"

#endif
