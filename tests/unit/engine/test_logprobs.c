/* SPDX-License-Identifier: Apache-2.0
 * Promise: with on_logprobs each token of a reply comes with the log-probabilities of the model's
 * own distribution at its place, before its text, the same with and without guesses, for greedy
 * and for sampled replies with any stages; and asking for them changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "engine/reply.h"
#include "support/changed_model.h"

enum { N_CTX = 160, N_TOKENS = 40 };

typedef struct heard {
    size_t n, n_texts;
    int32_t ids[N_TOKENS];
    double own[N_TOKENS];
    size_t n_top[N_TOKENS];
    pith_logprob top[N_TOKENS][PITH_LOGPROBS_MAX];
} heard;

static pith_model *model;
static pith_engine *engine;
static pith_session *session;

static int open_all(void **state) {
    char path[1024];
    pith_gguf *gguf = NULL;
    uint32_t features = 0;
    pith_error error = {0};
    pith_engine_options options = {
        .size = sizeof options, .n_ctx = N_CTX, .n_threads = 1, .exact = true};
    (void)state;
    if (pith_cpu_features(&features, &error) != PITH_OK ||
        pith_gguf_open_path(golden_path("gemma3.gguf", path), &gguf, &error) != PITH_OK ||
        pith_model_load(gguf, NULL, features, &model, &error) != PITH_OK ||
        pith_engine_open(model, &options, &engine, &error) != PITH_OK ||
        pith_session_open(engine, &session, &error) != PITH_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    return 0;
}

static int close_all(void **state) {
    (void)state;
    pith_engine_close(engine);
    pith_model_free(model);
    return 0;
}

static void on_logprobs(void *user, int32_t id, double logprob, const pith_logprob *top,
                        size_t n_top) {
    heard *h = user;
    assert_true(h->n < N_TOKENS && n_top <= PITH_LOGPROBS_MAX);
    assert_int_equal(h->n, h->n_texts); /* its text comes afterwards */
    h->ids[h->n] = id;
    h->own[h->n] = logprob;
    h->n_top[h->n] = n_top;
    memcpy(h->top[h->n++], top, n_top * sizeof *top);
}

static int on_text(void *user, int32_t id, const char *text, size_t size) {
    heard *h = user;
    (void)text, (void)size;
    if (id >= 0) h->n_texts++;
    return 0;
}

static const int32_t prompt[] = {72, 101, 108, 72, 101, 108, 72, 101, 108, 72, 101};
enum { N_PROMPT = sizeof prompt / sizeof prompt[0] };

static pith_generation reply(float temperature, pith_draft draft, int32_t n_top, heard *h) {
    pith_sampler_options sampling = {.size = sizeof sampling,
                                     .temperature = temperature,
                                     .repeat_penalty = temperature > 0 ? 1.1f : 0,
                                     .top_k = temperature > 0 ? 5 : 0,
                                     .seed = 4};
    pith_generate_options options = {.size = sizeof options,
                                     .max_tokens = N_TOKENS,
                                     .ignore_end = true,
                                     .draft = draft,
                                     .on_text = on_text,
                                     .user = h};
    pith_sampler *sampler = NULL;
    pith_reply *made = NULL;
    pith_generation out;
    memset(h, 0, sizeof *h);
    if (n_top >= 0)
        options.on_logprobs = on_logprobs, options.logprobs_user = h, options.n_logprobs = n_top;
    pith_session_cut(session, 0);
    assert_int_equal(pith_sample_new((int32_t)model->hparams.n_vocab, &sampling, &sampler, NULL),
                     PITH_OK);
    pith_id_span ids = {prompt, N_PROMPT};
    assert_int_equal(pith_reply_open(session, sampler, ids, &options, &made, NULL), PITH_OK);
    while (!pith_reply_is_made(made)) pith_engine_advance(engine);
    assert_int_equal(pith_reply_outcome(made, &out, NULL), PITH_OK);
    pith_reply_close(made);
    pith_sample_free(sampler);
    return out;
}

/* The same by computing token by token. */
static void assert_heard(const heard *h, const int32_t *ids, size_t n_top) {
    pith_session_cut(session, 0);
    assert_int_equal(pith_session_feed(session, prompt, N_PROMPT, NULL, NULL), PITH_OK);
    for (size_t i = 0; i < N_TOKENS; i++) {
        double own;
        pith_logprob top[PITH_LOGPROBS_MAX];
        size_t n =
            pith_sample_logprobs(session->logits, model->hparams.n_vocab, ids[i], &own, top, n_top);
        assert_int_equal(h->ids[i], ids[i]);
        assert_true(h->own[i] == own && own < 0);
        assert_int_equal(h->n_top[i], n);
        for (size_t k = 0; k < n; k++)
            assert_true(h->top[i][k].id == top[k].id && h->top[i][k].logprob == top[k].logprob);
        assert_int_equal(pith_session_feed(session, &ids[i], 1, NULL, NULL), PITH_OK);
    }
}

static void logprobs_are_the_models(void **state) {
    size_t n_accepted = 0;
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        float temperature = variant % 2 ? 0.9f : 0;
        pith_draft draft = variant / 2 ? PITH_DRAFT_NGRAM : PITH_DRAFT_OFF;
        heard h, silent;
        int32_t ids[N_TOKENS];
        reply(temperature, draft, -1, &silent);
        assert_int_equal(silent.n, 0);
        memcpy(ids, session->ids + session->length - N_TOKENS, sizeof ids);
        for (int32_t n_top = 0; n_top <= PITH_LOGPROBS_MAX; n_top += 10) {
            pith_generation made = reply(temperature, draft, n_top, &h);
            assert_int_equal(made.n_predicted, N_TOKENS);
            assert_int_equal(h.n, N_TOKENS);
            assert_memory_equal(ids, session->ids + session->length - N_TOKENS, sizeof ids);
            assert_heard(&h, ids, (size_t)n_top);
            n_accepted += made.n_draft_accepted;
        }
    }
    assert_true(n_accepted > 0); /* some steps drew several tokens */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(logprobs_are_the_models)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
