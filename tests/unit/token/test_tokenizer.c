/* SPDX-License-Identifier: Apache-2.0
 * Promises: broken vocabularies are refused with a sentence, limits hold, tokens say what they are,
 * threads share a tokenizer. */
#include "base/pool.h"
#include "token_expect.h"

static void broken_vocabularies_are_refused(void **state) {
    (void)state;
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, "gpt-2");
    refused(PITH_ERROR_FORMAT, "no tokens");
    add_special_basics("gpt-2");
    small_vocab_add(&vocab, "<tool>", PITH_TOKEN_NORMAL, 0);
    refused(PITH_ERROR_FORMAT, "same text");
    add_special_basics("gpt-2");
    small_vocab_add(&vocab, "x y z", PITH_TOKEN_NORMAL, 0); /* not a mapped text */
    small_vocab_add(&vocab, "x y z", PITH_TOKEN_CONTROL, 0);
    refused(PITH_ERROR_FORMAT, "same text");
    add_special_basics("gpt-2");
    vocab.scores[7] = (float)strtod("nan", NULL);
    refused(PITH_ERROR_FORMAT, "token 7");
    static const char *const merges[] = {"", "a", "ab", "a ", " a"};
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        add_special_basics("gpt-2");
        small_vocab_merge(&vocab, "a b");
        small_vocab_merge(&vocab, merges[i]);
        refused(PITH_ERROR_FORMAT, "merge 1");
    }
    vocab.source.n_tokens = PITH_TOKEN_MAX_TOKENS + 1u;
    refused(PITH_ERROR_LIMIT, "16777217");
}

static void a_piece_has_a_longest_length(void **state) {
    (void)state;
    static char text[PITH_TOKEN_MAX_PIECE_BYTES + 2];
    memset(text, 'x', PITH_TOKEN_MAX_PIECE_BYTES);
    add_special_basics("gpt-2");
    int32_t id = small_vocab_add(&vocab, text, PITH_TOKEN_CONTROL, 0);
    pith_tokenizer *tokenizer = make();
    assert_int_equal(pith_tokenizer_find(tokenizer, pith_span_of(text)), id);
    pith_tokenizer_free(tokenizer);
    text[PITH_TOKEN_MAX_PIECE_BYTES] = 'x';
    add_special_basics("gpt-2");
    small_vocab_add(&vocab, text, PITH_TOKEN_CONTROL, 0);
    refused(PITH_ERROR_LIMIT, "4097");
}

static void an_unknown_pre_tokenizer_is_named(void **state) {
    (void)state;
    add_special_basics("brand-new");
    refused(PITH_ERROR_UNSUPPORTED, "brand-new");
    vocab.source.force = true;
    pith_tokenizer *tokenizer = make();
    assert_non_null(strstr(pith_tokenizer_notes(tokenizer), "brand-new"));
    expect(tokenizer, "x", false, false, "|x");
    pith_tokenizer_free(tokenizer);
}

static void a_model_without_vocabulary_takes_no_text(void **state) {
    (void)state;
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_NONE, "");
    pith_tokenizer *tokenizer = make();
    pith_text_span span = {pith_span_of("x"), false};
    pith_ids ids = {0};
    pith_error error = {0};
    assert_int_equal(pith_tokenizer_encode(tokenizer, &span, 1, true, &ids, &error),
                     PITH_ERROR_UNSUPPORTED);
    assert_int_equal(pith_tokenizer_size(tokenizer), 0);
    assert_int_equal(pith_tokenizer_find(tokenizer, pith_span_of("x")), -1);
    assert_null(pith_tokenizer_piece(tokenizer, 0).data);
    pith_tokenizer_free(tokenizer);
}

static void tokens_say_what_they_are(void **state) {
    (void)state;
    add_special_basics("gpt-2");
    int32_t empty = small_vocab_add(&vocab, "", PITH_TOKEN_NORMAL, 0);
    pith_tokenizer *tokenizer = make();
    char name[32];
    snprintf(name, sizeof name, "[EMPTY_%d]", empty);
    assert_string_equal(pith_tokenizer_piece(tokenizer, empty).data, name);
    assert_int_equal(pith_tokenizer_find(tokenizer, pith_span_of(name)), empty);
    for (int32_t i = 0; i < empty; i++) {
        pith_span piece = pith_tokenizer_piece(tokenizer, i);
        assert_int_equal(piece.data[piece.size], 0);
        assert_int_equal(pith_tokenizer_find(tokenizer, piece), i);
        pith_span bytes = pith_tokenizer_bytes(tokenizer, i);
        if (i >= 256) continue;
        assert_int_equal(bytes.size, 1);
        assert_int_equal((unsigned char)bytes.data[0], i);
    }
    assert_null(pith_tokenizer_piece(tokenizer, -1).data);
    assert_null(pith_tokenizer_bytes(tokenizer, empty + 1).data);
    assert_true(pith_span_is(pith_tokenizer_bytes(tokenizer, vocab.source.bos), ""));
    assert_non_null(pith_tokenizer_bytes(tokenizer, vocab.source.bos).data);
    assert_true(pith_span_is(pith_tokenizer_bytes(tokenizer, vocab.source.bos + 4), "a b"));
    pith_tokenizer_free(tokenizer);
}

struct shared {
    const pith_tokenizer *tokenizer;
    pith_span text;
    pith_ids ids[8];
};

static void encode_in_thread(void *user, int thread, int n_threads) {
    struct shared *shared = user;
    (void)n_threads;
    pith_text_span span = {shared->text, false};
    pith_ids *ids = &shared->ids[thread];
    for (int round = 0; round < 3; round++) {
        ids->size = 0;
        (void)pith_tokenizer_encode(shared->tokenizer, &span, 1, false, ids, NULL);
    }
}

/* The memories of pieces are filled by all threads at once; the ids are those of one. */
static void threads_share_a_tokenizer(void **state) {
    (void)state;
    enum { SIZE = 40000 };
    static char text[SIZE];
    static struct shared shared;
    pith_rng rng;
    pith_pool *pool = NULL;
    pith_ids alone = {0};
    pith_rng_init(&rng, 64);
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, "gpt-2");
    small_vocab_add_mapped_bytes(&vocab);
    add_random_tokens(&rng, 200, false);
    for (size_t i = 0; i < SIZE; i++) text[i] = "aaabbc "[below(&rng, 7)];
    pith_tokenizer *other = make();
    encode(other, (pith_span){text, SIZE}, false, false, &alone);
    shared = (struct shared){.tokenizer = make(), .text = {text, SIZE}};
    assert_int_equal(pith_pool_new(4, &pool, NULL), PITH_OK);
    pith_pool_run(pool, encode_in_thread, &shared);
    for (int t = 0; t < 4; t++) {
        assert_same_ids(&shared.ids[t], &alone, (pith_span){text, 10}, 64);
        pith_ids_deinit(&shared.ids[t]);
    }
    pith_pool_free(pool);
    pith_ids_deinit(&alone);
    pith_tokenizer_free((pith_tokenizer *)shared.tokenizer);
    pith_tokenizer_free(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_vocabularies_are_refused),
        cmocka_unit_test(a_piece_has_a_longest_length),
        cmocka_unit_test(an_unknown_pre_tokenizer_is_named),
        cmocka_unit_test(a_model_without_vocabulary_takes_no_text),
        cmocka_unit_test(tokens_say_what_they_are),
        cmocka_unit_test(threads_share_a_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
