/* SPDX-License-Identifier: Apache-2.0
 * Adapters of a session: which ones, since where, and what of the KV cache they leave valid.
 *
 *   positions   0 ............ from ............ length
 *               the model alone | model + adapters          from is 0 but for activated adapters
 *
 * Invariant: every position in KV was computed with what the set says of it, so that a reply does
 * not depend on what the session did before. Changing the set therefore keeps only positions that
 * were and will be the model's alone. A session holds its adapters: their opener may let go. */
#include "engine/engine.h"

#include "base/text.h"

#include <math.h>

enum { NOWHERE = INT32_MAX };

static bool is_activated(const pith_session *session) {
    return session->adapters.n == 1 && session->holders[0]->n_invocation > 0;
}

void pith_session_drop_adapters(pith_session *session) {
    for (uint32_t i = 0; i < session->adapters.n; i++) pith_adapter_release(session->holders[i]);
    session->adapters = (pith_adapter_set){0};
}

/* ---- Changing the set ---- */

/* Those of scale 0 left out. */
static pith_status gather(const pith_session *session, pith_adapter *const *adapters,
                          const float *scales, size_t n, pith_session *out, pith_error *error) {
    const pith_engine *engine = session->engine;
    uint32_t rank = 0;
    for (size_t i = 0; i < n; i++) {
        float scale = scales ? scales[i] : 1.0f;
        if (adapters[i]->model != engine->model)
            return pith_fail(error, PITH_ERROR_ARGUMENT,
                             "adapter %zu (%.60s) was opened for another model", i,
                             adapters[i]->name);
        if (!isfinite(scale))
            return pith_fail(error, PITH_ERROR_ARGUMENT, "the scale of adapter %zu is no number",
                             i);
        if (scale == 0.0f) continue;
        if (out->adapters.n == PITH_ADAPTERS_MAX)
            return pith_fail(error, PITH_ERROR_LIMIT, "more than %d adapters in one session",
                             PITH_ADAPTERS_MAX);
        uint32_t at = out->adapters.n++;
        out->holders[at] = adapters[i];
        out->adapters.delta[at] = adapters[i]->delta;
        out->adapters.scale[at] = scale;
        rank += pith_delta_rank_room(adapters[i]->delta);
    }
    if (rank <= engine->backend.adapter_rank) return PITH_OK;
    return pith_fail(error, PITH_ERROR_LIMIT,
                     "the adapters take a rank of %u together, the engine has room for %u: make it "
                     "with a larger adapter_rank_limit",
                     rank, engine->backend.adapter_rank);
}

/* An activated adapter has places of its own choice, which no two can agree on. */
static pith_status check_activated(const pith_session *wanted, pith_error *error) {
    for (uint32_t i = 0; i < wanted->adapters.n && wanted->adapters.n > 1; i++)
        if (wanted->holders[i]->n_invocation > 0)
            return pith_fail(error, PITH_ERROR_ARGUMENT,
                             "adapter %.60s is an activated one, which is used alone",
                             wanted->holders[i]->name);
    return PITH_OK;
}

static bool is_same(const pith_session *a, const pith_session *b) {
    bool same = a->adapters.n == b->adapters.n;
    for (uint32_t i = 0; same && i < a->adapters.n; i++)
        same = a->holders[i] == b->holders[i] && a->adapters.scale[i] == b->adapters.scale[i];
    return same;
}

void pith_session_copy_adapters(pith_session *to, const pith_session *from) {
    for (uint32_t i = 0; i < from->adapters.n; i++) {
        to->holders[i] = from->holders[i];
        pith_adapter_hold(to->holders[i]);
    }
    to->adapters = from->adapters;
}

bool pith_session_same_adapters(const pith_session *a, const pith_session *b, size_t n) {
    bool a_alone = a->adapters.n == 0 || (size_t)a->adapters.from >= n;
    bool b_alone = b->adapters.n == 0 || (size_t)b->adapters.from >= n;
    if (a_alone && b_alone) return true;
    return is_same(a, b) && a->adapters.from == b->adapters.from;
}

/* Positions that were and stay the model's alone. */
static size_t kept_length(const pith_session *session, const pith_session *wanted) {
    size_t length = session->length;
    if (wanted->adapters.n && !is_activated(wanted)) return 0;
    if (!session->adapters.n) return length;
    size_t from = (size_t)session->adapters.from;
    return from < length ? from : length;
}

pith_status pith_session_adapt(pith_session *session, pith_adapter *const *adapters,
                               const float *scales, size_t n, pith_error *error) {
    if (session->reply)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the session is making a reply: free that first");
    pith_session wanted = {.engine = session->engine};
    pith_status status = gather(session, adapters, scales, n, &wanted, error);
    if (status == PITH_OK) status = check_activated(&wanted, error);
    if (status != PITH_OK || is_same(session, &wanted)) return status;
    pith_session_cut(session, kept_length(session, &wanted));
    for (uint32_t i = 0; i < wanted.adapters.n; i++) pith_adapter_hold(wanted.holders[i]);
    pith_session_drop_adapters(session);
    session->adapters = wanted.adapters;
    for (uint32_t i = 0; i < wanted.adapters.n; i++) session->holders[i] = wanted.holders[i];
    if (is_activated(session)) {
        session->adapters.from = NOWHERE;
        pith_session_aim_adapters(session, session->length); /* in what is held already */
        if ((size_t)session->adapters.from < session->length) session->has_logits = false;
    }
    return PITH_OK;
}

/* ---- Activated adapters ---- */

static bool is_at(const pith_session *session, const pith_adapter *adapter, size_t at) {
    for (size_t i = 0; i < adapter->n_invocation; i++)
        if (session->ids[at + i] != adapter->invocation[i]) return false;
    return true;
}

/* One token before the last place where the invocation stands. */
static int32_t find_start(const pith_session *session, size_t length) {
    const pith_adapter *adapter = session->holders[0];
    if (length < adapter->n_invocation) return NOWHERE;
    for (size_t at = length - adapter->n_invocation + 1; at-- > 0;)
        if (is_at(session, adapter, at)) return at > 0 ? (int32_t)at - 1 : 0;
    return NOWHERE;
}

void pith_session_aim_adapters(pith_session *session, size_t length) {
    if (!is_activated(session)) return;
    int32_t before = session->adapters.from, now = find_start(session, length);
    if (before == now) return;
    uint32_t least = (uint32_t)(before < now ? before : now);
    if (least < pith_kv_sequence_length(session->kv)) pith_kv_sequence_truncate(session->kv, least);
    session->adapters.from = now;
}

/* ---- Keys ---- */

/* The invocation may yet be completed by tokens that follow the first n. */
uint64_t pith_session_variant(const pith_session *session, size_t *n) {
    uint64_t variant = 1;
    if (session->adapters.n == 0) return 0;
    if (is_activated(session)) {
        size_t most = *n, from = (size_t)session->adapters.from;
        size_t open = session->holders[0]->n_invocation;
        *n = most > open ? most - open : 0;
        if (from < *n) *n = from;
        return 0;
    }
    for (uint32_t i = 0; i < session->adapters.n; i++) {
        variant = pith_hash(&session->adapters.scale[i], sizeof(float), variant);
        variant = pith_hash(&session->holders[i]->content_key, sizeof(uint64_t), variant);
    }
    return variant ? variant : 1;
}
