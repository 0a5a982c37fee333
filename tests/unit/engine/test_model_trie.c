/* SPDX-License-Identifier: Apache-2.0
 * Promises: a model has one vocabulary tree, the same for all threads that ask at the same time; ids that end a reply end a text,
 * control tokens have no text. The golden vocabulary has the 256 bytes, <s> 256 and </s> 257, which ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include "base/pool.h"
#include "engine/engine.h"
#include "sample/grammar.h"
#include "support/changed_model.h"

#include <cmocka.h>

enum { N_THREADS = 8 };

static pith_model *open_golden(bool vocab_only) {
    char path[1024];
    pith_model_options options = {.size = sizeof options, .vocab_only = vocab_only};
    pith_gguf *gguf = NULL;
    pith_model *model = NULL;
    pith_error error = {PITH_OK, ""};
    golden_path("llama-moe.gguf", path);
    if (pith_gguf_open_path(path, &gguf, &error) != PITH_OK ||
        pith_model_load(gguf, &options, 0, &model, &error) != PITH_OK)
        fail_msg("%s", error.text);
    return model;
}

typedef struct asking {
    const pith_model *model;
    const pith_token_trie *tries[N_THREADS];
    pith_status statuses[N_THREADS];
} asking;

static void ask(void *user, int thread, int n_threads) {
    asking *a = user;
    (void)n_threads;
    a->statuses[thread] = pith_model_get_trie(a->model, &a->tries[thread], NULL);
}

static void test_threads_get_the_same_tree(void **state) {
    (void)state;
    pith_pool *pool = NULL;
    assert_int_equal(pith_pool_new(N_THREADS, &pool, NULL), PITH_OK);
    for (int round = 0; round < 20; round++) {
        asking a = {.model = open_golden(true)};
        pith_pool_run(pool, ask, &a);
        for (int i = 0; i < pith_pool_size(pool); i++) {
            assert_int_equal(a.statuses[i], PITH_OK);
            assert_non_null(a.tries[i]);
            assert_ptr_equal(a.tries[i], a.tries[0]);
        }
        pith_model *model = (pith_model *)(uintptr_t)a.model;
        pith_model_drop_trie(model);
        pith_model_free(model);
    }
    pith_pool_free(pool);
}

static void test_ends_and_control_tokens(void **state) {
    (void)state;
    pith_model *model = open_golden(false);
    const pith_token_trie *trie = NULL;
    pith_grammar *grammar = NULL;
    pith_matcher *matcher = NULL;
    const char *choice = "<s>";
    const size_t size = 3;
    assert_int_equal(pith_model_get_trie(model, &trie, NULL), PITH_OK);
    assert_int_equal(pith_grammar_from_choices(&choice, &size, 1, &grammar, NULL), PITH_OK);
    assert_int_equal(pith_matcher_new(grammar, trie, 1 << 20, &matcher, NULL), PITH_OK);
    assert_true(pith_matcher_allows(matcher, '<'));
    assert_false(pith_matcher_allows(matcher, 256)); /* the text <s>, not the token */
    assert_false(pith_matcher_allows(matcher, 257));
    for (size_t i = 0; i < size; i++) assert_true(pith_matcher_accept(matcher, choice[i]));
    assert_true(pith_matcher_allows(matcher, 257));
    assert_int_equal(pith_model_find_token(model, pith_span_of("<s>")), 256);
    assert_int_equal(pith_model_find_token(model, pith_span_of("<s><s>")), -1);
    assert_int_equal(pith_model_find_token(model, pith_span_of("")), -1);
    pith_matcher_free(matcher);
    pith_grammar_drop(grammar);
    pith_model_drop_trie(model);
    pith_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_get_the_same_tree),
        cmocka_unit_test(test_ends_and_control_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
