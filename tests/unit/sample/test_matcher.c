/* SPDX-License-Identifier: Apache-2.0
 * Promises of the matcher beside which ids are allowed (test_grammar_property.c): rewinding is exact, memory stays below what was
 * given and dropping what was learnt changes nothing, limits fail closed, ends are ends. */
#include "grammar_case.h"

#include "base/rng.h"
#include "sample/matcher_internal.h"
#include "sample/matcher_table.h"
#include "support/failing_memory.h"

#include <stdlib.h>

static const char *const json =
    "root ::= value\n"
    "value ::= \"{\" (pair (\",\" pair)*)? \"}\" | \"[\" (value (\",\" value)*)? \"]\" | string | "
    "number\n"
    "pair ::= string \":\" value\n"
    "string ::= \"\\\"\" ([^\"\\\\\\x00-\\x1F] | \"\\\\\" [\"\\\\nt]){0,300} \"\\\"\"\n"
    "number ::= \"-\"? [0-9]{1,6}\n";

/* ---- ends ---- */

static void test_end_finishes_the_text(void **state) {
    (void)state;
    pith_token_trie *trie = byte_trie();
    pith_grammar *grammar = gbnf_of("root ::= \"a\"+");
    pith_matcher *m = matcher_of(grammar, trie, CASE_MEMORY);
    pith_grammar_drop(grammar);
    assert_false(pith_matcher_allows(m, CASE_END));
    assert_false(pith_matcher_accept(m, CASE_END));
    assert_true(pith_matcher_accept(m, 'a'));
    assert_true(pith_matcher_may_end(m));
    assert_true(pith_matcher_allows(m, CASE_END));
    assert_int_equal(pith_matcher_mask(m)[CASE_END / 32] & 1, 1);
    assert_true(pith_matcher_accept(m, CASE_END));
    assert_int_equal(pith_matcher_length(m), 2);
    for (int32_t id = 0; id < CASE_VOCAB; id++) {
        assert_false(pith_matcher_allows(m, id));
        assert_int_equal(pith_matcher_mask(m)[id / 32], 0);
    }
    assert_false(pith_matcher_may_end(m));
    assert_false(pith_matcher_accept(m, 'a'));
    assert_null(pith_matcher_failed(m)); /* it did what it should */
    pith_matcher_rewind(m, 1);
    assert_true(pith_matcher_accept(m, 'a'));
    pith_matcher_reset(m);
    assert_int_equal(pith_matcher_length(m), 0);
    assert_false(pith_matcher_may_end(m));
    pith_matcher_free(m);
    pith_token_trie_free(trie);
}

static void test_ids_outside_the_vocabulary(void **state) {
    (void)state;
    pith_token_trie *trie = byte_trie();
    pith_grammar *grammar = gbnf_of("root ::= .*");
    pith_matcher *m = matcher_of(grammar, trie, CASE_MEMORY);
    static const int32_t ids[] = {-1, INT32_MIN, CASE_VOCAB, INT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        assert_false(pith_matcher_allows(m, ids[i]));
        assert_false(pith_matcher_accept(m, ids[i]));
    }
    pith_matcher_rewind(m, 5); /* more than there are: all */
    assert_int_equal(pith_matcher_length(m), 0);
    pith_matcher_free(m);
    pith_grammar_drop(grammar);
    pith_token_trie_free(trie);
}

static void test_vocabulary_of_odd_pieces(void **state) {
    (void)state;
    const pith_span pieces[] = {{"\xC3", 1},     {"\xA9x", 2}, {"\xC3\xA9", 2}, {"", 0},
                                {"\xC3\xA9", 2}, {"x", 1},     {"\xA9", 1}};
    const bool is_end[] = {false, false, false, false, false, true, false};
    pith_token_trie *trie = NULL;
    assert_int_equal(pith_token_trie_new(pieces, is_end, 7, &trie, NULL), PITH_OK);
    pith_grammar *grammar = gbnf_of("root ::= \"\xC3\xA9x\"");
    pith_matcher *m = matcher_of(grammar, trie, CASE_MEMORY);
    assert_int_equal(pith_matcher_mask(m)[0],
                     1u << 0 | 1u << 2 | 1u << 4); /* equal pieces both, half a character too */
    assert_true(pith_matcher_accept(m, 0));
    assert_int_equal(pith_matcher_mask(m)[0], 1u << 1 | 1u << 6);
    assert_true(pith_matcher_accept(m, 6));
    assert_int_equal(pith_matcher_mask(m)[0], 0); /* "x" is an end, which is no text */
    assert_null(pith_matcher_failed(m));
    pith_matcher_rewind(m, 1);
    assert_true(pith_matcher_accept(m, 1));
    assert_int_equal(pith_matcher_mask(m)[0], 1u << 5);
    pith_matcher_free(m);
    pith_grammar_drop(grammar);
    pith_token_trie_free(trie);
}

