/* SPDX-License-Identifier: Apache-2.0
 * Promise: the numbers of threads that are tried cover a machine, and from invented measurements
 * the smallest number within 3 % of the best is chosen, for decoding and for prefill apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/rehearse.h"
#include "cpu/cpu.h"

#include <math.h>

static void candidates(void **state) {
    static const struct {
        int32_t n_threads, n_processors, expected[PITH_THREAD_COUNTS];
    } rows[] = {
        {1, 1, {1}},
        {0, 0, {1}},
        {2, 2, {1, 2}},
        {1, 2, {1, 2}},
        {3, 3, {1, 2, 3}},
        {4, 8, {1, 2, 4, 8}},
        {6, 12, {1, 2, 4, 6, 8, 12}},
        {8, 24, {1, 2, 4, 8, 16, 24}},
        {12, 13, {1, 2, 4, 8, 12, 13}},
        {5, 4, {1, 2, 4, 5}},
        {300, 512, {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 512}},
        {600, 1024, {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 1024}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int32_t counts[PITH_THREAD_COUNTS];
        size_t n = pith_thread_candidates(rows[i].n_threads, rows[i].n_processors, counts);
        for (size_t k = 0; k < n; k++)
            if (counts[k] != rows[i].expected[k])
                fail_msg("row %zu: number %zu is %d, expected %d", i, k, counts[k],
                         rows[i].expected[k]);
        assert_true(n >= 1 && n <= PITH_THREAD_COUNTS);
        assert_true(n == PITH_THREAD_COUNTS || rows[i].expected[n] == 0);
    }
}

/* {threads, rate of reading, of multiplying} */
static void check(const double (*shares)[3], size_t n, int32_t decode, int32_t prefill) {
    pith_thread_rate rates[PITH_THREAD_COUNTS] = {{.n_threads = 0}};
    for (size_t i = 0; i < n; i++)
        rates[i] = (pith_thread_rate){
            .n_threads = (int32_t)shares[i][0], .read = shares[i][1], .macs = shares[i][2]};
    pith_thread_choice choice = pith_thread_choose(rates, n);
    if (choice.decode != decode || choice.prefill != prefill)
        fail_msg("chosen %d and %d, expected %d and %d", choice.decode, choice.prefill, decode,
                 prefill);
}

static void choices(void **state) {
    static const double two_cores[][3] = {{1, 0.5, 0.5}, {2, 1, 1}};
    static const double memory_bound[][3] = {
        {1, 0.3, 0.125}, {2, 0.6, 0.25}, {4, 0.98, 0.5}, {8, 1, 1}};
    static const double more_is_worse[][3] = {
        {1, 0.5, 0.3}, {2, 1, 0.6}, {4, 0.9, 1}, {8, 0.7, 0.95}};
    static const double at_the_limit[][3] = {{1, 0.9699, 0.9699}, {2, 0.9701, 0.9699}, {4, 1, 1}};
    static const double siblings[][3] = {{8, 0.99, 0.98}, {16, 1, 1}};
    static const double narrow[][3] = {{1, 0.5, 1}, {2, 1, 0.9}}; /* never fewer than for decode */
    static const double scaled[][3] = {{1, 33e9, 170e9}, {2, 61e9, 335e9}};
    static const double none[][3] = {{1, 0, 0}, {2, 0, 0}};
    static const double one[][3] = {{1, 1, 1}};
    (void)state;
    check(two_cores, 2, 2, 2);
    check(memory_bound, 4, 4, 8);
    check(more_is_worse, 4, 2, 4);
    check(at_the_limit, 3, 2, 4);
    check(siblings, 2, 8, 8);
    check(narrow, 2, 2, 2);
    check(scaled, 2, 2, 2);
    check(none, 2, 0, 0);
    check(one, 1, 1, 1);
    check(one, 0, 0, 0);
}

static void rates_of_times(void **state) {
    double five[] = {5, 1, 4, 2, 10}, two[] = {4, 2}, one[] = {8};
    (void)state;
    pith_rate r = pith_rate_of(20, five, 5); /* but the fastest and the slowest one */
    assert_true(fabs(r.median - 5e9) < 1 && fabs(r.low - 4e9) < 1 && fabs(r.high - 10e9) < 1);
    r = pith_rate_of(12, two, 2);
    assert_true(fabs(r.median - 4e9) < 1 && fabs(r.low - 3e9) < 1 && fabs(r.high - 6e9) < 1);
    r = pith_rate_of(8, one, 1);
    assert_true(fabs(r.median - 1e9) < 1 && fabs(r.low - 1e9) < 1 && fabs(r.high - 1e9) < 1);
}

/* Times are not tested: what is measured is whole, or nothing where other work disturbed it. */
static void measures(void **state) {
    static const int32_t counts[] = {1, 2};
    pith_thread_rate rates[2];
    uint32_t features = 0, n_rounds = 0;
    pith_error error = {PITH_OK, ""};
    (void)state;
    assert_int_equal(pith_cpu_features(&features, &error), PITH_OK);
    assert_int_equal(pith_probe_threads(features, counts, 2, 1, rates, &n_rounds, &error), PITH_OK);
    assert_true(n_rounds <= 3);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rates[i].n_threads, counts[i]);
        assert_true(n_rounds ? rates[i].read > 1e6 && rates[i].macs > 1e6 : rates[i].read == 0);
    }
    static const int32_t too_many[] = {2000};
    assert_int_equal(pith_probe_threads(features, too_many, 1, 1, rates, &n_rounds, &error),
                     PITH_ERROR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates),
        cmocka_unit_test(choices),
        cmocka_unit_test(rates_of_times),
        cmocka_unit_test(measures),
    };
    return cmocka_run_group_tests_name("numbers of threads", tests, NULL, NULL);
}
