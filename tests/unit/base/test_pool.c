/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises: over all threads each chunk of each operation runs exactly once; what an operation
 * wrote is seen by all in the next; a thread may lag by any number of operations; waiting
 * threads sleep; the float environment is the default one in all threads and the caller's is
 * untouched.
 *
 * Chunks write plain memory, so ThreadSanitizer reports a join that does not order them. Delays
 * are seeded spins.
 */
#define _POSIX_C_SOURCE 200809L
#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#if !defined(_WIN32)
#include <poll.h>
#include <time.h>
#endif

#include "base/clock.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/rng.h"

enum { MOST_THREADS = 8, MANY_CHUNKS = 1000000 };

/* One region: a fixed list of operations, the same for all threads. */
typedef struct work {
    pith_pool *pool;
    const uint32_t *n_chunks; /* [n_operations] */
    uint64_t n_operations;
    uint64_t seed; /* of the delays; 0: none */
    uint32_t
        *n_runs; /* [largest n_chunks]: times chunk i ran in the current operation and all before */
    uint32_t *stamps;                   /* [largest n_chunks]: last operation that ran chunk i */
    uint64_t current[MOST_THREADS * 8]; /* operation each thread is in; eight apart: a line each */
    pith_rng rng[MOST_THREADS];
} work;

static void spin(uint64_t rounds) {
    for (volatile uint64_t i = 0; i < rounds; i = i + 1) {}
}

/* Mostly nothing, sometimes short, rarely long enough for others to go to sleep. */
static void delay(work *w, int thread) {
    if (!w->seed) return;
    uint64_t draw = pith_rng_next(&w->rng[thread]);
    if (draw % 16 == 0) spin(draw >> 8 & 0x3FF);
    if (draw % 1024 == 1) spin(draw >> 12 & 0x1FFFF);
}

static void count_chunk(void *user, uint32_t i, int thread) {
    work *w = user;
    delay(w, thread);
    w->n_runs[i]++;
    w->stamps[i] = (uint32_t)w->current[thread * 8];
}

static void run_operations(void *user, int thread, int n_threads) {
    work *w = user;
    (void)n_threads;
    for (uint64_t k = 0; k < w->n_operations; k++) {
        w->current[thread * 8] = k;
        delay(w, thread);
        pith_pool_for(w->pool, k, w->n_chunks[k], count_chunk, w, thread);
    }
}

/* How often chunk i must have run, and when last. */
static void check_counts(const work *w, uint32_t most, uint64_t n_regions) {
    for (uint32_t i = 0; i < most; i++) {
        uint64_t n = 0, last = 0;
        for (uint64_t k = 0; k < w->n_operations; k++) {
            if (w->n_chunks[k] <= i) continue;
            n++;
            last = k;
        }
        if (w->n_runs[i] != n * n_regions || w->stamps[i] != last) {
            fail_msg("chunk %u ran %u times, last in %u; expected %llu, last in %llu (seed %llu)",
                     i, w->n_runs[i], w->stamps[i], (unsigned long long)(n * n_regions),
                     (unsigned long long)last, (unsigned long long)w->seed);
        }
    }
}

static void run_work(int n_threads, const uint32_t *n_chunks, uint64_t n_operations, uint64_t seed,
                     int n_regions) {
    static work w; /* large: rng and padding */
    uint32_t most = 1;
    for (uint64_t k = 0; k < n_operations; k++) {
        if (n_chunks[k] > most) most = n_chunks[k];
    }
    memset(&w, 0, sizeof w);
    w.n_chunks = n_chunks;
    w.n_operations = n_operations;
    w.seed = seed;
    w.n_runs = pith_alloc_zero(most, sizeof *w.n_runs);
    w.stamps = pith_alloc_zero(most, sizeof *w.stamps);
    assert_non_null(w.n_runs);
    assert_non_null(w.stamps);
    for (int t = 0; t < MOST_THREADS; t++) pith_rng_init(&w.rng[t], seed + (uint64_t)t);
    assert_int_equal(pith_pool_new(n_threads, &w.pool, NULL), PITH_OK);
    assert_int_equal(pith_pool_size(w.pool), n_threads);
    for (int r = 0; r < n_regions; r++) { /* shared by 1, 2, ... threads and by all in turn */
        if (r % 2)
            pith_pool_share(w.pool, r / 2 % (n_threads + 1), run_operations, &w);
        else
            pith_pool_run(w.pool, run_operations, &w);
    }
    check_counts(&w, most, (uint64_t)n_regions);
    pith_pool_free(w.pool);
    pith_free(w.n_runs);
    pith_free(w.stamps);
}

