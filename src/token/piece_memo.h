/* SPDX-License-Identifier: Apache-2.0
 * What pieces gave when they were encoded: hash tables of write-once cells that threads share
 * without locks. Nearly all pieces are short and give few tokens; the others have a table of larger
 * cells. */
#ifndef PITH_TOKEN_PIECE_MEMO_H
#define PITH_TOKEN_PIECE_MEMO_H

#include "base/text.h"
#include "token/wide_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    PITH_MEMO_PIECE_BYTES = 15, /* of a short piece */
    PITH_MEMO_IDS = 4,          /* of one */
    PITH_MEMO_LEVELS = 3,       /* sizes that the table of short pieces grows through */
    PITH_MEMO_BITS = 17,        /* cells at most: 4 MiB, and 0.6 MiB of the sizes before */
    PITH_MEMO_LONG_PIECE_BYTES = 96,
    PITH_MEMO_LONG_IDS = 52,
    PITH_MEMO_LONG_BITS = 12, /* cells; 1 MiB, touched only as they fill */
    PITH_MEMO_PROBES = 8,
    PITH_MEMO_STATE_SHIFT = 24,
    PITH_MEMO_READY = 2, /* least state of a finished cell */
    PITH_MEMO_ELSEWHERE =
        PITH_MEMO_READY + PITH_MEMO_IDS + 1 /* of a short cell: see the long ones */
};

#define PITH_MEMO_NOWHERE UINT32_MAX

/* A piece as two words: its bytes, zero-filled, its length in the last one. Never {0, 0}. */
typedef struct pith_memo_key {
    uint64_t low, high;
} pith_memo_key;

/*   |  key.low  |  key.high  | id 0 | id 1 | id 2 | state:8, id 3:24 |     32 bytes, two a line
 * States: 0 free, 1 being written, 2 + n: n ids, and the cell never changes again; ELSEWHERE: id 0
 * is the number of the long cell. */
typedef struct pith_memo_cell {
    pith_memo_key key;
    uint32_t ids[PITH_MEMO_IDS - 1];
    atomic_uint last; /* state << PITH_MEMO_STATE_SHIFT | the last id */
} pith_memo_cell;

typedef struct pith_memo_long_cell {
    atomic_uchar state; /* as above */
    uint8_t size;
    char text[PITH_MEMO_LONG_PIECE_BYTES];
    uint8_t ids[PITH_MEMO_LONG_IDS * 3 + 2]; /* 24 bits each, lowest byte first */
} pith_memo_long_cell;                       /* 256 bytes */

typedef struct pith_memo_table {
    pith_memo_cell *cells; /* [mask + 1] */
    size_t mask;
    pith_wide_table memory; /* of the cells */
    atomic_uint n_kept;     /* cells taken */
} pith_memo_table;

/* Lives on the heap: a constant tokenizer's memo grows. */
typedef struct pith_piece_memo {
    pith_memo_table tables[PITH_MEMO_LEVELS]; /* those up to `level` are there, and stay */
    atomic_uint level;
    atomic_bool growing; /* some thread is at it, or there was no memory */
    pith_memo_long_cell *long_cells;
    pith_wide_table long_memory;
} pith_piece_memo;

pith_piece_memo *pith_piece_memo_new(void); /* NULL: no memory */
void pith_piece_memo_free(pith_piece_memo *memo);

/* The table to ask now. Those of before stay valid. */
static inline const pith_memo_table *pith_memo_table_now(const pith_piece_memo *memo) {
    return &memo->tables[atomic_load_explicit(&memo->level, memory_order_acquire)];
}

static inline uint64_t pith_memo_hash(pith_memo_key key) {
    return (key.low ^ (key.high << 23 | key.high >> 41)) * UINT64_C(0x9E3779B97F4A7C15);
}

static inline size_t pith_memo_place(const pith_memo_table *table, pith_memo_key key) {
    return (size_t)(pith_memo_hash(key) >> (64 - PITH_MEMO_BITS)) & table->mask;
}

/* Whether a cell is finished and holds its ids itself, by its `last`. */
static inline bool pith_memo_is_short(uint32_t last) {
    return (last >> PITH_MEMO_STATE_SHIFT) - PITH_MEMO_READY <= PITH_MEMO_IDS;
}

static inline bool pith_memo_same_key(pith_memo_key a, pith_memo_key b) {
    return a.low == b.low && a.high == b.high;
}

/* Of a finished cell. */
static inline bool pith_memo_has(const pith_memo_cell *cell, pith_memo_key key) {
    return pith_memo_same_key(cell->key, key);
}

/* Writes the ids of a finished cell, PITH_MEMO_IDS of them whatever it holds: no branch. Returns
 * how many count. */
static inline size_t pith_memo_read(const pith_memo_cell *cell, uint32_t last, int32_t *out) {
    memcpy(out, cell->ids, sizeof cell->ids);
    out[PITH_MEMO_IDS - 1] = (int32_t)(last & ((UINT32_C(1) << PITH_MEMO_STATE_SHIFT) - 1));
    return (last >> PITH_MEMO_STATE_SHIFT) - PITH_MEMO_READY;
}

/* The finished cell of a short piece, or NULL. *last: as in the cell. */
const pith_memo_cell *pith_piece_memo_find(const pith_piece_memo *memo, pith_memo_key key,
                                           uint32_t *last);
/* Keep what a short piece gave, where there is room: any number of ids, or PITH_MEMO_IDS at most.
 */
void pith_piece_memo_keep_any(pith_piece_memo *memo, pith_memo_key key, pith_span piece,
                              const int32_t *ids, size_t n);
void pith_piece_memo_keep(pith_piece_memo *memo, pith_memo_key key, const int32_t *ids, size_t n);
/* The long cell's number, or PITH_MEMO_NOWHERE. */
uint32_t pith_piece_memo_keep_long(pith_piece_memo *memo, const char *data, size_t size,
                                   const int32_t *ids, size_t n);
/* Keeps where the ids of a short piece are: `number` as from keep_long. */
void pith_piece_memo_keep_number(pith_piece_memo *memo, pith_memo_key key, uint32_t number);
/* The finished long cell of a piece of any length, or NULL. */
const pith_memo_long_cell *pith_piece_memo_find_long(const pith_piece_memo *memo, const char *data,
                                                     size_t size);
/* Writes the ids of a finished long cell (PITH_MEMO_LONG_IDS at most). Returns how many. */
size_t pith_memo_read_long(const pith_memo_long_cell *cell, int32_t *out);

#endif
