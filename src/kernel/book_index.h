/* SPDX-License-Identifier: Apache-2.0
 * The index of a code book's entry for a row of a panel, as memory holds it: for words_avx2.h,
 * words_avx512.h and words_neon.h.
 *
 * Indexes are read one by one: sixteen loads beat a gather on many machines, and NEON has none.
 * Those that were computed must have been stored long before: a vector that is still on its way to
 * the cache is handed on one load a cycle, or late. */
#ifndef PITH_KERNEL_BOOK_INDEX_H
#define PITH_KERNEL_BOOK_INDEX_H

#include "kernel/inline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* at: words of 16 rows, in which an index is the word itself or (is_byte) its first byte. */
ALWAYS_INLINE size_t index_at(const uint8_t *at, int row, const bool is_byte) {
    uint32_t word;
    if (is_byte) return at[4 * row];
    memcpy(&word, at + 4 * row, sizeof word);
    return word;
}

#endif
