/* SPDX-License-Identifier: Apache-2.0
 * How likely a text is:  score MODEL TEXT
 * Reads the text once and prints for each token the log-probability that the model gave it and
 * what it had expected instead; then the perplexity. Nothing is generated. (Log-probabilities of a
 * reply: choices.c.) */
#include <pith.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IDS = 1024, TOP = 3 };

typedef struct score {
    const pith_model *model;
    const int32_t *ids;
    size_t n_ids;
    double sum;
    size_t n;
} score;

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "score: %s\n", error->text);
    exit(1);
}

static void print_token(const pith_model *model, int32_t id) {
    size_t size = 0;
    const char *text = pith_token_text(model, id, &size);
    printf(" '%.*s'", (int)size, text ? text : "");
}

/* Row i holds the logits behind id i: what was expected of id i + 1. */
static int on_rows(void *user, size_t first, size_t n, const float *logits) {
    score *s = user;
    int32_t n_vocab = pith_model_describe(s->model).n_vocab;
    for (size_t i = 0; i < n && first + i + 1 < s->n_ids; i++) {
        pith_logprob top[TOP];
        double logprob;
        int32_t id = s->ids[first + i + 1];
        size_t n_top = pith_logprobs(logits + i * (size_t)n_vocab, n_vocab, id, &logprob, top, TOP);
        printf("%8.3f", logprob);
        print_token(s->model, id);
        if (n_top > 0 && top[0].id != id) printf("   expected:");
        for (size_t k = 0; k < n_top && top[0].id != id; k++) print_token(s->model, top[k].id);
        printf("\n");
        s->sum += logprob;
        s->n++;
    }
    return 0;
}

int main(int argc, char **argv) {
    pith_error error = {0};
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    int32_t ids[MOST_IDS];
    size_t n = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: score MODEL TEXT\n");
        return 2;
    }
    check(pith_model_open(argv[1], NULL, &model, &error), &error);
    check(pith_engine_new(model, NULL, &engine, &error), &error);
    check(pith_session_new(engine, &session, &error), &error);
    check(pith_tokenize(model, argv[2], strlen(argv[2]), PITH_TOKENIZE_ADD_SPECIAL, ids, MOST_IDS,
                        &n, &error),
          &error);
    score s = {.model = model, .ids = ids, .n_ids = n};
    check(pith_session_append_rows(session, ids, n, on_rows, &s, &error), &error);
    if (s.n > 0) printf("perplexity %.3f over %zu tokens\n", exp(-s.sum / (double)s.n), s.n);
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
    return s.n + 1 == n ? 0 : 1;
}
