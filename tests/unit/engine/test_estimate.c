/* SPDX-License-Identifier: Apache-2.0
 * Promise: an estimate's sizes are those that a load and an engine then have, from the header
 * alone; what fits and what would fit changes exactly at the limit; figures of a device give the
 * speeds that paper gives; an architecture that this build does not run is still counted; the
 * rehearsal gives every figure for every family. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "engine/estimate.h"
#include "engine/rehearsal.h"
#include "support/changed_model.h"

#include <math.h>

#define GB 1e9

static uint32_t features;

static pith_gguf *open_golden(const char *name) {
    char path[1024];
    pith_gguf *gguf = NULL;
    pith_error error = {PITH_OK, ""};
    if (pith_gguf_open_path(golden_path(name, path), &gguf, &error) != PITH_OK)
        fail_msg("%s", error.text);
    return gguf;
}

static pith_fit estimate(const pith_gguf *gguf, pith_fit_options options) {
    pith_fit fit;
    pith_error error = {PITH_OK, ""};
    options.size = sizeof options;
    if (pith_estimate_file(gguf, &options, &fit, &error) != PITH_OK) fail_msg("%s", error.text);
    return fit;
}

/* ---- Paper: speeds of the course's examples ---- */

static double tokens_a_second(double bytes, double bandwidth, double share, bool ceiling) {
    pith_device device = {.bandwidth = bandwidth, .bandwidth_share = share};
    pith_work work = {.token_bytes = bytes};
    pith_fit fit = {.architecture = ""};
    pith_estimate_by_figures(&device, &work, &fit);
    return ceiling ? fit.decode_ceiling : 1e3 / pith_speed_token_ms(&fit.speed, 0);
}

