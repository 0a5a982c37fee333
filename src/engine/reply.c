/* SPDX-License-Identifier: Apache-2.0
 * A reply: the session is brought to the prompt, then tokens are drawn until something stops it.
 *
 *   prompt -> keep what is in KV -> compute the rest -> [ draw -> tell -> stop? -> compute ] ...
 *
 * Invariant: ids that were drawn and told are in the session, the last one not computed; the
 * texts told through on_text, put together, are the reply. Between the first token and the last
 * only a grammar allocates. Text is told after the step in which its tokens were drawn, so a
 * caller's function never runs inside a step. What is told: reply_text.c; going back: reply_ban.c;
 * which replies share a step: schedule.c. */
#include "engine/reply.h"

#include "base/clock.h"
#include "base/memory.h"
#include "engine/prefix.h"

#include <math.h>
#include <string.h>

/* A prefix of another session is worth taking from so many tokens on. */
enum { LEAST_SHARED = 32 };

/* Of states and masks of a grammar, at most. */
enum { MATCHER_BYTES = 64 << 20 };

static double milliseconds(uint64_t from, uint64_t to) {
    return (double)(to - from) / 1e6;
}

/* ---- Ends ---- */

/* The session and the engine know it no more. */
static void detach(pith_reply *r) {
    pith_engine *engine = r->session->engine;
    uint32_t i = 0;
    pith_prefix_leave(engine->prefix, r->session);
    while (engine->replies[i] != r) i++;
    for (engine->n_replies--; i < engine->n_replies; i++) {
        engine->replies[i] = engine->replies[i + 1];
    }
    r->session->reply = NULL;
}

static void leave(pith_reply *r) {
    r->phase = PITH_REPLY_DONE;
    detach(r);
    if (r->read == 0) r->read = pith_clock_ns();
    r->out.prompt_ms = milliseconds(r->started, r->read);
    if (r->out.n_predicted > 0) {
        r->out.ttft_ms = milliseconds(r->started, r->first);
        r->out.predicted_ms = milliseconds(r->first, r->last);
    }
}

/* A prompt that was not read to its end: finished steps stay, and so does what was held before. */
static void keep_what_was_read(pith_reply *r) {
    size_t computed = pith_kv_sequence_length(r->session->kv);
    if (r->phase != PITH_REPLY_READING || r->read > 0) return;
    r->session->length = computed > r->held ? computed : r->held;
    r->session->has_logits = false;
}

void pith_reply_end(pith_reply *reply, pith_stop stop) {
    keep_what_was_read(reply);
    reply->out.stop = stop;
    leave(reply);
    if (stop != PITH_STOP_TEXT && stop != PITH_STOP_CALLBACK) pith_text_finish(reply);
}

void pith_reply_fail(pith_reply *reply, pith_status status, const pith_error *error) {
    keep_what_was_read(reply);
    leave(reply);
    reply->status = status;
    if (error) reply->error = *error;
    reply->out = (pith_generation){0};
}

/* ---- Drawing ---- */

static bool ends_with(const pith_reply *r, int32_t id) {
    return (!r->options.ignore_end || r->matcher) &&
           pith_model_is_end(r->session->engine->model, id);
}

/* Tokens that may still be drawn, the limit and the context considered. */
static size_t room(const pith_reply *r) {
    const pith_session *session = r->session;
    size_t left = session->engine->n_ctx - session->length;
    if (r->options.max_tokens <= 0) return left;
    size_t wanted = (size_t)r->options.max_tokens - r->out.n_predicted;
    return wanted < left ? wanted : left;
}

static bool has_number(const float *logits, uint32_t n_vocab) {
    for (uint32_t i = 0; i < n_vocab; i++)
        if (logits[i] > -INFINITY) return true;
    return false;
}

/* -1: grammar and bans allow no token, or no logit is a number. */
static int32_t draw(pith_reply *r, const float *logits) {
    const pith_token_filter *filter = pith_bans_filter(r);
    int32_t id = pith_sample_next_of(r->sampler, logits, filter);
    if (id < 0 || (r->matcher && !pith_matcher_accept(r->matcher, id))) {
        if (id >= 0) pith_sample_undo(r->sampler, 1);
        r->is_stuck = true;
        r->is_numb = id < 0 && !has_number(logits, r->session->engine->model->hparams.n_vocab);
        return -1;
    }
    r->last = pith_clock_ns();
    if (r->first == 0) r->first = r->last;
    pith_logprobs_note(r, logits, id);
    r->drawn[r->n_drawn++] = id;
    return id;
}

