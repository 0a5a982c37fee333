/* SPDX-License-Identifier: Apache-2.0
 * A 32-bit word of each of 16 rows in one 512-bit register, for expand_types.h. A unit of a panel
 * is such words; a word's 4 bytes are 4 consecutive k where a field holds codes. The same names
 * with two registers: words_avx2.h. */
#ifndef PITH_KERNEL_X86_WORDS_AVX512_H
#define PITH_KERNEL_X86_WORDS_AVX512_H

#include "kernel/x86/book_entries.h"

typedef __m512i words16;

enum { WORDS_OFFSET = 1 }; /* products take unsigned codes (expand_types.h) */

ALWAYS_INLINE words16 words_load(const void *unit) {
    return _mm512_loadu_si512(unit);
}

ALWAYS_INLINE words16 words_next(const void *unit) {
    words_ahead(unit);
    return words_load(unit);
}

ALWAYS_INLINE void words_store(void *unit, words16 v) {
    _mm512_storeu_si512(unit, v);
}

ALWAYS_INLINE words16 words_all(uint32_t value) {
    return _mm512_set1_epi32((int32_t)value);
}

ALWAYS_INLINE words16 words_of_u16(const uint16_t *at) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)at));
}

ALWAYS_INLINE words16 words_of_u8(const uint8_t *at) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)at));
}

ALWAYS_INLINE words16 words_and(words16 a, words16 b) {
    return _mm512_and_si512(a, b);
}

ALWAYS_INLINE words16 words_or(words16 a, words16 b) {
    return _mm512_or_si512(a, b);
}

ALWAYS_INLINE words16 words_xor(words16 a, words16 b) {
    return _mm512_xor_si512(a, b);
}

ALWAYS_INLINE words16 words_add(words16 a, words16 b) {
    return _mm512_add_epi32(a, b);
}

/* Byte by byte. */
ALWAYS_INLINE words16 bytes_add(words16 a, words16 b) {
    return _mm512_add_epi8(a, b);
}

ALWAYS_INLINE words16 bytes_sub(words16 a, words16 b) {
    return _mm512_sub_epi8(a, b);
}

ALWAYS_INLINE words16 words_left(words16 v, int n) {
    return _mm512_slli_epi32(v, (unsigned)n);
}

ALWAYS_INLINE words16 words_right(words16 v, int n) {
    return _mm512_srli_epi32(v, (unsigned)n);
}

/* All bits where a == b. */
ALWAYS_INLINE words16 words_equal(words16 a, words16 b) {
    return _mm512_movm_epi32(_mm512_cmpeq_epi32_mask(a, b));
}

/* All bits of each byte that is at least c (unsigned). */
ALWAYS_INLINE words16 bytes_at_least(words16 v, uint8_t c) {
    return _mm512_movm_epi8(_mm512_cmpge_epu8_mask(v, _mm512_set1_epi8((char)c)));
}

/* table[b] for each byte b, which is below 16. */
ALWAYS_INLINE words16 bytes_look(const void *table, words16 v) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(table)), v);
}

/* Byte `which` of each word, four times. */
ALWAYS_INLINE words16 words_spread(words16 v, int which) {
    __m512i order = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0C0C0C0C));
    return _mm512_shuffle_epi8(v, _mm512_add_epi8(order, _mm512_set1_epi8((char)which)));
}

ALWAYS_INLINE __m512i four_quarters(const __m128i q[4]) {
    __m512i v = _mm512_inserti32x4(_mm512_castsi128_si512(q[0]), q[1], 1);
    return _mm512_inserti32x4(_mm512_inserti32x4(v, q[2], 2), q[3], 3);
}

/* The entry of each row. */
ALWAYS_INLINE words16 words_look(const uint32_t *table, const uint8_t *at, const bool is_byte) {
    __m128i q[4];
    UNROLL for (int i = 0; i < 4; i++) {
        q[i] = four_words(table, at, 4 * i, is_byte);
    }
    return four_quarters(q);
}

/* The halves of the 8 bytes of each row's entry. */
ALWAYS_INLINE void words_look_two(const uint64_t *table, const uint8_t *at, const bool is_byte,
                                  words16 two[2]) {
    __m128i a[4], b[4];
    UNROLL for (int i = 0; i < 4; i++) {
        a[i] = two_entries(table, at, 4 * i, is_byte);
        b[i] = two_entries(table, at, 4 * i + 2, is_byte);
    }
    __m512 first = _mm512_castsi512_ps(four_quarters(a)),
           second = _mm512_castsi512_ps(four_quarters(b));
    two[0] = _mm512_castps_si512(_mm512_shuffle_ps(first, second, 0x88));
    two[1] = _mm512_castps_si512(_mm512_shuffle_ps(first, second, 0xDD));
}

/* Byte j of each word is negated where bit j (half 1: j + 4) of the same byte of `signs` is set. */
ALWAYS_INLINE words16 bytes_negate(words16 v, words16 signs, int half) {
    const __m512i bits = _mm512_set1_epi32(half ? (int32_t)0x80402010 : 0x08040201);
    return _mm512_mask_sub_epi8(v, _mm512_test_epi8_mask(signs, bits), _mm512_setzero_si512(), v);
}

/* Words as signed numbers. */
ALWAYS_INLINE void words_to_ps(float *out, words16 v) {
    _mm512_storeu_ps(out, _mm512_cvtepi32_ps(v));
}

ALWAYS_INLINE void words_bits_to_ps(float *out, words16 v, float factor) {
    _mm512_storeu_ps(out, _mm512_mul_ps(_mm512_castsi512_ps(v), _mm512_set1_ps(factor)));
}

ALWAYS_INLINE void half_vector_to_ps(float *out, __m256i half, float factor) {
    _mm512_storeu_ps(out, _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(factor)));
}

ALWAYS_INLINE void halves_to_ps(float *out, const uint16_t *half, float factor) {
    half_vector_to_ps(out, _mm256_loadu_si256((const __m256i *)(const void *)half), factor);
}

/* Words that hold the bits of a half. */
ALWAYS_INLINE void words_half_to_ps(float *out, words16 v, float factor) {
    half_vector_to_ps(out, _mm512_cvtepi32_epi16(v), factor);
}

#endif
