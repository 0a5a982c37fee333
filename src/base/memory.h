/* SPDX-License-Identifier: Apache-2.0
 * Heap, regions and checked sizes. All allocation of the library goes through here (linted), so
 * that tests can make the n-th allocation fail. */
#ifndef PITH_BASE_MEMORY_H
#define PITH_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL when memory cannot be had. Size 0 gives a valid pointer. Released with pith_free. */
void *pith_alloc(size_t size);
void *pith_alloc_zero(size_t n, size_t size);  /* n * size checked */
void *pith_alloc_array(size_t n, size_t size); /* not zeroed; n * size checked */
void *pith_realloc(void *memory, size_t size); /* memory stays valid on failure */
void pith_free(void *memory);
/* The two as libraries want them that hand a pointer of their own along. */
void *pith_alloc_hook(size_t size, void *user);
void pith_free_hook(void *memory, void *user);
char *pith_copy_text(const char *text, size_t size); /* size bytes + NUL; NULL without memory */

/* 64-byte aligned; pith_free_aligned. */
void *pith_alloc_aligned(size_t size);
void pith_free_aligned(void *memory);

/* a * b and a + b into *out; false on overflow. */
bool pith_size_mul(size_t a, size_t b, size_t *out);
bool pith_size_add(size_t a, size_t b, size_t *out);
bool pith_u64_mul(uint64_t a, uint64_t b, uint64_t *out);
bool pith_u64_add(uint64_t a, uint64_t b, uint64_t *out);

/* A large block straight from the operating system: 2 MiB aligned, zeroed, huge pages asked for
 * when `huge`. */
typedef struct pith_region {
    uint8_t *data;
    size_t size;
    void *mapping; /* what the system gave, private to memory */
    size_t mapping_size;
} pith_region;
/* false: no memory, and the region is zeroed. */
bool pith_region_open(pith_region *region, size_t size, bool huge);
void pith_region_close(pith_region *region); /* a zeroed region is allowed */

#endif