static void test_each_chunk_once(void **state) {
    (void)state;
    static const uint32_t n_chunks[] = {0,  1, 2, 3, 7, 8,  9,    15, 16,
                                        17, 0, 0, 1, 1, 64, 1000, 0,  5};
    for (int n = 1; n <= MOST_THREADS; n++) {
        run_work(n, n_chunks, sizeof n_chunks / sizeof *n_chunks, 0, 50);
    }
}

static void test_each_chunk_once_with_delays(void **state) {
    (void)state;
    enum { N = 400 };
    uint32_t n_chunks[N];
    for (int n = 2; n <= MOST_THREADS; n++) {
        pith_rng rng;
        pith_rng_init(&rng, (uint64_t)n);
        for (int k = 0; k < N; k++) {
            uint64_t draw = pith_rng_next(&rng);
            n_chunks[k] = (uint32_t)(draw % 8 == 0 ? draw >> 8 & 1 : draw >> 8 & 63);
        }
        run_work(n, n_chunks, N, 1000 + (uint64_t)n, 3);
    }
}

static void test_a_million_chunks(void **state) {
    (void)state;
    static const uint32_t n_chunks[] = {MANY_CHUNKS, 1, MANY_CHUNKS - 1};
    for (int n = 1; n <= 4; n++) run_work(n, n_chunks, 3, 0, 1);
}

/* ---- What one operation writes, the next one reads ---- */

enum { N_CELLS = 37, N_SWEEPS = 2000 };

typedef struct sweep {
    pith_pool *pool;
    uint32_t cells[2][N_CELLS];
    uint64_t current[MOST_THREADS * 8];
} sweep;

static void sweep_chunk(void *user, uint32_t i, int thread) {
    sweep *s = user;
    uint64_t k = s->current[thread * 8];
    const uint32_t *from = s->cells[k % 2];
    s->cells[1 - k % 2][i] = from[i] + from[(i + 11) % N_CELLS] * 3 + from[(i + 30) % N_CELLS];
}

static void run_sweeps(void *user, int thread, int n_threads) {
    sweep *s = user;
    (void)n_threads;
    for (uint64_t k = 0; k < N_SWEEPS; k++) {
        s->current[thread * 8] = k;
        pith_pool_for(s->pool, k, N_CELLS, sweep_chunk, s, thread);
    }
}

static void test_operations_see_each_other(void **state) {
    (void)state;
    static sweep s, alone;
    for (int n = 1; n <= MOST_THREADS; n++) {
        memset(&s, 0, sizeof s);
        for (uint32_t i = 0; i < N_CELLS; i++) s.cells[0][i] = i * i + 1;
        assert_int_equal(pith_pool_new(n, &s.pool, NULL), PITH_OK);
        pith_pool_run(s.pool, run_sweeps, &s);
        pith_pool_free(s.pool);
        if (n == 1) alone = s;
        assert_memory_equal(s.cells, alone.cells, sizeof s.cells);
    }
}

/* ---- A thread that lags ---- */

typedef struct lag {
    pith_pool *pool;
    uint64_t n_operations;
    _Atomic int n_through; /* threads that are through all operations */
    uint32_t n_runs[5];    /* plain: ordered by the operations */
    _Atomic int n_by_last; /* chunks that the lagging thread ran */
    int last;
} lag;

static void lag_chunk(void *user, uint32_t i, int thread) {
    lag *l = user;
    l->n_runs[i]++;
    if (thread == l->last) atomic_fetch_add(&l->n_by_last, 1);
}

/* The last thread starts only when all others have done everything: the operations cannot have
 * waited for it. */
static void run_with_lag(void *user, int thread, int n_threads) {
    lag *l = user;
    if (thread == l->last) {
        while (atomic_load(&l->n_through) < n_threads - 1) spin(100);
    }
    for (uint64_t k = 0; k < l->n_operations; k++) {
        pith_pool_for(l->pool, k, 5, lag_chunk, l, thread);
    }
    atomic_fetch_add(&l->n_through, 1);
}

