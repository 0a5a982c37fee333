/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits that a container sets: cgroup v2 and v1. Where there are none (other systems have no such
 * files) there is no limit.
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

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 1024, TEXT_SIZE = 8192 };

/* "no limit" in v1 is a number near 2^63. */
#define MEMORY_UNLIMITED ((uint64_t)1 << 60)

/* Where one version of cgroups keeps what we ask for. */
typedef struct cgroup_names {
    const char *controller; /* in /proc/self/cgroup; v2 has an empty list there */
    const char *folder;     /* its root */
    const char *limit, *usage, *stat_inactive, *stat_active;
} cgroup_names;

static const cgroup_names cpu_v2 = {"", "/sys/fs/cgroup", "cpu.max", NULL, NULL, NULL};
static const cgroup_names cpu_v1 = {"cpu", "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", NULL, NULL,
                                    NULL};
static const cgroup_names memory_v2 = {
    "", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file", "active_file"};
static const cgroup_names memory_v1 = {"memory",
                                       "/sys/fs/cgroup/memory",
                                       "memory.limit_in_bytes",
                                       "memory.usage_in_bytes",
                                       "total_inactive_file",
                                       "total_active_file"};

/* A group: root, names->folder, path. */
typedef struct cgroup {
    const char *root;
    const cgroup_names *names;
    char path[PATH_SIZE]; /* "/a/b", "" at the hierarchy's root */
} cgroup;

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

/* Finds this process's group. Lines are `id:controllers:path`. */
static bool group_find(cgroup *group) {
    char name[PATH_SIZE], text[TEXT_SIZE];
    int size = snprintf(name, sizeof name, "%s/proc/self/cgroup", group->root);
    if (size < 0 || (size_t)size >= sizeof name) return false;
    if (!pith_os_text_read(name, text, sizeof text)) return false;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path || !list_names(list + 1, (size_t)(path - list - 1), group->names->controller)) {
            continue;
        }
        size_t length = strlen(path + 1);
        if (length >= PATH_SIZE) return false;
        memcpy(group->path, path + 1, length + 1);
        return true;
    }
    return false;
}

/* To the group above: "/a/b" -> "/a" -> ""; false when there is none. */
static bool group_up(cgroup *group) {
    char *slash = strrchr(group->path, '/');
    if (!slash) return false;
    *slash = 0;
    return true;
}

static bool group_read(const cgroup *group, const char *file, char *text) {
    char name[2 * PATH_SIZE];
    int size = snprintf(name, sizeof name, "%s%s%s/%s", group->root, group->names->folder,
                        group->path, file);
    return size > 0 && (size_t)size < sizeof name && pith_os_text_read(name, text, TEXT_SIZE);
}

/* Cores' worth of time; 0: no limit ("max", -1, or nothing that can be understood). v2 writes quota
 * and period on one line, v1 in two files. */
static double group_quota(const cgroup *group) {
    char text[TEXT_SIZE], *period_text;
    if (!group_read(group, group->names->limit, text)) return 0;
    double quota = (double)strtoll(text, &period_text, 10);
    if (group->names == &cpu_v1) {
        if (!group_read(group, "cpu.cfs_period_us", text)) return 0;
        period_text = text;
    }
    double period = (double)strtoll(period_text, NULL, 10);
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* Bytes; 0: no limit. */
static uint64_t group_limit(const cgroup *group) {
    char text[TEXT_SIZE];
    if (!group_read(group, group->names->limit, text)) return 0;
    uint64_t limit = text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : 0;
    return limit < MEMORY_UNLIMITED ? limit : 0;
}

/* What the group holds and cannot drop: usage less its file cache. */
static uint64_t group_held(const cgroup *group) {
    char text[TEXT_SIZE];
    if (!group_read(group, group->names->usage, text)) return 0;
    uint64_t held = strtoull(text, NULL, 10), inactive = 0, active = 0;
    if (!group_read(group, "memory.stat", text)) return held;
    (void)pith_os_text_find(text, group->names->stat_inactive, &inactive);
    (void)pith_os_text_find(text, group->names->stat_active, &active);
    if (inactive >= held || active >= held - inactive) return 0;
    return held - inactive - active;
}

static void limit_cpu(const char *root, const cgroup_names *names, pith_os_limits *limits) {
    cgroup group = {.root = root, .names = names};
    if (!group_find(&group)) return;
    do {
        double quota = group_quota(&group);
        bool smaller = limits->cpu_quota <= 0 || quota < limits->cpu_quota;
        if (quota > 0 && smaller) limits->cpu_quota = quota;
    } while (group_up(&group));
}

static void limit_memory(const char *root, const cgroup_names *names, pith_os_limits *limits) {
    cgroup group = {.root = root, .names = names};
    if (!group_find(&group)) return;
    do {
        uint64_t limit = group_limit(&group);
        if (!limit) continue;
        uint64_t held = group_held(&group), left = held < limit ? limit - held : 0;
        if (!limits->memory || left < limits->memory_left) limits->memory_left = left;
        if (!limits->memory || limit < limits->memory) limits->memory = limit;
    } while (group_up(&group));
}

pith_os_limits pith_os_limits_read(const char *root) {
    pith_os_limits limits = {0};
    limit_cpu(root, &cpu_v2, &limits);
    limit_cpu(root, &cpu_v1, &limits);
    limit_memory(root, &memory_v2, &limits);
    limit_memory(root, &memory_v1, &limits);
    return limits;
}
