/* SPDX-License-Identifier: Apache-2.0
 * Promise: no argument makes pith.h crash. A NULL that is not allowed is PITH_ERROR_ARGUMENT,
 * getters of NULL give nothing, option structs of another size are read as far as both sides know
 * them, outputs are NULL after a failure. */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pith.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pith_model *model;
static pith_engine *engine;
static pith_session *session;
static char path[1024];

static const char *golden(const char *name) {
    const char *root = getenv("PITH_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/tests/data/arch/%s", root ? root : ".", name);
    return path;
}

static int open_all(void **state) {
    pith_error error = {PITH_OK, ""};
    (void)state;
    if (pith_model_open(golden("llama-moe.gguf"), NULL, &model, &error) != PITH_OK ||
        pith_engine_new(model, NULL, &engine, &error) != PITH_OK ||
        pith_session_new(engine, &session, &error) != PITH_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    return 0;
}

static int close_all(void **state) {
    (void)state;
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
    return 0;
}

/* The call fails with PITH_ERROR_ARGUMENT, with and without an error to fill. */
#define REFUSES(call_with_error, call_without)                                                     \
    do {                                                                                           \
        pith_error error = {PITH_OK, ""};                                                          \
        assert_int_equal(call_with_error, PITH_ERROR_ARGUMENT);                                    \
        assert_int_equal(error.status, PITH_ERROR_ARGUMENT);                                       \
        assert_true(error.text[0] != '\0');                                                        \
        assert_int_equal(call_without, PITH_ERROR_ARGUMENT);                                       \
    } while (0)

static void null_files(void **state) {
    pith_file *file = (pith_file *)&path;
    pith_file_tensor tensor;
    (void)state;
    REFUSES(pith_file_open(NULL, &file, &error), pith_file_open(NULL, &file, NULL));
    assert_null(file);
    REFUSES(pith_file_open("x", NULL, &error), pith_file_open("x", NULL, NULL));
    REFUSES(pith_file_check(NULL, &error), pith_file_check(NULL, NULL));
    pith_file_close(NULL);
    assert_int_equal(pith_file_summarize(NULL).n_tensors, 0);
    assert_string_equal(pith_file_summarize(NULL).architecture, "");
    assert_null(pith_file_key(NULL, 0));
    assert_null(pith_file_value_type(NULL, 0));
    assert_int_equal(pith_file_value_text(NULL, 0, 1, NULL, 0), 0);
    assert_false(pith_file_tensor_at(NULL, 0, &tensor));
}

static void null_models(void **state) {
    pith_model *out = (pith_model *)&path;
    pith_reader reader = {sizeof reader, NULL, NULL, 10};
    (void)state;
    REFUSES(pith_model_open(NULL, NULL, &out, &error), pith_model_open(NULL, NULL, &out, NULL));
    assert_null(out);
    REFUSES(pith_model_open("x", NULL, NULL, &error), pith_model_open("x", NULL, NULL, NULL));
    REFUSES(pith_model_open_memory(NULL, 5, NULL, &out, &error),
            pith_model_open_memory(NULL, 5, NULL, &out, NULL));
    REFUSES(pith_model_open_reader(NULL, NULL, &out, &error),
            pith_model_open_reader(NULL, NULL, &out, NULL));
    REFUSES(pith_model_open_reader(&reader, NULL, &out, &error),
            pith_model_open_reader(&reader, NULL, &out, NULL));
    assert_int_not_equal(pith_model_open_descriptor(-1, 0, 100, NULL, &out, NULL), PITH_OK);
    assert_null(out);
    pith_model_close(NULL);
    assert_string_equal(pith_model_describe(NULL).architecture, "");
    assert_string_equal(pith_model_describe(NULL).notes, "");
    assert_null(pith_model_chat_template(NULL));
}

static void null_text(void **state) {
    pith_detokenizer *detokenizer = (pith_detokenizer *)&path;
    int32_t ids[8];
    size_t n = 7;
    (void)state;
    REFUSES(pith_tokenize(NULL, "a", 1, 0, ids, 8, &n, &error),
            pith_tokenize(NULL, "a", 1, 0, ids, 8, &n, NULL));
    assert_int_equal(n, 0);
    REFUSES(pith_tokenize(model, "a", 1, 0, ids, 8, NULL, &error),
            pith_tokenize(model, "a", 1, 0, ids, 8, NULL, NULL));
    REFUSES(pith_tokenize(model, NULL, 1, 0, ids, 8, &n, &error),
            pith_tokenize(model, NULL, 1, 0, ids, 8, &n, NULL));
    REFUSES(pith_tokenize(model, "a", 1, 0, NULL, 8, &n, &error),
            pith_tokenize(model, "a", 1, 0, NULL, 8, &n, NULL));
    REFUSES(pith_tokenize(model, "a", 1, 64, ids, 8, &n, &error),
            pith_tokenize(model, "a", 1, 64, ids, 8, &n, NULL));
    assert_int_equal(pith_tokenize(model, NULL, 0, 0, NULL, 0, &n, NULL), PITH_OK);
    assert_int_equal(n, 0);
    const int32_t outside[] = {-1, INT32_MIN, 264, INT32_MAX};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        n = 7;
        assert_null(pith_token_text(model, outside[i], &n));
        assert_int_equal(n, 0);
        assert_null(pith_token_text(model, outside[i], NULL));
        assert_null(pith_token_piece(model, outside[i]));
        assert_false(pith_token_is_end(model, outside[i]));
        assert_false(pith_token_is_control(model, outside[i]));
    }
    assert_null(pith_token_text(NULL, 0, &n));
    assert_null(pith_token_piece(NULL, 0));
    assert_false(pith_token_is_end(NULL, 0));
    assert_false(pith_token_is_control(NULL, 0));
    assert_int_equal(pith_special_token(NULL, PITH_SPECIAL_BOS), -1);
    assert_int_equal(pith_special_token(model, (pith_special)99), -1);
    REFUSES(pith_detokenizer_new(NULL, false, &detokenizer, &error),
            pith_detokenizer_new(NULL, false, &detokenizer, NULL));
    assert_null(detokenizer);
    REFUSES(pith_detokenizer_new(model, false, NULL, &error),
            pith_detokenizer_new(model, false, NULL, NULL));
    assert_string_equal(pith_detokenizer_push(NULL, 1, &n), "");
    pith_detokenizer_free(NULL);
}

