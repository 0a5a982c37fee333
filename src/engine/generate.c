/* SPDX-License-Identifier: Apache-2.0
 * A reply: the session is brought to the prompt, then tokens are drawn one by one until something
 * stops it.
 *
 *   prompt -> keep the common prefix -> compute the rest -> [ draw -> tell -> stop? -> compute ]
 * ...
 *
 * Invariant: ids that were drawn are in the session, the last one not yet computed; the texts
 * told through on_text, put together, are the reply. Nothing is allocated between the first token
 * and the last. */
#include "base/clock.h"
#include "base/memory.h"
#include "engine/engine.h"

#include <string.h>

/* One reply being made. */
typedef struct reply {
    pith_session *session;
    pith_sampler *sampler;
    const pith_generate_options *options;
    pith_generation *out;
    pith_detok *detok; /* the session's */
    pith_stop_text stops;
    uint64_t started, first, last; /* nanoseconds */
} reply;

static double milliseconds(uint64_t from, uint64_t to) {
    return (double)(to - from) / 1e6;
}

/* Brings the session to the prompt's own tokens and computes what is missing. The last token is
 * computed again where its logits are gone. */
static pith_status read_prompt(reply *r, pith_id_span prompt, pith_error *error) {
    pith_session *session = r->session;
    size_t same = 0;
    while (same < prompt.size && same < session->length &&
           session->ids[same] == prompt.data[same]) {
        same++;
    }
    bool ready = same == prompt.size && same == session->length && session->has_logits;
    if (!ready && same == prompt.size) same--;
    pith_session_cut(session, same);
    r->out->n_cached = pith_kv_sequence_length(session->kv);
    if (ready) return PITH_OK;
    pith_feed_watch watch = {.progress = r->options->on_prompt,
                             .progress_user = r->options->prompt_user};
    return pith_session_feed(session, prompt.data + same, prompt.size - same, &watch, error);
}

static bool tell(reply *r, int32_t id, const char *text, size_t size) {
    return !r->options->on_text || r->options->on_text(r->options->user, id, text, size) == 0;
}

/* Tells the text that a token completes. Returns false when the reply ends with it, and sets
 * *stop. */
static bool tell_token(reply *r, int32_t id, pith_stop *stop) {
    pith_span text = pith_detok_push(r->detok, id);
    bool found = false;
    size_t ready = pith_stop_text_push(&r->stops, text.data, text.size, &found);
    bool go_on = tell(r, id, r->stops.held, ready);
    pith_stop_text_drop(&r->stops, ready);
    if (found)
        *stop = PITH_STOP_TEXT;
    else if (!go_on)
        *stop = PITH_STOP_CALLBACK;
    return go_on && !found;
}

/* What waited for the rest of a character or of a stop string that did not come. */
static void tell_rest(reply *r) {
    pith_span text = pith_detok_push(r->detok, -1);
    bool found = false;
    pith_stop_text_push(&r->stops, text.data, text.size, &found);
    if (r->stops.n_held > 0) tell(r, -1, r->stops.held, r->stops.n_held);
    pith_stop_text_drop(&r->stops, r->stops.n_held);
}

static int32_t draw(reply *r) {
    pith_session *session = r->session;
    int32_t id = pith_sample_next(r->sampler, session->logits);
    r->last = pith_clock_ns();
    if (r->out->n_predicted == 0) r->first = r->last;
    session->ids[session->length++] = id;
    session->has_logits = false;
    r->out->n_predicted++;
    return id;
}

/* Draws tokens until the reply ends. */
static pith_status make_tokens(reply *r, pith_error *error) {
    pith_session *session = r->session;
    size_t limit = r->options->max_tokens > 0 ? (size_t)r->options->max_tokens : SIZE_MAX;
    for (;;) {
        if (session->length == session->engine->n_ctx) {
            r->out->stop = PITH_STOP_CONTEXT;
            return PITH_OK;
        }
        int32_t id = draw(r);
        if (!tell_token(r, id, &r->out->stop)) return PITH_OK;
        if (!r->options->ignore_end && pith_model_is_end(session->engine->model, id)) {
            r->out->stop = PITH_STOP_END;
            return PITH_OK;
        }
        if (r->out->n_predicted >= limit) {
            r->out->stop = PITH_STOP_LENGTH;
            return PITH_OK;
        }
        if (session->length < session->engine->n_ctx) {
            pith_status status = pith_session_feed(session, NULL, 0, NULL, error);
            if (status != PITH_OK) return status;
        }
    }
}

/* The reply continues the prompt: a leading space of its first token is text when the prompt
 * has text. */
static bool prompt_has_text(const pith_model *model, pith_id_span prompt) {
    for (size_t i = prompt.size; i-- > 0;) {
        pith_token_type type = pith_tokenizer_type(model->tokenizer, prompt.data[i]);
        if (type != PITH_TOKEN_CONTROL && type != PITH_TOKEN_UNKNOWN) return true;
    }
    return false;
}

static pith_status start(reply *r, pith_id_span prompt, pith_error *error) {
    const pith_engine *engine = r->session->engine;
    r->detok = &r->session->detok;
    r->detok->show_control = r->options->show_control;
    r->detok->started = prompt_has_text(engine->model, prompt);
    r->detok->n_pending = 0;
    return pith_stop_text_init(&r->stops, r->options->stops, r->options->n_stops,
                               engine->max_token_bytes, error);
}

static pith_status check(const pith_session *session, const pith_sampler *sampler,
                         pith_id_span prompt, pith_error *error) {
    uint32_t n_vocab = session->engine->model->hparams.n_vocab;
    if ((uint32_t)pith_sample_n_vocab(sampler) != n_vocab) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the sampler is for a vocabulary of %d, the model has %u",
                         pith_sample_n_vocab(sampler), n_vocab);
    }
    if (prompt.size == 0) return pith_fail(error, PITH_ERROR_ARGUMENT, "the prompt has no tokens");
    if (!session->engine->model->tokenizer) {
        return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                         "the model has no vocabulary to write with");
    }
    if (prompt.size <= session->engine->n_ctx) return PITH_OK;
    return pith_fail(
        error, PITH_ERROR_LIMIT,
        "the prompt has %zu tokens, the context holds %u: shorten it or make the engine "
        "with a larger n_ctx",
        prompt.size, session->engine->n_ctx);
}

pith_status pith_session_generate(pith_session *session, pith_sampler *sampler, pith_id_span prompt,
                                  const pith_generate_options *options, pith_generation *out,
                                  pith_error *error) {
    *out = (pith_generation){.n_prompt = prompt.size};
    reply r = {.session = session, .sampler = sampler, .options = options, .out = out};
    pith_status status = check(session, sampler, prompt, error);
    if (status != PITH_OK) return status;
    r.started = r.first = r.last = pith_clock_ns();
    status = start(&r, prompt, error);
    if (status == PITH_OK) status = read_prompt(&r, prompt, error);
    out->prompt_ms = milliseconds(r.started, pith_clock_ns());
    if (status == PITH_OK) status = make_tokens(&r, error);
    if (status == PITH_ERROR_CANCELLED) {
        out->stop = PITH_STOP_CANCELLED;
        status = PITH_OK;
    }
    if (status == PITH_OK && out->stop != PITH_STOP_TEXT && out->stop != PITH_STOP_CALLBACK) {
        tell_rest(&r);
    }
    if (out->n_predicted > 0) {
        out->ttft_ms = milliseconds(r.started, r.first);
        out->predicted_ms = milliseconds(r.first, r.last);
    }
    pith_stop_text_deinit(&r.stops);
    if (status != PITH_OK) *out = (pith_generation){0};
    return status;
}
