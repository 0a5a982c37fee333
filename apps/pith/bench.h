/* SPDX-License-Identifier: Apache-2.0
 * What `pith bench` measured (bench.c) and how it is printed (bench_print.c). */
#ifndef PITH_APPS_PITH_BENCH_H
#define PITH_APPS_PITH_BENCH_H

#include "pith/reply_option.h"

enum { PITH_BENCH_COLD = 16 };

typedef enum pith_bench_format { PITH_BENCH_MD, PITH_BENCH_JSON, PITH_BENCH_CSV } pith_bench_format;

typedef struct pith_bench_row {
    int32_t n_prompt, n_gen, n_depth, n_threads;
    size_t n_samples, n_tokens;
    double *samples_ns; /* [n_samples], in order */
    double *sorted_ns;  /* [n_samples] */
    double *token_ns;   /* [n_tokens], sorted: every decode step of every repetition */
    double avg_ns, stddev_ns, avg_ts, stddev_ts;
    double bandwidth, int8_macs; /* of the machine, just after; 0: not asked for */
} pith_bench_row;

typedef struct pith_bench_report {
    const char *file;
    pith_model_info model;
    char backend[64], kv_type[16];
    int32_t step_limit;
    double load_ms;
    pith_fit work;                   /* of a token, for the roofline; 0: not asked for */
    double cold_ms[PITH_BENCH_COLD]; /* the first tokens of the first engine, one by one */
    uint64_t peak_bytes;
    uint64_t huge_bytes; /* in huge pages, with the first engine; 0: none, or unknown */
    pith_bench_row *rows;
    size_t n_rows;
    pith_profile_row *profile; /* of the last engine */
    char **names;              /* [n_profile] the profile's operations */
    size_t n_profile;
} pith_bench_report;

/* Linear interpolation between order statistics; 0 for n = 0. */
double pith_bench_percentile(const double *sorted, size_t n, double share);
/* The roofline (roofline.c): which share of what the machine reads or multiplies a row reaches. */
typedef struct pith_bench_share {
    double bytes, macs;             /* a second, as the row's speed asks for them */
    double bytes_share, macs_share; /* of the machine's */
} pith_bench_share;
pith_bench_share pith_bench_share_of(const pith_bench_report *report, const pith_bench_row *row);
/* What a token of the file costs; false with a message in error. */
bool pith_bench_count_work(const char *path, const char *kv_type, pith_fit *out, pith_error *error);
json_t *pith_bench_roofline_json(const pith_bench_report *report, const pith_bench_row *row);
void pith_bench_roofline_print(const pith_bench_report *report);
/* Name of a row: "pp512 @ d4096". */
void pith_bench_row_name(const pith_bench_row *row, char *name, size_t capacity);
int pith_bench_print(const pith_bench_report *report, pith_bench_format format); /* exit code */

#endif