static void capacity_of_ids(void **state) {
    int32_t ids[3] = {-7, -7, -7};
    size_t n = 0;
    pith_error error = {PITH_OK, ""};
    (void)state;
    assert_int_equal(pith_tokenize(model, "zqzqz", 5, 0, ids, 2, &n, &error), PITH_ERROR_LIMIT);
    assert_true(n > 2);
    assert_true(ids[0] >= 0 && ids[1] >= 0);
    assert_int_equal(ids[2], -7);
    assert_int_equal(pith_tokenize(model, "zqzqz", 5, 0, NULL, 0, &n, NULL), PITH_ERROR_LIMIT);
    assert_true(n > 2);
}

static void null_prompts(void **state) {
    pith_prompt *prompt = (pith_prompt *)&path;
    size_t n = 7;
    int32_t ids[64];
    (void)state;
    REFUSES(pith_prompt_render(NULL, NULL, "{}", &prompt, &error),
            pith_prompt_render(NULL, NULL, "{}", &prompt, NULL));
    assert_null(prompt);
    REFUSES(pith_prompt_render(NULL, "a", NULL, &prompt, &error),
            pith_prompt_render(NULL, "a", NULL, &prompt, NULL));
    REFUSES(pith_prompt_render(NULL, "a", "{}", NULL, &error),
            pith_prompt_render(NULL, "a", "{}", NULL, NULL));
    REFUSES(pith_prompt_render(NULL, "a", "[]", &prompt, &error),
            pith_prompt_render(NULL, "a", "[]", &prompt, NULL));
    assert_int_equal(pith_prompt_render(model, NULL, "{}", &prompt, NULL), PITH_ERROR_NOT_FOUND);
    assert_int_not_equal(pith_prompt_render(NULL, "a", "{", &prompt, NULL), PITH_OK);
    pith_prompt_free(NULL);
    assert_string_equal(pith_prompt_text(NULL, &n), "");
    assert_int_equal(n, 0);
    REFUSES(pith_prompt_tokenize(model, NULL, ids, 64, &n, &error),
            pith_prompt_tokenize(model, NULL, ids, 64, &n, NULL));
    assert_int_equal(pith_prompt_render(NULL, "abc", "{}", &prompt, NULL), PITH_OK);
    assert_string_equal(pith_prompt_text(prompt, &n), "abc");
    assert_int_equal(n, 3);
    REFUSES(pith_prompt_tokenize_from(model, prompt, 4, ids, 64, &n, &error),
            pith_prompt_tokenize_from(model, prompt, 4, ids, 64, &n, NULL));
    assert_int_equal(pith_prompt_tokenize_from(model, prompt, 3, ids, 64, &n, NULL), PITH_OK);
    assert_int_equal(n, 0);
    REFUSES(pith_prompt_tokenize(NULL, prompt, ids, 64, &n, &error),
            pith_prompt_tokenize(NULL, prompt, ids, 64, &n, NULL));
    pith_prompt_free(prompt);
}

static int no_rows(void *user, size_t first, size_t n, const float *logits) {
    (void)user, (void)first, (void)n, (void)logits;
    return 0;
}

