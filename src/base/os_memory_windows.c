/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions on Windows: address space with room for alignment is reserved, the aligned part of it is
 * committed.
 *
 *   reserved |..........|======= committed, a multiple of 2 MiB =======|..........|
 *                       ^ 2 MiB aligned
 *
 * Invariant: only committed pages count against memory, so the margin costs address space alone.
 * Large pages need a privilege that programs rarely have: `huge` is not used.
 * Read next: memory.h; os_memory.c is the other body.
 */
#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN

#include "base/memory.h"

#include <windows.h>

#define ALIGNMENT ((size_t)2 << 20)

bool pith_region_open(pith_region *region, size_t size, bool huge) {
    (void)huge;
    *region = (pith_region){0};
    size_t rounded, whole;
    if (!pith_size_add(size ? size : 1, ALIGNMENT - 1, &rounded)) return false;
    rounded -= rounded % ALIGNMENT;
    if (!pith_size_add(rounded, ALIGNMENT, &whole)) return false;
    char *base = VirtualAlloc(NULL, whole, MEM_RESERVE, PAGE_READWRITE);
    if (!base) return false;
    char *data = base + (ALIGNMENT - (uintptr_t)base % ALIGNMENT) % ALIGNMENT;
    if (!VirtualAlloc(data, rounded, MEM_COMMIT, PAGE_READWRITE)) {
        VirtualFree(base, 0, MEM_RELEASE);
        return false;
    }
    *region = (pith_region){
        .data = (uint8_t *)data, .size = size, .mapping = base, .mapping_size = rounded};
    return true;
}

void pith_region_close(pith_region *region) {
    if (region->mapping) VirtualFree(region->mapping, 0, MEM_RELEASE);
    *region = (pith_region){0};
}

#else
typedef int pith_os_memory_windows_is_elsewhere;
#endif
