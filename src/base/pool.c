/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread pool and its tickets.
 *
 * A ticket is one 64-bit word on a cache line of its own: (tag of the operation, next chunk).
 * Thread t's ticket covers chunks [t n / N, (t+1) n / N) of the running operation. A chunk is
 * taken by compare-and-swap (tag, i) -> (tag, i+1).
 *
 *   ticket t   | tag: operation index, 32 bits | next chunk, 32 bits |
 *              tag older than mine: nobody has begun this range, it starts at its first chunk
 *              tag is mine:         chunks before `next` are taken
 *              tag newer than mine: my operation is long finished
 *
 * Invariants
 * - Operation k+1 starts only after all chunks of k are done (a thread enters k+1 only then), so
 *   one operation runs at a time and one set of tickets is enough, however far a thread lags.
 * - A finished operation has its mark on every ticket that had chunks. So a late thread's
 *   compare-and-swap fails or finds nothing left: it can neither take a chunk twice nor touch a
 *   later operation. (The tag is the low half of the index: a region has at most 2^31
 *   operations.)
 * - `done` counts finished chunks of the running operation; whoever completes it sets it back to
 *   0 and then publishes finished = k + 1. Its acquire/release chain makes every chunk's writes
 *   visible to all who go on.
 *
 * Waiting: spin for at most SPIN_NS, then sleep in the gate; no spin at all where threads
 * outnumber cores. Sleepers announce themselves before they look a last time, and whoever
 * publishes looks for sleepers afterwards (both sequentially consistent), so a wake is never
 * lost and none is paid for when nobody sleeps.
 *
 * A region's number and the threads that take part in it are one word, `begun`: a worker that is
 * not in it touches nothing and may sleep through any number of regions; for one that is in it the
 * caller waits, so what the caller wrote for the region stays.
 *
 * Shared regions (pith_pool_share) do without a thread for a while when threads had to wait long
 * for one another: one core is then busy with other work, and what a preempted thread holds keeps
 * all waiting. After a rest all are tried again; each trial that goes wrong doubles the rest, until
 * all have worked together for a while. They may also be run on fewer threads than there are, whose
 * ranges then cover all chunks.
 *
 * Read next: os_thread.c; backend/cpu, which runs plans on it.
 */
#include "base/pool.h"

#include "base/clock.h"
#include "base/float_mode.h"
#include "base/memory.h"
#include "base/os.h"

enum { THREAD_LIMIT = 1024, LINE = 64, PAUSES_PER_LOOK = 32, REGION_SHIFT = 16 };
#define SPIN_NS 50000u

/* Waits longer than this are stalls: chunks take some 30 microseconds, a time slice of another
 * process milliseconds. A region that stalls for more than 1 / STALL_SHARE of its threads' time
 * is one that stalls. */
#define STALL_NS      250000u
#define SHORT_REST_NS 20000000u
#define LONG_REST_NS  1000000000u
#define TRUST_NS      200000000u /* a neighbour sleeps for some slices only */
enum { STALL_SHARE = 10, REST_REGIONS = 128 };

/* A stall raises suspicion, a region without one relieves it: where more than a third of them
 * stall, a thread rests; lone stalls, which virtual machines have, do no harm. */
enum { SUSPICION = 4, RELIEF = 2, REST_FROM = 12 };

/* A number that only grows while it is waited for. */
typedef struct pool_event {
    _Alignas(LINE) _Atomic uint64_t count;
    _Atomic uint32_t n_sleepers;
    pith_os_gate gate;
} pool_event;

typedef struct pool_ticket {
    _Alignas(LINE) _Atomic uint64_t word; /* tag << 32 | next chunk */
} pool_ticket;

typedef struct pool_worker {
    pith_os_thread handle;
    pith_os_thread_start start;
} pool_worker;

struct pith_pool {
    pool_event begun;                     /* region << REGION_SHIFT | threads in it */
    pool_event left;                      /* workers that left a region, over all regions */
    pool_event finished;                  /* operations finished in this region */
    _Alignas(LINE) _Atomic uint32_t done; /* chunks done of the running operation */
    _Alignas(LINE) int n_threads;
    int n_events;  /* gates made, in the order above */
    int n_workers; /* threads made */
    bool spin;
    bool stop;    /* this and the next four: written by the caller while no worker is in a region */
    int n_ranges; /* threads that chunks are shared out among */
    uint64_t n_left; /* `left` when all workers will have left */
    void (*function)(void *user, int thread, int n_threads);
    void *user;
    _Atomic uint64_t stalled; /* nanoseconds that threads waited in this region, stalls alone */
    uint64_t rest_ns, rests_until; /* of the next rest; clock when this one ends */
    uint64_t well_ns;              /* time in regions of all threads since one stalled */
    uint32_t suspicion;
    pool_ticket *tickets; /* [n_threads] */
    pool_worker *workers; /* [n_threads - 1] */
};