static void null_engines(void **state) {
    pith_engine *out = (pith_engine *)&path;
    pith_session *other = (pith_session *)&path;
    uint64_t bytes = 7;
    int32_t ids[1] = {1};
    (void)state;
    REFUSES(pith_engine_bytes(NULL, NULL, &bytes, &error),
            pith_engine_bytes(NULL, NULL, &bytes, NULL));
    assert_int_equal(bytes, 0);
    REFUSES(pith_engine_bytes(model, NULL, NULL, &error),
            pith_engine_bytes(model, NULL, NULL, NULL));
    REFUSES(pith_engine_new(NULL, NULL, &out, &error), pith_engine_new(NULL, NULL, &out, NULL));
    assert_null(out);
    REFUSES(pith_engine_new(model, NULL, NULL, &error), pith_engine_new(model, NULL, NULL, NULL));
    pith_engine_free(NULL);
    assert_string_equal(pith_engine_describe(NULL).backend, "");
    pith_engine_profile(NULL, true);
    assert_int_equal(pith_engine_profile_rows(NULL, NULL, 0), 0);
    assert_int_equal(pith_engine_profile_rows(engine, NULL, 5), 0);
    pith_engine_trace(NULL, NULL, NULL);
    REFUSES(pith_session_new(NULL, &other, &error), pith_session_new(NULL, &other, NULL));
    assert_null(other);
    REFUSES(pith_session_new(engine, NULL, &error), pith_session_new(engine, NULL, NULL));
    REFUSES(pith_session_append(NULL, ids, 1, NULL, NULL, &error),
            pith_session_append(NULL, ids, 1, NULL, NULL, NULL));
    REFUSES(pith_session_append(session, NULL, 1, NULL, NULL, &error),
            pith_session_append(session, NULL, 1, NULL, NULL, NULL));
    assert_int_equal(pith_session_append(session, NULL, 0, NULL, NULL, NULL), PITH_OK);
    REFUSES(pith_session_append_rows(session, ids, 1, NULL, NULL, &error),
            pith_session_append_rows(session, ids, 1, NULL, NULL, NULL));
    REFUSES(pith_session_append_rows(NULL, ids, 1, no_rows, NULL, &error),
            pith_session_append_rows(NULL, ids, 1, no_rows, NULL, NULL));
    REFUSES(pith_session_truncate(NULL, 0, &error), pith_session_truncate(NULL, 0, NULL));
    REFUSES(pith_session_truncate(session, 1, &error), pith_session_truncate(session, 1, NULL));
    assert_int_equal(pith_session_length(NULL), 0);
    assert_null(pith_session_ids(NULL));
    assert_null(pith_session_logits(NULL));
    assert_null(pith_session_logits(session)); /* no row yet */
    pith_session_cancel(NULL);
    pith_session_free(NULL);
}

static void null_replies(void **state) {
    pith_sampler *sampler = (pith_sampler *)&path;
    pith_generation made;
    int32_t ids[1] = {1};
    (void)state;
    REFUSES(pith_sampler_new(NULL, NULL, &sampler, &error),
            pith_sampler_new(NULL, NULL, &sampler, NULL));
    assert_null(sampler);
    REFUSES(pith_sampler_new(model, NULL, NULL, &error), pith_sampler_new(model, NULL, NULL, NULL));
    assert_int_equal(pith_sampler_next(NULL, NULL), 0);
    pith_sampler_accept(NULL, ids, 1);
    pith_sampler_free(NULL);
    assert_int_equal(pith_sampler_new(model, NULL, &sampler, NULL), PITH_OK);
    assert_int_equal(pith_sampler_next(sampler, NULL), 0);
    REFUSES(pith_generate(NULL, sampler, ids, 1, NULL, &made, &error),
            pith_generate(NULL, sampler, ids, 1, NULL, &made, NULL));
    REFUSES(pith_generate(session, NULL, ids, 1, NULL, &made, &error),
            pith_generate(session, NULL, ids, 1, NULL, &made, NULL));
    REFUSES(pith_generate(session, sampler, NULL, 1, NULL, &made, &error),
            pith_generate(session, sampler, NULL, 1, NULL, &made, NULL));
    REFUSES(pith_generate(session, sampler, ids, 0, NULL, &made, &error),
            pith_generate(session, sampler, ids, 0, NULL, &made, NULL));
    const char *stops[2] = {"a", NULL};
    const char *ill_formed[1] = {"\xFF"};
    pith_generate_options options = {.size = sizeof options, .n_stops = 2};
    REFUSES(pith_generate(session, sampler, ids, 1, &options, &made, &error),
            pith_generate(session, sampler, ids, 1, &options, &made, NULL));
    options.stops = stops;
    REFUSES(pith_generate(session, sampler, ids, 1, &options, &made, &error),
            pith_generate(session, sampler, ids, 1, &options, &made, NULL));
    options.stops = ill_formed;
    options.n_stops = 1;
    REFUSES(pith_generate(session, sampler, ids, 1, &options, &made, &error),
            pith_generate(session, sampler, ids, 1, &options, &made, NULL));
    options.n_stops = 0;
    for (int i = 0; i < 5; i++) {
        char longest[PITH_BANNED_MAX_BYTES + 2];
        const char *many[PITH_BANNED_MAX + 1] = {"a", i == 1 ? "" : i == 2 ? "\xC3" : longest};
        memset(longest, 'a', sizeof longest);
        longest[PITH_BANNED_MAX_BYTES + (i == 3)] = 0;
        options.banned = i == 0 ? NULL : many;
        options.n_banned = i == 4 ? PITH_BANNED_MAX + 1 : 2;
        REFUSES(pith_generate(session, sampler, ids, 1, &options, &made, &error),
                pith_generate(session, sampler, ids, 1, &options, &made, NULL));
        if (i != 4) continue;
        for (size_t k = 2; k < PITH_BANNED_MAX; k++) many[k] = "b"; /* the most is taken */
        options.n_banned = PITH_BANNED_MAX;
        options.max_tokens = 1;
        assert_int_equal(pith_generate(session, sampler, ids, 1, &options, &made, NULL), PITH_OK);
    }
    options.n_banned = 0;
    options.max_tokens = -1;
    REFUSES(pith_generate(session, sampler, ids, 1, &options, &made, &error),
            pith_generate(session, sampler, ids, 1, &options, &made, NULL));
    options.max_tokens = 1;
    const size_t places[17] = {0};
    options.n_cache_at = 1;
    REFUSES(pith_generate(session, sampler, ids, 1, &options, &made, &error),
            pith_generate(session, sampler, ids, 1, &options, &made, NULL));
    options.cache_at = places;
    options.n_cache_at = 17;
    REFUSES(pith_generate(session, sampler, ids, 1, &options, &made, &error),
            pith_generate(session, sampler, ids, 1, &options, &made, NULL));
    options.n_cache_at = 16;
    assert_int_equal(pith_generate(session, sampler, ids, 1, &options, NULL, NULL), PITH_OK);
    assert_int_equal(pith_session_length(session), 2);
    assert_int_equal(pith_session_truncate(session, 0, NULL), PITH_OK);
    pith_sampler_free(sampler);
}

