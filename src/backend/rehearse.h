/* SPDX-License-Identifier: Apache-2.0
 * What an estimate asks of this machine: read bandwidth, products a second, and weights with
 * made-up values, so that a plan can be timed before (or without) reading its file. Nothing here
 * looks at a file. Read next: pretend.c, cpu/probe.c; engine/rehearsal.c uses them. */
#ifndef PITH_BACKEND_REHEARSE_H
#define PITH_BACKEND_REHEARSE_H

#include "backend/backend.h"

/* ---- Made-up weights (pretend.c) ---- */

/* Keeps the first n items of a dimension (1: rows, 2: experts) of a declared weight that is not
 * loaded, so that a rehearsal takes less memory. */
void pith_weights_shorten(pith_weights *weights, const pith_weight *weight, int dimension,
                          uint64_t n);
/* Gives the weights that `plan` uses memory and finite values of both signs, in the layout of the
 * last pith_weights_lay_out; n_threads fill it. *fill_rate (may be NULL): bytes a second at which
 * fresh memory was filled. The weights can be freed and nothing else afterwards. */
pith_status pith_weights_pretend(pith_weights *weights, const pith_plan *plan, int32_t n_threads,
                                 double *fill_rate, pith_error *error);
/* Bytes of tensors that `plan` uses, laid out or not: once each. */
uint64_t pith_plan_weight_bytes(const pith_plan *plan);

/* ---- The machine (cpu/probe.c) ---- */

/* Of several measurements: the middle one, and the lowest and highest but one each. */
typedef struct pith_rate {
    double median, low, high; /* a second */
    double had;               /* share of their time that the threads got; 0: unknown */
} pith_rate;
/* Of n >= 1 times in nanoseconds that `amount` took each; sorts them. */
pith_rate pith_rate_of(double amount, double *ns, size_t n);

/* Bytes that all threads together read in a second, going over the first sizes[i] bytes of one
 * region again and again; about `budget_ms` for all sizes together. */
pith_status pith_probe_read(int32_t n_threads, const uint64_t *sizes, size_t n, double budget_ms,
                            pith_rate *rates, pith_error *error);
/* Multiply-adds a second of the fastest integer product of the kernel table with everything in
 * the caches, all threads together. */
pith_status pith_probe_product(int32_t n_threads, uint32_t features, double budget_ms, double *rate,
                               pith_error *error);

/* ---- How many threads (cpu/probe.c, thread_choice.c) ---- */

enum { PITH_THREAD_COUNTS = 12 };

/* The most that a number of threads gives: memory's speed changes, and what it is at its best tells
 * how many threads can use it. */
typedef struct pith_thread_rate {
    int32_t n_threads;
    double read, macs; /* bytes, multiply-adds a second; 0: not measured */
} pith_thread_rate;

/* The numbers that are tried where n_threads are the default and n_processors can be had:
 * 1, 2, 4, ..., both of these, in order. Returns how many there are, at least 1. */
size_t pith_thread_candidates(int32_t n_threads, int32_t n_processors,
                              int32_t counts[PITH_THREAD_COUNTS]);
/* Measures each number (1 to 1024, increasing) in turn, round after round, for about budget_ms.
 * *n_rounds: those that other work did not disturb; with none of them, rates are 0. n is at most
 * PITH_THREAD_COUNTS. */
pith_status pith_probe_threads(uint32_t features, const int32_t *counts, size_t n, double budget_ms,
                               pith_thread_rate *out, uint32_t *n_rounds, pith_error *error);

/* For reading (decode) and for multiplying (prefill, at least as many as for decode) the smallest
 * number within 3 % of the best; 0 and 0 when nothing was measured. */
typedef struct pith_thread_choice {
    int32_t decode, prefill;
} pith_thread_choice;
pith_thread_choice pith_thread_choose(const pith_thread_rate *rates, size_t n);

#endif
