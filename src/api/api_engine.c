/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Engines and sessions", "Sampling", "Generation" and the engine's part of "Looking
 * inside". */
#include "api/api_argument.h"
#include "base/memory.h"
#include "base/text.h"
#include "engine/engine.h"

#include <math.h>
#include <string.h>

/* ---- Engines ---- */

static pith_status engine_options(const pith_model *model, const pith_engine_options *options,
                                  pith_engine_options *full, pith_error *error) {
    if (!model) return pith_fail_null(error, "model");
    return pith_copy_options(full, sizeof *full, options, "pith_engine_options", error);
}

pith_status pith_engine_bytes(const pith_model *model, const pith_engine_options *options,
                              uint64_t *bytes, pith_error *error) {
    pith_engine_options full;
    if (!bytes) return pith_fail_null(error, "bytes");
    *bytes = 0;
    pith_status status = engine_options(model, options, &full, error);
    return status == PITH_OK ? pith_engine_measure(model, &full, bytes, error) : status;
}

pith_status pith_engine_new(const pith_model *model, const pith_engine_options *options,
                            pith_engine **out, pith_error *error) {
    pith_engine_options full;
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    pith_status status = engine_options(model, options, &full, error);
    return status == PITH_OK ? pith_engine_open(model, &full, out, error) : status;
}

void pith_engine_free(pith_engine *engine) {
    pith_engine_close(engine);
}

pith_engine_info pith_engine_describe(const pith_engine *engine) {
    if (!engine) return (pith_engine_info){.kv_type = "", .backend = "", .cache_note = ""};
    return pith_engine_get_info(engine);
}

void pith_engine_profile(pith_engine *engine, bool enable) {
    if (engine) pith_runner_profile(engine->runner, enable);
}

size_t pith_engine_profile_rows(const pith_engine *engine, pith_profile_row *rows,
                                size_t capacity) {
    if (!engine || (!rows && capacity > 0)) return 0;
    return pith_runner_profile_rows(engine->runner, rows, capacity);
}

void pith_engine_trace(pith_engine *engine, pith_trace trace, void *user) {
    if (engine) pith_runner_trace(engine->runner, trace, user);
}

/* ---- Sessions ---- */

pith_status pith_session_new(pith_engine *engine, pith_session **out, pith_error *error) {
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    if (!engine) return pith_fail_null(error, "engine");
    return pith_session_open(engine, out, error);
}

void pith_session_free(pith_session *session) {
    pith_session_close(session);
}

static pith_status busy(pith_error *error) {
    return pith_fail(error, PITH_ERROR_ARGUMENT, "the session is making a reply: free that first");
}

static pith_status append(pith_session *session, const int32_t *ids, size_t n_ids,
                          const pith_feed_watch *watch, pith_error *error) {
    if (!session) return pith_fail_null(error, "session");
    if (!ids && n_ids > 0) return pith_fail_null(error, "ids");
    if (session->reply) return busy(error);
    return pith_session_feed(session, ids, n_ids, watch, error);
}

pith_status pith_session_append(pith_session *session, const int32_t *ids, size_t n_ids,
                                pith_progress progress, void *user, pith_error *error) {
    pith_feed_watch watch = {.progress = progress, .progress_user = user};
    return append(session, ids, n_ids, &watch, error);
}

pith_status pith_session_append_rows(pith_session *session, const int32_t *ids, size_t n_ids,
                                     pith_rows rows, void *user, pith_error *error) {
    pith_feed_watch watch = {.rows = rows, .rows_user = user};
    if (!rows) return pith_fail_null(error, "rows");
    return append(session, ids, n_ids, &watch, error);
}

pith_status pith_session_truncate(pith_session *session, size_t n_keep, pith_error *error) {
    if (!session) return pith_fail_null(error, "session");
    if (n_keep > session->length) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "n_keep is %zu, but the session holds %zu tokens", n_keep,
                         session->length);
    }
    if (session->reply) return busy(error);
    pith_session_cut(session, n_keep);
    return PITH_OK;
}

pith_status pith_session_fork(const pith_session *session, size_t n_keep, pith_session **out,
                              pith_error *error) {
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    if (!session) return pith_fail_null(error, "session");
    if (n_keep > session->length) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "n_keep is %zu, but the session holds %zu tokens", n_keep,
                         session->length);
    }
    return pith_session_branch(session, n_keep, out, error);
}

size_t pith_session_length(const pith_session *session) {
    return session ? session->length : 0;
}

