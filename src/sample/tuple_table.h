/* SPDX-License-Identifier: Apache-2.0
 * Tuples of 32-bit words, each kept once and numbered from 0 in the order in which they first came.
 * States of automata, products of them and sets of schemas are such tuples. */
#ifndef PITH_SAMPLE_TUPLE_TABLE_H
#define PITH_SAMPLE_TUPLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PITH_TUPLE_NONE = UINT32_MAX };

typedef struct pith_tuple {
    size_t offset; /* in words */
    uint32_t n;
    uint32_t hash;
} pith_tuple;

/* Zero-initialised is empty. */
typedef struct pith_tuple_table {
    pith_tuple *tuples; /* [n] */
    uint32_t n, capacity;
    uint32_t *words; /* [n_words] */
    size_t n_words, word_capacity;
    uint32_t *slots; /* [n_slots] number + 1, 0: free; a power of two */
    size_t n_slots;
    uint64_t seed;
} pith_tuple_table;

/* The tuple's number; *is_new (may be NULL) tells whether it came for the first time.
 * PITH_TUPLE_NONE without memory. */
uint32_t pith_tuple_intern(pith_tuple_table *table, const uint32_t *words, uint32_t n,
                           bool *is_new);
/* Valid until the next intern. */
const uint32_t *pith_tuple_get(const pith_tuple_table *table, uint32_t number, uint32_t *n);
void pith_tuple_table_deinit(pith_tuple_table *table);

#endif
