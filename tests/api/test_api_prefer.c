/* SPDX-License-Identifier: Apache-2.0
 * Promises of pith.h, "Preferences": each goal says what it chose, the default chooses nothing, threads come from a probe alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <pith.h>
#include <string.h>

static pith_preference choose(pith_prefer prefer, const pith_thread_probe *probe) {
    pith_preference chosen;
    pith_error error = {PITH_OK, ""};
    assert_int_equal(pith_prefer_choose(prefer, probe, &chosen, &error), PITH_OK);
    return chosen;
}

static void test_no_goal_chooses_nothing(void **state) {
    pith_preference none = choose(PITH_PREFER_NONE, NULL);
    (void)state;
    assert_int_equal(none.load, PITH_LOAD_AUTO);
    assert_int_equal(none.kv_type, PITH_KV_AUTO);
    assert_int_equal(none.decode_threads, 0);
    assert_int_equal(none.draft, PITH_DRAFT_AUTO);
    assert_string_equal(none.why, "");
}

static void test_each_goal_chooses_and_says_why(void **state) {
    (void)state;
    for (int goal = PITH_PREFER_TTFT; goal <= PITH_PREFER_BATTERY; goal++) {
        pith_preference chosen = choose((pith_prefer)goal, NULL);
        assert_int_not_equal(chosen.load, PITH_LOAD_PACK); /* it may not fit */
        assert_int_equal(chosen.decode_threads, 0);        /* nothing is known of the machine */
        assert_true(strlen(chosen.why) > 20);
        assert_true(strlen(chosen.why) < sizeof chosen.why - 1);
    }
    assert_int_equal(choose(PITH_PREFER_TTFT, NULL).load, PITH_LOAD_MMAP);
    assert_int_equal(choose(PITH_PREFER_MEMORY, NULL).load, PITH_LOAD_MMAP);
    assert_int_equal(choose(PITH_PREFER_MEMORY, NULL).kv_type, PITH_KV_INT8);
}

static int32_t threads(pith_prefer prefer, double one, double two, double four) {
    const pith_thread_probe probe = {.n = 3, .rates = {{1, one, 1}, {2, two, 2}, {4, four, 4}}};
    return choose(prefer, &probe).decode_threads;
}

static void test_threads_that_wait_for_memory_are_left_out(void **state) {
    pith_thread_probe empty = {0}, wrong = {.n = SIZE_MAX, .rates = {{1, 5, 5}}};
    (void)state;
    assert_int_equal(threads(PITH_PREFER_BATTERY, 30e9, 60e9, 61e9), 2);
    assert_int_equal(threads(PITH_PREFER_BATTERY, 30e9, 31e9, 40e9), 1); /* three quarters */
    assert_int_equal(threads(PITH_PREFER_BATTERY, 29e9, 29e9, 40e9), 4);
    assert_int_equal(threads(PITH_PREFER_TPS, 30e9, 31e9, 32e9), 0);
    assert_int_equal(choose(PITH_PREFER_BATTERY, &empty).decode_threads, 0);
    assert_int_equal(choose(PITH_PREFER_BATTERY, &wrong).decode_threads, 1);
}

static void test_misuse(void **state) {
    pith_preference chosen;
    pith_error error = {PITH_OK, ""};
    (void)state;
    memset(&chosen, 7, sizeof chosen);
    assert_int_equal(pith_prefer_choose((pith_prefer)5, NULL, &chosen, &error),
                     PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "prefer 5"));
    assert_int_equal(chosen.load, PITH_LOAD_AUTO);
    assert_int_equal(pith_prefer_choose((pith_prefer)-1, NULL, &chosen, NULL), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_prefer_choose(PITH_PREFER_TPS, NULL, NULL, &error), PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "out is NULL"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_goal_chooses_nothing),
        cmocka_unit_test(test_each_goal_chooses_and_says_why),
        cmocka_unit_test(test_threads_that_wait_for_memory_are_left_out),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
