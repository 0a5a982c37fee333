/* SPDX-License-Identifier: Apache-2.0
 * Banned strings: going back before one, and what may not be drawn there again.
 *
 *   "the" " cat" " s" "at"      " sat" is banned and begins in " s", number 2
 *   "the" " cat" ?              number 2 may not be " s"; a new random number
 *   "the" " cat" " sat"         banned again: number 2 may be neither " s" nor " sat"
 *   "the" " cat" " is" ..       goes on; when number 2 is settled its bans go
 *
 * Bans belong to a number and to the tokens before it: those behind the token that a return ends at
 * are dropped by it. Invariant: no banned string was ever told (reply_text.c holds it back), and
 * n <= n_returns <= PITH_BANNED_MAX_REWINDS. Returns since a token was last settled are counted, so
 * a reply that finds no way on fails after a bounded time.
 *
 * Does not: find the strings (stop_text.c). Read next: reply.c. */
#include "base/memory.h"
#include "engine/reply.h"

#include <string.h>

typedef struct pith_ban {
    size_t token; /* number in the reply */
    int32_t id;
} pith_ban;

struct pith_bans {
    pith_ban list[PITH_BANNED_MAX_REWINDS];
    size_t n, n_returns;
    size_t n_told;            /* when it was settled last */
    pith_token_filter filter; /* the grammar's less what is banned */
    uint32_t *mask;           /* [n_words] */
    size_t n_words;
};

static bool is_banned(const pith_reply *r, int32_t id) {
    const pith_bans *bans = r->bans;
    size_t token = r->out.n_predicted + r->n_drawn;
    for (size_t i = 0; i < bans->n; i++)
        if (bans->list[i].token == token && bans->list[i].id == id) return true;
    return false;
}

/* pith_token_filter.allows */
static bool allows(void *user, int32_t id) {
    pith_reply *r = user;
    return !is_banned(r, id) && (!r->matcher || r->filter.allows(r->filter.user, id));
}

/* pith_token_filter.mask */
static const uint32_t *mask(void *user) {
    pith_reply *r = user;
    pith_bans *bans = r->bans;
    size_t token = r->out.n_predicted + r->n_drawn, n_bytes = bans->n_words * sizeof *bans->mask;
    if (r->matcher)
        memcpy(bans->mask, r->filter.mask(r->filter.user), n_bytes);
    else
        memset(bans->mask, 0xFF, n_bytes);
    for (size_t i = 0; i < bans->n; i++) {
        uint32_t id = (uint32_t)bans->list[i].id;
        if (bans->list[i].token == token) bans->mask[id / 32] &= ~(1u << (id % 32));
    }
    return bans->mask;
}

pith_status pith_bans_prepare(pith_reply *reply, pith_error *error) {
    if (reply->options.n_banned == 0) return PITH_OK;
    size_t n_words = (reply->session->engine->model->hparams.n_vocab + 31) / 32;
    pith_bans *bans = reply->bans = pith_alloc_zero(1, sizeof *bans);
    if (bans) bans->mask = pith_alloc_array(n_words, sizeof *bans->mask);
    if (!bans || !bans->mask) {
        return pith_fail_memory(error, "banned strings",
                                sizeof *bans + n_words * sizeof *bans->mask);
    }
    bans->n_words = n_words;
    bans->filter = (pith_token_filter){reply, allows, mask, NULL};
    return PITH_OK;
}

void pith_bans_free(pith_bans *bans) {
    if (bans) pith_free(bans->mask);
    pith_free(bans);
}

bool pith_bans_are_at(const pith_reply *reply, size_t token) {
    const pith_bans *bans = reply->bans;
    for (size_t i = 0; bans && i < bans->n; i++)
        if (bans->list[i].token == token) return true;
    return false;
}

const pith_token_filter *pith_bans_filter(pith_reply *reply) {
    if (pith_bans_are_at(reply, reply->out.n_predicted + reply->n_drawn)) {
        return &reply->bans->filter;
    }
    return reply->matcher ? &reply->filter : NULL;
}

/* Keeps those of numbers in [first, last]. */
static void keep(pith_bans *bans, size_t first, size_t last) {
    size_t n = 0;
    for (size_t i = 0; i < bans->n; i++) {
        size_t token = bans->list[i].token;
        if (token >= first && token <= last) bans->list[n++] = bans->list[i];
    }
    bans->n = n;
}

void pith_bans_settle(pith_reply *reply) {
    pith_bans *bans = reply->bans;
    if (bans->n_told == reply->n_told) return;
    bans->n_told = reply->n_told;
    keep(bans, reply->n_told, SIZE_MAX);
    bans->n_returns = bans->n;
}

static bool add(pith_reply *r, size_t token, int32_t id) {
    pith_bans *bans = r->bans;
    pith_error error;
    if (bans->n_returns < PITH_BANNED_MAX_REWINDS) {
        keep(bans, 0, token);
        bans->list[bans->n++] = (pith_ban){token, id};
        bans->n_returns++;
        r->out.n_rewinds++;
        return true;
    }
    pith_fail(&error, PITH_ERROR_LIMIT,
              "the reply came to banned strings %d times without a token that stays, after %zu "
              "tokens: ban fewer strings",
              PITH_BANNED_MAX_REWINDS, r->n_told);
    pith_reply_fail(r, PITH_ERROR_LIMIT, &error);
    return false;
}

bool pith_reply_return(pith_reply *reply, size_t back, bool ban) {
    pith_session *session = reply->session;
    size_t n = reply->out.n_predicted - back;
    if (ban && !add(reply, back, session->ids[session->length - n])) return false;
    pith_text_return(reply, back);
    if (!pith_sample_rewind(reply->sampler, n)) { /* it was used by somebody else meanwhile */
        pith_error error;
        pith_fail(&error, PITH_ERROR_ARGUMENT,
                  "the sampler cannot take back %zu tokens of the reply", n);
        pith_reply_fail(reply, PITH_ERROR_ARGUMENT, &error);
        return false;
    }
    if (reply->matcher) pith_matcher_rewind(reply->matcher, n);
    if (reply->drafter.mode != PITH_DRAFT_OFF) pith_draft_text_clear(&reply->drafter.text);
    session->length -= n;
    session->has_logits = false;
    reply->out.n_predicted = back;
    return true;
}