static void test_lagging_thread_holds_nobody_up(void **state) {
    (void)state;
    for (int n = 2; n <= MOST_THREADS; n++) {
        for (int last = 0; last < n; last += n - 1) {
            lag l = {.n_operations = 3000, .last = last};
            assert_int_equal(pith_pool_new(n, &l.pool, NULL), PITH_OK);
            pith_pool_run(l.pool, run_with_lag, &l);
            for (int i = 0; i < 5; i++) assert_int_equal(l.n_runs[i], 3000);
            assert_int_equal(atomic_load(&l.n_by_last), 0);
            pith_pool_free(l.pool);
        }
    }
}

/* ---- Regions without operations, many pools ---- */

static void count_thread(void *user, int thread, int n_threads) {
    int *seen = user;
    seen[thread * 16] += n_threads;
}

static void test_every_thread_runs_each_region(void **state) {
    (void)state;
    for (int n = 1; n <= MOST_THREADS; n++) {
        int seen[MOST_THREADS * 16] = {0};
        pith_pool *pool = NULL;
        assert_int_equal(pith_pool_new(n, &pool, NULL), PITH_OK);
        for (int r = 0; r < 500; r++) pith_pool_run(pool, count_thread, seen);
        for (int t = 0; t < MOST_THREADS; t++) assert_int_equal(seen[t * 16], t < n ? 500 * n : 0);
        pith_pool_free(pool);
    }
}

static void test_pools_without_work(void **state) {
    (void)state;
    for (int i = 0; i < 100; i++) {
        pith_pool *pool = NULL;
        assert_int_equal(pith_pool_new(1 + i % MOST_THREADS, &pool, NULL), PITH_OK);
        pith_pool_free(pool);
    }
    pith_pool_free(NULL);
}

static void test_thread_counts_are_checked(void **state) {
    (void)state;
    static const int wrong[] = {0, -1, INT32_MIN, 1025, INT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pith_error error = {0};
        pith_pool *pool = (pith_pool *)&error;
        assert_int_equal(pith_pool_new(wrong[i], &pool, &error), PITH_ERROR_ARGUMENT);
        assert_null(pool);
        assert_non_null(strstr(error.text, "threads"));
    }
}

/* ---- The float environment ---- */

enum { NEAREST = 1, UPWARD = 2, FLUSHED = 4 };

/* What arithmetic does, not what a control word says. */
static int float_behaviour(void) {
    volatile float one = 1, small = 0x1p-25f, smallest = 0x1p-126f, half = 0.5f;
    volatile float sum = one + small, subnormal = smallest * half;
    return (sum == one ? NEAREST : UPWARD) + (subnormal == 0 ? FLUSHED : 0);
}

static void note_behaviour(void *user, int thread, int n_threads) {
    int *behaviour = user;
    (void)n_threads;
    behaviour[thread * 16] = float_behaviour();
}

static void set_flush_to_zero(bool on) {
#if defined(__x86_64__)
    unsigned control = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(on ? control | 0x8040u : control & ~0x8040u);
#else
    (void)on;
#endif
}

static void test_float_environment(void **state) {
    (void)state;
    for (int n = 1; n <= 4; n++) {
        int seen[MOST_THREADS * 16] = {0};
        pith_pool *pool = NULL;
        fesetround(FE_UPWARD);
        set_flush_to_zero(true); /* both are inherited by threads made now */
        int before = float_behaviour();
        assert_int_equal(pith_pool_new(n, &pool, NULL), PITH_OK);
        pith_pool_run(pool, note_behaviour, seen);
        int after = float_behaviour();
        set_flush_to_zero(false);
        fesetround(FE_TONEAREST);
        assert_true(before & UPWARD);
        assert_int_equal(after, before);
        for (int t = 0; t < n; t++) assert_int_equal(seen[t * 16], NEAREST);
        pith_pool_free(pool);
    }
}

/* ---- Sleeping ---- */

#if !defined(_WIN32)

static double seconds_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void test_no_processor_time_between_regions(void **state) {
    (void)state;
    pith_pool *pool = NULL;
    int seen[MOST_THREADS * 16] = {0};
    assert_int_equal(pith_pool_new(MOST_THREADS, &pool, NULL), PITH_OK);
    pith_pool_run(pool, count_thread, seen);
    (void)poll(NULL, 0, 5); /* let the bounded spins end */
    double before = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    (void)poll(NULL, 0, 100);
    double used = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - before;
    if (used > 0.02) fail_msg("%.3f s of processor time in 0.1 s of waiting", used);
    pith_pool_free(pool);
}

typedef struct wait_case {
    pith_pool *pool;
    _Atomic int slow_thread;
    double used[2 * 16]; /* processor seconds of each thread */
} wait_case;

