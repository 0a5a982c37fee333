/* SPDX-License-Identifier: Apache-2.0
 * Several replies at once:  many MODEL [N] [TOKENS]
 * Each prompt gets a session; every pith_engine_step makes the next token of all of them. Prints
 * the replies, then how much faster together is than one alone. */
#include <pith.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 32, CONTEXT = 1024 };

static const char *const prompts[] = {"The three largest cities of France are",
                                      "Water boils at",
                                      "def fibonacci(n):\n",
                                      "Once upon a time there was a",
                                      "The capital of Japan is",
                                      "To make tea, first",
                                      "SELECT name FROM",
                                      "In the year 1969"};

typedef struct talk {
    pith_session *session;
    pith_sampler *sampler;
    pith_reply *reply;
    char text[16384];
    size_t size;
} talk;

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "many: %s\n", error->text);
    exit(1);
}

static int on_text(void *user, int32_t id, const char *text, size_t size) {
    talk *t = user;
    (void)id;
    if (size > sizeof t->text - 1 - t->size) return 1;
    memcpy(t->text + t->size, text, size);
    t->size += size;
    return 0;
}

static void start(talk *t, const pith_model *model, int which, int n_tokens) {
    pith_error error = {0};
    int32_t ids[256];
    size_t n_ids = 0;
    const char *prompt = prompts[(size_t)which % (sizeof prompts / sizeof *prompts)];
    pith_generate_options options = {.size = sizeof options,
                                     .max_tokens = n_tokens,
                                     .ignore_end = true,
                                     .draft = PITH_DRAFT_OFF,
                                     .on_text = on_text,
                                     .user = t};
    check(pith_tokenize(model, prompt, strlen(prompt), PITH_TOKENIZE_ADD_SPECIAL, ids, 256, &n_ids,
                        &error),
          &error);
    t->size = 0;
    check(pith_session_truncate(t->session, 0, &error), &error);
    check(pith_reply_new(t->session, t->sampler, ids, n_ids, &options, &t->reply, &error), &error);
}

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Tokens a second that n replies make together, prompts left out. */
static double run(pith_engine *engine, const pith_model *model, talk *talks, int n, int n_tokens) {
    pith_error error = {0};
    size_t n_running = 0, n_made = 0;
    for (int i = 0; i < n; i++) start(&talks[i], model, i, n_tokens);
    for (bool reading = true; reading;) { /* until every reply has begun */
        check(pith_engine_step(engine, &n_running, &error), &error);
        reading = false;
        for (int i = 0; i < n; i++) {
            pith_generation made;
            check(pith_reply_result(talks[i].reply, &made, &error), &error);
            reading = reading || made.n_predicted == 0;
        }
    }
    for (int i = 0; i < n; i++) {
        pith_generation made;
        check(pith_reply_result(talks[i].reply, &made, &error), &error);
        n_made -= made.n_predicted;
    }
    double begun = now();
    while (n_running > 0) check(pith_engine_step(engine, &n_running, &error), &error);
    double seconds = now() - begun;
    for (int i = 0; i < n; i++) {
        pith_generation made;
        check(pith_reply_result(talks[i].reply, &made, &error), &error);
        n_made += made.n_predicted;
        pith_reply_free(talks[i].reply);
    }
    return (double)n_made / seconds;
}

int main(int argc, char **argv) {
    static talk talks[MOST];
    pith_error error = {0};
    pith_model *model;
    pith_engine *engine;
    int n = argc > 2 ? atoi(argv[2]) : 8, n_tokens = argc > 3 ? atoi(argv[3]) : 64;
    if (argc < 2 || n < 1 || n > MOST || n_tokens < 2 || n_tokens > 512) {
        fprintf(stderr, "usage: many MODEL [N up to %d] [TOKENS up to 512]\n", MOST);
        return 2;
    }
    check(pith_model_open(argv[1], NULL, &model, &error), &error);
    int32_t most = pith_model_describe(model).n_ctx_train;
    pith_engine_options options = {.size = sizeof options,
                                   .n_ctx = most < CONTEXT ? most : CONTEXT,
                                   .n_sessions = n,
                                   .exact = true};
    check(pith_engine_new(model, &options, &engine, &error), &error);
    for (int i = 0; i < n; i++) {
        check(pith_session_new(engine, &talks[i].session, &error), &error);
        check(pith_sampler_new(model, NULL, &talks[i].sampler, &error), &error);
    }
    run(engine, model, talks, 1, n_tokens); /* warm-up */
    static char alone[sizeof talks[0].text];
    double one = run(engine, model, talks, 1, n_tokens);
    memcpy(alone, talks[0].text, talks[0].size);
    size_t n_alone = talks[0].size;
    double all = run(engine, model, talks, n, n_tokens);
    for (int i = 0; i < n; i++) {
        const char *prompt = prompts[(size_t)i % (sizeof prompts / sizeof *prompts)];
        printf("%s|%.*s\n\n", prompt, (int)talks[i].size, talks[i].text);
    }
    bool same = n_alone == talks[0].size && memcmp(alone, talks[0].text, n_alone) == 0;
    printf("one: %.1f tok/s, %d together: %.1f tok/s = %.2f times; the first is %s\n", one, n, all,
           all / one, same ? "the same text" : "another text");
    for (int i = 0; i < n; i++) {
        pith_sampler_free(talks[i].sampler);
        pith_session_free(talks[i].session);
    }
    pith_engine_free(engine);
    pith_model_close(model);
    return same ? 0 : 1;
}
