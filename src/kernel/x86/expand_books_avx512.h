/* SPDX-License-Identifier: Apache-2.0
 * IQ3 expanded with AVX-512: what expand_grids.h does, but entries of the code books are looked up
 * 32 at a time, in registers, as words of 16 bits (book_words_avx512.c). vpermt2w finds a word
 * among 64; those of all parts of a book are chosen between by the index's upper bits. With one
 * token IQ3 is 1.4 to 1.5 times as fast as with loads one by one; IQ2, with half as many indexes
 * for the same codes and books of up to 1024 entries, was not (Zen 4).
 *
 * Index words: a row's 32 bits are two indexes, and its entries come back in their place. The four
 * nibbles of an entry are then spread to the 4 bytes of a row's dword, whose magnitudes, with the
 * offset, a shuffle looks up; signs last. */
#ifndef PITH_KERNEL_X86_EXPAND_BOOKS_AVX512_H
#define PITH_KERNEL_X86_EXPAND_BOOKS_AVX512_H

#include "kernel/x86/words_avx512.h"

#include "kernel/expand_grids.h"

extern const uint16_t pith_words_iq3xxs[256], pith_words_iq3s[512];

/* Entries of 32 indexes below n = 256 or 512. */
ALWAYS_INLINE __m512i book_words(const uint16_t *book, __m512i index, const int n) {
    __m512i part[8];
    int bit = 64;
    UNROLL for (int p = 0; p < n / 64; p++) {
        part[p] = _mm512_permutex2var_epi16(_mm512_loadu_si512(book + 64 * p), index,
                                            _mm512_loadu_si512(book + 64 * p + 32));
    }
    UNROLL for (int left = n / 128; left; left /= 2, bit *= 2) {
        __mmask32 upper = _mm512_test_epi16_mask(index, _mm512_set1_epi16((int16_t)bit));
        UNROLL for (int p = 0; p < left; p++) {
            part[p] = _mm512_mask_blend_epi16(upper, part[2 * p], part[2 * p + 1]);
        }
    }
    return part[0];
}

/* Bytes 0 and 2 (odd: 1 and 3) of each dword as index words. */
ALWAYS_INLINE __m512i index_bytes(__m512i v, const bool odd) {
    return _mm512_and_si512(odd ? _mm512_srli_epi16(v, 8) : v, _mm512_set1_epi32(0x00FF00FF));
}

/* Index words with a ninth bit: bits n (of the first index) and m of h. */
ALWAYS_INLINE __m512i index_join(__m512i index, __m512i h, const int n, const int m) {
    __m512i first = _mm512_slli_epi32(h, (unsigned)(8 - n)),
            second = _mm512_slli_epi32(h, (unsigned)(24 - m));
    index = _mm512_ternarylogic_epi32(index, first, _mm512_set1_epi32(1 << 8), 0xF8);
    return _mm512_ternarylogic_epi32(index, second, _mm512_set1_epi32(1 << 24), 0xF8);
}

/* Bytes a, b, c, d of each dword. */
ALWAYS_INLINE __m512i dword_bytes(__m512i v, const int a, const int b, const int c, const int d) {
    const int order = a | b << 8 | c << 16 | d << 24;
    return _mm512_shuffle_epi8(
        v, _mm512_broadcast_i32x4(
               _mm_setr_epi32(order, order + 0x04040404, order + 0x08080808, order + 0x0C0C0C0C)));
}

/* Magnitudes that have the offset of books: negative where a sign bit is set (bytes_negate). */
ALWAYS_INLINE void store_signed(uint8_t *code, __m512i v, __m512i signs, const int half,
                                const int offset) {
    const __m512i bits = _mm512_set1_epi32(half ? (int32_t)0x80402010 : 0x08040201);
    __mmask64 minus = _mm512_test_epi8_mask(signs, bits);
    __m512i twice = _mm512_set1_epi8((char)(2 * offset));
    _mm512_storeu_si512(code, _mm512_mask_sub_epi8(v, minus, twice, v));
}

