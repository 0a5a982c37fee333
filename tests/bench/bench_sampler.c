/* SPDX-License-Identifier: Apache-2.0
 *
 * What a token costs in the sampler:
 *     bench_sampler [N_VOCAB [ROUNDS]]
 * Processor time of one thread, microseconds a token, the best of the rounds. Two kinds of rows:
 * normal (deviation 3: thousands of tokens matter, the hard case) and zipf (probabilities fall as
 * rank^-1.5, as those of a language model do). Eight rows take turns, so that they do not stay in
 * the nearest cache, and 5000 tokens with a period of 100 were
 * accepted before. Not part of the test suite.
 */
#include "sample/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 8, TOKENS = 64, SEEN = 5000 };

typedef struct bench_case {
    const char *name;
    pith_sampler_options options;
} bench_case;

static const bench_case cases[] = {
    {"greedy", {.temperature = 0}},
    {"greedy, repeat penalty 1.1", {.temperature = 0, .repeat_penalty = 1.1f}},
    {"temp 0.8", {.temperature = 0.8f}},
    {"temp 0.8, top-k 40", {.temperature = 0.8f, .top_k = 40}},
    {"temp 0.8, top-k 40, top-p 0.95, min-p 0.05",
     {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f}},
    {"temp 0.8, top-k 40, repeat penalty 1.1",
     {.temperature = 0.8f, .top_k = 40, .repeat_penalty = 1.1f}},
    {"temp 0.8, min-p 0.05", {.temperature = 0.8f, .min_p = 0.05f}},
    {"temp 0.8, top-p 0.95", {.temperature = 0.8f, .top_p = 0.95f}},
    {"temp 0.8, typical 0.95", {.temperature = 0.8f, .typical_p = 0.95f}},
    {"temp 0.8, top-n-sigma 1", {.temperature = 0.8f, .top_n_sigma = 1}},
    {"temp 0.8 +- 0.4", {.temperature = 0.8f, .dynamic_range = 0.4f}},
    {"temp 0.8, DRY 0.8, XTC 1 0.1",
     {.temperature = 0.8f, .dry_multiplier = 0.8f, .xtc_probability = 1}},
    {"temp 0.8, DRY 0.8, min-p 0.02, XTC 1 0.1",
     {.temperature = 0.8f, .dry_multiplier = 0.8f, .min_p = 0.02f, .xtc_probability = 1}},
    {"temp 0.8, mirostat 1", {.temperature = 0.8f, .mirostat = 1}},
    {"temp 0.8, mirostat 2", {.temperature = 0.8f, .mirostat = 2}},
};

static double microseconds(void) {
    return (double)clock() * 1e6 / CLOCKS_PER_SEC;
}

static void fill_rows(float *rows, int32_t n, int is_zipf) {
    pith_rng rng;
    pith_rng_init(&rng, 1);
    for (int r = 0; r < ROWS; r++) {
        float *row = rows + (size_t)r * (size_t)n;
        for (int32_t i = 0; i < n; i++)
            row[i] =
                is_zipf ? 20.0f - 1.5f * logf((float)i + 1.0f) : (float)(3 * pith_rng_normal(&rng));
        for (int32_t i = n; is_zipf && i-- > 1;) {
            int32_t other = (int32_t)(pith_rng_next(&rng) % ((uint64_t)i + 1));
            float kept = row[i];
            row[i] = row[other], row[other] = kept;
        }
    }
}

static double time_case(const bench_case *what, const float *rows, int32_t n, int rounds) {
    pith_sampler *sampler = NULL;
    pith_error error = {0};
    pith_sampler_options options = what->options;
    options.size = sizeof options;
    static const char *const none[1] = {NULL};
    options.dry_breakers = none; /* they want a vocabulary */
    if (pith_sample_new(n, &options, &sampler, &error) != PITH_OK) {
        fprintf(stderr, "bench_sampler: %s\n", error.text);
        return NAN;
    }
    for (int32_t i = 0; i < SEEN; i++) pith_sample_accept(sampler, &(int32_t){i % 100 * 7 % n}, 1);
    double best = INFINITY;
    for (int round = 0; round < rounds; round++) {
        double start = microseconds();
        for (size_t i = 0; i < TOKENS; i++) pith_sample_next(sampler, rows + i % ROWS * (size_t)n);
        double took = (microseconds() - start) / TOKENS;
        if (took < best) best = took;
    }
    pith_sample_free(sampler);
    return best;
}

static double time_logprobs(const float *rows, int32_t n, int rounds) {
    double best = INFINITY, logprob;
    pith_logprob top[PITH_LOGPROBS_MAX];
    for (int round = 0; round < rounds; round++) {
        double start = microseconds();
        for (size_t i = 0; i < TOKENS; i++)
            pith_sample_logprobs(rows + i % ROWS * (size_t)n, (size_t)n, 1, &logprob, top,
                                 PITH_LOGPROBS_MAX);
        double took = (microseconds() - start) / TOKENS;
        if (took < best) best = took;
    }
    return best;
}

int main(int argc, char **argv) {
    int32_t n = argc > 1 ? atoi(argv[1]) : 151936;
    int rounds = argc > 2 ? atoi(argv[2]) : 30;
    float *rows = n > 0 ? malloc((size_t)n * ROWS * sizeof *rows) : NULL;
    if (!rows) {
        fprintf(stderr, "usage: bench_sampler [N_VOCAB [ROUNDS]]\n");
        return 2;
    }
    printf("%d logits, us a token %43s %8s\n", n, "normal", "zipf");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double us[2];
        for (int is_zipf = 0; is_zipf < 2; is_zipf++) {
            fill_rows(rows, n, is_zipf);
            us[is_zipf] = time_case(&cases[i], rows, n, rounds);
        }
        printf("%-60s %8.1f %8.1f\n", cases[i].name, us[0], us[1]);
    }
    fill_rows(rows, n, 0);
    printf("%-60s %8.1f\n", "log-probabilities of 20", time_logprobs(rows, n, rounds));
    free(rows);
    return 0;
}
