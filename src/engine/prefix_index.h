/* SPDX-License-Identifier: Apache-2.0
 * Which prefixes a folder holds (private to the engine room): an SQLite database, pith-prompts.db,
 * beside the files that it names.
 *
 *   entries   id | key | first | n | ids_hash | bytes | ready | used | changed | model | settings
 *   blocks    hash of the tokens up to a multiple of 64 | id of an entry that has KV from there on
 *             or up to there
 *
 * The file of an entry is e<id>.kv1. A row is there before its file is begun and goes before its
 * file is removed, so a file without a row is a left-over and may always be removed.
 *
 * One connection is used by one thread at a time. Nothing here fails loudly: an index that cannot
 * be read has nothing, one that cannot be written keeps nothing. */
#ifndef PITH_ENGINE_PREFIX_INDEX_H
#define PITH_ENGINE_PREFIX_INDEX_H

#include "base/status.h"

typedef struct pith_prefix_index pith_prefix_index;

/* What to look for, or what is stored. */
typedef struct pith_prefix_entry {
    uint64_t key;
    uint32_t first, n;            /* KV of positions [first, n) */
    uint64_t ids_hash;            /* of the ids [0, n) */
    uint64_t bytes;               /* of the file */
    const char *model, *settings; /* for people */
} pith_prefix_entry;

typedef struct pith_prefix_row {
    int64_t id;
    uint32_t first, n;
} pith_prefix_row;

/* SQLite's version. NULL: this build has none, and open always fails. */
const char *pith_prefix_index_library(void);
/* Whether the folder holds one. */
bool pith_prefix_index_exists(const char *folder);
/* Opens or makes the index of a folder; one that is broken or of another version is made anew, one
 * in a folder that may only be read is read. */
pith_status pith_prefix_index_open(const char *folder, pith_prefix_index **out, pith_error *error);
void pith_prefix_index_close(pith_prefix_index *index); /* NULL is allowed */
bool pith_prefix_index_may_write(const pith_prefix_index *index);
/* "FOLDER/e<id>.kv1"; released with pith_free, NULL without memory. */
char *pith_prefix_index_path(const pith_prefix_index *index, int64_t id);

/* Entries with KV on either side of the place that `hash` stands for: writes at most capacity,
 * those that begin first in front. */
size_t pith_prefix_index_find(pith_prefix_index *index, uint64_t key, uint64_t hash,
                              pith_prefix_row *rows, size_t capacity);
/* Whether such an entry exists for another key. */
bool pith_prefix_index_find_other(pith_prefix_index *index, uint64_t key, uint64_t hash);

/* Makes room below the quota and a row for an entry that is to be written. 0: it is there already,
 * or there is no room. Files of entries that had to go are removed. */
int64_t pith_prefix_index_reserve(pith_prefix_index *index, const pith_prefix_entry *entry,
                                  uint64_t quota);
/* The prompt of an entry at multiples of 64 tokens: hashes[i] stands for its first 64 (i + 1). The
 * entry can be found by those from `own` on. */
typedef struct pith_prefix_places {
    const uint64_t *hashes; /* [n] */
    size_t n, own;
} pith_prefix_places;
/* The file is in place. false: somebody removed the row meanwhile. */
bool pith_prefix_index_publish(pith_prefix_index *index, int64_t id, uint64_t key,
                               const pith_prefix_places *places);
/* Forgets an entry and removes its file. */
void pith_prefix_index_remove(pith_prefix_index *index, int64_t id);
/* Entries of the key with KV of these places were used just now. */
void pith_prefix_index_touch(pith_prefix_index *index, uint64_t key, const uint64_t *hashes,
                             size_t n);
/* Removes files without a row, and rows whose writer must have died. */
void pith_prefix_index_sweep(pith_prefix_index *index);

/* What there is, last used first; each returns false to stop. */
typedef bool (*pith_prefix_index_visit)(void *user, const pith_cache_entry *entry);
pith_status pith_prefix_index_each(pith_prefix_index *index, pith_prefix_index_visit visit,
                                   void *user, pith_error *error);
/* Removes everything. */
pith_status pith_prefix_index_clear(pith_prefix_index *index, size_t *n_removed, pith_error *error);

#endif
