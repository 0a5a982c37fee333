/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes as words, and the one way to fill a pith_error.
 *
 * Invariant: after pith_fail, error->text is NUL-terminated, at most 239 bytes, and never ends
 * in half a UTF-8 character. The message is formatted aside first, so that a caller may quote
 * the text of the same pith_error.
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

pith_status pith_fail(pith_error *error, pith_status status, const char *format, ...) {
    if (!error) return status;
    char text[sizeof error->text];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0) text[0] = 0;
    size_t size = strlen(text);
    if (length >= (int)sizeof text) size -= pith_utf8_incomplete(text, size);
    memcpy(error->text, text, size);
    error->text[size] = 0;
    error->status = status;
    return status;
}

pith_status pith_fail_memory(pith_error *error, const char *what, uint64_t bytes) {
    return pith_fail(error, PITH_ERROR_MEMORY,
                     "no memory for %s: %" PRIu64 " bytes could not be had; close other programs "
                     "or choose smaller limits",
                     what, bytes);
}
