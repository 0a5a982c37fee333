/* SPDX-License-Identifier: Apache-2.0
 *
 * The heap as the library sees it, and checked size arithmetic.
 *
 * Invariant: a product or sum of sizes is checked before it is used, and a size of 0 still gives
 * a pointer that can be told from failure. Every allocation of the library ends in malloc,
 * calloc or realloc in this file, so a test that wraps those three at link time can make the
 * n-th allocation fail.
 *
 * It keeps no count and no list: ceilings are the business of those who plan (kv, engine).
 * Read next: os_memory.c for regions.
 */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { CACHE_LINE = 64 };

void *pith_alloc(size_t size) {
    return malloc(size ? size : 1);
}

void *pith_alloc_zero(size_t n, size_t size) {
    size_t bytes;
    if (!pith_size_mul(n, size, &bytes)) return NULL;
    return calloc(bytes ? bytes : 1, 1);
}

void *pith_alloc_array(size_t n, size_t size) {
    size_t bytes;
    return pith_size_mul(n, size, &bytes) ? pith_alloc(bytes) : NULL;
}

void *pith_realloc(void *memory, size_t size) {
    return realloc(memory, size ? size : 1);
}

void pith_free(void *memory) {
    free(memory);
}

void *pith_alloc_hook(size_t size, void *user) {
    (void)user;
    return pith_alloc(size);
}

void pith_free_hook(void *memory, void *user) {
    (void)user;
    pith_free(memory);
}

char *pith_copy_text(const char *text, size_t size) {
    size_t bytes;
    if (!pith_size_add(size, 1, &bytes)) return NULL;
    char *copy = pith_alloc(bytes);
    if (!copy) return NULL;
    if (size) memcpy(copy, text, size);
    copy[size] = 0;
    return copy;
}

/* The pointer that malloc gave lies in the word before the aligned one:
 *
 *   malloc ->|  0..63 bytes  | raw pointer | aligned block ...
 */
void *pith_alloc_aligned(size_t size) {
    size_t bytes;
    if (!pith_size_add(size, CACHE_LINE + sizeof(void *), &bytes)) return NULL;
    char *raw = pith_alloc(bytes);
    if (!raw) return NULL;
    uintptr_t first = (uintptr_t)raw + sizeof(void *);
    size_t shift = (size_t)((CACHE_LINE - first % CACHE_LINE) % CACHE_LINE);
    char *aligned = raw + sizeof(void *) + shift;
    memcpy(aligned - sizeof(void *), &raw, sizeof raw);
    return aligned;
}

void pith_free_aligned(void *memory) {
    if (!memory) return;
    void *raw;
    memcpy(&raw, (char *)memory - sizeof(void *), sizeof raw);
    pith_free(raw);
}

bool pith_size_mul(size_t a, size_t b, size_t *out) {
    if (b && a > SIZE_MAX / b) return false;
    *out = a * b;
    return true;
}

bool pith_size_add(size_t a, size_t b, size_t *out) {
    if (a > SIZE_MAX - b) return false;
    *out = a + b;
    return true;
}

bool pith_u64_mul(uint64_t a, uint64_t b, uint64_t *out) {
    if (b && a > UINT64_MAX / b) return false;
    *out = a * b;
    return true;
}

bool pith_u64_add(uint64_t a, uint64_t b, uint64_t *out) {
    if (a > UINT64_MAX - b) return false;
    *out = a + b;
    return true;
}
