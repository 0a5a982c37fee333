/* SPDX-License-Identifier: Apache-2.0
 * Promises: a vocabulary's keys are read with their types and lengths checked, defaults hold where they
 * are absent, and what pith does not know is refused by its name. */
#include "base/memory.h"
#include "model/vocab.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants the two above first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_TOKENS = 4 };
static const int32_t types[N_TOKENS] = {3, 3, 1, 1};

/* What a test changes in an else good file. */
struct file {
    const char *model, *pre;
    size_t n_types, n_scores;
    pith_gguf_kind charsmap;                   /* PITH_GGUF_ARRAY: none */
    const char *u32_key, *bool_key, *text_key; /* one more key each, or NULL */
    uint32_t u32;
    bool flag;
    bool merges_are_numbers, no_tokens;
    int32_t first_type;
};

static struct file good_file(const char *model) {
    return (struct file){
        .model = model, .n_types = N_TOKENS, .charsmap = PITH_GGUF_ARRAY, .first_type = 3};
}

static void write_file(const char *path, const struct file *file) {
    pith_gguf_writer *w = NULL;
    const pith_span tokens[N_TOKENS] = {pith_span_of("<s>"), pith_span_of("<e>"), pith_span_of("a"),
                                        pith_span_of("b")};
    const pith_span merges[] = {pith_span_of("a b")};
    const float scores[N_TOKENS + 1] = {0};
    const uint32_t numbers[1] = {1};
    int32_t own_types[N_TOKENS + 1] = {0};
    memcpy(own_types, types, sizeof types);
    own_types[0] = file->first_type;
    pith_error error = {0};
    if (pith_gguf_writer_new(path, 3, 32, &w, &error)) fail_msg("%s", error.text);
    pith_gguf_write_string(w, "general.architecture", "llama", NULL);
    if (file->model) pith_gguf_write_string(w, "tokenizer.ggml.model", file->model, NULL);
    if (file->pre) pith_gguf_write_string(w, "tokenizer.ggml.pre", file->pre, NULL);
    if (!file->no_tokens)
        pith_gguf_write_strings(w, "tokenizer.ggml.tokens", tokens, N_TOKENS, NULL);
    if (file->n_types)
        pith_gguf_write_array(w, "tokenizer.ggml.token_type", PITH_GGUF_I32, own_types,
                              file->n_types, NULL);
    if (file->n_scores)
        pith_gguf_write_array(w, "tokenizer.ggml.scores", PITH_GGUF_F32, scores, file->n_scores,
                              NULL);
    if (file->merges_are_numbers)
        pith_gguf_write_array(w, "tokenizer.ggml.merges", PITH_GGUF_U32, numbers, 1, NULL);
    else
        pith_gguf_write_strings(w, "tokenizer.ggml.merges", merges, 1, NULL);
    if (file->charsmap != PITH_GGUF_ARRAY)
        pith_gguf_write_array(w, "tokenizer.ggml.precompiled_charsmap", file->charsmap, numbers,
                              file->charsmap == PITH_GGUF_U32 ? 1 : 4, NULL);
    if (file->u32_key) pith_gguf_write_u32(w, file->u32_key, file->u32, NULL);
    if (file->bool_key) pith_gguf_write_bool(w, file->bool_key, file->flag, NULL);
    if (file->text_key) pith_gguf_write_string(w, file->text_key, "yes", NULL);
    if (pith_gguf_writer_finish(w, &error)) fail_msg("%s", error.text);
    pith_gguf_writer_free(w);
}

static pith_status load(const struct file *file, bool force, pith_tokenizer **out,
                        pith_error *error) {
    const char *folder = getenv("PITH_BINARY_DIR");
    char path[1024];
    pith_gguf *gguf = NULL;
    snprintf(path, sizeof path, "%s/test_vocab.gguf", folder ? folder : ".");
    write_file(path, file);
    if (pith_gguf_open_path(path, &gguf, error)) fail_msg("%s", error->text);
    pith_status status = pith_vocab_load(gguf, force, out, error);
    pith_gguf_close(gguf);
    remove(path);
    return status;
}

static pith_tokenizer *loaded(const struct file *file, bool force) {
    pith_tokenizer *tokenizer = NULL;
    pith_error error = {0};
    if (load(file, force, &tokenizer, &error)) fail_msg("%s", error.text);
    return tokenizer;
}

static void refused(const struct file *file, pith_status status, const char *part) {
    pith_tokenizer *tokenizer = NULL;
    pith_error error = {0};
    assert_int_equal(load(file, false, &tokenizer, &error), status);
    assert_null(tokenizer);
    if (!strstr(error.text, part)) fail_msg("\"%s\" lacks \"%s\"", error.text, part);
}

