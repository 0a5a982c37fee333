/* SPDX-License-Identifier: Apache-2.0
 * AVX-512 packing: file blocks of 16 rows -> panel (layouts: panel.h). It runs at load and, in
 * mmap mode, before every product.
 *
 * One step takes 16 bytes of each of 16 rows and writes 4 code groups ([16 rows][4 bytes]). Rows
 * r, r + 4, r + 8, r + 12 go to the four quarters of register r % 4; transposing 4 x 4 dwords
 * inside the quarters then gives the groups in row order. Scale fields are words or bytes side
 * by side; they are taken from such groups too. A last panel with fewer rows goes the plain way
 * (panel_ref.c), as do the last k of float types. Nothing is read outside the rows. */
#include "kernel/panel.h"
#include "kernel/ref/ref.h"
#include "kernel/x86/inline.h"
#include "kernel/x86/x86.h"

#include <immintrin.h>
#include <string.h>

enum { ROWS = PITH_PANEL_ROWS };

/* Where the same block of 16 rows lies. */
typedef struct rows16 {
    const uint8_t *first;
    size_t stride;
} rows16;

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
ALWAYS_INLINE void load_groups(const rows16 *rows, size_t offset, __m512i group[4]) {
    __m512i a = load_quarters(rows, offset, 0), b = load_quarters(rows, offset, 1);
    __m512i c = load_quarters(rows, offset, 2), d = load_quarters(rows, offset, 3);
    __m512i ab_low = _mm512_unpacklo_epi32(a, b), ab_high = _mm512_unpackhi_epi32(a, b);
    __m512i cd_low = _mm512_unpacklo_epi32(c, d), cd_high = _mm512_unpackhi_epi32(c, d);
    group[0] = _mm512_unpacklo_epi64(ab_low, cd_low);
    group[1] = _mm512_unpackhi_epi64(ab_low, cd_low);
    group[2] = _mm512_unpacklo_epi64(ab_high, cd_high);
    group[3] = _mm512_unpackhi_epi64(ab_high, cd_high);
}

/* The same, stored `step` bytes apart. */
ALWAYS_INLINE void move_groups(uint8_t *out, size_t step, const rows16 *rows, size_t offset) {
    __m512i group[4];
    load_groups(rows, offset, group);
    for (int g = 0; g < 4; g++) _mm512_storeu_si512(out + (size_t)g * step, group[g]);
}

/* [16 rows][4 bytes] -> [4][16 rows] */
ALWAYS_INLINE __m512i bytes_apart(__m512i group) {
    const __m512i in_quarter =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m512i between = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(between, _mm512_shuffle_epi8(group, in_quarter));
}

/* [16 rows][2 words] -> [2][16 rows], 64 bytes */
ALWAYS_INLINE void store_words_apart(void *out, __m512i group) {
    __m256i *at = out;
    _mm256_storeu_si256(at, _mm512_cvtepi32_epi16(group));
    _mm256_storeu_si256(at + 1, _mm512_cvtepi32_epi16(_mm512_srli_epi32(group, 16)));
}

/* A word of each row. */
ALWAYS_INLINE void move_words(uint16_t *out, const rows16 *rows, size_t offset) {
    for (size_t r = 0; r < ROWS; r++) memcpy(out + r, rows->first + r * rows->stride + offset, 2);
}

ALWAYS_INLINE __m512i load_dwords(const rows16 *rows, size_t offset) {
    uint32_t words[ROWS];
    for (size_t r = 0; r < ROWS; r++) memcpy(words + r, rows->first + r * rows->stride + offset, 4);
    return _mm512_loadu_si512(words);
}

/* Exchanges the bits of `low` with those `shift` above. */
ALWAYS_INLINE __m512i swap_bits(__m512i x, int shift, uint32_t low) {
    __m512i t = _mm512_and_si512(_mm512_xor_si512(x, _mm512_srli_epi32(x, (unsigned)shift)),
                                 _mm512_set1_epi32((int)low));
    return _mm512_xor_si512(x, _mm512_xor_si512(t, _mm512_slli_epi32(t, (unsigned)shift)));
}

/* Bit 4g + j of each dword -> bit g of byte j. Seen as addresses of bits, g2 g1 g0 j1 j0 becomes
 * j1 j0 g2 g1 g0: four exchanges of two address bits. */
ALWAYS_INLINE __m512i spread_bits(__m512i x) {
    x = swap_bits(x, 1, 0x22222222u);
    x = swap_bits(x, 3, 0x0A0A0A0Au);
    x = swap_bits(x, 6, 0x00CC00CCu);
    return swap_bits(x, 12, 0x0000F0F0u);
}

/* The same place of the next 16 rows, which a matrix keeps right behind these. */
ALWAYS_INLINE void prefetch_rows(const rows16 *rows, size_t bytes) {
    const char *next = (const char *)rows->first + ROWS * rows->stride;
    for (size_t at = 0; at < bytes; at += 64)
        for (size_t r = 0; r < ROWS; r++) _mm_prefetch(next + r * rows->stride + at, _MM_HINT_T1);
}

typedef enum kind { Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 } kind;

