/* SPDX-License-Identifier: Apache-2.0
 * Adapters on one model, switched while it runs:  lora MODEL ADAPTER PROMPT [TOKENS]
 * Three sessions of one engine, without the adapter, with it at half and at full strength, make
 * their replies in the same steps. Then the adapter is freed, another is loaded, and the first
 * session goes on with that. The model's weights are never copied. */
#include <pith.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 3 };

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "lora: %s\n", error->text);
    exit(1);
}

static void print_ids(const pith_session *session, size_t n_prompt, const char *what) {
    printf("%s:", what);
    for (size_t i = n_prompt; i < pith_session_length(session); i++)
        printf(" %d", (int)pith_session_ids(session)[i]);
    printf("\n");
}

int main(int argc, char **argv) {
    pith_error error = {0};
    pith_model *model;
    pith_engine *engine;
    pith_session *sessions[N];
    pith_sampler *samplers[N];
    pith_reply *replies[N];
    pith_adapter *adapter;
    int32_t ids[256];
    size_t n = 0, n_running = 0;
    const float scales[N] = {0, 0.5f, 1};
    const char *const names[N] = {"without", "half", "whole"};
    if (argc < 4) {
        fprintf(stderr, "usage: lora MODEL ADAPTER PROMPT [TOKENS]\n");
        return 2;
    }
    check(pith_model_open(argv[1], NULL, &model, &error), &error);
    check(pith_adapter_open(model, argv[2], NULL, &adapter, &error), &error);
    pith_adapter_info info = pith_adapter_describe(adapter);
    printf("%s: rank %d, %d tensors, %llu bytes\n", info.name, (int)info.rank, (int)info.n_tensors,
           (unsigned long long)info.bytes);
    pith_engine_options engine_options = {.size = sizeof engine_options,
                                          .n_ctx = 512,
                                          .n_sessions = N,
                                          .adapter_rank_limit = info.rank > 0 ? info.rank : -1};
    check(pith_engine_new(model, &engine_options, &engine, &error), &error);
    check(pith_tokenize(model, argv[3], strlen(argv[3]), PITH_TOKENIZE_ADD_SPECIAL, ids, 256, &n,
                        &error),
          &error);
    pith_generate_options options = {
        .size = sizeof options, .max_tokens = argc > 4 ? atoi(argv[4]) : 24, .ignore_end = true};
    for (int i = 0; i < N; i++) {
        check(pith_session_new(engine, &sessions[i], &error), &error);
        check(pith_sampler_new(model, NULL, &samplers[i], &error), &error);
        check(pith_session_set_adapters(sessions[i], &adapter, &scales[i], 1, &error), &error);
        check(pith_reply_new(sessions[i], samplers[i], ids, n, &options, &replies[i], &error),
              &error);
    }
    do check(pith_engine_step(engine, &n_running, &error), &error);
    while (n_running > 0);
    for (int i = 0; i < N; i++) {
        print_ids(sessions[i], n, names[i]);
        pith_reply_free(replies[i]);
    }
    pith_adapter_free(adapter); /* the sessions that use it keep it */

    check(pith_adapter_open(model, argv[2], NULL, &adapter, &error), &error);
    check(pith_session_set_adapters(sessions[0], &adapter, NULL, 1, &error), &error);
    check(pith_generate(sessions[0], samplers[0], ids, n, &options, NULL, &error), &error);
    print_ids(sessions[0], n, "switched");
    bool same = memcmp(pith_session_ids(sessions[0]), pith_session_ids(sessions[2]),
                       pith_session_length(sessions[0]) * sizeof(int32_t)) == 0;
    for (int i = 0; i < N; i++) {
        pith_sampler_free(samplers[i]);
        pith_session_free(sessions[i]);
    }
    pith_adapter_free(adapter);
    pith_engine_free(engine);
    pith_model_close(model);
    return same ? 0 : 1; /* the same as with the whole adapter from the start */
}
