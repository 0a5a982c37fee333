/* SPDX-License-Identifier: Apache-2.0
 * Rows of several sessions through one run of the plan: reserve KV -> run -> commit KV.
 *
 * Every part is reserved before anything runs and committed only when the run ended, so a step
 * that was stopped leaves all sessions whole. Rows of a session are the same bits whatever else
 * is in the step (exact contract): nothing here depends on who shares it. Which rows make a step
 * is decided elsewhere: session.c for a single feed, schedule.c for replies.
 *
 * The contract of a row (kernel.h) depends on its token's place in the feed, never on the step it
 * comes in: the new tokens of a long feed are fast, but for the first positions of the session,
 * whose activations are so large that coarse groups spoil them (docs/decisions/0040); all others
 * are exact. */
#include "engine/step.h"

#include <string.h>

size_t pith_engine_first_fast(const pith_engine *engine, size_t held, size_t n_ids) {
    if (engine->exact || n_ids < PITH_ENGINE_FAST_LEAST) return SIZE_MAX;
    return held > PITH_ENGINE_FIRST_EXACT ? held : PITH_ENGINE_FIRST_EXACT;
}

/* Which part the next row of logits belongs to. */
typedef struct logits_sink {
    const pith_part *parts;
    size_t part;
    uint32_t row; /* of the part */
} logits_sink;

/* Moves to the next row that wants logits. */
static void skip_silent(logits_sink *sink) {
    while (sink->row == sink->parts[sink->part].n) {
        sink->part++;
        sink->row = sink->parts[sink->part].first_out;
    }
}

/* pith_step.on_logits */
static int take_logits(void *user, uint32_t first, uint32_t n, const float *logits, size_t stride) {
    logits_sink *sink = user;
    (void)first;
    for (uint32_t i = 0; i < n; i++) {
        skip_silent(sink);
        const pith_part *part = &sink->parts[sink->part];
        if (part->on_row(part->user, sink->row, logits + i * stride) != 0) return 1;
        sink->row++;
    }
    return 0;
}

/* Fills the engine's arrays with a part's rows behind `step->n` others. */
static pith_status add_part(pith_engine *engine, const pith_part *part, pith_step *step,
                            pith_error *error) {
    pith_session *session = part->session;
    uint32_t start = pith_kv_sequence_length(session->kv), first = step->n;
    if (part->n > engine->step_limit - first) {
        return pith_fail(error, PITH_ERROR_INTERNAL, "a step of more than %u rows",
                         engine->step_limit);
    }
    pith_status status = pith_kv_sequence_reserve(session->kv, part->n, error);
    if (status != PITH_OK) return status;
    pith_kv_sequence_tables(session->kv,
                            engine->tables + (size_t)step->n_sequence * engine->layout.n_group);
    memcpy(engine->tokens + first, session->ids + start, part->n * sizeof *engine->tokens);
    for (uint32_t i = 0; i < part->n; i++) {
        engine->positions[first + i] = (int32_t)(start + i);
        engine->sequence[first + i] = (int32_t)step->n_sequence;
        engine->is_fast[first + i] = start + i >= part->first_fast;
    }
    engine->adapters[step->n_sequence] = pith_session_adapters(session);
    if (engine->adapters[step->n_sequence]) step->adapters = engine->adapters;
    if (start + part->n > part->first_fast) step->is_fast = engine->is_fast;
    for (uint32_t i = part->first_out; i < part->n; i++) {
        engine->out_rows[step->n_out++] = (int32_t)(first + i);
    }
    step->n += part->n;
    step->n_sequence++;
    return PITH_OK;
}

pith_status pith_engine_run(pith_engine *engine, const pith_part *parts, size_t n_parts,
                            pith_error *error) {
    logits_sink sink = {.parts = parts, .row = parts[0].first_out};
    pith_step step = {.tokens = engine->tokens,
                      .positions = engine->positions,
                      .sequence = engine->sequence,
                      .out_rows = engine->out_rows,
                      .tables = engine->tables,
                      .on_logits = take_logits,
                      .user = &sink};
    pith_status status = PITH_OK;
    for (size_t i = 0; i < n_parts && status == PITH_OK; i++) {
        status = add_part(engine, &parts[i], &step, error);
    }
    if (status == PITH_OK) status = pith_runner_run(engine->runner, &step, error);
    for (size_t i = 0; i < n_parts && status == PITH_OK; i++) {
        pith_kv_sequence_commit(parts[i].session->kv, parts[i].n);
    }
    return status;
}
