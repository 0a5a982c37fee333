/* SPDX-License-Identifier: Apache-2.0
 * Borrowed byte strings (pith_span), a growing buffer (pith_buffer) and UTF-8.
 * pith_buffer remembers a failed allocation: append freely, check `failed` once at the end. */
#ifndef PITH_BASE_TEXT_H
#define PITH_BASE_TEXT_H

#include "base/status.h"

typedef struct pith_span {
    const char *data; /* not NUL-terminated; NULL only when size is 0 */
    size_t size;
} pith_span;

pith_span pith_span_of(const char *text); /* a NUL-terminated string */
bool pith_span_equal(pith_span a, pith_span b);
bool pith_span_is(pith_span a, const char *text);
bool pith_is_space(char c); /* as in the C locale: space, \t, \n, \v, \f, \r */
/* 64 bits, not for secrets; the same on every platform. */
uint64_t pith_hash(const void *data, size_t size, uint64_t seed);
/* 64 bits against damage of large data, as fast as memory; not for maps, not against forgery. */
uint64_t pith_checksum(const void *data, size_t size);

/* Zero-initialised is empty. */
typedef struct pith_buffer {
    char *data; /* always NUL-terminated when not NULL */
    size_t size, capacity;
    bool failed; /* an allocation failed: later appends do nothing */
} pith_buffer;

void pith_buffer_append(pith_buffer *buffer, const void *data, size_t size);
void pith_buffer_append_text(pith_buffer *buffer, const char *text);
void pith_buffer_append_format(pith_buffer *buffer, const char *format, ...) PITH_PRINTF(2, 3);
void pith_buffer_reset(pith_buffer *buffer);  /* empties, keeps the memory */
void pith_buffer_deinit(pith_buffer *buffer); /* releases, leaves it zeroed */

/* One UTF-8 decoder for everything: no overlong forms, no surrogates, nothing above 10FFFF.
 * Decodes the character at data (size > 0). Returns its length 1..4 and sets *code; for
 * ill-formed input returns 1 and sets *code to PITH_UTF8_INVALID (the byte stands alone). */
#define PITH_UTF8_INVALID 0xFFFFFFFFu
size_t pith_utf8_decode(const char *data, size_t size, uint32_t *code);
size_t pith_utf8_encode(uint32_t code, char out[4]); /* 0 for surrogates and above 10FFFF */
/* Bytes at the end of data that are the start of a well-formed character whose rest is missing
 * (0..3). */
size_t pith_utf8_incomplete(const char *data, size_t size);

#endif