static int no_entry(void *user, const pith_cache_entry *entry) {
    (void)user, (void)entry;
    return 1;
}

static void null_caches(void **state) {
    size_t n = 7;
    (void)state;
    REFUSES(pith_cache_list(NULL, no_entry, NULL, &error),
            pith_cache_list(NULL, no_entry, NULL, NULL));
    REFUSES(pith_cache_list("x", NULL, NULL, &error), pith_cache_list("x", NULL, NULL, NULL));
    REFUSES(pith_cache_clear(NULL, &n, &error), pith_cache_clear(NULL, &n, NULL));
    assert_int_equal(n, 0);
    assert_int_equal(pith_cache_list("/there/is/none", no_entry, NULL, NULL), PITH_OK);
    assert_int_equal(pith_cache_clear("/there/is/none", NULL, NULL), PITH_OK);
    for (int i = -2; i <= 9; i++) {
        assert_non_null(pith_cache_miss_text((pith_cache_miss)i));
        assert_non_null(pith_cache_source_text((pith_cache_source)i));
    }
    assert_string_equal(pith_engine_describe(engine).cache_note, "");
    assert_string_equal(pith_engine_describe(NULL).cache_note, "");
}

static void no_logprobs(void *user, int32_t id, double logprob, const pith_logprob *top,
                        size_t n_top) {
    (void)user, (void)id, (void)logprob, (void)top, (void)n_top;
}

static void null_sampling(void **state) {
    static const float row[3] = {1, 3, 2};
    pith_sampler *sampler = NULL, *clone = (pith_sampler *)&path;
    pith_logprob top[2];
    double p[3], logprob = 1;
    int32_t ids[3] = {1, 2, 3};
    (void)state;
    assert_int_equal(pith_sampler_new(model, NULL, &sampler, NULL), PITH_OK);
    REFUSES(pith_sampler_clone(NULL, 1, &clone, &error), pith_sampler_clone(NULL, 1, &clone, NULL));
    assert_null(clone);
    REFUSES(pith_sampler_clone(sampler, 1, NULL, &error),
            pith_sampler_clone(sampler, 1, NULL, NULL));
    assert_false(pith_sampler_rewind(NULL, 0));
    assert_false(pith_sampler_rewind(sampler, 1));
    assert_true(pith_sampler_rewind(sampler, 0));
    assert_int_equal(pith_sampler_distribution(NULL, row, ids, p, 3), 0);
    assert_int_equal(pith_sampler_distribution(sampler, NULL, ids, p, 3), 0);
    assert_int_equal(pith_sampler_distribution(sampler, row, NULL, p, 3), 0);
    assert_int_equal(pith_sampler_distribution(sampler, row, ids, NULL, 3), 0);
    pith_sampler_free(sampler);
    /* log-probabilities: every part may be left out */
    assert_int_equal(pith_logprobs(NULL, 3, 1, &logprob, top, 2), 0);
    assert_true(logprob < -1e300);
    assert_int_equal(pith_logprobs(row, 0, 1, &logprob, top, 2), 0);
    assert_int_equal(pith_logprobs(row, -1, 1, &logprob, top, 2), 0);
    assert_int_equal(pith_logprobs(row, 3, 1, NULL, top, 2), 2);
    assert_true(top[0].id == 1 && top[1].id == 2 && top[0].logprob > top[1].logprob);
    assert_int_equal(pith_logprobs(row, 3, 1, &logprob, NULL, 2), 0);
    assert_true(logprob == top[0].logprob);
    assert_int_equal(pith_logprobs(row, 3, 3, &logprob, top, -1), 0);
    assert_true(logprob < -1e300);
    pith_generate_options options = {.size = sizeof options, .n_logprobs = 1};
    pith_generation made;
    assert_int_equal(pith_sampler_new(model, NULL, &sampler, NULL), PITH_OK);
    REFUSES(pith_generate(session, sampler, ids, 1, &options, &made, &error),
            pith_generate(session, sampler, ids, 1, &options, &made, NULL));
    options.on_logprobs = no_logprobs;
    for (int i = 0; i < 3; i++) {
        options.n_logprobs = (const int32_t[]){-1, PITH_LOGPROBS_MAX + 1, INT32_MAX}[i];
        REFUSES(pith_generate(session, sampler, ids, 1, &options, &made, &error),
                pith_generate(session, sampler, ids, 1, &options, &made, NULL));
    }
    pith_sampler_free(sampler);
}

/* A sampler of another model would read past the logits. */
static void foreign_sampler(void **state) {
    pith_model *other = NULL;
    pith_sampler *sampler = NULL;
    pith_error error = {PITH_OK, ""};
    int32_t ids[1] = {1};
    (void)state;
    assert_int_equal(pith_model_open(golden("llama-q4_0.gguf"), NULL, &other, NULL), PITH_OK);
    assert_int_equal(pith_sampler_new(other, NULL, &sampler, NULL), PITH_OK);
    assert_int_equal(pith_generate(session, sampler, ids, 1, NULL, NULL, &error),
                     PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "288"));
    assert_non_null(strstr(error.text, "264"));
    pith_sampler_free(sampler);
    pith_model_close(other);
}