static void slow_chunk(void *user, uint32_t i, int thread) {
    wait_case *w = user;
    (void)i;
    atomic_store(&w->slow_thread, thread);
    uint64_t end = pith_clock_ns() + 60000000;
    while (pith_clock_ns() < end) spin(1000);
}

static void run_slow(void *user, int thread, int n_threads) {
    wait_case *w = user;
    (void)n_threads;
    double before = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    pith_pool_for(w->pool, 0, 1, slow_chunk, w, thread);
    w->used[thread * 16] = seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
}

static void test_waiting_for_a_slow_chunk_sleeps(void **state) {
    (void)state;
    wait_case w = {0};
    assert_int_equal(pith_pool_new(2, &w.pool, NULL), PITH_OK);
    pith_pool_run(w.pool, run_slow, &w);
    double used = w.used[(1 - atomic_load(&w.slow_thread)) * 16];
    if (used > 0.02) fail_msg("%.3f s of processor time while waiting 0.06 s", used);
    pith_pool_free(w.pool);
}

/* Two chunks, one for each thread where both take part. */
typedef struct share_case {
    pith_pool *pool;
    bool both, slow;          /* each waits for the other; then thread 1 is held up */
    _Atomic int seen[2 * 16]; /* chunks of each thread */
} share_case;

static void share_chunk(void *user, uint32_t i, int thread) {
    share_case *s = user;
    uint64_t limit = pith_clock_ns() + 2000000000u;
    (void)i;
    atomic_fetch_add(&s->seen[thread * 16], 1);
    while (s->both && !atomic_load(&s->seen[(1 - thread) * 16]) && pith_clock_ns() < limit)
        spin(100); /* so neither takes the chunk of one that a busy machine keeps out */
    if (thread == 1 && s->slow) (void)poll(NULL, 0, 60);
}

static void run_share(void *user, int thread, int n_threads) {
    share_case *s = user;
    (void)n_threads;
    pith_pool_for(s->pool, 0, 2, share_chunk, s, thread);
}

/* Chunks of thread 1 in one shared region. */
static int share_once(share_case *s, bool both, bool slow) {
    s->both = both, s->slow = slow;
    atomic_store(&s->seen[0], 0);
    atomic_store(&s->seen[16], 0);
    pith_pool_share(s->pool, 0, run_share, s);
    assert_int_equal(atomic_load(&s->seen[0]) + atomic_load(&s->seen[16]), 2);
    return atomic_load(&s->seen[16]);
}

static void test_a_thread_that_is_held_up_rests(void **state) {
    (void)state;
    share_case s = {0};
    assert_int_equal(pith_pool_new(2, &s.pool, NULL), PITH_OK);
    for (int round = 0; round < 2; round++) {
        /* Thread 0 waits for 60 ms: a stall. The first ones do no harm. */
        for (int i = 0; i < (round ? 1 : 3); i++) assert_int_equal(share_once(&s, true, true), 1);
        uint64_t end = pith_clock_ns() + 900000000u; /* 128 such regions are more */
        for (int i = 0; i < 3; i++) {
            int n = share_once(&s, false, false);
            if (pith_clock_ns() < end) assert_int_equal(n, 0); /* else the machine was busy */
        }
        (void)poll(NULL, 0, 1001); /* no rest is longer; then all are tried again */
    }
    assert_int_equal(share_once(&s, true, false), 1);
    pith_pool_free(s.pool);
}

#endif

static void test_cpu_count(void **state) {
    (void)state;
    int n = pith_cpu_count();
    assert_true(n >= 1);
    assert_int_equal(pith_cpu_count(), n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_chunk_once),
        cmocka_unit_test(test_each_chunk_once_with_delays),
        cmocka_unit_test(test_a_million_chunks),
        cmocka_unit_test(test_operations_see_each_other),
        cmocka_unit_test(test_lagging_thread_holds_nobody_up),
        cmocka_unit_test(test_every_thread_runs_each_region),
        cmocka_unit_test(test_pools_without_work),
        cmocka_unit_test(test_thread_counts_are_checked),
        cmocka_unit_test(test_float_environment),
#if !defined(_WIN32)
        cmocka_unit_test(test_no_processor_time_between_regions),
        cmocka_unit_test(test_waiting_for_a_slow_chunk_sleeps),
        cmocka_unit_test(test_a_thread_that_is_held_up_rests),
#endif
        cmocka_unit_test(test_cpu_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
