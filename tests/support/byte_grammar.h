/* SPDX-License-Identifier: Apache-2.0
 * For tests: which texts a grammar allows, byte by byte. The vocabulary is the 256 bytes and an end. */
#ifndef PITH_TESTS_BYTE_GRAMMAR_H
#define PITH_TESTS_BYTE_GRAMMAR_H

#include "sample/grammar.h"

#include <stdlib.h>
#include <string.h>

enum { BYTE_GRAMMAR_VOCAB = 257, BYTE_GRAMMAR_MEMORY = 64 << 20 };

typedef struct byte_grammar {
    pith_grammar *grammar; /* NULL: it was refused */
    pith_token_trie *trie;
    pith_matcher *matcher;
    pith_error error; /* why */
} byte_grammar;

static inline pith_token_trie *byte_grammar_trie(void) {
    static char bytes[256];
    pith_span pieces[BYTE_GRAMMAR_VOCAB];
    bool is_end[BYTE_GRAMMAR_VOCAB] = {false};
    pith_token_trie *trie = NULL;
    pith_error error;
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)i;
        pieces[i] = (pith_span){&bytes[i], 1};
    }
    pieces[256] = (pith_span){0};
    is_end[256] = true;
    (void)pith_token_trie_new(pieces, is_end, BYTE_GRAMMAR_VOCAB, &trie, &error);
    return trie;
}

/* After the grammar has been made (or refused). */
static inline void byte_grammar_open(byte_grammar *g) {
    if (g->grammar == NULL) return;
    g->trie = byte_grammar_trie();
    if (pith_matcher_new(g->grammar, g->trie, BYTE_GRAMMAR_MEMORY, &g->matcher, &g->error) !=
        PITH_OK) {
        abort();
    }
}

static inline void byte_grammar_close(byte_grammar *g) {
    pith_matcher_free(g->matcher);
    pith_token_trie_free(g->trie);
    pith_grammar_drop(g->grammar);
    *g = (byte_grammar){0};
}

/* Is the text a whole one of the grammar? */
static inline bool byte_grammar_allows(byte_grammar *g, const char *text, size_t size) {
    pith_matcher_reset(g->matcher);
    for (size_t i = 0; i < size; i++) {
        if (!pith_matcher_accept(g->matcher, (uint8_t)text[i])) return false;
    }
    return pith_matcher_may_end(g->matcher);
}

#endif
