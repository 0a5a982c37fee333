/* SPDX-License-Identifier: Apache-2.0
 * What an engine will need, before it is made (engine_account.h). One ceiling covers KV,
 * workspace and sessions; weights were accounted for when the model was opened. All sums are
 * checked: a context from a file can be large. */
#include "engine/engine_account.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/pool.h"
#include "cpu/cpu.h"
#include "engine/prefix.h"
#include "engine/step.h"

#include <stdio.h>

/* min <= value <= max, or `absent` for 0. */
static pith_status choose(const char *name, int32_t value, uint32_t max, uint32_t absent,
                          uint32_t *out, pith_error *error) {
    if (value < 0 || (uint32_t)value > max) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "%s is %d: it must be 1 to %u, or 0 for %u",
                         name, value, max, absent);
    }
    *out = value == 0 ? absent : (uint32_t)value;
    return PITH_OK;
}

static pith_status settle_context(pith_engine *engine, int32_t n_ctx, pith_error *error) {
    uint32_t n_ctx_train = engine->model->hparams.n_ctx_train;
    uint32_t absent =
        n_ctx_train < PITH_ENGINE_DEFAULT_CONTEXT ? n_ctx_train : PITH_ENGINE_DEFAULT_CONTEXT;
    if (n_ctx < 0) return pith_fail(error, PITH_ERROR_ARGUMENT, "n_ctx %d is negative", n_ctx);
    engine->n_ctx = n_ctx == 0 ? absent : (uint32_t)n_ctx;
    if (engine->n_ctx > n_ctx_train) {
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "a context of %u tokens was asked for, but the model was trained for %u: "
                         "ask for at most %u",
                         engine->n_ctx, n_ctx_train, n_ctx_train);
    }
    return PITH_OK;
}

static pith_status settle_storage(pith_engine *engine, const pith_engine_options *options,
                                  pith_error *error) {
    bool full = options->precision == PITH_PRECISION_FULL;
    switch (options->kv_type) {
    case PITH_KV_AUTO: engine->storage = full ? PITH_KV_STORE_F32 : PITH_KV_STORE_F16; break;
    case PITH_KV_F32: engine->storage = PITH_KV_STORE_F32; break;
    case PITH_KV_F16: engine->storage = PITH_KV_STORE_F16; break;
    case PITH_KV_INT8: engine->storage = PITH_KV_STORE_I8; break;
    default:
        return pith_fail(error, PITH_ERROR_ARGUMENT, "kv_type %d is no KV type", options->kv_type);
    }
    if (!full && options->precision != PITH_PRECISION_NORMAL) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "precision %d is no precision",
                         options->precision);
    }
    engine->backend.full_precision = full;
    return PITH_OK;
}

/* Workspace counts ranks in units, each adapter's rounded up. */
static pith_status settle_adapters(pith_engine *engine, int32_t limit, pith_error *error) {
    const int32_t unit = PITH_DELTA_RANK_UNIT;
    if (limit > PITH_ENGINE_MAX_ADAPTER_RANK)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "adapter_rank_limit %d; at most %d is possible", limit,
                         PITH_ENGINE_MAX_ADAPTER_RANK);
    if (limit == 0) limit = PITH_ENGINE_DEFAULT_ADAPTER_RANK;
    engine->backend.adapter_rank = limit < 0 ? 0 : (uint32_t)((limit + unit - 1) / unit * unit);
    return PITH_OK;
}

pith_status pith_engine_settle(pith_engine *engine, const pith_engine_options *options,
                               pith_error *error) {
    uint32_t n_threads = 0, decode_threads = 0, n_cores = (uint32_t)pith_thread_count();
    if (!engine->model->weights) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the model was opened with vocab_only: it has no weights to run");
    }
    if (n_cores > PITH_ENGINE_MAX_THREADS) n_cores = PITH_ENGINE_MAX_THREADS;
    pith_status status = settle_context(engine, options->n_ctx, error);
    if (status == PITH_OK) status = settle_storage(engine, options, error);
    if (status == PITH_OK) {
        status = choose("n_sessions", options->n_sessions, PITH_ENGINE_MAX_SESSIONS, 1,
                        &engine->n_sessions, error);
    }
    if (status == PITH_OK) {
        status = choose("step_limit", options->step_limit, PITH_ENGINE_MAX_STEP,
                        PITH_ENGINE_DEFAULT_STEP, &engine->step_limit, error);
    }
    if (status == PITH_OK) {
        status = choose("n_threads", options->n_threads, PITH_ENGINE_MAX_THREADS, n_cores,
                        &n_threads, error);
    }
    if (status == PITH_OK) {
        status = choose("decode_threads", options->decode_threads, PITH_ENGINE_MAX_THREADS,
                        n_threads, &decode_threads, error);
    }
    if (status == PITH_OK) status = settle_adapters(engine, options->adapter_rank_limit, error);
    if (decode_threads > n_threads) decode_threads = n_threads;
    if (status == PITH_OK) status = pith_cpu_features(&engine->backend.features, error);
    if (engine->step_limit > engine->n_ctx) engine->step_limit = engine->n_ctx;
    engine->exact = options->exact;
    engine->embeds = options->embeddings;
    engine->has_cache = options->cache_folder && !engine->embeds && pith_prefix_library() != NULL;
    engine->backend.n_threads = (int32_t)n_threads;
    engine->backend.decode_threads = (int32_t)decode_threads;
    engine->backend.step_limit = engine->step_limit;
    engine->backend.n_ctx = engine->n_ctx;
    return status;
}

