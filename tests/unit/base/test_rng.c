/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises: the generator is xoshiro256** seeded by splitmix64 (published values), uniform
 * numbers lie in [0, 1), and normal ones have the moments of the normal distribution and the
 * same bits on every platform.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

static void test_seeding_is_splitmix(void **state) {
    (void)state;
    /* splitmix64 from 1234567: the widely published first outputs of the reference program */
    static const uint64_t expected[4] = {6457827717110365317u, 3203168211198807973u,
                                         9817491932198370423u, 4593380528125082431u};
    pith_rng rng;
    pith_rng_init(&rng, 1234567);
    for (int i = 0; i < 4; i++) assert_true(rng.state[i] == expected[i]);
}

static void test_stream_is_xoshiro(void **state) {
    (void)state;
    /* xoshiro256** from state {1, 2, 3, 4}: the first ten outputs of the reference program */
    static const uint64_t expected[10] = {11520u,
                                          0u,
                                          1509978240u,
                                          1215971899390074240u,
                                          1216172134540287360u,
                                          607988272756665600u,
                                          16172922978634559625u,
                                          8476171486693032832u,
                                          10595114339597558777u,
                                          2904607092377533576u};
    pith_rng rng = {{1, 2, 3, 4}};
    for (int i = 0; i < 10; i++) {
        uint64_t next = pith_rng_next(&rng);
        if (next != expected[i]) fail_msg("output %d is %llu", i, (unsigned long long)next);
    }
}

static void test_uniform_range_and_moments(void **state) {
    (void)state;
    enum { N = 1000000 };
    pith_rng rng;
    pith_rng_init(&rng, 42);
    double sum = 0, squares = 0, low = 1, high = 0;
    for (int i = 0; i < N; i++) {
        double x = pith_rng_uniform(&rng);
        assert_true(x >= 0 && x < 1);
        sum += x;
        squares += x * x;
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    assert_true(fabs(sum / N - 0.5) < 0.002); /* 7 deviations */
    assert_true(fabs(squares / N - 1.0 / 3) < 0.002);
    assert_true(low < 1e-4 && high > 1 - 1e-4);
    pith_rng last = {{0, 0x8000000000000000u, 0, 0}};
    assert_true(pith_rng_uniform(&last) < 1);
}

static void test_normal_moments(void **state) {
    (void)state;
    enum { N = 1000000 };
    pith_rng rng;
    pith_rng_init(&rng, 7);
    double sum[5] = {0};
    for (int i = 0; i < N; i++) {
        double x = pith_rng_normal(&rng), power = 1;
        assert_true(isfinite(x));
        for (int p = 0; p < 5; p++, power *= x) sum[p] += power;
    }
    assert_true(fabs(sum[1] / N) < 0.006);
    assert_true(fabs(sum[2] / N - 1) < 0.01);
    assert_true(fabs(sum[3] / N) < 0.03);
    assert_true(fabs(sum[4] / N - 3) < 0.07);
}

/* Our logarithm against the C library's: the polar method gives x = u sqrt(-2 ln s / s). */
static void test_normal_agrees_with_the_library(void **state) {
    (void)state;
    pith_rng rng, same;
    pith_rng_init(&rng, 99);
    same = rng;
    for (int i = 0; i < 100000; i++) {
        double x, y, s;
        do {
            x = 2 * pith_rng_uniform(&same) - 1;
            y = 2 * pith_rng_uniform(&same) - 1;
            s = x * x + y * y;
        } while (s >= 1 || s <= 0);
        double expected = x * sqrt(-2 * log(s) / s), ours = pith_rng_normal(&rng);
        if (fabs(ours - expected) > 4e-15 * fabs(expected) + 1e-300) {
            fail_msg("draw %d: %.17g, expected %.17g (s = %.17g)", i, ours, expected, s);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seeding_is_splitmix),
        cmocka_unit_test(test_stream_is_xoshiro),
        cmocka_unit_test(test_uniform_range_and_moments),
        cmocka_unit_test(test_normal_moments),
        cmocka_unit_test(test_normal_agrees_with_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