/* ---- what must come ---- */

static void test_forced_bytes(void **state) {
    (void)state;
    pith_token_trie *trie = byte_trie();
    pith_grammar *grammar =
        gbnf_of("root ::= \"{\\\"name\\\":\" [0-9] (\"yes\" | \"yellow\")? \"}\"");
    pith_matcher *m = matcher_of(grammar, trie, CASE_MEMORY);
    char bytes[16] = "";
    bool is_whole;
    assert_int_equal(pith_matcher_forced(m, bytes, sizeof bytes, &is_whole), 8);
    assert_false(is_whole);
    assert_memory_equal(bytes, "{\"name\":", 8);
    assert_int_equal(pith_matcher_forced(m, bytes, 3, &is_whole), 3);
    assert_int_equal(pith_matcher_length(m), 0); /* only asked */
    assert_int_equal(accept_bytes(m, "{\"name\":7", 9), 9);
    assert_int_equal(pith_matcher_forced(m, bytes, sizeof bytes, &is_whole), 0);
    assert_true(pith_matcher_accept(m, 'y'));
    assert_int_equal(pith_matcher_forced(m, bytes, sizeof bytes, &is_whole), 1);
    assert_int_equal(bytes[0], 'e');
    assert_int_equal(accept_bytes(m, "es}", 3), 3);
    assert_int_equal(pith_matcher_forced(m, bytes, sizeof bytes, &is_whole),
                     0); /* only the end is left */
    assert_true(is_whole);
    pith_matcher_rewind(m, 1);
    assert_int_equal(pith_matcher_forced(m, bytes, sizeof bytes, &is_whole), 1);
    assert_true(is_whole && bytes[0] == '}');
    pith_matcher_free(m);
    pith_grammar_drop(grammar);
    pith_token_trie_free(trie);
}

/* ---- rewinding and forgetting ---- */

/* An allowed id at random, which is likely to open something. */
static int32_t random_id(pith_matcher *m, pith_rng *rng) {
    const uint32_t *mask = pith_matcher_mask(m);
    int32_t found = -1;
    uint32_t n = 0;
    for (int32_t id = 32; id < 127; id++) {
        if ((mask[id / 32] >> (id % 32) & 1) == 0) continue;
        uint32_t weight = strchr("[{\",:", id) != NULL ? 20 : 1;
        n += weight;
        if ((uint32_t)(pith_rng_uniform(rng) * n) < weight) found = id;
    }
    return found;
}

static void assert_same(pith_matcher *a, pith_matcher *b) {
    assert_int_equal(pith_matcher_may_end(a), pith_matcher_may_end(b));
    assert_memory_equal(pith_matcher_mask(a), pith_matcher_mask(b), (CASE_VOCAB + 31) / 32 * 4);
}

