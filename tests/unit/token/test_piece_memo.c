/* SPDX-License-Identifier: Apache-2.0
 * Promises: what the memo of pieces holds changes no id, while it grows, when it is full, and
 * with several threads at it. (Without memory to grow: test_token_memory.c.) */
#include "base/pool.h"
#include "token_expect.h"

enum { N_WORDS = 60000, WORD_BYTES = 4 }; /* more than the tables take well */

static char text[N_WORDS * WORD_BYTES];

static pith_tokenizer *make_small(uint64_t seed) {
    pith_rng rng;
    pith_rng_init(&rng, seed);
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, "gpt-2");
    small_vocab_add_mapped_bytes(&vocab);
    add_random_tokens(&rng, 40, false);
    return make();
}

/* Words of two or three letters, most of them different and of few ids. Now and then some run
 * together. */
static void write_words(uint64_t seed) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    pith_rng rng;
    pith_rng_init(&rng, seed);
    memset(text, ' ', sizeof text);
    for (size_t i = 0; i < N_WORDS; i++) {
        size_t bytes = below(&rng, 20) ? 2 + below(&rng, 2) : WORD_BYTES;
        for (size_t k = 0; k < bytes; k++)
            text[i * WORD_BYTES + k] = letters[below(&rng, sizeof letters - 1)];
    }
    text[sizeof text - 1] = 'a';
}

/* Start of the spaces in front of a word that begins at `at` or before: no piece crosses it. */
static size_t border_before(size_t at) {
    while (at && text[at] != ' ') at--;
    while (at && text[at - 1] == ' ') at--;
    return at;
}

/* The ids of the text, some hundred words at a time by tokenizers that know nothing yet. */
static void encode_afresh(pith_ids *ids) {
    for (size_t at = 0, end; at < sizeof text; at = end) {
        end = at + 5000 < sizeof text ? border_before(at + 5000) : sizeof text;
        pith_tokenizer *tokenizer = make();
        pith_text_span span = {{text + at, end - at}, false};
        assert_int_equal(pith_tokenizer_encode(tokenizer, &span, 1, false, ids, NULL), PITH_OK);
        pith_tokenizer_free(tokenizer);
    }
}

static void a_memo_that_grows_and_fills_changes_no_id(void **state) {
    (void)state;
    const uint64_t seed = 5;
    const pith_span all = {text, sizeof text};
    pith_ids expected = {0}, got = {0};
    pith_tokenizer *tokenizer = make_small(seed);
    write_words(seed);
    encode_afresh(&expected);
    for (int round = 0; round < 3; round++) {
        encode(tokenizer, all, false, false, &got);
        assert_same_ids(&got, &expected, (pith_span){text, 40}, seed);
    }
    assert_int_equal(atomic_load(&tokenizer->memo->level), PITH_MEMO_LEVELS - 1);
    pith_tokenizer_free(tokenizer);
    pith_ids_deinit(&expected);
    pith_ids_deinit(&got);
}

struct work {
    const pith_tokenizer *tokenizer;
    pith_ids ids[4]; /* by thread */
};

static void encode_all(void *user, int thread, int n_threads) {
    struct work *work = user;
    pith_text_span span = {{text, sizeof text}, false};
    (void)n_threads;
    for (int round = 0; round < 2; round++) {
        work->ids[thread].size = 0;
        (void)pith_tokenizer_encode(work->tokenizer, &span, 1, false, &work->ids[thread], NULL);
    }
}

static void threads_that_grow_one_memo_give_the_same_ids(void **state) {
    (void)state;
    struct work work = {0};
    pith_ids expected = {0};
    pith_pool *pool = NULL;
    pith_tokenizer *tokenizer = make_small(9);
    work.tokenizer = tokenizer;
    write_words(9);
    encode_afresh(&expected);
    assert_int_equal(pith_pool_new(4, &pool, NULL), PITH_OK);
    pith_pool_run(pool, encode_all, &work);
    for (int i = 0; i < 4; i++) {
        assert_same_ids(&work.ids[i], &expected, (pith_span){text, 40}, 9);
        pith_ids_deinit(&work.ids[i]);
    }
    pith_pool_free(pool);
    pith_tokenizer_free(tokenizer);
    pith_ids_deinit(&expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_memo_that_grows_and_fills_changes_no_id),
        cmocka_unit_test(threads_that_grow_one_memo_give_the_same_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
