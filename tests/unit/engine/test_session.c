/* SPDX-License-Identifier: Apache-2.0
 * Promise: a session's logits depend on its tokens only, not on how they came in steps, what was
 * there before or which session of the engine it is; limits, cancelling and truncating leave a
 * session that goes on correctly. Without `exact` they depend on feeds as well: which of a feed's
 * rows are fast is tested here, not on steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "support/brief.h"
#include "support/open_engine.h"

enum { N_CTX = 256, MAX_VOCAB = 512 };

static pith_engine *open_engine(const pith_model *model, int32_t step_limit, int32_t n_sessions) {
    return open_engine_as(model, (pith_engine_options){.n_ctx = N_CTX,
                                                       .n_sessions = n_sessions,
                                                       .n_threads = 2,
                                                       .step_limit = step_limit,
                                                       .exact = true});
}

/* With fast rows. */
static pith_engine *open_fast(const pith_model *model, int32_t step_limit, int32_t n_sessions) {
    return open_engine_as(model, (pith_engine_options){.n_ctx = N_CTX,
                                                       .n_sessions = n_sessions,
                                                       .n_threads = 2,
                                                       .step_limit = step_limit});
}

/* The logits behind n tokens, from a fresh engine that takes them in one step. */
static void reference(const pith_model *model, size_t n, float *logits) {
    pith_engine *engine = open_engine(model, N_CTX, 1);
    pith_session *session = open_session(engine);
    feed(session, 0, n);
    memcpy(logits, session->logits, model->hparams.n_vocab * sizeof *logits);
    pith_engine_close(engine);
}

static void same_logits(const pith_session *session, const float *expected) {
    expect_logits("session", session, expected);
}

static const char *const models[] = {"llama-q4_0.gguf", "gemma3.gguf", "llama-moe.gguf"};
enum { N_MODELS = sizeof models / sizeof models[0] };

static void steps_do_not_matter(void **state) {
    float expected[MAX_VOCAB];
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        pith_model *model = open_golden(models[m]);
        reference(model, 150, expected);
        const int32_t limits[] = {1, 7, 64, 150};
        for (size_t i = test_is_brief(); i < 4; i += test_is_brief() ? 2 : 1) {
            pith_engine *engine = open_engine(model, limits[i], 1);
            pith_session *session = open_session(engine);
            feed(session, 0, 150);
            same_logits(session, expected);
            pith_session_cut(session, 0);
            feed(session, 0, 3);
            feed(session, 3, 149);
            feed(session, 149, 150);
            same_logits(session, expected);
            pith_engine_close(engine);
        }
        pith_model_free(model);
    }
}

/* gemma3's window of 8 has dropped what a cut session would need: it is computed again. */
static void cut_and_go_on(void **state) {
    float expected[MAX_VOCAB];
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        pith_model *model = open_golden(models[m]);
        pith_engine *engine = open_engine(model, 32, 1);
        pith_session *session = open_session(engine);
        const size_t keeps[] = {245, 192, 191, 100, 1, 0};
        for (size_t i = 0; i < sizeof keeps / sizeof keeps[0]; i += test_is_brief() ? 2 : 1) {
            feed(session, session->length, 250);
            pith_session_cut(session, keeps[i]);
            assert_int_equal(session->length, keeps[i]);
            assert_false(session->has_logits);
            feed(session, keeps[i], keeps[i] + 5);
            reference(model, keeps[i] + 5, expected);
            same_logits(session, expected);
        }
        pith_engine_close(engine);
        pith_model_free(model);
    }
}

static void sessions_are_apart(void **state) {
    float expected[MAX_VOCAB];
    pith_model *model = open_golden("gemma3.gguf");
    pith_engine *engine = open_engine(model, 16, 2);
    pith_session *a = open_session(engine), *b = open_session(engine), *c = NULL;
    pith_error error = {0};
    (void)state;
    assert_int_equal(pith_session_open(engine, &c, &error), PITH_ERROR_LIMIT);
    assert_null(c);
    feed(a, 0, 90);
    int32_t other[5] = {9, 8, 7, 6, 5};
    assert_int_equal(pith_session_feed(b, other, 5, NULL, NULL), PITH_OK);
    feed(a, 90, 100);
    reference(model, 100, expected);
    same_logits(a, expected);
    pith_session_close(b);
    b = open_session(engine);
    assert_int_equal(b->length, 0);
    feed(b, 0, 100);
    same_logits(b, expected);
    pith_engine_close(engine);
    pith_model_free(model);
}

