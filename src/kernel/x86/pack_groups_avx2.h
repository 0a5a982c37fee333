/* SPDX-License-Identifier: Apache-2.0
 * Code groups ([16 rows][4 bytes]) in 256-bit registers, for packing (pack_panels.h). One load
 * takes 16 bytes of each of 16 rows and makes 4 groups: rows r and r + 4 share a register, 4 x 4
 * dwords are transposed inside its halves. The same names with one register for 16 rows:
 * pack_groups_avx512.h. */
#ifndef PITH_KERNEL_X86_PACK_GROUPS_AVX2_H
#define PITH_KERNEL_X86_PACK_GROUPS_AVX2_H

#include "kernel/pack_rows.h"
#include "kernel/x86/lanes_256.h"

typedef lanes16 group16;

ALWAYS_INLINE group16 group_load(const void *at) {
    return lanes_load(at);
}

ALWAYS_INLINE void group_store(void *at, group16 group) {
    lanes_store(at, group);
}

/* 16 bytes of rows r and r + 4. */
ALWAYS_INLINE __m256i load_halves(const rows16 *rows, size_t offset, size_t r) {
    const uint8_t *at = rows->first + r * rows->stride + offset;
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)at);
    __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(at + 4 * rows->stride));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* Rows r .. r + 7: dword g of each -> group[g]. */
ALWAYS_INLINE void load_eight(const rows16 *rows, size_t offset, size_t r, __m256i group[4]) {
    __m256i a = load_halves(rows, offset, r), b = load_halves(rows, offset, r + 1);
    __m256i c = load_halves(rows, offset, r + 2), d = load_halves(rows, offset, r + 3);
    __m256i ab_low = _mm256_unpacklo_epi32(a, b), ab_high = _mm256_unpackhi_epi32(a, b);
    __m256i cd_low = _mm256_unpacklo_epi32(c, d), cd_high = _mm256_unpackhi_epi32(c, d);
    group[0] = _mm256_unpacklo_epi64(ab_low, cd_low);
    group[1] = _mm256_unpackhi_epi64(ab_low, cd_low);
    group[2] = _mm256_unpacklo_epi64(ab_high, cd_high);
    group[3] = _mm256_unpackhi_epi64(ab_high, cd_high);
}

/* 16 bytes at `offset` of every row -> 4 groups. */
ALWAYS_INLINE void load_groups(const rows16 *rows, size_t offset, group16 group[4]) {
    __m256i low[4], high[4];
    load_eight(rows, offset, 0, low);
    load_eight(rows, offset, 8, high);
    for (int g = 0; g < 4; g++) group[g] = (group16){low[g], high[g]};
}

/* [16 rows][4 bytes] -> [4][16 rows], 64 bytes */
ALWAYS_INLINE void store_bytes_apart(void *out, group16 group) {
    const __m256i in_quarter = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m256i low = _mm256_shuffle_epi8(group.low, in_quarter),
            high = _mm256_shuffle_epi8(group.high, in_quarter);
    __m128i a = _mm256_castsi256_si128(low), b = _mm256_extracti128_si256(low, 1);
    __m128i c = _mm256_castsi256_si128(high), d = _mm256_extracti128_si256(high, 1), *to = out;
    __m128i ab_low = _mm_unpacklo_epi32(a, b), ab_high = _mm_unpackhi_epi32(a, b);
    __m128i cd_low = _mm_unpacklo_epi32(c, d), cd_high = _mm_unpackhi_epi32(c, d);
    _mm_storeu_si128(to, _mm_unpacklo_epi64(ab_low, cd_low));
    _mm_storeu_si128(to + 1, _mm_unpackhi_epi64(ab_low, cd_low));
    _mm_storeu_si128(to + 2, _mm_unpacklo_epi64(ab_high, cd_high));
    _mm_storeu_si128(to + 3, _mm_unpackhi_epi64(ab_high, cd_high));
}

/* [16 rows][2 words] -> [2][16 rows], 64 bytes */
ALWAYS_INLINE void store_words_apart(void *out, group16 group) {
    const __m256i in_half = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    __m256i low = _mm256_shuffle_epi8(group.low, in_half),
            high = _mm256_shuffle_epi8(group.high, in_half), *to = out;
    _mm256_storeu_si256(to, _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(low, high), 0xD8));
    _mm256_storeu_si256(to + 1, _mm256_permute4x64_epi64(_mm256_unpackhi_epi64(low, high), 0xD8));
}

/* Exchanges the bits of `low` with those `shift` above. */
ALWAYS_INLINE __m256i swap_bits(__m256i x, const int shift, uint32_t low) {
    __m256i t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi32(x, shift)),
                                 _mm256_set1_epi32((int)low));
    return _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_slli_epi32(t, shift)));
}

/* Bit 4g + j of each dword -> bit g of byte j. Seen as addresses of bits, g2 g1 g0 j1 j0 becomes j1
 * j0 g2 g1 g0: four exchanges of two address bits. */
ALWAYS_INLINE __m256i spread_half(__m256i x) {
    x = swap_bits(x, 1, 0x22222222u);
    x = swap_bits(x, 3, 0x0A0A0A0Au);
    x = swap_bits(x, 6, 0x00CC00CCu);
    return swap_bits(x, 12, 0x0000F0F0u);
}

ALWAYS_INLINE group16 spread_bits(group16 v) {
    return (group16){spread_half(v.low), spread_half(v.high)};
}

#endif
