/* SPDX-License-Identifier: Apache-2.0
 * Entries of code books for the rows of a panel, and prefetching of the units that hold their
 * indexes (book_index.h): what words_avx2.h and words_avx512.h share, in 128-bit registers. */
#ifndef PITH_KERNEL_X86_BOOK_ENTRIES_H
#define PITH_KERNEL_X86_BOOK_ENTRIES_H

#include "kernel/book_index.h"

#include <immintrin.h>

enum { WORDS_AHEAD = 4096 };

/* Where a panel is read from front to back: a later line comes to L1. */
ALWAYS_INLINE void words_ahead(const void *unit) {
    _mm_prefetch((const char *)unit + WORDS_AHEAD, _MM_HINT_T0);
}

/* Entries of rows r .. r + 3. */
ALWAYS_INLINE __m128i four_words(const uint32_t *table, const uint8_t *at, int r,
                                 const bool is_byte) {
    __m128i a = _mm_cvtsi32_si128((int32_t)table[index_at(at, r, is_byte)]);
    __m128i b = _mm_cvtsi32_si128((int32_t)table[index_at(at, r + 1, is_byte)]);
    __m128i c = _mm_cvtsi32_si128((int32_t)table[index_at(at, r + 2, is_byte)]);
    __m128i d = _mm_cvtsi32_si128((int32_t)table[index_at(at, r + 3, is_byte)]);
    return _mm_unpacklo_epi64(_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
}

/* Entries of rows r and r + 1. */
ALWAYS_INLINE __m128i two_entries(const uint64_t *table, const uint8_t *at, int r,
                                  const bool is_byte) {
    return _mm_set_epi64x((int64_t)table[index_at(at, r + 1, is_byte)],
                          (int64_t)table[index_at(at, r, is_byte)]);
}

#endif
