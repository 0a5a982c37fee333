/* SPDX-License-Identifier: Apache-2.0
 *
 * Time and memory figures on POSIX systems.
 *
 * Invariant: 0 means unknown, never a guess. Inside a container the smaller of the machine's and
 * the group's figures is told. Only Linux tells what is available; elsewhere it is unknown.
 *
 * Read next: os_cgroup.c; os_clock_windows.c is the other body.
 */
#if !defined(_WIN32)

#if defined(__linux__)
#define _GNU_SOURCE
#else
#define _DARWIN_C_SOURCE
#define _BSD_SOURCE
#endif

#include "base/clock.h"

#include "base/os.h"
#include "base/os_text.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

uint64_t pith_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t pith_clock_cpu_ns(void) {
    struct timespec used;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0) return 0;
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* A line of /proc/meminfo or /proc/self/status, in bytes; 0 when absent. */
static uint64_t kilobytes_of(const char *path, const char *key) {
    char text[8192];
    uint64_t kilobytes = 0;
    if (!pith_os_text_read(path, text, sizeof text)) return 0;
    return pith_os_text_find(text, key, &kilobytes) ? kilobytes * 1024 : 0;
}

static uint64_t physical_memory(void) {
#if defined(_SC_PHYS_PAGES)
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) return (uint64_t)pages * (uint64_t)page;
#endif
    return 0;
}

uint64_t pith_memory_total(void) {
    uint64_t total = physical_memory(), limit = pith_os_limits_read("").memory;
    return limit && (!total || limit < total) ? limit : total;
}

/* Address space that the process may still map; 0: no limit, or unknown. */
static uint64_t address_space_left(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
    uint64_t taken = kilobytes_of("/proc/self/status", "VmSize:"), all = (uint64_t)limit.rlim_cur;
    if (!taken) return 0;
    return taken < all ? all - taken : 1;
}

uint64_t pith_memory_available(void) {
    uint64_t available = kilobytes_of("/proc/meminfo", "MemAvailable:");
    uint64_t left = address_space_left();
    pith_os_limits limits = pith_os_limits_read("");
    if (left && (!available || left < available)) available = left;
    if (!limits.memory) return available;
    return !available || limits.memory_left < available ? limits.memory_left : available;
}

uint64_t pith_memory_peak(void) {
    uint64_t peak = kilobytes_of("/proc/self/status", "VmHWM:");
    if (peak) return peak;
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#if defined(__APPLE__)
    return (uint64_t)usage.ru_maxrss;
#else
    return (uint64_t)usage.ru_maxrss * 1024;
#endif
}

uint64_t pith_memory_resident(void) {
    return kilobytes_of("/proc/self/status", "VmRSS:");
}

uint64_t pith_memory_huge(void) {
    return kilobytes_of("/proc/self/smaps_rollup", "AnonHugePages:");
}

#else
typedef int pith_os_clock_is_elsewhere;
#endif
