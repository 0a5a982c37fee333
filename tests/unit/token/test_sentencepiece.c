/* SPDX-License-Identifier: Apache-2.0
 * Promises: SentencePiece BPE merges by score, compared with a plain program over the whole text; a
 * space goes in front, unknown characters become bytes, unused tokens are taken apart. */
#include "token_expect.h"

static void sentencepiece_merges_by_score(void **state) {
    (void)state;
    const uint64_t seed = 62;
    pith_rng rng;
    pith_ids got = {0}, expected = {0};
    pith_rng_init(&rng, seed);
    for (int round = 0; round < 30; round++) {
        small_vocab_init(&vocab, PITH_TOKEN_MODEL_SPM, "default");
        vocab.source.add_space_prefix = vocab.source.add_bos = 0;
        static const char *const letters[] = {"a", "b", "c", " "};
        for (size_t i = 0; i < 4; i++) small_vocab_add(&vocab, letters[i], PITH_TOKEN_NORMAL, 0);
        add_random_tokens(&rng, 60, true);
        /* the vocabulary spells a space U+2581; the plain program reads it as a space */
        small_vocab *plain = malloc(sizeof *plain);
        memcpy(plain, &vocab, sizeof *plain);
        pith_vocab_source source = vocab.source;
        pith_span texts[SMALL_VOCAB_TOKENS];
        for (uint32_t i = 0; i < source.n_tokens; i++) {
            char spelt[64];
            size_t n = 0;
            for (size_t k = 0; k < vocab.texts[i].size; k++) {
                char c = vocab.texts[i].data[k];
                memcpy(spelt + n, c == ' ' ? "\xE2\x96\x81" : &c, c == ' ' ? 3 : 1);
                n += c == ' ' ? 3 : 1;
            }
            texts[i] = small_vocab_keep(plain, (pith_span){spelt, n});
        }
        source.texts = texts;
        pith_tokenizer *tokenizer = NULL;
        assert_int_equal(pith_tokenizer_new(&source, &tokenizer, NULL), PITH_OK);
        for (int k = 0; k < 40; k++) {
            char text[200];
            size_t size = 1 + below(&rng, k % 2 ? 20 : 199);
            for (size_t i = 0; i < size; i++) text[i] = "aabbc  "[below(&rng, 7)];
            pith_span all = {text, size};
            expected.size = 0;
            plain_merge(all, true, &expected);
            encode(tokenizer, all, false, false, &got);
            assert_same_ids(&got, &expected, all, seed);
        }
        pith_tokenizer_free(tokenizer);
        free(plain);
    }
    pith_ids_deinit(&got);
    pith_ids_deinit(&expected);
}

static void add_spm_basics(void) {
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_SPM, "default");
    small_vocab_add(&vocab, "<unk>", PITH_TOKEN_UNKNOWN, 0);
    small_vocab_add(&vocab, "<s>", PITH_TOKEN_CONTROL, 0);
    small_vocab_add(&vocab, "</s>", PITH_TOKEN_CONTROL, 0);
    small_vocab_add_byte_tokens(&vocab);
    static const char *const texts[] = {"\xE2\x96\x81", "a", "b", "s", "<", ">", "ab"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        small_vocab_add(&vocab, texts[i], PITH_TOKEN_NORMAL, -(float)i);
}

static void a_space_goes_in_front_of_a_text_and_behind_special_tokens(void **state) {
    (void)state;
    add_spm_basics();
    pith_tokenizer *tokenizer = make();
    expect(tokenizer, "ab", false, true, "|<s>|\xE2\x96\x81|ab");
    expect(tokenizer, "a b", false, false, "|\xE2\x96\x81|a|\xE2\x96\x81|b");
    expect(tokenizer, "ab</s>ab", true, true, "|<s>|\xE2\x96\x81|ab|</s>|\xE2\x96\x81|ab");
    expect(tokenizer, "", false, true, "|<s>");
    /* a mark of the vocabulary in the text is a space */
    expect(tokenizer,
           "a\xE2\x96\x81"
           "b",
           false, false, "|\xE2\x96\x81|a|\xE2\x96\x81|b");
    /* spans are one text: one space; nothing merges across their border */
    pith_text_span spans[] = {
        {{"a", 1}, true}, {{"b", 1}, false}, {{"a", 1}, false}, {{"b", 1}, false}};
    pith_ids ids = {0};
    assert_int_equal(pith_tokenizer_encode(tokenizer, spans, 4, false, &ids, NULL), PITH_OK);
    const int32_t expected[] = {259, 260, 261, 265}; /* _ a b ab */
    assert_int_equal(ids.size, 4);
    assert_memory_equal(ids.data, expected, sizeof expected);
    pith_ids_deinit(&ids);
    pith_tokenizer_free(tokenizer);
}

static void unknown_characters_become_bytes(void **state) {
    (void)state;
    add_spm_basics();
    pith_tokenizer *tokenizer = make();
    expect(tokenizer, "a\xC3\xA9", false, false, "|\xE2\x96\x81|a|<0xC3>|<0xA9>");
    expect(tokenizer, "\xFF\n", false, false, "|\xE2\x96\x81|<0xFF>|<0x0A>");
    /* control and byte tokens never come out of plain text */
    expect(tokenizer, "<s>", false, false, "|\xE2\x96\x81|<|s|>");
    expect(tokenizer, "<0x41>", false, false, "|\xE2\x96\x81|<|<0x30>|<0x78>|<0x34>|<0x31>|>");
    pith_tokenizer_free(tokenizer);
}

static void unused_tokens_are_taken_apart_again(void **state) {
    (void)state;
    add_spm_basics();
    vocab.source.add_space_prefix = 0;
    small_vocab_add(&vocab, "abs", PITH_TOKEN_UNUSED, -1);
    small_vocab_add(&vocab, "absabs", PITH_TOKEN_UNUSED, -2);
    small_vocab_add(&vocab, "absabsab", PITH_TOKEN_NORMAL, -3);
    pith_tokenizer *tokenizer = make();
    expect(tokenizer, "abs", false, false, "|ab|s");
    expect(tokenizer, "absabs", false, false, "|ab|s|ab|s");
    expect(tokenizer, "absabsab", false, false, "|absabsab");
    pith_tokenizer_free(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentencepiece_merges_by_score),
        cmocka_unit_test(a_space_goes_in_front_of_a_text_and_behind_special_tokens),
        cmocka_unit_test(unknown_characters_become_bytes),
        cmocka_unit_test(unused_tokens_are_taken_apart_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
