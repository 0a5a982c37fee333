/* SPDX-License-Identifier: Apache-2.0
 *
 * What Linux and macOS say about cores. Which of the processors that this process may use are worth
 * a thread of their own: one of each core, and of the cores those that are not the small ones. How
 * much of the second cache is one core's.
 *
 *   /proc/thread-self/status                  Cpus_allowed_list: 0-7; /proc/self: of thread 1
 *   /sys/devices/system/cpu/cpuN/topology/thread_siblings_list     the processors of N's core
 *   /sys/devices/cpu_atom/cpus                the efficiency cores of a hybrid x86
 *   /sys/devices/system/cpu/cpuN/cpu_capacity                      ARM: speed of N, 1024 at most
 *   /sys/devices/system/cpu/cpuN/cpufreq/cpuinfo_max_freq          else: its highest clock
 *   /sys/devices/system/cpu/cpu0/cache/index2/size ("1024K"), level, shared_cpu_list
 *
 * Two threads on one core share its product units and its way to memory, and the small cores of a
 * phone hold the others up more than they help. What is absent or cannot be understood makes no
 * difference between processors.
 *
 * Read next: pool.c, which asks; os_thread_windows.c is the other body.
 */
#if !defined(_WIN32)

#if defined(__APPLE__)
#define _DARWIN_C_SOURCE
#endif

#include "base/machine.h"
#include "base/os.h"
#include "base/os_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

enum { TEXT_SIZE = 8192, NAME_SIZE = 1024, MOST = 4096 };

/* Small: below this share of the fastest, in percent. Cores of one class differ by some percent of
 * clock, an efficiency core of ARM has a third of the capacity. */
enum { SMALL_CAPACITY = 50, SMALL_CLOCK = 60 };

static const char *cpu_folder = "/sys/devices/system/cpu";

/* Whether the list ("0-3,8,10-11") has the number. */
static bool list_has(const char *list, uint64_t number) {
    for (const char *at = list; *at >= '0' && *at <= '9';) {
        char *end;
        uint64_t first = strtoull(at, &end, 10), last = first;
        if (*end == '-') last = strtoull(end + 1, &end, 10);
        if (number >= first && number <= last) return true;
        if (*end != ',') return false;
        at = end + 1;
    }
    return false;
}

static bool read_text(const char *root, const char *file, char *text) {
    char name[NAME_SIZE];
    int size = snprintf(name, sizeof name, "%s%s", root, file);
    return size > 0 && (size_t)size < sizeof name && pith_os_text_read(name, text, TEXT_SIZE);
}

/* A number in a file of one processor; `none` when there is none. */
static uint64_t read_number(const char *root, uint32_t cpu, const char *file, uint64_t none) {
    char path[NAME_SIZE], text[TEXT_SIZE];
    snprintf(path, sizeof path, "%s/cpu%u/%s", cpu_folder, cpu, file);
    if (!read_text(root, path, text) || text[0] < '0' || text[0] > '9') return none;
    return strtoull(text, NULL, 10);
}

/* Fills the list of processors that this thread, and so each that it makes, may use; false:
 * unknown. Linux before 3.17 tells it of the process's first thread alone. */
static bool read_allowed(const char *root, char *list) {
    static const char key[] = "Cpus_allowed_list:";
    char text[TEXT_SIZE];
    if (!read_text(root, "/proc/thread-self/status", text) &&
        !read_text(root, "/proc/self/status", text))
        return false;
    const char *at = strstr(text, key);
    if (!at) return false;
    at += sizeof key - 1;
    at += strspn(at, " \t");
    size_t size = strcspn(at, "\n");
    memcpy(list, at, size);
    list[size] = 0;
    return size > 0;
}

/* The processors that we look at: the first of each core that we may use. */
typedef struct core_list {
    uint32_t cpu[MOST];
    uint32_t n;
} core_list;

