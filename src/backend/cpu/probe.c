/* SPDX-License-Identifier: Apache-2.0
 * Two figures of a machine, measured in milliseconds: how fast memory is read and how fast the
 * kernel table multiplies.
 *
 * Invariant: reading touches every byte once a pass in plain C, threads go over parts of their own;
 * products run with weights and activations in the first two caches, so that they show the kernels
 * and not memory. Both repeat until their share of the time is used and tell the best pass but one,
 * which neither a neighbour's burst nor a single lucky pass decides. Read next:
 * engine/rehearsal.c. */
#include "backend/rehearse.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/pool.h"
#include "kernel/kernel.h"

#include <string.h>

enum { LANES = 16, MAX_PASSES = 64, PRODUCT_K = 2048, PRODUCT_PANELS = 8, PRODUCT_ROWS = 48 };

/* The second smallest of n >= 1 times. */
static double second_best(const double *ns, size_t n) {
    double best = ns[0], second = n > 1 ? ns[1] : ns[0];
    if (second < best) best = ns[1], second = ns[0];
    for (size_t i = 2; i < n; i++) {
        if (ns[i] < best)
            second = best, best = ns[i];
        else if (ns[i] < second)
            second = ns[i];
    }
    return second;
}

/* ---- Reading ---- */

typedef struct reading {
    const uint8_t *data;
    size_t part; /* bytes of a thread, a multiple of LANES * 8 */
    uint32_t n_repeat;
    uint64_t *sums; /* [n_threads * 8] */
} reading;

static void read_part(void *user, int thread, int n_threads) {
    reading *r = user;
    uint64_t lanes[LANES] = {0};
    const uint64_t *at = (const uint64_t *)(const void *)(r->data + (size_t)thread * r->part);
    (void)n_threads;
    for (uint32_t repeat = 0; repeat < r->n_repeat; repeat++)
        for (size_t i = 0; i < r->part / sizeof(uint64_t); i += LANES)
            for (size_t lane = 0; lane < LANES; lane++) lanes[lane] += at[i + lane];
    uint64_t sum = 0;
    for (size_t lane = 0; lane < LANES; lane++) sum += lanes[lane];
    r->sums[(size_t)thread * 8] += sum; /* the reads are needed */
}

/* First touch by the thread that will read. */
static void touch_part(void *user, int thread, int n_threads) {
    reading *r = user;
    (void)n_threads;
    memset((uint8_t *)(uintptr_t)r->data + (size_t)thread * r->part, thread + 1, r->part);
}

static double time_reading(pith_pool *pool, reading *r, uint64_t bytes, double budget_ms) {
    enum { LEAST_BYTES = 4 << 20 }; /* a pass is long beside the start of threads */
    size_t n_thread = (size_t)pith_pool_size(pool);
    double ns[MAX_PASSES];
    uint64_t end = pith_clock_ns() + (uint64_t)(budget_ms * 1e6);
    size_t n = 0;
    r->part = (size_t)bytes / n_thread / (LANES * 8) * (LANES * 8);
    if (!r->part) r->part = LANES * 8;
    r->n_repeat = (uint32_t)(LEAST_BYTES / r->part + 1);
    pith_pool_run(pool, read_part, r);
    do {
        uint64_t begun = pith_clock_ns();
        pith_pool_run(pool, read_part, r);
        ns[n++] = (double)(pith_clock_ns() - begun);
    } while (n < MAX_PASSES && (n < 3 || pith_clock_ns() < end));
    double all = (double)r->part * (double)n_thread * (double)r->n_repeat;
    return all / second_best(ns, n) * 1e9;
}

pith_status pith_probe_read(int32_t n_threads, const uint64_t *sizes, size_t n, double budget_ms,
                            double *rates, pith_error *error) {
    pith_pool *pool = NULL;
    pith_region region = {0};
    uint64_t largest = 4096;
    for (size_t i = 0; i < n; i++) largest = sizes[i] > largest ? sizes[i] : largest;
    pith_status status = pith_pool_new(n_threads, &pool, error);
    if (status != PITH_OK) return status;
    size_t n_thread = (size_t)pith_pool_size(pool);
    reading r = {.sums = pith_alloc_zero(n_thread * 8, sizeof(uint64_t))};
    if (!r.sums || largest > SIZE_MAX / 2 ||
        !pith_region_open(&region, (size_t)largest + n_thread * LANES * 8, true)) {
        status = pith_fail_memory(error, "the probe", largest);
    } else {
        r.data = region.data;
        r.part = region.size / n_thread / 64 * 64;
        pith_pool_run(pool, touch_part, &r);
        for (size_t i = 0; i < n; i++)
            rates[i] = time_reading(pool, &r, sizes[i], budget_ms / (double)n);
    }
    pith_region_close(&region);
    pith_free(r.sums);
    pith_pool_free(pool);
    return status;
}

