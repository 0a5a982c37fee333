/* SPDX-License-Identifier: Apache-2.0
 * Promise: whichever request for memory fails while a model is opened, an engine and a session
 * are made and a reply is written, the call says PITH_ERROR_MEMORY and everything can be
 * released; nothing crashes, nothing leaks (the leak checker of a sanitizer build looks on). And
 * between the first token of a reply and the last nothing is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pith.h>

#include "support/failing_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **out, size_t alignment, size_t size);
void *__real_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return memory_watch_refuses(size) ? NULL : __real_aligned_alloc(alignment, size);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size) {
    return memory_watch_refuses(size) ? ENOMEM : __real_posix_memalign(out, alignment, size);
}

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    if (!memory_watch_refuses(size)) {
        return __real_mmap(address, size, protection, flags, file, offset);
    }
    errno = ENOMEM;
    return MAP_FAILED;
}

static const char *golden(const char *name, char path[1024]) {
    const char *root = getenv("PITH_SOURCE_DIR");
    snprintf(path, 1024, "%s/tests/data/arch/%s", root ? root : ".", name);
    return path;
}

static void no_logprobs(void *user, int32_t id, double logprob, const pith_logprob *top,
                        size_t n_top) {
    (void)user, (void)id, (void)logprob, (void)top, (void)n_top;
}

/* Everything a simple program does. Returns the first failure. */
static pith_status use_model(const char *path, pith_load load, pith_error *error) {
    pith_model_options open = {.size = sizeof open, .load = load, .n_threads = 1};
    pith_engine_options options = {.size = sizeof options, .n_ctx = 64, .n_threads = 1};
    const char *const banned[] = {"e", "aaa"};
    pith_generate_options reply = {.size = sizeof reply,
                                   .max_tokens = 3,
                                   .ignore_end = true,
                                   .on_logprobs = no_logprobs,
                                   .n_logprobs = 3,
                                   .banned = banned,
                                   .n_banned = 2};
    pith_sampler_options sampling = {
        .size = sizeof sampling, .temperature = 1, .repeat_penalty = 1.1f, .dry_multiplier = 1};
    pith_model *model = NULL;
    pith_engine *engine = NULL;
    pith_session *session = NULL;
    pith_sampler *sampler = NULL;
    int32_t ids[8];
    size_t n_ids = 0;
    pith_status status = pith_model_open(path, &open, &model, error);
    if (status == PITH_OK) {
        status = pith_tokenize(model, "Hello", 5, 0, ids, 8, &n_ids, error);
    }
    if (status == PITH_OK) status = pith_engine_new(model, &options, &engine, error);
    if (status == PITH_OK) status = pith_session_new(engine, &session, error);
    if (status == PITH_OK) status = pith_sampler_new(model, &sampling, &sampler, error);
    if (status == PITH_OK) {
        status = pith_generate(session, sampler, ids, n_ids, &reply, NULL, error);
    }
    pith_sampler_free(sampler);
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
    return status;
}

static const char *adapter_data(const char *name, char path[1024]) {
    const char *root = getenv("PITH_SOURCE_DIR");
    snprintf(path, 1024, "%s/tests/data/adapter/%s", root ? root : ".", name);
    return path;
}

/* What adapters and conversations are tried with, open before memory is counted. */
static pith_session *adapted;
static const pith_model *adapted_model;

static pith_status use_adapter(const char *path, pith_load load, pith_error *error) {
    pith_adapter *adapter = NULL;
    (void)load;
    pith_status status = pith_adapter_open(adapted_model, path, NULL, &adapter, error);
    if (status == PITH_OK) status = pith_session_set_adapters(adapted, &adapter, NULL, 1, error);
    pith_adapter_free(adapter);
    if (status == PITH_OK) status = pith_session_set_adapters(adapted, NULL, NULL, 0, error);
    return status;
}

typedef pith_status (*use_function)(const char *path, pith_load load, pith_error *error);

static void each_request_of(use_function use, const char *path, pith_load load);

