/* SPDX-License-Identifier: Apache-2.0
 *
 * Promise: of the processors that a process may use, one a core counts, and small cores do not;
 * what the system does not tell makes no difference. The files are made in a scratch folder that
 * stands for the root.
 */
#if defined(__linux__)
#define _GNU_SOURCE
#else
#define _XOPEN_SOURCE 700
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/os.h"
#include "base/pool.h"

#if defined(_WIN32)

int main(void) {
    return pith_os_cores("") >= 1 ? 0 : 1;
}

#else

#include "support/fake_root.h"

#if defined(__linux__)
#include <sched.h>
#endif

static void allow(const char *list) {
    char text[256];
    snprintf(text, sizeof text, "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\nMems:\t0\n",
             list);
    put("/proc/self/status", text);
}

static void put_cpu(int cpu, const char *file, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
    put(path, text);
}

static void test_nothing_known(void **state) {
    (void)state;
    assert_int_equal(pith_os_cores(root), 0); /* no /proc */
    put("/proc/self/status", "Name:\tx\n");
    assert_int_equal(pith_os_cores(root), 0);
    allow("0-3,8");
    assert_int_equal(pith_os_cores(root), 5); /* processors without any file are cores */
    allow("4095-9999999999");
    assert_int_equal(pith_os_cores(root), 1);
}

static void test_threads_of_a_core_count_once(void **state) {
    (void)state;
    static const char *const siblings[] = {"0,4\n", "1,5\n", "2,6\n", "3,7\n"};
    for (int cpu = 0; cpu < 8; cpu++)
        put_cpu(cpu, "topology/thread_siblings_list", siblings[cpu % 4]);
    allow("0-7");
    assert_int_equal(pith_os_cores(root), 4);
    allow("4-6"); /* second threads only */
    assert_int_equal(pith_os_cores(root), 3);
    allow("2,6");
    assert_int_equal(pith_os_cores(root), 1);
    for (int cpu = 0; cpu < 8; cpu++)
        put_cpu(cpu, "topology/thread_siblings_list", cpu < 4 ? "0-3\n" : "4-7\n");
    allow("0-7");
    assert_int_equal(pith_os_cores(root), 2);
}

/* Two large, six small, as phones have them. */
static void test_small_cores_of_arm(void **state) {
    (void)state;
    for (int cpu = 0; cpu < 8; cpu++) put_cpu(cpu, "cpu_capacity", cpu < 6 ? "325\n" : "1024\n");
    allow("0-7");
    assert_int_equal(pith_os_cores(root), 2);
    allow("0-5");
    assert_int_equal(pith_os_cores(root), 6); /* nothing but small ones: all are equal */
    put_cpu(4, "cpu_capacity", "512\n");      /* a half is not small, less is */
    put_cpu(5, "cpu_capacity", "499\n");
    allow("0-7");
    assert_int_equal(pith_os_cores(root), 3);
}

static void test_small_cores_by_clock(void **state) {
    (void)state;
    for (int cpu = 0; cpu < 8; cpu++)
        put_cpu(cpu, "cpufreq/cpuinfo_max_freq", cpu < 4 ? "4800000\n" : "1800000\n");
    put_cpu(1, "cpufreq/cpuinfo_max_freq", "5100000\n"); /* a favoured one makes no class */
    allow("0-7");
    assert_int_equal(pith_os_cores(root), 4);
}

static void test_efficiency_cores_of_x86(void **state) {
    (void)state;
    for (int cpu = 0; cpu < 4; cpu++)
        put_cpu(cpu, "topology/thread_siblings_list", cpu < 2 ? "0-1\n" : "2-3\n");
    put("/sys/devices/cpu_atom/cpus", "4-11\n");
    allow("0-11");
    assert_int_equal(pith_os_cores(root), 2);
    allow("6-11"); /* sent to the efficiency cores alone: they are what there is */
    assert_int_equal(pith_os_cores(root), 6);
}

static void put_cache(const char *level, const char *size, const char *shared) {
    put_cpu(0, "cache/index2/level", level);
    put_cpu(0, "cache/index2/size", size);
    put_cpu(0, "cache/index2/shared_cpu_list", shared);
}

static void test_second_cache(void **state) {
    (void)state;
    assert_int_equal(pith_os_second_cache(root), 0);
    put_cache("2\n", "1024K\n", "0\n");
    assert_int_equal(pith_os_second_cache(root), 1024 * 1024);
    put_cache("2\n", "4096K\n", "0-3\n"); /* four cores share it */
    assert_int_equal(pith_os_second_cache(root), 1024 * 1024);
    put_cpu(0, "topology/thread_siblings_list", "0,1\n"); /* two cores of two threads */
    assert_int_equal(pith_os_second_cache(root), 2 * 1024 * 1024);
    put_cache("3\n", "4096K\n", "0-3\n");
    assert_int_equal(pith_os_second_cache(root), 0);
    put_cache("2\n", "99999999999999999999K\n", "x\n");
    assert_int_equal(pith_os_second_cache(root), 0);
}

static void test_garbage(void **state) {
    (void)state;
    static const char *const garbage[] = {"\n", "x", "-1", "0-", "3-1", ",", "0,,1", "0-x"};
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        allow("0-1");
        put_cpu(0, "topology/thread_siblings_list", garbage[i]);
        put_cpu(0, "cpu_capacity", garbage[i]);
        put("/sys/devices/cpu_atom/cpus", garbage[i]);
        int n = pith_os_cores(root);
        assert_true(n == 1 || n == 2);
        allow(garbage[i]);
        n = pith_os_cores(root);
        assert_true(n >= 0 && n <= 4096);
    }
}

/* Which processors a thread may use is its own matter: its pool's threads get the same. */
#if defined(__linux__)
static void count_on_one_processor(void *user, int thread) {
    int *n_cores = user;
    cpu_set_t set;
    (void)thread;
    CPU_ZERO(&set);
    CPU_SET((size_t)sched_getcpu(), &set);
    if (sched_setaffinity(0, sizeof set, &set) == 0) *n_cores = pith_os_cores("");
}

static void test_a_thread_with_processors_of_its_own(void **state) {
    (void)state;
    if (pith_os_cores("") < 2) skip(); /* one core, or no /proc: nothing to tell apart */
    int n_cores = -1;
    pith_os_thread thread;
    pith_os_thread_start start = {count_on_one_processor, &n_cores, 0};
    assert_true(pith_os_thread_open(&thread, &start));
    pith_os_thread_join(&thread);
    if (n_cores == -1) skip(); /* affinity is not to be had here */
    assert_int_equal(n_cores, 1);
}
#else
static void test_a_thread_with_processors_of_its_own(void **state) {
    (void)state;
    skip();
}
#endif

static void test_the_default_fits_the_machine(void **state) {
    (void)state;
    assert_true(pith_thread_count() >= 1);
    assert_true(pith_thread_count() <= pith_cpu_count());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH(test_nothing_known),
        EACH(test_threads_of_a_core_count_once),
        EACH(test_small_cores_of_arm),
        EACH(test_small_cores_by_clock),
        EACH(test_efficiency_cores_of_x86),
        EACH(test_second_cache),
        EACH(test_garbage),
        EACH(test_a_thread_with_processors_of_its_own),
        EACH(test_the_default_fits_the_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
