/* SPDX-License-Identifier: Apache-2.0
 * Bounded little-endian reading of untrusted bytes. A read past the end sets `failed`, returns 0
 * and leaves the position where it was; check once after a group of reads. */
#ifndef PITH_BASE_CURSOR_H
#define PITH_BASE_CURSOR_H

#include "base/text.h"

typedef struct pith_cursor {
    const uint8_t *data;
    size_t size, position;
    bool failed;
} pith_cursor;

pith_cursor pith_cursor_over(const void *data, size_t size);
size_t pith_cursor_remaining(const pith_cursor *cursor);
uint8_t pith_cursor_read_u8(pith_cursor *cursor);
uint16_t pith_cursor_read_u16(pith_cursor *cursor);
uint32_t pith_cursor_read_u32(pith_cursor *cursor);
uint64_t pith_cursor_read_u64(pith_cursor *cursor);
float pith_cursor_read_f32(pith_cursor *cursor);
double pith_cursor_read_f64(pith_cursor *cursor);
pith_span pith_cursor_read_bytes(pith_cursor *cursor, uint64_t size);
void pith_cursor_skip(pith_cursor *cursor, uint64_t size);

#endif
