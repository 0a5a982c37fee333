/* SPDX-License-Identifier: Apache-2.0
 * For tests, which include cmocka before: what the folder of prompts has in its index. */
#ifndef PITH_TESTS_CACHE_ENTRIES_H
#define PITH_TESTS_CACHE_ENTRIES_H

#include "base/clock.h"
#include "engine/prefix_index.h"
#include "support/cache_folder.h"

typedef struct listing {
    size_t n;
    uint32_t first, end; /* of the last one visited */
    uint64_t bytes;
} listing;

static inline bool count_entry(void *user, const pith_cache_entry *entry) {
    listing *l = user;
    l->n++;
    l->first = (uint32_t)entry->first;
    l->end = (uint32_t)entry->n;
    l->bytes += entry->bytes;
    return true;
}

static inline listing list(void) {
    listing l = {0};
    pith_prefix_index *index;
    assert_int_equal(pith_prefix_index_open(folder, &index, NULL), PITH_OK);
    assert_int_equal(pith_prefix_index_each(index, count_entry, &l, NULL), PITH_OK);
    pith_prefix_index_close(index);
    return l;
}

/* The worker writes when it gets to it. */
static inline void wait_for_entries(size_t n) {
    uint64_t end = pith_clock_ns() + 20000000000ull;
    while (list().n < n) {
        if (pith_clock_ns() > end) fail_msg("%zu entries, expected %zu", list().n, n);
    }
}

#endif
