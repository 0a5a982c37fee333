/* SPDX-License-Identifier: Apache-2.0
 * Promises: special tokens, BOS and EOS follow the formats page 6.2, 6.5 and 6.7; no text of a user
 * becomes a control token. */
#include "token_expect.h"

static void special_tokens_are_found_in_text(void **state) {
    (void)state;
    add_special_basics("gpt-2");
    pith_tokenizer *tokenizer = make();
    expect(tokenizer, "x<s>y", true, false, "|x|<s>|y");
    expect(tokenizer, "x<s>y", false, false, "|x|<|s|>|y");
    expect(tokenizer, "<s><e><s>", true, false, "|<s><e>|<s>"); /* the longest */
    expect(tokenizer, "x<tool>b", false, false,
           "|x|<tool>|b"); /* user-defined always; leftmost first */
    expect(tokenizer, "xa bx", false, false, "|x|a b|x");
    expect(tokenizer, "<tool", true, false, "|<|t|o|o|l");
    pith_tokenizer_free(tokenizer);
}

static void bos_and_eos_go_round_the_text_once(void **state) {
    (void)state;
    for (int8_t flags = 0; flags < 4; flags++) {
        add_special_basics("gpt-2");
        vocab.source.add_bos = flags & 1;
        vocab.source.add_eos = flags >> 1;
        pith_tokenizer *tokenizer = make();
        const char *const plain[] = {"|x", "|<s>|x", "|x|<e>", "|<s>|x|<e>"};
        expect(tokenizer, "x", false, true, plain[flags]);
        expect(tokenizer, "x", false, false, "|x");
        expect(tokenizer, "<s>x<e>", true, true, "|<s>|x|<e>"); /* not doubled */
        assert_int_equal(pith_tokenizer_adds_bos(tokenizer), flags & 1);
        assert_int_equal(pith_tokenizer_adds_eos(tokenizer), flags >> 1);
        pith_tokenizer_free(tokenizer);
    }
    add_special_basics("gpt-2"); /* keys absent: what the pre-tokenizer's name implies */
    pith_tokenizer *tokenizer = make();
    expect(tokenizer, "x", false, true, "|x");
    pith_tokenizer_free(tokenizer);
    add_special_basics("llama-bpe");
    tokenizer = make();
    expect(tokenizer, "x", false, true, "|<s>|x");
    /* appending to ids that are there: only the new ones count */
    pith_ids ids = {0};
    pith_text_span span = {pith_span_of("x"), false};
    assert_true(pith_ids_append(&ids, vocab.source.bos));
    assert_int_equal(pith_tokenizer_encode(tokenizer, &span, 1, true, &ids, NULL), PITH_OK);
    assert_int_equal(ids.size, 3);
    assert_int_equal(ids.data[1], vocab.source.bos);
    pith_ids_deinit(&ids);
    pith_tokenizer_free(tokenizer);
}

static void some_special_tokens_take_white_space_along(void **state) {
    (void)state;
    add_special_basics("gpt-2");
    vocab.source.model_name = pith_span_of("My Phi-3 mini");
    pith_tokenizer *tokenizer = make();
    expect(tokenizer, "<e> \n x", true, false, "|<e>|x");
    expect(tokenizer, "<s> x", true, false, "|<s>|\xC4\xA0|x"); /* <s> is an exception */
    pith_tokenizer_free(tokenizer);
    add_special_basics("jina-v2-de");
    small_vocab_add(&vocab, "<mask>", PITH_TOKEN_CONTROL, 0);
    tokenizer = make();
    expect(tokenizer, "x \t<mask> x", true, false, "|x|<mask>|\xC4\xA0|x");
    pith_tokenizer_free(tokenizer);
}

static void ends_of_a_generation_are_known(void **state) {
    (void)state;
    add_special_basics("gpt-2");
    int32_t turn = small_vocab_add(&vocab, "<|im_end|>", PITH_TOKEN_NORMAL, 0);
    int32_t eom = small_vocab_add(&vocab, "<|eom_id|>", PITH_TOKEN_CONTROL, 0);
    int32_t end = small_vocab_add(&vocab, "<|end|>", PITH_TOKEN_CONTROL, 0);
    int32_t pad = small_vocab_add(&vocab, "<|fim_pad|>", PITH_TOKEN_CONTROL, 0);
    pith_tokenizer *tokenizer = make();
    assert_int_equal(pith_tokenizer_special(tokenizer, PITH_SPECIAL_EOT), turn);
    assert_int_equal(pith_tokenizer_type(tokenizer, turn), PITH_TOKEN_CONTROL);
    const int32_t ends[] = {turn, eom, end, pad, vocab.source.eos};
    for (size_t i = 0; i < 5; i++) assert_true(pith_tokenizer_is_end(tokenizer, ends[i]));
    assert_false(pith_tokenizer_is_end(tokenizer, vocab.source.bos));
    assert_false(pith_tokenizer_is_end(tokenizer, -1));
    assert_false(pith_tokenizer_is_end(tokenizer, 1 << 30));
    pith_tokenizer_free(tokenizer);
    /* the harmony format: <|end|> ends a message, not the reply, and is shown */
    int32_t channel = small_vocab_add(&vocab, "<|channel|>", PITH_TOKEN_CONTROL, 0);
    int32_t back = small_vocab_add(&vocab, "<|return|>", PITH_TOKEN_CONTROL, 0);
    small_vocab_add(&vocab, "<|call|>", PITH_TOKEN_CONTROL, 0);
    tokenizer = make();
    assert_false(pith_tokenizer_is_end(tokenizer, end));
    assert_true(pith_tokenizer_is_end(tokenizer, back));
    assert_true(pith_span_is(pith_tokenizer_bytes(tokenizer, end), "<|end|>"));
    assert_true(pith_span_is(pith_tokenizer_bytes(tokenizer, channel), "<|channel|>"));
    assert_int_equal(pith_tokenizer_bytes(tokenizer, back).size, 0);
    pith_ids ids = {0}; /* yet no user can write one */
    encode(tokenizer, pith_span_of("<|channel|>"), false, false, &ids);
    for (size_t i = 0; i < ids.size; i++) assert_int_not_equal(ids.data[i], channel);
    pith_ids_deinit(&ids);
    pith_tokenizer_free(tokenizer);
}

static void ids_outside_the_vocabulary_are_dropped_with_a_note(void **state) {
    (void)state;
    add_special_basics("gpt-2");
    vocab.source.eos = (int32_t)vocab.source.n_tokens;
    vocab.source.padding = (int32_t)vocab.source.n_tokens - 1;
    pith_tokenizer *tokenizer = make();
    assert_int_equal(pith_tokenizer_special(tokenizer, PITH_SPECIAL_EOS), -1);
    assert_int_equal(pith_tokenizer_special(tokenizer, PITH_SPECIAL_PAD),
                     (int32_t)vocab.source.n_tokens - 1);
    assert_non_null(strstr(pith_tokenizer_notes(tokenizer), "eos_token_id"));
    pith_tokenizer_free(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_tokens_are_found_in_text),
        cmocka_unit_test(bos_and_eos_go_round_the_text_once),
        cmocka_unit_test(some_special_tokens_take_white_space_along),
        cmocka_unit_test(ends_of_a_generation_are_known),
        cmocka_unit_test(ids_outside_the_vocabulary_are_dropped_with_a_note),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
