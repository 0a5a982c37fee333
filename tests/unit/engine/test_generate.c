/* SPDX-License-Identifier: Apache-2.0
 * Promise: a reply is the greedy path of the model whatever was in the session before; the told
 * texts together are the reply; each way of stopping says its name and leaves the drawn tokens in
 * the session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "engine/engine.h"
#include "support/changed_model.h"

enum { N_CTX = 128 };

typedef struct told {
    pith_buffer text;
    size_t n_calls, stop_at; /* stop_at: the call that returns non-zero; 0: none */
    pith_session *cancel;    /* at call stop_at, instead of returning non-zero */
    bool ended;              /* a call with id -1 came */
} told;

static pith_model *model;
static pith_engine *engine;
static pith_session *session;
static pith_sampler *sampler;

/* A reply made to its end. */
static pith_status make_reply(pith_session *in, pith_sampler *with, pith_id_span prompt,
                              const pith_generate_options *options, pith_generation *made,
                              pith_error *error) {
    pith_reply *reply = NULL;
    pith_status status = pith_reply_open(in, with, prompt, options, &reply, error);
    *made = (pith_generation){0};
    if (status != PITH_OK) return status;
    while (!pith_reply_is_made(reply)) pith_engine_advance(in->engine);
    status = pith_reply_outcome(reply, made, error);
    pith_reply_close(reply);
    return status;
}

