/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises of the CPU backend: every operation agrees with the naive plan (naive_plan.h); and
 * the exact contract: the same bits for a row alone or in a batch, on 1, 2 or 3 threads, packed
 * or mapped, with the instructions of any tier. The fast contract promises the same but for tiers
 * that have no use for it.
 */
#include "cpu/cpu.h"
#include "kernel/kernel.h"
#include "naive_plan.h"
#include "toy_model.h"

enum { N = 200 };

static const pith_backend_options base_options = {.n_threads = 2, .step_limit = 256};

typedef struct distances {
    double worst, mean;
} distances;

/* What the naive plan makes of the tokens of seed 1, [N, TOY_VOCAB]: computed once for all. */
static const double *naive_logits(const toy *model, const int32_t *tokens) {
    static double *kept;
    if (kept) return kept;
    naive *reference = naive_new(model->plan);
    kept = malloc((size_t)N * TOY_VOCAB * sizeof *kept);
    for (uint32_t i = 0; i < N; i++)
        memcpy(kept + (size_t)i * TOY_VOCAB, naive_step(reference, tokens[i]),
               TOY_VOCAB * sizeof *kept);
    naive_free(reference);
    return kept;
}

static distances measure(pith_load load, pith_kv_storage storage, bool full_precision, bool mixed,
                         uint32_t n, uint32_t batch) {
    toy model;
    toy_run run;
    int32_t tokens[N];
    float *logits = malloc((size_t)n * TOY_VOCAB * sizeof *logits);
    uint32_t features = pith_cpu_detect();
    pith_backend_options options = base_options;
    options.features = features;
    options.full_precision = full_precision;
    toy_fill_tokens(tokens, N, 1);
    toy_open(&model, load, storage, features);
    toy_run_open(&run, &model, &options);
    run.mixed = mixed;
    toy_prefill(&run, tokens, n, batch, logits);
    const double *expected = naive_logits(&model, tokens);
    distances result = {0, 0};
    for (uint32_t i = 0; i < n; i++) {
        size_t at = (size_t)i * TOY_VOCAB;
        double d = toy_distance(logits + at, expected + at);
        if (!(d <= result.worst)) result.worst = d;
        result.mean += d / n;
    }
    toy_run_close(&run);
    toy_close(&model);
    free(logits);
    return result;
}

static void full_precision_agrees_with_the_naive_plan(void **state) {
    (void)state;
    double d = measure(PITH_LOAD_PACK, PITH_KV_STORE_F32, true, true, N, 64).worst;
    if (!(d < 1e-5)) fail_msg("distance %g", d);
    d = measure(PITH_LOAD_MMAP, PITH_KV_STORE_F32, true, false, 30, 7).worst;
    if (!(d < 1e-5)) fail_msg("mapped: distance %g", d);
}

/* The mean, because a row whose router was undecided may choose other experts. */
static void int8_activations_stay_near_the_naive_plan(void **state) {
    (void)state;
    const pith_kv_storage storage[] = {PITH_KV_STORE_F32, PITH_KV_STORE_F16, PITH_KV_STORE_I8};
    for (int i = 0; i < 3; i++) {
        double d = measure(PITH_LOAD_PACK, storage[i], false, false, N, 64).mean;
        if (!(d < 0.03)) fail_msg("storage %d: mean distance %g", i, d);
        d = measure(PITH_LOAD_PACK, storage[i], false, true, N, 64).mean;
        if (!(d < 0.04)) fail_msg("storage %d, fast rows: mean distance %g", i, d);
    }
}

/* ---- The exact contract ---- */

static const toy_variant variants[] = {
    {"one at a time, 1 thread", PITH_LOAD_PACK, 1, 1, NULL},
    {"one at a time, 2 threads", PITH_LOAD_PACK, 2, 1, NULL},
    {"batches of 2, 2 threads", PITH_LOAD_PACK, 2, 2, NULL},
    {"batches of 7, 3 threads", PITH_LOAD_PACK, 3, 7, NULL},
    {"batches of 64, 2 threads", PITH_LOAD_PACK, 2, 64, NULL},
    {"one batch, 2 threads", PITH_LOAD_PACK, 2, 256, NULL},
    {"one batch, 3 threads", PITH_LOAD_PACK, 3, 256, NULL},
    {"mapped, batches of 7", PITH_LOAD_MMAP, 2, 7, NULL},
    {"mapped, one batch", PITH_LOAD_MMAP, 2, 256, NULL},
    {"mapped, one at a time", PITH_LOAD_MMAP, 1, 1, NULL},
    {"ref", PITH_LOAD_PACK, 2, 64, "ref"},
    {"avx2", PITH_LOAD_PACK, 2, 64, "avx2"},
    {"avxvnni", PITH_LOAD_PACK, 2, 64, "avxvnni"},
    {"avx512", PITH_LOAD_PACK, 2, 64, "avx512"},
    {"amx", PITH_LOAD_PACK, 2, 64, "amx"},
    {"neon", PITH_LOAD_PACK, 2, 64, "neon"},
    {"dotprod", PITH_LOAD_PACK, 2, 64, "dotprod"},
    {"i8mm", PITH_LOAD_PACK, 2, 64, "i8mm"},
};

