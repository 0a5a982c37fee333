/* SPDX-License-Identifier: Apache-2.0
 * Promise: an embedding is the final states of the text's tokens, pooled; the states are those that
 * logits are made from, bit for bit with the exact contract, whatever the steps; an engine for
 * embeddings makes no replies, and one for replies no embeddings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pith.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_CTX = 160, N_IDS = 150, MOST = 4096 };

static const char *const goldens[] = {"gemma3.gguf", "llama-q4_0.gguf", NULL};

static const char *golden_path(const char *golden, char path[1024]) {
    const char *source = getenv("PITH_SOURCE_DIR");
    snprintf(path, 1024, "%s/tests/data/arch/%s", source ? source : ".", golden);
    return path;
}

typedef struct fixture {
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    int32_t n_embd, ids[N_IDS];
} fixture;

static void open_fixture(fixture *f, const char *golden, bool embeddings, int32_t step) {
    char path[1024];
    pith_error error = {0};
    pith_engine_options options = {.size = sizeof options,
                                   .n_ctx = N_CTX,
                                   .n_threads = 2,
                                   .step_limit = step,
                                   .exact = true,
                                   .embeddings = embeddings};
    *f = (fixture){0};
    assert_int_equal(pith_model_open(golden_path(golden, path), NULL, &f->model, &error), PITH_OK);
    assert_int_equal(pith_engine_new(f->model, &options, &f->engine, &error), PITH_OK);
    assert_int_equal(pith_session_new(f->engine, &f->session, &error), PITH_OK);
    f->n_embd = pith_model_describe(f->model).n_embd;
    assert_true(f->n_embd <= MOST);
    for (int32_t i = 0; i < N_IDS; i++) f->ids[i] = 60 + i * 7 % 50;
}

static void close_fixture(fixture *f) {
    pith_session_free(f->session);
    pith_engine_free(f->engine);
    pith_model_close(f->model);
}

/* States of all tokens, as the output layer of an engine for replies is given them. */
typedef struct states {
    size_t n;
    float *rows; /* [N_IDS, n_embd] */
} states;

static void note_states(void *user, const char *name, size_t n_rows, size_t width,
                        const float *values) {
    states *s = user;
    if (strcmp(name, "output_norm") != 0) return;
    assert_true(s->n + n_rows <= N_IDS);
    memcpy(s->rows + s->n * width, values, n_rows * width * sizeof *values);
    s->n += n_rows;
}

static int go_on(void *user, size_t first, size_t n, const float *logits) {
    (void)user;
    (void)first;
    (void)n;
    (void)logits;
    return 0;
}

static void final_states(const char *golden, states *s) {
    fixture f;
    open_fixture(&f, golden, false, 64);
    s->n = 0;
    s->rows = malloc((size_t)N_IDS * (size_t)f.n_embd * sizeof *s->rows);
    assert_non_null(s->rows);
    pith_engine_trace(f.engine, note_states, s);
    assert_int_equal(pith_session_append_rows(f.session, f.ids, N_IDS, go_on, NULL, NULL), PITH_OK);
    assert_int_equal(s->n, N_IDS);
    close_fixture(&f);
}

static void embeddings_are_pooled_states(void **state) {
    (void)state;
    for (int g = 0; goldens[g]; g++) {
        states s;
        final_states(goldens[g], &s);
        for (int32_t step = 1; step <= 64; step += 21) {
            fixture f;
            static float out[MOST];
            open_fixture(&f, goldens[g], true, step);
            const size_t width = (size_t)f.n_embd;
            for (int pooling = PITH_POOLING_AUTO; pooling <= PITH_POOLING_LAST; pooling++) {
                assert_int_equal(
                    pith_session_embed(f.session, f.ids, N_IDS, (pith_pooling)pooling, out, NULL),
                    PITH_OK);
                for (size_t i = 0; i < width; i++) {
                    double mean = 0;
                    for (size_t k = 0; k < N_IDS; k++) mean += (double)s.rows[k * width + i];
                    float expected = pooling == PITH_POOLING_FIRST ? s.rows[i]
                                     : pooling == PITH_POOLING_LAST
                                         ? s.rows[(N_IDS - 1) * width + i]
                                         : (float)(mean / N_IDS);
                    assert_memory_equal(&out[i], &expected, sizeof expected);
                }
            }
            close_fixture(&f);
        }
        free(s.rows);
    }
}

static void embedding_engines_make_nothing_else(void **state) {
    fixture f;
    pith_error error = {0};
    pith_sampler *sampler = NULL;
    static float out[MOST];
    (void)state;
    open_fixture(&f, goldens[0], true, 64);
    assert_int_equal(pith_sampler_new(f.model, NULL, &sampler, &error), PITH_OK);
    assert_int_equal(pith_generate(f.session, sampler, f.ids, N_IDS, NULL, NULL, &error),
                     PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "embeddings"));
    assert_int_equal(pith_session_append(f.session, f.ids, 3, NULL, NULL, &error), PITH_OK);
    assert_null(pith_session_logits(f.session));
    assert_int_equal(pith_session_embed(f.session, f.ids, 0, PITH_POOLING_AUTO, out, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_session_embed(f.session, f.ids, 1, (pith_pooling)4, out, &error),
                     PITH_ERROR_ARGUMENT);
    const int32_t wrong = -1;
    assert_int_equal(pith_session_embed(f.session, &wrong, 1, PITH_POOLING_AUTO, out, &error),
                     PITH_ERROR_ARGUMENT);
    pith_sampler_free(sampler);
    close_fixture(&f);
    open_fixture(&f, goldens[0], false, 64);
    assert_int_equal(pith_session_embed(f.session, f.ids, 3, PITH_POOLING_AUTO, out, &error),
                     PITH_ERROR_ARGUMENT);
    close_fixture(&f);
}

static void contexts_hold_their_limit(void **state) {
    fixture f;
    static float out[MOST];
    static int32_t ids[N_CTX + 1];
    (void)state;
    open_fixture(&f, goldens[1], true, 64);
    for (int i = 0; i <= N_CTX; i++) ids[i] = 60 + i % 50;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(pith_session_embed(f.session, ids, N_CTX, PITH_POOLING_AUTO, out, NULL),
                         PITH_OK);
        assert_int_equal(
            pith_session_embed(f.session, ids, N_CTX + 1, PITH_POOLING_AUTO, out, NULL),
            PITH_ERROR_LIMIT);
    }
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(embeddings_are_pooled_states),
                                       cmocka_unit_test(embedding_engines_make_nothing_else),
                                       cmocka_unit_test(contexts_hold_their_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