/* The code group of entry `which` (0, 1) of each row's two. */
ALWAYS_INLINE void expand_nibbles(uint8_t *code, __m512i entries, const int which, __m512i book,
                                  __m512i signs, const int half, const int offset) {
    __m512i low = dword_bytes(entries, 2 * which, 2 * which, 2 * which + 1, 2 * which + 1);
    __m512i v = _mm512_mask_blend_epi8(0xAAAAAAAAAAAAAAAAu, low, _mm512_srli_epi16(low, 4));
    v = _mm512_shuffle_epi8(book, _mm512_and_si512(v, _mm512_set1_epi8(15)));
    store_signed(code, v, signs, half, offset);
}

/* Four code groups; odd, even: entries of bytes 1 and 3, 0 and 2. */
ALWAYS_INLINE void expand_fours(uint8_t (*code)[64], __m512i even, __m512i odd, __m512i book,
                                const __m512i signs[2], const int offset) {
    expand_nibbles(code[0], even, 0, book, signs[0], 0, offset);
    expand_nibbles(code[1], odd, 0, book, signs[0], 1, offset);
    expand_nibbles(code[2], even, 1, book, signs[1], 0, offset);
    expand_nibbles(code[3], odd, 1, book, signs[1], 1, offset);
}

static inline void expand_books_iq3_xxs(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_iq3_xxs *b = (const void *)panel;
    const __m512i book = _mm512_broadcast_i32x4(
        _mm_add_epi8(_mm_setr_epi8(4, 12, 20, 28, 36, 44, 52, 62, 0, 0, 0, 0, 0, 0, 0, 0),
                     _mm_set1_epi8(OFFSET_BOOK)));
    for (int j = 0; j < n; j++) {
        words16 packed = words_next(b->signs[j]);
        UNROLL for (int u = 0; u < 2; u++) {
            words16 v = words_next(b->q[2 * j + u]), signs[2];
            UNROLL for (int s = 0; s < 2; s++) {
                signs[s] = words_spread(signs_of_index(field_of(packed, 14 * u + 7 * s, 127)), 0);
            }
            expand_fours(
                out->code[j] + 4 * u, book_words(pith_words_iq3xxs, index_bytes(v, false), 256),
                book_words(pith_words_iq3xxs, index_bytes(v, true), 256), book, signs, OFFSET_BOOK);
        }
        set_scale(out->f.scale[j], odd(words_right(packed, 28)));
    }
    halves_to_ps(out->f.d[0], b->d, 0.25f);
}

static inline void expand_books_iq3_s(expanded *out, const uint8_t *panel, int n) {
    const pith_panel_iq3_s *b = (const void *)panel;
    const __m512i book = _mm512_broadcast_i32x4(
        _mm_add_epi8(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                     _mm_set1_epi8(OFFSET_SMALL)));
    words16 scales = words_load(b->scales);
    for (int j = 0; j < n; j++) {
        words16 sign = words_next(b->signs[j]);
        words16 h = words_right(words_load(b->h[j / 4]), 8 * (j % 4));
        UNROLL for (int u = 0; u < 2; u++) {
            words16 v = words_next(b->q[2 * j + u]);
            words16 signs[2] = {words_spread(sign, 2 * u), words_spread(sign, 2 * u + 1)};
            words16 even = index_join(index_bytes(v, false), h, 4 * u, 4 * u + 2);
            words16 uneven = index_join(index_bytes(v, true), h, 4 * u + 1, 4 * u + 3);
            expand_fours(out->code[j] + 4 * u, book_words(pith_words_iq3s, even, 512),
                         book_words(pith_words_iq3s, uneven, 512), book, signs, OFFSET_SMALL);
        }
        set_scale(out->f.scale[j], odd(field_of(scales, 4 * j, 15)));
    }
    halves_to_ps(out->f.d[0], b->d, 1.0f);
}

#endif
