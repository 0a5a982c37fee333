/* SPDX-License-Identifier: Apache-2.0
 * Promises: Unigram finds the cut with the highest sum, compared with trying all; the character map
 * and the spaces come first. */
#include "token_expect.h"

/* Highest sum over all cuts, by trying all. Characters are single bytes. */
static double plain_best(const char *text, size_t size, double unknown) {
    double best[256] = {0};
    for (size_t to = 1; to <= size; to++) {
        best[to] = best[to - 1] + unknown;
        bool single = plain_find(text + to - 1, 1) >= 0;
        if (single) best[to] = -1e30;
        for (size_t from = 0; from < to; from++) {
            int32_t id = plain_find(text + from, to - from);
            double sum = id < 0 ? -1e30 : best[from] + (double)vocab.scores[id];
            if (sum > best[to]) best[to] = sum;
        }
    }
    return best[size];
}

static void unigram_finds_the_highest_sum(void **state) {
    (void)state;
    const uint64_t seed = 63;
    pith_rng rng;
    pith_ids ids = {0};
    pith_rng_init(&rng, seed);
    for (int round = 0; round < 30; round++) {
        small_vocab_init(&vocab, PITH_TOKEN_MODEL_UGM, "");
        vocab.source.add_space_prefix = vocab.source.add_eos = 0;
        small_vocab_add(&vocab, "a", PITH_TOKEN_NORMAL, -3);
        small_vocab_add(&vocab, "b", PITH_TOKEN_NORMAL, -4);
        if (round % 2) small_vocab_add(&vocab, "c", PITH_TOKEN_NORMAL, -5);
        add_random_tokens(&rng, 30, true);
        float lowest = 0;
        for (uint32_t i = 0; i < vocab.source.n_tokens; i++)
            if (vocab.scores[i] < lowest || !i) lowest = vocab.scores[i];
        int32_t unknown = vocab.source.unknown =
            small_vocab_add(&vocab, "<unk>", PITH_TOKEN_UNKNOWN, 0);
        pith_tokenizer *tokenizer = make();
        for (int k = 0; k < 30; k++) {
            char text[120];
            size_t size = 1 + below(&rng, 119), covered = 0;
            for (size_t i = 0; i < size; i++) text[i] = "abcd"[below(&rng, 4)];
            encode(tokenizer, (pith_span){text, size}, false, false, &ids);
            double sum = 0;
            for (size_t i = 0; i < ids.size; i++) {
                bool is_unknown = ids.data[i] == unknown;
                if (is_unknown && i) assert_int_not_equal(ids.data[i - 1], unknown);
                if (is_unknown) continue;
                covered += vocab.texts[ids.data[i]].size;
                sum += (double)vocab.scores[ids.data[i]];
            }
            sum += (double)(size - covered) * ((double)lowest - 10);
            double best = plain_best(text, size, (double)lowest - 10);
            if (sum < best - 1e-6 || sum > best + 1e-6)
                fail_msg("sum %g, best %g, text %.*s, seed %llu", sum, best, (int)size, text,
                         (unsigned long long)seed);
        }
        pith_tokenizer_free(tokenizer);
    }
    pith_ids_deinit(&ids);
}

static void put_u32(pith_buffer *out, uint32_t value) {
    const char bytes[4] = {(char)value, (char)(value >> 8), (char)(value >> 16),
                           (char)(value >> 24)};
    pith_buffer_append(out, bytes, 4);
}

/* A character map with one entry: the byte `from` becomes `to`. Layout: formats page 6.6. */
static void make_charsmap(pith_buffer *out, unsigned char from, const char *to) {
    uint32_t nodes[0x400] = {0};
    nodes[0] = 0x100u << 10;
    nodes[0x100 ^ from] = (0x100u ^ from ^ 0x300u) << 10 | 1u << 8 | from;
    nodes[0x300] = 2; /* the replacement lies at offset 2 */
    put_u32(out, sizeof nodes);
    for (size_t i = 0; i < 0x400; i++) put_u32(out, nodes[i]);
    pith_buffer_append(out, "?", 2);
    pith_buffer_append(out, to, strlen(to) + 1);
}

static void unigram_normalises_first(void **state) {
    (void)state;
    pith_buffer map = {0};
    make_charsmap(&map, 'A', "a ");
    for (int merge = 0; merge < 2; merge++) {
        small_vocab_init(&vocab, PITH_TOKEN_MODEL_UGM, "");
        small_vocab_add(&vocab, "<pad>", PITH_TOKEN_CONTROL, 0);
        small_vocab_add(&vocab, "</s>", PITH_TOKEN_CONTROL, 0);
        small_vocab_add(&vocab, "<unk>", PITH_TOKEN_UNKNOWN, 0);
        static const char *const texts[] = {"a", "b", "\xE2\x96\x81"};
        for (size_t i = 0; i < 3; i++) small_vocab_add(&vocab, texts[i], PITH_TOKEN_NORMAL, -1);
        small_vocab_add(&vocab, "never", PITH_TOKEN_UNUSED, 5);
        vocab.source.charsmap = (pith_span){map.data, map.size};
        vocab.source.remove_extra_whitespaces = (int8_t)merge;
        pith_tokenizer *tokenizer = make();
        expect(
            tokenizer, "bA  b ", false, true,
            merge ? "|\xE2\x96\x81|b|a|\xE2\x96\x81|b|</s>"
                  : "|\xE2\x96\x81|b|a|\xE2\x96\x81|\xE2\x96\x81|\xE2\x96\x81|b|\xE2\x96\x81|</s>");
        expect(tokenizer, "never", false, false, "|\xE2\x96\x81|<unk>");
        pith_tokenizer_free(tokenizer);
    }
    for (size_t size = 1; size < map.size; size += 97) { /* cut short: refused, or harmless */
        vocab.source.charsmap = (pith_span){map.data, size};
        pith_tokenizer *tokenizer = NULL;
        pith_status status = pith_tokenizer_new(&vocab.source, &tokenizer, NULL);
        assert_true(status == PITH_OK || status == PITH_ERROR_FORMAT);
        if (tokenizer) expect(tokenizer, "b", false, false, "|\xE2\x96\x81|b");
        pith_tokenizer_free(tokenizer);
    }
    pith_buffer_deinit(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unigram_finds_the_highest_sum),
        cmocka_unit_test(unigram_normalises_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
