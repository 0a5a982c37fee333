/* SPDX-License-Identifier: Apache-2.0
 *
 * With and without software prefetch, by turns (trial.h).
 *
 *   step      0 1   2 3   4 5   ... 17 | 18 ... 2047 | 0 1
 *   prefetch  y n   n y   y n   ... n  |  the choice | y n
 *
 * Invariant: within a pair each way is taken once. Read next: runner.c (pith_runner_run). */
#include "backend/cpu/trial.h"

enum { TRIAL_STEPS = 2 * CPU_TRIAL_PAIRS };

bool pith_cpu_trial_prefetches(const cpu_trial *trial) {
    if (trial->n_step >= TRIAL_STEPS) return trial->prefetch;
    return (trial->n_step % 4 == 0) || (trial->n_step % 4 == 3);
}

void pith_cpu_trial_add(cpu_trial *trial, uint64_t ns) {
    bool prefetched = pith_cpu_trial_prefetches(trial);
    uint32_t step = trial->n_step++;
    if (step < TRIAL_STEPS) {
        if (step % 2 == 0)
            trial->first_ns = ns;
        else if (prefetched ? ns < trial->first_ns : trial->first_ns < ns)
            trial->n_won++;
        if (step == TRIAL_STEPS - 1) trial->prefetch = 2 * trial->n_won > CPU_TRIAL_PAIRS;
    } else if (step == CPU_TRIAL_PERIOD - 1) {
        trial->n_step = trial->n_won = 0;
    }
}
