/* SPDX-License-Identifier: Apache-2.0
 *
 * Promise: whichever allocation fails, base reports it, releases what it had, and keeps what it
 * owned before. The n-th allocation is made to fail for n = 1, 2, ... until a call succeeds.
 *
 * The C library's allocator is replaced in this program, which only glibc without a sanitizer
 * allows; elsewhere the test is skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/source.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

#if defined(__GLIBC__) && !SANITIZED

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);
void __libc_free(void *memory);

/* Only the test's own thread counts down. */
static _Thread_local int failing_in; /* 0: never */
static _Thread_local int n_held;     /* blocks taken and not released while counting */

static bool fails(void) {
    return failing_in > 0 && --failing_in == 0;
}

void *malloc(size_t size) {
    void *memory = fails() ? NULL : __libc_malloc(size);
    n_held += memory != NULL;
    return memory;
}

void *calloc(size_t n, size_t size) {
    void *memory = fails() ? NULL : __libc_calloc(n, size);
    n_held += memory != NULL;
    return memory;
}

void *realloc(void *old, size_t size) {
    void *memory = fails() ? NULL : __libc_realloc(old, size);
    n_held += memory != NULL && old == NULL;
    return memory;
}

void free(void *memory) {
    n_held -= memory != NULL;
    __libc_free(memory);
}

/* Calls attempt with the n-th allocation failing until it returns PITH_OK; attempt releases what it
 * made. Each failure must be told as such and leak nothing. */
static void fail_each(pith_status (*attempt)(pith_error *error), int at_least) {
    for (int n = 1;; n++) {
        pith_error error = {0};
        int before = n_held;
        failing_in = n;
        pith_status status = attempt(&error);
        failing_in = 0;
        if (n_held != before) fail_msg("allocation %d: %d blocks leak", n, n_held - before);
        if (status == PITH_OK) {
            if (n <= at_least) fail_msg("only %d allocations were made", n - 1);
            return;
        }
        if (status != PITH_ERROR_MEMORY) fail_msg("allocation %d: status %d", n, status);
        if (!error.text[0]) fail_msg("allocation %d: no sentence", n);
        if (n > 1000) fail_msg("no end");
    }
}

static pith_status make_pool(pith_error *error) {
    pith_pool *pool;
    pith_status status = pith_pool_new(1, &pool, error);
    if (status != PITH_OK && pool) fail_msg("a failed call gave a pool");
    pith_pool_free(pool);
    return status;
}

static pith_status open_memory(pith_error *error) {
    pith_source *source;
    pith_status status = pith_source_open_memory("abc", 3, &source, error);
    if (status != PITH_OK && source) fail_msg("a failed call gave a source");
    pith_source_close(source);
    return status;
}

static pith_status fill_buffer(pith_error *error) {
    pith_buffer buffer = {0};
    for (int i = 0; i < 100; i++) pith_buffer_append_format(&buffer, "%d,", i);
    bool failed = buffer.failed;
    pith_buffer_deinit(&buffer);
    return failed ? pith_fail_memory(error, "a buffer", 1) : PITH_OK;
}

static pith_status fill_map(pith_error *error) {
    static char keys[500][8];
    pith_map map = {0};
    bool failed = false, has_first = false;
    for (int32_t i = 0; i < 500; i++) {
        snprintf(keys[i], sizeof keys[i], "%d", i);
        int inserted = pith_map_insert(&map, pith_span_of(keys[i]), i, NULL);
        failed |= inserted < 0;
        has_first |= i == 0 && inserted == 1;
        int32_t value = -1;
        bool found = pith_map_find(&map, pith_span_of(keys[0]), &value);
        if (found != has_first) fail_msg("key 0 is %s", found ? "there" : "lost");
        if (found && value != 0) fail_msg("the value of key 0 is %d", value);
    }
    pith_map_deinit(&map);
    return failed ? pith_fail_memory(error, "a map", 1) : PITH_OK;
}

static void test_each_allocation_fails(void **state) {
    (void)state;
    fail_each(make_pool, 2);
    fail_each(open_memory, 2);
    fail_each(fill_buffer, 3);
    fail_each(fill_map, 4);
}

#else

static void test_each_allocation_fails(void **state) {
    (void)state;
    skip();
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
