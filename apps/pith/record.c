/* SPDX-License-Identifier: Apache-2.0
 * Records of estimates and runs (record.h): what they say and how a run corrects an estimate. Where
 * they lie: kept.c, folder "fit". */
#include "pith/record.h"

#include "base/clock.h"
#include "pith/kept.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    RECORD_VERSION = 2,
    LEAST_PROMPT = 16, /* tokens: below, a time is mostly noise */
    LEAST_TOKENS = 8
};

static const double factor_limit = 5.0;
static const double memory_limit = 1.0e9; /* bytes that estimates of the program may be off by */

/* ---- Corrections ---- */

static double within(double value, double low, double high) {
    return !(value > low) ? low : value > high ? high : value;
}

/* Half of the way (in the logarithm), so that one odd run does not decide. */
static double corrected(double factor, double error) {
    return within(factor * sqrt(within(1 + error, 0.1, 10)), 1 / factor_limit, factor_limit);
}

/* Compares the last run with the estimate, where both are there. */
static void compare(pith_cli_record *r, double all_bytes) {
    if (!r->has_estimate) return;
    double token = pith_speed_token_ms(&r->speed, r->token_depth) * r->token_factor;
    double prompt =
        pith_speed_prompt_ms(&r->speed, r->n_prompt, r->prompt_depth) * r->prompt_factor;
    if (r->token_ms > 0 && token > 0) {
        r->token_error = r->token_ms / token - 1;
        double told = within(1 + r->token_error, r->token_fast, r->token_slow);
        r->token_factor = corrected(r->token_factor, (1 + r->token_error) / told - 1);
    }
    if (r->prompt_ms > 0 && prompt > 0) {
        r->prompt_error = r->prompt_ms / prompt - 1;
        r->prompt_factor = corrected(r->prompt_factor, r->prompt_error);
    }
    if (r->memory_more > 0) {
        double off = r->memory_more - ((double)r->other_bytes + r->other_more);
        if (all_bytes - off > 0) r->memory_error = off / (all_bytes - off);
        r->other_more = within(r->other_more + off / 2, -memory_limit, memory_limit);
    }
}

/* ---- Files ---- */

static bool read_speed(const json_t *json, pith_speed_model *m) {
    return pith_cli_kept_number(json, "token_ns", &m->token_ns) &&
           pith_cli_kept_number(json, "token_kv_ns", &m->token_kv_ns) &&
           pith_cli_kept_count(json, "short_rows", &m->short_rows) &&
           pith_cli_kept_number(json, "short_ns", &m->short_ns) &&
           pith_cli_kept_count(json, "step_rows", &m->step_rows) &&
           pith_cli_kept_number(json, "step_ns", &m->step_ns) &&
           pith_cli_kept_number(json, "row_kv_ns", &m->row_kv_ns) &&
           pith_cli_kept_count(json, "window", &m->window) &&
           pith_cli_kept_number(json, "window_layers_share", &m->window_layers_share) &&
           m->short_rows >= 0 && m->step_rows >= m->short_rows &&
           (m->short_rows == 0 || m->step_rows > 0) && m->token_ns >= 0 && m->short_ns >= 0 &&
           m->step_ns >= 0 && m->token_kv_ns >= 0 && m->row_kv_ns >= 0 && m->window >= 0 &&
           m->window_layers_share >= 0 && m->window_layers_share <= 1;
}