pith_status pith_engine_lay_out(pith_engine *engine, pith_error *error) {
    uint32_t n_layer = engine->model->hparams.n_layer;
    pith_kv_shape *shapes = pith_alloc_zero(n_layer, sizeof *shapes);
    if (!shapes) return pith_fail_memory(error, "KV layout", (uint64_t)n_layer * sizeof *shapes);
    pith_model_kv_shapes(engine->model, shapes);
    pith_status status =
        pith_kv_layout_init(&engine->layout, engine->storage, shapes, n_layer, error);
    pith_free(shapes);
    engine->backend.kv = &engine->layout;
    return status;
}

uint64_t pith_engine_array_bytes(const pith_engine *engine) {
    uint64_t per_session = sizeof(pith_session) + (uint64_t)engine->n_ctx * sizeof(int32_t) +
                           (uint64_t)engine->row_width * sizeof(float) +
                           engine->layout.n_group * sizeof(pith_kv_table) + sizeof(pith_part) +
                           sizeof(pith_reply *) + sizeof(pith_adapter_set *);
    return per_session * engine->n_sessions +
           (4u * sizeof(int32_t) + sizeof(bool)) * (uint64_t)engine->step_limit;
}

pith_status pith_engine_account(pith_engine *engine, pith_error *error) {
    uint64_t runner = 0;
    pith_status status = pith_kv_bytes(&engine->layout, engine->n_ctx, engine->n_sessions,
                                       engine->step_limit, &engine->kv_bytes, error);
    if (status == PITH_OK) {
        status = pith_runner_bytes(engine->plan, &engine->backend, &runner, error);
    }
    if (status != PITH_OK) return status;
    engine->cache_bytes = engine->has_cache ? pith_prefix_bytes(&engine->layout, engine->n_ctx) : 0;
    if (!pith_u64_add(runner, pith_engine_array_bytes(engine), &engine->workspace_bytes)) {
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "the engine's memory cannot be counted in 64 bits");
    }
    return PITH_OK;
}

/* The largest of n_ctx, n_ctx/2, n_ctx/4, ... whose engine stays below the limit; 0: none. */
static uint32_t context_that_fits(const pith_engine *engine, uint64_t limit) {
    pith_engine other = *engine;
    for (uint32_t n_ctx = engine->n_ctx; n_ctx >= 64; n_ctx /= 2) {
        other.n_ctx = other.backend.n_ctx = n_ctx;
        if (other.step_limit > n_ctx) other.step_limit = other.backend.step_limit = n_ctx;
        if (pith_engine_account(&other, NULL) != PITH_OK) return 0;
        if (other.kv_bytes <= limit && other.workspace_bytes <= limit - other.kv_bytes)
            return n_ctx;
    }
    return 0;
}

/* The same with KV in int8; 0 where it is already or nothing fits. */
static uint32_t int8_context_that_fits(const pith_engine *engine, uint64_t limit) {
    pith_engine other = *engine;
    if (engine->storage == PITH_KV_STORE_I8 || engine->backend.full_precision) return 0;
    other.storage = PITH_KV_STORE_I8;
    other.layout = (pith_kv_layout){0};
    pith_status status = pith_engine_lay_out(&other, NULL);
    uint32_t n_ctx = status == PITH_OK ? context_that_fits(&other, limit) : 0;
    pith_kv_layout_deinit(&other.layout);
    return n_ctx;
}

static unsigned long long mib(uint64_t bytes) {
    return (bytes + (1u << 20) - 1) >> 20;
}

pith_status pith_engine_check_ceiling(const pith_engine *engine, uint64_t limit,
                                      pith_error *error) {
    uint64_t kv = engine->kv_bytes, work = engine->workspace_bytes;
    bool asked = limit != 0;
    if (!asked) limit = pith_memory_available();
    if (limit == 0 || (kv <= limit && work <= limit - kv)) return PITH_OK;
    uint32_t n_ctx = context_that_fits(engine, limit);
    const char *whose = asked ? "allowed" : "free on this machine";
    char int8[48] = "";
    uint32_t n_ctx_int8 = int8_context_that_fits(engine, limit);
    if (n_ctx_int8 > n_ctx) snprintf(int8, sizeof int8, ", with int8 KV one of %u", n_ctx_int8);
    if (n_ctx == 0) {
        return pith_fail(
            error, PITH_ERROR_MEMORY,
            "KV and workspace need %llu + %llu MiB, but %llu MiB are %s, and no shorter "
            "context fits%s: give more memory or take a smaller model",
            mib(kv), mib(work), (unsigned long long)(limit >> 20), whose, int8);
    }
    return pith_fail(error, PITH_ERROR_MEMORY,
                     "KV and workspace for %u sessions of %u tokens need %llu + %llu MiB, but %llu "
                     "MiB are %s: a context of %u tokens fits%s",
                     engine->n_sessions, engine->n_ctx, mib(kv), mib(work),
                     (unsigned long long)(limit >> 20), whose, n_ctx, int8);
}

void pith_engine_fit_cache(pith_engine *engine, uint64_t limit) {
    uint64_t all = engine->kv_bytes + engine->workspace_bytes;
    if (limit == 0) limit = pith_memory_available();
    if (limit == 0 || engine->cache_bytes == 0) return;
    if (all <= limit && engine->cache_bytes <= limit - all) return;
    engine->has_cache = false;
    engine->cache_bytes = 0;
    snprintf(engine->cache_note, sizeof engine->cache_note,
             "prompts are not kept: there is no memory left for it");
}
