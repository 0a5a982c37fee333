/* SPDX-License-Identifier: Apache-2.0
 *
 * Hash tables are read all over the place: with small pages every look-up may miss the translation
 * cache too, and filling a table costs a page fault for every 4 KiB. A table of 2 MiB or more takes
 * memory from the operating system with huge pages asked for; smaller ones would waste most of
 * one. Invariant: the memory is zeroed either way. Read next: piece_memo.c, merge_rules.c.
 */
#include "token/wide_table.h"

enum { LINE = 64 };

bool pith_wide_table_open(pith_wide_table *table, size_t n, size_t size) {
    size_t bytes;
    *table = (pith_wide_table){0};
    if (!pith_size_mul(n, size, &bytes)) return false;
    if (bytes >= PITH_WIDE_TABLE_BYTES) {
        if (!pith_region_open(&table->region, bytes, true)) return false;
        table->data = table->region.data;
        return true;
    }
    table->memory = pith_alloc_zero(bytes + LINE, 1);
    if (!table->memory) return false;
    table->data = (void *)(((uintptr_t)table->memory + LINE - 1) & ~(uintptr_t)(LINE - 1));
    return true;
}

void pith_wide_table_close(pith_wide_table *table) {
    pith_free(table->memory);
    pith_region_close(&table->region);
    *table = (pith_wide_table){0};
}
