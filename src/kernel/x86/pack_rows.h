/* SPDX-License-Identifier: Apache-2.0
 * Where packing reads: the same block of 16 rows, and the fields of it that are too small for a
 * vector. Nothing outside the rows is read; prefetches may point there. Users:
 * pack_groups_avx2.h, pack_groups_avx512.h, pack_panels.h. */
#ifndef PITH_KERNEL_X86_PACK_ROWS_H
#define PITH_KERNEL_X86_PACK_ROWS_H

#include "kernel/kernel.h"
#include "kernel/panel.h"
#include "kernel/x86/inline.h"

#include <immintrin.h>
#include <stddef.h>
#include <string.h>

enum { ROWS = PITH_PANEL_ROWS };

typedef struct rows16 {
    const uint8_t *first;
    size_t stride; /* bytes */
} rows16;

/* A word of each row. */
ALWAYS_INLINE void move_words(uint16_t *out, const rows16 *rows, size_t offset) {
    for (size_t r = 0; r < ROWS; r++) memcpy(out + r, rows->first + r * rows->stride + offset, 2);
}

/* Four bytes of each row. */
ALWAYS_INLINE void move_dwords(uint32_t out[ROWS], const rows16 *rows, size_t offset) {
    for (size_t r = 0; r < ROWS; r++) memcpy(out + r, rows->first + r * rows->stride + offset, 4);
}

/* The same place of the next 16 rows, which a matrix keeps right behind these. */
ALWAYS_INLINE void prefetch_rows(const rows16 *rows, size_t bytes) {
    const char *next = (const char *)rows->first + ROWS * rows->stride;
    for (size_t at = 0; at < bytes; at += 64)
        for (size_t r = 0; r < ROWS; r++) _mm_prefetch(next + r * rows->stride + at, _MM_HINT_T1);
}

#endif
