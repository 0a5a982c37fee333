/* SPDX-License-Identifier: Apache-2.0
 * Promise: work grows no faster than n log n, whatever the text. Counted, not timed. */
#include "support/brief.h"
#include "token_expect.h"

static uint64_t steps_of(const pith_tokenizer *tokenizer, const char *unit, size_t size) {
    char *text = malloc(size);
    pith_ids ids = {0};
    uint64_t steps = 0;
    for (size_t i = 0; i < size; i++) text[i] = unit[i % strlen(unit)];
    pith_text_span span = {{text, size}, true};
    assert_int_equal(pith_tokenizer_encode_counted(tokenizer, &span, 1, true, &ids, &steps, NULL),
                     0);
    pith_ids_deinit(&ids);
    free(text);
    return steps;
}

/* One megabyte of one character, and of texts written against merging: steps per byte stay below a
 * small multiple of log2(n) = 20, and double the text at most doubles and a bit. */
static void work_grows_no_faster_than_n_log_n(void **state) {
    (void)state;
    static const char *const units[] = {
        "a",    " ",        "\n",   "ab", "aab", "1",           "'", "\xE4\xB8\xAD",
        "\xFF", "\xCC\x81", "<too", "a ", "A",   "\xE2\x96\x81"};
    static const struct {
        pith_token_model model;
        const char *pre;
    } kinds[] = {{PITH_TOKEN_MODEL_BPE, "gpt-2"},  {PITH_TOKEN_MODEL_BPE, "default"},
                 {PITH_TOKEN_MODEL_BPE, "qwen2"},  {PITH_TOKEN_MODEL_BPE, "superbpe"},
                 {PITH_TOKEN_MODEL_BPE, "gemma4"}, {PITH_TOKEN_MODEL_BPE, "exaone-moe"},
                 {PITH_TOKEN_MODEL_SPM, ""},       {PITH_TOKEN_MODEL_WPM, ""},
                 {PITH_TOKEN_MODEL_UGM, ""}};
    const size_t size = test_is_brief() ? 1 << 14 : 1 << 17;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        small_vocab_init(&vocab, kinds[k].model, kinds[k].pre);
        small_vocab_add_mapped_bytes(&vocab);
        char text[64] = "a", merge[64], joined[64];
        for (size_t i = 0; i < 5; i++) { /* aa, aaaa, ... */
            snprintf(merge, sizeof merge, "%.30s %.30s", text, text);
            snprintf(joined, sizeof joined, "%.30s%.30s", text, text);
            memcpy(text, joined, sizeof text);
            small_vocab_merge(&vocab, merge);
            small_vocab_add(&vocab, text, PITH_TOKEN_NORMAL, -(float)i);
        }
        small_vocab_merge(&vocab, "a b");
        small_vocab_add(&vocab, "ab", PITH_TOKEN_NORMAL, -9);
        small_vocab_add(&vocab, "<tool>", PITH_TOKEN_USER_DEFINED, 0);
        pith_tokenizer *tokenizer = make();
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            uint64_t once = steps_of(tokenizer, units[u], size);
            uint64_t twice = steps_of(tokenizer, units[u], 2 * size);
            if (once > size * 60 || twice > once * 9 / 4 + 4096)
                fail_msg("model %d %s, text of \"%s\": %llu steps for %zu bytes, %llu for twice",
                         (int)kinds[k].model, kinds[k].pre, units[u], (unsigned long long)once,
                         size, (unsigned long long)twice);
        }
        pith_tokenizer_free(tokenizer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_grows_no_faster_than_n_log_n),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