const int32_t *pith_session_ids(const pith_session *session) {
    return session ? session->ids : NULL;
}

const float *pith_session_logits(const pith_session *session) {
    return session && session->has_logits && !session->engine->embeds ? session->logits : NULL;
}

pith_status pith_session_embed(pith_session *session, const int32_t *ids, size_t n_ids,
                               pith_pooling pooling, float *out, pith_error *error) {
    if (!session) return pith_fail_null(error, "session");
    if (!ids) return pith_fail_null(error, "ids");
    if (!out) return pith_fail_null(error, "out");
    if (session->reply) return busy(error);
    if (!session->engine->embeds)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the engine makes logits: make one with options.embeddings");
    if (n_ids == 0) return pith_fail(error, PITH_ERROR_ARGUMENT, "the text has no tokens");
    if ((unsigned)pooling > PITH_POOLING_LAST)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "pooling %d is unknown", (int)pooling);
    return pith_session_pool(session, (pith_id_span){ids, n_ids}, pooling, out, error);
}

void pith_session_cancel(pith_session *session) {
    if (session) atomic_store(&session->cancelled, 1);
}

/* ---- Sampling ---- */

pith_status pith_sampler_new(const pith_model *model, const pith_sampler_options *options,
                             pith_sampler **out, pith_error *error) {
    pith_sampler_options full;
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    if (!model) return pith_fail_null(error, "model");
    pith_status status =
        pith_copy_options(&full, sizeof full, options, "pith_sampler_options", error);
    if (status != PITH_OK) return status;
    int32_t n_vocab = pith_model_get_info(model).n_vocab;
    if (!model->tokenizer || !pith_sample_wants_pieces(&full))
        return pith_sample_new(n_vocab, &full, out, error);
    pith_span *pieces = pith_alloc_array((size_t)n_vocab, sizeof *pieces);
    if (!pieces) return pith_fail_memory(error, "a sampler", (uint64_t)n_vocab * sizeof *pieces);
    for (int32_t id = 0; id < n_vocab; id++)
        pieces[id] = pith_tokenizer_bytes(model->tokenizer, id);
    status = pith_sample_new_with_pieces(pieces, n_vocab, &full, out, error);
    pith_free(pieces);
    return status;
}

pith_status pith_sampler_clone(const pith_sampler *sampler, uint64_t seed, pith_sampler **out,
                               pith_error *error) {
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    if (!sampler) return pith_fail_null(error, "sampler");
    return pith_sample_clone(sampler, seed, out, error);
}

void pith_sampler_free(pith_sampler *sampler) {
    if (sampler) pith_sample_free(sampler);
}

int32_t pith_sampler_next(pith_sampler *sampler, const float *logits) {
    return sampler && logits ? pith_sample_next(sampler, logits) : 0;
}

void pith_sampler_accept(pith_sampler *sampler, const int32_t *ids, size_t n_ids) {
    if (sampler && ids) pith_sample_accept(sampler, ids, n_ids);
}

bool pith_sampler_rewind(pith_sampler *sampler, size_t n) {
    return sampler && pith_sample_rewind(sampler, n);
}

size_t pith_sampler_distribution(pith_sampler *sampler, const float *logits, int32_t *ids,
                                 double *probabilities, size_t capacity) {
    if (!sampler || !logits || ((!ids || !probabilities) && capacity > 0)) return 0;
    return pith_sample_distribution(sampler, logits, NULL, ids, probabilities, capacity);
}

size_t pith_logprobs(const float *logits, int32_t n_vocab, int32_t id, double *logprob,
                     pith_logprob *top, int32_t n_top) {
    double unwanted;
    if (!logprob) logprob = &unwanted;
    *logprob = -HUGE_VAL;
    if (!logits || n_vocab < 1) return 0;
    size_t n = top && n_top > 0 ? (size_t)n_top : 0;
    return pith_sample_logprobs(logits, (size_t)n_vocab, id, logprob, top, n);
}

/* ---- Generation ---- */

static pith_status check_stops(const pith_generate_options *options, pith_error *error) {
    if (options->n_stops > 0 && !options->stops) return pith_fail_null(error, "stops");
    for (size_t i = 0; i < options->n_stops; i++) {
        pith_span stop = {options->stops[i], options->stops[i] ? strlen(options->stops[i]) : 0};
        if (stop.size == 0) {
            return pith_fail(error, PITH_ERROR_ARGUMENT, "stop string %zu is NULL or empty", i);
        }
        for (size_t at = 0; at < stop.size;) {
            uint32_t code;
            at += pith_utf8_decode(stop.data + at, stop.size - at, &code);
            if (code == PITH_UTF8_INVALID) {
                return pith_fail(error, PITH_ERROR_ARGUMENT, "stop string %zu is not UTF-8", i);
            }
        }
    }
    return PITH_OK;
}