ALWAYS_INLINE void pack_small(uint8_t *out, const void *rows, size_t stride, uint32_t k,
                              size_t block_bytes, const kind type) {
    rows16 at = {rows, stride};
    for (uint32_t b = 0; b < k / 32; b++, out += ROWS * block_bytes, at.first += block_bytes) {
        uint8_t *codes = out + 32;
        size_t offset = 2;
        if (b % 2 == 0) prefetch_rows(&at, 1);
        if (type == Q4_1 || type == Q5_1) {
            store_words_apart(out, load_dwords(&at, 0));
            codes += 32;
            offset += 2;
        } else {
            move_words((uint16_t *)(void *)out, &at, 0);
        }
        if (type == Q5_0 || type == Q5_1) {
            _mm512_storeu_si512(codes, spread_bits(load_dwords(&at, offset)));
            codes += 64;
            offset += 4;
        }
        move_groups(codes, 64, &at, offset);
        if (type == Q8_0) move_groups(codes + 256, 64, &at, offset + 16);
    }
}

/* Q4_K, Q5_K: 16 bytes of d, dmin, scales, then n_part * 16 bytes that become code groups in
 * order. */
ALWAYS_INLINE void pack_super(uint8_t *out, const void *rows, size_t stride, uint32_t k,
                              size_t n_part) {
    rows16 at = {rows, stride};
    const size_t block_bytes = 16 + 16 * n_part;
    for (uint32_t b = 0; b < k / 256; b++, at.first += block_bytes) {
        __m512i head[4];
        prefetch_rows(&at, block_bytes);
        load_groups(&at, 0, head);
        store_words_apart(out, head[0]);
        for (int i = 0; i < 3; i++)
            _mm512_storeu_si512(out + 64 + 64 * i, bytes_apart(head[i + 1]));
        out += 256;
        for (size_t i = 0; i < n_part; i++, out += 256) move_groups(out, 64, &at, 16 + 16 * i);
    }
}

ALWAYS_INLINE void pack_q6_k(pith_panel_q6_k *out, const void *rows, size_t stride, uint32_t k) {
    enum { LOW = 0, HIGH = 128, SCALES = 192, D = 208, BLOCK = 210 };
    rows16 at = {rows, stride};
    for (uint32_t b = 0; b < k / 256; b++, out++, at.first += BLOCK) {
        __m512i scales[4];
        prefetch_rows(&at, BLOCK);
        move_words(out->d, &at, D);
        load_groups(&at, SCALES, scales);
        for (int i = 0; i < 4; i++) _mm512_storeu_si512(out->scales[4 * i], bytes_apart(scales[i]));
        for (size_t f = 0; f < 2; f++)
            for (size_t g = 0; g < 8; g += 4) {
                pith_panel_q6_k_part *part = &out->part[f][g];
                move_groups(part->low[0], sizeof *part, &at, LOW + 64 * f + 4 * g);
                move_groups(part->low[1], sizeof *part, &at, LOW + 64 * f + 32 + 4 * g);
                move_groups(part->high, sizeof *part, &at, HIGH + 32 * f + 4 * g);
            }
    }
}

void pith_pack_f32_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    rows16 at = {rows, row_bytes};
    uint32_t whole = n_row == ROWS ? k / 4 * 4 : 0;
    uint8_t *out = panel;
    for (uint32_t i = 0; i < whole; i += 4, at.first += 16, out += 256) {
        if (i % 16 == 0) prefetch_rows(&at, 1);
        move_groups(out, 64, &at, 0);
    }
    pith_pack_f32_ref(out, at.first, row_bytes, n_row, k - whole);
}

/* 2-byte floats: a group holds two k. */
ALWAYS_INLINE uint32_t pack_half(uint8_t *out, const void *rows, size_t row_bytes, uint32_t n_row,
                                 uint32_t k) {
    rows16 at = {rows, row_bytes};
    uint32_t whole = n_row == ROWS ? k / 8 * 8 : 0;
    for (uint32_t i = 0; i < whole; i += 8, at.first += 16) {
        __m512i group[4];
        if (i % 32 == 0) prefetch_rows(&at, 1);
        load_groups(&at, 0, group);
        for (int g = 0; g < 4; g++, out += 64) store_words_apart(out, group[g]);
    }
    return whole;
}

void pith_pack_f16_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                          uint32_t k) {
    uint32_t done = pack_half(panel, rows, row_bytes, n_row, k);
    pith_pack_f16_ref((uint8_t *)panel + done * 32, (const uint8_t *)rows + done * 2, row_bytes,
                      n_row, k - done);
}

void pith_pack_bf16_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    uint32_t done = pack_half(panel, rows, row_bytes, n_row, k);
    pith_pack_bf16_ref((uint8_t *)panel + done * 32, (const uint8_t *)rows + done * 2, row_bytes,
                       n_row, k - done);
}

void pith_pack_q4_0_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q4_0_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 18, Q4_0);
}

void pith_pack_q4_1_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q4_1_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 20, Q4_1);
}

void pith_pack_q5_0_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q5_0_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 22, Q5_0);
}

void pith_pack_q5_1_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q5_1_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 24, Q5_1);
}

void pith_pack_q8_0_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q8_0_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 34, Q8_0);
}

void pith_pack_q4_k_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q4_k_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_super(panel, rows, row_bytes, k, 8);
}

void pith_pack_q5_k_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q5_k_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_super(panel, rows, row_bytes, k, 10);
}

void pith_pack_q6_k_avx512(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                           uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q6_k_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_q6_k(panel, rows, row_bytes, k);
}
