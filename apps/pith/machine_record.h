/* SPDX-License-Identifier: Apache-2.0
 * What pith has measured of this machine: which numbers of threads are worth having, and how fast
 * memory was when it was looked at. One file a machine in $PITH_HOME/machine, found by processor,
 * tiers, usable processors and cores (so by affinity and quota as well).
 *
 *   written   pith fit and pith bench --roofline (threads the first three times, the speed each
 *             time), pith doctor --probe (threads)
 *   read      every command that runs a model and is not told --threads; pith doctor; pith fit
 *
 * `pith run` and `pith chat` measure nothing: no answer waits for it, or takes its memory. */
#ifndef PITH_APPS_PITH_MACHINE_RECORD_H
#define PITH_APPS_PITH_MACHINE_RECORD_H

#include "pith/cli.h"

enum { PITH_CLI_SPEEDS = 16, PITH_CLI_LOOKS = 3 };

/* Bytes a second that a number of threads read at one time. */
typedef struct pith_cli_speed {
    int32_t n_threads;
    double low, median, high;
} pith_cli_speed;

typedef struct pith_cli_machine {
    pith_thread_probe probe; /* the best rates of all looks; n 0: none is kept */
    int32_t n_looks;         /* undisturbed probes that were joined */
    size_t n_speeds;
    pith_cli_speed speeds[PITH_CLI_SPEEDS]; /* the latest, oldest first */
} pith_cli_machine;

/* Where nothing is kept, or nothing that can be believed, all is 0. */
void pith_cli_machine_load(pith_cli_machine *out);
void pith_cli_machine_save(const pith_cli_machine *machine);
/* Measures the numbers of threads; an undisturbed result is joined with what is kept, in *machine
 * and on disk. */
pith_status pith_cli_machine_probe(pith_cli_machine *machine, pith_error *error);
/* Whether more looks are wanted: commands that measure anyway then take one. */
bool pith_cli_machine_wants_look(const pith_cli_machine *machine);
/* Appends; the oldest goes. */
void pith_cli_machine_add(pith_cli_machine *machine, const pith_cli_speed *speed);
/* The slowest and the fastest middle among what is kept for this number of threads, widened by
 * *speed, whose middle is part of it. */
pith_cli_speed pith_cli_machine_range(const pith_cli_machine *machine, const pith_cli_speed *speed);

/* The numbers for an engine: `asked` for both when it is not 0, else those that are kept, else 0
 * and 0. Fewer than `usual` (the library's default) are believed after PITH_CLI_LOOKS looks: memory
 * that happens to be slow looks as if one thread could use all of it. */
typedef struct pith_cli_thread_numbers {
    int32_t n_threads, decode_threads;
} pith_cli_thread_numbers;
pith_cli_thread_numbers pith_cli_thread_defaults(int32_t asked);
pith_cli_thread_numbers pith_cli_machine_threads(const pith_cli_machine *machine, int32_t usual);

json_t *pith_cli_machine_json(const pith_cli_machine *machine, int32_t usual);
/* Lines for people. */
void pith_cli_machine_print(const pith_cli_machine *machine, int32_t usual);

#endif
