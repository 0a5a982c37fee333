/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions on POSIX systems: large zeroed blocks, 2 MiB aligned.
 *
 *   mmap:  |..unmapped..|======= region, a multiple of 2 MiB =======|..unmapped..|
 *                       ^ 2 MiB aligned
 *
 * Invariant: what lies outside the aligned part is given back at once, so a region costs its
 * size and no more. Pages are committed when first written. Read next: memory.h;
 * os_memory_windows.c is the other body.
 */
#if !defined(_WIN32)

#if defined(__linux__)
#define _GNU_SOURCE
#else
#define _DARWIN_C_SOURCE
#define _BSD_SOURCE
#endif

#include "base/memory.h"

#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

bool pith_region_open(pith_region *region, size_t size, bool huge) {
    *region = (pith_region){0};
    size_t rounded, whole;
    if (!pith_size_add(size ? size : 1, HUGE_PAGE - 1, &rounded)) return false;
    rounded -= rounded % HUGE_PAGE;
    if (!pith_size_add(rounded, HUGE_PAGE, &whole)) return false;
    char *base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (base == MAP_FAILED) return false;
    size_t before = (HUGE_PAGE - (uintptr_t)base % HUGE_PAGE) % HUGE_PAGE;
    size_t after = whole - before - rounded;
    if (before) munmap(base, before);
    if (after) munmap(base + before + rounded, after);
    char *data = base + before;
#if defined(MADV_HUGEPAGE)
    if (huge) (void)madvise(data, rounded, MADV_HUGEPAGE);
#else
    (void)huge;
#endif
    *region = (pith_region){
        .data = (uint8_t *)data, .size = size, .mapping = data, .mapping_size = rounded};
    return true;
}

void pith_region_close(pith_region *region) {
    if (region->mapping) munmap(region->mapping, region->mapping_size);
    *region = (pith_region){0};
}

#else
typedef int pith_os_memory_is_elsewhere;
#endif