/* pith_part.on_row while MAKING. */
static int draw_row(void *user, uint32_t row, const float *logits) {
    pith_reply *r = user;
    if (r->is_closed) return 0;
    int32_t id = draw(r, logits);
    r->is_closed = id < 0;
    if (r->is_closed) return 0;
    bool goes_on = row < r->n_drafts && id == r->session->ids[r->session->length + row];
    r->is_closed = !goes_on || ends_with(r, id) || r->n_drawn >= room(r);
    return 0;
}

/* The context is full. Drops the older half of what is behind the first n_keep tokens; the rest is
 * read again, so that KV is what these tokens alone give. false: the reply ends instead. */
static bool shift(pith_reply *r) {
    pith_session *session = r->session;
    if (r->options.overflow != PITH_OVERFLOW_SHIFT) return false;
    size_t keep = pith_overflow_keep(session->engine->n_ctx, &r->options);
    pith_prefix_leave(session->engine->prefix, session);
    size_t drop = pith_overflow_drop(session->ids, session->length, keep);
    if (drop == 0) return false;
    session->length -= drop;
    session->has_logits = false;
    pith_kv_sequence_truncate(session->kv, (uint32_t)keep);
    pith_session_aim_adapters(session, session->length);
    r->out.n_dropped += drop;
    r->phase = PITH_REPLY_READING;
    r->n_fed = session->length;
    r->n_fixed = r->n_fixed > keep + drop ? r->n_fixed - drop : keep;
    r->first_fast = pith_engine_first_fast(session->engine, keep, session->length - keep);
    if (r->drafter.mode != PITH_DRAFT_OFF) pith_draft_text_clear(&r->drafter.text);
    return true;
}

/* What became of a token that was taken. */
typedef enum outcome { GOES_ON, ENDS, GOES_BACK } outcome;
typedef struct verdict {
    outcome what;
    pith_stop stop; /* ENDS */
    size_t back;    /* GOES_BACK: to this token of the reply */
} verdict;

/* Puts a drawn token into the session and tells it. */
static verdict take(pith_reply *r, int32_t id) {
    pith_session *session = r->session;
    verdict v = {ENDS, PITH_STOP_CONTEXT, 0};
    session->ids[session->length++] = id;
    session->has_logits = false;
    r->out.n_predicted++;
    pith_told told = pith_text_push(r, id, &v.stop, &v.back);
    if (told == PITH_TOLD_STOP) return v;
    if (told == PITH_TOLD_BACK)
        v.what = GOES_BACK;
    else if (ends_with(r, id))
        v.stop = PITH_STOP_END;
    else if (r->options.max_tokens > 0 && r->out.n_predicted >= (size_t)r->options.max_tokens)
        v.stop = PITH_STOP_LENGTH;
    else if (session->length < session->engine->n_ctx || shift(r))
        v.what = GOES_ON;
    return v;
}

/* Nothing may be drawn: better no reply than another text. */
static void fail_stuck(pith_reply *r) {
    pith_error error;
    const char *why = r->matcher ? pith_matcher_failed(r->matcher) : NULL;
    pith_status status = why ? PITH_ERROR_LIMIT : PITH_ERROR_UNSUPPORTED;
    if (r->is_numb) {
        status = PITH_ERROR_FORMAT;
        pith_fail(&error, status,
                  "the model's results were no numbers after %zu tokens: its weights, or those of "
                  "an adapter at this scale, are damaged or too large",
                  r->out.n_predicted);
    } else if (!why && pith_bans_are_at(r, r->out.n_predicted)) {
        pith_fail(&error, status,
                  "banned strings stopped the reply after %zu tokens: every token that may come "
                  "there begins one",
                  r->out.n_predicted);
    } else {
        pith_fail(&error, status, "the grammar stopped the reply after %zu tokens: %s",
                  r->out.n_predicted,
                  why ? why : "no token of the vocabulary goes on with its text");
    }
    pith_reply_fail(r, status, &error);
}

/* KV keeps what was computed of the session, but for the last token, whose logits are wanted; where
 * session->logits are those, they are drawn from again. What a window has dropped is read again. */
