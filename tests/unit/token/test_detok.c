/* SPDX-License-Identifier: Apache-2.0
 * Promises: streamed text never has half a character, is well-formed whatever the ids, and together
 * is the text that was encoded. */
#include "token_expect.h"

/* What the pushes of ids give, with '|' behind each push. */
static void expect_pushes(const pith_tokenizer *tokenizer, bool show, const int32_t *ids, size_t n,
                          const char *pushes) {
    pith_detok detok;
    pith_buffer got = {0};
    pith_detok_init(&detok, tokenizer, show);
    for (size_t i = 0; i <= n; i++) {
        pith_span text = pith_detok_push(&detok, i < n ? ids[i] : -1);
        pith_buffer_append(&got, text.data, text.size);
        pith_buffer_append(&got, "|", 1);
    }
    assert_string_equal(got.data, pushes);
    pith_buffer_deinit(&got);
    pith_detok_deinit(&detok);
}

static void characters_come_whole(void **state) {
    (void)state;
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, "gpt-2");
    small_vocab_add_mapped_bytes(&vocab); /* id = byte */
    int32_t end = small_vocab_add(&vocab, "<|im_end|>", PITH_TOKEN_CONTROL, 0);
    int32_t tool = small_vocab_add(&vocab, "<tool>", PITH_TOKEN_USER_DEFINED, 0);
    pith_tokenizer *tokenizer = make();
    const int32_t emoji[] = {0xF0, 0x9F, 0x98, 0x80, 'a'};
    expect_pushes(tokenizer, false, emoji, 5, "|||\xF0\x9F\x98\x80|a||");
    const int32_t cut[] = {0xF0, 0x9F, 'a'}; /* one mark for the start of one character */
    expect_pushes(tokenizer, false, cut, 3,
                  "||\xEF\xBF\xBD"
                  "a||");
    const int32_t broken[] = {0xFF, 0xC3, 0xC3, 0xA9, 0xE4};
    expect_pushes(tokenizer, false, broken, 5,
                  "\xEF\xBF\xBD||\xEF\xBF\xBD|\xC3\xA9||\xEF\xBF\xBD|");
    const int32_t surrogate[] = {0xED, 0xA0, 0x80};
    expect_pushes(tokenizer, false, surrogate, 3, "|\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD||");
    const int32_t special[] = {'x', 0xC3, end, 0xA9, tool, ' '};
    expect_pushes(tokenizer, false, special, 6, "x|||\xC3\xA9|<tool>| ||");
    expect_pushes(tokenizer, true, special, 6, "x||\xEF\xBF\xBD<|im_end|>|\xEF\xBF\xBD|<tool>| ||");
    const int32_t outside[] = {5000, 'y', -7};
    expect_pushes(tokenizer, false, outside, 3, "|y|||");
    pith_tokenizer_free(tokenizer);
}

static void the_space_in_front_is_dropped_once(void **state) {
    (void)state;
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_SPM, "");
    small_vocab_add(&vocab, "<unk>", PITH_TOKEN_UNKNOWN, 0);
    small_vocab_add(&vocab, "<s>", PITH_TOKEN_CONTROL, 0);
    small_vocab_add(&vocab, "</s>", PITH_TOKEN_CONTROL, 0);
    int32_t word = small_vocab_add(&vocab, "\xE2\x96\x81word", PITH_TOKEN_NORMAL, 0);
    int32_t byte = small_vocab_add(&vocab, "<0xC3>", PITH_TOKEN_BYTE, 0);
    pith_tokenizer *tokenizer = make();
    const int32_t ids[] = {1, word, word, byte, 2};
    expect_pushes(tokenizer, false, ids, 5, "|word| word|||\xEF\xBF\xBD|");
    pith_detok detok; /* going on behind a prompt */
    pith_detok_init(&detok, tokenizer, false);
    detok.started = true;
    assert_true(pith_span_is(pith_detok_push(&detok, word), " word"));
    pith_detok_deinit(&detok);
    pith_tokenizer_free(tokenizer);
}

/* Random bytes: encoded, streamed back, and together what a careful reader of the bytes sees. */
static void streams_add_up_to_the_text(void **state) {
    (void)state;
    const uint64_t seed = 65;
    pith_rng rng;
    pith_ids ids = {0};
    pith_rng_init(&rng, seed);
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, "llama-bpe");
    small_vocab_add_mapped_bytes(&vocab);
    add_random_tokens(&rng, 50, false);
    pith_tokenizer *tokenizer = make();
    for (int round = 0; round < 2000; round++) {
        char text[64];
        size_t size = below(&rng, sizeof text);
        for (size_t i = 0; i < size; i++)
            text[i] = (char)"\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80"
                            "abc \n"[below(&rng, 14)];
        encode(tokenizer, (pith_span){text, size}, false, false, &ids);
        pith_buffer bytes = {0}, whole = {0};
        pith_detok detok;
        pith_detok_init(&detok, tokenizer, false);
        for (size_t i = 0; i <= ids.size; i++) {
            int32_t id = i < ids.size ? ids.data[i] : -1;
            pith_span piece = pith_tokenizer_bytes(tokenizer, id),
                      shown = pith_detok_push(&detok, id);
            pith_buffer_append(&bytes, piece.data, piece.size);
            pith_buffer_append(&whole, shown.data, shown.size);
        }
        assert_int_equal(bytes.size, size);
        if (size) assert_memory_equal(bytes.data, text, size);
        size_t at = 0, well_formed = 0;
        while (at < whole.size) {
            uint32_t code;
            size_t n = pith_utf8_decode(whole.data + at, whole.size - at, &code);
            assert_int_not_equal(code, PITH_UTF8_INVALID);
            at += n;
        }
        for (size_t i = 0, k = 0; i < size;
             well_formed++) { /* well-formed characters come through */
            uint32_t code;
            size_t n = pith_utf8_decode(text + i, size - i, &code);
            if (code != PITH_UTF8_INVALID) {
                while (k + 3 <= whole.size && memcmp(whole.data + k, "\xEF\xBF\xBD", 3) == 0)
                    k += 3;
                assert_memory_equal(whole.data + k, text + i, n);
                k += n;
            }
            i += n;
        }
        pith_detok_deinit(&detok);
        pith_buffer_deinit(&bytes);
        pith_buffer_deinit(&whole);
    }
    pith_ids_deinit(&ids);
    pith_tokenizer_free(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_come_whole),
        cmocka_unit_test(the_space_in_front_is_dropped_once),
        cmocka_unit_test(streams_add_up_to_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
