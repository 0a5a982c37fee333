/* SPDX-License-Identifier: Apache-2.0
 * All texts that merging can meet, numbered, and their hash index: the vocabulary's tokens first
 * (number = token id), then parts that merges name but the vocabulary lacks. */
#ifndef PITH_TOKEN_PIECE_TABLE_H
#define PITH_TOKEN_PIECE_TABLE_H

#include "base/text.h"
#include "token/wide_table.h"

#define PITH_PIECE_NONE 0xFFFFFFFFu

typedef struct pith_piece_slot {
    uint32_t tag;    /* upper half of the hash */
    uint32_t number; /* PITH_PIECE_NONE: free; bit 31: an odd piece */
} pith_piece_slot;

/* A piece is even when its text is the one that running text is matched with, odd when it is kept
 * as written because it can never come out of running text (spaces in a SentencePiece text,
 * unmapped characters in a byte-level text). The two kinds never meet. */
typedef struct pith_piece_table {
    pith_buffer bytes; /* all texts, one after the other */
    uint32_t *starts;  /* [n + 1] into bytes */
    uint32_t n, capacity;
    pith_piece_slot *slots; /* [n_slots] */
    pith_wide_table memory; /* of the slots */
    uint32_t n_slots;
    uint32_t longest; /* bytes of the longest even piece */
    uint64_t seed;    /* drawn at init: a file's author cannot prepare collisions */
} pith_piece_table;

/* Room for n pieces of `bytes` bytes in all; more may follow. False: no memory. */
bool pith_piece_table_init(pith_piece_table *table, uint32_t n, size_t bytes);
void pith_piece_table_deinit(pith_piece_table *table);

enum { PITH_PIECES_AT_ONCE = 64 };

/* Appends a piece whose text has just been written behind bytes' end (from `start`). It is not
 * found until pith_piece_table_index. False: no memory. */
bool pith_piece_table_append(pith_piece_table *table, size_t start);
/* Puts the pieces [first, first + n) into the index, n <= PITH_PIECES_AT_ONCE; odd[i] belongs to
 * first + i. Returns n, or the first that has no place: *earlier is the number of an equal piece,
 * or PITH_PIECE_NONE when so many texts collide that the file must mean harm. */
uint32_t pith_piece_table_index(pith_piece_table *table, uint32_t first, uint32_t n,
                                const bool *odd, uint32_t *earlier);

/* The number of an even (odd) piece, or PITH_PIECE_NONE. */
uint32_t pith_piece_table_find(const pith_piece_table *table, const char *data, size_t size);
/* The same in two steps, for many pieces at once: the first brings the place into the cache. */
uint64_t pith_piece_table_hash(const pith_piece_table *table, const char *data, size_t size);
uint32_t pith_piece_table_find_hashed(const pith_piece_table *table, const char *data, size_t size,
                                      uint64_t hash);
/* What find will read next, for all of some pieces: first (step 0) where their texts start, then
 * (step 1) the texts. */
void pith_piece_table_expect(const pith_piece_table *table, uint64_t hash, int step);
uint32_t pith_piece_table_find_odd(const pith_piece_table *table, const char *data, size_t size);

static inline pith_span pith_piece_at(const pith_piece_table *table, uint32_t number) {
    uint32_t start = table->starts[number];
    return (pith_span){table->bytes.data + start, table->starts[number + 1] - start};
}

#endif
