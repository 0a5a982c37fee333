/* SPDX-License-Identifier: Apache-2.0
 * For tests of src/engine: models, engines, sessions and samplers that open, or the test fails and
 * says why; groups of sessions of one engine; the text that sessions read. After cmocka.h. */
#ifndef PITH_TESTS_OPEN_ENGINE_H
#define PITH_TESTS_OPEN_ENGINE_H

#include "cpu/cpu.h"
#include "engine/reply.h"
#include "support/changed_model.h"

static inline uint32_t cpu_features(void) {
    uint32_t features = 0;
    pith_error error = {0};
    if (pith_cpu_features(&features, &error) != PITH_OK) fail_msg("%s", error.text);
    return features;
}

static inline pith_model *open_model_at(const char *path) {
    pith_gguf *gguf = NULL;
    pith_model *model = NULL;
    pith_error error = {0};
    if (pith_gguf_open_path(path, &gguf, &error) != PITH_OK ||
        pith_model_load(gguf, NULL, cpu_features(), &model, &error) != PITH_OK)
        fail_msg("%s: %s", path, error.text);
    return model;
}

/* By its name in tests/data/arch. */
static inline pith_model *open_golden(const char *name) {
    char path[1024];
    return open_model_at(golden_path(name, path));
}

static inline pith_engine *open_engine_as(const pith_model *model, pith_engine_options options) {
    pith_engine *engine = NULL;
    pith_error error = {0};
    options.size = sizeof options;
    if (pith_engine_open(model, &options, &engine, &error) != PITH_OK) fail_msg("%s", error.text);
    return engine;
}

static inline pith_session *open_session(pith_engine *engine) {
    pith_session *session = NULL;
    pith_error error = {0};
    if (pith_session_open(engine, &session, &error) != PITH_OK) fail_msg("%s", error.text);
    return session;
}

static inline pith_sampler *open_sampler(const pith_model *model, pith_sampler_options options) {
    pith_sampler *sampler = NULL;
    pith_error error = {0};
    options.size = sizeof options;
    if (pith_sample_new((int32_t)model->hparams.n_vocab, &options, &sampler, &error) != PITH_OK)
        fail_msg("%s", error.text);
    return sampler;
}

/* ---- Several sessions of one engine ---- */

enum { GROUP_MOST = 6 };

typedef struct session_group {
    pith_model *model; /* owned */
    pith_engine *engine;
    pith_session *sessions[GROUP_MOST]; /* of the engine, which frees them */
    pith_sampler *samplers[GROUP_MOST]; /* owned; the test opens them */
} session_group;

static inline session_group open_group(pith_model *model, pith_engine_options options) {
    session_group g = {.model = model, .engine = open_engine_as(model, options)};
    for (int32_t i = 0; i < options.n_sessions; i++) g.sessions[i] = open_session(g.engine);
    return g;
}

static inline void close_group(session_group *g) {
    for (int i = 0; i < GROUP_MOST; i++) pith_sample_free(g->samplers[i]);
    pith_engine_close(g->engine);
    pith_model_drop_trie(g->model);
    pith_model_free(g->model);
}

/* n ids of a prompt; prompts of different numbers share no beginning. */
static inline void fill_prompt(int32_t *ids, size_t n, int number) {
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)(60 + (i * 7 + (size_t)number * 31) % 50);
}

/* A step whose rows all take the same: guesses are made however fast the machine is. */
static inline void advance_evenly(pith_engine *engine) {
    for (int i = 1; i <= PITH_PACE_ROWS; i++) engine->pace.ns[i] = 1e9;
    pith_engine_advance(engine);
}

/* ---- A text ---- */

/* The i-th token of the text that sessions read. */
static inline int32_t token(size_t i) {
    return (int32_t)((i * 37 + i / 5) % 250);
}

enum { MOST_FED = 512 };

static inline void feed(pith_session *session, size_t from, size_t to) {
    int32_t ids[MOST_FED];
    pith_error error = {0};
    assert_true(to - from <= MOST_FED);
    for (size_t i = from; i < to; i++) ids[i - from] = token(i);
    if (pith_session_feed(session, ids, to - from, NULL, &error) != PITH_OK)
        fail_msg("%s", error.text);
}

/* To the bit. what: for the message. */
static inline void expect_logits(const char *what, const pith_session *session,
                                 const float *expected) {
    uint32_t n_vocab = session->engine->model->hparams.n_vocab;
    assert_true(session->has_logits);
    for (uint32_t i = 0; i < n_vocab; i++)
        if (memcmp(&session->logits[i], &expected[i], sizeof(float)) != 0)
            fail_msg("%s: logit %u is %.9g, expected %.9g", what, i, (double)session->logits[i],
                     (double)expected[i]);
}

#endif