/* At most the engine's threads; 0 is all of them. */
static void decode_threads(void **state) {
    static const struct {
        int32_t n_threads, decode_threads, expected; /* 0: refused */
    } rows[] = {{2, 0, 2}, {2, 1, 1}, {2, 2, 2}, {2, 3, 2}, {1, 9, 1}, {2, -1, 0}, {2, 513, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pith_engine_options options = {.size = sizeof options,
                                       .n_ctx = 64,
                                       .n_threads = rows[i].n_threads,
                                       .decode_threads = rows[i].decode_threads};
        pith_engine *out = NULL;
        pith_status expected = rows[i].expected ? PITH_OK : PITH_ERROR_ARGUMENT;
        assert_int_equal(pith_engine_new(model, &options, &out, NULL), expected);
        if (out) assert_int_equal(pith_engine_describe(out).decode_threads, rows[i].expected);
        pith_engine_free(out);
    }
}

/* Fields behind the given size are not read; a size of 0 was forgotten; a longer struct of a
 * newer header is taken. */
static const char *adapter_path(const char *name) {
    static char other[1024];
    const char *root = getenv("PITH_SOURCE_DIR");
    snprintf(other, sizeof other, "%s/tests/data/adapter/%s", root ? root : ".", name);
    return other;
}

static void null_adapters(void **state) {
    pith_adapter *out = (pith_adapter *)(void *)model, *list[] = {NULL};
    const pith_adapter *at = NULL;
    float scale = 5;
    pith_adapter_options options = {0};
    (void)state;
    REFUSES(pith_adapter_open(NULL, "a", NULL, &out, &error),
            pith_adapter_open(NULL, "a", NULL, &out, NULL));
    assert_null(out);
    REFUSES(pith_adapter_open(model, NULL, NULL, &out, &error),
            pith_adapter_open(model, NULL, NULL, &out, NULL));
    REFUSES(pith_adapter_open(model, "a", NULL, NULL, &error),
            pith_adapter_open(model, "a", NULL, NULL, NULL));
    REFUSES(pith_adapter_open(model, "a", &options, &out, &error),
            pith_adapter_open(model, "a", &options, &out, NULL));
    assert_int_equal(pith_adapter_open(model, "", NULL, &out, NULL), PITH_ERROR_ARGUMENT);
    pith_adapter_free(NULL);
    pith_adapter_info info = pith_adapter_describe(NULL);
    assert_string_equal(info.name, "");
    assert_string_equal(info.task, "");
    assert_string_equal(info.prompt_prefix, "");
    REFUSES(pith_session_set_adapters(NULL, NULL, NULL, 0, &error),
            pith_session_set_adapters(NULL, NULL, NULL, 0, NULL));
    REFUSES(pith_session_set_adapters(session, NULL, NULL, 1, &error),
            pith_session_set_adapters(session, NULL, NULL, 1, NULL));
    REFUSES(pith_session_set_adapters(session, list, NULL, 1, &error),
            pith_session_set_adapters(session, list, NULL, 1, NULL));
    assert_int_equal(pith_session_set_adapters(session, NULL, NULL, 0, NULL), PITH_OK);
    assert_false(pith_session_adapter_at(NULL, 0, &at, &scale));
    assert_false(pith_session_adapter_at(session, 0, &at, &scale));
    assert_null(at);
}

static void adapters_through_the_header(void **state) {
    pith_model *base = NULL;
    pith_adapter *adapter = NULL;
    pith_engine *own = NULL;
    pith_session *one = NULL;
    const pith_adapter *at = NULL;
    float scale = 0;
    pith_error error = {PITH_OK, ""};
    (void)state;
    assert_int_equal(pith_model_open(adapter_path("llama.gguf"), NULL, &base, NULL), PITH_OK);
    assert_int_equal(pith_adapter_open(model, adapter_path("lora-b.gguf"), NULL, &adapter, &error),
                     PITH_ERROR_FORMAT);
    assert_non_null(strstr(error.text, "another"));
    assert_int_equal(pith_adapter_open(base, adapter_path("lora-b.gguf"), NULL, &adapter, NULL),
                     PITH_OK);
    pith_adapter_info info = pith_adapter_describe(adapter);
    assert_int_equal(info.kind, PITH_ADAPTER_LORA);
    assert_int_equal(info.rank, 8);
    assert_int_equal(info.n_tensors, 9);
    assert_int_equal(pith_session_set_adapters(session, &adapter, NULL, 1, NULL),
                     PITH_ERROR_ARGUMENT); /* a session of another model */
    assert_int_equal(pith_engine_new(base, NULL, &own, NULL), PITH_OK);
    assert_int_equal(pith_engine_describe(own).adapter_rank_limit, 64);
    assert_int_equal(pith_session_new(own, &one, NULL), PITH_OK);
    assert_int_equal(pith_session_set_adapters(one, &adapter, NULL, 1, NULL), PITH_OK);
    pith_adapter_free(adapter); /* the session keeps it */
    assert_true(pith_session_adapter_at(one, 0, &at, &scale));
    assert_ptr_equal(at, adapter);
    assert_true(scale == 1.0f);
    assert_false(pith_session_adapter_at(one, 1, &at, &scale));
    assert_true(pith_session_adapter_at(one, 0, NULL, NULL));
    assert_int_equal(pith_session_append(one, (const int32_t[]){1, 2}, 2, NULL, NULL, NULL),
                     PITH_OK);
    pith_session_free(one);
    pith_engine_free(own);
    pith_model *words = NULL;
    pith_model_options vocab = {.size = sizeof vocab, .vocab_only = true};
    assert_int_equal(pith_model_open(adapter_path("llama.gguf"), &vocab, &words, NULL), PITH_OK);
    assert_int_equal(pith_adapter_open(words, adapter_path("lora-b.gguf"), NULL, &adapter, NULL),
                     PITH_ERROR_ARGUMENT);
    pith_model_close(words);
    pith_model_close(base);
}

static void option_sizes(void **state) {
    pith_engine_options options = {.size = sizeof options, .n_ctx = 64, .n_sessions = -5};
    pith_engine *out = NULL;
    pith_error error = {PITH_OK, ""};
    (void)state;
    assert_int_equal(pith_engine_new(model, &options, &out, NULL), PITH_ERROR_ARGUMENT);
    options.size = offsetof(pith_engine_options, n_sessions);
    assert_int_equal(pith_engine_new(model, &options, &out, &error), PITH_OK);
    assert_int_equal(pith_engine_describe(out).n_ctx, 64);
    assert_int_equal(pith_engine_describe(out).n_sessions, 1);
    pith_engine_free(out);
    const size_t wrong[] = {0, 1, sizeof(size_t) - 1};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        options.size = wrong[i];
        assert_int_equal(pith_engine_new(model, &options, &out, &error), PITH_ERROR_ARGUMENT);
        assert_non_null(strstr(error.text, "size"));
        assert_null(out);
    }
    options.size = offsetof(pith_engine_options, decode_threads); /* an older caller */
    options.n_sessions = 1, options.n_threads = 2, options.decode_threads = -7;
    assert_int_equal(pith_engine_new(model, &options, &out, NULL), PITH_OK);
    assert_int_equal(pith_engine_describe(out).decode_threads, 2);
    pith_engine_free(out);
    options.size = sizeof(size_t);
    assert_int_equal(pith_engine_new(model, &options, &out, NULL), PITH_OK);
    assert_int_equal(pith_engine_describe(out).n_ctx, 512);
    pith_engine_free(out);
    struct {
        pith_engine_options known;
        char unknown[64];
    } newer = {.known = {.size = sizeof newer, .n_ctx = 32}};
    memset(newer.unknown, 0xEE, sizeof newer.unknown);
    assert_int_equal(pith_engine_new(model, &newer.known, &out, NULL), PITH_OK);
    assert_int_equal(pith_engine_describe(out).n_ctx, 32);
    pith_engine_free(out);
}

