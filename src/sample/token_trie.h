/* SPDX-License-Identifier: Apache-2.0
 * The vocabulary as a tree of bytes, flattened (private to the sample room).
 *
 *   pieces  "a" "ab" "b"        node    0    1    2        (in the order of a depth-first walk)
 *                               byte    a    b    b
 *                               depth   1    2    1        bytes from the root, this one included
 *                               skip    2    2    3        first node that is not below this one
 *                               first   0    1    2        its ids: first[n] .. first[n + 1]
 *
 * A walk goes on to node + 1 where the text may go on, else to skip[node]: whole subtrees are left
 * out, and the ids below a node lie together. Ids without bytes and ids that end a text are not in
 * the tree. Immutable. Read next: token_trie.c, matcher_mask.c. */
#ifndef PITH_SAMPLE_TOKEN_TRIE_H
#define PITH_SAMPLE_TOKEN_TRIE_H

#include "sample/grammar.h"

enum { PITH_TRIE_MAX_DEPTH = 4096 /* bytes of a piece; longer ones are never allowed */ };

struct pith_token_trie {
    int32_t n_vocab;
    uint32_t n_words; /* 32 bits each, of a mask */
    uint32_t n_nodes, n_ids, n_ends;
    uint32_t max_depth;
    uint8_t *byte;        /* [n_nodes] */
    uint16_t *depth;      /* [n_nodes] */
    uint32_t *skip;       /* [n_nodes] */
    uint32_t *first;      /* [n_nodes + 1] in ids */
    int32_t *ids;         /* [n_ids] */
    int32_t *ends;        /* [n_ends] ids that end a text */
    uint32_t *offset;     /* [n_vocab + 1] of an id's bytes in `bytes`; none for ends */
    char *bytes;          /* of all pieces */
    uint32_t *is_end;     /* [n_words] bits */
    uint32_t branch[256]; /* node of the first byte; UINT32_MAX: none */
};

static inline pith_span pith_trie_piece(const pith_token_trie *trie, int32_t id) {
    return (pith_span){trie->bytes + trie->offset[id], trie->offset[id + 1] - trie->offset[id]};
}

static inline bool pith_trie_is_end(const pith_token_trie *trie, int32_t id) {
    return (trie->is_end[id / 32] >> (id % 32) & 1) != 0;
}

#endif