/* A matcher with little memory does what one with much does, forwards and backwards. */
static void test_little_memory_changes_nothing(void **state) {
    (void)state;
    enum { LITTLE = (1 << 18) + 4096, STEPS = 6000 };
    pith_token_trie *trie = byte_trie();
    pith_grammar *grammar = gbnf_of(json);
    pith_matcher *little = matcher_of(grammar, trie, LITTLE),
                 *ample = matcher_of(grammar, trie, 64 << 20);
    pith_rng rng;
    pith_rng_init(&rng, 5);
    uint32_t n_before = 0, n_collected = 0;
    size_t n = 0;
    for (size_t step = 0; step < STEPS; step++) {
        int32_t id = random_id(ample, &rng);
        assert_same(little, ample);
        if (id < 0) { /* the value is whole */
            size_t back = n < 3 ? n : 3;
            pith_matcher_rewind(little, back);
            pith_matcher_rewind(ample, back);
            n -= back;
            continue;
        }
        assert_true(pith_matcher_accept(little, id) && pith_matcher_accept(ample, id));
        assert_true(little->used <= LITTLE);
        n_collected += little->n_configs < n_before;
        n_before = little->n_configs;
        n++;
        if (step % 50 != 49) continue;
        size_t back = (size_t)(pith_rng_uniform(&rng) * (step % 1000 == 999 ? (double)n : 20));
        pith_matcher_rewind(little, back);
        pith_matcher_rewind(ample, back);
        n -= back;
        assert_int_equal(pith_matcher_length(little), n);
    }
    print_message("%zu ids, collected %u times\n", n, n_collected);
    assert_true(n > 100 && n_collected > 2);
    while (n > 0) { /* all the way back */
        size_t back = n < 7 ? n : 7;
        pith_matcher_rewind(little, back);
        pith_matcher_rewind(ample, back);
        n -= back;
        assert_same(little, ample);
    }
    assert_null(pith_matcher_failed(little));
    pith_matcher_free(little);
    pith_matcher_free(ample);
    pith_grammar_drop(grammar);
    pith_token_trie_free(trie);
}

/* A vocabulary of many short words, for tables that take memory. */
enum { N_WORDS = 20000, MOST_WORD = 8 };

static pith_token_trie *word_trie(void) {
    static const char letters[] = " abcdefghijklmnopqrstuvwxyz\"\\,{}[]:0123456789";
    pith_span *pieces = calloc(N_WORDS, sizeof *pieces);
    bool *is_end = calloc(N_WORDS, sizeof *is_end);
    char *bytes = malloc((size_t)N_WORDS * MOST_WORD);
    assert_true(pieces && is_end && bytes);
    pith_rng rng;
    pith_rng_init(&rng, 1);
    for (size_t i = 0; i < N_WORDS; i++) {
        char *word = bytes + i * MOST_WORD;
        size_t size = i < 256 ? 1 : 1 + (size_t)(pith_rng_uniform(&rng) * MOST_WORD);
        for (size_t k = 0; k < size; k++)
            word[k] = letters[(size_t)(pith_rng_uniform(&rng) * (sizeof letters - 1))];
        if (i < 256) word[0] = (char)i;
        pieces[i] = (pith_span){word, size};
    }
    is_end[N_WORDS - 1] = true;
    pith_token_trie *trie = NULL;
    assert_int_equal(pith_token_trie_new(pieces, is_end, N_WORDS, &trie, NULL), PITH_OK);
    free(pieces);
    free(is_end);
    free(bytes);
    return trie;
}

/* A state whose survey came to no end has a table without parts; returns how many have. */
static size_t check_walked(const pith_matcher *m) {
    size_t n = 0;
    for (uint32_t i = 0; i < m->tables_capacity; i++) {
        const pith_table *table = m->tables[i];
        if (table == NULL || !table->is_walked) continue;
        n++;
        assert_null(table->bits);
        assert_null(table->levels);
        assert_null(table->ids.data);
        assert_null(table->exits.data);
    }
    return n;
}

/* Surveys that come to no end leave nothing behind: whatever the memory given, it is kept. */
static void test_tables_stay_within_the_memory(void **state) {
    (void)state;
    static const char *const texts[] = {
        "root ::= x\nx ::= \"a\" (x x | x)? \"b\"? | [^\"]{0,5000} \"\\\"\" x"};
    pith_token_trie *trie = word_trie();
    size_t n_walked = 0;
    pith_rng rng;
    pith_rng_init(&rng, 3);
    for (size_t g = 0; g < sizeof texts / sizeof *texts; g++) {
        pith_grammar *grammar = gbnf_of(texts[g]);
        /* more than a table takes: a survey begins, and comes to its end or not */
        for (size_t room = 40000; room < 120000; room += 997) {
            pith_matcher *m = matcher_of(grammar, trie, 1 << 20);
            const size_t memory = m->memory = m->used + room;
            for (int step = 0; step < 20; step++) {
                const uint32_t *mask = pith_matcher_mask(m);
                assert_true(m->used <= memory);
                n_walked += check_walked(m);
                uint32_t id = (uint32_t)(pith_rng_uniform(&rng) * N_WORDS);
                for (uint32_t k = 0; k < N_WORDS && !(mask[id / 32] >> id % 32 & 1); k++)
                    id = (id + 1) % N_WORDS;
                if (!pith_matcher_accept(m, (int32_t)id)) break;
            }
            pith_matcher_free(m);
        }
        pith_grammar_drop(grammar);
    }
    assert_true(n_walked > 0);
    pith_token_trie_free(trie);
}

