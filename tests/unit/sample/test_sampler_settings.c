/* SPDX-License-Identifier: Apache-2.0
 * Promises of the sampler's options: every field is checked at its limits and refused by its name,
 * zero is the default, pointers are read by new alone, an order names each stage that is on once,
 * and fields behind the caller's size are not read. */
#include "sample/sampler_internal.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants the three above first */
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 50 };

static pith_sampler_options defaults(void) {
    return (pith_sampler_options){.size = sizeof(pith_sampler_options)};
}

static void assert_refused(const pith_sampler_options *o, const char *name) {
    pith_sampler *sampler = (pith_sampler *)(uintptr_t)1;
    pith_error error = {0};
    pith_status status = pith_sample_new(N, o, &sampler, &error);
    if (status != PITH_ERROR_ARGUMENT || !strstr(error.text, name))
        print_error("%s: status %d, '%s'\n", name, (int)status, error.text);
    assert_int_equal(status, PITH_ERROR_ARGUMENT);
    assert_null(sampler);
    assert_non_null(strstr(error.text, name));
}

static void assert_taken(const pith_sampler_options *o, const char *name) {
    pith_sampler *sampler = NULL;
    pith_error error = {0};
    if (pith_sample_new(N, o, &sampler, &error) != PITH_OK)
        print_error("%s: '%s'\n", name, error.text);
    assert_non_null(sampler);
    pith_sample_free(sampler);
}

/* ---- Ranges ---- */

#define FLOAT(field, low, high)                                                                    \
    { #field, offsetof(pith_sampler_options, field), low, high }
#define INTEGER(field, ...)                                                                        \
    {                                                                                              \
#field, offsetof(pith_sampler_options, field), {                                           \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static void test_floats(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t offset;
        float low, high; /* both allowed */
    } rows[] = {
        FLOAT(temperature, 0, FLT_MAX),
        FLOAT(top_p, 0, 1),
        FLOAT(min_p, 0, 1),
        FLOAT(repeat_penalty, 0, FLT_MAX),
        FLOAT(frequency_penalty, -FLT_MAX, FLT_MAX),
        FLOAT(presence_penalty, -FLT_MAX, FLT_MAX),
        FLOAT(typical_p, 0, 1),
        FLOAT(top_n_sigma, 0, FLT_MAX),
        FLOAT(dynamic_range, 0, FLT_MAX),
        FLOAT(dynamic_exponent, 0, FLT_MAX),
        FLOAT(xtc_probability, 0, 1),
        FLOAT(xtc_threshold, 0, 1),
        FLOAT(mirostat_tau, 0, FLT_MAX),
        FLOAT(mirostat_eta, 0, 1),
        FLOAT(dry_multiplier, 0, FLT_MAX),
        FLOAT(dry_base, 1, FLT_MAX),
    };
    static const char *const none[1] = {NULL};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float high = rows[i].high, low = rows[i].low;
        const float good[] = {low, high, 0.0f, low < 1 ? 0.5f : 1.5f};
        const float bad[] = {NAN, INFINITY, -INFINITY, nextafterf(low, -INFINITY),
                             nextafterf(high, INFINITY)};
        for (size_t j = 0; j < 9; j++) {
            pith_sampler_options o = defaults();
            o.dry_breakers = none;
            float value = j < 4 ? good[j] : bad[j - 4];
            memcpy((char *)&o + rows[i].offset, &value, sizeof value);
            if (j < 4)
                assert_taken(&o, rows[i].name);
            else
                assert_refused(&o, rows[i].name);
        }
    }
}

