/* SPDX-License-Identifier: Apache-2.0
 * A 32-bit word of each of 16 rows in two 256-bit registers, for expand_types.h. A unit of a panel
 * is such words; a word's 4 bytes are 4 consecutive k where a field holds codes. The same names
 * with one register: words_avx512.h. */
#ifndef PITH_KERNEL_X86_WORDS_AVX2_H
#define PITH_KERNEL_X86_WORDS_AVX2_H

#include "kernel/x86/book_entries.h"
#include "kernel/x86/lanes_256.h"

typedef lanes16 words16;

enum { WORDS_OFFSET = 1 }; /* products take unsigned codes (expand_types.h) */

ALWAYS_INLINE words16 words_load(const void *unit) {
    return lanes_load(unit);
}

ALWAYS_INLINE words16 words_next(const void *unit) {
    words_ahead(unit);
    return words_load(unit);
}

ALWAYS_INLINE void words_store(void *unit, words16 v) {
    lanes_store(unit, v);
}

ALWAYS_INLINE words16 words_all(uint32_t value) {
    return lanes_set((int32_t)value);
}

ALWAYS_INLINE words16 words_of_u16(const uint16_t *at) {
    const __m128i *p = (const __m128i *)(const void *)at;
    return (words16){_mm256_cvtepu16_epi32(_mm_loadu_si128(p)),
                     _mm256_cvtepu16_epi32(_mm_loadu_si128(p + 1))};
}

ALWAYS_INLINE words16 words_of_u8(const uint8_t *at) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)at);
    return (words16){_mm256_cvtepu8_epi32(v), _mm256_cvtepu8_epi32(_mm_srli_si128(v, 8))};
}

ALWAYS_INLINE words16 words_and(words16 a, words16 b) {
    return (words16){_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
}

ALWAYS_INLINE words16 words_or(words16 a, words16 b) {
    return lanes_or(a, b);
}

ALWAYS_INLINE words16 words_xor(words16 a, words16 b) {
    return (words16){_mm256_xor_si256(a.low, b.low), _mm256_xor_si256(a.high, b.high)};
}

ALWAYS_INLINE words16 words_add(words16 a, words16 b) {
    return (words16){_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}

/* Byte by byte. */
ALWAYS_INLINE words16 bytes_add(words16 a, words16 b) {
    return (words16){_mm256_add_epi8(a.low, b.low), _mm256_add_epi8(a.high, b.high)};
}

ALWAYS_INLINE words16 bytes_sub(words16 a, words16 b) {
    return (words16){_mm256_sub_epi8(a.low, b.low), _mm256_sub_epi8(a.high, b.high)};
}

ALWAYS_INLINE words16 words_left(words16 v, int n) {
    return (words16){_mm256_slli_epi32(v.low, n), _mm256_slli_epi32(v.high, n)};
}

ALWAYS_INLINE words16 words_right(words16 v, int n) {
    return (words16){_mm256_srli_epi32(v.low, n), _mm256_srli_epi32(v.high, n)};
}

/* All bits where a == b. */
ALWAYS_INLINE words16 words_equal(words16 a, words16 b) {
    return (words16){_mm256_cmpeq_epi32(a.low, b.low), _mm256_cmpeq_epi32(a.high, b.high)};
}

/* All bits of each byte that is at least c (unsigned). */
ALWAYS_INLINE words16 bytes_at_least(words16 v, uint8_t c) {
    const __m256i all = _mm256_set1_epi8((char)c);
    return (words16){_mm256_cmpeq_epi8(_mm256_max_epu8(v.low, all), v.low),
                     _mm256_cmpeq_epi8(_mm256_max_epu8(v.high, all), v.high)};
}

/* table[b] for each byte b, which is below 16. */
ALWAYS_INLINE words16 bytes_look(const void *table, words16 v) {
    __m256i all = _mm256_broadcastsi128_si256(_mm_loadu_si128(table));
    return (words16){_mm256_shuffle_epi8(all, v.low), _mm256_shuffle_epi8(all, v.high)};
}

/* Byte `which` of each word, four times. */
ALWAYS_INLINE words16 words_spread(words16 v, int which) {
    __m256i order =
        _mm256_broadcastsi128_si256(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0C0C0C0C));
    order = _mm256_add_epi8(order, _mm256_set1_epi8((char)which));
    return (words16){_mm256_shuffle_epi8(v.low, order), _mm256_shuffle_epi8(v.high, order)};
}

/* The entry of each row. */
ALWAYS_INLINE words16 words_look(const uint32_t *table, const uint8_t *at, const bool is_byte) {
    __m128i q[4];
    UNROLL for (int i = 0; i < 4; i++) {
        q[i] = four_words(table, at, 4 * i, is_byte);
    }
    return (words16){_mm256_set_m128i(q[1], q[0]), _mm256_set_m128i(q[3], q[2])};
}

/* Entries of rows r, r + 1, r + 4, r + 5. */
ALWAYS_INLINE __m256 four_entries(const uint64_t *table, const uint8_t *at, int r,
                                  const bool is_byte) {
    __m128i low = two_entries(table, at, r, is_byte), high = two_entries(table, at, r + 4, is_byte);
    return _mm256_castsi256_ps(_mm256_set_m128i(high, low));
}

/* The halves of the 8 bytes of each row's entry. */
ALWAYS_INLINE void words_look_two(const uint64_t *table, const uint8_t *at, const bool is_byte,
                                  words16 two[2]) {
    __m256 a = four_entries(table, at, 0, is_byte), b = four_entries(table, at, 2, is_byte);
    __m256 c = four_entries(table, at, 8, is_byte), d = four_entries(table, at, 10, is_byte);
    two[0] = (words16){_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)),
                       _mm256_castps_si256(_mm256_shuffle_ps(c, d, 0x88))};
    two[1] = (words16){_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xDD)),
                       _mm256_castps_si256(_mm256_shuffle_ps(c, d, 0xDD))};
}

ALWAYS_INLINE __m256i negate_half(__m256i v, __m256i signs, __m256i bits) {
    __m256i minus = _mm256_cmpeq_epi8(_mm256_and_si256(signs, bits), bits);
    return _mm256_sub_epi8(_mm256_xor_si256(v, minus), minus);
}

/* Byte j of each word is negated where bit j (half 1: j + 4) of the same byte of `signs` is set. */
ALWAYS_INLINE words16 bytes_negate(words16 v, words16 signs, int half) {
    const __m256i bits = _mm256_set1_epi32(half ? (int32_t)0x80402010 : 0x08040201);
    return (words16){negate_half(v.low, signs.low, bits), negate_half(v.high, signs.high, bits)};
}

/* Words as signed numbers. */
ALWAYS_INLINE void words_to_ps(float *out, words16 v) {
    ps_store(out, ps_of(v));
}

ALWAYS_INLINE void words_bits_to_ps(float *out, words16 v, float factor) {
    floats16 f = {_mm256_castsi256_ps(v.low), _mm256_castsi256_ps(v.high)};
    ps_store(out, ps_mul(f, ps_all(factor)));
}

ALWAYS_INLINE void halves_to_ps(float *out, const uint16_t *half, float factor) {
    ps_store(out, ps_mul(ps_load_f16(half), ps_all(factor)));
}

/* Words that hold the bits of a half. */
ALWAYS_INLINE void words_half_to_ps(float *out, words16 v, float factor) {
    uint16_t half[16];
    __m256i both = _mm256_packus_epi32(v.low, v.high);
    _mm256_storeu_si256((__m256i *)(void *)half, _mm256_permute4x64_epi64(both, 0xD8));
    halves_to_ps(out, half, factor);
}

#endif
