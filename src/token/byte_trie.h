/* SPDX-License-Identifier: Apache-2.0
 * A set of byte strings with values, walked byte by byte: all entries that start at a place of a
 * text in one pass. */
#ifndef PITH_TOKEN_BYTE_TRIE_H
#define PITH_TOKEN_BYTE_TRIE_H

#include "base/text.h"

#define PITH_TRIE_NONE 0xFFFFFFFFu
#define PITH_TRIE_ROOT 0u

typedef struct pith_trie_edge {
    uint32_t from; /* node << 8 | byte; PITH_TRIE_NONE: a free slot */
    uint32_t to;   /* node */
} pith_trie_edge;

typedef struct pith_byte_trie {
    pith_trie_edge *edges; /* [n_edges], a power of two: a hash table over `from` */
    uint32_t *values;      /* [capacity] by node; PITH_TRIE_NONE: no entry ends there */
    uint32_t n_edges, n_nodes, capacity;
    uint32_t longest; /* bytes of the longest entry */
} pith_byte_trie;     /* zero-initialised is empty, and may only be added to */

/* Adds or replaces. False: no memory, or more than 2^24 nodes. Empty entries are ignored. */
bool pith_byte_trie_add(pith_byte_trie *trie, pith_span entry, uint32_t value);
void pith_byte_trie_deinit(pith_byte_trie *trie);

static inline uint32_t pith_byte_trie_slot(const pith_byte_trie *trie, uint32_t from) {
    uint32_t hash = from * 0x9E3779B1u;
    return (hash ^ hash >> 15) & (trie->n_edges - 1);
}

/* The node behind `node` by `byte`, or PITH_TRIE_NONE. */
static inline uint32_t pith_byte_trie_step(const pith_byte_trie *trie, uint32_t node, char byte) {
    uint32_t from = node << 8 | (unsigned char)byte;
    if (!trie->n_edges) return PITH_TRIE_NONE;
    for (uint32_t at = pith_byte_trie_slot(trie, from);; at = (at + 1) & (trie->n_edges - 1)) {
        if (trie->edges[at].from == from) return trie->edges[at].to;
        if (trie->edges[at].from == PITH_TRIE_NONE) return PITH_TRIE_NONE;
    }
}

#endif
