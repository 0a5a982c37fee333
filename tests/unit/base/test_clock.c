/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises: time does not run backwards; memory figures are in bytes and fit each other; lines of
 * the system's text files are found by their whole key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/os_text.h"

static void test_time_is_monotonic(void **state) {
    (void)state;
    uint64_t last = pith_clock_ns(), first = last;
    assert_true(last > 0);
    for (int i = 0; i < 100000; i++) {
        uint64_t now = pith_clock_ns();
        assert_true(now >= last);
        last = now;
    }
    assert_true(last > first);
    assert_true(last - first < 60000000000u); /* 100000 readings take no minute */
}

static void test_processor_time_is_what_was_used(void **state) {
    (void)state;
    uint64_t before = pith_clock_cpu_ns(), begun = pith_clock_ns(), now = begun;
    volatile uint32_t count = 0;
    while (now - begun < 20000000u) {
        for (int i = 0; i < 10000; i++) count = count + 1;
        now = pith_clock_ns();
    }
    uint64_t used = pith_clock_cpu_ns() - before;
    if (!before) skip();
    assert_true(used > 0);
    assert_true(used <
                2 * (pith_clock_ns() - begun) + 50000000u); /* one thread; ticks are coarse */
}

static void test_huge_pages_are_part_of_memory(void **state) {
    (void)state;
    enum { BYTES = 16 << 20 };
    pith_region region;
    assert_true(pith_region_open(&region, BYTES, true));
    memset(region.data, 1, BYTES);
    uint64_t huge = pith_memory_huge(), resident = pith_memory_resident();
    pith_region_close(&region);
    assert_true(huge % 1024 == 0);
    if (resident) assert_true(huge <= resident + ((uint64_t)1 << 20));
}

static void test_memory_figures_fit(void **state) {
    (void)state;
    uint64_t total = pith_memory_total(), available = pith_memory_available();
    uint64_t peak = pith_memory_peak(), resident = pith_memory_resident();
    assert_true(total > (uint64_t)16 << 20);
    assert_true(available <= total);
    if (peak) assert_true(peak > 100000 && peak < total);
    if (resident && peak) assert_true(resident <= peak + ((uint64_t)1 << 20));
}

static void test_peak_follows_use(void **state) {
    (void)state;
    enum { BYTES = 64 << 20 };
    uint64_t before = pith_memory_peak();
    if (!before) skip();
    pith_region region;
    assert_true(pith_region_open(&region, BYTES, false));
    memset(region.data, 1, BYTES);
    uint64_t held = pith_memory_resident(), peak = pith_memory_peak();
    pith_region_close(&region);
    assert_true(peak >= BYTES);
    if (held) assert_true(held >= BYTES / 2);
    assert_true(pith_memory_peak() >= before);
}

static void test_lines_are_found_by_key(void **state) {
    (void)state;
    const char *text = "MemTotal:       24684084 kB\nMemAvailable:\t 7 kB\nEmpty:\nA: 1\nAB: 2\n";
    uint64_t value = 99;
    assert_true(pith_os_text_find(text, "MemTotal:", &value) && value == 24684084);
    assert_true(pith_os_text_find(text, "MemAvailable:", &value) && value == 7);
    assert_true(pith_os_text_find(text, "AB:", &value) && value == 2);
    value = 99;
    assert_false(pith_os_text_find(text, "Total:", &value));
    assert_false(pith_os_text_find(text, "Empty:", &value));
    assert_false(pith_os_text_find(text, "B:", &value));
    assert_false(pith_os_text_find("", "B:", &value));
    assert_false(pith_os_text_find("A", "A", &value));
    assert_int_equal(value, 99);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_is_monotonic),
        cmocka_unit_test(test_processor_time_is_what_was_used),
        cmocka_unit_test(test_huge_pages_are_part_of_memory),
        cmocka_unit_test(test_memory_figures_fit),
        cmocka_unit_test(test_peak_follows_use),
        cmocka_unit_test(test_lines_are_found_by_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
