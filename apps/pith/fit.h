/* SPDX-License-Identifier: Apache-2.0
 * What the files of `pith fit` share: fit.c (options and order), fit_print.c (text and JSON),
 * fit_want.c (the inverse: which sizes reach a speed). */
#ifndef PITH_APPS_PITH_FIT_H
#define PITH_APPS_PITH_FIT_H

#include "pith/cli.h"
#include "pith/machine_record.h"
#include "pith/record.h"

/* What is asked. */
typedef struct pith_fit_question {
    int32_t n_prompt, depth;
    double want;               /* tokens a second; 0: nothing is wanted */
    double n_parameters;       /* --params; 0: the model's */
    const pith_device *device; /* NULL: this machine */
    pith_cli_machine machine;  /* what is kept of it, and the threads that follow */
    pith_cli_thread_numbers threads;
} pith_fit_question;

/* One model's answer. */
typedef struct pith_fit_answer {
    const char *path;
    pith_fit fit;
    pith_cli_record record; /* of earlier runs; n_runs 0: none */
    pith_cli_speed memory; /* slowest and fastest that this machine's memory was seen; 0: unknown */
    const pith_fit_question *question;
} pith_fit_answer;

/* Whether tokens a second differ so much that the range is told. */
bool pith_fit_range_is_wide(double low, double high);
/* Milliseconds with the corrections of earlier runs; 0: unknown. bandwidth: as in
 * pith_fit_token_ms. */
double pith_fit_answer_token_ms(const pith_fit_answer *answer, int32_t depth, double bandwidth);
double pith_fit_answer_prompt_ms(const pith_fit_answer *answer);

json_t *pith_fit_json(const pith_fit_answer *answer);
void pith_fit_print(const pith_fit_answer *answer);

/* Sizes that reach the wanted speed. bandwidth in bytes a second, share: of it that is reached;
 * n_all and n_active: parameters that lie in memory and that a token uses. */
typedef struct pith_fit_wanted {
    double want, bandwidth, share, n_all, n_active;
    uint64_t memory; /* that may be used; 0: unknown */
} pith_fit_wanted;
json_t *pith_fit_want_json(const pith_fit_wanted *wanted);
void pith_fit_want_print(const pith_fit_wanted *wanted);

#endif
