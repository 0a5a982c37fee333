/* SPDX-License-Identifier: Apache-2.0
 * Code groups ([16 rows][4 bytes]) in 512-bit registers, for packing (pack_panels.h). One load
 * takes 16 bytes of each of 16 rows and makes 4 groups: rows r, r + 4, r + 8, r + 12 go to the
 * four quarters of register r % 4; transposing 4 x 4 dwords inside the quarters then gives the
 * groups in row order. The same names with two registers for 16 rows: pack_groups_avx2.h. */
#ifndef PITH_KERNEL_X86_PACK_GROUPS_AVX512_H
#define PITH_KERNEL_X86_PACK_GROUPS_AVX512_H

#include "kernel/pack_rows.h"

#include <immintrin.h>

typedef __m512i group16;

ALWAYS_INLINE group16 group_load(const void *at) {
    return _mm512_loadu_si512(at);
}

ALWAYS_INLINE void group_store(void *at, group16 group) {
    _mm512_storeu_si512(at, group);
}

ALWAYS_INLINE __m128i load16(const rows16 *rows, size_t offset, size_t r) {
    return _mm_loadu_si128(
        (const __m128i *)(const void *)(rows->first + r * rows->stride + offset));
}

/* Rows r, r + 4, r + 8, r + 12. */
ALWAYS_INLINE __m512i load_quarters(const rows16 *rows, size_t offset, size_t r) {
    __m512i v = _mm512_castsi128_si512(load16(rows, offset, r));
    v = _mm512_inserti32x4(v, load16(rows, offset, r + 4), 1);
    v = _mm512_inserti32x4(v, load16(rows, offset, r + 8), 2);
    return _mm512_inserti32x4(v, load16(rows, offset, r + 12), 3);
}

/* 16 bytes at `offset` of every row -> 4 groups. */
ALWAYS_INLINE void load_groups(const rows16 *rows, size_t offset, group16 group[4]) {
    __m512i a = load_quarters(rows, offset, 0), b = load_quarters(rows, offset, 1);
    __m512i c = load_quarters(rows, offset, 2), d = load_quarters(rows, offset, 3);
    __m512i ab_low = _mm512_unpacklo_epi32(a, b), ab_high = _mm512_unpackhi_epi32(a, b);
    __m512i cd_low = _mm512_unpacklo_epi32(c, d), cd_high = _mm512_unpackhi_epi32(c, d);
    group[0] = _mm512_unpacklo_epi64(ab_low, cd_low);
    group[1] = _mm512_unpackhi_epi64(ab_low, cd_low);
    group[2] = _mm512_unpacklo_epi64(ab_high, cd_high);
    group[3] = _mm512_unpackhi_epi64(ab_high, cd_high);
}

/* [16 rows][4 bytes] -> [4][16 rows], 64 bytes */
ALWAYS_INLINE void store_bytes_apart(void *out, group16 group) {
    const __m512i in_quarter =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m512i between = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    group = _mm512_shuffle_epi8(group, in_quarter);
    _mm512_storeu_si512(out, _mm512_permutexvar_epi32(between, group));
}

/* [16 rows][2 words] -> [2][16 rows], 64 bytes */
ALWAYS_INLINE void store_words_apart(void *out, group16 group) {
    __m256i *at = out;
    _mm256_storeu_si256(at, _mm512_cvtepi32_epi16(group));
    _mm256_storeu_si256(at + 1, _mm512_cvtepi32_epi16(_mm512_srli_epi32(group, 16)));
}

/* Exchanges the bits of `low` with those `shift` above. */
ALWAYS_INLINE __m512i swap_bits(__m512i x, int shift, uint32_t low) {
    __m512i t = _mm512_and_si512(_mm512_xor_si512(x, _mm512_srli_epi32(x, (unsigned)shift)),
                                 _mm512_set1_epi32((int)low));
    return _mm512_xor_si512(x, _mm512_xor_si512(t, _mm512_slli_epi32(t, (unsigned)shift)));
}

/* Bit 4g + j of each dword -> bit g of byte j. Seen as addresses of bits, g2 g1 g0 j1 j0 becomes
 * j1 j0 g2 g1 g0: four exchanges of two address bits. */
ALWAYS_INLINE group16 spread_bits(group16 x) {
    x = swap_bits(x, 1, 0x22222222u);
    x = swap_bits(x, 3, 0x0A0A0A0Au);
    x = swap_bits(x, 6, 0x00CC00CCu);
    return swap_bits(x, 12, 0x0000F0F0u);
}

#endif
