/* SPDX-License-Identifier: Apache-2.0
 * Private to the CPU backend: whether products with one or two rows ask for their weights ahead of
 * the loop (pith_mul.prefetch), decided on the machine at hand. It pays on some processors and
 * costs up to a fifth on others, whose own prefetching software only disturbs, and neither the
 * instruction set nor the maker's name says which.
 *
 * The steps of one row that a runner does anyway are the measurement: 18 of them go in pairs, one
 * step each way, the first step of a pair alternating; the way that won more pairs stays until the
 * next trial. A pair's steps follow each other, so that a neighbour or a clock that changes the
 * speed of the machine meets both. No bit of a result depends on it. */
#ifndef PITH_BACKEND_CPU_TRIAL_H
#define PITH_BACKEND_CPU_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CPU_TRIAL_PAIRS = 9,
    CPU_TRIAL_PERIOD = 2048 /* steps of one row from the start of a trial to that of the next */
};

/* All zero: a trial begins. */
typedef struct cpu_trial {
    uint32_t n_step;   /* since the trial began */
    uint32_t n_won;    /* pairs that were faster with prefetching */
    uint64_t first_ns; /* of the running pair */
    bool prefetch;     /* the choice; meaningless while n_step < 2 * CPU_TRIAL_PAIRS */
} cpu_trial;

/* Which way the next step goes. */
bool pith_cpu_trial_prefetches(const cpu_trial *trial);
/* A step of one row took ns, done that way. */
void pith_cpu_trial_add(cpu_trial *trial, uint64_t ns);

#endif
