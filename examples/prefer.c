/* SPDX-License-Identifier: Apache-2.0
 * One goal, all settings:  prefer MODEL PROMPT [TOKENS]
 * Makes the same reply with the settings for each goal and prints what was chosen, the bytes of KV
 * and workspace, and the times. Run it on a quiet machine to see what a goal is worth there. */
#include <pith.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const goals[] = {[PITH_PREFER_NONE] = "none",
                                    [PITH_PREFER_TTFT] = "ttft",
                                    [PITH_PREFER_TPS] = "tps",
                                    [PITH_PREFER_MEMORY] = "memory",
                                    [PITH_PREFER_BATTERY] = "battery"};

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "prefer: %s\n", error->text);
    exit(1);
}

static void run(const char *path, const char *prompt, int n_tokens, int goal,
                const pith_thread_probe *probe) {
    pith_error error = {0};
    pith_preference choice;
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    pith_sampler *sampler;
    pith_generation made;
    int32_t ids[1024];
    size_t n = 0;
    check(pith_prefer_choose((pith_prefer)goal, probe, &choice, &error), &error);
    /* What the program itself wants would go first, and the choice into what is left at 0. */
    pith_model_options model_options = {.size = sizeof model_options, .load = choice.load};
    pith_engine_options engine_options = {.size = sizeof engine_options,
                                          .kv_type = choice.kv_type,
                                          .decode_threads = choice.decode_threads};
    pith_generate_options options = {
        .size = sizeof options, .max_tokens = n_tokens, .draft = choice.draft};
    check(pith_model_open(path, &model_options, &model, &error), &error);
    uint64_t bytes = 0; /* some models do not allow KV in int8 */
    if (pith_engine_bytes(model, &engine_options, &bytes, NULL) == PITH_ERROR_UNSUPPORTED)
        engine_options.kv_type = PITH_KV_AUTO;
    check(pith_engine_new(model, &engine_options, &engine, &error), &error);
    check(pith_session_new(engine, &session, &error), &error);
    check(pith_sampler_new(model, NULL, &sampler, &error), &error);
    check(pith_tokenize(model, prompt, strlen(prompt), PITH_TOKENIZE_ADD_SPECIAL, ids, 1024, &n,
                        &error),
          &error);
    check(pith_generate(session, sampler, ids, n, &options, &made, &error), &error);
    pith_engine_info info = pith_engine_describe(engine);
    printf(
        "%-8s weights %s, KV %s %llu bytes, workspace %llu, %d threads, %d to decode: first token "
        "%.1f ms, then %zu in %.1f ms\n         %s\n",
        goals[goal], pith_model_describe(model).load == PITH_LOAD_MMAP ? "mapped" : "packed",
        info.kv_type, (unsigned long long)info.kv_bytes, (unsigned long long)info.workspace_bytes,
        (int)info.n_threads, (int)info.decode_threads, made.ttft_ms, made.n_predicted,
        made.predicted_ms, choice.why);
    pith_sampler_free(sampler);
    pith_session_free(session);
    pith_engine_free(engine);
    pith_model_close(model);
}

int main(int argc, char **argv) {
    pith_error error = {0};
    pith_thread_probe probe;
    if (argc < 3) {
        fprintf(stderr, "usage: prefer MODEL PROMPT [TOKENS]\n");
        return 2;
    }
    /* A program measures once and keeps the answer. */
    check(pith_system_probe_threads(&probe, &error), &error);
    for (int goal = PITH_PREFER_NONE; goal <= PITH_PREFER_BATTERY; goal++)
        run(argv[1], argv[2], argc > 3 ? atoi(argv[3]) : 64, goal, &probe);
    return 0;
}