static void aim(pith_reply *r, bool went_back) {
    pith_session *session = r->session;
    bool is_making = r->phase == PITH_REPLY_MAKING;
    bool draws_again = is_making && went_back && session->length == r->logits_at;
    size_t n = draws_again ? session->length : session->length - 1;
    if (r->phase == PITH_REPLY_READING) return;
    if (pith_kv_sequence_length(session->kv) > n) {
        size_t kept = pith_kv_sequence_truncate(session->kv, (uint32_t)n);
        if (kept < n) draws_again = is_making;
    }
    if (draws_again) r->phase = PITH_REPLY_READING;
}

/* Takes all that were drawn, unless one of them ends the reply or sends it back. */
static void take_drawn(pith_reply *r) {
    verdict v = {GOES_ON, PITH_STOP_END, 0};
    bool goes_on = true;
    uint32_t i = 0;
    for (; i < r->n_drawn && goes_on; i++) {
        v = take(r, r->drawn[i]);
        goes_on = v.what == GOES_ON && !atomic_load(&r->session->cancelled);
    }
    if (i < r->n_drawn) {
        pith_sample_undo(r->sampler, r->n_drawn - i);
        if (r->matcher) pith_matcher_rewind(r->matcher, r->n_drawn - i);
    }
    bool is_stuck = r->is_stuck && goes_on && i == r->n_drawn;
    r->n_drawn = r->n_drafts = 0;
    r->is_stuck = false;
    if (is_stuck) fail_stuck(r);
    /* on_text stopped it while others waited: the session ends with what was told */
    if (v.what == ENDS && v.stop == PITH_STOP_CALLBACK && r->n_told < r->out.n_predicted)
        (void)pith_reply_return(r, pith_text_first(r), false);
    if (v.what == GOES_BACK) (void)pith_reply_return(r, v.back, true);
    if (v.what == ENDS && r->phase != PITH_REPLY_DONE) pith_reply_end(r, v.stop);
    aim(r, v.what == GOES_BACK);
}

/* The prompt is in KV and its last logits are there. */
static void begin_making(pith_reply *r) {
    pith_session *session = r->session;
    if (r->read == 0) r->read = pith_clock_ns();
    r->phase = PITH_REPLY_MAKING;
    r->logits_at = session->length;
    if (session->length == session->engine->n_ctx) {
        if (!shift(r)) pith_reply_end(r, PITH_STOP_CONTEXT);
        return;
    }
    draw(r, session->logits);
    take_drawn(r);
}

/* ---- Steps ---- */

/* pith_part.on_row while READING: the last row stays in the session. */
static int keep_row(void *user, uint32_t row, const float *logits) {
    pith_session *session = ((pith_reply *)user)->session;
    (void)row;
    memcpy(session->logits, logits, session->engine->model->hparams.n_vocab * sizeof *logits);
    session->has_logits = true;
    return 0;
}

static pith_part reading_part(pith_reply *r, uint32_t n_rows) {
    pith_session *session = r->session;
    size_t left = pith_reply_unread(r), computed = pith_kv_sequence_length(session->kv);
    uint32_t n = left < n_rows ? (uint32_t)left : n_rows;
    bool was_made = computed >= r->n_fed; /* and is read again: in the contract it was made in */
    if (!was_made && n > r->n_fed - computed) n = (uint32_t)(r->n_fed - computed);
    return (pith_part){.session = session,
                       .n = n,
                       .first_out = n == left ? n - 1 : n,
                       .first_fast = was_made ? SIZE_MAX : r->first_fast,
                       .on_row = keep_row,
                       .user = r};
}

/* Writes guesses behind the session's tokens; where tokens are banned, the last ones were wrong. */
static uint32_t guess(pith_reply *r, uint32_t most) {
    pith_session *session = r->session;
    const pith_engine *engine = session->engine;
    int32_t *guesses = session->ids + session->length;
    if (r->drafter.mode == PITH_DRAFT_OFF || most == 0) return 0;
    if (pith_bans_are_at(r, r->out.n_predicted)) return 0;
    uint64_t begun = pith_clock_ns();
    uint32_t n;
    pith_forced_find(r, most);
    if (engine->n_replies > 1)
        n = pith_draft_guess_forced(&r->drafter, &engine->pace, most, guesses);
    else
        n = pith_draft_guess(&r->drafter, &engine->pace, session->ids, session->length, most,
                             guesses);
    if (r->drafter.is_forced) r->drafter.made_ns = (double)(pith_clock_ns() - begun);
    return n;
}