/* ---- Products ---- */

typedef struct product_probe {
    pith_mul_fn mul;
    pith_type type;
    uint8_t *memory; /* [n_threads][thread_bytes] */
    size_t thread_bytes, panel_bytes;
    uint32_t n_repeat;
} product_probe;

enum {
    Q8_STRIDE = PRODUCT_K + 64,
    D_STRIDE = PRODUCT_K / 32,
    Y_STRIDE = PRODUCT_PANELS * PITH_PANEL_ROWS + 16,
    Q8_BYTES = PRODUCT_ROWS * Q8_STRIDE,
    D_BYTES = PRODUCT_ROWS * D_STRIDE * 4,
    Y_BYTES = PRODUCT_ROWS * Y_STRIDE * 4
};

/* | panels | q | d | sum | sum16 | y |: 0x20 everywhere is a small normal number in each. */
static void run_products(void *user, int thread, int n_threads) {
    product_probe *p = user;
    uint8_t *at = p->memory + (size_t)thread * p->thread_bytes;
    uint8_t *q = at + PRODUCT_PANELS * p->panel_bytes;
    pith_q8 q8 = {.q = (int8_t *)q,
                  .d = (float *)(void *)(q + Q8_BYTES),
                  .sum = (int32_t *)(void *)(q + Q8_BYTES + D_BYTES),
                  .sum16 = (int16_t *)(void *)(q + Q8_BYTES + 2 * D_BYTES),
                  .q_stride = Q8_STRIDE,
                  .d_stride = D_STRIDE};
    pith_mul args = {.w = at,
                     .panel_bytes = p->panel_bytes,
                     .n_panel = PRODUCT_PANELS,
                     .k = PRODUCT_K,
                     .q8 = &q8,
                     .n = PRODUCT_ROWS,
                     .y = (float *)(void *)(q + Q8_BYTES + 3 * D_BYTES),
                     .y_stride = Y_STRIDE};
    (void)n_threads;
    for (uint32_t i = 0; i < p->n_repeat; i++) p->mul(&args);
}

static double time_products(pith_pool *pool, product_probe *p, double budget_ms) {
    double ns[MAX_PASSES];
    size_t n = 0;
    uint64_t begun = pith_clock_ns(), end = begun + (uint64_t)(budget_ms * 1e6);
    p->n_repeat = 1;
    pith_pool_run(pool, run_products, p);
    double first = (double)(pith_clock_ns() - begun);
    p->n_repeat = (uint32_t)(2e6 / (first + 1)) + 1; /* some 2 ms a pass */
    do {
        begun = pith_clock_ns();
        pith_pool_run(pool, run_products, p);
        ns[n++] = (double)(pith_clock_ns() - begun);
    } while (n < MAX_PASSES && (n < 3 || pith_clock_ns() < end));
    double macs = (double)PRODUCT_K * PRODUCT_PANELS * PITH_PANEL_ROWS * PRODUCT_ROWS *
                  (double)p->n_repeat * (double)pith_pool_size(pool);
    return macs / second_best(ns, n) * 1e9;
}

pith_status pith_probe_product(int32_t n_threads, uint32_t features, double budget_ms, double *rate,
                               pith_error *error) {
    static const pith_type types[] = {PITH_TYPE_Q8_0, PITH_TYPE_Q4_0, PITH_TYPE_Q4_K};
    enum { N_TYPES = sizeof types / sizeof types[0] };
    pith_kernels kernels;
    pith_pool *pool = NULL;
    pith_kernels_init(&kernels, features);
    pith_status status = pith_pool_new(n_threads, &pool, error);
    if (status != PITH_OK) return status;
    size_t largest = pith_panel_bytes(PITH_TYPE_Q8_0, PRODUCT_K) * PRODUCT_PANELS, all = 0;
    product_probe p = {.thread_bytes =
                           (largest + Q8_BYTES + 3 * D_BYTES + Y_BYTES + 4095) / 4096 * 4096};
    if (pith_size_mul(p.thread_bytes, (size_t)pith_pool_size(pool), &all))
        p.memory = pith_alloc_aligned(all);
    if (p.memory)
        memset(p.memory, 0x20, all);
    else
        status = pith_fail_memory(error, "the probe", all);
    *rate = 0;
    for (size_t i = 0; status == PITH_OK && i < N_TYPES; i++) {
        p.mul = kernels.mul[types[i]];
        p.panel_bytes = pith_panel_bytes(types[i], PRODUCT_K);
        double macs = time_products(pool, &p, budget_ms / N_TYPES);
        if (macs > *rate) *rate = macs;
    }
    pith_free_aligned(p.memory);
    pith_pool_free(pool);
    return status;
}
