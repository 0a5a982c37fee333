/* SPDX-License-Identifier: Apache-2.0
 * Promise: doubles are sorted smallest first, and the median is the middle one, or the mean of the
 * middle two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/median.h"

static void test_values_are_sorted(void **state) {
    (void)state;
    double values[] = {3, -1, 2.5, 1e300, 2.5, -1e-300};
    static const double sorted[] = {-1, -1e-300, 2.5, 2.5, 3, 1e300};
    pith_sort_doubles(values, 6);
    for (size_t i = 0; i < 6; i++) assert_true(values[i] == sorted[i]);
    pith_sort_doubles(NULL, 0);
}

static void test_the_median_is_the_middle(void **state) {
    (void)state;
    double one[] = {7}, two[] = {9, 1}, three[] = {9, 1, 4}, four[] = {9, 1, 4, 100};
    assert_true(pith_median(one, 1) == 7);
    assert_true(pith_median(two, 2) == 5);
    assert_true(pith_median(three, 3) == 4);
    assert_true(pith_median(four, 4) == 6.5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_sorted),
        cmocka_unit_test(test_the_median_is_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