/* Checks what a reply is made of and fills in defaults. */
static pith_status reply_options(const pith_session *session, const pith_sampler *sampler,
                                 const int32_t *prompt, const pith_generate_options *options,
                                 pith_generate_options *full, pith_error *error) {
    if (!session) return pith_fail_null(error, "session");
    if (!sampler) return pith_fail_null(error, "sampler");
    if (!prompt) return pith_fail_null(error, "prompt");
    pith_status status =
        pith_copy_options(full, sizeof *full, options, "pith_generate_options", error);
    if (status == PITH_OK) status = check_stops(full, error);
    if (status != PITH_OK) return status;
    if (full->max_tokens < 0) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "max_tokens %d is negative", full->max_tokens);
    }
    if (full->draft > PITH_DRAFT_NGRAM) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "draft %d is no source of guesses",
                         (int)full->draft);
    }
    if (full->max_draft < 0 || full->max_draft > 15) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "max_draft is %d: it must be 0 to 15",
                         full->max_draft);
    }
    if (full->overflow > PITH_OVERFLOW_TRUNCATE_MIDDLE) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "overflow %d is no way to overflow",
                         (int)full->overflow);
    }
    if (full->n_keep < 0 || (uint32_t)full->n_keep > session->engine->n_ctx / 2) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "n_keep is %d: it must be 0 to %u, half the context", full->n_keep,
                         session->engine->n_ctx / 2);
    }
    if (full->n_logprobs < 0 || full->n_logprobs > PITH_LOGPROBS_MAX) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "n_logprobs is %d: it must be 0 to %d",
                         full->n_logprobs, PITH_LOGPROBS_MAX);
    }
    if (full->n_logprobs > 0 && !full->on_logprobs) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "n_logprobs is %d, but on_logprobs is NULL",
                         full->n_logprobs);
    }
    if (full->n_cache_at > 0 && !full->cache_at) return pith_fail_null(error, "cache_at");
    if (full->n_cache_at > 16) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "n_cache_at is %zu: it must be 0 to 16",
                         full->n_cache_at);
    }
    if (!(full->deadline_ms >= 0)) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "deadline_ms is %g: it must be 0 or more",
                         full->deadline_ms);
    }
    return PITH_OK;
}

pith_status pith_reply_new(pith_session *session, pith_sampler *sampler, const int32_t *prompt,
                           size_t n_prompt, const pith_generate_options *options, pith_reply **out,
                           pith_error *error) {
    pith_generate_options full;
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    pith_status status = reply_options(session, sampler, prompt, options, &full, error);
    if (status != PITH_OK) return status;
    return pith_reply_open(session, sampler, (pith_id_span){prompt, n_prompt}, &full, out, error);
}

void pith_reply_free(pith_reply *reply) {
    pith_reply_close(reply);
}

bool pith_reply_is_done(const pith_reply *reply) {
    return !reply || pith_reply_is_made(reply);
}

pith_status pith_reply_result(const pith_reply *reply, pith_generation *out, pith_error *error) {
    if (!out) return pith_fail_null(error, "out");
    *out = (pith_generation){0};
    if (!reply) return pith_fail_null(error, "reply");
    return pith_reply_outcome(reply, out, error);
}

pith_status pith_engine_step(pith_engine *engine, size_t *n_running, pith_error *error) {
    if (n_running) *n_running = 0;
    if (!engine) return pith_fail_null(error, "engine");
    pith_engine_advance(engine);
    if (n_running) *n_running = engine->n_replies;
    return PITH_OK;
}

pith_status pith_generate(pith_session *session, pith_sampler *sampler, const int32_t *prompt,
                          size_t n_prompt, const pith_generate_options *options,
                          pith_generation *out, pith_error *error) {
    pith_reply *reply = NULL;
    pith_generation unwanted;
    if (!out) out = &unwanted;
    *out = (pith_generation){0};
    pith_status status = pith_reply_new(session, sampler, prompt, n_prompt, options, &reply, error);
    if (status != PITH_OK) return status;
    while (!pith_reply_is_made(reply)) pith_engine_advance(session->engine);
    status = pith_reply_outcome(reply, out, error);
    pith_reply_close(reply);
    return status;
}
