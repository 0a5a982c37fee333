/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: a grammar in GBNF, a NUL, and a text that a matcher follows as far as it is allowed.
 * A refusal has a sentence. An id is in the mask exactly when it is allowed alone, and exactly then accepted; what is forced is
 * allowed; going back and forth changes nothing. Seeds: corpus/sample_gbnf/. */
#include "sample/grammar.h"

#include <string.h>

enum { N_PIECES = 24, N_VOCAB = 256 + N_PIECES, MOST_TEXT = 80, MEMORY = 1 << 20 };

static void check(bool good) {
    if (!good) __builtin_trap();
}

static const pith_token_trie *vocabulary(void) {
    static pith_token_trie *trie;
    static char bytes[256];
    static const char *const longer[N_PIECES] = {"ab",
                                                 "abc",
                                                 "aaaa",
                                                 "\"",
                                                 "\",",
                                                 "\":\"",
                                                 "{\"",
                                                 "}}",
                                                 "  ",
                                                 "    ",
                                                 "\n\n",
                                                 "\xC3\xA9",
                                                 "\xA9x",
                                                 "x\xC3",
                                                 "123",
                                                 "10",
                                                 "true",
                                                 "a b",
                                                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                                 "\\\"",
                                                 "\xE6\x97\xA5\xE6\x9C\xAC",
                                                 "\xF0\x9F\x99",
                                                 "",
                                                 "</s>"};
    pith_span pieces[N_VOCAB];
    bool is_end[N_VOCAB] = {false};
    if (trie != NULL) return trie;
    for (int i = 0; i < N_VOCAB; i++) {
        if (i < 256) bytes[i] = (char)i;
        pieces[i] = i < 256 ? (pith_span){bytes + i, 1} : pith_span_of(longer[i - 256]);
    }
    is_end[N_VOCAB - 1] = true;
    check(pith_token_trie_new(pieces, is_end, N_VOCAB, &trie, NULL) == PITH_OK);
    return trie;
}

static bool has_bit(const uint32_t *mask, int32_t id) {
    return (mask[id / 32] >> (id % 32) & 1) != 0;
}

static void check_place(pith_matcher *matcher, int32_t id) {
    uint32_t copy[(N_VOCAB + 31) / 32];
    char forced[8];
    memcpy(copy, pith_matcher_mask(matcher), sizeof copy);
    for (int32_t other = 0; other < N_VOCAB; other += 1 + other % 7) {
        bool allowed = pith_matcher_allows(matcher, other);
        check(allowed == has_bit(copy, other) || pith_matcher_failed(matcher) != NULL);
    }
    bool is_whole;
    size_t n = pith_matcher_forced(matcher, forced, sizeof forced, &is_whole);
    int32_t only = pith_matcher_only(matcher);
    check(only < 0 || has_bit(copy, only) || pith_matcher_failed(matcher) != NULL);
    if (n > 0)
        check(pith_matcher_allows(matcher, (uint8_t)forced[0]) && !pith_matcher_may_end(matcher));
    if (n > 0 && id < 256 && (uint8_t)forced[0] != id) check(!pith_matcher_allows(matcher, id));
}

static void follow(pith_matcher *matcher, const uint8_t *text, size_t size) {
    for (size_t i = 0; i < size && i < MOST_TEXT; i++) {
        int32_t id = i % 5 == 4 ? 256 + text[i] % N_PIECES : text[i];
        uint32_t before[(N_VOCAB + 31) / 32];
        if (i % 8 == 0) check_place(matcher, id);
        memcpy(before, pith_matcher_mask(matcher), sizeof before);
        if (pith_matcher_failed(matcher) != NULL) return;
        bool accepted = pith_matcher_accept(matcher, id);
        if (pith_matcher_failed(matcher) != NULL) return;
        check(accepted == has_bit(before, id));
        if (!accepted || i % 3 != 0) continue;
        pith_matcher_rewind(matcher, 1);
        bool same = memcmp(before, pith_matcher_mask(matcher), sizeof before) == 0;
        check((same && pith_matcher_accept(matcher, id)) || pith_matcher_failed(matcher) != NULL);
    }
    pith_matcher_rewind(matcher, pith_matcher_length(matcher) / 2);
    (void)pith_matcher_mask(matcher);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
    size_t n = end != NULL ? (size_t)(end - data) : size;
    pith_grammar *grammar = NULL;
    pith_matcher *matcher = NULL;
    pith_error error = {PITH_OK, ""};
    pith_status status = pith_grammar_from_gbnf((const char *)data, n, NULL, &grammar, &error);
    check((status == PITH_OK) == (grammar != NULL));
    if (status != PITH_OK) {
        check(error.status == status && error.text[0] != 0 &&
              memchr(error.text, 0, sizeof error.text) != NULL);
        return 0;
    }
    status = pith_matcher_new(grammar, vocabulary(), MEMORY, &matcher, &error);
    pith_grammar_drop(grammar);
    if (status != PITH_OK) {
        check(status == PITH_ERROR_LIMIT || status == PITH_ERROR_MEMORY);
        return 0;
    }
    if (n < size) follow(matcher, data + n + 1, size - n - 1);
    pith_matcher_free(matcher);
    return 0;
}
