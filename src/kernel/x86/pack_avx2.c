/* SPDX-License-Identifier: Apache-2.0
 * AVX2 packing: file blocks of 16 rows -> panel (layouts: panel.h). It runs at load and, in mmap
 * mode, before every product.
 *
 * One step takes 16 bytes of each of 16 rows and writes 4 code groups ([16 rows][4 bytes]): rows r
 * and r + 4 share a register, 4 x 4 dwords are transposed inside its halves. Scale fields are words
 * or bytes side by side; they are taken from such groups too. A last panel with fewer rows goes the
 * plain way (panel_ref.c), as do the last k of float types. Nothing is read outside the rows. The
 * same with one register for 16 rows: pack_avx512.c. */
#include "kernel/ref/ref.h"
#include "kernel/x86/lanes_256.h"
#include "kernel/x86/x86.h"

enum { ROWS = PITH_PANEL_ROWS };

/* Where the same block of 16 rows lies. */
typedef struct rows16 {
    const uint8_t *first;
    size_t stride;
} rows16;

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
ALWAYS_INLINE void load_groups(const rows16 *rows, size_t offset, lanes16 group[4]) {
    __m256i low[4], high[4];
    load_eight(rows, offset, 0, low);
    load_eight(rows, offset, 8, high);
    for (int g = 0; g < 4; g++) group[g] = (lanes16){low[g], high[g]};
}

/* The same, stored `step` bytes apart. */
ALWAYS_INLINE void move_groups(uint8_t *out, size_t step, const rows16 *rows, size_t offset) {
    lanes16 group[4];
    load_groups(rows, offset, group);
    for (int g = 0; g < 4; g++) lanes_store(out + (size_t)g * step, group[g]);
}

/* [16 rows][4 bytes] -> [4][16 rows], 64 bytes */
ALWAYS_INLINE void store_bytes_apart(void *out, lanes16 group) {
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
ALWAYS_INLINE void store_words_apart(void *out, lanes16 group) {
    const __m256i in_half = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    __m256i low = _mm256_shuffle_epi8(group.low, in_half),
            high = _mm256_shuffle_epi8(group.high, in_half), *to = out;
    _mm256_storeu_si256(to, _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(low, high), 0xD8));
    _mm256_storeu_si256(to + 1, _mm256_permute4x64_epi64(_mm256_unpackhi_epi64(low, high), 0xD8));
}

/* A word of each row. */
ALWAYS_INLINE void move_words(uint16_t *out, const rows16 *rows, size_t offset) {
    for (size_t r = 0; r < ROWS; r++) memcpy(out + r, rows->first + r * rows->stride + offset, 2);
}

ALWAYS_INLINE lanes16 load_dwords(const rows16 *rows, size_t offset) {
    uint32_t words[ROWS];
    for (size_t r = 0; r < ROWS; r++) memcpy(words + r, rows->first + r * rows->stride + offset, 4);
    return lanes_load(words);
}

/* Exchanges the bits of `low` with those `shift` above. */
ALWAYS_INLINE __m256i swap_bits(__m256i x, const int shift, uint32_t low) {
    __m256i t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi32(x, shift)),
                                 _mm256_set1_epi32((int)low));
    return _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_slli_epi32(t, shift)));
}

/* Bit 4g + j of each dword -> bit g of byte j. Seen as addresses of bits, g2 g1 g0 j1 j0 becomes j1
 * j0 g2 g1 g0: four exchanges of two address bits. */
ALWAYS_INLINE __m256i spread_bits(__m256i x) {
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
            lanes16 bits = load_dwords(&at, offset);
            lanes_store(codes, (lanes16){spread_bits(bits.low), spread_bits(bits.high)});
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
        lanes16 head[4];
        prefetch_rows(&at, block_bytes);
        load_groups(&at, 0, head);
        store_words_apart(out, head[0]);
        for (int i = 0; i < 3; i++) store_bytes_apart(out + 64 + 64 * i, head[i + 1]);
        out += 256;
        for (size_t i = 0; i < n_part; i++, out += 256) move_groups(out, 64, &at, 16 + 16 * i);
    }
}

ALWAYS_INLINE void pack_q6_k(pith_panel_q6_k *out, const void *rows, size_t stride, uint32_t k) {
    enum { LOW = 0, HIGH = 128, SCALES = 192, D = 208, BLOCK = 210 };
    rows16 at = {rows, stride};
    for (uint32_t b = 0; b < k / 256; b++, out++, at.first += BLOCK) {
        lanes16 scales[4];
        prefetch_rows(&at, BLOCK);
        move_words(out->d, &at, D);
        load_groups(&at, SCALES, scales);
        for (int i = 0; i < 4; i++) store_bytes_apart(out->scales[4 * i], scales[i]);
        for (size_t f = 0; f < 2; f++)
            for (size_t g = 0; g < 8; g += 4) {
                pith_panel_q6_k_part *part = &out->part[f][g];
                move_groups(part->low[0], sizeof *part, &at, LOW + 64 * f + 4 * g);
                move_groups(part->low[1], sizeof *part, &at, LOW + 64 * f + 32 + 4 * g);
                move_groups(part->high, sizeof *part, &at, HIGH + 32 * f + 4 * g);
            }
    }
}

void pith_pack_f32_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
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
        lanes16 group[4];
        if (i % 32 == 0) prefetch_rows(&at, 1);
        load_groups(&at, 0, group);
        for (int g = 0; g < 4; g++, out += 64) store_words_apart(out, group[g]);
    }
    return whole;
}

void pith_pack_f16_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                        uint32_t k) {
    uint32_t done = pack_half(panel, rows, row_bytes, n_row, k);
    pith_pack_f16_ref((uint8_t *)panel + done * 32, (const uint8_t *)rows + done * 2, row_bytes,
                      n_row, k - done);
}

void pith_pack_bf16_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    uint32_t done = pack_half(panel, rows, row_bytes, n_row, k);
    pith_pack_bf16_ref((uint8_t *)panel + done * 32, (const uint8_t *)rows + done * 2, row_bytes,
                       n_row, k - done);
}

void pith_pack_q4_0_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q4_0_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 18, Q4_0);
}

void pith_pack_q4_1_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q4_1_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 20, Q4_1);
}

void pith_pack_q5_0_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q5_0_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 22, Q5_0);
}

void pith_pack_q5_1_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q5_1_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 24, Q5_1);
}

void pith_pack_q8_0_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q8_0_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_small(panel, rows, row_bytes, k, 34, Q8_0);
}

void pith_pack_q4_k_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q4_k_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_super(panel, rows, row_bytes, k, 8);
}

void pith_pack_q5_k_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q5_k_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_super(panel, rows, row_bytes, k, 10);
}

void pith_pack_q6_k_avx2(void *panel, const void *rows, size_t row_bytes, uint32_t n_row,
                         uint32_t k) {
    if (n_row < ROWS)
        pith_pack_q6_k_ref(panel, rows, row_bytes, n_row, k);
    else
        pack_q6_k(panel, rows, row_bytes, k);
}
