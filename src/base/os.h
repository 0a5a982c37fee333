/* SPDX-License-Identifier: Apache-2.0
 * What base asks of the operating system. Private to base: other rooms use source.h, memory.h,
 * clock.h and pool.h. Each function has one POSIX body (os_<noun>.c) and one Windows body
 * (os_<noun>_windows.c); each file is guarded as a whole, so that the build may list all of them
 * everywhere. */
#ifndef PITH_BASE_OS_H
#define PITH_BASE_OS_H

#include "base/status.h"

#include <stdatomic.h>

/* ---- Files (os_file.c) ---- */

typedef struct pith_os_file {
    intptr_t handle;  /* descriptor or HANDLE */
    uint64_t size;    /* bytes, as they were when it was opened */
    uint64_t changed; /* when it was last, then: to be compared alone */
} pith_os_file;

/* Regular files only: directories, pipes and devices are refused with a sentence. */
pith_status pith_os_file_open(const char *path, pith_os_file *out, pith_error *error);
/* A duplicate of `descriptor` that the caller's close does not touch. */
pith_status pith_os_file_duplicate(int descriptor, pith_os_file *out, pith_error *error);
void pith_os_file_close(pith_os_file *file);
/* Fills buffer; returns 0, an errno-like code > 0, or -1 when the file ends before. Does not
 * move a position. */
int pith_os_file_read(const pith_os_file *file, uint64_t offset, void *buffer, size_t size);
/* A second descriptor of the same file whose reads pass the page cache by. false: the system or
 * the file system has no such reads. Closed like any other. */
bool pith_os_file_open_direct(const pith_os_file *file, pith_os_file *out);
/* Reads through it; offset, size and the buffer's address are multiples of 4096. Returns how many
 * bytes came, fewer at the file's end, or -1 when the system refused (at any time it may). */
int64_t pith_os_file_read_direct(const pith_os_file *direct, uint64_t offset, void *buffer,
                                 size_t size);
/* Starts reading this range into the page cache; a hint. */
void pith_os_file_prefetch(const pith_os_file *file, uint64_t offset, uint64_t size);
/* The sentence part for a code from pith_os_file_read. */
void pith_os_error_text(int code, char *text, size_t capacity);

/* A read-only view of a range of a file. data points at `offset`; base and base_size are what
 * the system gave. */
typedef struct pith_os_view {
    const uint8_t *data;
    uint64_t size;
    void *base;
    size_t base_size;
} pith_os_view;

bool pith_os_view_open(const pith_os_file *file, uint64_t offset, uint64_t size, pith_os_view *out);
void pith_os_view_close(pith_os_view *view);
void pith_os_view_prefetch(const pith_os_view *view, uint64_t offset, uint64_t size);
/* Share of a range, which lies in the view, that is in the page cache: 0..1, -1 unknown. */
double pith_os_view_resident(const pith_os_view *view, uint64_t offset, uint64_t size);

/* ---- Limits set from outside (os_cgroup.c) ---- */

typedef struct pith_os_limits {
    double cpu_quota;     /* cores' worth of time that this process may use; 0: no limit */
    uint64_t memory;      /* bytes; 0: no limit */
    uint64_t memory_left; /* bytes below the limit; cache that can be dropped counts as free */
} pith_os_limits;

/* `root` stands before /proc and /sys: "" for this machine. No cgroups: no limits. */
pith_os_limits pith_os_limits_read(const char *root);
/* Processors that the scheduler may give us, at least 1 (os_thread.c). */
int pith_os_cpu_affinity(void);
/* Cores among them that are worth a thread: one processor a core, small cores left out; 0: unknown
 * (os_cores.c). `root` as above. */
int pith_os_cores(const char *root);
/* pith_machine_second_cache. */
size_t pith_os_second_cache(const char *root);

/* ---- Threads (os_thread.c) ---- */

typedef struct pith_os_thread {
    uintptr_t handle;
} pith_os_thread;

/* The thread blocks asynchronous signals. false: the system has no more threads for us. `start`
 * must outlive it. */
typedef struct pith_os_thread_start {
    void (*function)(void *user, int thread);
    void *user;
    int thread;
} pith_os_thread_start;
bool pith_os_thread_open(pith_os_thread *thread, pith_os_thread_start *start);
void pith_os_thread_join(pith_os_thread *thread);

/* A word to sleep on: futex, WaitOnAddress, or a lock and a condition where the system has
 * neither. */
typedef struct pith_os_gate {
    _Atomic uint32_t word;
    void *fallback; /* NULL where the system waits on the word itself */
} pith_os_gate;
bool pith_os_gate_init(pith_os_gate *gate); /* false: no memory */
void pith_os_gate_deinit(pith_os_gate *gate);
/* Sleeps while word == seen. May return early; the caller checks its condition again. */
void pith_os_gate_wait(pith_os_gate *gate, uint32_t seen);
/* Changes the word and wakes all sleepers. */
void pith_os_gate_wake(pith_os_gate *gate);

#endif