/* false: no record that can be believed. */
static bool read_record(const json_t *json, pith_cli_record *r) {
    double version = 0, other = 0;
    if (!pith_cli_kept_number(json, "version", &version) || version != RECORD_VERSION) return false;
    r->has_estimate = json_is_object(json_object_get(json, "estimate"));
    if (r->has_estimate && (!read_speed(json_object_get(json, "estimate"), &r->speed) ||
                            !pith_cli_kept_number(json, "other_bytes", &other) || other < 0))
        return false;
    r->other_bytes = (uint64_t)other;
    return pith_cli_kept_count(json, "runs", &r->n_runs) && r->n_runs >= 0 &&
           pith_cli_kept_number(json, "token_factor", &r->token_factor) &&
           pith_cli_kept_number(json, "prompt_factor", &r->prompt_factor) &&
           pith_cli_kept_number(json, "token_fast", &r->token_fast) && r->token_fast > 0 &&
           r->token_fast <= 1 && pith_cli_kept_number(json, "token_slow", &r->token_slow) &&
           r->token_slow >= 1 && pith_cli_kept_number(json, "other_more", &r->other_more) &&
           pith_cli_kept_number(json, "token_error", &r->token_error) &&
           pith_cli_kept_number(json, "prompt_error", &r->prompt_error) &&
           pith_cli_kept_number(json, "memory_error", &r->memory_error) &&
           pith_cli_kept_count(json, "n_prompt", &r->n_prompt) && r->n_prompt >= 0 &&
           pith_cli_kept_count(json, "prompt_depth", &r->prompt_depth) &&
           pith_cli_kept_count(json, "token_depth", &r->token_depth) &&
           pith_cli_kept_number(json, "prompt_ms", &r->prompt_ms) &&
           pith_cli_kept_number(json, "token_ms", &r->token_ms) &&
           pith_cli_kept_number(json, "memory_more", &r->memory_more) &&
           r->token_factor >= 1 / factor_limit && r->token_factor <= factor_limit &&
           r->prompt_factor >= 1 / factor_limit && r->prompt_factor <= factor_limit &&
           fabs(r->other_more) <= memory_limit;
}

static json_t *write_speed(const pith_speed_model *m) {
    return json_pack("{s:f, s:f, s:i, s:f, s:i, s:f, s:f, s:i, s:f}", "token_ns", m->token_ns,
                     "token_kv_ns", m->token_kv_ns, "short_rows", (int)m->short_rows, "short_ns",
                     m->short_ns, "step_rows", (int)m->step_rows, "step_ns", m->step_ns,
                     "row_kv_ns", m->row_kv_ns, "window", (int)m->window, "window_layers_share",
                     m->window_layers_share);
}

static json_t *write_record(const pith_cli_record *r) {
    json_t *json = json_pack(
        "{s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:i, s:i, s:f, s:f, s:f, s:f}", "version",
        RECORD_VERSION, "runs", (int)r->n_runs, "token_factor", r->token_factor, "prompt_factor",
        r->prompt_factor, "other_more", r->other_more, "token_error", r->token_error,
        "prompt_error", r->prompt_error, "memory_error", r->memory_error, "n_prompt",
        (int)r->n_prompt, "prompt_depth", (int)r->prompt_depth, "token_depth", (int)r->token_depth,
        "prompt_ms", r->prompt_ms, "token_ms", r->token_ms, "memory_more", r->memory_more,
        "other_bytes", (double)r->other_bytes);
    json_object_set_new(json, "token_fast", json_real(r->token_fast));
    json_object_set_new(json, "token_slow", json_real(r->token_slow));
    if (r->has_estimate) json_object_set_new(json, "estimate", write_speed(&r->speed));
    return json;
}

/* The text that names a record; false: none is kept. */
static bool name_record(const pith_cli_record_key *key, pith_buffer *text) {
    char machine[192];
    if (!key->content_key) return false;
    pith_system_name(machine, sizeof machine);
    pith_buffer_append_format(text, "%s|%d|%d|%d|%s|%016" PRIx64, machine, (int)key->n_threads,
                              (int)key->step_limit, key->load, key->kv_type, key->content_key);
    if (key->decode_threads && key->decode_threads != key->n_threads)
        pith_buffer_append_format(text, "|%d", (int)key->decode_threads);
    return !text->failed;
}

