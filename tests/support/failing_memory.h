/* SPDX-License-Identifier: Apache-2.0
 * For tests: counts what the code under test asks of the heap and makes one chosen request fail.
 * A test that includes this file is linked with --wrap for malloc, calloc and realloc (tests/CMakeLists.txt). The test's
 * own allocations count too: reset right before the call that is measured. */
#ifndef PITH_TESTS_FAILING_MEMORY_H
#define PITH_TESTS_FAILING_MEMORY_H

#include <stddef.h>
#include <stdint.h>

static struct {
    uint64_t n_requests, n_bytes;
    uint64_t fail_at; /* number of the request that fails, from 1; 0: none */
} memory_watch;

/* Starts counting anew; the fail_at-th request from now on fails (0: none). */
static inline void memory_watch_reset(uint64_t fail_at) {
    memory_watch.n_requests = memory_watch.n_bytes = 0;
    memory_watch.fail_at = fail_at;
}

static inline int memory_watch_refuses(size_t bytes) {
    memory_watch.n_bytes += bytes;
    return ++memory_watch.n_requests == memory_watch.fail_at;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size) {
    return memory_watch_refuses(size) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size) {
    return memory_watch_refuses(n * size) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *memory, size_t size) {
    return memory_watch_refuses(size) ? NULL : __real_realloc(memory, size);
}

#endif
