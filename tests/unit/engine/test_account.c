/* SPDX-License-Identifier: Apache-2.0
 * Promise: an engine's options are held against published limits and the model's training
 * context, its memory is known before it is made, and a refusal says both numbers and what would
 * fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "engine/engine.h"
#include "support/changed_model.h"

static pith_model *model;

static int open_model(void **state) {
    char path[1024];
    pith_gguf *gguf = NULL;
    uint32_t features = 0;
    (void)state;
    if (pith_cpu_features(&features, NULL) != PITH_OK) return 1;
    if (pith_gguf_open_path(golden_path("llama-q4_0.gguf", path), &gguf, NULL) != PITH_OK) return 1;
    return pith_model_load(gguf, NULL, features, &model, NULL) != PITH_OK;
}

static int close_model(void **state) {
    (void)state;
    pith_model_free(model);
    return 0;
}

/* Opens with the options and expects a status; said: part of the error's text. */
static pith_engine_info check(pith_engine_options options, pith_status expected, const char *said) {
    pith_engine *engine = NULL;
    pith_error error = {0};
    pith_engine_info info = {0};
    options.size = sizeof options;
    pith_status status = pith_engine_open(model, &options, &engine, &error);
    if (status != expected) fail_msg("status %d (%s), expected %d", status, error.text, expected);
    if (said && !strstr(error.text, said)) fail_msg("\"%s\" does not say \"%s\"", error.text, said);
    if (engine) info = pith_engine_get_info(engine);
    pith_engine_close(engine);
    return info;
}

static void defaults(void **state) {
    (void)state;
    pith_engine_info info = check((pith_engine_options){0}, PITH_OK, NULL);
    assert_int_equal(info.n_ctx, 512); /* the model's, which is less than 4096 */
    assert_int_equal(info.n_sessions, 1);
    assert_int_equal(info.step_limit, 256);
    assert_true(info.n_threads >= 1);
    assert_true(info.kv_bytes > 0 && info.workspace_bytes > 0);
}

static void limits(void **state) {
    (void)state;
    check((pith_engine_options){.n_ctx = 512}, PITH_OK, NULL);
    check((pith_engine_options){.n_ctx = 513}, PITH_ERROR_LIMIT, "513 tokens");
    check((pith_engine_options){.n_ctx = 513}, PITH_ERROR_LIMIT, "512");
    check((pith_engine_options){.n_ctx = -1}, PITH_ERROR_ARGUMENT, "n_ctx");
    check((pith_engine_options){.n_ctx = 1}, PITH_OK, NULL);
    check((pith_engine_options){.step_limit = -1}, PITH_ERROR_ARGUMENT, "step_limit");
    check((pith_engine_options){.step_limit = PITH_ENGINE_MAX_STEP + 1}, PITH_ERROR_ARGUMENT,
          "step_limit");
    assert_int_equal(check((pith_engine_options){.step_limit = 8192}, PITH_OK, NULL).step_limit,
                     512);
    check((pith_engine_options){.n_sessions = PITH_ENGINE_MAX_SESSIONS + 1}, PITH_ERROR_ARGUMENT,
          "n_sessions");
    check((pith_engine_options){.n_threads = -2}, PITH_ERROR_ARGUMENT, "n_threads");
    check((pith_engine_options){.kv_type = (pith_kv_type)9}, PITH_ERROR_ARGUMENT, "kv_type");
    check((pith_engine_options){.precision = (pith_precision)7}, PITH_ERROR_ARGUMENT, "precision");
}

static void storage(void **state) {
    (void)state;
    assert_string_equal(check((pith_engine_options){0}, PITH_OK, NULL).kv_type, "f16");
    assert_string_equal(
        check((pith_engine_options){.precision = PITH_PRECISION_FULL}, PITH_OK, NULL).kv_type,
        "f32");
    pith_engine_info half = check((pith_engine_options){.kv_type = PITH_KV_F16}, PITH_OK, NULL);
    pith_engine_info whole = check((pith_engine_options){.kv_type = PITH_KV_F32}, PITH_OK, NULL);
    assert_true(whole.kv_bytes > half.kv_bytes);
}

static void ceiling(void **state) {
    pith_engine_options options = {.size = sizeof options, .n_sessions = 64};
    uint64_t bytes = 0;
    (void)state;
    assert_int_equal(pith_engine_measure(model, &options, &bytes, NULL), PITH_OK);
    pith_engine_info info = check(options, PITH_OK, NULL);
    assert_true(bytes == info.kv_bytes + info.workspace_bytes);
    options.memory_limit = bytes;
    check(options, PITH_OK, NULL);
    options.memory_limit = bytes - 1;
    check(options, PITH_ERROR_MEMORY, "a context of 256 tokens fits");
    options.memory_limit = 1;
    check(options, PITH_ERROR_MEMORY, "no shorter context fits");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(limits),
        cmocka_unit_test(storage),
        cmocka_unit_test(ceiling),
    };
    return cmocka_run_group_tests_name("account of an engine", tests, open_model, close_model);
}
