/* SPDX-License-Identifier: Apache-2.0
 * Replies that must end in time:  cancel MODEL PROMPT [MILLISECONDS]
 * The first has a deadline. The second is stopped by Ctrl-C, or here by itself after some tokens
 * through the same signal. Both keep what was made and end within one step; the session can go on
 * from there, as the third reply does. */
#include <pith.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STOP_AFTER = 6 };

static pith_session *volatile running;

/* pith_session_cancel may be called from here, and from any thread. */
static void on_interrupt(int signal_number) {
    (void)signal_number;
    pith_session_cancel(running);
}

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "cancel: %s\n", error->text);
    exit(1);
}

static int count(void *user, int32_t id, const char *text, size_t size) {
    int *n = user;
    (void)text, (void)size;
    if (id >= 0 && ++*n == STOP_AFTER) raise(SIGINT);
    return 0;
}

int main(int argc, char **argv) {
    pith_error error = {0};
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    pith_sampler *sampler;
    pith_generation late, stopped, next;
    int32_t ids[256];
    size_t n = 0;
    int n_told = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: cancel MODEL PROMPT [MILLISECONDS]\n");
        return 2;
    }
    check(pith_model_open(argv[1], NULL, &model, &error), &error);
    check(pith_engine_new(model, NULL, &engine, &error), &error);
    check(pith_session_new(engine, &session, &error), &error);
    check(pith_sampler_new(model, NULL, &sampler, &error), &error);
    check(pith_tokenize(model, argv[2], strlen(argv[2]), PITH_TOKENIZE_ADD_SPECIAL, ids, 256, &n,
                        &error),
          &error);
    pith_generate_options options = {.size = sizeof options,
                                     .ignore_end = true,
                                     .overflow = PITH_OVERFLOW_SHIFT, /* no end of its own */
                                     .deadline_ms = argc > 3 ? atof(argv[3]) : 200};
    check(pith_generate(session, sampler, ids, n, &options, &late, &error), &error);
    printf("deadline of %.0f ms: ended after %.0f ms with %zu tokens\n", options.deadline_ms,
           late.ttft_ms + late.predicted_ms, late.n_predicted);

    running = session;
    signal(SIGINT, on_interrupt);
    options.deadline_ms = 0;
    options.on_text = count;
    options.user = &n_told;
    check(pith_generate(session, sampler, ids, n, &options, &stopped, &error), &error);
    signal(SIGINT, SIG_DFL);
    printf("cancelled after %zu tokens\n", stopped.n_predicted);

    /* on from where it was stopped: the session's tokens are the prompt now */
    options.max_tokens = 4;
    options.on_text = NULL;
    size_t length = pith_session_length(session);
    int32_t *all = malloc(length * sizeof *all);
    if (!all) return 1;
    memcpy(all, pith_session_ids(session), length * sizeof *all);
    check(pith_generate(session, sampler, all, length, &options, &next, &error), &error);
    printf("%zu more, %zu tokens were not read again\n", next.n_predicted, next.n_cached);
    free(all);
    pith_sampler_free(sampler);
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
    return late.stop == PITH_STOP_DEADLINE && stopped.stop == PITH_STOP_CANCELLED ? 0 : 1;
}
