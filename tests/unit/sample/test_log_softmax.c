/* SPDX-License-Identifier: Apache-2.0
 * Promises of log-probabilities: to within 1e-9 of log-softmax in long double, for rows with ties,
 * NaN and infinities, of lengths around a block; the likeliest ids in their order. */
#include "sample/logit_row.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants the three above first */
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 3000 };

static const float *sorted_row;

static int by_logit(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    float p = fminf(sorted_row[x], FLT_MAX), q = fminf(sorted_row[y], FLT_MAX);
    if (p != q) return p > q ? -1 : 1;
    return x < y ? -1 : 1;
}

static long double value_at(const float *row, int32_t id) {
    return row[id] > -INFINITY ? (long double)fminf(row[id], FLT_MAX) : -(long double)INFINITY;
}

static void compare(const float *row, int32_t n, size_t n_top) {
    static int32_t order[MOST];
    pith_logprob top[PITH_LOGPROBS_MAX + 1] = {{0, 0}};
    size_t n_numbers = 0;
    long double total = 0;
    for (int32_t i = 0; i < n; i++)
        if (row[i] > -INFINITY) order[n_numbers++] = i;
    sorted_row = row;
    qsort(order, n_numbers, sizeof *order, by_logit);
    for (size_t i = 0; i < n_numbers; i++)
        total += expl(value_at(row, order[i]) - value_at(row, order[0]));
    size_t want = n_numbers < n_top ? n_numbers : n_top;
    for (int32_t id = -1; id <= n; id += n < 40 ? 1 : 37) {
        double logprob = 1;
        top[want].id = -7;
        assert_int_equal(pith_sample_logprobs(row, (size_t)n, id, &logprob, top, n_top), want);
        assert_int_equal(top[want].id, -7); /* no more than told is written */
        if (id < 0 || id >= n || !(row[id] > -INFINITY)) {
            assert_true(isinf(logprob) && logprob < 0);
            continue;
        }
        long double exact = value_at(row, id) - value_at(row, order[0]) - logl(total);
        long double slack = 1e-9L + 1e-15L * fabsl(exact);
        if (!(fabsl((long double)logprob - exact) <= slack))
            print_error("n %d id %d: %.12g, expected %.12Lg\n", n, id, logprob, exact);
        assert_true(fabsl((long double)logprob - exact) <= slack);
    }
    for (size_t i = 0; i < want; i++) {
        long double exact = value_at(row, order[i]) - value_at(row, order[0]) - logl(total);
        assert_int_equal(top[i].id, order[i]);
        assert_true(fabsl((long double)top[i].logprob - exact) <= 1e-9L + 1e-15L * fabsl(exact));
    }
}

static void test_rows(void **state) {
    (void)state;
    static const int32_t sizes[] = {1, 2, 7, 8, 9, 20, 21, 255, 256, 257, MOST};
    static float row[MOST];
    pith_rng rng;
    pith_rng_init(&rng, 7);
    for (int round = 0; round < 11 * 8 * 6; round++) {
        int32_t n = sizes[round % 11];
        int kind = round / 11 % 8;
        for (int32_t i = 0; i < n; i++) {
            double x = pith_rng_normal(&rng);
            row[i] = (float)(x * 3);
            if (kind == 1) row[i] = rintf(row[i]);
            if (kind == 2) row[i] = 12.0f;
            if (kind == 3) row[i] = i == n / 3 ? 11.2345f : -11.8765f; /* one rules, just so */
            if (kind == 4 && i % 3) row[i] = i % 2 ? NAN : -INFINITY;
            if (kind == 5) row[i] = (float)(x * 300);
            if (kind == 6) row[i] = i % 2 ? NAN : -INFINITY;
            if (kind == 7) row[i] = (float)(x * 1e38);
        }
        if (kind == 7) row[n / 2] = INFINITY;
        compare(row, n, (size_t[]){0, 1, 2, 5, 19, 20}[round / 88]);
    }
}

static void test_more_than_the_limit_is_the_limit(void **state) {
    (void)state;
    float row[100];
    pith_logprob top[PITH_LOGPROBS_MAX];
    double logprob;
    for (int i = 0; i < 100; i++) row[i] = (float)i;
    assert_int_equal(pith_sample_logprobs(row, 100, 0, &logprob, top, 100), PITH_LOGPROBS_MAX);
    assert_int_equal(top[0].id, 99);
    assert_int_equal(top[PITH_LOGPROBS_MAX - 1].id, 80);
}

/* Large vocabularies, where errors of many terms could add up. */
static void test_long_rows(void **state) {
    (void)state;
    enum { LONG = 262144 };
    float *row = malloc(LONG * sizeof *row);
    assert_non_null(row);
    for (int kind = 0; kind < 3; kind++) {
        double logprob;
        long double total = 0, max = -INFINITY;
        for (int i = 0; i < LONG; i++) {
            row[i] = kind == 0 ? 0.1f : kind == 1 ? 20.0f - 1.5f * logf((float)i + 1) : -0.3f;
            if (kind == 2 && i == 5) row[i] = 12.3f;
            if ((long double)row[i] > max) max = (long double)row[i];
        }
        for (int i = 0; i < LONG; i++) total += expl((long double)row[i] - max);
        pith_sample_logprobs(row, LONG, 5, &logprob, NULL, 0);
        long double exact = (long double)row[5] - max - logl(total);
        assert_true(fabsl((long double)logprob - exact) < 1e-9L);
    }
    free(row);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_more_than_the_limit_is_the_limit),
        cmocka_unit_test(test_long_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
