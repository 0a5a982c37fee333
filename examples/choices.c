/* SPDX-License-Identifier: Apache-2.0
 * Several answers to one prompt, ranked:  choices MODEL PROMPT [N] [TOKENS]
 * One sampler says how to draw; clones of it, each with a seed of its own, draw N answers from one
 * session, which reads the prompt once. Prints each with the mean log-probability that the model
 * gave its tokens, the best first, and what the model thought of its least likely token. */
#include <pith.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, TEXT = 8192, TOP = 3 };

typedef struct answer {
    char text[TEXT];
    size_t size, n_tokens;
    double sum, least; /* log-probabilities: of all tokens, of the least likely one */
    int32_t instead[TOP];
    size_t n_instead; /* likelier tokens at that place */
} answer;

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "choices: %s\n", error->text);
    exit(1);
}

static int on_text(void *user, int32_t id, const char *text, size_t size) {
    answer *a = user;
    (void)id;
    if (size > TEXT - a->size) return 1;
    memcpy(a->text + a->size, text, size);
    a->size += size;
    return 0;
}

static void on_logprobs(void *user, int32_t id, double logprob, const pith_logprob *top,
                        size_t n_top) {
    answer *a = user;
    (void)id;
    a->sum += logprob;
    if (a->n_tokens++ > 0 && logprob >= a->least) return;
    a->least = logprob;
    a->n_instead = n_top;
    for (size_t i = 0; i < n_top; i++) a->instead[i] = top[i].id;
}

static double mean(const answer *a) {
    return a->n_tokens ? a->sum / (double)a->n_tokens : 0;
}

static int by_mean(const void *a, const void *b) {
    return mean(a) > mean(b) ? -1 : mean(a) < mean(b);
}

static void print(const pith_model *model, const answer *a) {
    printf("[%.3f] %.*s\n        least likely token %.3f; likelier there:", mean(a), (int)a->size,
           a->text, a->least);
    for (size_t i = 0; i < a->n_instead; i++) {
        size_t size = 0;
        const char *text = pith_token_text(model, a->instead[i], &size);
        printf(" '%.*s'", (int)size, text ? text : "");
    }
    printf("\n");
}

int main(int argc, char **argv) {
    static answer answers[MOST];
    pith_error error = {0};
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    pith_sampler *sampler;
    int32_t ids[256];
    size_t n_ids = 0;
    int n = argc > 3 ? atoi(argv[3]) : 4, n_tokens = argc > 4 ? atoi(argv[4]) : 24;
    if (argc < 3 || n < 1 || n > MOST || n_tokens < 1) {
        fprintf(stderr, "usage: choices MODEL PROMPT [N up to %d] [TOKENS]\n", MOST);
        return 2;
    }
    pith_sampler_options how = {
        .size = sizeof how, .temperature = 0.9f, .min_p = 0.05f, .dry_multiplier = 0.8f};
    check(pith_model_open(argv[1], NULL, &model, &error), &error);
    check(pith_engine_new(model, NULL, &engine, &error), &error);
    check(pith_session_new(engine, &session, &error), &error);
    check(pith_sampler_new(model, &how, &sampler, &error), &error);
    check(pith_tokenize(model, argv[2], strlen(argv[2]), PITH_TOKENIZE_ADD_SPECIAL, ids, 256,
                        &n_ids, &error),
          &error);
    for (int i = 0; i < n; i++) {
        pith_sampler *mine;
        pith_generate_options options = {.size = sizeof options,
                                         .max_tokens = n_tokens,
                                         .on_text = on_text,
                                         .user = &answers[i],
                                         .on_logprobs = on_logprobs,
                                         .logprobs_user = &answers[i],
                                         .n_logprobs = TOP};
        check(pith_sampler_clone(sampler, (uint64_t)i, &mine, &error), &error);
        check(pith_generate(session, mine, ids, n_ids, &options, NULL, &error), &error);
        pith_sampler_free(mine);
    }
    qsort(answers, (size_t)n, sizeof *answers, by_mean);
    for (int i = 0; i < n; i++) print(model, &answers[i]);
    pith_sampler_free(sampler);
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
    return 0;
}