static void every_kind_loads(void **state) {
    (void)state;
    static const char *const models[] = {"llama", "gpt2", "bert", "t5", "gemma4", "whitespace"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct file file = good_file(models[i]);
        pith_tokenizer *tokenizer = loaded(&file, false);
        assert_int_equal(pith_tokenizer_size(tokenizer), N_TOKENS);
        pith_tokenizer_free(tokenizer);
    }
    static const char *const none[] = {"none", "no_vocab", NULL};
    for (size_t i = 0; i < 3; i++) {
        struct file file = good_file(none[i]);
        pith_tokenizer *tokenizer = loaded(&file, false);
        assert_int_equal(pith_tokenizer_size(tokenizer), 0);
        pith_tokenizer_free(tokenizer);
    }
}

static void what_is_unknown_is_named(void **state) {
    (void)state;
    struct file file = good_file("rwkv");
    refused(&file, PITH_ERROR_UNSUPPORTED, "rwkv");
    file = good_file("gpt2");
    file.pre = "brand-new";
    refused(&file, PITH_ERROR_UNSUPPORTED, "brand-new");
    pith_tokenizer *tokenizer = loaded(&file, true);
    assert_non_null(strstr(pith_tokenizer_notes(tokenizer), "brand-new"));
    pith_tokenizer_free(tokenizer);
}

static void arrays_must_fit(void **state) {
    (void)state;
    struct file file = good_file("gpt2");
    file.n_types = N_TOKENS - 1;
    refused(&file, PITH_ERROR_FORMAT, "token_type");
    file.n_types = N_TOKENS + 1;
    refused(&file, PITH_ERROR_FORMAT, "token_type");
    file = good_file("llama");
    file.n_scores = N_TOKENS + 1;
    refused(&file, PITH_ERROR_FORMAT, "scores");
    file = good_file("gpt2");
    file.merges_are_numbers = true;
    refused(&file, PITH_ERROR_FORMAT, "merges");
    file = good_file("gpt2");
    file.no_tokens = true;
    refused(&file, PITH_ERROR_FORMAT, "tokens");
    file = good_file("gpt2");
    file.first_type = 7;
    refused(&file, PITH_ERROR_FORMAT, "type 7");
    file = good_file("t5");
    file.charsmap = PITH_GGUF_U32;
    refused(&file, PITH_ERROR_FORMAT, "precompiled_charsmap");
    file.charsmap = PITH_GGUF_U8; /* right kind, broken contents */
    refused(&file, PITH_ERROR_FORMAT, "precompiled_charsmap");
}

static void keys_have_types(void **state) {
    (void)state;
    struct file file = good_file("gpt2");
    file.text_key = "tokenizer.ggml.bos_token_id";
    refused(&file, PITH_ERROR_FORMAT, "bos_token_id");
    file.text_key = "tokenizer.ggml.add_bos_token";
    refused(&file, PITH_ERROR_FORMAT, "add_bos_token");
}

static void ids_and_flags_reach_the_tokenizer(void **state) {
    (void)state;
    struct file file = good_file("gpt2");
    file.u32_key = "tokenizer.ggml.bos_token_id";
    file.bool_key = "tokenizer.ggml.add_bos_token";
    file.flag = true;
    pith_tokenizer *tokenizer = loaded(&file, false);
    assert_int_equal(pith_tokenizer_special(tokenizer, PITH_SPECIAL_BOS), 0);
    assert_true(pith_tokenizer_adds_bos(tokenizer));
    pith_tokenizer_free(tokenizer);
    file.u32 = N_TOKENS; /* outside: ignored with a note */
    tokenizer = loaded(&file, false);
    assert_int_equal(pith_tokenizer_special(tokenizer, PITH_SPECIAL_BOS), -1);
    assert_non_null(strstr(pith_tokenizer_notes(tokenizer), "bos_token_id"));
    pith_tokenizer_free(tokenizer);
    file = good_file("bert"); /* [CLS] is BERT's first token */
    file.u32_key = "tokenizer.ggml.cls_token_id";
    file.u32 = 1;
    tokenizer = loaded(&file, false);
    assert_int_equal(pith_tokenizer_special(tokenizer, PITH_SPECIAL_BOS), 1);
    pith_tokenizer_free(tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_loads),
        cmocka_unit_test(what_is_unknown_is_named),
        cmocka_unit_test(arrays_must_fit),
        cmocka_unit_test(keys_have_types),
        cmocka_unit_test(ids_and_flags_reach_the_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