static void adapters(void **state) {
    char path[1024];
    pith_model *model = NULL;
    pith_engine *engine = NULL;
    (void)state;
    assert_int_equal(pith_model_open(adapter_data("llama.gguf", path), NULL, &model, NULL),
                     PITH_OK);
    assert_int_equal(pith_engine_new(model, NULL, &engine, NULL), PITH_OK);
    assert_int_equal(pith_session_new(engine, &adapted, NULL), PITH_OK);
    adapted_model = model;
    each_request_of(use_adapter, adapter_data("lora-b.gguf", path), PITH_LOAD_AUTO);
    each_request_of(use_adapter, adapter_data("lora-embd.gguf", path), PITH_LOAD_AUTO);
    each_request_of(use_adapter, adapter_data("peft-a", path), PITH_LOAD_AUTO);
    pith_session_free(adapted);
    pith_engine_free(engine);
    pith_model_close(model);
}

static pith_status use_conversation(const char *path, pith_load load, pith_error *error) {
    static const char context[] =
        "{\"messages\":[{\"role\":\"system\",\"content\":\"be kind\"},"
        "{\"role\":\"user\",\"content\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"},"
        "{\"role\":\"assistant\",\"content\":"
        "\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"},"
        "{\"role\":\"user\",\"content\":\"cccccccccccccccccccccccccccccccccccccccccccccccccccc\"}]"
        "}";
    pith_conversation_options options = {
        .size = sizeof options,
        .max_tokens = 8,
        .template_text = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
                         "{% if add_generation_prompt %}<assistant>{% endif %}"};
    pith_conversation *shorter = NULL;
    (void)path, (void)load;
    pith_status status = pith_conversation_fit(adapted, context, &options, &shorter, error);
    if (status == PITH_OK) assert_true(pith_conversation_describe(shorter).n_summary > 0);
    pith_conversation_free(shorter);
    return status;
}

static void conversations(void **state) {
    char path[1024];
    pith_model *model = NULL;
    pith_engine *engine = NULL;
    pith_engine_options options = {.size = sizeof options, .n_ctx = 320, .n_threads = 1};
    (void)state;
    assert_int_equal(pith_model_open(golden("gemma3.gguf", path), NULL, &model, NULL), PITH_OK);
    assert_int_equal(pith_engine_new(model, &options, &engine, NULL), PITH_OK);
    assert_int_equal(pith_session_new(engine, &adapted, NULL), PITH_OK);
    /* what is asked for once is there then */
    assert_int_equal(use_conversation(NULL, PITH_LOAD_AUTO, NULL), PITH_OK);
    each_request_of(use_conversation, "/conversation", PITH_LOAD_AUTO);
    pith_session_free(adapted);
    pith_engine_free(engine);
    pith_model_close(model);
}

static void each_request_fails_once(const char *name, pith_load load) {
    char path[1024];
    each_request_of(use_model, golden(name, path), load);
}

static void each_request_of(use_function use, const char *path, pith_load load) {
    const char *name = strrchr(path, '/') + 1;
    pith_error error = {PITH_OK, ""};
    memory_watch_reset(0);
    if (use(path, load, &error) != PITH_OK) fail_msg("%s", error.text);
    uint64_t n_requests = memory_watch.n_requests, n_refused = 0;
    assert_true(n_requests > 20);
    for (uint64_t n = 1; n <= n_requests; n++) {
        memory_watch_reset(n);
        pith_status status = use(path, load, &error);
        uint64_t n_seen = memory_watch.n_requests;
        memory_watch_reset(0);
        /* PITH_OK: somebody asked for more than was needed, or for a mapping and can do without. */
        if (status != PITH_OK && status != PITH_ERROR_MEMORY) {
            fail_msg("request %llu of %llu: status %d (%s)", (unsigned long long)n,
                     (unsigned long long)n_requests, status, error.text);
        }
        assert_true(n_seen >= n);
        n_refused += status != PITH_OK;
    }
    printf("%s: %llu requests, %llu refusals told\n", name, (unsigned long long)n_requests,
           (unsigned long long)n_refused);
    assert_true(n_refused * 10 > n_requests * 9);
}

static void packed(void **state) {
    (void)state;
    each_request_fails_once("llama-moe.gguf", PITH_LOAD_PACK);
}

