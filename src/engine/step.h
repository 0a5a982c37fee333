/* SPDX-License-Identifier: Apache-2.0
 * One step over several sessions (private to the engine room).
 *
 *   parts   [ session A: 1 row ][ session B: 5 rows ][ session C: 64 rows ]  -> one run of the plan
 *   logits        row 0             rows 0 .. 4             row 63
 *
 * A part's rows are the tokens that follow what its session has in KV. A step that ran to its
 * end is committed for all parts; a step that failed leaves every session as it was. */
#ifndef PITH_ENGINE_STEP_H
#define PITH_ENGINE_STEP_H

#include "engine/engine.h"

typedef struct pith_part {
    pith_session *session; /* holds the tokens in ids: KV length + n <= n_ctx */
    uint32_t n;            /* rows, at least 1 */
    uint32_t first_out;    /* rows from here on want logits; n: none */
    size_t first_fast;     /* position from which on rows are in the fast contract */
    /* Logits [n_vocab] of row first_out, first_out + 1, ..., n - 1, in this order, while the step
     * runs: it may look and draw, nothing else. Non-zero stops the whole step. */
    int (*on_row)(void *user, uint32_t row, const float *logits);
    void *user;
} pith_part;

/* Runs the parts (at most n_sessions, each of another session; rows together at most step_limit).
 * PITH_ERROR_CANCELLED when on_row stopped it. */
pith_status pith_engine_run(pith_engine *engine, const pith_part *parts, size_t n_parts,
                            pith_error *error);
/* Position from which on a feed of n_ids tokens behind `held` is in the fast contract. */
size_t pith_engine_first_fast(const pith_engine *engine, size_t held, size_t n_ids);

#endif
