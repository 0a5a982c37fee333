/* SPDX-License-Identifier: Apache-2.0
 * Guesses of a smaller model:  guesses MODEL SMALL_MODEL PROMPT [TOKENS]
 * The small model, which must have the same vocabulary, has an engine of its own and guesses ahead;
 * the model checks several guesses in one step. Makes the reply without and with guesses: the text
 * is the same to the last token, only the time differs. */
#include <pith.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 2048 };

typedef struct one {
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
} one;

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "guesses: %s\n", error->text);
    exit(1);
}

static one open_model(const char *path) {
    pith_error error = {0};
    one m;
    check(pith_model_open(path, NULL, &m.model, &error), &error);
    int32_t most = pith_model_describe(m.model).n_ctx_train;
    pith_engine_options options = {.size = sizeof options,
                                   .n_ctx = most < CONTEXT ? most : CONTEXT};
    check(pith_engine_new(m.model, &options, &m.engine, &error), &error);
    check(pith_session_new(m.engine, &m.session, &error), &error);
    return m;
}

static void close_model(one *m) {
    pith_session_free(m->session);
    pith_engine_free(m->engine);
    pith_model_close(m->model);
}

int main(int argc, char **argv) {
    pith_error error = {0};
    pith_sampler *sampler;
    pith_generation made[2];
    int32_t ids[1024], *first;
    size_t n = 0;
    if (argc < 4) {
        fprintf(stderr, "usage: guesses MODEL SMALL_MODEL PROMPT [TOKENS]\n");
        return 2;
    }
    one large = open_model(argv[1]), small = open_model(argv[2]);
    check(pith_sampler_new(large.model, NULL, &sampler, &error), &error);
    check(pith_tokenize(large.model, argv[3], strlen(argv[3]), PITH_TOKENIZE_ADD_SPECIAL, ids, 1024,
                        &n, &error),
          &error);
    pith_generate_options options = {.size = sizeof options,
                                     .max_tokens = argc > 4 ? atoi(argv[4]) : 128,
                                     .draft = PITH_DRAFT_OFF};
    check(pith_generate(large.session, sampler, ids, n, &options, &made[0], &error), &error);
    size_t length = pith_session_length(large.session);
    first = malloc(length * sizeof *first);
    if (!first) return 1;
    memcpy(first, pith_session_ids(large.session), length * sizeof *first);

    check(pith_session_truncate(large.session, 0, &error), &error);
    options.draft = PITH_DRAFT_AUTO; /* what the text itself suggests, then the small model */
    options.draft_session = small.session;
    check(pith_generate(large.session, sampler, ids, n, &options, &made[1], &error), &error);
    bool same = length == pith_session_length(large.session) &&
                memcmp(first, pith_session_ids(large.session), length * sizeof *first) == 0;
    printf("%.0f ms without guesses; %.0f ms with them, %zu of %zu were right; the tokens are %s\n",
           made[0].predicted_ms, made[1].predicted_ms, made[1].n_draft_accepted, made[1].n_drafted,
           same ? "the same" : "different");
    free(first);
    pith_sampler_free(sampler);
    close_model(&small);
    close_model(&large);
    return same ? 0 : 1;
}
