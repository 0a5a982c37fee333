/* SPDX-License-Identifier: Apache-2.0
 * A prompt that is read once and kept on disk:  stored_prompt MODEL FOLDER [PROMPT_FILE]
 * Opens an engine twice, as two starts of a program would, and asks two questions that begin with
 * the same long text. The second start takes that text's KV from the folder. */
#include <pith.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16 };

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "stored_prompt: %s\n", error->text);
    exit(1);
}

static pith_generation start(const pith_model *model, const char *folder, const char *text) {
    pith_error error = {0};
    pith_engine *engine;
    pith_session *session;
    pith_sampler *sampler;
    pith_generation made;
    size_t n = 0;
    pith_engine_options engine_options = {.size = sizeof engine_options,
                                          .exact = true,
                                          .cache_folder = folder,
                                          .cache_quota = 256 << 20};
    pith_generate_options options = {.size = sizeof options, .max_tokens = 4};
    int32_t *ids = malloc((strlen(text) + 2) * sizeof *ids);
    if (!ids) exit(1);
    check(pith_engine_new(model, &engine_options, &engine, &error), &error);
    check(pith_session_new(engine, &session, &error), &error);
    check(pith_sampler_new(model, NULL, &sampler, &error), &error);
    check(pith_tokenize(model, text, strlen(text), PITH_TOKENIZE_ADD_SPECIAL, ids, strlen(text) + 2,
                        &n, &error),
          &error);
    check(pith_generate(session, sampler, ids, n, &options, &made, &error), &error);
    printf("%zu tokens, %zu from %s, first token after %.0f ms%s%s\n", made.n_prompt, made.n_cached,
           pith_cache_source_text(made.cache_source), made.ttft_ms, made.cache_miss ? "; " : "",
           pith_cache_miss_text(made.cache_miss));
    const char *note = pith_engine_describe(engine).cache_note;
    if (note[0]) printf("note: %s\n", note);
    pith_sampler_free(sampler);
    pith_session_free(session);
    pith_engine_free(engine); /* waits a moment for what is still being written */
    free(ids);
    return made;
}

static int show(void *user, const pith_cache_entry *entry) {
    (void)user;
    printf("kept: tokens %zu to %zu of a prompt of %s (%s), %llu bytes\n", entry->first,
           entry->first + entry->n, entry->model, entry->settings,
           (unsigned long long)entry->bytes);
    return 0;
}

int main(int argc, char **argv) {
    static char text[MOST + 64];
    pith_error error = {0};
    pith_model *model;
    size_t size = 0, n_removed = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: stored_prompt MODEL FOLDER [PROMPT_FILE]\n");
        return 2;
    }
    FILE *file = argc > 3 ? fopen(argv[3], "rb") : NULL;
    if (file) {
        size = fread(text, 1, MOST, file);
        fclose(file);
    }
    while (!file && size < 384) size += (size_t)sprintf(text + size, "Rule %zu: be brief. ", size);
    check(pith_model_open(argv[1], NULL, &model, &error), &error);
    strcpy(text + size, "\nWho are you?");
    start(model, argv[2], text);
    strcpy(text + size, "\nWhat is a heron?");
    pith_generation again = start(model, argv[2], text);
    check(pith_cache_list(argv[2], show, NULL, &error), &error);
    check(pith_cache_clear(argv[2], &n_removed, &error), &error);
    printf("%zu entries removed\n", n_removed);
    pith_model_close(model);
    return again.cache_source == PITH_CACHE_DISK ? 0 : 1;
}
