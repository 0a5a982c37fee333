/* SPDX-License-Identifier: Apache-2.0
 * What pieces gave when they were encoded: write-once hash tables that threads share without
 * locks. Nearly all pieces are short and give few tokens; the others have a table of larger cells.
 * */
#ifndef PITH_TOKEN_PIECE_MEMO_H
#define PITH_TOKEN_PIECE_MEMO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PITH_MEMO_PIECE_BYTES = 15, /* of a short piece */
    PITH_MEMO_IDS = 5,          /* of one */
    PITH_MEMO_BITS = 16,        /* cells; 2 MiB, touched only as they fill */
    PITH_MEMO_LONG_PIECE_BYTES = 62,
    PITH_MEMO_LONG_IDS = 20,
    PITH_MEMO_LONG_BITS = 12, /* cells; 512 KiB */
    PITH_MEMO_PROBES = 4,
    PITH_MEMO_READY = 2, /* least state of a finished cell */
    PITH_MEMO_ELSEWHERE =
        PITH_MEMO_READY + PITH_MEMO_IDS + 1 /* of a short cell: see the long ones */
};

/* A piece as two words: its bytes, zero-filled, its length in the last one. Never {0, 0}. */
typedef struct pith_memo_key {
    uint64_t low, high;
} pith_memo_key;

typedef struct pith_memo_cell {
    pith_memo_key key;
    uint8_t ids[PITH_MEMO_IDS * 3]; /* 24 bits each, lowest byte first */
    atomic_uchar
        state;    /* 0 free, 1 being written, 2 + n: n ids, and the cell never changes again */
} pith_memo_cell; /* 32 bytes: two a cache line */

typedef struct pith_memo_long_cell {
    atomic_uchar state; /* as above */
    uint8_t size;
    char text[PITH_MEMO_LONG_PIECE_BYTES];
    uint8_t ids[PITH_MEMO_LONG_IDS * 3 + 4];
} pith_memo_long_cell; /* 128 bytes */

typedef struct pith_piece_memo {
    pith_memo_cell *cells; /* NULL: no memo */
    pith_memo_long_cell *long_cells;
    void *memory; /* both lie in it, aligned */
} pith_piece_memo;

bool pith_piece_memo_init(pith_piece_memo *memo);
void pith_piece_memo_deinit(pith_piece_memo *memo);

static inline size_t pith_memo_place(pith_memo_key key) {
    uint64_t hash = (key.low ^ (key.high << 23 | key.high >> 41)) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash >> (64 - PITH_MEMO_BITS));
}

/* The finished cell of a piece, or NULL; at: its pith_memo_place. */
static inline const pith_memo_cell *pith_piece_memo_find(const pith_piece_memo *memo,
                                                         pith_memo_key key, size_t at) {
    for (size_t probe = 0; probe < PITH_MEMO_PROBES; probe++) {
        const pith_memo_cell *cell =
            &memo->cells[(at + probe) & (((size_t)1 << PITH_MEMO_BITS) - 1)];
        unsigned state = atomic_load_explicit(&cell->state, memory_order_acquire);
        if (state < PITH_MEMO_READY) return NULL;
        if (cell->key.low == key.low && cell->key.high == key.high) return cell;
    }
    return NULL;
}

static inline int32_t pith_memo_id(const uint8_t *ids, size_t i) {
    const uint8_t *id = ids + 3 * i;
    return (int32_t)(id[0] | (uint32_t)id[1] << 8 | (uint32_t)id[2] << 16);
}

/* Keep what a piece gave, where there is room. */
void pith_piece_memo_keep(const pith_piece_memo *memo, pith_memo_key key, const int32_t *ids,
                          size_t n);
void pith_piece_memo_keep_long(const pith_piece_memo *memo, const char *data, size_t size,
                               const int32_t *ids, size_t n);
/* The finished long cell of a piece of any length, or NULL. */
const pith_memo_long_cell *pith_piece_memo_find_long(const pith_piece_memo *memo, const char *data,
                                                     size_t size);

#endif
