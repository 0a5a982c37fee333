/* SPDX-License-Identifier: Apache-2.0
 * A session's steps: tokens go in, at most step_limit rows at a time, and the logits of the last
 * one stay.
 *
 * A step is  reserve KV -> run the plan -> commit KV.  Only a step that ran to its end is
 * committed, so a call that was stopped leaves a session that is whole: it holds the finished
 * steps. Tokens that are held but not in KV (the last token of a reply; what a window group had
 * dropped) are computed first by the next feed. Does not choose tokens: generate.c does.
 *
 * The contract of a row (kernel.h) depends on its token's place in the feed, never on the step it
 * comes in: the new tokens of a long feed are fast, but for the first positions of the session,
 * whose activations are so large that coarse groups spoil them (docs/decisions/0040); all others
 * are exact. */
#include "engine/engine.h"

#include <string.h>

pith_status pith_session_open(pith_engine *engine, pith_session **out, pith_error *error) {
    *out = NULL;
    for (uint32_t i = 0; i < engine->n_sessions; i++) {
        pith_session *session = &engine->sessions[i];
        if (session->is_open) continue;
        pith_status status = pith_kv_sequence_new(engine->kv, &session->kv, error);
        if (status != PITH_OK) return status;
        session->is_open = true;
        session->length = 0;
        session->has_logits = false;
        atomic_store(&session->cancelled, 0);
        *out = session;
        return PITH_OK;
    }
    return pith_fail(error, PITH_ERROR_LIMIT,
                     "all %u sessions of the engine are in use: free one or make the engine with a "
                     "larger n_sessions",
                     engine->n_sessions);
}

void pith_session_close(pith_session *session) {
    if (!session || !session->is_open) return;
    pith_session_drop_adapters(session);
    pith_kv_sequence_free(session->kv);
    session->kv = NULL;
    session->is_open = false;
}

bool pith_session_take_cancel(pith_session *session) {
    return atomic_exchange(&session->cancelled, 0) != 0;
}

void pith_session_cut(pith_session *session, size_t n_keep) {
    if (n_keep >= session->length) return;
    if (n_keep < pith_kv_sequence_length(session->kv)) {
        pith_kv_sequence_truncate(session->kv, (uint32_t)n_keep);
    }
    session->length = n_keep;
    session->has_logits = false;
}

/* Where the logits of a step go. */
typedef struct step_sink {
    pith_session *session;
    const pith_feed_watch *watch;
    size_t first;      /* index, among the ids of the feed, of the step's first row with logits */
    size_t first_fast; /* position from which on rows are in the fast contract */
} step_sink;

/* pith_step.on_logits. The last row that comes stays in the session. */
static int take_logits(void *user, uint32_t first, uint32_t n, const float *logits, size_t stride) {
    step_sink *sink = user;
    size_t n_vocab = sink->session->engine->model->hparams.n_vocab;
    float *row = sink->session->logits;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(row, logits + i * stride, n_vocab * sizeof *row);
        if (!sink->watch->rows) continue;
        if (sink->watch->rows(sink->watch->rows_user, sink->first + first + i, 1, row) != 0)
            return 1;
    }
    return 0;
}

/* Runs the n tokens that follow the KV; rows from first_out on want logits. */
static pith_status run_step(step_sink *sink, uint32_t n, uint32_t first_out, pith_error *error) {
    pith_session *session = sink->session;
    pith_engine *engine = session->engine;
    uint32_t start = pith_kv_sequence_length(session->kv);
    pith_status status = pith_kv_sequence_reserve(session->kv, n, error);
    if (status != PITH_OK) return status;
    pith_kv_sequence_tables(session->kv, engine->tables);
    for (uint32_t i = 0; i < n; i++) engine->positions[i] = (int32_t)(start + i);
    for (uint32_t i = 0; i < n; i++) engine->is_fast[i] = start + i >= sink->first_fast;
    const pith_adapter_set *adapters = pith_session_adapters(session);
    for (uint32_t i = first_out; i < n; i++) engine->out_rows[i - first_out] = (int32_t)i;
    pith_step step = {.n = n,
                      .n_out = n - first_out,
                      .n_sequence = 1,
                      .tokens = session->ids + start,
                      .positions = engine->positions,
                      .sequence = engine->sequence,
                      .is_fast = start + n > sink->first_fast ? engine->is_fast : NULL,
                      .out_rows = engine->out_rows,
                      .tables = engine->tables,
                      .adapters = adapters ? &adapters : NULL,
                      .on_logits = take_logits,
                      .user = sink};
    status = pith_runner_run(engine->runner, &step, error);
    if (status == PITH_OK) pith_kv_sequence_commit(session->kv, n);
    return status;
}

