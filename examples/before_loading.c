/* SPDX-License-Identifier: Apache-2.0
 * Before loading:  before_loading MODEL [DEVICE]
 * Asks from the file's header whether the model fits and how fast it would be, here or on a device
 * of the built-in table, and then takes the longest context that fits. */
#include <pith.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(pith_status status, const pith_error *error) {
    if (status == PITH_OK) return;
    fprintf(stderr, "before_loading: %s\n", error->text);
    exit(1);
}

static double mib(uint64_t bytes) {
    return (double)bytes / 1048576.0;
}

int main(int argc, char **argv) {
    pith_error error = {0};
    pith_file *file;
    pith_fit fit;
    pith_device device = {.size = sizeof device};
    if (argc < 2) {
        fprintf(stderr, "usage: before_loading MODEL [DEVICE]\n");
        return 2;
    }
    bool found = false;
    for (size_t i = 0; argc > 2 && !found && pith_device_at(i, &device); i++)
        found = strcmp(device.name, argv[2]) == 0;
    if (argc > 2 && !found) {
        fprintf(stderr, "before_loading: no device '%s'; `pith fit --devices` lists them\n",
                argv[2]);
        return 2;
    }
    check(pith_file_open(argv[1], &file, &error), &error);
    pith_fit_options options = {.size = sizeof options, .device = found ? &device : NULL};
    check(pith_file_fit(file, &options, &fit, &error), &error);
    printf("%s: weights %.1f + KV of %d tokens %.1f + workspace %.1f MiB: %s\n", fit.architecture,
           mib(fit.weight_bytes), (int)fit.n_ctx, mib(fit.kv_bytes), mib(fit.workspace_bytes),
           fit.fits ? "fits" : "does not fit");
    for (size_t i = 0; i < fit.n_contexts; i++)
        printf("  context %6d: KV %8.1f MiB %s\n", (int)fit.contexts[i].n_ctx,
               mib(fit.contexts[i].kv_bytes), fit.contexts[i].fits ? "fits" : "");
    double token_ms = pith_speed_token_ms(&fit.speed, 0);
    if (token_ms > 0)
        printf("about %.1f tokens a second, first token of 512 after %.0f ms\n", 1e3 / token_ms,
               pith_speed_prompt_ms(&fit.speed, 512, 0));
    pith_file_close(file);
    if (found || !fit.runs || !fit.fits) return fit.runs ? 0 : 1;

    /* here: open it with what fits */
    pith_model *model;
    pith_engine *engine;
    pith_model_options model_options = {.size = sizeof model_options, .load = fit.load};
    int32_t n_ctx = fit.longest_ctx < 8192 ? fit.longest_ctx : 8192;
    pith_engine_options engine_options = {.size = sizeof engine_options, .n_ctx = n_ctx};
    check(pith_model_open(argv[1], &model_options, &model, &error), &error);
    check(pith_engine_new(model, &engine_options, &engine, &error), &error);
    printf("opened with a context of %d\n", (int)pith_engine_describe(engine).n_ctx);
    pith_engine_free(engine);
    pith_model_close(model);
    return 0;
}
