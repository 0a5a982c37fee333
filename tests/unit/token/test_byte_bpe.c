/* SPDX-License-Identifier: Apache-2.0
 * Promises: byte-level BPE merges as its list says, compared with a plain program; its raw kin, and
 * what the pre-tokenizer names imply beyond their patterns. */
#include "token_expect.h"

static void byte_level_merges_as_listed(void **state) {
    (void)state;
    const uint64_t seed = 61;
    pith_rng rng;
    pith_ids got = {0}, expected = {0};
    pith_rng_init(&rng, seed);
    for (int round = 0; round < 30; round++) {
        small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, "gpt-2");
        small_vocab_add_mapped_bytes(&vocab);
        add_random_tokens(&rng, 60, false);
        pith_tokenizer *tokenizer = make();
        for (int k = 0; k < 40;
             k++) { /* one piece; with 48 symbols the other way of merging begins */
            char text[200];
            size_t size = 1 + below(&rng, k % 2 ? 12 : 199);
            for (size_t i = 0; i < size; i++) text[i] = "aaabbc"[below(&rng, 6)];
            pith_span piece = {text, size};
            expected.size = 0;
            plain_merge(piece, false, &expected);
            for (int twice = 0; twice < 2; twice++) { /* the second time from memory */
                encode(tokenizer, piece, false, false, &got);
                assert_same_ids(&got, &expected, piece, seed);
            }
        }
        pith_tokenizer_free(tokenizer);
    }
    pith_ids_deinit(&got);
    pith_ids_deinit(&expected);
}

static void both_ways_of_merging_agree_at_their_border(void **state) {
    (void)state;
    pith_ids got = {0}, expected = {0};
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, "gpt-2");
    small_vocab_add_mapped_bytes(&vocab);
    small_vocab_add(&vocab, "aa", PITH_TOKEN_NORMAL, 0);
    small_vocab_merge(&vocab, "a a");
    small_vocab_add(&vocab, "aaa", PITH_TOKEN_NORMAL, 0);
    small_vocab_merge(&vocab, "aa a");
    pith_tokenizer *tokenizer = make();
    char text[60];
    memset(text, 'a', sizeof text);
    for (size_t size = 45; size <= 52; size++) {
        pith_span piece = {text, size};
        expected.size = 0;
        plain_merge(piece, false, &expected);
        encode(tokenizer, piece, false, false, &got);
        assert_same_ids(&got, &expected, piece, 0);
    }
    pith_tokenizer_free(tokenizer);
    pith_ids_deinit(&got);
    pith_ids_deinit(&expected);
}

/* Merges whose parts or results are no tokens still happen; what is left over is given as bytes. */
static void merges_go_through_parts_that_are_no_tokens(void **state) {
    (void)state;
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, "gpt-2");
    small_vocab_add_mapped_bytes(&vocab);
    small_vocab_merge(&vocab, "a b");
    small_vocab_merge(&vocab, "ab c");
    small_vocab_add(&vocab, "abc", PITH_TOKEN_NORMAL, 0);
    pith_tokenizer *tokenizer = make();
    expect(tokenizer, "abcab", false, false, "|abc|a|b");
    pith_tokenizer_free(tokenizer);
}

static void whole_pieces_need_no_merging_where_the_model_says_so(void **state) {
    (void)state;
    for (int ignore = 0; ignore < 2; ignore++) {
        small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, ignore ? "llama-bpe" : "smaug-bpe");
        small_vocab_add_mapped_bytes(&vocab);
        small_vocab_add(&vocab, "word", PITH_TOKEN_NORMAL, 0);
        small_vocab_add(&vocab, "secret", PITH_TOKEN_CONTROL, 0);
        small_vocab_merge(&vocab, "o r");
        small_vocab_add(&vocab, "or", PITH_TOKEN_NORMAL, 0);
        pith_tokenizer *tokenizer = make();
        expect(tokenizer, "word", false, false, ignore ? "|word" : "|w|or|d");
        expect(tokenizer, "word", false, false, ignore ? "|word" : "|w|or|d");
        expect(tokenizer, "secret", false, false, "|s|e|c|r|e|t");
        pith_tokenizer_free(tokenizer);
    }
}

static void without_merges_the_lower_id_goes_first(void **state) {
    (void)state;
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, "kimi-k2");
    small_vocab_add_mapped_bytes(&vocab);
    small_vocab_add(&vocab, "bc", PITH_TOKEN_NORMAL, 0);
    small_vocab_add(&vocab, "ab", PITH_TOKEN_NORMAL, 0);
    small_vocab_add(&vocab, "abc", PITH_TOKEN_NORMAL, 0);
    pith_tokenizer *tokenizer = make();
    expect(tokenizer, "abc", false, false, "|abc");
    expect(tokenizer, "abca", false, false, "|abc|a");
    expect(tokenizer, "abb", false, false, "|ab|b");
    pith_tokenizer_free(tokenizer);
}