int pith_cpu_count(void) {
    int count = pith_os_cpu_affinity();
    double quota = pith_os_limits_read("").cpu_quota;
    if (quota > 0 && quota < count) {
        int whole = (int)quota;
        count = whole + (quota > whole);
    }
    return count > 0 ? count : 1;
}

int pith_thread_count(void) {
    int processors = pith_cpu_count(), cores = pith_os_cores("");
    return cores > 0 && cores < processors ? cores : processors;
}

/* ---- Events ---- */

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#endif
}

static bool event_reached(pool_event *event, uint64_t target) {
    return atomic_load_explicit(&event->count, memory_order_acquire) >= target;
}

static bool event_spin(pool_event *event, uint64_t target) {
    uint64_t end = pith_clock_ns() + SPIN_NS;
    do {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if (event_reached(event, target)) return true;
            pause_briefly();
        }
    } while (pith_clock_ns() < end);
    return false;
}

/* False when it was reached without sleeping. */
static bool event_await(pool_event *event, uint64_t target, bool spin) {
    if (event_reached(event, target)) return false;
    if (spin && event_spin(event, target)) return false;
    atomic_fetch_add(&event->n_sleepers, 1);
    for (;;) {
        uint32_t seen = atomic_load(&event->gate.word);
        if (atomic_load(&event->count) >= target) break;
        pith_os_gate_wait(&event->gate, seen);
    }
    atomic_fetch_sub(&event->n_sleepers, 1);
    return true;
}

/* Within a region; long waits are counted. */
static void pool_await(pith_pool *pool, pool_event *event, uint64_t target) {
    if (event_reached(event, target)) return;
    uint64_t begun = pith_clock_ns();
    if (!event_await(event, target, pool->spin)) return;
    uint64_t waited = pith_clock_ns() - begun;
    if (waited > STALL_NS) atomic_fetch_add_explicit(&pool->stalled, waited, memory_order_relaxed);
}

/* To be called after count was changed (sequentially consistent). */
static void event_wake(pool_event *event) {
    if (atomic_load(&event->n_sleepers)) pith_os_gate_wake(&event->gate);
}

/* An exchange rather than a store: the same instruction on x86, and on ARM the order against the
 * look at n_sleepers then also holds under qemu, which lets an acquiring load pass a releasing
 * store. */
static void event_publish(pool_event *event, uint64_t count) {
    (void)atomic_exchange(&event->count, count);
    event_wake(event);
}

/* ---- Regions ---- */

static void worker_main(void *user, int thread) {
    pith_pool *pool = user;
    (void)pith_float_mode_begin();
    for (uint64_t region = 1;; region++) {
        (void)event_await(&pool->begun, region << REGION_SHIFT, pool->spin);
        uint64_t begun = atomic_load_explicit(&pool->begun.count, memory_order_acquire);
        region = begun >> REGION_SHIFT; /* later than the one awaited when those were not ours */
        if ((uint64_t)thread >= (begun & ((1u << REGION_SHIFT) - 1))) continue;
        if (pool->stop) return;
        uint64_t n_left = pool->n_left; /* once the last has left, the caller may write again */
        pool->function(pool->user, thread, pool->n_threads);
        if (atomic_fetch_add(&pool->left.count, 1) + 1 == n_left) event_wake(&pool->left);
    }
}

static void reset_operations(pith_pool *pool) {
    atomic_store_explicit(&pool->finished.count, 0, memory_order_relaxed);
    for (int t = 0; t < pool->n_ranges; t++) {
        atomic_store_explicit(&pool->tickets[t].word, UINT64_MAX, memory_order_relaxed);
    }
}

