/* SPDX-License-Identifier: Apache-2.0
 *
 * What adapters cost, measured where other work disturbs: steps with and without them follow each
 * other in one session, so that both meet the same machine, and medians of their ratios are told.
 *     bench_adapter MODEL.gguf THREADS ROWS STEPS ADAPTER...
 * ROWS 1 is decoding, more are prompts. Also told: how long opening each adapter took, best of
 * five. Not part of the test suite. */
#include "base/clock.h"
#include "base/median.h"
#include "cpu/cpu.h"
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_STEPS = 4096, MAX_VARIANTS = 8, MAX_ROWS = 256, N_OPENS = 5 };

typedef struct bench {
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    pith_adapter *adapters[MAX_VARIANTS]; /* [0]: none */
    const char *names[MAX_VARIANTS];
    int n_variants, n_rows, n_steps;
    double ns[MAX_VARIANTS][MAX_STEPS];
} bench;

static int fail(const pith_error *error) {
    fprintf(stderr, "bench_adapter: %s\n", error->text);
    return 1;
}

static pith_status open_adapter(bench *b, const char *path, uint32_t features, pith_error *error) {
    const pith_adapter_options options = {.size = sizeof options};
    double best = 1e18;
    pith_adapter *adapter = NULL;
    for (int i = 0; i < N_OPENS; i++) {
        pith_adapter_release(adapter);
        uint64_t begun = pith_clock_ns();
        pith_status status = pith_adapter_load(b->model, path, &options, features, &adapter, error);
        if (status != PITH_OK) return status;
        double took = (double)(pith_clock_ns() - begun);
        if (took < best) best = took;
    }
    printf("%s: %.1f MB in memory, opened in %.1f ms\n", path,
           (double)pith_adapter_get_info(adapter).bytes / 1e6, best / 1e6);
    b->names[b->n_variants] = path;
    b->adapters[b->n_variants++] = adapter;
    return PITH_OK;
}

static pith_status open_all(bench *b, char **argv, pith_error *error) {
    uint32_t features = 0;
    pith_gguf *gguf = NULL;
    pith_engine_options options = {.size = sizeof options,
                                   .n_ctx = 2048,
                                   .n_threads = atoi(argv[2]),
                                   .exact = true,
                                   .adapter_rank_limit = 1024};
    pith_status status = pith_cpu_features(&features, error);
    if (status == PITH_OK) status = pith_gguf_open_path(argv[1], &gguf, error);
    if (status == PITH_OK) status = pith_model_load(gguf, NULL, features, &b->model, error);
    if (status == PITH_OK) status = pith_engine_open(b->model, &options, &b->engine, error);
    if (status == PITH_OK) status = pith_session_open(b->engine, &b->session, error);
    b->names[0] = "none";
    b->n_variants = 1;
    for (char **path = argv + 5; status == PITH_OK && *path && b->n_variants < MAX_VARIANTS; path++)
        status = open_adapter(b, *path, features, error);
    return status;
}

/* The rows of one step, at positions that the step before had too. */
static pith_status run_step(bench *b, int variant, double *ns, pith_error *error) {
    int32_t ids[MAX_ROWS];
    for (int i = 0; i < b->n_rows; i++) ids[i] = 100 + 7 * i;
    pith_session_cut(b->session, 64);
    b->session->adapters = (pith_adapter_set){
        .n = variant > 0, .delta = {variant ? b->adapters[variant]->delta : NULL}, .scale = {1}};
    b->session->holders[0] = b->adapters[variant];
    uint64_t begun = pith_clock_ns();
    pith_status status = pith_session_feed(b->session, ids, (size_t)b->n_rows, NULL, error);
    *ns = (double)(pith_clock_ns() - begun);
    b->session->adapters.n = 0;
    return status;
}

static pith_status measure(bench *b, pith_error *error) {
    int32_t ids[64];
    for (int i = 0; i < 64; i++) ids[i] = i + 1;
    pith_status status = pith_session_feed(b->session, ids, 64, NULL, error);
    for (int s = 0; s < b->n_steps; s++)
        for (int v = 0; v < b->n_variants && status == PITH_OK; v++)
            status = run_step(b, v, &b->ns[v][s], error);
    return status;
}

static void tell(bench *b) {
    static double ratios[MAX_STEPS], times[MAX_STEPS];
    size_t n = (size_t)b->n_steps;
    for (int v = 0; v < b->n_variants; v++) {
        for (size_t s = 0; s < n; s++) {
            ratios[s] = b->ns[v][s] / b->ns[0][s];
            times[s] = b->ns[v][s] / 1e6;
        }
        pith_sort_doubles(ratios, n);
        pith_sort_doubles(times, n);
        printf("%-32s %8.3f ms (lowest tenth %8.3f)   of none: %.3f\n", b->names[v], times[n / 2],
               times[n / 10], ratios[n / 2]);
    }
}

int main(int argc, char **argv) {
    static bench b;
    pith_error error = {0};
    if (argc < 5) {
        fprintf(stderr, "usage: bench_adapter MODEL.gguf THREADS ROWS STEPS ADAPTER...\n");
        return 2;
    }
    b.n_rows = atoi(argv[3]);
    b.n_steps = atoi(argv[4]);
    if (b.n_rows < 1 || b.n_rows > MAX_ROWS || b.n_steps < 1 || b.n_steps > MAX_STEPS) return 2;
    pith_status status = open_all(&b, argv, &error);
    if (status == PITH_OK) status = measure(&b, &error);
    if (status == PITH_OK) tell(&b);
    pith_engine_close(b.engine);
    for (int v = 1; v < b.n_variants; v++) pith_adapter_release(b.adapters[v]);
    pith_model_free(b.model);
    return status == PITH_OK ? 0 : fail(&error);
}