static void test_memory_that_is_not_enough(void **state) {
    (void)state;
    pith_token_trie *trie = byte_trie();
    pith_grammar *grammar = gbnf_of("root ::= \"(\" root \")\" | \"x\"");
    pith_matcher *m = NULL;
    pith_error error = {PITH_OK, ""};
    assert_int_equal(pith_matcher_new(grammar, trie, 1000, &m, &error), PITH_ERROR_ARGUMENT);
    assert_null(m);
    assert_true(error.text[0] != 0);
    m = matcher_of(grammar, trie, (1 << 18) + 4096);
    size_t depth = 0; /* every parenthesis is a frame that must be kept */
    while (depth < 1000000 && pith_matcher_accept(m, '(')) depth++;
    assert_true(depth > 2000 && depth < 1000000);
    assert_non_null(pith_matcher_failed(m));
    assert_non_null(strstr(pith_matcher_failed(m), "memory"));
    for (int word = 0; word <= CASE_END / 32; word++)
        assert_int_equal(pith_matcher_mask(m)[word], 0);
    assert_false(pith_matcher_allows(m, ')'));
    assert_false(pith_matcher_may_end(m));
    assert_true(m->used <= m->memory);
    pith_matcher_reset(m);
    assert_null(pith_matcher_failed(m));
    assert_true(pith_matcher_accept(m, '('));
    pith_matcher_free(m);
    pith_grammar_drop(grammar);
    pith_token_trie_free(trie);
}

static void test_deep_texts(void **state) {
    (void)state;
    enum { DEEP = 200000 };
    pith_token_trie *trie = byte_trie();
    pith_grammar *grammar = gbnf_of("root ::= \"(\" root \")\" | \"x\"");
    pith_matcher *m = matcher_of(grammar, trie, 64 << 20);
    for (int i = 0; i < DEEP; i++) assert_true(pith_matcher_accept(m, '('));
    assert_true(pith_matcher_accept(m, 'x'));
    for (int i = 0; i < DEEP; i++) assert_true(pith_matcher_accept(m, ')'));
    assert_true(pith_matcher_may_end(m));
    pith_matcher_rewind(m, DEEP + 1);
    assert_false(pith_matcher_allows(m, ')'));
    assert_true(pith_matcher_accept(m, 'x'));
    pith_matcher_free(m);
    pith_grammar_drop(grammar);
    pith_token_trie_free(trie);
}

/* ---- limits ---- */

static void test_exploding_ambiguity_fails_closed(void **state) {
    (void)state;
    static const char *const grammars[] = {
        "root ::= \"a\" root? \"b\"?",
        "root ::= (\"a\" root? \"b\"? \"c\"?)+",
        "root ::= x\nx ::= \"a\" (x x | x)? \"b\"?",
        "root ::= ((((\"a\"{2,5}){2,90}){3,80}){4,70}){5,60}",
        "root ::= ([^x]{3,900} [^y]{3,900} [^z]{5,900} .{7,900}){3,500}",
    };
    pith_token_trie *trie = byte_trie();
    for (size_t g = 0; g < sizeof grammars / sizeof *grammars; g++) {
        pith_grammar *grammar = gbnf_of(grammars[g]);
        pith_matcher *m = matcher_of(grammar, trie, 64 << 20);
        size_t n = 0;
        while (n < 6000 && pith_matcher_accept(m, 'a')) {
            if (n % 100 == 0) (void)pith_matcher_mask(m);
            n++;
        }
        assert_true(n > 5);
        if (n < 6000) {
            assert_non_null(pith_matcher_failed(m));
            assert_int_equal(pith_matcher_mask(m)['a' / 32], 0);
            assert_false(pith_matcher_accept(m, 'a'));
            pith_matcher_rewind(m, 1);
            assert_null(pith_matcher_failed(m));
        }
        print_message("%s: %zu bytes\n", grammars[g], n);
        pith_matcher_free(m);
        pith_grammar_drop(grammar);
    }
    pith_token_trie_free(trie);
}