static void find_cores(const char *root, const char *allowed, core_list *cores) {
    bool seen[MOST] = {false}; /* by the first processor of a core */
    cores->n = 0;
    for (uint32_t cpu = 0; cpu < MOST; cpu++) {
        if (!list_has(allowed, cpu)) continue;
        uint64_t first = read_number(root, cpu, "topology/thread_siblings_list", cpu);
        if (first >= MOST || seen[first]) continue;
        seen[first] = true;
        cores->cpu[cores->n++] = cpu;
    }
}

/* Leaves out what the file says is below `percent` of the fastest. */
static void drop_small(const char *root, core_list *cores, const char *file, uint64_t percent) {
    uint64_t most = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < cores->n; i++) {
        uint64_t speed = read_number(root, cores->cpu[i], file, 0);
        if (speed > most) most = speed;
    }
    for (uint32_t i = 0; i < cores->n; i++) {
        uint64_t speed = read_number(root, cores->cpu[i], file, most);
        if (speed >= most / 100 * percent) cores->cpu[kept++] = cores->cpu[i];
    }
    cores->n = kept;
}

/* Leaves out the processors of the list, unless these are all. */
static void drop_listed(core_list *cores, const char *list) {
    uint32_t n_listed = 0, kept = 0;
    for (uint32_t i = 0; i < cores->n; i++) n_listed += list_has(list, cores->cpu[i]);
    if (n_listed == cores->n) return;
    for (uint32_t i = 0; i < cores->n; i++)
        if (!list_has(list, cores->cpu[i])) cores->cpu[kept++] = cores->cpu[i];
    cores->n = kept;
}

/* Processors in a list, at least 1. */
static uint32_t list_count(const char *list) {
    uint32_t n = 0;
    for (uint32_t cpu = 0; cpu < MOST; cpu++) n += list_has(list, cpu);
    return n ? n : 1;
}

/* Processors in a list of processor 0's. */
static uint32_t first_count(const char *root, const char *file) {
    char path[NAME_SIZE], text[TEXT_SIZE];
    snprintf(path, sizeof path, "%s/cpu0/%s", cpu_folder, file);
    return read_text(root, path, text) ? list_count(text) : 1;
}

size_t pith_os_second_cache(const char *root) {
#if defined(__APPLE__)
    int64_t bytes = 0;
    int cores = 1;
    size_t size = sizeof bytes, cores_size = sizeof cores;
    if (!root[0] && sysctlbyname("hw.perflevel0.l2cachesize", &bytes, &size, NULL, 0) == 0) {
        (void)sysctlbyname("hw.perflevel0.cpusperl2", &cores, &cores_size, NULL, 0);
        return (size_t)bytes / (size_t)(cores > 0 ? cores : 1);
    }
#endif
    uint64_t kib = read_number(root, 0, "cache/index2/size", 0); /* "1024K" */
    if (read_number(root, 0, "cache/index2/level", 0) != 2 || kib > 1u << 20) return 0;
    uint32_t threads = first_count(root, "topology/thread_siblings_list");
    uint32_t sharing = first_count(root, "cache/index2/shared_cpu_list") / threads;
    return (size_t)kib * 1024 / (sharing ? sharing : 1);
}

size_t pith_machine_second_cache(void) {
    return pith_os_second_cache("");
}

int pith_os_cores(const char *root) {
    char text[TEXT_SIZE];
    core_list cores;
#if defined(__APPLE__)
    int n = 0;
    size_t size = sizeof n;
    if (!root[0] && sysctlbyname("hw.perflevel0.physicalcpu", &n, &size, NULL, 0) == 0) return n;
    if (!root[0] && sysctlbyname("hw.physicalcpu", &n, &size, NULL, 0) == 0) return n;
#endif
    if (!read_allowed(root, text)) return 0;
    find_cores(root, text, &cores);
    if (read_text(root, "/sys/devices/cpu_atom/cpus", text)) drop_listed(&cores, text);
    drop_small(root, &cores, "cpu_capacity", SMALL_CAPACITY);
    drop_small(root, &cores, "cpufreq/cpuinfo_max_freq", SMALL_CLOCK);
    return (int)cores.n;
}

#else
typedef int pith_os_cores_is_elsewhere;
#endif
