/* SPDX-License-Identifier: Apache-2.0
 * Promises: WordPiece cleans, lower-cases and cuts as BERT does. */
#include "token_expect.h"

static void add_bert_basics(void) {
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_WPM, "");
    vocab.source.bos = small_vocab_add(&vocab, "[CLS]", PITH_TOKEN_CONTROL, 0);
    vocab.source.separator = small_vocab_add(&vocab, "[SEP]", PITH_TOKEN_CONTROL, 0);
    vocab.source.unknown = small_vocab_add(&vocab, "[UNK]", PITH_TOKEN_CONTROL, 0);
    static const char *const texts[] = {"play", "ing",
                                        "er",   "$",
                                        "'",    "\xE4\xB8\xAD",
                                        "cafe", "s",
                                        "A",    "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB",
                                        "x"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char head[32];
        snprintf(head, sizeof head, "\xE2\x96\x81%s", texts[i]);
        small_vocab_add(&vocab, head, PITH_TOKEN_NORMAL, 0);
        small_vocab_add(&vocab, texts[i], PITH_TOKEN_NORMAL, 0);
    }
}

static void words_are_cut_from_the_left(void **state) {
    (void)state;
    add_bert_basics();
    pith_tokenizer *tokenizer = make();
    expect(tokenizer, "Playing  PLAYER", false, true,
           "|[CLS]|\xE2\x96\x81play|ing|\xE2\x96\x81play|er|[SEP]");
    expect(tokenizer, "play$ing plays's", false, false,
           "|\xE2\x96\x81play|\xE2\x96\x81$|\xE2\x96\x81ing|\xE2\x96\x81play|s|\xE2\x96\x81'|"
           "\xE2\x96\x81s");
    expect(tokenizer, "playz play", false, false, "|[UNK]|\xE2\x96\x81play");
    expect(tokenizer, "x\xE4\xB8\xADx", false, false,
           "|\xE2\x96\x81x|\xE2\x96\x81\xE4\xB8\xAD|\xE2\x96\x81x");
    expect(tokenizer, "caf\xC3\xA9 cafe\xCC\x81", false, false,
           "|\xE2\x96\x81"
           "cafe|\xE2\x96\x81"
           "cafe");
    /* Hangul is decomposed; control characters, ill-formed bytes and U+FFFD vanish */
    expect(tokenizer, "\xED\x95\x9C", false, false,
           "|\xE2\x96\x81\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB");
    expect(tokenizer,
           "pl\x01"
           "a\xFF\xEF\xBF\xBDy",
           false, false, "|\xE2\x96\x81play");
    pith_tokenizer_free(tokenizer);
}

static void case_and_accents_stay_where_the_file_says_so(void **state) {
    (void)state;
    add_bert_basics();
    vocab.source.lowercase = 0;
    pith_tokenizer *tokenizer = make();
    expect(tokenizer, "A a", false, false,
           "|\xE2\x96\x81"
           "A|[UNK]");
    expect(tokenizer, "caf\xC3\xA9", false, false, "|[UNK]");
    pith_tokenizer_free(tokenizer);
}

static void a_word_has_at_most_100_characters(void **state) {
    (void)state;
    add_bert_basics();
    pith_tokenizer *tokenizer = make();
    pith_ids ids = {0};
    char text[102];
    memset(text, 'x', sizeof text);
    encode(tokenizer, (pith_span){text, 100}, false, false, &ids);
    assert_int_equal(ids.size, 100);
    encode(tokenizer, (pith_span){text, 101}, false, false, &ids);
    assert_int_equal(ids.size, 1);
    assert_int_equal(ids.data[0], 2);
    pith_ids_deinit(&ids);
    pith_tokenizer_free(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_cut_from_the_left),
        cmocka_unit_test(case_and_accents_stay_where_the_file_says_so),
        cmocka_unit_test(a_word_has_at_most_100_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
