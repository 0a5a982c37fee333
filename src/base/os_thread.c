/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads and gates on POSIX systems. A gate is a futex on Linux; elsewhere a lock and a
 * condition.
 *
 * Invariant of a gate: the word changes before anyone is woken, and a sleeper compares the word
 * after it is known to those who wake (in the kernel, or under the lock), so no wake is lost.
 *
 * Threads made here block asynchronous signals: an application's handlers run on its own
 * threads. Read next: pool.c; os_thread_windows.c is the other body.
 */
#if !defined(_WIN32)

#if defined(__linux__)
#define _GNU_SOURCE
#else
#define _DARWIN_C_SOURCE
#define _BSD_SOURCE
#endif

#include "base/os.h"

#include "base/memory.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

static void *thread_main(void *argument) {
    pith_os_thread_start *start = argument;
    start->function(start->user, start->thread);
    return NULL;
}

/* At least 512 KiB: kernels need up to 85, and systems give 128 (musl) or what `ulimit -s` says. */
static void ask_stack(pthread_attr_t *attributes) {
    enum { LEAST = 512 << 10 };
    size_t size = 0;
    if (pthread_attr_getstacksize(attributes, &size) == 0 && size < LEAST)
        (void)pthread_attr_setstacksize(attributes, LEAST);
}

bool pith_os_thread_open(pith_os_thread *thread, pith_os_thread_start *start) {
    static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof synchronous / sizeof *synchronous; i++) {
        sigdelset(&blocked, synchronous[i]);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    pthread_t handle;
    pthread_attr_t attributes, *used = &attributes;
    if (pthread_attr_init(&attributes) != 0) used = NULL;
    if (used) ask_stack(used);
    int code = pthread_create(&handle, used, thread_main, start);
    if (used) (void)pthread_attr_destroy(used);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) return false;
    thread->handle = (uintptr_t)handle;
    return true;
}

void pith_os_thread_join(pith_os_thread *thread) {
    pthread_join((pthread_t)thread->handle, NULL);
}

#if defined(__linux__)

/* Sets of 1024 bits do not hold the machines that have more; the set grows until the kernel is
 * content. */
int pith_os_cpu_affinity(void) {
    for (int n = 1024; n <= 1 << 18; n *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)n);
        if (!set) break;
        size_t size = CPU_ALLOC_SIZE((size_t)n);
        int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0) return count;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

bool pith_os_gate_init(pith_os_gate *gate) {
    atomic_init(&gate->word, 0);
    gate->fallback = NULL;
    return true;
}

void pith_os_gate_deinit(pith_os_gate *gate) {
    (void)gate;
}

void pith_os_gate_wait(pith_os_gate *gate, uint32_t seen) {
    (void)syscall(SYS_futex, &gate->word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

void pith_os_gate_wake(pith_os_gate *gate) {
    atomic_fetch_add(&gate->word, 1);
    (void)syscall(SYS_futex, &gate->word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

#else

int pith_os_cpu_affinity(void) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

typedef struct gate_lock {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} gate_lock;

bool pith_os_gate_init(pith_os_gate *gate) {
    atomic_init(&gate->word, 0);
    gate_lock *lock = pith_alloc_zero(1, sizeof *lock);
    gate->fallback = lock;
    if (!lock) return false;
    if (pthread_mutex_init(&lock->mutex, NULL) == 0) {
        if (pthread_cond_init(&lock->changed, NULL) == 0) return true;
        pthread_mutex_destroy(&lock->mutex);
    }
    pith_free(lock);
    gate->fallback = NULL;
    return false;
}

void pith_os_gate_deinit(pith_os_gate *gate) {
    gate_lock *lock = gate->fallback;
    if (!lock) return;
    pthread_cond_destroy(&lock->changed);
    pthread_mutex_destroy(&lock->mutex);
    pith_free(lock);
    gate->fallback = NULL;
}

void pith_os_gate_wait(pith_os_gate *gate, uint32_t seen) {
    gate_lock *lock = gate->fallback;
    pthread_mutex_lock(&lock->mutex);
    while (atomic_load(&gate->word) == seen) pthread_cond_wait(&lock->changed, &lock->mutex);
    pthread_mutex_unlock(&lock->mutex);
}

void pith_os_gate_wake(pith_os_gate *gate) {
    gate_lock *lock = gate->fallback;
    pthread_mutex_lock(&lock->mutex);
    atomic_fetch_add(&gate->word, 1);
    pthread_cond_broadcast(&lock->changed);
    pthread_mutex_unlock(&lock->mutex);
}

#endif

#else
typedef int pith_os_thread_is_elsewhere;
#endif