static int open_all(void **state) {
    char path[1024];
    pith_gguf *gguf = NULL;
    uint32_t features = 0;
    pith_error error = {0};
    pith_sampler_options greedy = {.size = sizeof greedy};
    pith_engine_options options = {.size = sizeof options, .n_ctx = N_CTX, .n_threads = 1};
    (void)state;
    if (pith_cpu_features(&features, &error) != PITH_OK ||
        pith_gguf_open_path(golden_path("gemma3.gguf", path), &gguf, &error) != PITH_OK ||
        pith_model_load(gguf, NULL, features, &model, &error) != PITH_OK ||
        pith_engine_open(model, &options, &engine, &error) != PITH_OK ||
        pith_session_open(engine, &session, &error) != PITH_OK ||
        pith_sample_new((int32_t)model->hparams.n_vocab, &greedy, &sampler, &error) != PITH_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    return 0;
}

static int close_all(void **state) {
    (void)state;
    pith_sample_free(sampler);
    pith_engine_close(engine);
    pith_model_free(model);
    return 0;
}

static int on_text(void *user, int32_t id, const char *text, size_t size) {
    told *t = user;
    assert_false(t->ended);
    if (id < 0) t->ended = true;
    pith_buffer_append(&t->text, text, size);
    if (++t->n_calls != t->stop_at) return 0;
    if (!t->cancel) return 1;
    atomic_store(&t->cancel->cancelled, 1);
    return 0;
}

static const int32_t prompt[] = {72, 101, 108, 108, 111, 32, 119, 111, 114, 108, 100};
enum { N_PROMPT = sizeof prompt / sizeof prompt[0] };

static pith_generation generate(pith_generate_options options, told *t) {
    pith_generation made;
    pith_error error = {0};
    options.size = sizeof options;
    if (t) options.on_text = on_text, options.user = t;
    pith_id_span ids = {prompt, N_PROMPT};
    if (make_reply(session, sampler, ids, &options, &made, &error) != PITH_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(made.n_prompt, N_PROMPT);
    assert_int_equal(session->length, N_PROMPT + made.n_predicted);
    return made;
}

/* Ids of the greedy reply of n tokens, made one by one without generate. */
static void greedy_path(int32_t *ids, size_t n) {
    pith_session_cut(session, 0);
    assert_int_equal(pith_session_feed(session, prompt, N_PROMPT, NULL, NULL), PITH_OK);
    for (size_t i = 0; i < n; i++) {
        ids[i] = 0;
        for (int32_t id = 1; id < (int32_t)model->hparams.n_vocab; id++)
            if (session->logits[id] > session->logits[ids[i]]) ids[i] = id;
        assert_int_equal(pith_session_feed(session, &ids[i], 1, NULL, NULL), PITH_OK);
    }
    pith_session_cut(session, 0);
}

/* The text of ids that follow the prompt. */
static void text_of(const int32_t *ids, size_t n, pith_buffer *text) {
    pith_detok detok;
    pith_detok_init(&detok, model->tokenizer, true);
    detok.started = true;
    for (size_t i = 0; i <= n; i++) {
        pith_span piece = pith_detok_push(&detok, i < n ? ids[i] : -1);
        pith_buffer_append(text, piece.data, piece.size);
    }
    pith_detok_deinit(&detok);
}

static const pith_generate_options plain = {.ignore_end = true, .show_control = true};

static void greedy_reply(void **state) {
    int32_t path[20];
    told t = {0};
    pith_buffer expected = {0};
    pith_generate_options options = plain;
    (void)state;
    greedy_path(path, 20);
    text_of(path, 20, &expected);
    options.max_tokens = 20;
    pith_generation made = generate(options, &t);
    assert_int_equal(made.stop, PITH_STOP_LENGTH);
    assert_int_equal(made.n_predicted, 20);
    assert_int_equal(made.n_cached, 0);
    assert_memory_equal(session->ids + N_PROMPT, path, sizeof path);
    assert_string_equal(t.text.data, expected.data);
    assert_true(made.ttft_ms > 0 && made.prompt_ms > 0 && made.predicted_ms > 0);
    pith_buffer_deinit(&t.text);
    pith_buffer_deinit(&expected);
}

static void prefix_is_kept(void **state) {
    int32_t path[12];
    pith_generate_options options = plain;
    (void)state;
    greedy_path(path, 12);
    options.max_tokens = 12;
    assert_int_equal(generate(options, NULL).n_cached, 0);
    /* The whole prompt is there, but the logits behind it are gone: its last token is computed. */
    assert_int_equal(generate(options, NULL).n_cached, N_PROMPT - 1);
    assert_memory_equal(session->ids + N_PROMPT, path, sizeof path);
    /* Another text that begins like the prompt. */
    pith_session_cut(session, 4);
    assert_int_equal(pith_session_feed(session, path, 7, NULL, NULL), PITH_OK);
    assert_int_equal(generate(options, NULL).n_cached, 4);
    assert_memory_equal(session->ids + N_PROMPT, path, sizeof path);
    /* Exactly the prompt with its logits: nothing is computed. */
    pith_session_cut(session, 0);
    assert_int_equal(pith_session_feed(session, prompt, N_PROMPT, NULL, NULL), PITH_OK);
    assert_int_equal(generate(options, NULL).n_cached, N_PROMPT);
    assert_memory_equal(session->ids + N_PROMPT, path, sizeof path);
}

static void context_ends_it(void **state) {
    pith_generation made = generate(plain, NULL);
    (void)state;
    assert_int_equal(made.stop, PITH_STOP_CONTEXT);
    assert_int_equal(made.n_predicted, N_CTX - N_PROMPT);
}

/* Each piece of the reply as a stop string cuts the reply in front of its first occurrence. */
static void stop_strings(void **state) {
    int32_t path[20];
    pith_buffer whole = {0};
    (void)state;
    greedy_path(path, 20);
    text_of(path, 20, &whole);
    for (size_t at = 0; at < whole.size; at++) {
        for (size_t size = 1; size <= 3 && at + size <= whole.size; size++) {
            char stop[4] = "";
            memcpy(stop, whole.data + at, size);
            if (strlen(stop) != size) continue; /* a byte 0 of the reply */
            const char *stops[1] = {stop};
            const char *first = strstr(whole.data, stop);
            told t = {0};
            pith_generate_options options = plain;
            options.max_tokens = 20;
            options.stops = stops;
            options.n_stops = 1;
            pith_generation made = generate(options, &t);
            assert_int_equal(made.stop, PITH_STOP_TEXT);
            assert_int_equal(t.text.size, first - whole.data);
            assert_memory_equal(t.text.data ? t.text.data : "", whole.data, t.text.size);
            assert_false(t.ended);
            pith_buffer_deinit(&t.text);
        }
    }
    pith_buffer_deinit(&whole);
}

static void end_tokens(void **state) {
    int32_t path[20];
    pith_generate_options options = {.max_tokens = 20, .show_control = true};
    (void)state;
    greedy_path(path, 20);
    model->turn_end = path[7]; /* as if the chat template had named it */
    size_t first = 0;
    while (path[first] != path[7] && !pith_model_is_end(model, path[first])) first++;
    pith_generation made = generate(options, NULL);
    assert_int_equal(made.stop, PITH_STOP_END);
    assert_int_equal(made.n_predicted, first + 1);
    assert_int_equal(session->ids[session->length - 1], path[first]);
    assert_int_equal(pith_kv_sequence_length(session->kv), session->length - 1); /* not computed */
    options.ignore_end = true;
    assert_int_equal(generate(options, NULL).stop, PITH_STOP_LENGTH);
    model->turn_end = -1;
}

static void callbacks_end_it(void **state) {
    int32_t path[6];
    pith_generate_options options = plain;
    (void)state;
    greedy_path(path, 6);
    options.max_tokens = 6;
    told t = {.stop_at = 3};
    pith_generation made = generate(options, &t);
    assert_int_equal(made.stop, PITH_STOP_CALLBACK);
    assert_int_equal(made.n_predicted, 3);
    assert_int_equal(t.n_calls, 3);
    pith_buffer_deinit(&t.text);
    told c = {.stop_at = 3, .cancel = session};
    made = generate(options, &c);
    assert_int_equal(made.stop, PITH_STOP_CANCELLED);
    assert_int_equal(made.n_predicted, 3);
    pith_buffer_deinit(&c.text);
    /* What was made stays, and the session goes on as if nothing had been. */
    assert_memory_equal(session->ids + N_PROMPT, path, 3 * sizeof *path);
    generate(options, NULL);
    assert_memory_equal(session->ids + N_PROMPT, path, sizeof path);
    /* Asked before it began. */
    atomic_store(&session->cancelled, 1);
    pith_session_cut(session, 0);
    pith_generation none;
    pith_id_span ids = {prompt, N_PROMPT};
    assert_int_equal(make_reply(session, sampler, ids, &options, &none, NULL), PITH_OK);
    assert_int_equal(none.stop, PITH_STOP_CANCELLED);
    assert_int_equal(none.n_predicted, 0);
}

static void prompts_that_do_not_fit(void **state) {
    int32_t ids[N_CTX + 1] = {0};
    pith_generation made;
    pith_error error = {0};
    pith_generate_options options = plain;
    (void)state;
    pith_id_span one_more = {ids, N_CTX + 1}, full = {ids, N_CTX};
    assert_int_equal(make_reply(session, sampler, one_more, &options, &made, &error),
                     PITH_ERROR_LIMIT);
    assert_non_null(strstr(error.text, "129"));
    assert_non_null(strstr(error.text, "128"));
    assert_int_equal(make_reply(session, sampler, full, &options, &made, &error), PITH_OK);
    assert_int_equal(made.stop, PITH_STOP_CONTEXT);
    assert_int_equal(made.n_predicted, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_reply),
        cmocka_unit_test(prefix_is_kept),
        cmocka_unit_test(context_ends_it),
        cmocka_unit_test(stop_strings),
        cmocka_unit_test(end_tokens),
        cmocka_unit_test(callbacks_end_it),
        cmocka_unit_test(prompts_that_do_not_fit),
    };
    return cmocka_run_group_tests_name("replies", tests, open_all, close_all);
}