static void full_context(void **state) {
    float expected[MAX_VOCAB];
    pith_model *model = open_golden("llama-q4_0.gguf");
    pith_engine *engine = open_engine(model, 100, 1);
    pith_session *session = open_session(engine);
    pith_error error = {0};
    int32_t ids[2] = {1, 2};
    (void)state;
    feed(session, 0, N_CTX - 1);
    assert_int_equal(pith_session_feed(session, ids, 2, NULL, &error), PITH_ERROR_LIMIT);
    assert_non_null(strstr(error.text, "256"));
    assert_int_equal(session->length, N_CTX - 1);
    feed(session, N_CTX - 1, N_CTX);
    reference(model, N_CTX, expected);
    same_logits(session, expected);
    assert_int_equal(pith_session_feed(session, ids, 1, NULL, &error), PITH_ERROR_LIMIT);
    same_logits(session, expected);
    pith_engine_close(engine);
    pith_model_free(model);
}

static void ids_are_checked(void **state) {
    pith_model *model = open_golden("llama-q4_0.gguf");
    pith_engine *engine = open_engine(model, 0, 1);
    pith_session *session = open_session(engine);
    pith_error error = {0};
    int32_t ids[2] = {1, (int32_t)model->hparams.n_vocab};
    (void)state;
    assert_int_equal(pith_session_feed(session, ids, 2, NULL, &error), PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "288"));
    ids[1] = -1;
    assert_int_equal(pith_session_feed(session, ids, 2, NULL, &error), PITH_ERROR_ARGUMENT);
    assert_int_equal(session->length, 0);
    ids[1] = (int32_t)model->hparams.n_vocab - 1;
    assert_int_equal(pith_session_feed(session, ids, 2, NULL, &error), PITH_OK);
    assert_int_equal(session->length, 2);
    pith_engine_close(engine);
    pith_model_free(model);
}

typedef struct watcher {
    pith_session *session;
    int calls, stop_at;
    double last;
} watcher;

static int stop_by_return(void *user, double fraction) {
    watcher *w = user;
    assert_true(fraction > w->last && fraction <= 1.0);
    w->last = fraction;
    return ++w->calls == w->stop_at;
}

static int stop_by_request(void *user, double fraction) {
    watcher *w = user;
    (void)fraction;
    if (++w->calls == w->stop_at) atomic_store(&w->session->cancelled, 1);
    return 0;
}

static void cancelled_steps_stay(void **state) {
    float expected[MAX_VOCAB];
    pith_model *model = open_golden("gemma3.gguf");
    pith_engine *engine = open_engine(model, 20, 1);
    pith_session *session = open_session(engine);
    pith_error error = {0};
    int32_t ids[100];
    (void)state;
    for (size_t i = 0; i < 100; i++) ids[i] = token(i);
    const pith_progress ways[] = {stop_by_return, stop_by_request};
    for (int way = 0; way < 2; way++) {
        watcher w = {.session = session, .stop_at = 2};
        pith_feed_watch watch = {.progress = ways[way], .progress_user = &w};
        pith_session_cut(session, 0);
        assert_int_equal(pith_session_feed(session, ids, 100, &watch, &error),
                         PITH_ERROR_CANCELLED);
        assert_int_equal(session->length, 40);
        assert_false(session->has_logits);
        feed(session, 40, 100); /* the request was consumed */
        reference(model, 100, expected);
        same_logits(session, expected);
    }
    /* A request made before the call stops it at once. */
    atomic_store(&session->cancelled, 1);
    assert_int_equal(pith_session_feed(session, ids, 1, NULL, &error), PITH_ERROR_CANCELLED);
    assert_int_equal(session->length, 100);
    pith_engine_close(engine);
    pith_model_free(model);
}

typedef struct row_list {
    size_t n_rows, n_vocab, stop_at;
    float *logits;
} row_list;

static int keep_rows(void *user, size_t first, size_t n, const float *logits) {
    row_list *list = user;
    assert_int_equal(first, list->n_rows);
    memcpy(list->logits + first * list->n_vocab, logits, n * list->n_vocab * sizeof *logits);
    list->n_rows += n;
    return list->n_rows == list->stop_at;
}

static void every_row(void **state) {
    pith_model *model = open_golden("llama-q4_0.gguf");
    pith_engine *engine = open_engine(model, 16, 2);
    pith_session *session = open_session(engine), *single = open_session(engine);
    size_t n_vocab = model->hparams.n_vocab;
    int32_t ids[50];
    row_list list = {.n_vocab = n_vocab, .logits = malloc(50 * n_vocab * sizeof(float))};
    pith_feed_watch watch = {.rows = keep_rows, .rows_user = &list};
    (void)state;
    assert_non_null(list.logits);
    for (size_t i = 0; i < 50; i++) ids[i] = token(i);
    assert_int_equal(pith_session_feed(session, ids, 50, &watch, NULL), PITH_OK);
    assert_int_equal(list.n_rows, 50);
    for (size_t i = 0; i < 50; i++) {
        feed(single, i, i + 1);
        same_logits(single, list.logits + i * n_vocab);
    }
    same_logits(session, single->logits);
    /* Rows can stop it: the step they stop is not kept. */
    list.n_rows = 0;
    list.stop_at = 20;
    pith_session_cut(session, 0);
    assert_int_equal(pith_session_feed(session, ids, 50, &watch, NULL), PITH_ERROR_CANCELLED);
    assert_int_equal(session->length, 16);
    free(list.logits);
    pith_engine_close(engine);
    pith_model_free(model);
}