static void mapped(void **state) {
    (void)state;
    each_request_fails_once("qwen2-q8_0.gguf", PITH_LOAD_MMAP);
}

typedef struct counter {
    uint64_t at_first;
    size_t n_calls;
} counter;

static int count_requests(void *user, int32_t id, const char *text, size_t size) {
    counter *c = user;
    (void)id, (void)text, (void)size;
    if (c->n_calls++ == 0)
        c->at_first = memory_watch.n_requests;
    else if (memory_watch.n_requests != c->at_first)
        c->at_first = UINT64_MAX;
    return 0;
}

static void tokens_ask_for_nothing(void **state) {
    char path[1024];
    const char *stops[] = {"never", "\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC"};
    counter c = {0, 0};
    pith_model *model = NULL;
    pith_engine *engine = NULL;
    pith_session *session = NULL;
    pith_sampler *sampler = NULL;
    pith_sampler_options sampling = {.size = sizeof sampling,
                                     .temperature = 1.5f,
                                     .top_k = 40,
                                     .top_p = 0.95f,
                                     .repeat_penalty = 1.1f,
                                     .seed = 5};
    const char *const banned[] = {"e", "aaa"};
    pith_generate_options reply = {.size = sizeof reply,
                                   .max_tokens = 100,
                                   .stops = stops,
                                   .n_stops = 2,
                                   .ignore_end = true,
                                   .show_control = true,
                                   .on_text = count_requests,
                                   .user = &c,
                                   .banned = banned,
                                   .n_banned = 2};
    pith_generation made;
    int32_t ids[2] = {1, 2};
    (void)state;
    assert_int_equal(pith_model_open(golden("gemma3.gguf", path), NULL, &model, NULL), PITH_OK);
    assert_int_equal(pith_engine_new(model, NULL, &engine, NULL), PITH_OK);
    assert_int_equal(pith_session_new(engine, &session, NULL), PITH_OK);
    assert_int_equal(pith_sampler_new(model, &sampling, &sampler, NULL), PITH_OK);
    assert_int_equal(pith_generate(session, sampler, ids, 2, &reply, &made, NULL), PITH_OK);
    assert_int_equal(made.n_predicted, 100);
    assert_true(c.n_calls >= 100);
    assert_true(c.at_first != UINT64_MAX);
    pith_sampler_free(sampler);
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
}

/* An estimate of sizes, and of speeds by figures. */
static pith_status estimate(const char *path, pith_error *error) {
    pith_file *file = NULL;
    pith_fit fit;
    pith_device device = {.size = sizeof device, .bandwidth = 60e9, .int8_ops = 2e12};
    pith_fit_options options = {.size = sizeof options, .device = &device, .n_threads = 1};
    pith_status status = pith_file_open_header(path, &file, error);
    if (status == PITH_OK) status = pith_file_fit(file, &options, &fit, error);
    if (status == PITH_OK && !fit.runs) fail_msg("notes: %s", fit.notes);
    pith_file_close(file);
    return status;
}

static void estimates(void **state) {
    char path[1024];
    pith_error error = {PITH_OK, ""};
    (void)state;
    golden("llama-q4_k.gguf", path);
    memory_watch_reset(0);
    assert_int_equal(estimate(path, &error), PITH_OK);
    uint64_t n_requests = memory_watch.n_requests, n_refused = 0;
    for (uint64_t n = 1; n <= n_requests; n++) {
        memory_watch_reset(n);
        pith_status status = estimate(path, &error);
        memory_watch_reset(0);
        /* PITH_OK: advice or a row of the table of contexts may lack. */
        if (status != PITH_OK && status != PITH_ERROR_MEMORY)
            fail_msg("request %llu: status %d (%s)", (unsigned long long)n, status, error.text);
        n_refused += status != PITH_OK;
    }
    assert_true(n_requests > 20 && n_refused > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed),    cmocka_unit_test(mapped),
        cmocka_unit_test(adapters),  cmocka_unit_test(tokens_ask_for_nothing),
        cmocka_unit_test(estimates), cmocka_unit_test(conversations),
    };
    return cmocka_run_group_tests_name("failing memory", tests, NULL, NULL);
}
