/* SPDX-License-Identifier: Apache-2.0
 * Promise: where a grammar forces the text, a reply takes fewer steps and is the same, token for
 * token, greedy and sampled, alone and beside others, with whatever number of guesses; without
 * guesses each token is a step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/brief.h"
#include "support/open_engine.h"

#include <stdio.h>
#include <stdlib.h>

enum { N_CTX = 320, N_SESSIONS = 4, N_TOKENS = 200, N_AFTER = 24 };

static const char schema[] =
    "{\"type\":\"object\",\"properties\":{\"first_name\":{\"type\":\"string\",\"maxLength\":6},"
    "\"department\":{\"enum\":[\"research\",\"sales\"]},\"identifier\":{\"type\":\"integer\","
    "\"minimum\":0,\"maximum\":999},\"is_available\":{\"type\":\"boolean\"}},\"required\":["
    "\"first_name\",\"department\",\"identifier\",\"is_available\"],"
    "\"additionalProperties\":false}";

typedef struct fixture {
    session_group group;
    pith_grammar *grammar;
} fixture;

static void open_fixture(fixture *f, const char *path, float temperature) {
    pith_error error = {0};
    *f = (fixture){
        .group = open_group(open_model_at(path), (pith_engine_options){.n_ctx = N_CTX,
                                                                       .n_threads = 1,
                                                                       .n_sessions = N_SESSIONS,
                                                                       .step_limit = 24,
                                                                       .exact = true})};
    if (pith_grammar_from_schema(schema, strlen(schema), &f->grammar, &error) != PITH_OK)
        fail_msg("%s", error.text);
    for (int i = 0; i < N_SESSIONS; i++)
        f->group.samplers[i] = open_sampler(
            f->group.model,
            (pith_sampler_options){.temperature = temperature,
                                   .repeat_penalty = temperature > 0 ? 1.05f : 0,
                                   .mirostat = temperature > 0 && i == 1 ? 2 : 0,
                                   .xtc_probability = temperature > 0 && i == 2 ? 0.5f : 0,
                                   .seed = (uint64_t)i + 1});
}

static void close_fixture(fixture *f) {
    pith_grammar_drop(f->grammar);
    close_group(&f->group);
}

static pith_reply *start(fixture *f, int which, pith_draft draft, int32_t max_draft,
                         bool with_grammar) {
    int32_t ids[64];
    pith_reply *reply = NULL;
    pith_error error = {0};
    size_t n = 8 + (size_t)which * 5;
    pith_generate_options options = {.size = sizeof options,
                                     .max_tokens = with_grammar ? N_TOKENS : N_AFTER,
                                     .ignore_end = !with_grammar,
                                     .draft = draft,
                                     .max_draft = max_draft,
                                     .grammar = with_grammar ? f->grammar : NULL};
    fill_prompt(ids, n, which);
    pith_id_span prompt = {ids, n};
    pith_session_cut(f->group.sessions[which], 0);
    if (pith_reply_open(f->group.sessions[which], f->group.samplers[which], prompt, &options,
                        &reply, &error) != PITH_OK)
        fail_msg("%s", error.text);
    return reply;
}

typedef struct outcome {
    int32_t ids[N_TOKENS];
    pith_generation made;
    size_t n_steps; /* with the one that read the prompt */
} outcome;

static void close_reply(fixture *f, int which, pith_reply *reply, outcome *out) {
    const pith_session *session = f->group.sessions[which];
    assert_int_equal(pith_reply_outcome(reply, &out->made, NULL), PITH_OK);
    assert_int_equal(pith_kv_sequence_length(session->kv), session->length - 1);
    size_t n = out->made.n_predicted;
    memcpy(out->ids, session->ids + session->length - n, n * sizeof *out->ids);
    pith_reply_close(reply);
}

/* One reply, and then a short free one of the same sampler. */
static void alone(const char *path, float temperature, int which, pith_draft draft,
                  int32_t max_draft, outcome out[2]) {
    fixture f;
    open_fixture(&f, path, temperature);
    memset(out, 0, 2 * sizeof *out);
    for (int i = 0; i < 2; i++) {
        pith_reply *reply = start(&f, which, draft, max_draft, i == 0);
        while (!pith_reply_is_made(reply)) {
            advance_evenly(f.group.engine);
            out[i].n_steps++;
        }
        close_reply(&f, which, reply, &out[i]);
    }
    close_fixture(&f);
}