/* A region of threads 0 .. n - 1; n_ranges is set. */
static void run_region(pith_pool *pool, void (*function)(void *user, int thread, int n_threads),
                       void *user, int n) {
    uint64_t float_mode = pith_float_mode_begin();
    if (pool->n_ranges > 1) reset_operations(pool);
    if (n > 1) {
        pool->function = function;
        pool->user = user;
        pool->n_left += (uint64_t)n - 1;
        uint64_t begun = atomic_load_explicit(&pool->begun.count, memory_order_relaxed);
        event_publish(&pool->begun, ((begun >> REGION_SHIFT) + 1) << REGION_SHIFT | (uint64_t)n);
    }
    function(user, 0, pool->n_threads);
    if (n > 1) pool_await(pool, &pool->left, pool->n_left);
    pith_float_mode_end(float_mode);
}

void pith_pool_run(pith_pool *pool, void (*function)(void *user, int thread, int n_threads),
                   void *user) {
    pool->n_ranges = pool->n_threads;
    run_region(pool, function, user, pool->n_threads);
}

void pith_pool_share(pith_pool *pool, int most,
                     void (*function)(void *user, int thread, int n_threads), void *user) {
    uint64_t begun = pith_clock_ns();
    bool rests = begun < pool->rests_until;
    pool->n_ranges = most > 0 && most < pool->n_threads ? most : pool->n_threads;
    int n = pool->n_ranges - (rests && pool->n_ranges > 1);
    atomic_store_explicit(&pool->stalled, 0, memory_order_relaxed);
    run_region(pool, function, user, n);
    if (rests || n == 1) return;
    uint64_t now = pith_clock_ns();
    uint64_t stalled = atomic_load_explicit(&pool->stalled, memory_order_relaxed);
    if (stalled * STALL_SHARE < (now - begun) * (uint64_t)n) {
        pool->well_ns += now - begun;
        if (pool->well_ns > TRUST_NS) pool->rest_ns = SHORT_REST_NS;
        pool->suspicion -= pool->suspicion > RELIEF ? RELIEF : pool->suspicion;
        return;
    }
    pool->well_ns = 0;
    pool->suspicion += SUSPICION;
    if (pool->suspicion < REST_FROM) return;
    pool->suspicion = REST_FROM - SUSPICION; /* after the rest one more is enough, for a while */
    uint64_t least = REST_REGIONS * (now - begun); /* so that trials cost little */
    if (pool->rest_ns < least) pool->rest_ns = least;
    if (pool->rest_ns > LONG_REST_NS) pool->rest_ns = LONG_REST_NS;
    pool->rests_until = now + pool->rest_ns;
    pool->rest_ns *= 2;
}

/* ---- Operations ---- */

typedef struct pool_operation {
    uint64_t index;
    uint32_t n_chunks;
    void (*chunk)(void *user, uint32_t i, int thread);
    void *user;
    int thread;
} pool_operation;

static uint32_t range_start(uint32_t n_chunks, int range, int n_ranges) {
    return (uint32_t)((uint64_t)n_chunks * (uint32_t)range / (uint32_t)n_ranges);
}

