/* SPDX-License-Identifier: Apache-2.0
 * What the engine alone makes of the load that tests/cli/load_serve.py puts on a server:
 *     bench_load MODEL CLIENTS SECONDS TOKENS
 * Each of the clients asks one chat question after the other, with the same prompts and sampling;
 * prints the tokens a second that all replies together had, prompts and their reading included. */
#include <pith.h>

#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, N_IDS = 512 };

typedef struct asker {
    pith_session *session;
    pith_sampler *sampler;
    pith_reply *reply;
    int turn;
} asker;

typedef struct bench {
    pith_model *model;
    pith_engine *engine;
    asker askers[MOST];
    int n, n_tokens;
    size_t n_made, n_replies;
} bench;

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "bench_load: %s\n", error->text);
    exit(1);
}

static void ask(bench *b, int number) {
    asker *a = &b->askers[number];
    pith_error error = {0};
    char context[256];
    int32_t ids[N_IDS];
    size_t n_ids = 0;
    pith_prompt *prompt;
    const pith_generate_options options = {
        .size = sizeof options, .max_tokens = b->n_tokens, .draft = PITH_DRAFT_OFF};
    snprintf(context, sizeof context,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"Client %d, question %d: tell a "
             "story about a river.\"}], \"add_generation_prompt\": true}",
             number, ++a->turn);
    check(pith_prompt_render(b->model, NULL, context, &prompt, &error), &error);
    check(pith_prompt_tokenize(b->model, prompt, ids, N_IDS, &n_ids, &error), &error);
    pith_prompt_free(prompt);
    check(pith_session_truncate(a->session, 0, &error), &error);
    check(pith_reply_new(a->session, a->sampler, ids, n_ids, &options, &a->reply, &error), &error);
}

/* Counts replies that have ended, and asks again while there is time. */
static void answer(bench *b, bool again) {
    pith_error error = {0};
    for (int i = 0; i < b->n; i++) {
        asker *a = &b->askers[i];
        if (!a->reply || !pith_reply_is_done(a->reply)) continue;
        pith_generation made;
        check(pith_reply_result(a->reply, &made, &error), &error);
        b->n_made += (size_t)made.n_predicted;
        b->n_replies++;
        pith_reply_free(a->reply);
        a->reply = NULL;
        if (again) ask(b, i);
    }
}

int main(int argc, char **argv) {
    static bench b;
    pith_error error = {0};
    b.n = argc == 5 ? atoi(argv[2]) : 0;
    int seconds = argc == 5 ? atoi(argv[3]) : 0;
    b.n_tokens = argc == 5 ? atoi(argv[4]) : 0;
    if (b.n < 1 || b.n > MOST || seconds < 1 || b.n_tokens < 1) {
        fprintf(stderr, "usage: bench_load MODEL CLIENTS(up to %d) SECONDS TOKENS\n", MOST);
        return 2;
    }
    const pith_engine_options options = {.size = sizeof options, .n_sessions = b.n};
    const pith_sampler_options sampling = {.size = sizeof sampling, .temperature = 0.8f};
    check(pith_model_open(argv[1], NULL, &b.model, &error), &error);
    check(pith_engine_new(b.model, &options, &b.engine, &error), &error);
    for (int i = 0; i < b.n; i++) {
        check(pith_session_new(b.engine, &b.askers[i].session, &error), &error);
        check(pith_sampler_new(b.model, &sampling, &b.askers[i].sampler, &error), &error);
        ask(&b, i);
    }
    uint64_t begun = pith_clock_ns(), end = begun + (uint64_t)seconds * 1000000000u;
    size_t n_running = 0;
    do {
        check(pith_engine_step(b.engine, &n_running, &error), &error);
        answer(&b, pith_clock_ns() < end);
    } while (n_running > 0 || pith_clock_ns() < end);
    double took = (double)(pith_clock_ns() - begun) / 1e9;
    printf("%d clients, %.1f s: %zu replies, %.1f tok/s\n", b.n, took, b.n_replies,
           (double)b.n_made / took);
    for (int i = 0; i < b.n; i++) {
        pith_reply_free(b.askers[i].reply);
        pith_sampler_free(b.askers[i].sampler);
        pith_session_free(b.askers[i].session);
    }
    pith_engine_free(b.engine);
    pith_model_close(b.model);
    return 0;
}