/* Computes ids[KV length, end). Ids from `first_new` on are the feed's own. */
static pith_status compute(step_sink *sink, size_t first_new, size_t end, pith_error *error) {
    pith_session *session = sink->session;
    const pith_feed_watch *watch = sink->watch;
    size_t start = pith_kv_sequence_length(session->kv);
    for (size_t at = start; at < end;) {
        if (pith_session_take_cancel(session)) {
            return pith_fail(error, PITH_ERROR_CANCELLED, "stopped after %zu of %zu tokens",
                             at - start, end - start);
        }
        size_t n = end - at < session->engine->step_limit ? end - at : session->engine->step_limit;
        size_t first_out = at + n == end ? n - 1 : n; /* only the last row of all */
        if (watch->rows)
            first_out = at >= first_new ? 0 : (first_new - at < n ? first_new - at : n);
        sink->first = at + first_out - first_new;
        session->has_logits = false;
        pith_status status = run_step(sink, (uint32_t)n, (uint32_t)first_out, error);
        if (status != PITH_OK) return status;
        at += n;
        if (watch->progress && watch->progress(watch->progress_user,
                                               (double)(at - start) / (double)(end - start)) != 0) {
            return pith_fail(error, PITH_ERROR_CANCELLED, "stopped after %zu of %zu tokens",
                             at - start, end - start);
        }
    }
    session->has_logits = end > start || session->has_logits;
    return PITH_OK;
}

/* Of a feed of n_ids tokens behind `held`. */
static size_t first_fast(const pith_engine *engine, size_t held, size_t n_ids) {
    if (engine->exact || n_ids < PITH_ENGINE_FAST_LEAST) return SIZE_MAX;
    return held > PITH_ENGINE_FIRST_EXACT ? held : PITH_ENGINE_FIRST_EXACT;
}

static pith_status check_ids(const pith_session *session, const int32_t *ids, size_t n_ids,
                             pith_error *error) {
    const pith_engine *engine = session->engine;
    uint32_t n_vocab = engine->model->hparams.n_vocab;
    if (n_ids > engine->n_ctx - session->length) {
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "the context is full: %zu tokens and %zu more are over %u",
                         session->length, n_ids, engine->n_ctx);
    }
    for (size_t i = 0; i < n_ids; i++) {
        if (ids[i] >= 0 && (uint32_t)ids[i] < n_vocab) continue;
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "id %d at index %zu is outside the vocabulary of %u", ids[i], i, n_vocab);
    }
    return PITH_OK;
}

pith_status pith_session_feed(pith_session *session, const int32_t *ids, size_t n_ids,
                              const pith_feed_watch *watch, pith_error *error) {
    static const pith_feed_watch nobody = {0};
    pith_status status = check_ids(session, ids, n_ids, error);
    if (status != PITH_OK) return status;
    size_t held = session->length, end = held + n_ids;
    if (n_ids > 0) {
        memcpy(session->ids + held, ids, n_ids * sizeof *ids);
        session->has_logits = false;
        pith_session_aim_adapters(session, end);
    }
    step_sink sink = {.session = session,
                      .watch = watch ? watch : &nobody,
                      .first_fast = first_fast(session->engine, held, n_ids)};
    status = compute(&sink, held, end, error);
    /* Finished steps stay; tokens that were held before stay in any case. */
    size_t computed = pith_kv_sequence_length(session->kv);
    session->length = status == PITH_OK ? end : computed > held ? computed : held;
    if (status != PITH_OK) session->has_logits = false;
    return status;
}