/* Tiers and types of KV differ in arithmetic, not in what threads share: the thread sanitizer, which
 * takes minutes for all, does one of each and leaves the rest to other builds. */
#if defined(__SANITIZE_THREAD__)
enum { ALL_KINDS = 0 };
#else
enum { ALL_KINDS = 1 };
#endif

static void run_variant(const toy_variant *v, pith_kv_storage storage, bool mixed,
                        const int32_t *tokens, uint32_t features, float *logits) {
    toy model;
    toy_run run;
    pith_backend_options options = base_options;
    options.features = features;
    options.n_threads = v->n_threads;
    toy_open(&model, v->load, storage, features);
    toy_run_open(&run, &model, &options);
    run.mixed = mixed;
    toy_prefill(&run, tokens, N, v->batch, logits);
    toy_run_close(&run);
    toy_close(&model);
}

static void check_contract(pith_kv_storage storage) {
    int32_t tokens[N];
    size_t bytes = (size_t)N * TOY_VOCAB * sizeof(float);
    if (storage != PITH_KV_STORE_F16 && !ALL_KINDS) skip();
    float *first = malloc(bytes), *other = malloc(bytes);
    toy_fill_tokens(tokens, N, 3);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        uint32_t features;
        if (variants[i].tier && !ALL_KINDS) continue;
        if (pith_cpu_limit(pith_cpu_detect(), variants[i].tier, &features, NULL)) {
            printf("%s: this machine lacks it\n", variants[i].name);
            continue;
        }
        run_variant(&variants[i], storage, false, tokens, features, i ? other : first);
        if (i) toy_expect_same(variants[i].name, first, other, N);
    }
    free(first);
    free(other);
}

static void same_bits_with_f16_kv(void **state) {
    (void)state;
    check_contract(PITH_KV_STORE_F16);
}

static void same_bits_with_int8_kv(void **state) {
    (void)state;
    check_contract(PITH_KV_STORE_I8);
}

static void same_bits_with_f32_kv(void **state) {
    (void)state;
    check_contract(PITH_KV_STORE_F32);
}

static bool has_fast(uint32_t features) {
    pith_kernels kernels;
    pith_kernels_init(&kernels, features);
    return kernels.fast_pays[PITH_TYPE_Q4_K] && kernels.fast_pays[PITH_TYPE_Q6_K];
}

/* A row is in one contract or the other wherever it stands, and its neighbours don't matter. */
static void fast_rows_have_the_same_bits_too(void **state) {
    (void)state;
    int32_t tokens[N];
    size_t bytes = (size_t)N * TOY_VOCAB * sizeof(float), n_other = 0;
    uint32_t features = pith_cpu_detect();
    if (!has_fast(features)) {
        printf("no tier of this machine gains by the fast contract\n");
        skip();
    }
    float *first = malloc(bytes), *other = malloc(bytes), *exact = malloc(bytes);
    toy_fill_tokens(tokens, N, 3);
    for (size_t i = 0; i < sizeof variants / sizeof *variants && !variants[i].tier; i++) {
        run_variant(&variants[i], PITH_KV_STORE_F16, true, tokens, features, i ? other : first);
        if (i) toy_expect_same(variants[i].name, first, other, N);
    }
    run_variant(&variants[0], PITH_KV_STORE_F16, false, tokens, features, exact);
    for (uint32_t i = 0; i < N * TOY_VOCAB; i++) {
        double d = (double)first[i] - (double)exact[i];
        if (i < 3 * TOY_VOCAB) assert_memory_equal(&first[i], &exact[i], sizeof *first);
        if (i >= 3 * TOY_VOCAB && d != 0) n_other++;
    }
    if (n_other < N * TOY_VOCAB / 2) fail_msg("only %zu logits are other than exact ones", n_other);
    free(first);
    free(other);
    free(exact);
}