static void test_integers(void **state) {
    (void)state;
    const int32_t window = PITH_SAMPLE_MAX_WINDOW;
    const struct {
        const char *name;
        size_t offset;
        int32_t values[6]; /* the first four are allowed */
    } rows[] = {
        INTEGER(top_k, 0, 1, N + 1, INT32_MAX, -1, INT32_MIN),
        INTEGER(penalty_window, 0, -1, INT32_MIN, window, window + 1, INT32_MAX),
        INTEGER(dry_window, 0, -1, INT32_MIN, window, window + 1, INT32_MAX),
        INTEGER(dry_allowed_length, 0, 1, 2, INT32_MAX, -1, INT32_MIN),
        INTEGER(mirostat, 0, 1, 2, 0, 3, -1),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t j = 0; j < 6; j++) {
            pith_sampler_options o = defaults();
            memcpy((char *)&o + rows[i].offset, &rows[i].values[j], sizeof(int32_t));
            if (j < 4)
                assert_taken(&o, rows[i].name);
            else
                assert_refused(&o, rows[i].name);
        }
    }
}

/* ---- Lists ---- */

static void test_biases(void **state) {
    (void)state;
    pith_logit_bias list[3] = {{0, 1}, {N - 1, -INFINITY}, {3, FLT_MAX}};
    pith_sampler_options o = defaults();
    o.biases = list, o.n_biases = 3;
    assert_taken(&o, "biases");
    const pith_logit_bias bad[] = {{-1, 0}, {N, 0}, {0, NAN}, {0, INFINITY}, {INT32_MIN, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        list[2] = bad[i];
        assert_refused(&o, "biases");
    }
    o.biases = NULL;
    assert_refused(&o, "biases");
    o.biases = list, o.n_biases = PITH_SAMPLE_MAX_BIASES + 1;
    assert_refused(&o, "n_biases");
}

static void test_breakers(void **state) {
    (void)state;
    char longest[PITH_SAMPLE_MAX_BREAKER + 2];
    const char *list[PITH_SAMPLE_MAX_BREAKERS + 1];
    pith_span pieces[N];
    pith_sampler *sampler = NULL;
    for (int i = 0; i < N; i++) pieces[i] = pith_span_of("x");
    for (int i = 0; i <= PITH_SAMPLE_MAX_BREAKERS; i++) list[i] = longest;
    memset(longest, 'x', sizeof longest);
    longest[PITH_SAMPLE_MAX_BREAKER] = 0;
    pith_sampler_options o = defaults();
    o.dry_multiplier = 1;
    assert_refused(&o, "dry_breakers"); /* the defaults want a vocabulary */
    o.dry_breakers = list, o.n_dry_breakers = PITH_SAMPLE_MAX_BREAKERS;
    assert_refused(&o, "dry_breakers");
    assert_int_equal(pith_sample_new_with_pieces(pieces, N, &o, &sampler, NULL), PITH_OK);
    pith_sample_free(sampler);
    o.n_dry_breakers++;
    assert_refused(&o, "n_dry_breakers");
    o.n_dry_breakers = 1, list[0] = NULL;
    assert_refused(&o, "dry_breakers");
    list[0] = "";
    assert_refused(&o, "dry_breakers");
    list[0] = longest, longest[PITH_SAMPLE_MAX_BREAKER] = 'x';
    longest[PITH_SAMPLE_MAX_BREAKER + 1] = 0;
    assert_refused(&o, "dry_breakers");
    o.n_dry_breakers = 0; /* none at all */
    assert_taken(&o, "dry_breakers");
    o.dry_breakers = NULL, o.n_dry_breakers = 1;
    assert_refused(&o, "dry_breakers");
    o = defaults(); /* off: not looked for */
    assert_taken(&o, "dry_breakers");
}

/* The caller's strings and arrays may be gone after new. */
static void test_pointers_are_read_by_new_alone(void **state) {
    (void)state;
    char order[64] = "temperature;dry", breaker[] = "b", text[] = "ab";
    const char *list[1] = {breaker};
    pith_logit_bias biases[1] = {{4, -INFINITY}};
    pith_span pieces[N];
    for (int i = 0; i < N; i++) pieces[i] = (pith_span){text, 2};
    pith_sampler_options o = defaults();
    o.order = order, o.biases = biases, o.n_biases = 1, o.dry_multiplier = 50;
    o.dry_breakers = list, o.n_dry_breakers = 1;
    pith_sampler *sampler = NULL, *clone = NULL;
    assert_int_equal(pith_sample_new_with_pieces(pieces, N, &o, &sampler, NULL), PITH_OK);
    memset(order, 'x', sizeof order), memset(biases, 0xff, sizeof biases);
    memset(breaker, 'a', 1), memset(text, 'x', 2), memset(pieces, 0xff, sizeof pieces);
    list[0] = NULL;
    assert_int_equal(pith_sample_clone(sampler, 1, &clone, NULL), PITH_OK);
    float row[N];
    for (int i = 0; i < N; i++) row[i] = i == 4 ? 9.0f : (float)-i;
    for (int i = 0; i < 20; i++) { /* each token holds a breaker: nothing is a repetition */
        assert_int_equal(pith_sample_next(sampler, row), 0);
        assert_int_equal(pith_sample_next(clone, row), 0);
    }
    pith_sample_free(sampler);
    pith_sample_free(clone);
}

/* ---- Order ---- */

static void test_order(void **state) {
    (void)state;
    pith_sampler_options o = defaults();
    static const char *const good[] = {
        "temperature", "top_k;temperature", "temperature,top_k", "top_k,temperature;min_p",
        "penalties;dry;top_n_sigma;top_k;typical;top_p;min_p;xtc;temperature"};
    static const char *const bad[] = {"",
                                      ";",
                                      "temperature;",
                                      ";temperature",
                                      "temperature;;top_k",
                                      "Temperature",
                                      "temperature; top_k",
                                      "temp",
                                      "temperature;mirostat",
                                      "temperature2",
                                      "temperature;temperature",
                                      "top_k;temperature;top_k",
                                      "%s%s%n;temperature"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        o.order = good[i];
        assert_taken(&o, good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        o.order = bad[i];
        assert_refused(&o, "order");
    }
    /* what is on is named */
    o = defaults(), o.order = "top_k";
    assert_refused(&o, "temperature");
    o.temperature = 1;
    assert_taken(&o, "order");
    o.dynamic_range = 0.5f;
    assert_refused(&o, "temperature");
    o = defaults(), o.order = "temperature";
    o.top_k = 3;
    assert_refused(&o, "top_k");
    o = defaults(), o.order = "temperature", o.xtc_probability = 0.1f;
    assert_refused(&o, "xtc");
    o = defaults(), o.order = "temperature", o.presence_penalty = 0.1f;
    assert_refused(&o, "penalties");
    o = defaults(), o.order = "temperature", o.dry_multiplier = 0.1f;
    assert_refused(&o, "dry");
    o.dry_window = -1; /* off */
    assert_taken(&o, "order");
}

/* ---- Sizes ---- */

/* Each field of the first public struct that carries a size is absent in a shorter one: garbage
 * there changes nothing. */
static void test_shorter_structs(void **state) {
    (void)state;
    const size_t ends[] = {offsetof(pith_sampler_options, top_k),
                           offsetof(pith_sampler_options, typical_p),
                           offsetof(pith_sampler_options, dry_multiplier),
                           offsetof(pith_sampler_options, dry_breakers),
                           offsetof(pith_sampler_options, biases),
                           offsetof(pith_sampler_options, order)};
    float row[N];
    for (int i = 0; i < N; i++) row[i] = (float)(i % 7);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        pith_sampler_options o = defaults(), dirty;
        pith_sampler *a = NULL, *b = NULL;
        o.temperature = 0.7f;
        memset(&dirty, 0xff, sizeof dirty);
        memcpy(&dirty, &o, ends[i]);
        dirty.size = ends[i];
        assert_int_equal(pith_sample_new(N, &o, &a, NULL), PITH_OK);
        assert_int_equal(pith_sample_new(N, &dirty, &b, NULL), PITH_OK);
        for (int t = 0; t < 30; t++)
            assert_int_equal(pith_sample_next(a, row), pith_sample_next(b, row));
        pith_sample_free(a);
        pith_sample_free(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_biases),
        cmocka_unit_test(test_breakers),
        cmocka_unit_test(test_pointers_are_read_by_new_alone),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_shorter_structs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