static void model_options(void **state) {
    pith_model_options options = {.size = sizeof options, .load = (pith_load)9};
    pith_model *out = NULL;
    pith_engine *none = NULL;
    (void)state;
    assert_int_equal(pith_model_open(golden("llama-moe.gguf"), &options, &out, NULL),
                     PITH_ERROR_ARGUMENT);
    options.load = PITH_LOAD_AUTO;
    options.n_threads = -1;
    assert_int_equal(pith_model_open(path, &options, &out, NULL), PITH_ERROR_ARGUMENT);
    options.n_threads = 0;
    options.vocab_only = true;
    assert_int_equal(pith_model_open(path, &options, &out, NULL), PITH_OK);
    assert_int_equal(pith_model_describe(out).n_vocab, 264);
    assert_int_equal(pith_engine_new(out, NULL, &none, NULL), PITH_ERROR_ARGUMENT);
    assert_null(none);
    pith_model_close(out);
}

static void values_as_text(void **state) {
    pith_file *file = NULL;
    char text[256];
    bool seen_array = false, seen_number = false, seen_text = false;
    (void)state;
    assert_int_equal(pith_file_open(golden("llama-moe.gguf"), &file, NULL), PITH_OK);
    assert_int_equal(pith_file_check(file, NULL), PITH_OK);
    pith_file_summary summary = pith_file_summarize(file);
    for (uint64_t i = 0; i < summary.n_metadata; i++) {
        const char *key = pith_file_key(file, i);
        size_t size = pith_file_value_text(file, i, 3, text, sizeof text);
        assert_int_equal(pith_file_value_text(file, i, 3, NULL, 0), size);
        if (strcmp(key, "tokenizer.ggml.token_type") == 0) {
            seen_array = true;
            assert_string_equal(text, "[1, 1, 1], ... (264)");
            assert_int_equal(pith_file_value_text(file, i, 3, text, 5), size);
            assert_string_equal(text, "[1, "); /* cut at the capacity */
            assert_string_equal(pith_file_value_type(file, i), "arr[i32]");
        } else if (strcmp(key, "llama.embedding_length") == 0) {
            seen_number = true;
            assert_string_equal(text, "64");
        } else if (strcmp(key, "general.architecture") == 0) {
            seen_text = true;
            assert_string_equal(text, "llama");
        }
    }
    assert_true(seen_array && seen_number && seen_text);
    assert_null(pith_file_key(file, summary.n_metadata));
    pith_file_tensor tensor;
    assert_true(pith_file_tensor_at(file, summary.n_tensors - 1, &tensor));
    assert_false(pith_file_tensor_at(file, summary.n_tensors, &tensor));
    assert_false(pith_file_tensor_at(file, 0, NULL));
    pith_file_close(file);
}

