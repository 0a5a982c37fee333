/* SPDX-License-Identifier: Apache-2.0
 * Asking for memory that will be read soon, where the compiler has a way. Changes nothing but
 * time. */
#ifndef PITH_BASE_PREFETCH_H
#define PITH_BASE_PREFETCH_H

#include <stddef.h>

enum { PITH_PREFETCH_LINE = 64 };

/* The lines that begin in [data, data + size), into the second cache. */
static inline void pith_prefetch(const void *data, size_t size) {
#if defined(__GNUC__)
    const char *bytes = data;
    for (size_t i = 0; i < size; i += PITH_PREFETCH_LINE) __builtin_prefetch(bytes + i, 0, 2);
#else
    (void)data;
    (void)size;
#endif
}

#endif
