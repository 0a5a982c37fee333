/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes as words, and the one way to fill a pith_error.
 *
 * Invariant: after pith_fail, error->text is NUL-terminated, at most 239 bytes, keeps the start
 * and the end of a longer message, and is cut between UTF-8 characters. The
 * message is formatted aside first, so that a caller may quote the text of the same pith_error.
 *
 * It decides no policy: what a sentence says is the caller's (what, where, the numbers that
 * disagree, what to do). Read next: text.c.
 */
#include "base/status.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *pith_status_text(pith_status status) {
    switch (status) {
    case PITH_OK: return "ok";
    case PITH_ERROR_ARGUMENT: return "argument not allowed";
    case PITH_ERROR_MEMORY: return "out of memory";
    case PITH_ERROR_IO: return "input or output failed";
    case PITH_ERROR_FORMAT: return "malformed data";
    case PITH_ERROR_UNSUPPORTED: return "not supported";
    case PITH_ERROR_LIMIT: return "limit exceeded";
    case PITH_ERROR_CANCELLED: return "cancelled";
    case PITH_ERROR_NOT_FOUND: return "not found";
    case PITH_ERROR_TEMPLATE: return "chat template failed";
    case PITH_ERROR_INTERNAL: return "internal fault";
    }
    return "unknown status";
}

enum { TEXT_BYTES = sizeof((pith_error *)0)->text, FORMAT_BYTES = 5120, HEAD_BYTES = 96 };

/* Copies text; where it is too long its middle goes, since what is at stake stands at its start
 * and the reason at its end: "/a/very/lo...odel.gguf: is a directory". */
static void fit(const char *text, size_t size, char out[TEXT_BYTES]) {
    static const char gap[] = "...";
    if (size < TEXT_BYTES) {
        memcpy(out, text, size);
        out[size] = 0;
        return;
    }
    size_t head = HEAD_BYTES - pith_utf8_incomplete(text, HEAD_BYTES);
    size_t from = size - (TEXT_BYTES - 1 - HEAD_BYTES - strlen(gap));
    while (from < size && ((uint8_t)text[from] & 0xC0) == 0x80) from++;
    memcpy(out, text, head);
    memcpy(out + head, gap, strlen(gap));
    memcpy(out + head + strlen(gap), text + from, size - from);
    out[head + strlen(gap) + size - from] = 0;
}

pith_status pith_fail(pith_error *error, pith_status status, const char *format, ...) {
    if (!error) return status;
    char text[FORMAT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0) text[0] = 0;
    size_t size = strlen(text);
    if (length >= (int)sizeof text) size -= pith_utf8_incomplete(text, size);
    fit(text, size, error->text);
    error->status = status;
    return status;
}

pith_status pith_fail_memory(pith_error *error, const char *what, uint64_t bytes) {
    return pith_fail(error, PITH_ERROR_MEMORY,
                     "no memory for %s: %" PRIu64 " bytes could not be had; close other programs "
                     "or choose smaller limits",
                     what, bytes);
}