/* ---- The contract of a row ---- */

enum { LONG = 200 };

/* Logits of the tokens that feeds of the given sizes (0: the end) bring, one after the other. */
static float *rows_of(const pith_model *model, int32_t step_limit, bool exact,
                      const size_t *feeds) {
    pith_engine *engine =
        exact ? open_engine(model, step_limit, 1) : open_fast(model, step_limit, 1);
    pith_session *session = open_session(engine);
    size_t n_vocab = model->hparams.n_vocab;
    float *all = malloc(LONG * n_vocab * sizeof *all);
    int32_t ids[LONG];
    assert_non_null(all);
    for (size_t i = 0; i < LONG; i++) ids[i] = token(i);
    for (size_t at = 0; *feeds; at += *feeds++) {
        row_list list = {.n_vocab = n_vocab, .logits = all + at * n_vocab};
        pith_feed_watch watch = {.rows = keep_rows, .rows_user = &list};
        assert_int_equal(pith_session_feed(session, ids + at, *feeds, &watch, NULL), PITH_OK);
        assert_int_equal(list.n_rows, *feeds);
    }
    pith_engine_close(engine);
    return all;
}

/* Rows [from, to) have the same bits in both ways of feeding. */
static bool agree(const pith_model *model, const float *a, const float *b, size_t from, size_t to) {
    size_t n_vocab = model->hparams.n_vocab;
    return memcmp(a + from * n_vocab, b + from * n_vocab, (to - from) * n_vocab * sizeof *a) == 0;
}

typedef struct feeding {
    size_t feeds[8], other[8];
    size_t same;   /* rows from the first on with the same bits */
    size_t differ; /* rows up to here have one that differs; 0: there are no more */
    bool exact;    /* `other` is */
} feeding;

/* New rows of a feed of 64 and more are fast, but for positions 0 to 3; all others are exact, also
 * behind fast ones. */
static void long_feeds_are_fast(void **state) {
    static const feeding cases[] = {
        {{63}, {63}, 63, 0, true},
        {{64}, {64}, 4, 64, true},
        {{63, 65}, {128}, 63, 128, true},
        {{63, 63}, {126}, 126, 0, true},
        {{2, 64}, {66}, 4, 66, true},
        {{5, 64}, {69}, 5, 69, true},
        {{70, 63}, {70, 1, 62}, 133, 0, false},
        {{70, 64}, {70, 1, 63}, 70, 134, false},
        {{70, 64}, {134}, 134, 0, false},
    };
    pith_model *model = open_golden("llama-q4_k.gguf");
    pith_kernels kernels;
    (void)state;
    pith_kernels_init(&kernels, pith_cpu_detect());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const feeding *c = &cases[i];
        float *rows = rows_of(model, 256, false, c->feeds);
        float *stepped = rows_of(model, 7, false, c->feeds);
        float *other = rows_of(model, 256, c->exact, c->other);
        size_t n = 0;
        for (const size_t *f = c->feeds; *f; f++) n += *f;
        if (!agree(model, rows, stepped, 0, n)) fail_msg("case %zu: steps matter", i);
        if (!agree(model, rows, other, 0, c->same)) fail_msg("case %zu: too many are fast", i);
        if (c->differ && kernels.fast_pays[PITH_TYPE_Q4_K] &&
            agree(model, rows, other, c->same, c->differ))
            fail_msg("case %zu: too few are fast", i);
        free(rows);
        free(stepped);
        free(other);
    }
    pith_model_free(model);
}

/* A reply's last token is held but not computed; the feed that does so is long, yet not its own. */
static void drawn_tokens_are_exact(void **state) {
    pith_model *model = open_golden("llama-q4_k.gguf");
    pith_engine *engine = open_fast(model, 0, 2);
    pith_session *a = open_session(engine), *b = open_session(engine);
    (void)state;
    feed(a, 0, 70);
    a->ids[a->length++] = token(70);
    feed(a, 71, 135);
    feed(b, 0, 70);
    feed(b, 70, 71);
    feed(b, 71, 135);
    same_logits(a, b->logits);
    pith_engine_close(engine);
    pith_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_do_not_matter),
        cmocka_unit_test(cut_and_go_on),
        cmocka_unit_test(sessions_are_apart),
        cmocka_unit_test(full_context),
        cmocka_unit_test(ids_are_checked),
        cmocka_unit_test(cancelled_steps_stay),
        cmocka_unit_test(every_row),
        cmocka_unit_test(long_feeds_are_fast),
        cmocka_unit_test(drawn_tokens_are_exact),
    };
    return cmocka_run_group_tests_name("sessions", tests, NULL, NULL);
}
