/* SPDX-License-Identifier: Apache-2.0
 * pith_status and pith_error (declared in pith.h, the only public header) and the one way to
 * fill them. */
#ifndef PITH_BASE_STATUS_H
#define PITH_BASE_STATUS_H

#include <pith.h>

#if defined(__MINGW32__) && !defined(__clang__)
#define PITH_PRINTF(format_index, first) __attribute__((format(gnu_printf, format_index, first)))
#elif defined(__GNUC__)
#define PITH_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define PITH_PRINTF(format_index, first)
#endif

/* Fills *error (NULL is allowed; a longer text is cut at a character boundary) and returns
 * status, so that a failing function ends with `return pith_fail(error, PITH_ERROR_FORMAT,
 * "...", ...)`. */
pith_status pith_fail(pith_error *error, pith_status status, const char *format, ...)
    PITH_PRINTF(3, 4);
/* The sentence for a failed allocation of `bytes` for `what`. */
pith_status pith_fail_memory(pith_error *error, const char *what, uint64_t bytes);

#endif