void pith_cli_record_load(const pith_cli_record_key *key, pith_cli_record *out) {
    const pith_cli_record none = {
        .token_factor = 1, .prompt_factor = 1, .token_fast = 1, .token_slow = 1, .token_depth = -1};
    pith_buffer name = {0};
    *out = none;
    json_t *json = name_record(key, &name) ? pith_cli_kept_read("fit", name.data) : NULL;
    if (json && !read_record(json, out)) *out = none;
    json_decref(json);
    pith_buffer_deinit(&name);
}

static void save(const pith_cli_record_key *key, const pith_cli_record *record) {
    pith_buffer name = {0};
    if (name_record(key, &name)) pith_cli_kept_write("fit", name.data, write_record(record));
    pith_buffer_deinit(&name);
}

bool pith_cli_record_is_for(const pith_cli_model *values) {
    return !values->exact && values->precision == PITH_PRECISION_NORMAL &&
           values->step_limit == 0 && values->loras.n + values->controls.n == 0;
}

void pith_cli_record_estimate(const pith_cli_record_key *key, const pith_fit *fit,
                              pith_cli_record *record) {
    bool is_first = !record->has_estimate && record->n_runs > 0;
    record->has_estimate = fit->measured;
    record->speed = fit->speed;
    record->other_bytes = fit->other_bytes;
    if (!fit->measured) return;
    if (is_first) compare(record, (double)fit->total_bytes);
    save(key, record);
}

void pith_cli_record_run(const pith_cli_measure *m) {
    pith_model_info model = pith_model_describe(m->model);
    pith_engine_info engine = pith_engine_describe(m->engine);
    pith_cli_record_key key = {.content_key = model.content_key,
                               .n_threads = engine.n_threads,
                               .decode_threads = engine.decode_threads,
                               .step_limit = 0,
                               .load = (int)model.load,
                               .kv_type = engine.kv_type};
    pith_cli_record record;
    bool has_prompt = m->n_prompt >= LEAST_PROMPT, has_token = m->n_token >= LEAST_TOKENS;
    double known = (double)(model.weight_bytes + engine.kv_bytes + engine.workspace_bytes);
    if (!has_prompt && !has_token) return;
    pith_cli_record_load(&key, &record);
    record.n_runs++;
    record.n_prompt = has_prompt ? m->n_prompt : 0;
    record.prompt_depth = m->prompt_depth;
    record.prompt_ms = has_prompt ? m->prompt_ms : 0;
    record.token_depth = has_token ? m->token_depth : -1;
    record.token_ms = has_token ? m->token_ms : 0;
    record.memory_more = 0; /* mapped pages that happen to be there say nothing */
    if (model.load == PITH_LOAD_PACK && (double)m->peak_bytes > known)
        record.memory_more = (double)m->peak_bytes - known;
    compare(&record, (double)m->peak_bytes);
    save(&key, &record);
}

void pith_cli_record_reply(const pith_model *model, const pith_engine *engine,
                           const pith_generation *made) {
    if (made->n_dropped > 0) return; /* what was read is not what was given */
    /* Steps with guesses are no measure of a token's time, nor are those made again. */
    bool is_plain = made->n_drafted == 0 && made->n_forced == 0 && made->n_rewinds == 0;
    int32_t n_token = made->n_predicted > 1 && is_plain ? (int32_t)made->n_predicted - 1 : 0;
    /* Nor is what came from the disk one of reading. */
    bool was_read = made->cache_source != PITH_CACHE_DISK;
    pith_cli_measure measure = {.model = model,
                                .engine = engine,
                                .n_prompt =
                                    was_read ? (int32_t)(made->n_prompt - made->n_cached) : 0,
                                .prompt_depth = (int32_t)made->n_cached,
                                .prompt_ms = made->prompt_ms,
                                .n_token = n_token,
                                .token_depth = (int32_t)made->n_prompt + n_token / 2,
                                .token_ms = n_token > 0 ? made->predicted_ms / n_token : 0,
                                .peak_bytes = pith_memory_peak()};
    pith_cli_record_run(&measure);
}
