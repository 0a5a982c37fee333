/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as a JSON schema.
 * What is refused must have a sentence; what is accepted must give a grammar whose texts are JSON. The walk takes its choices from
 * the same bytes. Seeds: corpus/sample_schema/. */
#include "support/byte_grammar.h"

#include <jansson.h>

enum { MAX_STEPS = 300, MEMORY = 4 << 20, END = 256 };

static void check(bool good) {
    if (!good) __builtin_trap();
}

/* The id of the n-th allowed one, with what ends things preferred when the walk has become long. */
static int32_t choose(const uint32_t *mask, uint32_t n, int step) {
    static const int32_t closing[] = {END, '"', '}', ']', '0', 'e', ',', ':'};
    int32_t ids[BYTE_GRAMMAR_VOCAB];
    uint32_t n_ids = 0;
    for (size_t i = 0; step > 60 && i < sizeof closing / sizeof *closing; i++) {
        if (mask[closing[i] / 32] >> (closing[i] % 32) & 1) return closing[i];
    }
    for (int32_t id = 0; id <= END; id++) {
        if (mask[id / 32] >> (id % 32) & 1) ids[n_ids++] = id;
    }
    return n_ids == 0 ? -1 : ids[n % n_ids];
}

static void walk(pith_matcher *matcher, const uint8_t *data, size_t size) {
    char text[MAX_STEPS];
    for (int step = 0; step < MAX_STEPS; step++) {
        uint32_t n = size ? data[(size_t)step % size] * 7u + (uint32_t)step : 0;
        int32_t id = choose(pith_matcher_mask(matcher), n, step);
        if (id < 0) {
            check(pith_matcher_failed(matcher) != NULL);
            return;
        }
        check(pith_matcher_accept(matcher, id));
        if (id == END) {
            json_error_t reason;
            json_t *value =
                json_loadb(text, (size_t)step, JSON_DECODE_ANY | JSON_ALLOW_NUL, &reason);
            /* a number may be too large for a double, a key may hold a NUL */
            check(value != NULL || json_error_code(&reason) == json_error_numeric_overflow ||
                  json_error_code(&reason) == json_error_null_byte_in_key);
            json_decref(value);
            return;
        }
        text[step] = (char)id;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static pith_token_trie *trie;
    if (trie == NULL) trie = byte_grammar_trie();
    pith_grammar *grammar = NULL;
    pith_error error = {0};
    pith_status status = pith_grammar_from_schema((const char *)data, size, &grammar, &error);
    check((status == PITH_OK) == (grammar != NULL));
    if (status != PITH_OK) {
        check(error.status == status && error.text[0] != 0 &&
              memchr(error.text, 0, sizeof error.text) != NULL);
        check(status != PITH_ERROR_INTERNAL && status != PITH_ERROR_MEMORY);
        return 0;
    }
    pith_matcher *matcher = NULL;
    check(pith_matcher_new(grammar, trie, MEMORY, &matcher, &error) == PITH_OK);
    walk(matcher, data, size);
    pith_matcher_free(matcher);
    pith_grammar_drop(grammar);
    return 0;
}
