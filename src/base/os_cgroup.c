/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits that a container sets: cgroup v2 and v1 on Linux, none elsewhere.
 *
 * A limit holds for the group and for all groups above it, so the path from /proc/self/cgroup is
 * walked up to the root and the smallest value wins. Inside a container the path may be one of
 * the host's that is not mounted here; the walk then ends at the mounted root, which is the
 * container's own group.
 *
 *   v2  /sys/fs/cgroup/<path>/cpu.max ("max 100000"), memory.max, memory.current, memory.stat
 *   v1  /sys/fs/cgroup/cpu/<path>/cpu.cfs_quota_us, cpu.cfs_period_us
 *       /sys/fs/cgroup/memory/<path>/memory.limit_in_bytes, memory.usage_in_bytes, memory.stat
 *
 * Read next: os_clock.c and pool.c, which ask.
 */
#include "base/os.h"
#include "base/os_text.h"

#if defined(__linux__)

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 1024, TEXT_SIZE = 8192 };

/* "no limit" in v1 is a number near 2^63. */
#define MEMORY_UNLIMITED ((uint64_t)1 << 60)

/* True when `list` ("cpu,cpuacct") names `controller`; v2's line has an empty list and is named
 * "". */
static bool list_names(const char *list, size_t size, const char *controller) {
    size_t wanted = strlen(controller);
    if (wanted == 0) return size == 0;
    while (size) {
        const char *comma = memchr(list, ',', size);
        size_t item = comma ? (size_t)(comma - list) : size;
        if (item == wanted && memcmp(list, controller, item) == 0) return true;
        size_t step = comma ? item + 1 : item;
        list += step;
        size -= step;
    }
    return false;
}

/* The group's path ("/a/b") in the hierarchy of `controller`. Lines are `id:controllers:path`. */
static bool group_path(const char *controller, char *path) {
    char text[TEXT_SIZE];
    if (!pith_os_text_read("/proc/self/cgroup", text, sizeof text)) return false;
    for (char *line = text; line && *line;) {
        char *end = strchr(line, '\n');
        if (end) *end++ = 0;
        char *list = strchr(line, ':'), *start = list ? strchr(list + 1, ':') : NULL;
        if (start && list_names(list + 1, (size_t)(start - list - 1), controller)) {
            if (strlen(start + 1) >= PATH_SIZE) return false;
            memcpy(path, start + 1, strlen(start + 1) + 1);
            return true;
        }
        line = end;
    }
    return false;
}

/* Cuts the last component: "/a/b" -> "/a" -> "" ; false when there was none to cut. */
static bool path_up(char *path) {
    char *slash = strrchr(path, '/');
    if (!slash) return false;
    *slash = 0;
    return true;
}

static bool read_group_file(const char *root, const char *path, const char *file, char *text) {
    char name[PATH_SIZE + 128];
    int size = snprintf(name, sizeof name, "%s%s/%s", root, path, file);
    return size > 0 && (size_t)size < sizeof name && pith_os_text_read(name, text, TEXT_SIZE);
}

static double quota_v2(const char *path) {
    char text[TEXT_SIZE];
    long long quota = 0, period = 0;
    if (!read_group_file("/sys/fs/cgroup", path, "cpu.max", text)) return 0;
    if (sscanf(text, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0) return 0;
    return (double)quota / (double)period;
}

static double quota_v1(const char *path) {
    char text[TEXT_SIZE];
    if (!read_group_file("/sys/fs/cgroup/cpu", path, "cpu.cfs_quota_us", text)) return 0;
    double quota = (double)strtoll(text, NULL, 10);
    if (!read_group_file("/sys/fs/cgroup/cpu", path, "cpu.cfs_period_us", text)) return 0;
    double period = (double)strtoll(text, NULL, 10);
    return quota > 0 && period > 0 ? quota / period : 0;
}

static double smallest_quota(const char *controller, double (*quota)(const char *path)) {
    char path[PATH_SIZE];
    double smallest = 0;
    if (!group_path(controller, path)) return 0;
    do {
        double q = quota(path);
        if (q > 0 && (smallest <= 0 || q < smallest)) smallest = q;
    } while (path_up(path));
    return smallest;
}

double pith_os_cpu_quota(void) {
    double v2 = smallest_quota("", quota_v2), v1 = smallest_quota("cpu", quota_v1);
    if (v1 > 0 && (v2 <= 0 || v1 < v2)) return v1;
    return v2;
}

typedef struct memory_names {
    const char *controller, *root, *limit, *usage, *stat_inactive, *stat_active;
} memory_names;

static const memory_names memory_v2 = {
    "", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file", "active_file"};
static const memory_names memory_v1 = {"memory",
                                       "/sys/fs/cgroup/memory",
                                       "memory.limit_in_bytes",
                                       "memory.usage_in_bytes",
                                       "total_inactive_file",
                                       "total_active_file"};

/* 0: no limit. */
static uint64_t group_limit(const memory_names *names, const char *path) {
    char text[TEXT_SIZE];
    if (!read_group_file(names->root, path, names->limit, text)) return 0;
    uint64_t limit = text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : 0;
    return limit < MEMORY_UNLIMITED ? limit : 0;
}

/* What the group holds and cannot drop: usage less its file cache. */
static uint64_t group_held(const memory_names *names, const char *path) {
    char text[TEXT_SIZE];
    if (!read_group_file(names->root, path, names->usage, text)) return 0;
    uint64_t held = strtoull(text, NULL, 10), inactive = 0, active = 0;
    if (!read_group_file(names->root, path, "memory.stat", text)) return held;
    (void)pith_os_text_find(text, names->stat_inactive, &inactive);
    (void)pith_os_text_find(text, names->stat_active, &active);
    uint64_t cache = inactive + active;
    return cache < held ? held - cache : 0;
}

static void smallest_memory(const memory_names *names, uint64_t *limit, uint64_t *left) {
    char path[PATH_SIZE];
    if (!group_path(names->controller, path)) return;
    do {
        uint64_t here = group_limit(names, path);
        if (!here) continue;
        uint64_t held = group_held(names, path), rest = held < here ? here - held : 0;
        if (!*limit || rest < *left) *left = rest;
        if (!*limit || here < *limit) *limit = here;
    } while (path_up(path));
}

uint64_t pith_os_memory_limit(void) {
    uint64_t limit = 0, left = 0;
    smallest_memory(&memory_v2, &limit, &left);
    smallest_memory(&memory_v1, &limit, &left);
    return limit;
}

uint64_t pith_os_memory_limit_left(void) {
    uint64_t limit = 0, left = 0;
    smallest_memory(&memory_v2, &limit, &left);
    smallest_memory(&memory_v1, &limit, &left);
    return left;
}

#else

double pith_os_cpu_quota(void) {
    return 0;
}
uint64_t pith_os_memory_limit(void) {
    return 0;
}
uint64_t pith_os_memory_limit_left(void) {
    return 0;
}

#endif
