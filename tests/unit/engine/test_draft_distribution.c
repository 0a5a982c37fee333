/* SPDX-License-Identifier: Apache-2.0
 * Promise: guesses leave the distribution of a sampled reply as it is. Replies of three tokens are
 * drawn many times while a model guesses, and their counts compared by a chi-square test with the
 * product of the probabilities that the model and the sampler's stages give each token.
 * PITH_TEST_DRAWS: how many (4000, a brief test 1000). Seeds are fixed, so the outcome is too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "engine/reply.h"
#include "support/brief.h"
#include "support/changed_model.h"

#include <math.h>
#include <stdlib.h>

enum { N_CTX = 64, N_PROMPT = 12, WIDE = 4, N_PATHS = WIDE * WIDE * WIDE };

typedef struct fixture {
    pith_model *model;
    pith_engine *engines[2]; /* replies, guesses */
    pith_session *sessions[2];
    pith_sampler *sampler;
    int32_t prompt[N_PROMPT + 3];
} fixture;

static void open_fixture(fixture *f) {
    char path[1024];
    pith_gguf *gguf = NULL;
    uint32_t features = 0;
    pith_error error = {0};
    pith_engine_options options = {.size = sizeof options,
                                   .n_ctx = N_CTX,
                                   .n_threads = 1,
                                   .n_sessions = 1,
                                   .step_limit = 16,
                                   .exact = true};
    pith_sampler_options sampling = {
        .size = sizeof sampling, .temperature = 1, .top_k = WIDE, .seed = 5};
    assert_int_equal(pith_cpu_features(&features, &error), PITH_OK);
    assert_int_equal(pith_gguf_open_path(golden_path("gemma3.gguf", path), &gguf, &error), PITH_OK);
    assert_int_equal(pith_model_load(gguf, NULL, features, &f->model, &error), PITH_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pith_engine_open(f->model, &options, &f->engines[i], &error), PITH_OK);
        assert_int_equal(pith_session_open(f->engines[i], &f->sessions[i], &error), PITH_OK);
    }
    assert_int_equal(
        pith_sample_new((int32_t)f->model->hparams.n_vocab, &sampling, &f->sampler, &error),
        PITH_OK);
    for (int32_t i = 0; i < N_PROMPT; i++) f->prompt[i] = 60 + i * 7 % 50;
}

static void close_fixture(fixture *f) {
    pith_sample_free(f->sampler);
    for (int i = 0; i < 2; i++) pith_engine_close(f->engines[i]);
    pith_model_free(f->model);
}

/* What a token behind prompt[0 .. n) is drawn from. */
static void distribution_behind(fixture *f, size_t n, int32_t ids[WIDE], double p[WIDE]) {
    pith_session_cut(f->sessions[0], n - 1);
    assert_int_equal(pith_session_feed(f->sessions[0], &f->prompt[n - 1], 1, NULL, NULL), PITH_OK);
    size_t found = pith_sample_distribution(f->sampler, f->sessions[0]->logits, NULL, ids, p, WIDE);
    assert_int_equal(found, WIDE);
}

/* Each path of three tokens with its probability. */
static void all_paths(fixture *f, int32_t paths[N_PATHS][3], double p[N_PATHS]) {
    int32_t a[WIDE], b[WIDE], c[WIDE];
    double pa[WIDE], pb[WIDE], pc[WIDE];
    assert_int_equal(pith_session_feed(f->sessions[0], f->prompt, N_PROMPT, NULL, NULL), PITH_OK);
    distribution_behind(f, N_PROMPT, a, pa);
    for (int i = 0; i < WIDE * WIDE; i++) {
        f->prompt[N_PROMPT] = a[i / WIDE];
        distribution_behind(f, N_PROMPT + 1, b, pb);
        f->prompt[N_PROMPT + 1] = b[i % WIDE];
        distribution_behind(f, N_PROMPT + 2, c, pc);
        for (int k = 0; k < WIDE; k++) {
            int32_t *path = paths[i * WIDE + k];
            path[0] = a[i / WIDE];
            path[1] = b[i % WIDE];
            path[2] = c[k];
            p[i * WIDE + k] = pa[i / WIDE] * pb[i % WIDE] * pc[k];
        }
    }
}

/* Index of the path that one more reply takes; *n_right: guesses that were right. */
static int draw_path(fixture *f, const int32_t paths[N_PATHS][3], size_t *n_right) {
    const pith_generate_options options = {.size = sizeof options,
                                           .max_tokens = 3,
                                           .ignore_end = true,
                                           .draft = PITH_DRAFT_AUTO,
                                           .draft_session = f->sessions[1]};
    pith_reply *reply = NULL;
    pith_error error = {0};
    const pith_id_span prompt = {f->prompt, N_PROMPT};
    for (int i = 1; i <= PITH_PACE_ROWS; i++) f->engines[0]->pace.ns[i] = 1e9;
    assert_int_equal(pith_reply_open(f->sessions[0], f->sampler, prompt, &options, &reply, &error),
                     PITH_OK);
    while (!pith_reply_is_made(reply)) pith_engine_advance(f->engines[0]);
    *n_right += reply->out.n_draft_accepted;
    assert_int_equal(reply->out.n_predicted, 3);
    pith_reply_close(reply);
    const int32_t *made = f->sessions[0]->ids + N_PROMPT;
    for (int i = 0; i < N_PATHS; i++) {
        if (paths[i][0] == made[0] && paths[i][1] == made[1] && paths[i][2] == made[2]) return i;
    }
    fail_msg("a path outside the distribution");
    return 0;
}

/* The sum over cells; those of which fewer than five are expected are one. *n_cells: how many. */
static double chi_square(const uint32_t counts[N_PATHS], const double p[N_PATHS], double n,
                         int *n_cells) {
    double sum = 0, rest = 0, rest_count = 0;
    *n_cells = 0;
    for (int i = 0; i < N_PATHS; i++) {
        double expected = p[i] * n;
        if (expected < 5) {
            rest += expected;
            rest_count += counts[i];
            continue;
        }
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
        ++*n_cells;
    }
    if (rest < 5) return sum;
    ++*n_cells;
    return sum + (rest_count - rest) * (rest_count - rest) / rest;
}

static void sampled_distribution_is_the_same(void **state) {
    fixture f = {0};
    static int32_t paths[N_PATHS][3];
    static double p[N_PATHS];
    static uint32_t counts[N_PATHS];
    const char *wanted = getenv("PITH_TEST_DRAWS");
    const int n = wanted ? atoi(wanted) : test_is_brief() ? 1000 : 4000;
    size_t n_right = 0;
    int n_cells;
    (void)state;
    open_fixture(&f);
    all_paths(&f, paths, p);
    for (int i = 0; i < n; i++) counts[draw_path(&f, (const int32_t(*)[3])paths, &n_right)]++;
    double sum = chi_square(counts, p, n, &n_cells);
    /* The point that one in a thousand exceeds (Wilson and Hilferty, 1931). */
    double df = n_cells - 1, part = 2 / (9 * df);
    double limit = df * pow(1 - part + 3.0902 * sqrt(part), 3);
    print_message("%d draws, %zu guesses right, %d cells: chi-square %.1f, limit %.1f\n", n,
                  n_right, n_cells, sum, limit);
    assert_true(n_cells > 8);
    assert_true(n_right > (size_t)n / 10);
    assert_true(sum < limit);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sampled_distribution_is_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
