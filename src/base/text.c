/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans and the growing buffer.
 *
 * Invariant of a buffer: data is NULL and capacity 0, or data[size] is NUL and size < capacity.
 * After a failed allocation the contents stay as they were and every later append does nothing,
 * so a caller checks once.
 *
 * Read next: utf8.c for characters, hash.c for pith_hash.
 */
#include "base/text.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

pith_span pith_span_of(const char *text) {
    return (pith_span){text, text ? strlen(text) : 0};
}

bool pith_span_equal(pith_span a, pith_span b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool pith_span_is(pith_span a, const char *text) {
    return pith_span_equal(a, pith_span_of(text));
}

bool pith_is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Room for `more` bytes and the NUL; grows by half so that n appends cost O(n). */
static bool buffer_grow(pith_buffer *buffer, size_t more) {
    size_t need;
    if (buffer->failed) return false;
    if (!pith_size_add(buffer->size, more, &need) || !pith_size_add(need, 1, &need)) {
        buffer->failed = true;
        return false;
    }
    if (need <= buffer->capacity) return true;
    size_t capacity = buffer->capacity + buffer->capacity / 2;
    if (capacity < need) capacity = need;
    if (capacity < 64) capacity = 64;
    char *data = pith_realloc(buffer->data, capacity);
    if (!data) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void pith_buffer_append(pith_buffer *buffer, const void *data, size_t size) {
    if (!buffer_grow(buffer, size)) return;
    if (size) memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
    buffer->data[buffer->size] = 0;
}

void pith_buffer_append_text(pith_buffer *buffer, const char *text) {
    pith_buffer_append(buffer, text, strlen(text));
}

void pith_buffer_append_format(pith_buffer *buffer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        buffer->failed = true;
        return;
    }
    if (!buffer_grow(buffer, (size_t)length)) return;
    va_start(arguments, format);
    vsnprintf(buffer->data + buffer->size, (size_t)length + 1, format, arguments);
    va_end(arguments);
    buffer->size += (size_t)length;
}

void pith_buffer_reset(pith_buffer *buffer) {
    buffer->size = 0;
    buffer->failed = false;
    if (buffer->data) buffer->data[0] = 0;
}

void pith_buffer_deinit(pith_buffer *buffer) {
    pith_free(buffer->data);
    *buffer = (pith_buffer){0};
}
