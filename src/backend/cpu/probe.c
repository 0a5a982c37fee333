/* SPDX-License-Identifier: Apache-2.0
 * Two figures of a machine, measured in milliseconds: how fast memory is read and how fast the
 * kernel table multiplies; and both for several numbers of threads.
 *
 * Invariant: reading touches every byte once a pass in plain C, threads go over parts of their own;
 * products run with weights and activations in the first two caches, so that they show the kernels
 * and not memory. Both repeat until their share of the time is used. Products tell the best pass
 * but one, which neither a neighbour's burst nor a single lucky pass decides. Reading tells that,
 * the middle one and the slowest but one, because memory's speed changes with what others do.
 *
 * Numbers of threads are compared within rounds:
 *
 *   round 1   1 thread reads, multiplies; 2 threads read, multiply; 4 ...
 *   round 2   the same, some 0.1 s later
 *
 * A round in which the threads got less than BUSY of their time says nothing about the machine and
 * does not count. Read next: engine/rehearsal.c, thread_choice.c. */
#include "backend/rehearse.h"
#include "base/clock.h"
#include "base/median.h"
#include "base/memory.h"
#include "base/pool.h"
#include "kernel/kernel.h"

#include <string.h>

enum { LANES = 16, MAX_PASSES = 64, PRODUCT_K = 2048, PRODUCT_PANELS = 8, PRODUCT_ROWS = 48 };

pith_rate pith_rate_of(double amount, double *ns, size_t n) {
    double middle = pith_median(ns, n);
    size_t spare = n > 2; /* of both ends */
    return (pith_rate){.median = amount / middle * 1e9,
                       .low = amount / ns[n - 1 - spare] * 1e9,
                       .high = amount / ns[spare] * 1e9};
}

/* ---- Reading ---- */

enum { AHEAD = 2048 }; /* bytes; some processors read faster when asked ahead, some slower */

