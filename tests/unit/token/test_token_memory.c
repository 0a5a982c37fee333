/* SPDX-License-Identifier: Apache-2.0
 * Promise: wherever memory runs out, making a tokenizer and encoding end with PITH_ERROR_MEMORY,
 * leak nothing and leave the caller's ids as they were. */
#include "support/failing_memory.h"
#include "token_expect.h"

static const struct {
    pith_token_model model;
    const char *pre;
} kinds[] = {{PITH_TOKEN_MODEL_BPE, "gpt-2"},  {PITH_TOKEN_MODEL_BPE, "default"},
             {PITH_TOKEN_MODEL_BPE, "qwen2"},  {PITH_TOKEN_MODEL_BPE, "kimi-k2"},
             {PITH_TOKEN_MODEL_BPE, "gemma4"}, {PITH_TOKEN_MODEL_SPM, ""},
             {PITH_TOKEN_MODEL_WPM, ""},       {PITH_TOKEN_MODEL_UGM, ""}};

static void make_kind(size_t k) {
    small_vocab_init(&vocab, kinds[k].model, kinds[k].pre);
    small_vocab_add_mapped_bytes(&vocab);
    small_vocab_add(&vocab, "<tool>", PITH_TOKEN_USER_DEFINED, 0);
    small_vocab_add(&vocab, "<s>", PITH_TOKEN_CONTROL, 0);
    small_vocab_add(&vocab, "ab", PITH_TOKEN_UNUSED, -1);
    small_vocab_add(&vocab, "abab", PITH_TOKEN_UNUSED, -2);
    small_vocab_merge(&vocab, "a b");
    small_vocab_merge(&vocab, "x y");
    vocab.source.unknown = 0;
}

static void making_a_tokenizer_survives_every_refusal(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        make_kind(k);
        pith_status status = PITH_ERROR_MEMORY;
        uint64_t n = 0;
        while (status != PITH_OK) {
            pith_tokenizer *tokenizer = NULL;
            pith_error error = {0};
            memory_watch_reset(++n);
            status = pith_tokenizer_new(&vocab.source, &tokenizer, &error);
            memory_watch_reset(0);
            if (status != PITH_OK) {
                assert_int_equal(status, PITH_ERROR_MEMORY);
                assert_null(tokenizer);
            }
            pith_tokenizer_free(tokenizer);
        }
        assert_true(n > 5);
    }
}

static void encoding_survives_every_refusal(void **state) {
    (void)state;
    static const char text[] =
        "ab abab e\xCC\x81\xFF<tool>abababababababababababababababababababababab"
        "abababababab\xE2\x96\x81x";
    pith_text_span spans[] = {{{text, sizeof text - 1}, false}, {{text, sizeof text - 1}, false}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        make_kind(k);
        pith_tokenizer *tokenizer = make();
        pith_status status = PITH_ERROR_MEMORY;
        for (uint64_t n = 1; status != PITH_OK; n++) {
            pith_ids ids = {0};
            assert_true(pith_ids_append(&ids, 7));
            memory_watch_reset(n);
            status = pith_tokenizer_encode(tokenizer, spans, 2, true, &ids, NULL);
            memory_watch_reset(0);
            if (status != PITH_OK) {
                assert_int_equal(status, PITH_ERROR_MEMORY);
                assert_int_equal(ids.size, 1);
            }
            assert_int_equal(ids.data[0], 7);
            pith_ids_deinit(&ids);
            assert_true(n < 200);
        }
        pith_tokenizer_free(tokenizer);
    }
}

/* Whatever request fails, encoding fails cleanly or gives the same ids: the memo does without more
 * memory. */
static void without_memory_to_grow_ids_are_the_same(void **state) {
    (void)state;
    static char text[5 * 2000]; /* words that all differ: "aaaa ", "aaab ", ... */
    bool grew = false, stayed = false;
    pith_ids expected = {0};
    for (size_t i = 0; i < sizeof text; i++) text[i] = ' ';
    for (size_t i = 0; i < 2000; i++)
        for (size_t k = 0, rest = i; k < 4; k++, rest /= 7)
            text[5 * i + k] = (char)('a' + rest % 7);
    make_kind(0);
    for (uint64_t n = 0; n < 10; n++) { /* 0: none fails */
        pith_tokenizer *tokenizer = make();
        pith_text_span span = {{text, sizeof text}, false};
        for (int round = 0; round < 2; round++) {
            pith_ids ids = {0};
            memory_watch_reset(round ? 0 : n);
            pith_status status = pith_tokenizer_encode(tokenizer, &span, 1, false, &ids, NULL);
            memory_watch_reset(0);
            if (!n && !round) {
                expected = ids;
                continue;
            }
            if (round || status != PITH_ERROR_MEMORY) {
                assert_int_equal(status, PITH_OK);
                assert_same_ids(&ids, &expected, (pith_span){text, 40}, n);
            }
            pith_ids_deinit(&ids);
        }
        if (atomic_load(&tokenizer->memo->level))
            grew = true;
        else
            stayed = true;
        pith_tokenizer_free(tokenizer);
    }
    pith_ids_deinit(&expected);
    assert_true(grew && stayed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(making_a_tokenizer_survives_every_refusal),
        cmocka_unit_test(encoding_survives_every_refusal),
        cmocka_unit_test(without_memory_to_grow_ids_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
