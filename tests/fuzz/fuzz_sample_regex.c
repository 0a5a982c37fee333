/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as a regular expression.
 * What is refused must have a sentence. What is accepted is made a grammar and an automaton, and a walk through the grammar must be
 * accepted by the automaton: two ways that share only the parser. Seeds: corpus/sample_regex/. */
#include "support/byte_grammar.h"

#include "sample/automaton.h"

enum { MAX_STEPS = 80, MEMORY = 4 << 20, END = 256 };

static void check(bool good) {
    if (!good) __builtin_trap();
}

static int32_t choose(const uint32_t *mask, uint32_t n, int step) {
    int32_t ids[BYTE_GRAMMAR_VOCAB];
    uint32_t n_ids = 0;
    if (step > 20 && (mask[END / 32] >> (END % 32) & 1)) return END;
    for (int32_t id = 0; id <= END; id++) {
        if (mask[id / 32] >> (id % 32) & 1) ids[n_ids++] = id;
    }
    return n_ids == 0 ? -1 : ids[n % n_ids];
}

/* The size of a whole text, -1 when the walk did not end. */
static int walk(pith_matcher *matcher, const uint8_t *data, size_t size, char text[MAX_STEPS]) {
    for (int step = 0; step < MAX_STEPS; step++) {
        uint32_t n = size ? data[(size_t)step % size] * 7u + (uint32_t)step : 0;
        int32_t id = choose(pith_matcher_mask(matcher), n, step);
        if (id < 0) {
            check(pith_matcher_failed(matcher) != NULL);
            return -1;
        }
        check(pith_matcher_accept(matcher, id));
        if (id == END) return step;
        text[step] = (char)id;
    }
    return -1;
}

static void check_automaton(pith_span source, const char *text, int size) {
    pith_regex regex;
    pith_alphabet alphabet = {0};
    pith_automaton whole = {0}, search = {0};
    pith_error error = {0};
    check(pith_regex_parse(source, &regex, &error) == PITH_OK);
    const pith_regex *trees = &regex;
    if (pith_alphabet_of(&trees, 1, &alphabet, &error) == PITH_OK) {
        if (pith_automaton_of(&regex, &alphabet, false, &whole, &error) == PITH_OK && size >= 0) {
            check(pith_automaton_accepts(&whole, &alphabet, (pith_span){text, (size_t)size}));
        }
        if (pith_automaton_of(&regex, &alphabet, true, &search, &error) == PITH_OK && size >= 0) {
            check(pith_automaton_accepts(&search, &alphabet, (pith_span){text, (size_t)size}));
        }
    }
    pith_automaton_deinit(&whole);
    pith_automaton_deinit(&search);
    pith_alphabet_deinit(&alphabet);
    pith_regex_deinit(&regex);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static pith_token_trie *trie;
    if (trie == NULL) trie = byte_grammar_trie();
    pith_grammar *grammar = NULL;
    pith_matcher *matcher = NULL;
    pith_error error = {0};
    pith_span source = {(const char *)data, size};
    pith_status status = pith_grammar_from_regex(source.data, size, &grammar, &error);
    check((status == PITH_OK) == (grammar != NULL));
    if (status != PITH_OK) {
        check(error.status == status && error.text[0] != 0 &&
              memchr(error.text, 0, sizeof error.text) != NULL);
        check(status != PITH_ERROR_INTERNAL && status != PITH_ERROR_MEMORY);
        return 0;
    }
    char text[MAX_STEPS];
    check(pith_matcher_new(grammar, trie, MEMORY, &matcher, &error) == PITH_OK);
    check_automaton(source, text, walk(matcher, data, size, text));
    pith_matcher_free(matcher);
    pith_grammar_drop(grammar);
    return 0;
}