static void *read_all(size_t *size) {
    FILE *file = fopen(golden("llama-moe.gguf"), "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    void *data = malloc(*size);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *size, file), *size);
    fclose(file);
    return data;
}

typedef struct bytes {
    const char *data;
    size_t size;
    bool broken;
} bytes;

static int read_at(void *user, uint64_t offset, void *buffer, size_t size) {
    bytes *b = user;
    if (b->broken || offset > b->size || size > b->size - offset) return 1;
    memcpy(buffer, b->data + offset, size);
    return 0;
}

/* Memory, reader and path give the same model. */
static void sources(void **state) {
    size_t size = 0;
    void *data = read_all(&size);
    bytes source = {data, size, false};
    pith_reader reader = {sizeof reader, &source, read_at, size};
    pith_model *out = NULL;
    uint64_t key = pith_model_describe(model).content_key;
    (void)state;
    assert_int_equal(pith_model_open_memory(data, size, NULL, &out, NULL), PITH_OK);
    assert_true(pith_model_describe(out).content_key == key);
    pith_model_close(out);
    assert_int_equal(pith_model_open_reader(&reader, NULL, &out, NULL), PITH_OK);
    assert_true(pith_model_describe(out).content_key == key);
    pith_model_close(out);
    source.broken = true;
    assert_int_not_equal(pith_model_open_reader(&reader, NULL, &out, NULL), PITH_OK);
    assert_null(out);
    assert_int_not_equal(pith_model_open_memory(data, size - 1, NULL, &out, NULL), PITH_OK);
    assert_null(out);
    free(data);
}

/* A file inside another file: the model begins at an offset, and the descriptor may be closed
 * at once. */
static void descriptor_with_offset(void **state) {
    enum { OFFSET = 4096 + 3 };
    size_t size = 0;
    void *data = read_all(&size);
    const char *root = getenv("PITH_BINARY_DIR");
    char name[1024];
    pith_model *out = NULL;
    pith_error error = {PITH_OK, ""};
    (void)state;
    snprintf(name, sizeof name, "%s/test_api_misuse.bin", root ? root : ".");
    FILE *file = fopen(name, "w+b");
    assert_non_null(file);
    for (int i = 0; i < OFFSET; i++) fputc('x', file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fputc('y', file);
    fflush(file);
    pith_status status = pith_model_open_descriptor(fileno(file), OFFSET, size, NULL, &out, &error);
    assert_int_not_equal(pith_model_open_descriptor(fileno(file), OFFSET, size + 2, NULL,
                                                    &(pith_model *){NULL}, NULL),
                         PITH_OK);
    fclose(file);
    if (status != PITH_OK) fail_msg("%s", error.text);
    assert_true(pith_model_describe(out).content_key == pith_model_describe(model).content_key);
    pith_engine *other = NULL;
    assert_int_equal(pith_engine_new(out, NULL, &other, &error), PITH_OK);
    pith_engine_free(other);
    pith_model_close(out);
    remove(name);
    free(data);
}

static void system_lists(void **state) {
    pith_system_info info;
    const char *a = NULL, *b = NULL;
    size_t n = 0;
    (void)state;
    REFUSES(pith_system_describe(NULL, &error), pith_system_describe(NULL, NULL));
    assert_int_equal(pith_system_describe(&info, NULL), PITH_OK);
    assert_true(info.n_cores >= 1);
    assert_string_equal(pith_version(), "0.1.0");
    char name[200] = "x";
    pith_system_name(NULL, 5);
    pith_system_name(name, 0);
    assert_string_equal(name, "x");
    pith_system_name(name, 3);
    assert_int_equal(strlen(name), 2);
    pith_system_name(name, sizeof name);
    assert_true(strncmp(name, info.cpu, strlen(info.cpu)) == 0);
    while (pith_system_library(n, &a, &b)) {
        assert_true(a[0] != '\0' && b[0] >= '0' && b[0] <= '9');
        n++;
    }
    assert_in_range(n, 3, 4); /* SQLite may be missing */
    assert_false(pith_system_library(n, NULL, NULL));
    assert_true(pith_system_library(0, NULL, NULL));
    assert_true(pith_system_kernel(0, NULL, NULL));
    assert_false(pith_system_kernel(SIZE_MAX, &a, &b));
    assert_string_equal(pith_system_architecture(0), "gemma3");
    assert_null(pith_system_architecture(SIZE_MAX));
    for (int status = PITH_ERROR_INTERNAL - 2; status <= 2; status++) {
        assert_true(pith_status_text((pith_status)status)[0] != '\0');
    }
}

static void fits(void **state) {
    pith_file *file = NULL;
    pith_fit fit, same;
    pith_device device = {.size = sizeof device, .bandwidth = 1e9};
    pith_fit_options options = {.size = sizeof options, .device = &device};
    pith_machine_rates rates;
    (void)state;
    REFUSES(pith_file_open_header(NULL, &file, &error), pith_file_open_header(NULL, &file, NULL));
    REFUSES(pith_file_open_header("x", NULL, &error), pith_file_open_header("x", NULL, NULL));
    assert_int_equal(pith_file_open_header(path, &file, NULL), PITH_OK);
    REFUSES(pith_file_fit(NULL, NULL, &fit, &error), pith_file_fit(NULL, NULL, &fit, NULL));
    REFUSES(pith_file_fit(file, NULL, NULL, &error), pith_file_fit(file, NULL, NULL, NULL));
    REFUSES(pith_system_measure(0, 0, NULL, &error), pith_system_measure(0, 0, NULL, NULL));
    REFUSES(pith_system_measure(-1, 0, &rates, &error), pith_system_measure(513, 0, &rates, NULL));
    REFUSES(pith_system_probe_threads(NULL, &error), pith_system_probe_threads(NULL, NULL));
    pith_thread_probe_choose(NULL);
    pith_thread_probe probe = {.n = 1000,
                               .n_threads = 5}; /* at most as many as there is room for */
    pith_thread_probe_choose(&probe);
    assert_true(probe.n_threads == 0 && probe.decode_threads == 0);
    options.decode_threads = -1;
    REFUSES(pith_file_fit(file, &options, &fit, &error), pith_file_fit(file, &options, &fit, NULL));
    options.decode_threads = 0;
    assert_int_equal(pith_file_fit(file, &options, &fit, NULL), PITH_OK);
    assert_true(fit.runs && fit.speed.token_ns > 0);
    uint64_t weight_bytes = fit.weight_bytes;
    options.n_ctx = -1;
    REFUSES(pith_file_fit(file, &options, &fit, &error), pith_file_fit(file, &options, &fit, NULL));
    options.n_ctx = 0;
    options.no_probe = true;
    options.device = NULL;
    assert_int_equal(pith_file_fit(file, &options, &same, NULL), PITH_OK);
    assert_true(same.weight_bytes == weight_bytes && same.speed.token_ns == 0);
    device.bandwidth = -1;
    options.device = &device;
    REFUSES(pith_file_fit(file, &options, &fit, &error), pith_file_fit(file, &options, &fit, NULL));
    /* what would make times that are no numbers */
    const double figures[] = {5e-324, 0.99, 1.1e24, INFINITY, NAN}, shares[] = {1e-300, 9e-7, 1.01};
    for (size_t i = 0; i < 5; i++) {
        device = (pith_device){.size = sizeof device, .bandwidth = figures[i]};
        assert_int_equal(pith_file_fit(file, &options, &fit, NULL), PITH_ERROR_ARGUMENT);
        device = (pith_device){.size = sizeof device, .bandwidth = 1, .int8_ops = figures[i]};
        assert_int_equal(pith_file_fit(file, &options, &fit, NULL), PITH_ERROR_ARGUMENT);
    }
    for (size_t i = 0; i < 3; i++) {
        device = (pith_device){.size = sizeof device, .bandwidth = 1, .ops_share = shares[i]};
        assert_int_equal(pith_file_fit(file, &options, &fit, NULL), PITH_ERROR_ARGUMENT);
    }
    /* more than can be counted stays below 2^63; a failure leaves nothing behind */
    device = (pith_device){.size = sizeof device, .memory_bytes = UINT64_MAX, .app_share = 1};
    assert_int_equal(pith_file_fit(file, &options, &fit, NULL), PITH_OK);
    assert_true(fit.limit_bytes > (uint64_t)INT64_MAX / 2 && fit.limit_bytes <= INT64_MAX);
    options.n_threads = 513;
    assert_int_equal(pith_file_fit(file, &options, &fit, NULL), PITH_ERROR_ARGUMENT);
    assert_true(fit.limit_bytes == 0 && fit.n_threads == 0 && fit.architecture[0] == 0);
    options.n_threads = 0;
    options.precision = (pith_precision)2;
    assert_int_equal(pith_file_fit(file, &options, &fit, NULL), PITH_ERROR_ARGUMENT);
    options.precision = PITH_PRECISION_NORMAL;
    device = (pith_device){.size = sizeof device, .bandwidth = 1e9, .app_share = 1.5};
    REFUSES(pith_file_fit(file, &options, &fit, &error), pith_file_fit(file, &options, &fit, NULL));
    assert_true(pith_file_content_key(file) != 0);
    assert_true(pith_file_content_key(NULL) == 0);
    assert_false(pith_device_at(SIZE_MAX, &device));
    assert_false(pith_device_at(0, NULL));
    assert_true(pith_speed_token_ms(NULL, 0) == 0 && pith_speed_prompt_ms(NULL, 1, 0) == 0);
    pith_file_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_files),     cmocka_unit_test(null_models),
        cmocka_unit_test(null_text),      cmocka_unit_test(capacity_of_ids),
        cmocka_unit_test(null_prompts),   cmocka_unit_test(null_engines),
        cmocka_unit_test(null_replies),   cmocka_unit_test(null_caches),
        cmocka_unit_test(null_sampling),  cmocka_unit_test(foreign_sampler),
        cmocka_unit_test(decode_threads), cmocka_unit_test(option_sizes),
        cmocka_unit_test(model_options),  cmocka_unit_test(values_as_text),
        cmocka_unit_test(sources),        cmocka_unit_test(descriptor_with_offset),
        cmocka_unit_test(system_lists),   cmocka_unit_test(fits),
        cmocka_unit_test(null_adapters),  cmocka_unit_test(adapters_through_the_header),
    };
    return cmocka_run_group_tests_name("misuse of pith.h", tests, open_all, close_all);
}
