/* SPDX-License-Identifier: Apache-2.0
 * The kernel check: every slot of every tier against its reference, bit for bit.
 *
 * One check function per operation compares ctx->tier (the kernels under test) with ctx->ref on
 * seeded data of odd sizes. Inputs and outputs live in guarded memory: inaccessible pages on both
 * sides, canaries where alignment leaves a gap. A check reports through check_fail, which says
 * slot, function, case and seed; it returns at its first failure. */
#ifndef PITH_TESTS_CHECK_CHECK_H
#define PITH_TESTS_CHECK_CHECK_H

#include "kernel/kernel.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct check_context {
    const pith_kernels *ref, *tier;
    const char *slot, *function; /* names for reports */
    uint64_t seed, random;       /* start and state of the generator */
    unsigned n_case, n_failed;
} check_context;

/* Prints the failure; always returns false. */
bool check_fail(check_context *ctx, const char *format, ...) PITH_PRINTF(2, 3);

/* Random numbers. */
uint64_t check_random(check_context *ctx);
uint32_t check_below(check_context *ctx, uint32_t n); /* 0 .. n - 1 */
float check_uniform(check_context *ctx, float low, float high);
/* Floats of one flavour of check_flavours: ordinary, wide exponents, subnormal, zeros, constant,
 * one peak. */
enum { CHECK_FLAVOURS = 6 };
void check_floats(check_context *ctx, float *x, size_t n, unsigned flavour);
void check_bytes(check_context *ctx, void *bytes, size_t n);

/* Guarded memory: n bytes that end at an inaccessible page (as near as `align` allows), filled with
 * junk. check_release gives false when a canary was overwritten. Ends the program without memory.
 * */
void *check_alloc(size_t n, size_t align);
bool check_release(void *memory);
/* Releases all; reports overwritten canaries. */
bool check_release_all(check_context *ctx);

/* Compares n floats bit for bit. */
bool check_same(check_context *ctx, const float *expected, const float *got, size_t n,
                const char *what);

/* One row of file blocks of `type`: sane scales, random codes; style 0 random, 1 largest codes, 2
 * zero codes, 3 subnormal scales, 4 any bytes, so that scales may be NaN or infinite too. */
enum { CHECK_ROW_STYLES = 5 };
void check_row(check_context *ctx, pith_type type, uint8_t *row, uint32_t k, unsigned style);

/* The checks, one per operation. Typed ones get the slot's type. */
void check_mul(check_context *ctx, pith_type type, bool fast);
void check_pack(check_context *ctx, pith_type type);
void check_panel_decode(check_context *ctx, pith_type type);
void check_quantize(check_context *ctx, pith_quantize_fn ref, pith_quantize_fn tier,
                    uint32_t group);
void check_norm(check_context *ctx, pith_norm_fn ref, pith_norm_fn tier);
void check_glu(check_context *ctx, pith_glu_fn ref, pith_glu_fn tier);
void check_unary(check_context *ctx, pith_unary_fn ref, pith_unary_fn tier);
void check_binary(check_context *ctx, pith_binary_fn ref, pith_binary_fn tier);
void check_scale(check_context *ctx, pith_scale_fn ref, pith_scale_fn tier);
void check_rope(check_context *ctx, pith_rope_fn ref, pith_rope_fn tier);
void check_reduce(check_context *ctx, pith_reduce_fn ref, pith_reduce_fn tier);
void check_attend(check_context *ctx, pith_attend_fn ref, pith_attend_fn tier, char storage);
void check_merge(check_context *ctx);
void check_kv_put(check_context *ctx, pith_kv_put_fn ref, pith_kv_put_fn tier, char storage);

/* The reference itself against double precision: check_truth*.c. */
void check_truth_products(check_context *ctx);
void check_truth_fast(check_context *ctx);
void check_truth_vectors(check_context *ctx);
void check_truth_attention(check_context *ctx);

/* --bench: speed of each kernel whose name contains `filter` (NULL: all) at `features`. */
void check_bench(uint32_t features, const char *filter);

/* Kernels of tiers that this machine lacks, compiled against emulated instructions:
 * check_emulated.c. NULL at the end. */
const char *check_emulated(size_t index, uint32_t machine, uint32_t *features,
                           pith_kernels *kernels);

#endif
