/* SPDX-License-Identifier: Apache-2.0
 * The index of stored prefixes in a build without SQLite: there is none, and nobody above needs to
 * know more. Read next: prefix_index.c. */
#if !PITH_WITH_SQLITE

#include "engine/prefix_index.h"

const char *pith_prefix_index_library(void) {
    return NULL;
}

bool pith_prefix_index_exists(const char *folder) {
    (void)folder;
    return true; /* so that opening it tells why there is none */
}

pith_status pith_prefix_index_open(const char *folder, pith_prefix_index **out, pith_error *error) {
    (void)folder;
    *out = NULL;
    return pith_fail(error, PITH_ERROR_UNSUPPORTED, "this build has no SQLite");
}

void pith_prefix_index_close(pith_prefix_index *index) {
    (void)index;
}

bool pith_prefix_index_may_write(const pith_prefix_index *index) {
    (void)index;
    return false;
}

char *pith_prefix_index_path(const pith_prefix_index *index, int64_t id) {
    (void)index;
    (void)id;
    return NULL;
}

size_t pith_prefix_index_find(pith_prefix_index *index, uint64_t key, uint64_t hash,
                              pith_prefix_row *rows, size_t capacity) {
    (void)index;
    (void)key;
    (void)hash;
    (void)rows;
    (void)capacity;
    return 0;
}

bool pith_prefix_index_find_other(pith_prefix_index *index, uint64_t key, uint64_t hash) {
    (void)index;
    (void)key;
    (void)hash;
    return false;
}

int64_t pith_prefix_index_reserve(pith_prefix_index *index, const pith_prefix_entry *entry,
                                  uint64_t quota) {
    (void)index;
    (void)entry;
    (void)quota;
    return 0;
}

bool pith_prefix_index_publish(pith_prefix_index *index, int64_t id, uint64_t key,
                               const pith_prefix_places *places) {
    (void)index;
    (void)id;
    (void)key;
    (void)places;
    return false;
}

void pith_prefix_index_remove(pith_prefix_index *index, int64_t id) {
    (void)index;
    (void)id;
}

void pith_prefix_index_touch(pith_prefix_index *index, uint64_t key, const uint64_t *hashes,
                             size_t n) {
    (void)index;
    (void)key;
    (void)hashes;
    (void)n;
}

void pith_prefix_index_sweep(pith_prefix_index *index) {
    (void)index;
}

pith_status pith_prefix_index_each(pith_prefix_index *index, pith_prefix_index_visit visit,
                                   void *user, pith_error *error) {
    (void)index;
    (void)visit;
    (void)user;
    (void)error;
    return PITH_OK;
}

pith_status pith_prefix_index_clear(pith_prefix_index *index, size_t *n_removed,
                                    pith_error *error) {
    (void)index;
    (void)error;
    *n_removed = 0;
    return PITH_OK;
}

#else
typedef int pith_prefix_index_is_elsewhere;
#endif
