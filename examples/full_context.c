/* SPDX-License-Identifier: Apache-2.0
 * When the context is full:  full_context MODEL [CONTEXT]
 * A prompt that is too long, and a reply that would be, with each of the three answers: refuse,
 * leave out the middle of the prompt, drop the older half and go on. Every reply says how many
 * tokens were dropped; nothing is ever dropped unasked. */
#include <pith.h>

#include <stdio.h>
#include <stdlib.h>

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "full_context: %s\n", error->text);
    exit(1);
}

int main(int argc, char **argv) {
    static const char *const names[] = {[PITH_OVERFLOW_ERROR] = "error",
                                        [PITH_OVERFLOW_SHIFT] = "shift",
                                        [PITH_OVERFLOW_TRUNCATE_MIDDLE] = "truncate-middle"};
    static const char *const stops[] = {
        [PITH_STOP_END] = "end", [PITH_STOP_LENGTH] = "length", [PITH_STOP_CONTEXT] = "context"};
    pith_error error = {0};
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    pith_sampler *sampler;
    int32_t n_ctx = argc > 2 ? atoi(argv[2]) : 128;
    if (argc < 2 || n_ctx < 64) {
        fprintf(stderr, "usage: full_context MODEL [CONTEXT of at least 64]\n");
        return 2;
    }
    check(pith_model_open(argv[1], NULL, &model, &error), &error);
    pith_engine_options engine_options = {.size = sizeof engine_options, .n_ctx = n_ctx};
    check(pith_engine_new(model, &engine_options, &engine, &error), &error);
    check(pith_session_new(engine, &session, &error), &error);
    check(pith_sampler_new(model, NULL, &sampler, &error), &error);
    size_t n_long = (size_t)n_ctx * 2;
    int32_t *ids = malloc(n_long * sizeof *ids);
    if (!ids) return 1;
    for (size_t i = 0; i < n_long; i++) ids[i] = (int32_t)(32 + i % 64);

    for (int how = PITH_OVERFLOW_ERROR; how <= PITH_OVERFLOW_TRUNCATE_MIDDLE; how++) {
        for (int is_long = 0; is_long < 2; is_long++) {
            size_t n = is_long ? n_long : (size_t)n_ctx - 8;
            pith_generation made;
            pith_generate_options options = {.size = sizeof options,
                                             .max_tokens = is_long ? 8 : n_ctx,
                                             .ignore_end = true,
                                             .overflow = (pith_overflow)how,
                                             .n_keep = 16};
            pith_status status = pith_generate(session, sampler, ids, n, &options, &made, &error);
            if (status == PITH_ERROR_LIMIT) {
                printf("%-16s prompt of %zu: %s\n", names[how], n, error.text);
                continue;
            }
            check(status, &error);
            printf("%-16s prompt of %zu: %zu made, %zu dropped, ended by %s\n", names[how], n,
                   made.n_predicted, made.n_dropped, stops[made.stop]);
        }
    }
    free(ids);
    pith_sampler_free(sampler);
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
    return 0;
}
