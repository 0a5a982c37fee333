/* SPDX-License-Identifier: Apache-2.0
 *
 * The trie's edges in one hash table: no pointers, no allocation per node, and a step is one
 * look-up.
 *
 *   node 0 --'<'--> 1 --'s'--> 2 (value: <s) --'>'--> 3 (value: <s>)
 *   edges: {0<<8|'<': 1} {1<<8|'s': 2} {2<<8|'>': 3}
 *
 * Invariant: node numbers are given in order of insertion, so keys are dense; at most half of the
 * slots are taken. Keys are not text but small numbers that the table itself hands out; an author
 * of a vocabulary has little to choose collisions with. Read next: special_match.c, unigram.c.
 */
#include "token/byte_trie.h"

#include "base/memory.h"

#include <string.h>

enum { MOST_NODES = 1 << 24, FIRST_NODES = 256 };

static void put_edge(pith_byte_trie *trie, pith_trie_edge edge) {
    uint32_t at = pith_byte_trie_slot(trie, edge.from);
    while (trie->edges[at].from != PITH_TRIE_NONE) at = (at + 1) & (trie->n_edges - 1);
    trie->edges[at] = edge;
}

static bool grow(pith_byte_trie *trie) {
    uint32_t capacity = trie->capacity ? trie->capacity * 2 : FIRST_NODES, n_old = trie->n_edges;
    if (capacity > MOST_NODES) return false;
    uint32_t *values = pith_realloc(trie->values, capacity * sizeof *values);
    if (!values) return false;
    trie->values = values;
    size_t bytes = (size_t)capacity * 2 * sizeof *trie->edges;
    pith_trie_edge *edges = pith_alloc(bytes), *old = trie->edges;
    if (!edges) return false;
    memset(edges, 0xFF, bytes);
    trie->edges = edges;
    trie->n_edges = capacity * 2;
    trie->capacity = capacity;
    for (uint32_t i = 0; i < n_old; i++)
        if (old[i].from != PITH_TRIE_NONE) put_edge(trie, old[i]);
    pith_free(old);
    if (!trie->n_nodes) trie->values[trie->n_nodes++] = PITH_TRIE_NONE; /* the root */
    return true;
}

bool pith_byte_trie_add(pith_byte_trie *trie, pith_span entry, uint32_t value) {
    uint32_t node = PITH_TRIE_ROOT;
    if (!entry.size) return true;
    for (size_t i = 0; i < entry.size; i++) {
        uint32_t next = pith_byte_trie_step(trie, node, entry.data[i]);
        if (next == PITH_TRIE_NONE) {
            if (trie->n_nodes >= trie->capacity && !grow(trie)) return false;
            next = trie->n_nodes++;
            trie->values[next] = PITH_TRIE_NONE;
            put_edge(trie, (pith_trie_edge){node << 8 | (unsigned char)entry.data[i], next});
        }
        node = next;
    }
    trie->values[node] = value;
    if (entry.size > trie->longest) trie->longest = (uint32_t)entry.size;
    return true;
}

void pith_byte_trie_deinit(pith_byte_trie *trie) {
    pith_free(trie->edges);
    pith_free(trie->values);
    *trie = (pith_byte_trie){0};
}