typedef struct reading {
    const uint8_t *data;
    bool ahead;
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
        if (r->ahead)
            for (size_t i = 0; i < r->part / sizeof(uint64_t); i += LANES) {
                __builtin_prefetch((const char *)(at + i) + AHEAD, 0, 2);
                __builtin_prefetch((const char *)(at + i) + AHEAD + 64, 0, 2);
                for (size_t lane = 0; lane < LANES; lane++) lanes[lane] += at[i + lane];
            }
        else
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

static void set_part(reading *r, size_t bytes, size_t n_thread) {
    enum { LEAST_BYTES = 4 << 20 }; /* a pass is long beside the start of threads */
    r->part = bytes / n_thread / (LANES * 8) * (LANES * 8);
    if (!r->part) r->part = LANES * 8;
    r->n_repeat = (uint32_t)(LEAST_BYTES / r->part + 1);
}

static double pass_bytes(const reading *r, size_t n_thread) {
    return (double)r->part * (double)n_thread * (double)r->n_repeat;
}

static pith_rate time_reading(pith_pool *pool, reading *r, uint64_t bytes, double budget_ms) {
    size_t n_thread = (size_t)pith_pool_size(pool);
    double ns[2][MAX_PASSES];
    uint64_t end = pith_clock_ns() + (uint64_t)(budget_ms * 1e6);
    size_t n = 0; /* passes each way */
    set_part(r, (size_t)bytes, n_thread);
    pith_pool_run(pool, read_part, r);
    uint64_t cpu = pith_clock_cpu_ns(), start = pith_clock_ns();
    do {
        for (int way = 0; way < 2; way++) {
            uint64_t begun = pith_clock_ns();
            r->ahead = way == 1;
            pith_pool_run(pool, read_part, r);
            ns[way][n] = (double)(pith_clock_ns() - begun);
        }
        n++;
    } while (n < MAX_PASSES && (n < 3 || pith_clock_ns() < end));
    double used = cpu > 0 ? (double)(pith_clock_cpu_ns() - cpu) : 0;
    double all = (double)(pith_clock_ns() - start) * (double)n_thread;
    pith_rate rate = pith_rate_of(pass_bytes(r, n_thread), ns[0], n);
    pith_rate ahead = pith_rate_of(pass_bytes(r, n_thread), ns[1], n);
    if (ahead.median > rate.median) rate = ahead;
    rate.had = all > 0 && used < all ? used / all : cpu > 0 ? 1 : 0;
    return rate;
}

pith_status pith_probe_read(int32_t n_threads, const uint64_t *sizes, size_t n, double budget_ms,
                            pith_rate *rates, pith_error *error) {
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

static const pith_type product_types[] = {PITH_TYPE_Q8_0, PITH_TYPE_Q4_0, PITH_TYPE_Q4_K};
enum { N_TYPES = sizeof product_types / sizeof product_types[0] };

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

static double pass_macs(const product_probe *p, size_t n_thread) {
    return (double)PRODUCT_K * PRODUCT_PANELS * PITH_PANEL_ROWS * PRODUCT_ROWS *
           (double)p->n_repeat * (double)n_thread;
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
    return pith_rate_of(pass_macs(p, (size_t)pith_pool_size(pool)), ns, n).high;
}

static void set_type(product_probe *p, const pith_kernels *kernels, pith_type type) {
    p->type = type;
    p->mul = kernels->mul[type];
    p->panel_bytes = pith_panel_bytes(type, PRODUCT_K);
}

static pith_status make_products(product_probe *p, size_t n_thread, pith_error *error) {
    size_t largest = pith_panel_bytes(PITH_TYPE_Q8_0, PRODUCT_K) * PRODUCT_PANELS, all = 0;
    *p = (product_probe){.thread_bytes =
                             (largest + Q8_BYTES + 3 * D_BYTES + Y_BYTES + 4095) / 4096 * 4096};
    if (pith_size_mul(p->thread_bytes, n_thread, &all)) p->memory = pith_alloc_aligned(all);
    if (!p->memory) return pith_fail_memory(error, "the probe", all);
    memset(p->memory, 0x20, all);
    return PITH_OK;
}

pith_status pith_probe_product(int32_t n_threads, uint32_t features, double budget_ms, double *rate,
                               pith_error *error) {
    pith_kernels kernels;
    pith_pool *pool = NULL;
    product_probe p = {0};
    pith_kernels_init(&kernels, features);
    pith_status status = pith_pool_new(n_threads, &pool, error);
    if (status != PITH_OK) return status;
    status = make_products(&p, (size_t)pith_pool_size(pool), error);
    *rate = 0;
    for (size_t i = 0; status == PITH_OK && i < N_TYPES; i++) {
        set_type(&p, &kernels, product_types[i]);
        double macs = time_products(pool, &p, budget_ms / N_TYPES);
        if (macs > *rate) *rate = macs;
    }
    pith_free_aligned(p.memory);
    pith_pool_free(pool);
    return status;
}

/* ---- Numbers of threads ---- */

enum { MOST_ROUNDS = 9, LEAST_ROUNDS = 3, READ_SLICE_MS = 20, MUL_SLICE_MS = 10 };
#define THREADS_SET ((size_t)256 << 20) /* beyond it bandwidth is main memory's */

static const double busy = 0.9; /* share of its time that an undisturbed thread gets */

typedef struct thread_probe {
    const int32_t *counts;
    size_t n;
    pith_pool *pools[PITH_THREAD_COUNTS];
    size_t bytes; /* that are read */
    reading reading;
    product_probe product;
    pith_thread_rate round[PITH_THREAD_COUNTS];
} thread_probe;

/* Passes a second for some milliseconds; *is_alone: the threads had the processors to
 * themselves. */
static double slice(pith_pool *pool, void (*pass)(void *user, int thread, int n_threads),
                    void *user, double slice_ms, bool *is_alone) {
    uint64_t cpu = pith_clock_cpu_ns(), begun = pith_clock_ns(), now = begun;
    double passes = 0;
    while (passes < 1 || (double)(now - begun) < slice_ms * 1e6) {
        pith_pool_run(pool, pass, user);
        passes++;
        now = pith_clock_ns();
    }
    double used = (double)(pith_clock_cpu_ns() - cpu);
    double had = (double)(now - begun) * pith_pool_size(pool);
    if (cpu > 0 && used < busy * had) *is_alone = false;
    return passes / (double)(now - begun) * 1e9;
}

/* Fills p->round; false when other work disturbed it. */
static bool run_round(thread_probe *p) {
    bool is_alone = true;
    for (size_t i = 0; i < p->n; i++) {
        size_t n_thread = (size_t)p->counts[i];
        set_part(&p->reading, p->bytes, n_thread);
        p->round[i].read = slice(p->pools[i], read_part, &p->reading, READ_SLICE_MS, &is_alone) *
                           pass_bytes(&p->reading, n_thread);
        p->round[i].macs = slice(p->pools[i], run_products, &p->product, MUL_SLICE_MS, &is_alone) *
                           pass_macs(&p->product, n_thread);
    }
    return is_alone;
}

static void keep_best(const thread_probe *p, pith_thread_rate *out) {
    for (size_t i = 0; i < p->n; i++) {
        if (p->round[i].read > out[i].read) out[i].read = p->round[i].read;
        if (p->round[i].macs > out[i].macs) out[i].macs = p->round[i].macs;
    }
}

/* The fastest type on one thread, and passes of about 1 ms. */
static void choose_type(thread_probe *p, uint32_t features) {
    pith_kernels kernels;
    pith_type fastest = product_types[0];
    double best = 0;
    pith_kernels_init(&kernels, features);
    for (size_t i = 0; i < N_TYPES; i++) {
        set_type(&p->product, &kernels, product_types[i]);
        double macs = time_products(p->pools[0], &p->product, 1);
        if (macs > best) best = macs, fastest = product_types[i];
    }
    set_type(&p->product, &kernels, fastest);
    p->product.n_repeat = 1;
    p->product.n_repeat = (uint32_t)(best * 1e-3 / pass_macs(&p->product, 1)) + 1;
}

static pith_status open_threads(thread_probe *p, pith_region *region, pith_error *error) {
    size_t most = (size_t)p->counts[p->n - 1];
    uint64_t available = pith_memory_available();
    p->bytes = available && THREADS_SET > available / 4 ? (size_t)(available / 4) : THREADS_SET;
    pith_status status = PITH_OK;
    for (size_t i = 0; i < p->n && status == PITH_OK; i++)
        status = pith_pool_new(p->counts[i], &p->pools[i], error);
    if (status == PITH_OK) status = make_products(&p->product, most, error);
    if (status != PITH_OK) return status;
    p->reading.sums = pith_alloc_zero(most * 8, sizeof(uint64_t));
    if (!p->reading.sums || !pith_region_open(region, p->bytes + most * LANES * 8, true))
        return pith_fail_memory(error, "the probe", p->bytes);
    p->reading.data = region->data;
    p->reading.part = region->size / most / 64 * 64;
    pith_pool_run(p->pools[p->n - 1], touch_part, &p->reading);
    return PITH_OK;
}

pith_status pith_probe_threads(uint32_t features, const int32_t *counts, size_t n, double budget_ms,
                               pith_thread_rate *out, uint32_t *n_rounds, pith_error *error) {
    pith_region region = {0};
    thread_probe p = {.counts = counts, .n = n};
    double rounds = budget_ms / ((READ_SLICE_MS + MUL_SLICE_MS) * (double)n);
    *n_rounds = 0;
    for (size_t i = 0; i < n; i++) out[i] = (pith_thread_rate){.n_threads = counts[i]};
    pith_status status = open_threads(&p, &region, error);
    if (status == PITH_OK) choose_type(&p, features);
    for (size_t i = 0; status == PITH_OK && i < MOST_ROUNDS; i++) {
        if (i >= LEAST_ROUNDS && (double)i >= rounds) break;
        if (!run_round(&p)) continue;
        keep_best(&p, out);
        (*n_rounds)++;
    }
    for (size_t i = 0; i < n; i++) pith_pool_free(p.pools[i]);
    pith_free_aligned(p.product.memory);
    pith_free(p.reading.sums);
    pith_region_close(&region);
    return status;
}