static pith_part making_part(pith_reply *r, uint32_t n_rows) {
    size_t most = room(r) - 1; /* the row behind the last guess draws too */
    if (most > n_rows - 1) most = n_rows - 1;
    if (most > r->max_drafts) most = r->max_drafts;
    r->n_drawn = 0;
    r->is_closed = false;
    r->drafter.is_forced = false;
    r->n_drafts = guess(r, (uint32_t)most);
    return (pith_part){.session = r->session,
                       .n = 1 + r->n_drafts,
                       .first_out = 0,
                       .first_fast = SIZE_MAX,
                       .on_row = draw_row,
                       .user = r};
}

pith_part pith_reply_part(pith_reply *reply, uint32_t n_rows) {
    if (reply->phase == PITH_REPLY_READING) return reading_part(reply, n_rows);
    return making_part(reply, n_rows);
}

static void after_reading(pith_reply *r) {
    pith_session *session = r->session;
    size_t computed = pith_kv_sequence_length(session->kv);
    size_t todo = r->read > 0 ? 0 : session->length - r->out.n_cached;
    pith_prefix_follow(session->engine->prefix, session, UINT32_MAX);
    double done = todo > 0 ? (double)(computed - r->out.n_cached) / (double)todo : 1;
    if (todo > 0 && r->options.on_prompt &&
        r->options.on_prompt(r->options.prompt_user, done) != 0) {
        pith_reply_end(r, PITH_STOP_CANCELLED);
    } else if (computed == session->length) {
        begin_making(r);
    }
}

size_t pith_reply_unread(const pith_reply *reply) {
    if (reply->phase != PITH_REPLY_READING) return 0;
    return reply->session->length - pith_kv_sequence_length(reply->session->kv);
}

void pith_reply_after(pith_reply *reply, uint32_t n_rows) {
    if (reply->phase == PITH_REPLY_READING) {
        after_reading(reply);
        return;
    }
    pith_prefix_follow(reply->session->engine->prefix, reply->session, 1);
    size_t n_right = reply->n_drawn > 0 ? reply->n_drawn - 1 : 0;
    if (reply->drafter.is_forced) {
        reply->out.n_forced += n_right;
    } else {
        reply->out.n_drafted += n_rows - 1;
        reply->out.n_draft_accepted += n_right;
    }
    take_drawn(reply);
}

/* ---- Starting ---- */

/* The reply continues the prompt: a leading space of its first token is text when the prompt
 * has text. */
static bool prompt_has_text(const pith_model *model, pith_id_span prompt) {
    for (size_t i = prompt.size; i-- > 0;) {
        pith_token_type type = pith_tokenizer_type(model->tokenizer, prompt.data[i]);
        if (type != PITH_TOKEN_CONTROL && type != PITH_TOKEN_UNKNOWN) return true;
    }
    return false;
}

static size_t common(pith_id_span prompt, const int32_t *ids, size_t n) {
    size_t same = 0;
    while (same < prompt.size && same < n && ids[same] == prompt.data[same]) same++;
    return same;
}

/* Another session may have computed more of the prompt: its blocks are shared. */
static size_t take_shared(pith_reply *r, pith_id_span prompt, size_t same) {
    pith_session *session = r->session;
    pith_engine *engine = session->engine;
    const pith_session *from = NULL;
    size_t best = pith_kv_sequence_length(session->kv);
    if (same < best) best = same;
    best += LEAST_SHARED;
    for (uint32_t i = 0; i < engine->n_sessions; i++) {
        const pith_session *other = &engine->sessions[i];
        if (!other->is_open || other == session) continue;
        size_t n = common(prompt, other->ids, pith_kv_sequence_length(other->kv));
        if (n == prompt.size) n--; /* the last token gives the logits */
        if (n < best || !pith_session_same_adapters(session, other, n)) continue;
        best = n;
        from = other;
    }
    if (!from) return same;
    pith_kv_sequence_truncate(session->kv, 0);
    session->has_logits = false;
    if (pith_kv_sequence_fork(session->kv, from->kv, (uint32_t)best, NULL) != PITH_OK) return 0;
    r->out.cache_source = PITH_CACHE_SHARED;
    return best;
}