static void course_figures(void **state) {
    static const struct {
        double bytes, bandwidth, share, expected, within;
        bool ceiling;
    } rows[] = {
        {4.58 * 1073741824.0, 3350 * GB, 0.7, 680, 5, true},
        {4.58 * 1073741824.0, 546 * GB, 0.7, 110, 2, true},
        {4.58 * 1073741824.0, 273 * GB, 0.7, 55, 1, true},
        {4.58 * 1073741824.0, 153 * GB, 0.7, 31, 1, true},
        {4.5 * GB, 60 * GB, 0.7, 9, 0.5, false},
        {4.5 * GB, 120 * GB, 0.7, 19, 0.5, false},
        {4.5 * GB, 400 * GB, 0.7, 62, 0.5, false},
        {4.5 * GB, 1008 * GB, 0.7, 157, 0.5, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double got =
            tokens_a_second(rows[i].bytes, rows[i].bandwidth, rows[i].share, rows[i].ceiling);
        if (fabs(got - rows[i].expected) > rows[i].within)
            fail_msg("row %zu: %g, expected %g", i, got, rows[i].expected);
    }
    assert_true(tokens_a_second(3e9 * 8.5 / 8, 60 * GB, 0, false) < 20); /* 0: 70 % */
    assert_true(tokens_a_second(3e9 * 4.5 / 8, 60 * GB, 0, false) > 20);
}

static void devices(void **state) {
    pith_device d, other;
    size_t n = 0;
    (void)state;
    for (; pith_device_find(n, &d); n++) {
        assert_true(d.size == sizeof d && d.name[0] && d.title[0] && d.source[0]);
        assert_true(d.bandwidth >= 1e9 && d.memory_bytes >= (uint64_t)1 << 30);
        assert_true(d.app_share > 0.3 && d.app_share < 1);
        for (size_t i = 0; i < n && pith_device_find(i, &other); i++)
            assert_string_not_equal(d.name, other.name);
    }
    assert_true(n >= 25);
}

/* ---- The model of steps ---- */

static void steps(void **state) {
    pith_speed_model m = {.token_ns = 1e6,
                          .token_kv_ns = 100,
                          .short_rows = 32,
                          .short_ns = 2e6,
                          .step_rows = 256,
                          .step_ns = 9e6};
    (void)state;
    assert_true(fabs(pith_speed_token_ms(&m, 0) - 1) < 1e-9);
    assert_true(fabs(pith_speed_token_ms(&m, 10000) - 2) < 1e-9);
    assert_true(fabs(pith_speed_prompt_ms(&m, 1, 0) - 1) < 1e-9);
    assert_true(fabs(pith_speed_prompt_ms(&m, 32, 0) - 2) < 1e-9);
    assert_true(fabs(pith_speed_prompt_ms(&m, 256, 0) - 9) < 1e-9);
    assert_true(fabs(pith_speed_prompt_ms(&m, 512, 0) - 18) < 1e-9);
    assert_true(fabs(pith_speed_prompt_ms(&m, 288, 0) - 11) < 1e-9);
    assert_true(pith_speed_prompt_ms(&m, 0, 0) == 0 && pith_speed_token_ms(&m, -1) == 0);
    m.row_kv_ns = 1;
    assert_true(fabs(pith_speed_prompt_ms(&m, 256, 1000) - (9e6 + 256 * 1127.5) * 1e-6) < 1e-9);
    m.window = 100;
    m.window_layers_share = 0.5; /* half of the layers see 100 tokens at most */
    assert_true(fabs(pith_speed_token_ms(&m, 10000) - (1e6 + 100 * 5050.0) * 1e-6) < 1e-9);
    m.short_rows = 0;
    assert_true(pith_speed_prompt_ms(&m, 16, 0) == 0);
}

/* A token at another bandwidth, and what cannot be said of one. */
static void tokens_at_another_bandwidth(void **state) {
    pith_fit fit = {.measured = true,
                    .bandwidth = 60 * GB,
                    .token_bytes = 0.6 * GB,
                    .speed = {.token_ns = 12e6, .token_kv_ns = 1000}};
    (void)state;
    fit.context_token_bytes = 60000;
    assert_true(fabs(pith_fit_token_ms(&fit, 0, 60 * GB) - 12) < 1e-9);
    assert_true(fabs(pith_fit_token_ms(&fit, 0, 30 * GB) - (12 + 0.8 * 10)) < 1e-9);
    assert_true(fabs(pith_fit_token_ms(&fit, 0, 120 * GB) - (12 - 0.8 * 5)) < 1e-9);
    assert_true(fabs(pith_fit_token_ms(&fit, 1000, 30 * GB) - (13 + 0.8 * 11)) < 1e-9);
    assert_true(fabs(pith_fit_token_ms(&fit, 0, 1e30) - 4) < 1e-9);
    fit.speed.token_ns = 5e6; /* faster than the bandwidth says: never below its own share */
    assert_true(fabs(pith_fit_token_ms(&fit, 0, 1e30) - 1) < 1e-9);
    assert_true(fabs(pith_fit_token_ms(&fit, 0, 0) - 5) < 1e-9);
    assert_true(fabs(pith_fit_token_ms(&fit, 0, NAN) - 5) < 1e-9);
    assert_true(pith_fit_token_ms(&fit, -1, 1e9) == 0 && pith_fit_token_ms(NULL, 0, 1e9) == 0);
    fit.measured = false; /* figures of a device: nothing was measured beside them */
    assert_true(fabs(pith_fit_token_ms(&fit, 0, 30 * GB) - 5) < 1e-9);
}

/* The same prompt, a step after the other. */
static double prompt_ms(const pith_speed_model *m, int32_t n_prompt, int32_t depth) {
    pith_speed_model flat = *m;
    double sum = 0;
    flat.row_kv_ns = 0;
    for (int32_t done = 0; done < n_prompt; done += m->step_rows) {
        int32_t n = n_prompt - done < m->step_rows ? n_prompt - done : m->step_rows;
        double middle = depth + done + (n - 1) / 2.0;
        double seen = m->window > 0 && middle > m->window ? m->window : middle;
        double share = m->window > 0 ? m->window_layers_share : 0;
        sum += pith_speed_prompt_ms(&flat, n, 0) +
               m->row_kv_ns * n * (middle * (1 - share) + seen * share) * 1e-6;
    }
    return sum;
}

static void steps_are_added_up(void **state) {
    static const int32_t windows[] = {0, 1, 30, 100, 127, 128, 129, 4096};
    static const int32_t lengths[] = {1, 15, 16, 17, 33, 100, 128, 1000};
    static const int32_t depths[] = {0, 1, 90, 4096};
    (void)state;
    for (size_t i = 0; i < 8 * 8 * 4; i++) {
        pith_speed_model m = {.token_ns = 1e3,
                              .short_rows = 4,
                              .short_ns = 2e3,
                              .step_rows = 16,
                              .step_ns = 5e3,
                              .row_kv_ns = 7,
                              .window = windows[i % 8],
                              .window_layers_share = 0.75};
        int32_t n = lengths[i / 8 % 8], depth = depths[i / 64];
        double got = pith_speed_prompt_ms(&m, n, depth), expected = prompt_ms(&m, n, depth);
        if (fabs(got - expected) > 1e-9 * expected)
            fail_msg("window %d, %d tokens at %d: %g, expected %g", m.window, n, depth, got,
                     expected);
    }
}

/* A caller's model may be anything; the time it takes must not be. */
static void steps_without_an_end(void **state) {
    pith_speed_model m = {.token_ns = 1, .short_rows = 1, .short_ns = 1};
    (void)state;
    assert_true(pith_speed_prompt_ms(&m, 100, 0) == 0); /* steps of no rows */
    m.step_rows = -3;
    assert_true(pith_speed_prompt_ms(&m, 100, 0) == 0);
    m.step_rows = 1;
    m.step_ns = 1;
    assert_true(fabs(pith_speed_prompt_ms(&m, INT32_MAX, INT32_MAX) - INT32_MAX * 1e-6) < 1e-3);
}

/* ---- Sizes ---- */

static void check_sizes(const char *name, pith_load load, pith_kv_type kv) {
    pith_gguf *gguf = open_golden(name);
    pith_fit fit = estimate(
        gguf, (pith_fit_options){.load = load, .kv_type = kv, .n_threads = 2, .no_probe = true});
    pith_model *model = NULL;
    pith_model_options options = {.size = sizeof options, .load = load};
    assert_int_equal(pith_model_load(gguf, &options, features, &model, NULL), PITH_OK);
    pith_engine_options settings = {.size = sizeof settings, .kv_type = kv, .n_threads = 2};
    uint64_t bytes = 0;
    assert_int_equal(pith_engine_measure(model, &settings, &bytes, NULL), PITH_OK);
    assert_true(fit.runs && fit.whole && fit.fits);
    assert_true(fit.weight_bytes == pith_model_get_info(model).weight_bytes);
    assert_true(fit.kv_bytes + fit.workspace_bytes == bytes);
    assert_true(fit.n_parameters == pith_model_get_info(model).n_parameters);
    assert_true(fit.total_bytes ==
                fit.weight_bytes + fit.kv_bytes + fit.workspace_bytes + fit.other_bytes);
    assert_int_equal(fit.load, load);
    pith_model_free(model);
}

static void sizes(void **state) {
    (void)state;
    check_sizes("llama-q4_k.gguf", PITH_LOAD_PACK, PITH_KV_F16);
    check_sizes("llama-q4_0.gguf", PITH_LOAD_MMAP, PITH_KV_F32);
    check_sizes("llama-moe.gguf", PITH_LOAD_PACK, PITH_KV_F32);
    check_sizes("gemma3.gguf", PITH_LOAD_PACK, PITH_KV_AUTO);
    check_sizes("qwen2-q8_0.gguf", PITH_LOAD_PACK, PITH_KV_F16);
}

/* Bytes of a token, counted once more by hand. */
static void work_of_a_token(void **state) {
    pith_work work;
    (void)state;
    pith_gguf *gguf = open_golden("llama-moe.gguf");
    pith_fit_options none = {.no_probe = true};
    pith_estimate_count_work(gguf, &work);
    uint32_t n_expert = 0, n_used = 0;
    pith_gguf_get_u32(gguf, "llama.expert_count", 1, 999, &n_expert, NULL, NULL);
    pith_gguf_get_u32(gguf, "llama.expert_used_count", 1, 999, &n_used, NULL, NULL);
    assert_true(n_expert > n_used && n_used > 0);
    double all = 0;
    bool tied = !pith_gguf_tensor_find(gguf, "output.weight");
    for (size_t i = 0; i < pith_gguf_n_tensors(gguf); i++) {
        const pith_gguf_tensor *t = pith_gguf_tensor_at(gguf, i);
        double bytes = (double)t->bytes;
        if (strstr(t->name.data, "_exps")) bytes = bytes * n_used / n_expert;
        if (!tied && pith_span_is(t->name, "token_embd.weight")) bytes /= (double)t->ne[1];
        all += bytes;
    }
    assert_true(fabs(work.token_bytes - all) < 0.5);
    assert_true(work.layer_macs > 0 && work.output_macs > 0);
    pith_fit fit = estimate(gguf, none);
    assert_true(fit.token_bytes == work.token_bytes);
    pith_gguf_close(gguf);
}

static void limits(void **state) {
    pith_gguf *gguf = open_golden("llama-q4_0.gguf");
    pith_fit_options options = {.load = PITH_LOAD_PACK, .no_probe = true, .n_threads = 1};
    (void)state;
    pith_fit fit = estimate(gguf, options);
    uint64_t need = fit.weight_bytes + fit.kv_bytes + fit.workspace_bytes;
    assert_int_equal(fit.longest_ctx, fit.n_ctx_train);
    options.memory_limit = need;
    assert_true(estimate(gguf, options).fits);
    options.memory_limit = need - 1;
    fit = estimate(gguf, options);
    assert_false(fit.fits);
    assert_true(fit.longest_ctx > 0 && fit.longest_ctx < 512);
    assert_true(fit.longest_ctx_mmap == 512);
    assert_true(fit.bits_allowed > 0 && fit.bits_allowed < fit.bits_per_weight);
    options.n_ctx = fit.longest_ctx;
    assert_true(estimate(gguf, options).fits);
    options.n_ctx += 64;
    assert_false(estimate(gguf, options).fits);
    options.n_ctx = 0;
    options.load = PITH_LOAD_AUTO; /* chooses what stays below the ceiling */
    fit = estimate(gguf, options);
    assert_true(fit.fits && fit.load == PITH_LOAD_MMAP);
    options.memory_limit = need;
    assert_int_equal(estimate(gguf, options).load, PITH_LOAD_PACK);
    options.memory_limit = 1;
    fit = estimate(gguf, options);
    assert_true(!fit.fits && fit.longest_ctx == 0 && fit.bits_allowed == 0);
    pith_gguf_close(gguf);
}

static void wrong_options(void **state) {
    pith_gguf *gguf = open_golden("llama-q4_0.gguf");
    pith_fit fit;
    pith_error error = {PITH_OK, ""};
    pith_fit_options options = {.size = sizeof options, .no_probe = true, .n_ctx = 513};
    (void)state;
    assert_int_equal(pith_estimate_file(gguf, &options, &fit, &error), PITH_ERROR_LIMIT);
    assert_non_null(strstr(error.text, "512"));
    options.n_ctx = 512;
    assert_int_equal(pith_estimate_file(gguf, &options, &fit, NULL), PITH_OK);
    options.load = (pith_load)3;
    assert_int_equal(pith_estimate_file(gguf, &options, &fit, NULL), PITH_ERROR_ARGUMENT);
    options.load = PITH_LOAD_AUTO;
    options.n_threads = -1;
    assert_int_equal(pith_estimate_file(gguf, &options, &fit, NULL), PITH_ERROR_ARGUMENT);
    pith_gguf_close(gguf);
}

static void unknown_architecture(void **state) {
    char from[1024], to[1024];
    const change changes[] = {{SET_TEXT, "general.architecture", 0, "novel"},
                              {SET_U32, "novel.block_count", 2, NULL},
                              {SET_U32, "novel.context_length", 512, NULL},
                              {SET_U32, "novel.embedding_length", 256, NULL},
                              {SET_U32, "novel.attention.head_count", 4, NULL},
                              {SET_U32, "novel.attention.head_count_kv", 2, NULL}};
    pith_gguf *gguf = NULL;
    (void)state;
    golden_path("llama-q4_0.gguf", from);
    assert_true(changed_model_write(from, scratch_path("estimate-novel.gguf", to), changes,
                                    sizeof changes / sizeof changes[0]));
    assert_int_equal(pith_gguf_open_header(to, &gguf, NULL), PITH_OK);
    pith_device device = {.bandwidth = 60 * GB, .int8_ops = 2e12, .memory_bytes = 8u << 20};
    pith_fit fit = estimate(gguf, (pith_fit_options){.device = &device});
    assert_false(fit.runs);
    assert_non_null(strstr(fit.notes, "novel"));
    assert_true(fit.weight_bytes > 0 && fit.speed.token_ns > 0 && fit.speed.short_rows > 0);
    /* 2 layers, 2 heads of 64, keys and values in two bytes */
    assert_true(fit.context_token_bytes == 2 * 2 * 2 * 64 * 2);
    assert_true(fit.kv_bytes == 1024u * 512);
    assert_true(fit.limit_bytes <= device.memory_bytes * 7 / 10);
    pith_gguf_close(gguf);
    remove(to);
}

/* ---- Rehearsals ---- */

static void rehearse(const char *name, pith_load load) {
    pith_gguf *gguf = open_golden(name);
    pith_model *outline = NULL;
    pith_rehearsal r;
    pith_error error = {PITH_OK, ""};
    pith_engine_options options = {.size = sizeof options, .n_threads = 1, .step_limit = 64};
    assert_int_equal(pith_model_outline(gguf, load, features, &outline, &error), PITH_OK);
    if (pith_rehearse(outline, load, &options, &r, &error) != PITH_OK)
        fail_msg("%s: %s", name, error.text);
    const pith_speed_model *m = &r.speed;
    assert_true(m->token_ns > 0 && isfinite(m->token_ns));
    /* 64 and 32 rows, fewer on a slow machine */
    assert_true(m->step_ns > 0 && isfinite(m->step_ns) && m->step_rows <= 64);
    assert_true(m->short_ns > 0 && isfinite(m->short_ns) && m->short_rows <= 32);
    assert_true(m->short_rows >= 4 && m->step_rows >= m->short_rows);
    assert_true(m->token_kv_ns >= 0 && m->row_kv_ns >= 0);
    assert_true(strcmp(name, "gemma3.gguf") == 0 ? m->window > 0 && m->window_layers_share > 0
                                                 : m->window == 0);
    pith_model_free(outline);
    pith_gguf_close(gguf);
}

static void rehearsals(void **state) {
    static const char *const names[] = {
        "llama-q4_k.gguf", "llama-q4_0.gguf", "llama-bf16.gguf", "llama-moe.gguf",
        "gemma3.gguf",     "qwen2-q8_0.gguf", "llama-yarn.gguf", "llama-rope-llama3.gguf"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        rehearse(names[i], PITH_LOAD_PACK);
        rehearse(names[i], PITH_LOAD_MMAP);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(course_figures),
        cmocka_unit_test(devices),
        cmocka_unit_test(steps),
        cmocka_unit_test(tokens_at_another_bandwidth),
        cmocka_unit_test(steps_are_added_up),
        cmocka_unit_test(steps_without_an_end),
        cmocka_unit_test(sizes),
        cmocka_unit_test(work_of_a_token),
        cmocka_unit_test(limits),
        cmocka_unit_test(wrong_options),
        cmocka_unit_test(unknown_architecture),
        cmocka_unit_test(rehearsals),
    };
    if (pith_cpu_features(&features, NULL) != PITH_OK) return 1;
    return cmocka_run_group_tests_name("estimates", tests, NULL, NULL);
}
