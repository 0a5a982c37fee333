/* SPDX-License-Identifier: Apache-2.0
 *
 * The bounded cursor: the only way in which untrusted bytes are parsed.
 *
 * Invariant: position <= size always. A read that does not fit sets `failed`, returns zero (an
 * empty span) and moves nothing; `failed` is never cleared here, and later reads that would fit
 * still work, so a caller may check once after a group of reads. Numbers are assembled from
 * bytes: any alignment, any byte order of the machine.
 *
 * It knows nothing of what the bytes mean. Read next: gguf.
 */
#include "base/cursor.h"

#include "base/float16.h"

pith_cursor pith_cursor_over(const void *data, size_t size) {
    return (pith_cursor){.data = data, .size = size};
}

size_t pith_cursor_remaining(const pith_cursor *cursor) {
    return cursor->size - cursor->position;
}

static uint64_t read_number(pith_cursor *cursor, size_t n) {
    if (pith_cursor_remaining(cursor) < n) {
        cursor->failed = true;
        return 0;
    }
    const uint8_t *bytes = cursor->data + cursor->position;
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) value |= (uint64_t)bytes[i] << (8 * i);
    cursor->position += n;
    return value;
}

uint8_t pith_cursor_read_u8(pith_cursor *cursor) {
    return (uint8_t)read_number(cursor, 1);
}
uint16_t pith_cursor_read_u16(pith_cursor *cursor) {
    return (uint16_t)read_number(cursor, 2);
}
uint32_t pith_cursor_read_u32(pith_cursor *cursor) {
    return (uint32_t)read_number(cursor, 4);
}
uint64_t pith_cursor_read_u64(pith_cursor *cursor) {
    return read_number(cursor, 8);
}

float pith_cursor_read_f32(pith_cursor *cursor) {
    return pith_f32_of_bits(pith_cursor_read_u32(cursor));
}

double pith_cursor_read_f64(pith_cursor *cursor) {
    uint64_t bits = pith_cursor_read_u64(cursor);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

pith_span pith_cursor_read_bytes(pith_cursor *cursor, uint64_t size) {
    if (pith_cursor_remaining(cursor) < size) {
        cursor->failed = true;
        return (pith_span){NULL, 0};
    }
    if (size == 0) return (pith_span){"", 0};
    pith_span span = {(const char *)cursor->data + cursor->position, (size_t)size};
    cursor->position += (size_t)size;
    return span;
}

void pith_cursor_skip(pith_cursor *cursor, uint64_t size) {
    (void)pith_cursor_read_bytes(cursor, size);
}