/* Brings the session to the prompt: keeps what it or another session has computed of it, or reads
 * it from the disk. The last token is computed again where its logits are gone. Which rows are fast
 * does not depend on the disk. */
static void read_on_from(pith_reply *r, pith_id_span prompt) {
    pith_session *session = r->session;
    size_t same = common(prompt, session->ids, session->length);
    bool ready = same == prompt.size && same == session->length && session->has_logits;
    if (!ready && same == prompt.size) same--;
    if (!ready) same = take_shared(r, prompt, same);
    if (session->length > same) pith_session_cut(session, same);
    r->held = same;
    /* Also the first ones: they may be another session's. The prompt may be session->ids itself. */
    memmove(session->ids, prompt.data, prompt.size * sizeof *prompt.data);
    session->length = prompt.size;
    if (!ready) {
        pith_session_aim_adapters(session, prompt.size);
        pith_prefix_take(session->engine->prefix, session, prompt, &r->options, &r->out);
    }
    r->out.n_cached = ready ? prompt.size : pith_kv_sequence_length(session->kv);
    if (r->out.n_cached == 0)
        r->out.cache_source = PITH_CACHE_NONE;
    else if (r->out.cache_source == PITH_CACHE_NONE)
        r->out.cache_source = PITH_CACHE_SESSION;
    r->first_fast = pith_engine_first_fast(session->engine, same, prompt.size - same);
    r->n_fed = r->n_fixed = prompt.size;
    if (!ready) session->has_logits = false;
}

/* A prompt that is too long is shortened first, where the options allow that. */
static pith_status take_prompt(pith_reply *r, pith_id_span prompt, pith_error *error) {
    size_t n_ctx = r->session->engine->n_ctx;
    if (prompt.size <= n_ctx) {
        read_on_from(r, prompt);
        return PITH_OK;
    }
    int32_t *ids = pith_alloc_array(n_ctx, sizeof *ids);
    if (!ids) return pith_fail_memory(error, "a shortened prompt", n_ctx * sizeof *ids);
    size_t n = pith_overflow_shorten(n_ctx, &r->options, prompt, ids);
    r->out.n_dropped = prompt.size - n;
    read_on_from(r, (pith_id_span){ids, n});
    pith_free(ids);
    return PITH_OK;
}

static pith_status check_prompt_ids(pith_id_span prompt, uint32_t n_vocab, pith_error *error) {
    for (size_t i = 0; i < prompt.size; i++) {
        if (prompt.data[i] >= 0 && (uint32_t)prompt.data[i] < n_vocab) continue;
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "id %d at index %zu is outside the vocabulary of %u", prompt.data[i], i,
                         n_vocab);
    }
    return PITH_OK;
}

/* The draft model speaks of the same tokens. That takes a while, so it is done once for a session.
 */
static pith_status check_draft(pith_session *session, const pith_session *draft,
                               pith_error *error) {
    if (!draft) return PITH_OK;
    if (draft->engine->embeds) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the draft session's engine was made for embeddings: it cannot guess");
    }
    if (draft->engine == session->engine) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the draft session is of the same engine: guesses need another model");
    }
    if (draft->reply) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the draft session is making a reply: free that first");
    }
    const uint64_t key = draft->engine->model->content_key;
    if (key != 0 && session->checked_draft == key) return PITH_OK;
    pith_status status = pith_draft_check(session->engine->model, draft->engine->model, error);
    if (status == PITH_OK) session->checked_draft = key;
    return status;
}

static pith_status check(const pith_session *session, const pith_sampler *sampler,
                         pith_id_span prompt, const pith_generate_options *options,
                         pith_error *error) {
    const pith_model *model = session->engine->model;
    uint32_t n_vocab = model->hparams.n_vocab, n_ctx = session->engine->n_ctx;
    if (session->engine->embeds) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the engine was made for embeddings: it makes no replies");
    }
    if (session->reply) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the session is making a reply: free that first");
    }
    if ((uint32_t)pith_sample_n_vocab(sampler) != n_vocab) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the sampler is for a vocabulary of %d, the model has %u",
                         pith_sample_n_vocab(sampler), n_vocab);
    }
    if (!model->tokenizer) {
        return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                         "the model has no vocabulary to write with");
    }
    if (prompt.size == 0) return pith_fail(error, PITH_ERROR_ARGUMENT, "the prompt has no tokens");
    if (prompt.size > n_ctx && options->overflow == PITH_OVERFLOW_ERROR) {
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "the prompt has %zu tokens, the context holds %u: shorten it or make the "
                         "engine with a larger n_ctx",
                         prompt.size, n_ctx);
    }
    return check_prompt_ids(prompt, n_vocab, error);
}