static void a_byte_without_a_token_is_left_out_or_unknown(void **state) {
    (void)state;
    for (int with = 0; with < 2; with++) {
        small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, "gpt-2");
        small_vocab_add(&vocab, "a", PITH_TOKEN_NORMAL, 0);
        int32_t unknown = small_vocab_add(&vocab, "<unk>", PITH_TOKEN_UNKNOWN, 0);
        if (with) vocab.source.unknown = unknown;
        pith_tokenizer *tokenizer = make();
        expect(tokenizer, "abba", false, false, with ? "|a|<unk>|<unk>|a" : "|a|a");
        pith_tokenizer_free(tokenizer);
    }
}

static void an_end_token_never_stands_for_unknown_bytes(void **state) {
    (void)state;
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, "gpt-2");
    small_vocab_add(&vocab, "a", PITH_TOKEN_NORMAL, 0);
    vocab.source.eos = vocab.source.unknown =
        small_vocab_add(&vocab, "<|endoftext|>", PITH_TOKEN_CONTROL, 0);
    pith_tokenizer *tokenizer = make();
    expect(tokenizer, "abba", false, false, "|a|a");
    assert_int_equal(pith_tokenizer_special(tokenizer, PITH_SPECIAL_UNKNOWN), vocab.source.unknown);
    pith_tokenizer_free(tokenizer);
}

/* What GGUF does not carry: Qwen's tokenizer normalises to NFC, GPT-2's does not. */
static void text_is_composed_where_the_model_does_it(void **state) {
    (void)state;
    for (int nfc = 0; nfc < 2; nfc++) {
        small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, nfc ? "qwen2" : "gpt-2");
        small_vocab_add_mapped_bytes(&vocab);
        pith_tokenizer *tokenizer = make();
        expect(tokenizer, "xe\xCC\x81", false, false,
               nfc ? "|x|\xC3\x83|\xC2\xA9" : "|x|e|\xC3\x8C|\xC4\xA3");
        /* Hangul from its letters; ill-formed bytes stay; marks come into order and compose */
        expect(tokenizer, "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB\xFF", false, false,
               nfc ? "|\xC3\xAD|\xC4\xB7|\xC4\xBE|\xC3\xBF"
                   : "|\xC3\xA1|\xC4\xA6|\xC4\xB4|\xC3\xA1|\xC4\xA7|\xC2\xA1|\xC3\xA1|\xC4\xA8|"
                     "\xC2\xAB|\xC3\xBF");
        pith_tokenizer_free(tokenizer);
    }
}

static void raw_text_is_merged_by_characters(void **state) {
    (void)state;
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, "gemma4");
    small_vocab_add_byte_tokens(&vocab);
    static const char *const texts[] = {"a",
                                        "b",
                                        "\xE2\x96\x81",
                                        "\xE2\x96\x81"
                                        "a",
                                        "\n",
                                        "\n\n",
                                        "\xE4\xB8\xAD",
                                        "\xE4\xB8\xAD\xE2\x96\x81"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        small_vocab_add(&vocab, texts[i], PITH_TOKEN_NORMAL, 0);
    small_vocab_merge(&vocab, "\xE2\x96\x81 a");
    small_vocab_merge(&vocab, "\n \n");
    small_vocab_merge(&vocab, "\xE4\xB8\xAD \xE2\x96\x81");
    pith_tokenizer *tokenizer = make();
    expect(tokenizer, "b a\n\nx\xE4\xB8\xAD ", false, false,
           "|b|\xE2\x96\x81"
           "a|\n\n|<0x78>|\xE4\xB8\xAD\xE2\x96\x81");
    expect(tokenizer, "<0x41>", false, false, "|<0x3C>|<0x30>|<0x78>|<0x34>|<0x31>|<0x3E>");
    pith_tokenizer_free(tokenizer);
}

static void words_are_looked_up_whole(void **state) {
    (void)state;
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, "whitespace");
    vocab.source.unknown = small_vocab_add(&vocab, "<unk>", PITH_TOKEN_UNKNOWN, 0);
    small_vocab_add(&vocab, "one", PITH_TOKEN_NORMAL, 0);
    small_vocab_add(&vocab, "two", PITH_TOKEN_NORMAL, 0);
    pith_tokenizer *tokenizer = make();
    expect(tokenizer, "one  two\ntwone two", false, false, "|one|two|<unk>|two");
    pith_tokenizer_free(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_level_merges_as_listed),
        cmocka_unit_test(both_ways_of_merging_agree_at_their_border),
        cmocka_unit_test(merges_go_through_parts_that_are_no_tokens),
        cmocka_unit_test(whole_pieces_need_no_merging_where_the_model_says_so),
        cmocka_unit_test(without_merges_the_lower_id_goes_first),
        cmocka_unit_test(a_byte_without_a_token_is_left_out_or_unknown),
        cmocka_unit_test(an_end_token_never_stands_for_unknown_bytes),
        cmocka_unit_test(text_is_composed_where_the_model_does_it),
        cmocka_unit_test(raw_text_is_merged_by_characters),
        cmocka_unit_test(words_are_looked_up_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
