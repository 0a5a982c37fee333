/* SPDX-License-Identifier: Apache-2.0
 *
 * A background thread on a gate.
 *
 * Invariant: the thread reads the gate's word before it runs and sleeps only while the word is
 * that one, so whatever was handed over before a wake is seen by the run after it; the last run
 * begins after the wish to stop was seen.
 *
 * Read next: os_thread.c; the library's computing threads are pool.c.
 */
#include "base/worker.h"

#include "base/memory.h"
#include "base/os.h"

struct pith_worker {
    void (*run)(void *user);
    void *user;
    pith_os_gate gate;
    pith_os_thread thread;
    pith_os_thread_start start;
    atomic_bool stop;
};

static void loop(void *user, int thread) {
    pith_worker *worker = user;
    (void)thread;
    for (;;) {
        uint32_t seen = atomic_load(&worker->gate.word);
        bool last = atomic_load(&worker->stop);
        worker->run(worker->user);
        if (last) return;
        pith_os_gate_wait(&worker->gate, seen);
    }
}

pith_status pith_worker_new(void (*run)(void *user), void *user, pith_worker **out,
                            pith_error *error) {
    *out = NULL;
    pith_worker *worker = pith_alloc_zero(1, sizeof *worker);
    if (!worker) return pith_fail_memory(error, "a thread", sizeof *worker);
    worker->run = run;
    worker->user = user;
    worker->start = (pith_os_thread_start){loop, worker, 0};
    atomic_init(&worker->stop, false);
    if (!pith_os_gate_init(&worker->gate)) {
        pith_free(worker);
        return pith_fail_memory(error, "a thread", sizeof *worker);
    }
    if (!pith_os_thread_open(&worker->thread, &worker->start)) {
        pith_os_gate_deinit(&worker->gate);
        pith_free(worker);
        return pith_fail(error, PITH_ERROR_MEMORY, "the system has no more threads for us");
    }
    *out = worker;
    return PITH_OK;
}

void pith_worker_wake(pith_worker *worker) {
    pith_os_gate_wake(&worker->gate);
}

void pith_worker_free(pith_worker *worker) {
    if (!worker) return;
    atomic_store(&worker->stop, true);
    pith_os_gate_wake(&worker->gate);
    pith_os_thread_join(&worker->thread);
    pith_os_gate_deinit(&worker->gate);
    pith_free(worker);
}
