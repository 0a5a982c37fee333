/* SPDX-License-Identifier: Apache-2.0
 * What `pith bench` measured (bench.c) and how it is printed (bench_print.c). */
#ifndef PITH_APPS_PITH_BENCH_H
#define PITH_APPS_PITH_BENCH_H

#include "pith/cli.h"

enum { PITH_BENCH_COLD = 16 };

typedef enum pith_bench_format { PITH_BENCH_MD, PITH_BENCH_JSON, PITH_BENCH_CSV } pith_bench_format;

typedef struct pith_bench_row {
    int32_t n_prompt, n_gen, n_depth, n_threads;
    size_t n_samples, n_tokens;
    double *samples_ns; /* [n_samples], in order */
    double *sorted_ns;  /* [n_samples] */
    double *token_ns;   /* [n_tokens], sorted: every decode step of every repetition */
    double avg_ns, stddev_ns, avg_ts, stddev_ts;
} pith_bench_row;

typedef struct pith_bench_report {
    const char *file;
    pith_model_info model;
    char backend[64], kv_type[16];
    int32_t step_limit;
    double load_ms;
    double cold_ms[PITH_BENCH_COLD]; /* the first tokens of the first engine, one by one */
    uint64_t peak_bytes;
    pith_bench_row *rows;
    size_t n_rows;
    pith_profile_row *profile; /* of the last engine */
    char **names;              /* [n_profile] the profile's operations */
    size_t n_profile;
} pith_bench_report;

/* Linear interpolation between order statistics; 0 for n = 0. */
double pith_bench_percentile(const double *sorted, size_t n, double share);
int pith_bench_print(const pith_bench_report *report, pith_bench_format format); /* exit code */

#endif
