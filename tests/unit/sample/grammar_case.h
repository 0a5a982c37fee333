/* SPDX-License-Identifier: Apache-2.0
 * For tests of grammars: a vocabulary of the 256 bytes, some longer pieces and an end, and what a grammar says to a text. */
#ifndef PITH_TESTS_GRAMMAR_CASE_H
#define PITH_TESTS_GRAMMAR_CASE_H

#include "sample/grammar.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the three above first */
#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

enum { CASE_END = 256, CASE_VOCAB = 257, CASE_MEMORY = 8 << 20 };

/* Ids 0..255 are bytes, 256 ends. */
static inline pith_token_trie *byte_trie(void) {
    static char bytes[256];
    pith_span pieces[CASE_VOCAB] = {{0}};
    bool is_end[CASE_VOCAB] = {false};
    pith_token_trie *trie = NULL;
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)i;
        pieces[i] = (pith_span){bytes + i, 1};
    }
    is_end[CASE_END] = true;
    assert_int_equal(pith_token_trie_new(pieces, is_end, CASE_VOCAB, &trie, NULL), PITH_OK);
    return trie;
}

static inline pith_grammar *gbnf_of(const char *text) {
    pith_grammar *grammar = NULL;
    pith_error error = {PITH_OK, ""};
    pith_status status = pith_grammar_from_gbnf(text, strlen(text), NULL, &grammar, &error);
    if (status != PITH_OK) print_message("%s\n", error.text);
    assert_int_equal(status, PITH_OK);
    return grammar;
}

static inline pith_matcher *matcher_of(const pith_grammar *grammar, const pith_token_trie *trie,
                                       size_t memory) {
    pith_matcher *matcher = NULL;
    pith_error error = {PITH_OK, ""};
    pith_status status = pith_matcher_new(grammar, trie, memory, &matcher, &error);
    if (status != PITH_OK) print_message("%s\n", error.text);
    assert_int_equal(status, PITH_OK);
    return matcher;
}

/* Accepts the bytes one by one; the number that was accepted. */
static inline size_t accept_bytes(pith_matcher *matcher, const char *bytes, size_t n) {
    size_t i = 0;
    while (i < n && pith_matcher_accept(matcher, (uint8_t)bytes[i])) i++;
    return i;
}

typedef enum said { OUTSIDE, START, WHOLE } said;

/* Is the text outside of the language, the start of a text of it, or one? */
static inline said says(const pith_grammar *grammar, const char *text) {
    pith_token_trie *trie = byte_trie();
    pith_matcher *matcher = matcher_of(grammar, trie, CASE_MEMORY);
    size_t n = strlen(text), accepted = accept_bytes(matcher, text, n);
    said answer = accepted < n ? OUTSIDE : pith_matcher_may_end(matcher) ? WHOLE : START;
    pith_matcher_free(matcher);
    pith_token_trie_free(trie);
    return answer;
}

#endif
