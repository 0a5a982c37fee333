/* SPDX-License-Identifier: Apache-2.0
 * 16 rows in two 256-bit registers: rows 0..7 in `low`, rows 8..15 in `high`. For kernels of the
 * avx2 and avxvnni tiers. */
#ifndef PITH_KERNEL_X86_LANES_256_H
#define PITH_KERNEL_X86_LANES_256_H

#include "kernel/inline.h"
#include "kernel/kernel.h"
#include "kernel/panel.h"

#include <immintrin.h>
#include <string.h>

typedef struct lanes16 {
    __m256i low, high;
} lanes16;

typedef struct floats16 {
    __m256 low, high;
} floats16;

ALWAYS_INLINE lanes16 lanes_load(const void *at) {
    const __m256i *p = at;
    return (lanes16){_mm256_loadu_si256(p), _mm256_loadu_si256(p + 1)};
}

ALWAYS_INLINE void lanes_store(void *at, lanes16 v) {
    __m256i *p = at;
    _mm256_storeu_si256(p, v.low);
    _mm256_storeu_si256(p + 1, v.high);
}

ALWAYS_INLINE lanes16 lanes_set(int32_t value) {
    __m256i v = _mm256_set1_epi32(value);
    return (lanes16){v, v};
}

ALWAYS_INLINE lanes16 lanes_and(lanes16 v, __m256i mask) {
    return (lanes16){_mm256_and_si256(v.low, mask), _mm256_and_si256(v.high, mask)};
}

ALWAYS_INLINE lanes16 lanes_or(lanes16 a, lanes16 b) {
    return (lanes16){_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}

/* Bits of each 16-bit word to the left (n > 0) or right by a constant. */
ALWAYS_INLINE lanes16 lanes_shift(lanes16 v, const int n) {
    if (n > 0) return (lanes16){_mm256_slli_epi16(v.low, n), _mm256_slli_epi16(v.high, n)};
    if (n < 0) return (lanes16){_mm256_srli_epi16(v.low, -n), _mm256_srli_epi16(v.high, -n)};
    return v;
}

ALWAYS_INLINE floats16 ps_load(const float *at) {
    return (floats16){_mm256_loadu_ps(at), _mm256_loadu_ps(at + 8)};
}

ALWAYS_INLINE void ps_store(float *at, floats16 v) {
    _mm256_storeu_ps(at, v.low);
    _mm256_storeu_ps(at + 8, v.high);
}

ALWAYS_INLINE floats16 ps_all(float value) {
    __m256 v = _mm256_set1_ps(value);
    return (floats16){v, v};
}

ALWAYS_INLINE floats16 ps_of(lanes16 v) {
    return (floats16){_mm256_cvtepi32_ps(v.low), _mm256_cvtepi32_ps(v.high)};
}

ALWAYS_INLINE floats16 ps_add(floats16 a, floats16 b) {
    return (floats16){_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}

ALWAYS_INLINE floats16 ps_sub(floats16 a, floats16 b) {
    return (floats16){_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}

ALWAYS_INLINE floats16 ps_mul(floats16 a, floats16 b) {
    return (floats16){_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

ALWAYS_INLINE floats16 ps_fma(floats16 a, floats16 b, floats16 c) {
    return (floats16){_mm256_fmadd_ps(a.low, b.low, c.low),
                      _mm256_fmadd_ps(a.high, b.high, c.high)};
}

ALWAYS_INLINE floats16 ps_load_f16(const uint16_t *half) {
    const __m128i *p = (const __m128i *)(const void *)half;
    return (floats16){_mm256_cvtph_ps(_mm_loadu_si128(p)), _mm256_cvtph_ps(_mm_loadu_si128(p + 1))};
}

/* 16 bytes as floats. */
ALWAYS_INLINE floats16 ps_of_u8(const uint8_t *bytes) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    return ps_of((lanes16){_mm256_cvtepu8_epi32(v), _mm256_cvtepu8_epi32(_mm_srli_si128(v, 8))});
}

ALWAYS_INLINE floats16 ps_of_i8(const int8_t *bytes) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    return ps_of((lanes16){_mm256_cvtepi8_epi32(v), _mm256_cvtepi8_epi32(_mm_srli_si128(v, 8))});
}

/* *acc = fma(a, b, *acc) */
ALWAYS_INLINE void ps_fma_store(float *acc, floats16 a, floats16 b) {
    ps_store(acc, ps_fma(a, b, ps_load(acc)));
}

/* 4 bytes of activations in every lane. */
ALWAYS_INLINE __m256i broadcast4(const int8_t *x) {
    int32_t word;
    memcpy(&word, x, sizeof word);
    return _mm256_set1_epi32(word);
}

/* All bits of the first n lanes. */
ALWAYS_INLINE __m256i first_8(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* What was stored is read back from memory: gcc would rather take vectors apart lane by lane. */
ALWAYS_INLINE void stored(void) {
    __asm__ volatile("" ::: "memory");
}

#endif
