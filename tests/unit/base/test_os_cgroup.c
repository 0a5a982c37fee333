/* SPDX-License-Identifier: Apache-2.0
 *
 * Promise: the smallest limit of a process's group and of all groups above it counts, for both
 * versions of cgroups; what is absent or cannot be understood is no limit. The files are made in a
 * scratch folder that stands for the root.
 */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/os.h"

#if defined(_WIN32)

int main(void) {
    return 0;
}

#else

#include "support/fake_root.h"

static void expect(double quota, uint64_t memory, uint64_t left) {
    pith_os_limits limits = pith_os_limits_read(root);
    if (limits.cpu_quota != quota || limits.memory != memory || limits.memory_left != left) {
        fail_msg("%g cores, %llu bytes, %llu left; expected %g, %llu, %llu", limits.cpu_quota,
                 (unsigned long long)limits.memory, (unsigned long long)limits.memory_left, quota,
                 (unsigned long long)memory, (unsigned long long)left);
    }
}

static void test_nothing_there(void **state) {
    (void)state;
    expect(0, 0, 0);
    put("/proc/self/cgroup", "0::/\n");
    expect(0, 0, 0);
}

static void test_version_2(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "250000 100000\n");
    put("/sys/fs/cgroup/a/b/memory.max", "1000000\n");
    put("/sys/fs/cgroup/a/b/memory.current", "700000\n");
    put("/sys/fs/cgroup/a/b/memory.stat", "anon 1\nactive_file 100000\ninactive_file 50000\n");
    expect(2.5, 1000000, 450000);
    put("/sys/fs/cgroup/a/cpu.max", "50000 100000\n"); /* the group above is tighter */
    expect(0.5, 1000000, 450000);
    put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    expect(2.5, 1000000, 450000);
    put("/sys/fs/cgroup/a/memory.max", "2000000\n"); /* larger, but nearly used up by others */
    put("/sys/fs/cgroup/a/memory.current", "1990000\n");
    expect(2.5, 1000000, 10000);
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    expect(2.5, 2000000, 10000);
}

static void test_path_of_the_host(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/kubepods/pod1/container2\n");
    put("/sys/fs/cgroup/cpu.max", "150000 100000\n"); /* only the container's own group is seen */
    put("/sys/fs/cgroup/memory.max", "4096\n");
    put("/sys/fs/cgroup/memory.current", "8192\n"); /* above its limit for a moment */
    expect(1.5, 4096, 0);
}

static void test_version_1(void **state) {
    (void)state;
    put("/proc/self/cgroup", "9:cpuset:/x\n4:cpu,cpuacct:/job\n3:memory:/job\n0::/\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n");
    put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "3000\n");
    put("/sys/fs/cgroup/memory/job/memory.stat",
        "inactive_file 9\ntotal_inactive_file 500\ntotal_active_file 400\n");
    expect(3, 5000, 2900);
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
    expect(0, 0, 0);
}

static void test_controller_names_are_whole_words(void **state) {
    (void)state;
    put("/proc/self/cgroup", "1:cpuacct,cpuset:/job\n2:memory2,xmemory:/job\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n");
    expect(0, 0, 0);
}

static void test_garbage_is_no_limit(void **state) {
    (void)state;
    static const char *const garbage[] = {"\n",     "x",        "-5 100000",
                                          "100000", "100000 0", "100000 -3",
                                          "1e5 x",  " ",        "999999999999999999999999 x"};
    char endless[6000];
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        put("/proc/self/cgroup", "0::/a\n");
        put("/sys/fs/cgroup/a/cpu.max", garbage[i]);
        put("/sys/fs/cgroup/a/memory.max", i == 3 || i > 3 ? "none" : garbage[i]);
        expect(0, 0, 0);
    }
    static const char *const lists[] = {"", "\n", "0", "0:", "0:\n:", ":::::", "0:/a", "0:x:/a"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        put("/sys/fs/cgroup/a/cpu.max", "100000 100000");
        put("/proc/self/cgroup", lists[i]);
        expect(0, 0, 0);
    }
    memset(endless, '/', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    memcpy(endless, "0::", 3);
    put("/proc/self/cgroup", endless);
    expect(0, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH(test_nothing_there),
        EACH(test_version_2),
        EACH(test_path_of_the_host),
        EACH(test_version_1),
        EACH(test_controller_names_are_whole_words),
        EACH(test_garbage_is_no_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
