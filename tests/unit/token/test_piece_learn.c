/* SPDX-License-Identifier: Apache-2.0
 * Promises: new pieces that are encoded together, merging abreast, give the ids that each gives
 * alone, in their places: among known, long and repeated pieces, for every order of merging. */
#include "token/piece_learn.h"
#include "token_expect.h"

enum { N_WORDS = 3 * PITH_BATCH_PIECES, MOST_BYTES = 20 };

struct words {
    char text[N_WORDS * (MOST_BYTES + 1)];
    size_t ends[N_WORDS];
};

/* Words of few letters, each with the space in front of it: some long, some again and again. */
static void write_words(struct words *words, pith_rng *rng) {
    size_t at = 0;
    for (size_t i = 0; i < N_WORDS; i++) {
        size_t from = at, again = i ? below(rng, i) : 0;
        if (i && !below(rng, 4)) { /* one of before */
            size_t start = again ? words->ends[again - 1] : 0, size = words->ends[again] - start;
            memmove(words->text + at, words->text + start, size);
            at += size;
        } else {
            words->text[at++] = ' ';
            size_t letters = 1 + below(rng, below(rng, 8) ? 14 : MOST_BYTES);
            while (at - from < letters + 1) words->text[at++] = "aaabbc"[below(rng, 6)];
        }
        words->ends[i] = at;
    }
}

/* By a tokenizer that knows nothing yet. */
static void append_alone(pith_span piece, pith_ids *ids) {
    pith_tokenizer *tokenizer = make();
    pith_text_span span = {piece, false};
    assert_int_equal(pith_tokenizer_encode(tokenizer, &span, 1, false, ids, NULL), PITH_OK);
    pith_tokenizer_free(tokenizer);
}

static void together_as_alone(const char *pre, bool merges, uint64_t seed) {
    static struct words words;
    pith_rng rng;
    pith_ids got = {0}, expected = {0};
    pith_rng_init(&rng, seed);
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, pre);
    small_vocab_add_mapped_bytes(&vocab);
    add_random_tokens(&rng, 60, false);
    if (!merges) vocab.source.n_merges = 0;
    write_words(&words, &rng);
    for (size_t i = 0, at = 0; i < N_WORDS; at = words.ends[i++])
        append_alone((pith_span){words.text + at, words.ends[i] - at}, &expected);
    pith_span all = {words.text, words.ends[N_WORDS - 1]};
    pith_tokenizer *tokenizer = make();
    for (int round = 0; round < 2; round++) {
        encode(tokenizer, all, false, false, &got);
        assert_same_ids(&got, &expected, (pith_span){words.text, 60}, seed);
    }
    pith_tokenizer_free(tokenizer);
    pith_ids_deinit(&got);
    pith_ids_deinit(&expected);
}

static void new_pieces_together_give_what_each_gives_alone(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        together_as_alone("gpt-2", true, seed);
        together_as_alone("llama-bpe", true, seed); /* whole tokens need no merging */
        together_as_alone("gpt-2", false, seed);    /* the lower id merges first */
    }
}

/* Lengths round the border of short pieces, and ids that the vocabulary lacks. */
static void short_pieces_of_every_length_keep_their_place(void **state) {
    (void)state;
    small_vocab_init(&vocab, PITH_TOKEN_MODEL_BPE, "gpt-2");
    small_vocab_add(&vocab, "a", PITH_TOKEN_NORMAL, 0);
    small_vocab_add(&vocab, "\xC4\xA0", PITH_TOKEN_NORMAL, 0); /* the space */
    small_vocab_merge(&vocab, "a b");                          /* no token */
    small_vocab_merge(&vocab, "a a");
    small_vocab_add(&vocab, "aa", PITH_TOKEN_NORMAL, 0);
    pith_tokenizer *tokenizer = make();
    for (size_t size = 1; size <= PITH_MEMO_PIECE_BYTES + 2; size++) {
        char text[64] = "", expected[256] = "";
        for (size_t i = 0; i < size; i++) strcat(text, "a");
        for (size_t i = 0; i < size / 2; i++) strcat(expected, "|aa");
        if (size % 2) strcat(expected, "|a");
        strcat(text, " ab b");
        strcat(expected, "|\xC4\xA0|a|\xC4\xA0");
        expect(tokenizer, text, false, false, expected);
        expect(tokenizer, text, false, false, expected);
    }
    pith_tokenizer_free(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_pieces_together_give_what_each_gives_alone),
        cmocka_unit_test(short_pieces_of_every_length_keep_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