static void assert_same(const outcome *a, const outcome *b) {
    assert_int_equal(a->made.n_predicted, b->made.n_predicted);
    assert_int_equal(a->made.stop, b->made.stop);
    assert_memory_equal(a->ids, b->ids, a->made.n_predicted * sizeof *a->ids);
}

static const char *const goldens[] = {"gemma3.gguf", "llama-q4_0.gguf", NULL};

static void fewer_steps_the_same_reply(void **state) {
    (void)state;
    for (int g = 0; goldens[g]; g++) {
        char path[1024];
        golden_path(goldens[g], path);
        for (int i = 0; i < 2 * N_SESSIONS; i++) {
            static outcome without[2], with[2];
            float temperature = i % 2 ? 0.8f : 0;
            alone(path, temperature, i / 2, PITH_DRAFT_OFF, 0, without);
            assert_int_equal(without[0].made.n_forced, 0);
            assert_true(without[0].n_steps >= without[0].made.n_predicted);
            for (int32_t max_draft = 0; max_draft <= 15; max_draft += test_is_brief() ? 15 : 5) {
                alone(path, temperature, i / 2, PITH_DRAFT_NGRAM, max_draft, with);
                assert_same(&with[0], &without[0]);
                assert_same(&with[1], &without[1]); /* the sampler was left the same */
                const pith_generation *made = &with[0].made;
                assert_true(made->n_forced >= 30);
                assert_int_equal(with[0].n_steps + made->n_forced + made->n_draft_accepted,
                                 without[0].n_steps);
                if (max_draft != 5) assert_true(2 * with[0].n_steps < without[0].n_steps);
            }
        }
    }
}

static void the_same_beside_others(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        char path[1024];
        float temperature = i % 2 ? 0.8f : 0;
        static outcome expected[N_SESSIONS][2], made[N_SESSIONS];
        pith_reply *replies[N_SESSIONS];
        fixture f;
        size_t n_steps = 0, n_tokens = 0;
        golden_path(goldens[i / 2], path);
        for (int s = 0; s < N_SESSIONS; s++)
            alone(path, temperature, s, PITH_DRAFT_OFF, 0, expected[s]);
        open_fixture(&f, path, temperature);
        for (int s = 0; s < N_SESSIONS; s++) replies[s] = start(&f, s, PITH_DRAFT_AUTO, 0, true);
        while (f.group.engine->n_replies > 0) {
            advance_evenly(f.group.engine);
            n_steps++;
        }
        for (int s = 0; s < N_SESSIONS; s++) {
            close_reply(&f, s, replies[s], &made[s]);
            assert_same(&made[s], &expected[s][0]);
            assert_true(made[s].made.n_forced > 0);
            if (made[s].made.n_predicted > n_tokens) n_tokens = made[s].made.n_predicted;
        }
        assert_true(n_steps < n_tokens);
        close_fixture(&f);
    }
}

/* A vocabulary of words, where text can be written in several ways. */
static void a_real_vocabulary(void **state) {
    static const char *const names[] = {"smollm2-135m-q4_1.gguf", "qwen-0.5b-q4_k_m.gguf"};
    const char *folder = getenv("PITH_TEST_MODELS");
    (void)state;
    if (!folder) {
        print_message("PITH_TEST_MODELS is not set: no real vocabulary\n");
        skip();
    }
    for (size_t m = 0; m < sizeof names / sizeof *names; m++) {
        char path[1024];
        static outcome without[2], with[2];
        snprintf(path, sizeof path, "%s/%s", folder, names[m]);
        FILE *there = fopen(path, "rb");
        if (!there) {
            print_message("%s is not there\n", path);
            continue;
        }
        fclose(there);
        for (int i = 0; i < 2; i++) {
            alone(path, i ? 0.8f : 0, i, PITH_DRAFT_OFF, 0, without);
            alone(path, i ? 0.8f : 0, i, PITH_DRAFT_NGRAM, 0, with);
            assert_same(&with[0], &without[0]);
            print_message("%s, temperature %s: %zu tokens in %zu steps, %zu forced, %zu of %zu "
                          "guesses\n",
                          names[m], i ? "0.8" : "0", with[0].made.n_predicted, with[0].n_steps,
                          with[0].made.n_forced, with[0].made.n_draft_accepted,
                          with[0].made.n_drafted);
            assert_true(with[0].n_steps < without[0].n_steps);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewer_steps_the_same_reply),
        cmocka_unit_test(the_same_beside_others),
        cmocka_unit_test(a_real_vocabulary),
    };
    return cmocka_run_group_tests_name("forced text", tests, NULL, NULL);
}
