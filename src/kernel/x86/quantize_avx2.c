/* SPDX-License-Identifier: Apache-2.0
 * AVX2 quantization of activations, one group at a time (rules: quantize_ref.c).
 * Magnitudes are compared as integers, so NaN and infinity come out on top; the scale is
 * computed by the reference's function. Sums come from vpmaddubsw with ones: pairs of codes,
 * then fours, then the halves of the group. */
#include "kernel/x86/vector_math_avx2.h"
#include "kernel/x86/x86.h"

enum { GROUP = PITH_GROUP };

ALWAYS_INLINE __m256i sums_of_4(__m256i codes) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), codes),
                             _mm256_set1_epi16(1));
}

ALWAYS_INLINE void quantize_group(const float *x, const pith_q8 *out, size_t row, size_t index) {
    size_t at = row * out->d_stride + index;
    vec v[4];
    vec_bits amax = _mm256_setzero_si256();
    __m256i codes = _mm256_setzero_si256();
    float inverse;
    UNROLL for (int i = 0; i < 4; i++) {
        v[i] = vec_load(x + 8 * i);
        amax = vec_bits_larger(amax, vec_magnitude(v[i]));
    }
    if (pith_q8_scale(vec_bits_largest(amax), &out->d[at], &inverse))
        codes = _mm256_set_m128i(codes_of(v + 2, inverse), codes_of(v, inverse));
    _mm256_storeu_si256((__m256i *)(void *)(out->q + row * out->q_stride + GROUP * index), codes);
    __m256i fours = sums_of_4(codes), sums = _mm256_hadd_epi32(fours, fours);
    sums = _mm256_hadd_epi32(sums, sums);
    int32_t low = _mm256_extract_epi32(sums, 0), high = _mm256_extract_epi32(sums, 4);
    out->sum[at] = low + high;
    out->sum16[2 * at] = (int16_t)low;
    out->sum16[2 * at + 1] = (int16_t)high;
}

void pith_quantize_avx2(const float *x, size_t x_stride, uint32_t n, uint32_t k, const pith_q8 *out,
                        uint32_t first_row) {
    size_t n_group = k / GROUP;
    for (size_t t = 0; t < n; t++) {
        size_t row = first_row + t;
        for (size_t i = 0; i < n_group; i++)
            quantize_group(x + t * x_stride + GROUP * i, out, row, i);
        if (n_group % 2 == 1) memset(out->q + row * out->q_stride + GROUP * n_group, 0, GROUP);
    }
}

/* A group of the fast contract: 64 values. */
ALWAYS_INLINE void quantize_64(const float *x, const pith_q8 *out, size_t row, size_t index) {
    __m256i *q = (__m256i *)(void *)(out->q + row * out->q_stride + PITH_FAST_GROUP * index);
    size_t at = row * out->d_stride + index;
    vec v[8];
    vec_bits amax = _mm256_setzero_si256();
    __m256i low = _mm256_setzero_si256(), high = low;
    float inverse;
    UNROLL for (int i = 0; i < 8; i++) {
        v[i] = vec_load(x + 8 * i);
        amax = vec_bits_larger(amax, vec_magnitude(v[i]));
    }
    if (pith_q8_scale(vec_bits_largest(amax), &out->d[at], &inverse)) {
        low = _mm256_set_m128i(codes_of(v + 2, inverse), codes_of(v, inverse));
        high = _mm256_set_m128i(codes_of(v + 6, inverse), codes_of(v + 4, inverse));
    }
    _mm256_storeu_si256(q, low);
    _mm256_storeu_si256(q + 1, high);
    __m256i sums = _mm256_add_epi32(sums_of_4(low), sums_of_4(high));
    sums = _mm256_hadd_epi32(sums, sums);
    sums = _mm256_hadd_epi32(sums, sums);
    out->sum[at] = _mm256_extract_epi32(sums, 0) + _mm256_extract_epi32(sums, 4);
}

void pith_quantize_fast_avx2(const float *x, size_t x_stride, uint32_t n, uint32_t k,
                             const pith_q8 *out, uint32_t first_row) {
    for (size_t t = 0; t < n; t++, x += x_stride)
        for (size_t i = 0; i < k / PITH_FAST_GROUP; i++)
            quantize_64(x + PITH_FAST_GROUP * i, out, first_row + t, i);
}
