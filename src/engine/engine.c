/* SPDX-License-Identifier: Apache-2.0
 * Making an engine: settings with their defaults, the plan, the account of memory, and only then
 * the memory itself.
 *
 * Invariant: what will be needed is known, and checked against the ceiling, before anything large
 * is made; the account (engine_account.c) and what is allocated here are the same numbers. Does
 * not run steps: session.c does. */
#include "engine/engine.h"
#include "base/memory.h"
#include "cpu/cpu.h"
#include "engine/engine_account.h"
#include "engine/prefix.h"
#include "engine/step.h"

#include <stdio.h>
#include <string.h>

/* The longest text that the detokenizer can make of one token: ill-formed bytes become U+FFFD,
 * three bytes each, and up to three bytes may have waited. */
static size_t longest_token(const pith_tokenizer *tokenizer) {
    size_t longest = 0;
    uint32_t n_tokens = tokenizer ? pith_tokenizer_size(tokenizer) : 0;
    for (uint32_t i = 0; i < n_tokens; i++) {
        size_t bytes = pith_tokenizer_bytes(tokenizer, (int32_t)i).size;
        size_t piece = pith_tokenizer_piece(tokenizer, (int32_t)i).size;
        if (bytes > longest) longest = bytes;
        if (piece > longest) longest = piece;
    }
    return 3 * (longest + 3);
}

static pith_status make_arrays(pith_engine *engine, pith_error *error) {
    size_t n = engine->n_sessions, logits = 0;
    engine->sessions = pith_alloc_zero(n, sizeof *engine->sessions);
    engine->ids = pith_size_mul(n, engine->n_ctx, &logits)
                      ? pith_alloc_array(logits, sizeof *engine->ids)
                      : NULL;
    engine->logits = pith_size_mul(n, engine->row_width, &logits)
                         ? pith_alloc_array(logits, sizeof *engine->logits)
                         : NULL;
    engine->tokens = pith_alloc_array(engine->step_limit, sizeof *engine->tokens);
    engine->positions = pith_alloc_array(engine->step_limit, sizeof *engine->positions);
    engine->sequence = pith_alloc_zero(engine->step_limit, sizeof *engine->sequence);
    engine->out_rows = pith_alloc_array(engine->step_limit, sizeof *engine->out_rows);
    engine->is_fast = pith_alloc_zero(engine->step_limit, sizeof *engine->is_fast);
    engine->tables = pith_alloc_zero(n * engine->layout.n_group, sizeof *engine->tables);
    engine->adapters = pith_alloc_zero(n, sizeof *engine->adapters);
    engine->replies = pith_alloc_zero(n, sizeof(pith_reply *));
    engine->parts = pith_alloc_zero(n, sizeof(pith_part));
    bool has_rows = engine->tokens && engine->positions && engine->sequence && engine->out_rows &&
                    engine->is_fast && engine->adapters && engine->tables && engine->replies &&
                    engine->parts;
    if (!engine->sessions || !engine->ids || !engine->logits || !has_rows) {
        return pith_fail_memory(error, "sessions", pith_engine_array_bytes(engine));
    }
    return PITH_OK;
}

/* Each session's part of the arrays, and its detokenizer. */
static pith_status make_sessions(pith_engine *engine, pith_error *error) {
    const pith_tokenizer *tokenizer = engine->model->tokenizer;
    engine->max_token_bytes = longest_token(tokenizer);
    for (uint32_t i = 0; i < engine->n_sessions; i++) {
        pith_session *session = &engine->sessions[i];
        session->engine = engine;
        session->ids = engine->ids + (size_t)i * engine->n_ctx;
        session->logits = engine->logits + (size_t)i * engine->row_width;
        pith_detok_init(&session->detok, tokenizer, false);
        if (!session->detok.text.data) {
            return pith_fail_memory(error, "text of a session", engine->max_token_bytes);
        }
    }
    return PITH_OK;
}

static pith_status prepare(pith_engine *engine, const pith_engine_options *options,
                           pith_error *error) {
    pith_status status = pith_engine_settle(engine, options, error);
    if (status != PITH_OK) return status;
    engine->plan = pith_plan_new();
    if (!engine->plan) return pith_fail_memory(error, "plan", 0);
    if (engine->embeds) pith_plan_want_states(engine->plan);
    status = pith_model_record(engine->model, engine->plan, error);
    if (status == PITH_OK) engine->row_width = pith_plan_output_width(engine->plan);
    if (status == PITH_OK) status = pith_engine_lay_out(engine, error);
    if (status == PITH_OK) status = pith_engine_account(engine, error);
    return status;
}

