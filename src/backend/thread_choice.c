/* SPDX-License-Identifier: Apache-2.0
 * Which numbers of threads are tried on a machine, and which of them an engine then has.
 *
 *   processors   8 large cores with 2 threads each, 8 small ones: 24; the default is 8
 *   tried        1 2 4 8 16 24
 *   decode       the smallest that reads within 3 % of the best: a few cores often use all that
 *                memory gives, and more of them take power and wait for each other
 *   prefill      the smallest that multiplies within 3 % of the best
 *
 * Pure functions of what was measured (cpu/probe.c); nothing here looks at the machine. */
#include "backend/rehearse.h"

static const double within = 0.97;

size_t pith_thread_candidates(int32_t n_threads, int32_t n_processors,
                              int32_t counts[PITH_THREAD_COUNTS]) {
    size_t n = 0;
    if (n_threads < 1) n_threads = 1;
    int32_t most = n_processors > n_threads ? n_processors : n_threads;
    for (int32_t count = 1; count < most && n < PITH_THREAD_COUNTS - 2; count *= 2) {
        if (n_threads < count && n_threads > count / 2) counts[n++] = n_threads;
        counts[n++] = count;
    }
    if (n_threads < most && (n == 0 || n_threads > counts[n - 1])) counts[n++] = n_threads;
    counts[n++] = most;
    return n;
}

static double rate_of(const pith_thread_rate *rate, bool is_read) {
    return is_read ? rate->read : rate->macs;
}

static int32_t smallest(const pith_thread_rate *rates, size_t n, bool is_read) {
    double best = 0;
    for (size_t i = 0; i < n; i++)
        if (rate_of(&rates[i], is_read) > best) best = rate_of(&rates[i], is_read);
    for (size_t i = 0; best > 0 && i < n; i++)
        if (rate_of(&rates[i], is_read) >= best * within) return rates[i].n_threads;
    return 0;
}

pith_thread_choice pith_thread_choose(const pith_thread_rate *rates, size_t n) {
    pith_thread_choice choice = {smallest(rates, n, true), smallest(rates, n, false)};
    if (choice.decode == 0 || choice.prefill == 0) return (pith_thread_choice){0, 0};
    if (choice.prefill < choice.decode) choice.prefill = choice.decode;
    return choice;
}
