/* SPDX-License-Identifier: Apache-2.0
 * Makes the tree of a vocabulary's pieces (token_trie.h draws it).
 *
 * The pieces are sorted by their bytes; then the tree is read off: what a piece shares with the one
 * before it is a path that exists already. Owns: the tree and its copy of the pieces. */
#include "sample/token_trie.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 1 << 24 };

typedef struct sorted_piece {
    const char *bytes;
    uint32_t size;
    int32_t id;
} sorted_piece;

static int by_bytes(const void *a, const void *b) {
    const sorted_piece *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, x->size < y->size ? x->size : y->size);
    if (order != 0) return order;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static uint32_t shared_bytes(const sorted_piece *a, const sorted_piece *b) {
    uint32_t n = 0, least = a->size < b->size ? a->size : b->size;
    while (n < least && a->bytes[n] == b->bytes[n]) n++;
    return n;
}

/* Counts nodes; with arrays, fills them. */
static void read_off(pith_token_trie *trie, const sorted_piece *list, uint32_t n) {
    uint32_t n_nodes = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t depth = i > 0 ? shared_bytes(&list[i - 1], &list[i]) : 0;
        for (; depth < list[i].size; depth++, n_nodes++) {
            if (trie->byte == NULL) continue;
            trie->byte[n_nodes] = (uint8_t)list[i].bytes[depth];
            trie->depth[n_nodes] = (uint16_t)(depth + 1);
            trie->first[n_nodes] = i;
            if (depth == 0) trie->branch[(uint8_t)list[i].bytes[0]] = n_nodes;
        }
        if (list[i].size > trie->max_depth) trie->max_depth = list[i].size;
        if (trie->ids != NULL) trie->ids[i] = list[i].id;
    }
    trie->n_nodes = n_nodes;
    trie->n_ids = n;
}

/* open: the last node of each depth, whose subtree has not ended yet. */
static void find_skips(pith_token_trie *trie, uint32_t *open) {
    uint32_t depth = 0;
    for (uint32_t node = 0; node <= trie->n_nodes; node++) {
        uint32_t at = node < trie->n_nodes ? trie->depth[node] : 1;
        for (; depth >= at; depth--) trie->skip[open[depth]] = node;
        if (node == trie->n_nodes) break;
        open[at] = node;
        depth = at;
    }
    trie->first[trie->n_nodes] = trie->n_ids;
}

static bool fill(pith_token_trie *trie, sorted_piece *list, uint32_t n) {
    qsort(list, n, sizeof *list, by_bytes);
    read_off(trie, list, n);
    const size_t nodes = trie->n_nodes;
    uint32_t *open = pith_alloc_array((size_t)trie->max_depth + 1, sizeof *open);
    trie->byte = pith_alloc(nodes);
    trie->depth = pith_alloc_array(nodes, sizeof *trie->depth);
    trie->skip = pith_alloc_array(nodes, sizeof *trie->skip);
    trie->first = pith_alloc_array(nodes + 1, sizeof *trie->first);
    trie->ids = pith_alloc_array(n, sizeof *trie->ids);
    bool good = open && trie->byte && trie->depth && trie->skip && trie->first && trie->ids;
    if (good) {
        read_off(trie, list, n);
        find_skips(trie, open);
    }
    pith_free(open);
    return good;
}

/* Copies pieces and ends; counts what goes into the tree. */
static bool copy_pieces(pith_token_trie *trie, const pith_span *pieces, const bool *is_end,
                        sorted_piece *list, uint32_t *n_list) {
    uint32_t at = 0;
    for (int32_t id = 0; id < trie->n_vocab; id++) {
        trie->offset[id] = at;
        if (is_end[id]) {
            trie->is_end[id / 32] |= 1u << (id % 32);
            trie->ends[trie->n_ends++] = id;
            continue;
        }
        if (pieces[id].size == 0 || pieces[id].size > PITH_TRIE_MAX_DEPTH) continue;
        memcpy(trie->bytes + at, pieces[id].data, pieces[id].size);
        list[(*n_list)++] = (sorted_piece){trie->bytes + at, (uint32_t)pieces[id].size, id};
        at += (uint32_t)pieces[id].size;
    }
    trie->offset[trie->n_vocab] = at;
    return at <= MAX_NODES;
}

static uint64_t piece_bytes(const pith_span *pieces, const bool *is_end, int32_t n_vocab) {
    uint64_t n = 0;
    for (int32_t id = 0; id < n_vocab; id++)
        if (!is_end[id] && pieces[id].size <= PITH_TRIE_MAX_DEPTH) n += pieces[id].size;
    return n;
}

pith_status pith_token_trie_new(const pith_span *pieces, const bool *is_end, int32_t n_vocab,
                                pith_token_trie **out, pith_error *error) {
    *out = NULL;
    if (n_vocab < 1)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "token trie: a vocabulary of %d tokens",
                         n_vocab);
    const uint64_t n_bytes = piece_bytes(pieces, is_end, n_vocab);
    if (n_bytes > MAX_NODES)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "token trie: the pieces have %llu bytes, more than %d",
                         (unsigned long long)n_bytes, MAX_NODES);
    const size_t n = (size_t)n_vocab;
    uint32_t n_list = 0;
    sorted_piece *list = pith_alloc_array(n, sizeof *list);
    pith_token_trie *trie = pith_alloc_zero(1, sizeof *trie);
    bool good = list != NULL && trie != NULL;
    if (good) {
        trie->n_vocab = n_vocab;
        trie->n_words = (uint32_t)((n + 31) / 32);
        memset(trie->branch, 0xFF, sizeof trie->branch);
        trie->offset = pith_alloc_array(n + 1, sizeof *trie->offset);
        trie->bytes = pith_alloc((size_t)n_bytes);
        trie->ends = pith_alloc_array(n, sizeof *trie->ends);
        trie->is_end = pith_alloc_zero(trie->n_words, sizeof *trie->is_end);
        good = trie->offset && trie->bytes && trie->ends && trie->is_end &&
               copy_pieces(trie, pieces, is_end, list, &n_list) && fill(trie, list, n_list);
    }
    pith_free(list);
    if (good) {
        *out = trie;
        return PITH_OK;
    }
    pith_token_trie_free(trie);
    return pith_fail_memory(error, "a token trie", n_bytes * 12);
}

void pith_token_trie_free(pith_token_trie *trie) {
    if (trie == NULL) return;
    pith_free(trie->byte);
    pith_free(trie->depth);
    pith_free(trie->skip);
    pith_free(trie->first);
    pith_free(trie->ids);
    pith_free(trie->ends);
    pith_free(trie->offset);
    pith_free(trie->bytes);
    pith_free(trie->is_end);
    pith_free(trie);
}
