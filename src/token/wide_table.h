/* SPDX-License-Identifier: Apache-2.0
 * Memory of a hash table: zeroed, at the start of a cache line, on huge pages where it is large. */
#ifndef PITH_TOKEN_WIDE_TABLE_H
#define PITH_TOKEN_WIDE_TABLE_H

#include "base/memory.h"

typedef struct pith_wide_table {
    void *data;         /* [n * size] */
    void *memory;       /* data lies in it; NULL: in region */
    pith_region region; /* from PITH_WIDE_TABLE_BYTES on */
} pith_wide_table;      /* zero-initialised may be closed */

#define PITH_WIDE_TABLE_BYTES ((size_t)2 << 20)

/* False: no memory. */
bool pith_wide_table_open(pith_wide_table *table, size_t n, size_t size);
void pith_wide_table_close(pith_wide_table *table);

#endif
