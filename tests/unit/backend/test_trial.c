/* SPDX-License-Identifier: Apache-2.0
 * Promise: a runner finds out which of two ways is faster from the times of its steps alone: in
 * pairs, so that a machine that changes its speed in between does not decide; a few slow steps
 * don't either; and after CPU_TRIAL_PERIOD steps it asks again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/cpu/trial.h"

enum { TRIAL = 2 * CPU_TRIAL_PAIRS };

/* n steps that take `with` or `without`, times a speed of the machine. */
static uint32_t steps(cpu_trial *trial, uint32_t n, uint64_t with, uint64_t without,
                      const uint64_t *machine) {
    uint32_t n_with = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool prefetches = pith_cpu_trial_prefetches(trial);
        n_with += prefetches;
        pith_cpu_trial_add(trial, (prefetches ? with : without) * (machine ? machine[i] : 1));
    }
    return n_with;
}

static void test_the_faster_way_is_chosen(void **state) {
    (void)state;
    cpu_trial slow = {0}, fast = {0};
    assert_int_equal(steps(&slow, TRIAL, 101, 100, NULL), CPU_TRIAL_PAIRS); /* each as often */
    assert_int_equal(steps(&slow, 100, 101, 100, NULL), 0);
    assert_int_equal(steps(&fast, TRIAL, 100, 101, NULL), CPU_TRIAL_PAIRS);
    assert_int_equal(steps(&fast, 100, 100, 101, NULL), 100);
}

static void test_a_machine_that_changes_its_speed_does_not_decide(void **state) {
    (void)state;
    static const uint64_t flips[TRIAL] = {4, 4, 4, 4, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3};
    /* Four pairs of nine in which the better way was held up. */
    static const uint64_t held_up[TRIAL] = {9, 1, 1, 9, 9, 1, 1, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    cpu_trial changing = {0}, busy = {0};
    (void)steps(&changing, TRIAL, 100, 104, flips);
    assert_true(pith_cpu_trial_prefetches(&changing));
    (void)steps(&busy, TRIAL, 100, 104, held_up);
    assert_true(pith_cpu_trial_prefetches(&busy));
}

static void test_it_asks_again(void **state) {
    (void)state;
    cpu_trial trial = {0};
    (void)steps(&trial, TRIAL, 100, 110, NULL);
    assert_int_equal(steps(&trial, CPU_TRIAL_PERIOD - TRIAL, 100, 110, NULL),
                     CPU_TRIAL_PERIOD - TRIAL);
    assert_int_equal(steps(&trial, TRIAL, 110, 100, NULL), CPU_TRIAL_PAIRS);
    assert_int_equal(steps(&trial, CPU_TRIAL_PERIOD - TRIAL, 110, 100, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_faster_way_is_chosen),
        cmocka_unit_test(test_a_machine_that_changes_its_speed_does_not_decide),
        cmocka_unit_test(test_it_asks_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
