/* SPDX-License-Identifier: Apache-2.0
 * Who shares a step. Replies join and leave between any two steps.
 *
 *   step   [ A: 1 ][ B: 1 + 4 guesses ][ C: 1 ] [ D: 24 rows of its prompt ][ E: 24 rows ]
 *            replies being made, each a row         prompts, the rows that are left, in equal parts
 *
 * Replies being made come first, so that none waits for another's prompt; prompts get as many
 * rows as double the step's time at most (pace.h), all of the step when nobody is being made.
 * Where a step cannot hold everybody, those left out come first in the next one. Guesses are made
 * only for a reply that decodes alone: rows of other replies are certain, guesses are not. */
#include "base/clock.h"
#include "engine/reply.h"

enum { LEAST_PROMPT_ROWS = 8 }; /* beside replies being made */

/* Ends what was asked to stop or is late. true: the reply is out. */
static bool ends_now(pith_reply *r, uint64_t now) {
    if (pith_session_take_cancel(r->session)) {
        pith_reply_end(r, PITH_STOP_CANCELLED);
        return true;
    }
    double age_ms = (double)(now - r->started) / 1e6;
    if (r->options.deadline_ms <= 0 || age_ms < r->options.deadline_ms) return false;
    pith_reply_end(r, PITH_STOP_DEADLINE);
    return true;
}

/* Takes out the replies that end before the step and starts those whose prompt is there. */
static void tidy(pith_engine *engine) {
    uint64_t now = pith_clock_ns();
    for (uint32_t i = 0; i < engine->n_replies;) {
        pith_reply *r = engine->replies[i];
        bool is_there = r->phase == PITH_REPLY_READING && pith_reply_unread(r) == 0;
        bool is_out = ends_now(r, now);
        if (!is_out && is_there) pith_reply_after(r, 0);
        if (i < engine->n_replies && engine->replies[i] == r) i++;
    }
}

static pith_reply *in_turn(const pith_engine *engine, uint32_t i) {
    return engine->replies[(engine->turn + i) % engine->n_replies];
}

/* A step being put together. */
typedef struct gathering {
    pith_engine *engine;
    size_t n_parts;
    uint32_t n_made, n_read, left; /* rows */
} gathering;

static void add(gathering *g, pith_reply *reply, uint32_t n_rows) {
    pith_part part = pith_reply_part(reply, n_rows);
    g->engine->parts[g->n_parts++] = part;
    g->left -= part.n;
    if (reply->phase == PITH_REPLY_READING)
        g->n_read += part.n;
    else
        g->n_made += part.n;
}

static void gather_made(gathering *g) {
    pith_engine *engine = g->engine;
    bool alone = engine->n_replies == 1;
    for (uint32_t i = 0; i < engine->n_replies && g->left > 0; i++) {
        pith_reply *reply = in_turn(engine, i);
        if (reply->phase != PITH_REPLY_MAKING) continue;
        uint32_t most = g->left < PITH_DRAFT_MAX + 1 ? g->left : PITH_DRAFT_MAX + 1;
        add(g, reply, alone ? most : 1);
    }
}

static void gather_read(gathering *g) {
    pith_engine *engine = g->engine;
    uint32_t n_readers = 0, rows = g->left;
    for (uint32_t i = 0; i < engine->n_replies; i++) {
        n_readers += engine->replies[i]->phase == PITH_REPLY_READING;
    }
    if (g->n_made > 0) {
        uint32_t most = pith_pace_rows(&engine->pace, g->n_made, LEAST_PROMPT_ROWS);
        if (rows > most) rows = most;
    }
    for (uint32_t i = 0; i < engine->n_replies && rows > 0; i++) {
        pith_reply *reply = in_turn(engine, i);
        if (reply->phase != PITH_REPLY_READING) continue;
        uint32_t before = g->n_read;
        add(g, reply, (rows + n_readers - 1) / n_readers);
        rows -= g->n_read - before;
        n_readers--;
    }
}

static void finish(gathering *g, pith_status status, const pith_error *error, double ns) {
    pith_engine *engine = g->engine;
    bool alone = g->n_parts == 1;
    for (size_t i = 0; i < g->n_parts; i++) {
        pith_reply *reply = engine->parts[i].user;
        uint32_t n = engine->parts[i].n;
        if (status != PITH_OK) {
            pith_reply_fail(reply, status, error);
            continue;
        }
        if (reply->phase == PITH_REPLY_MAKING && reply->drafter.mode != PITH_DRAFT_OFF) {
            pith_draft_learn(&reply->drafter, &engine->pace, n - 1, reply->n_drawn, ns, alone);
        }
        pith_reply_after(reply, n);
    }
}

void pith_engine_advance(pith_engine *engine) {
    gathering g = {.engine = engine, .left = engine->step_limit};
    pith_error error = {0};
    tidy(engine);
    if (engine->n_replies == 0) return;
    engine->turn %= engine->n_replies;
    gather_made(&g);
    gather_read(&g);
    if (g.n_parts < engine->n_replies) engine->turn += (uint32_t)g.n_parts;
    uint64_t begun = pith_clock_ns(); /* making guesses has its own account (draft.c) */
    pith_status status = pith_engine_run(engine, engine->parts, g.n_parts, &error);
    double ns = (double)(pith_clock_ns() - begun);
    if (status == PITH_OK) pith_pace_add(&engine->pace, g.n_made, g.n_read, ns);
    finish(&g, status, &error, ns);
}
