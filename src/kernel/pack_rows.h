/* SPDX-License-Identifier: Apache-2.0
 * Where packing reads: the same block of 16 rows, and the fields of it that are too small for a
 * vector. Nothing outside the rows is read; prefetches may point there. Users: pack_panels.h and
 * the code groups of each tier (x86/pack_groups_*.h, arm/pack_groups_neon.h). */
#ifndef PITH_KERNEL_PACK_ROWS_H
#define PITH_KERNEL_PACK_ROWS_H

#include "kernel/inline.h"
#include "kernel/kernel.h"
#include "kernel/panel.h"

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
        for (size_t r = 0; r < ROWS; r++) __builtin_prefetch(next + r * rows->stride + at, 0, 2);
}

#endif