static void test_long_ambiguous_repetitions_stay_cheap(void **state) {
    (void)state;
    static const char *const grammars[] = {
        "root ::= (\"a\" | \"aa\"){0,1000000} \"b\"", "root ::= (\"a\"? \"a\"?){5,1000000}",
        "root ::= (\"a\"* \"a\"*)*", "root ::= (\"a\" | \"aa\" | \"aaa\"){0,100} .*"};
    pith_token_trie *trie = byte_trie();
    for (size_t g = 0; g < sizeof grammars / sizeof *grammars; g++) {
        pith_grammar *grammar = gbnf_of(grammars[g]);
        pith_matcher *m = matcher_of(grammar, trie, 64 << 20);
        for (int i = 0; i < 3000; i++) assert_true(pith_matcher_accept(m, 'a'));
        assert_true(m->configs[m->current].n < 40);
        pith_matcher_free(m);
        pith_grammar_drop(grammar);
    }
    pith_token_trie_free(trie);
}

/* ---- memory that fails ---- */

static pith_status use_all(const char *text) {
    pith_grammar *grammar = NULL;
    pith_token_trie *trie = NULL;
    pith_matcher *m = NULL;
    const pith_span pieces[] = {{"{", 1},   {"\"", 1}, {"a", 1}, {"ab", 2},
                                {"\":", 2}, {"1", 1},  {"}", 1}, {"", 0}};
    const bool is_end[] = {false, false, false, false, false, false, false, true};
    const int32_t ids[] = {0, 1, 2, 3, 4, 5, 6, 7};
    pith_error error = {PITH_OK, ""};
    pith_status status = pith_grammar_from_gbnf(text, strlen(text), NULL, &grammar, &error);
    if (status == PITH_OK) status = pith_token_trie_new(pieces, is_end, 8, &trie, &error);
    if (status == PITH_OK) status = pith_matcher_new(grammar, trie, CASE_MEMORY, &m, &error);
    for (size_t i = 0; i < 8 && status == PITH_OK; i++) {
        const uint32_t *mask = pith_matcher_mask(m);
        bool bit = (mask[0] >> ids[i] & 1) != 0;
        if (!bit || !pith_matcher_accept(m, ids[i])) status = PITH_ERROR_MEMORY;
        if (status != PITH_OK) assert_non_null(pith_matcher_failed(m)); /* never a wrong answer */
    }
    if (status != PITH_OK && m == NULL) assert_int_equal(error.status, status);
    pith_matcher_free(m);
    pith_token_trie_free(trie);
    pith_grammar_drop(grammar);
    return status;
}

static void test_any_failing_allocation_is_told(void **state) {
    (void)state;
    memory_watch_reset(0);
    assert_int_equal(use_all(json), PITH_OK);
    uint64_t n = memory_watch.n_requests;
    assert_true(n > 60);
    for (uint64_t k = 1; k <= n; k++) {
        memory_watch_reset(k);
        pith_status status = use_all(json);
        memory_watch_reset(0);
        assert_true(status == PITH_OK || status == PITH_ERROR_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_finishes_the_text),
        cmocka_unit_test(test_ids_outside_the_vocabulary),
        cmocka_unit_test(test_vocabulary_of_odd_pieces),
        cmocka_unit_test(test_forced_bytes),
        cmocka_unit_test(test_little_memory_changes_nothing),
        cmocka_unit_test(test_tables_stay_within_the_memory),
        cmocka_unit_test(test_memory_that_is_not_enough),
        cmocka_unit_test(test_deep_texts),
        cmocka_unit_test(test_exploding_ambiguity_fails_closed),
        cmocka_unit_test(test_long_ambiguous_repetitions_stay_cheap),
        cmocka_unit_test(test_any_failing_allocation_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
