/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 quantization of activations (rules: quantize_ref.c): two groups of 32 at a time.
 * Magnitudes are compared as integers, so NaN and infinity come out on top. Scales of both
 * groups are computed together, low half of a register for the first, high half for the second.
 * Sums come from one vpdpbusd with ones. A last single group is done with a second group of
 * zeros, of which only the padding codes are stored. */
#include "kernel/x86/vector_math_avx512.h"
#include "kernel/x86/x86.h"

enum { GROUP = PITH_GROUP };

/* Largest magnitude of a in the low half, of b in the high half. */
ALWAYS_INLINE __m512i amax_pair(__m512i a, __m512i b) {
    __m256i a8 = _mm256_max_epu32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
    __m256i b8 = _mm256_max_epu32(_mm512_castsi512_si256(b), _mm512_extracti64x4_epi64(b, 1));
    __m512i m = _mm512_inserti64x4(_mm512_castsi256_si512(a8), b8, 1);
    m = _mm512_max_epu32(m, _mm512_shuffle_i32x4(m, m, 0xB1));
    m = _mm512_max_epu32(m, _mm512_shuffle_epi32(m, _MM_PERM_BADC));
    return _mm512_max_epu32(m, _mm512_shuffle_epi32(m, _MM_PERM_CDAB));
}

ALWAYS_INLINE __m128i codes(__m512 x, __m512 inverse, __mmask16 used) {
    return _mm512_cvtsepi32_epi8(_mm512_maskz_cvtps_epi32(used, _mm512_mul_ps(x, inverse)));
}

/* x: 32 or (both) 64 values. at: index of the first group in d, sum. */
ALWAYS_INLINE void quantize_pair(const float *x, bool both, const pith_q8 *out, size_t row,
                                 size_t at) {
    const __m512i first = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    __mmask16 second = both ? 0xFFFF : 0;
    __m512 a0 = _mm512_loadu_ps(x), a1 = _mm512_loadu_ps(x + 16);
    __m512 b0 = _mm512_maskz_loadu_ps(second, x + 32), b1 = _mm512_maskz_loadu_ps(second, x + 48);
    __m512 d, inverse;
    __m512i amax = amax_pair(_mm512_max_epu32(vec_magnitude(a0), vec_magnitude(a1)),
                             _mm512_max_epu32(vec_magnitude(b0), vec_magnitude(b1)));
    __mmask16 used = vec_q8_scale(amax, &d, &inverse);
    __m512 inverse_a = _mm512_shuffle_f32x4(inverse, inverse, 0x00),
           inverse_b = _mm512_shuffle_f32x4(inverse, inverse, 0xFF);
    __mmask16 used_a = (used & 1) ? 0xFFFF : 0, used_b = (used & 0x100) ? 0xFFFF : 0;
    __m256i qa = _mm256_set_m128i(codes(a1, inverse_a, used_a), codes(a0, inverse_a, used_a));
    __m256i qb = _mm256_set_m128i(codes(b1, inverse_b, used_b), codes(b0, inverse_b, used_b));
    __m512i q = _mm512_inserti64x4(_mm512_castsi256_si512(qa), qb, 1);
    _mm512_storeu_si512(out->q + row * out->q_stride + GROUP * at, q);
    __m512i sums = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), q);
    sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_BADC));
    sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32(sums, _MM_PERM_CDAB));
    __m128i sum16 = _mm512_castsi512_si128(_mm512_permutexvar_epi32(first, sums));
    __m128i sum = _mm_hadd_epi32(sum16, sum16), half = _mm_packs_epi32(sum16, sum16);
    __m128 d_pair = _mm_unpacklo_ps(_mm512_castps512_ps128(d), _mm512_extractf32x4_ps(d, 2));
    size_t group = row * out->d_stride + at;
    __mmask8 n = both ? 3 : 1;
    _mm_mask_storeu_ps(out->d + group, n, d_pair);
    _mm_mask_storeu_epi32(out->sum + group, n, sum);
    _mm_mask_storeu_epi32(out->sum16 + 2 * group, n, half);
}

void pith_quantize_avx512(const float *x, size_t x_stride, uint32_t n, uint32_t k,
                          const pith_q8 *out, uint32_t first_row) {
    size_t n_group = k / GROUP;
    for (size_t t = 0; t < n; t++, x += x_stride) {
        for (size_t i = 0; i + 2 <= n_group; i += 2)
            quantize_pair(x + GROUP * i, true, out, first_row + t, i);
        if (n_group % 2)
            quantize_pair(x + GROUP * (n_group - 1), false, out, first_row + t, n_group - 1);
    }
}

/* A group of the fast contract: 64 values. */
ALWAYS_INLINE void quantize_64(const float *x, const pith_q8 *out, size_t row, size_t at) {
    __m512 v[4];
    __m512i amax = _mm512_setzero_si512(), q = _mm512_setzero_si512();
    float inverse;
    UNROLL for (int i = 0; i < 4; i++) {
        v[i] = _mm512_loadu_ps(x + 16 * i);
        amax = _mm512_max_epu32(amax, vec_magnitude(v[i]));
    }
    size_t group = row * out->d_stride + at;
    if (pith_q8_scale(_mm512_reduce_max_epu32(amax), &out->d[group], &inverse)) {
        __m512 by = vec_set(inverse);
        q = _mm512_castsi128_si512(codes(v[0], by, 0xFFFF));
        q = _mm512_inserti32x4(q, codes(v[1], by, 0xFFFF), 1);
        q = _mm512_inserti32x4(q, codes(v[2], by, 0xFFFF), 2);
        q = _mm512_inserti32x4(q, codes(v[3], by, 0xFFFF), 3);
    }
    _mm512_storeu_si512(out->q + row * out->q_stride + PITH_FAST_GROUP * at, q);
    out->sum[group] = _mm512_reduce_add_epi32(
        _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), q));
}

void pith_quantize_fast_avx512(const float *x, size_t x_stride, uint32_t n, uint32_t k,
                               const pith_q8 *out, uint32_t first_row) {
    for (size_t t = 0; t < n; t++, x += x_stride)
        for (size_t i = 0; i < k / PITH_FAST_GROUP; i++)
            quantize_64(x + PITH_FAST_GROUP * i, out, first_row + t, i);
}