/* Takes the next chunk of a range; false when none is left (or the operation is over). */
static bool ticket_take(pool_ticket *ticket, uint32_t tag, uint32_t first, uint32_t end,
                        uint32_t *taken) {
    if (first == end) return false;
    uint64_t seen = atomic_load_explicit(&ticket->word, memory_order_relaxed);
    for (;;) {
        uint32_t age = tag - (uint32_t)(seen >> 32), next = age ? first : (uint32_t)seen;
        if (age > UINT32_MAX / 2 || next >= end) return false;
        uint64_t wanted = (uint64_t)tag << 32 | (next + 1);
        if (atomic_compare_exchange_weak_explicit(&ticket->word, &seen, wanted,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            *taken = next;
            return true;
        }
    }
}

/* Runs what can be had of all ranges, own range first; returns how many chunks that were. */
static uint32_t run_chunks(pith_pool *pool, const pool_operation *operation) {
    int n = pool->n_ranges;
    uint32_t n_run = 0;
    for (int k = 0; k < n; k++) {
        int range = operation->thread + k < n ? operation->thread + k : operation->thread + k - n;
        uint32_t first = range_start(operation->n_chunks, range, n), i;
        uint32_t end = range_start(operation->n_chunks, range + 1, n);
        while (ticket_take(&pool->tickets[range], (uint32_t)operation->index, first, end, &i)) {
            operation->chunk(operation->user, i, operation->thread);
            n_run++;
        }
    }
    return n_run;
}

void pith_pool_for(pith_pool *pool, uint64_t index, uint32_t n_chunks,
                   void (*chunk)(void *user, uint32_t i, int thread), void *user, int thread) {
    if (pool->n_ranges == 1) {
        for (uint32_t i = 0; i < n_chunks; i++) chunk(user, i, thread);
        return;
    }
    if (n_chunks == 0 || event_reached(&pool->finished, index + 1)) return;
    pool_operation operation = {index, n_chunks, chunk, user, thread};
    uint32_t n_run = run_chunks(pool, &operation);
    if (n_run) {
        uint32_t n_done =
            atomic_fetch_add_explicit(&pool->done, n_run, memory_order_acq_rel) + n_run;
        if (n_done == n_chunks) {
            atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
            event_publish(&pool->finished, index + 1);
            return;
        }
    }
    pool_await(pool, &pool->finished, index + 1);
}

/* ---- Making and freeing ---- */

static bool pool_make_events(pith_pool *pool) {
    pool_event *events[] = {&pool->begun, &pool->left, &pool->finished};
    for (int i = 0; i < 3; i++) {
        atomic_init(&events[i]->count, 0);
        atomic_init(&events[i]->n_sleepers, 0);
        if (!pith_os_gate_init(&events[i]->gate)) return false;
        pool->n_events = i + 1;
    }
    return true;
}

static bool pool_make_threads(pith_pool *pool) {
    for (int i = 0; i < pool->n_threads - 1; i++) {
        pool_worker *worker = &pool->workers[i];
        worker->start = (pith_os_thread_start){worker_main, pool, i + 1};
        if (!pith_os_thread_open(&worker->handle, &worker->start)) return false;
        pool->n_workers = i + 1;
    }
    return true;
}

pith_status pith_pool_new(int n_threads, pith_pool **out, pith_error *error) {
    *out = NULL;
    if (n_threads < 1 || n_threads > THREAD_LIMIT) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "%d threads were asked for; 1 to %d are possible", n_threads,
                         (int)THREAD_LIMIT);
    }
    size_t n = (size_t)n_threads;
    pith_pool *pool = pith_alloc_aligned(sizeof *pool);
    if (!pool) return pith_fail_memory(error, "a thread pool", sizeof *pool);
    *pool = (pith_pool){.n_threads = n_threads,
                        .n_ranges = n_threads,
                        .spin = pith_cpu_count() >= n_threads,
                        .rest_ns = SHORT_REST_NS};
    atomic_init(&pool->done, 0);
    atomic_init(&pool->stalled, 0);
    pool->tickets = pith_alloc_aligned(n * sizeof *pool->tickets);
    pool->workers = pith_alloc_zero(n, sizeof *pool->workers);
    if (!pool->tickets || !pool->workers || !pool_make_events(pool)) {
        pith_pool_free(pool);
        return pith_fail_memory(error, "a thread pool", n * sizeof *pool->tickets);
    }
    for (size_t t = 0; t < n; t++) atomic_init(&pool->tickets[t].word, UINT64_MAX);
    if (!pool_make_threads(pool)) {
        int n_made = pool->n_workers;
        pith_pool_free(pool);
        return pith_fail(
            error, PITH_ERROR_MEMORY,
            "the system gave %d of %d threads: ask for fewer (--threads), or raise the "
            "limits on memory and processes (ulimit -v, ulimit -u)",
            n_made + 1, n_threads);
    }
    *out = pool;
    return PITH_OK;
}

void pith_pool_free(pith_pool *pool) {
    if (!pool) return;
    if (pool->n_workers) {
        pool->stop = true;
        uint64_t region = (atomic_load(&pool->begun.count) >> REGION_SHIFT) + 1;
        event_publish(&pool->begun, region << REGION_SHIFT | (uint64_t)pool->n_threads);
    }
    for (int i = 0; i < pool->n_workers; i++) pith_os_thread_join(&pool->workers[i].handle);
    pool_event *events[] = {&pool->begun, &pool->left, &pool->finished};
    for (int i = 0; i < pool->n_events; i++) pith_os_gate_deinit(&events[i]->gate);
    pith_free(pool->workers);
    pith_free_aligned(pool->tickets);
    pith_free_aligned(pool);
}

int pith_pool_size(const pith_pool *pool) {
    return pool->n_threads;
}
