/* SPDX-License-Identifier: Apache-2.0
 *
 * Time and memory figures on Windows.
 *
 * Invariant: 0 means unknown. Limits of job objects are not looked at.
 * Read next: os_clock.c is the other body.
 */
#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN
#define _WIN32_WINNT  0x0602
#define PSAPI_VERSION 2

#include "base/clock.h"

#include <windows.h>

#include <psapi.h>

/* Whole seconds and the rest apart: ticks * 1e9 would overflow within hours. */
uint64_t pith_clock_ns(void) {
    LARGE_INTEGER frequency, now;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&now);
    uint64_t per_second = (uint64_t)frequency.QuadPart, ticks = (uint64_t)now.QuadPart;
    return ticks / per_second * 1000000000u + ticks % per_second * 1000000000u / per_second;
}

/* Unknown: GetProcessTimes moves in ticks of some 15 ms, as long as what is measured with it. */
uint64_t pith_clock_cpu_ns(void) {
    return 0;
}

static MEMORYSTATUSEX memory_status(void) {
    MEMORYSTATUSEX status = {.dwLength = sizeof status};
    if (!GlobalMemoryStatusEx(&status)) return (MEMORYSTATUSEX){0};
    return status;
}

uint64_t pith_memory_total(void) {
    return memory_status().ullTotalPhys;
}

uint64_t pith_memory_available(void) {
    return memory_status().ullAvailPhys;
}

static PROCESS_MEMORY_COUNTERS process_memory(void) {
    PROCESS_MEMORY_COUNTERS counters = {.cb = sizeof counters};
    if (!GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters)) {
        return (PROCESS_MEMORY_COUNTERS){0};
    }
    return counters;
}

uint64_t pith_memory_peak(void) {
    return process_memory().PeakWorkingSetSize;
}

uint64_t pith_memory_resident(void) {
    return process_memory().WorkingSetSize;
}

uint64_t pith_memory_huge(void) {
    return 0;
}

#else
typedef int pith_os_clock_windows_is_elsewhere;
#endif