static pith_status prepare(pith_reply *r, pith_id_span prompt, pith_error *error) {
    pith_session *session = r->session;
    const pith_engine *engine = session->engine;
    pith_status status = pith_text_prepare(r, error);
    if (status == PITH_OK) status = pith_bans_prepare(r, error);
    if (status == PITH_OK) status = pith_logprobs_prepare(r, error);
    if (status != PITH_OK) return status;
    r->drafter.mode = r->options.draft == PITH_DRAFT_AUTO ? PITH_DRAFT_NGRAM : r->options.draft;
    r->max_drafts = r->options.max_draft > 0 ? (uint32_t)r->options.max_draft : PITH_DRAFT_MAX;
    if (r->drafter.mode != PITH_DRAFT_OFF &&
        !pith_draft_text_init(&r->drafter.text, engine->n_ctx)) {
        return pith_fail_memory(error, "speculation", engine->n_ctx * sizeof(int32_t));
    }
    if (r->options.draft == PITH_DRAFT_AUTO) r->drafter.model = r->options.draft_session;
    if (r->options.grammar) {
        const pith_token_trie *trie = NULL;
        status = pith_model_get_trie(engine->model, &trie, error);
        if (status == PITH_OK) {
            status = pith_matcher_new(r->options.grammar, trie, MATCHER_BYTES, &r->matcher, error);
        }
        if (status != PITH_OK) return status;
        r->filter = pith_matcher_filter(r->matcher);
    }
    session->detok.show_control = r->options.show_control;
    session->detok.started = prompt_has_text(engine->model, prompt);
    session->detok.n_pending = 0;
    return PITH_OK;
}

pith_status pith_reply_open(pith_session *session, pith_sampler *sampler, pith_id_span prompt,
                            const pith_generate_options *options, pith_reply **out,
                            pith_error *error) {
    uint64_t started = pith_clock_ns();
    *out = NULL;
    pith_status status = check(session, sampler, prompt, options, error);
    if (status != PITH_OK) return status;
    pith_reply *r = pith_alloc_zero(1, sizeof *r);
    if (!r) return pith_fail_memory(error, "a reply", sizeof *r);
    *r = (pith_reply){.session = session,
                      .sampler = sampler,
                      .options = *options,
                      .phase = PITH_REPLY_DONE,
                      .out.n_prompt = prompt.size,
                      .started = started};
    status = check_draft(session, options->draft_session, error);
    if (status == PITH_OK) status = prepare(r, prompt, error);
    if (status != PITH_OK) {
        pith_reply_close(r);
        return status;
    }
    status = take_prompt(r, prompt, error);
    if (status != PITH_OK) {
        pith_reply_close(r);
        return status;
    }
    r->phase = PITH_REPLY_READING;
    session->reply = r;
    session->engine->replies[session->engine->n_replies++] = r;
    *out = r;
    return PITH_OK;
}

void pith_reply_close(pith_reply *reply) {
    if (!reply) return;
    if (reply->phase != PITH_REPLY_DONE) {
        keep_what_was_read(reply);
        detach(reply);
    }
    pith_text_deinit(reply);
    pith_bans_free(reply->bans);
    pith_ids_deinit(&reply->encoded);
    pith_draft_text_deinit(&reply->drafter.text);
    pith_matcher_free(reply->matcher);
    pith_free(reply->logprobs);
    pith_free(reply);
}

void pith_reply_abandon(pith_reply *reply) {
    pith_error error = {PITH_ERROR_CANCELLED, "the session of the reply was freed"};
    pith_reply_fail(reply, PITH_ERROR_CANCELLED, &error);
}

bool pith_reply_is_made(const pith_reply *reply) {
    return reply->phase == PITH_REPLY_DONE;
}

pith_status pith_reply_outcome(const pith_reply *reply, pith_generation *out, pith_error *error) {
    *out = reply->out;
    if (reply->status != PITH_OK && error) *error = reply->error;
    return reply->status;
}
