/* SPDX-License-Identifier: Apache-2.0
 * What a reply tells: the text of its tokens, as soon as it is settled.
 *
 *   tokens   0    1    2    3    4        taken, in the session
 *   text     "He  llo  , w  or   l"       "world" is banned
 *                      | n_sent           bytes that were told
 *                 n_told = 2              token 2 may have to go: it is not told, nor its ", "
 *
 * A token waits while a banned string may begin in it; without banned strings it never waits. Text
 * waits also while it may become a stop string. Invariant: stops.held is the text from n_sent on,
 * and text is told only of tokens that are told. When more than PITH_UNTOLD_MAX tokens wait (they
 * have no text), the oldest is told all the same: the reply then goes back to a later one. Read
 * next: stop_text.c, reply_ban.c. */
#include "base/memory.h"
#include "engine/reply.h"

#include <string.h>

pith_status pith_text_prepare(pith_reply *reply, pith_error *error) {
    const pith_generate_options *o = &reply->options;
    const pith_engine *engine = reply->session->engine;
    pith_status status =
        pith_stop_text_init(&reply->stops, o->stops, o->n_stops, engine->max_token_bytes, error);
    if (status == PITH_OK && o->n_banned > 0) {
        status = pith_stop_text_ban(&reply->stops, o->banned, o->n_banned, engine->max_token_bytes,
                                    error);
    }
    if (status != PITH_OK) return status;
    reply->n_slots = o->n_banned > 0 ? PITH_UNTOLD_MAX : 1;
    reply->untold = pith_alloc_array(reply->n_slots, sizeof *reply->untold);
    if (reply->untold) return PITH_OK;
    return pith_fail_memory(error, "tokens that wait", reply->n_slots * sizeof *reply->untold);
}

void pith_text_deinit(pith_reply *reply) {
    pith_stop_text_deinit(&reply->stops);
    pith_free(reply->untold);
    reply->untold = NULL;
}

static pith_untold *untold_of(const pith_reply *r, size_t token) {
    return &r->untold[token % r->n_slots];
}

/* The first n bytes of what is held. */
static bool tell_bytes(pith_reply *r, int32_t id, size_t n) {
    bool goes_on =
        !r->options.on_text || r->options.on_text(r->options.user, id, r->stops.held, n) == 0;
    pith_stop_text_drop(&r->stops, n);
    r->n_sent += n;
    return goes_on;
}

/* Tells the oldest token that waits, with its text before `limit`. */
static bool tell_next(pith_reply *r, size_t limit) {
    const pith_untold *one = untold_of(r, r->n_told);
    size_t end = one->end < limit ? one->end : limit;
    pith_logprobs_tell(r, r->n_told, one->id);
    r->n_told++;
    return tell_bytes(r, one->id, end > r->n_sent ? end - r->n_sent : 0);
}

size_t pith_text_first(const pith_reply *reply) {
    size_t n_free = reply->session->length - reply->n_fixed, n = reply->out.n_predicted;
    size_t first = n > n_free ? n - n_free : 0;
    return first > reply->n_told ? first : reply->n_told;
}

/* The token in which the text at `place` begins, or the first that can be taken back. */
static size_t token_at(const pith_reply *r, size_t place) {
    size_t token = r->out.n_predicted - 1, first = pith_text_first(r);
    while (token > first && untold_of(r, token)->begin > place) token--;
    return token;
}

/* How far text and tokens are settled, and all of them told that are. */
static bool tell_settled(pith_reply *r, size_t limit) {
    size_t settled = r->n_sent + pith_stop_text_settled(&r->stops);
    bool goes_on = true;
    while (goes_on && r->n_told < r->out.n_predicted) {
        size_t n_untold = r->out.n_predicted - r->n_told;
        size_t next = n_untold > 1 ? untold_of(r, r->n_told + 1)->begin
                                   : r->n_text + r->session->detok.n_pending;
        if (r->bans && next > settled && n_untold < PITH_UNTOLD_MAX) break;
        goes_on = tell_next(r, limit);
    }
    if (r->bans) pith_bans_settle(r);
    return goes_on;
}

pith_told pith_text_push(pith_reply *reply, int32_t id, pith_stop *stop, size_t *back) {
    pith_detok *detok = &reply->session->detok;
    pith_untold *one = untold_of(reply, reply->out.n_predicted - 1);
    *one = (pith_untold){.id = id,
                         .before = reply->n_text,
                         .begin = reply->n_text + detok->n_pending,
                         .n_pending = detok->n_pending,
                         .started = detok->started};
    memcpy(one->pending, detok->pending, sizeof one->pending);
    pith_span text = pith_detok_push(detok, id);
    bool found = false;
    size_t ready = pith_stop_text_push(&reply->stops, text.data, text.size, &found);
    size_t limit = reply->n_sent + ready;
    one->end = reply->n_text = reply->n_sent + reply->stops.n_held;
    if (found && reply->stops.is_banned) {
        *back = token_at(reply, limit);
        return PITH_TOLD_BACK;
    }
    if (!found && tell_settled(reply, limit)) return PITH_TOLD;
    *stop = found ? PITH_STOP_TEXT : PITH_STOP_CALLBACK;
    bool goes_on = found;
    while (goes_on && reply->n_told < reply->out.n_predicted) goes_on = tell_next(reply, limit);
    if (found && !goes_on && reply->n_told < reply->out.n_predicted) *stop = PITH_STOP_CALLBACK;
    return PITH_TOLD_STOP;
}

void pith_text_return(pith_reply *reply, size_t back) {
    pith_detok *detok = &reply->session->detok;
    const pith_untold *one = untold_of(reply, back);
    memcpy(detok->pending, one->pending, sizeof detok->pending);
    detok->n_pending = one->n_pending;
    detok->started = one->started;
    reply->n_text = one->before;
    reply->stops.n_held = one->before > reply->n_sent ? one->before - reply->n_sent : 0;
}

void pith_text_finish(pith_reply *reply) {
    bool goes_on = true;
    bool found = false;
    while (goes_on && reply->n_told < reply->out.n_predicted) {
        goes_on = tell_next(reply, reply->n_text);
    }
    if (!goes_on) return;
    /* What waited for the rest of a character or of a string that did not come. */
    pith_span text = pith_detok_push(&reply->session->detok, -1);
    size_t ready = pith_stop_text_push(&reply->stops, text.data, text.size, &found);
    size_t n = found ? ready : reply->stops.n_held;
    if (n > 0) tell_bytes(reply, -1, n);
}
