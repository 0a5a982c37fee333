/* SPDX-License-Identifier: Apache-2.0
 * A reply as it is made:  stream MODEL QUESTION [TOKENS]
 * The question goes through the model's chat template, where it has one; text comes in whole
 * characters, token by token. Start here: every other example does the same and one thing more. */
#include <pith.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IDS = 1024 };

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "stream: %s\n", error->text);
    exit(1);
}

static int print(void *user, int32_t id, const char *text, size_t size) {
    (void)user, (void)id;
    fwrite(text, 1, size, stdout);
    return fflush(stdout) != 0; /* non-zero ends the reply */
}

/* The prompt's ids. A program that knows JSON would build the messages with its library. */
static size_t prompt(const pith_model *model, const char *question, int32_t *ids) {
    pith_error error = {0};
    size_t n = 0;
    if (!pith_model_chat_template(model)) {
        check(pith_tokenize(model, question, strlen(question), PITH_TOKENIZE_ADD_SPECIAL, ids,
                            MOST_IDS, &n, &error),
              &error);
        return n;
    }
    char json[4096];
    pith_prompt *rendered;
    if (strpbrk(question, "\"\\\n") || strlen(question) > sizeof json - 128) {
        fprintf(stderr, "stream: a short question without quotes, please\n");
        exit(2);
    }
    snprintf(json, sizeof json,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}], "
             "\"add_generation_prompt\": true}",
             question);
    check(pith_prompt_render(model, NULL, json, &rendered, &error), &error);
    check(pith_prompt_tokenize(model, rendered, ids, MOST_IDS, &n, &error), &error);
    pith_prompt_free(rendered);
    return n;
}

int main(int argc, char **argv) {
    pith_error error = {0};
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    pith_sampler *sampler;
    pith_generation made;
    int32_t ids[MOST_IDS];
    if (argc < 3) {
        fprintf(stderr, "usage: stream MODEL QUESTION [TOKENS]\n");
        return 2;
    }
    check(pith_model_open(argv[1], NULL, &model, &error), &error);
    check(pith_engine_new(model, NULL, &engine, &error), &error);
    check(pith_session_new(engine, &session, &error), &error);
    check(pith_sampler_new(model, NULL, &sampler, &error), &error);
    pith_generate_options options = {
        .size = sizeof options, .max_tokens = argc > 3 ? atoi(argv[3]) : 128, .on_text = print};
    size_t n = prompt(model, argv[2], ids);
    check(pith_generate(session, sampler, ids, n, &options, &made, &error), &error);
    printf("\n[%zu tokens read, the first one after %.0f ms, %zu made]\n", made.n_prompt,
           made.ttft_ms, made.n_predicted);
    pith_sampler_free(sampler);
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
    return 0;
}