static pith_status make(pith_engine *engine, const pith_engine_options *options,
                        pith_error *error) {
    pith_status status = prepare(engine, options, error);
    if (status == PITH_OK) status = pith_engine_check_ceiling(engine, options->memory_limit, error);
    if (status == PITH_OK) pith_engine_fit_cache(engine, options->memory_limit);
    if (status == PITH_OK) status = make_arrays(engine, error);
    if (status == PITH_OK) status = make_sessions(engine, error);
    if (status == PITH_OK) {
        status = pith_kv_new(&engine->layout, engine->n_ctx, engine->n_sessions, engine->step_limit,
                             &engine->kv, error);
    }
    if (status == PITH_OK) {
        status = pith_runner_new(engine->plan, &engine->backend, &engine->runner, error);
    }
    return status;
}

void pith_engine_close(pith_engine *engine) {
    if (!engine) return;
    for (uint32_t i = 0; engine->sessions && i < engine->n_sessions; i++) {
        pith_session_close(&engine->sessions[i]);
        pith_detok_deinit(&engine->sessions[i].detok);
    }
    pith_prefix_close(engine->prefix);
    pith_runner_free(engine->runner);
    pith_kv_free(engine->kv);
    pith_kv_layout_deinit(&engine->layout);
    pith_plan_free(engine->plan);
    pith_free(engine->sessions);
    pith_free(engine->ids);
    pith_free(engine->logits);
    pith_free(engine->tokens);
    pith_free(engine->positions);
    pith_free(engine->sequence);
    pith_free(engine->out_rows);
    pith_free(engine->is_fast);
    pith_free(engine->tables);
    pith_free(engine->adapters);
    pith_free(engine->replies);
    pith_free(engine->parts);
    pith_free(engine);
}

/* A cache folder that cannot be used is told in the engine's description, nothing more. */
static void open_cache(pith_engine *engine, const pith_engine_options *options) {
    pith_error why = {0};
    if (!options->cache_folder || engine->embeds || engine->cache_note[0]) return;
    engine->prefix = pith_prefix_open(engine, options->cache_folder, options->cache_quota, &why);
    if (engine->prefix) return;
    snprintf(engine->cache_note, sizeof engine->cache_note, "prompts are not kept: %.200s",
             why.text);
}

pith_status pith_engine_open(const pith_model *model, const pith_engine_options *options,
                             pith_engine **out, pith_error *error) {
    *out = NULL;
    pith_engine *engine = pith_alloc_zero(1, sizeof *engine);
    if (!engine) return pith_fail_memory(error, "engine", sizeof *engine);
    engine->model = model;
    pith_status status = make(engine, options, error);
    if (status != PITH_OK) {
        pith_engine_close(engine);
        return status;
    }
    open_cache(engine, options);
    *out = engine;
    return PITH_OK;
}

pith_status pith_engine_measure_parts(const pith_model *model, const pith_engine_options *options,
                                      pith_engine_info *out, pith_error *error) {
    pith_engine *engine = pith_alloc_zero(1, sizeof *engine);
    *out = (pith_engine_info){0};
    if (!engine) return pith_fail_memory(error, "engine", sizeof *engine);
    engine->model = model;
    pith_status status = prepare(engine, options, error);
    if (status == PITH_OK) pith_engine_fit_cache(engine, options->memory_limit);
    if (status == PITH_OK)
        *out = (pith_engine_info){.n_ctx = (int32_t)engine->n_ctx,
                                  .n_sessions = (int32_t)engine->n_sessions,
                                  .n_threads = engine->backend.n_threads,
                                  .step_limit = (int32_t)engine->step_limit,
                                  .kv_bytes = engine->kv_bytes,
                                  .workspace_bytes = engine->workspace_bytes,
                                  .decode_threads = engine->backend.decode_threads,
                                  .adapter_rank_limit = (int32_t)engine->backend.adapter_rank,
                                  .cache_bytes = engine->cache_bytes};
    pith_engine_close(engine);
    return status;
}

pith_status pith_engine_measure(const pith_model *model, const pith_engine_options *options,
                                uint64_t *bytes, pith_error *error) {
    pith_engine_info info;
    pith_status status = pith_engine_measure_parts(model, options, &info, error);
    *bytes = info.kv_bytes + info.workspace_bytes + info.cache_bytes;
    return status;
}

pith_engine_info pith_engine_get_info(const pith_engine *engine) {
    static const char *const storage_names[] = {
        [PITH_KV_STORE_F32] = "f32", [PITH_KV_STORE_F16] = "f16", [PITH_KV_STORE_I8] = "int8"};
    return (pith_engine_info){.n_ctx = (int32_t)engine->n_ctx,
                              .n_sessions = (int32_t)engine->n_sessions,
                              .n_threads = pith_runner_threads(engine->runner),
                              .step_limit = (int32_t)engine->step_limit,
                              .kv_type = storage_names[engine->storage],
                              .backend = pith_runner_name(engine->runner),
                              .kv_bytes = engine->kv_bytes,
                              .workspace_bytes = engine->workspace_bytes,
                              .decode_threads = engine->backend.decode_threads,
                              .adapter_rank_limit = (int32_t)engine->backend.adapter_rank,
                              .cache_bytes = engine->cache_bytes,
                              .cache_note = engine->prefix ? pith_prefix_note(engine->prefix)
                                                           : engine->cache_note};
}
