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

/* Bytes that all threads together read in a second, going over the first sizes[i] bytes of one
 * region again and again; about `budget_ms` for all sizes together. */
pith_status pith_probe_read(int32_t n_threads, const uint64_t *sizes, size_t n, double budget_ms,
                            double *rates, pith_error *error);
/* Multiply-adds a second of the fastest integer product of the kernel table with everything in
 * the caches, all threads together. */
pith_status pith_probe_product(int32_t n_threads, uint32_t features, double budget_ms, double *rate,
                               pith_error *error);

#endif
