/* SPDX-License-Identifier: Apache-2.0
 * A session's steps: tokens go in, at most step_limit rows at a time, and the logits of the last
 * one stay.
 *
 * Only a step that ran to its end is committed (step.c), so a call that was stopped leaves a
 * session that is whole: it holds the finished steps. Tokens that are held but not in KV (the last
 * token of a reply; what a window group had dropped) are computed first by the next feed. Does not
 * choose tokens: reply.c does. */
#include "engine/step.h"

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
    if (session->reply) pith_reply_abandon(session->reply);
    pith_session_drop_adapters(session);
    pith_kv_sequence_free(session->kv);
    session->kv = NULL;
    session->is_open = false;
}

pith_status pith_session_branch(const pith_session *session, size_t n_keep, pith_session **out,
                                pith_error *error) {
    pith_session *branch;
    pith_status status = pith_session_open(session->engine, &branch, error);
    *out = NULL;
    if (status != PITH_OK) return status;
    size_t computed = pith_kv_sequence_length(session->kv);
    if (computed > n_keep) computed = n_keep;
    pith_session_copy_adapters(branch, session);
    /* Tokens that left a window cannot be shared: the branch computes all of them again. */
    (void)pith_kv_sequence_fork(branch->kv, session->kv, (uint32_t)computed, NULL);
    memcpy(branch->ids, session->ids, n_keep * sizeof *branch->ids);
    branch->length = n_keep;
    if (n_keep == session->length && session->has_logits) {
        size_t width = session->engine->row_width;
        memcpy(branch->logits, session->logits, width * sizeof *branch->logits);
        branch->has_logits = true;
    }
    *out = branch;
    return PITH_OK;
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

/* Where the logits of a feed go. */
typedef struct feed_sink {
    pith_session *session;
    const pith_feed_watch *watch;
    size_t first;      /* index, among the ids of the feed, of the step's first row */
    size_t first_fast; /* position from which on rows are in the fast contract */
} feed_sink;

/* pith_part.on_row. The last row that comes stays in the session. */
static int take_row(void *user, uint32_t row, const float *logits) {
    feed_sink *sink = user;
    pith_session *session = sink->session;
    memcpy(session->logits, logits, session->engine->row_width * sizeof *logits);
    if (!sink->watch->rows) return 0;
    return sink->watch->rows(sink->watch->rows_user, sink->first + row, 1, session->logits);
}

/* Computes ids[KV length, end). Ids from `first_new` on are the feed's own. */
static pith_status compute(feed_sink *sink, size_t first_new, size_t end, pith_error *error) {
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
        sink->first = at - first_new;
        session->has_logits = false;
        pith_part part = {.session = session,
                          .n = (uint32_t)n,
                          .first_out = (uint32_t)first_out,
                          .first_fast = sink->first_fast,
                          .on_row = take_row,
                          .user = sink};
        pith_status status = pith_engine_run(session->engine, &part, 1, error);
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
    feed_sink sink = {.session = session,
                      .watch = watch ? watch : &nobody,
                      .first_fast = pith_engine_first_fast(session->engine, held, n_ids)};
    status = compute(&sink, held, end, error);
    /* Finished steps stay; tokens that were held before stay in any case. */
    size_t computed = pith_kv_sequence_length(session->kv);
    session->length = status == PITH_OK ? end : computed > held ? computed : held;
    if (status != PITH_OK) session->has_logits = false;
    return status;
}