/* Few rows before many pages: pages are shared out among threads, in rounds; the fold must not
 * notice. */
static void shared_out_pages_give_the_same_bits(void **state) {
    (void)state;
    enum { LONG = 640 };
    const uint32_t batches[] = {256, 8, 3, 1};
    const uint32_t n_tail[] = {0, 48, 12, 5}; /* the last tokens, in steps of batches[i] */
    toy model;
    toy_run run;
    int32_t tokens[LONG];
    size_t bytes = (size_t)LONG * TOY_VOCAB * sizeof(float);
    float *first = malloc(bytes), *other = malloc(bytes);
    uint32_t features = pith_cpu_detect();
    pith_backend_options options = base_options;
    options.features = features;
    options.n_threads = 3;
    toy_fill_tokens(tokens, LONG, 5);
    toy_open(&model, PITH_LOAD_PACK, PITH_KV_STORE_F16, features);
    toy_run_open(&run, &model, &options);
    for (int i = 0; i < 4; i++) {
        uint32_t start = i ? LONG - n_tail[i] : 0;
        float *logits = (i ? other : first) + (size_t)start * TOY_VOCAB;
        run.length[0] = start;
        toy_prefill(&run, tokens + start, LONG - start, batches[i], logits);
        for (uint32_t j = start * TOY_VOCAB; i && j < LONG * TOY_VOCAB; j++)
            if (memcmp(&first[j], &other[j], sizeof *first) != 0)
                fail_msg("steps of %u: token %u logit %u is %.9g, expected %.9g", batches[i],
                         j / TOY_VOCAB, j % TOY_VOCAB, (double)other[j], (double)first[j]);
    }
    free(first);
    free(other);
    toy_run_close(&run);
    toy_close(&model);
}

/* Three sequences in one step, decoded together after prompts of different length. */
static void sequences_in_a_step_do_not_see_each_other(void **state) {
    (void)state;
    toy model;
    toy_run together, alone;
    uint32_t features = pith_cpu_detect(), length[TOY_SEQUENCES] = {70, 1, 33};
    pith_backend_options options = base_options;
    options.features = features;
    int32_t tokens[TOY_SEQUENCES][80], step_tokens[256], sequence[256];
    toy_open(&model, PITH_LOAD_PACK, PITH_KV_STORE_F16, features);
    toy_run_open(&together, &model, &options);
    toy_run_open(&alone, &model, &options);
    float *logits = malloc((size_t)80 * TOY_VOCAB * sizeof *logits);
    for (uint32_t s = 0; s < TOY_SEQUENCES; s++) toy_fill_tokens(tokens[s], 80, 10 + s);
    for (uint32_t round = 0; round < 4; round++) {
        uint32_t n = 0;
        for (uint32_t s = 0; s < TOY_SEQUENCES; s++)
            for (uint32_t i = 0; i < (round ? 1 : length[s]); i++, n++) {
                step_tokens[n] = tokens[s][together.length[s] + i];
                sequence[n] = (int32_t)s;
            }
        toy_step(&together, step_tokens, sequence, n);
    }
    for (uint32_t s = 0; s < TOY_SEQUENCES; s++) {
        alone.length[0] = 0;
        toy_prefill(&alone, tokens[s], length[s] + 3, 256, logits);
        const float *row = logits + (size_t)(length[s] + 2) * TOY_VOCAB;
        if (memcmp(row, together.logits + (size_t)s * TOY_VOCAB, TOY_VOCAB * sizeof *row) != 0)
            fail_msg("sequence %u: logits differ", s);
    }
    free(logits);
    toy_run_close(&together);
    toy_run_close(&alone);
    toy_close(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_precision_agrees_with_the_naive_plan),
        cmocka_unit_test(int8_activations_stay_near_the_naive_plan),
        cmocka_unit_test(same_bits_with_f16_kv),
        cmocka_unit_test(same_bits_with_int8_kv),
        cmocka_unit_test(same_bits_with_f32_kv),
        cmocka_unit_test(fast_rows_have_the_same_bits_too),
        cmocka_unit_test(shared_out_pages_give_the_same_bits),
        cmocka_unit_test(sequences_in_a_step_do_not_see_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
