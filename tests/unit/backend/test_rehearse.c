/* SPDX-License-Identifier: Apache-2.0
 * Promise: made-up weights decode to finite, normal numbers of both signs for every type that can
 * be a weight, in both layouts; shortening keeps shapes whole; probes give positive rates and say
 * so when memory cannot be had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/rehearse.h"
#include "base/memory.h"
#include "cpu/cpu.h"

#include <math.h>

enum { K = 512, ROWS = 32 };

static uint32_t features;

/* A plan that only looks rows up. */
static void check_type(pith_type type, pith_load load, unsigned roles) {
    const pith_type_info *info = pith_type_get(type);
    pith_weights *weights = NULL;
    const pith_weight *weight = NULL;
    pith_error error = {PITH_OK, ""};
    uint64_t row = 0;
    assert_true(pith_type_row_bytes(type, K, &row));
    pith_weight_source source = {
        .name = "w", .type = type, .n_dims = 2, .ne = {K, 2 * ROWS, 1, 1}, .bytes = row * 2 * ROWS};
    assert_int_equal(pith_weights_new(&weights, NULL), PITH_OK);
    assert_int_equal(pith_weights_add(weights, &source, roles, &weight, &error), PITH_OK);
    pith_weights_shorten(weights, weight, 1, ROWS);
    pith_weights_shorten(weights, weight, 1, 2 * ROWS); /* never longer */
    assert_true(weight->ne[1] == ROWS && weight->bytes == row * ROWS);
    pith_plan *plan = pith_plan_new();
    pith_value x = pith_plan_embed(plan, "embed", weight, 1.0f);
    pith_plan_output(plan, pith_plan_select(plan, "select", x));
    assert_int_equal(pith_plan_check(plan, &error), PITH_OK);
    assert_true(pith_plan_weight_bytes(plan) == row * ROWS);
    pith_weights_lay_out(weights, load, features);
    assert_true(pith_weights_bytes(weights) >= row * ROWS);
    double rate = 0;
    assert_int_equal(pith_weights_pretend(weights, plan, 1, &rate, &error), PITH_OK);
    assert_true(rate > 0);
    assert_int_equal(pith_weights_pretend(weights, plan, 1, &rate, &error), PITH_ERROR_INTERNAL);
    float values[K];
    uint32_t n_negative = 0, n_positive = 0;
    for (uint64_t i = 0; i < ROWS; i++) {
        pith_weight_decode_row(weight, i, values);
        for (uint32_t k = 0; k < K; k++) {
            if (!isfinite(values[k]) || fabsf(values[k]) > 1e4f ||
                (values[k] != 0.0f && fabsf(values[k]) < 1e-12f))
                fail_msg("%s: row %d element %u is %g", info->name, (int)i, k, (double)values[k]);
            n_negative += values[k] < 0.0f;
            n_positive += values[k] > 0.0f;
        }
    }
    assert_true(n_negative > 100 && n_positive > 100);
    pith_plan_free(plan);
    pith_weights_free(weights);
}

static void values(void **state) {
    static const pith_type types[] = {
        PITH_TYPE_F32,     PITH_TYPE_F16,    PITH_TYPE_BF16,  PITH_TYPE_Q4_0,    PITH_TYPE_Q4_1,
        PITH_TYPE_Q5_0,    PITH_TYPE_Q5_1,   PITH_TYPE_Q8_0,  PITH_TYPE_Q2_K,    PITH_TYPE_Q3_K,
        PITH_TYPE_Q4_K,    PITH_TYPE_Q5_K,   PITH_TYPE_Q6_K,  PITH_TYPE_IQ4_NL,  PITH_TYPE_IQ4_XS,
        PITH_TYPE_IQ2_XXS, PITH_TYPE_IQ2_XS, PITH_TYPE_IQ2_S, PITH_TYPE_IQ3_XXS, PITH_TYPE_IQ3_S,
        PITH_TYPE_IQ1_S,   PITH_TYPE_IQ1_M,  PITH_TYPE_TQ1_0, PITH_TYPE_TQ2_0,   PITH_TYPE_MXFP4};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        check_type(types[i], PITH_LOAD_MMAP, PITH_WEIGHT_ROWS);
        check_type(types[i], PITH_LOAD_PACK, PITH_WEIGHT_ROWS | PITH_WEIGHT_LINEAR);
    }
}

static void probes(void **state) {
    const uint64_t sizes[2] = {1 << 20, 100};
    pith_rate rates[2];
    double product = 0;
    pith_error error = {PITH_OK, ""};
    (void)state;
    assert_int_equal(pith_probe_read(2, sizes, 2, 4, rates, &error), PITH_OK);
    for (int i = 0; i < 2; i++)
        assert_true(rates[i].low > 1e6 && rates[i].low <= rates[i].median &&
                    rates[i].median <= rates[i].high);
    assert_int_equal(pith_probe_product(1, features, 4, &product, &error), PITH_OK);
    assert_true(product > 1e6);
    assert_int_equal(pith_probe_product(1, 0, 1, &product, &error), PITH_OK); /* plain C */
    const uint64_t huge = UINT64_MAX;
    assert_int_equal(pith_probe_read(1, &huge, 1, 1, rates, &error), PITH_ERROR_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(probes),
    };
    if (pith_cpu_features(&features, NULL) != PITH_OK) return 1;
    return cmocka_run_group_tests_name("rehearsal of plans", tests, NULL, NULL);
}
