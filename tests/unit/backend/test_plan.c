/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises of src/backend/plan.c and rope.c: shapes that disagree are told with both numbers,
 * the first error stays, equal rope settings share a table, and angles follow the formulas of
 * backend/rope.c.
 */
#include "backend/plan.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static pith_weight matrix(const char *name, uint64_t k, uint64_t rows, uint64_t n_expert) {
    return (pith_weight){.name = name,
                         .type = PITH_TYPE_F32,
                         .n_dims = 3,
                         .ne = {k, rows, n_expert, 1},
                         .roles = PITH_WEIGHT_LINEAR | PITH_WEIGHT_ROWS};
}

static pith_weight vector(const char *name, uint64_t n) {
    return (pith_weight){.name = name,
                         .type = PITH_TYPE_F32,
                         .n_dims = 1,
                         .ne = {n, 1, 1, 1},
                         .roles = PITH_WEIGHT_VECTOR};
}

static const pith_rope plain_rope = {
    .n_rot = 16, .base = 10000, .freq_scale = 1, .attn_factor = 1, .beta_fast = 32, .beta_slow = 1};

/* A small model, as forward() writes it. */
static void a_plan_records_values_in_order(void **state) {
    (void)state;
    pith_weight table = matrix("token_embd", 64, 100, 1), q = matrix("q", 64, 64, 1);
    pith_weight kv = matrix("kv", 64, 32, 1), gate = matrix("gate", 64, 96, 1);
    pith_weight down = matrix("down", 96, 64, 1), norm = vector("norm", 64);
    pith_plan *plan = pith_plan_new();
    pith_value x = pith_plan_embed(plan, "embed", &table, 1);
    pith_plan_layer(plan, 3);
    pith_value h = pith_plan_norm(plan, "attn_norm", &(pith_norm_op){.x = x, .weight = &norm});
    pith_value qkv[3];
    pith_plan_linear(
        plan, "attn_qkv",
        &(pith_linear_op){.x = h, .n = 3, .weight = {&q, &kv, &kv}, .residual = PITH_NO_VALUE},
        qkv);
    uint32_t rope = pith_plan_rope_table(plan, &plain_rope);
    assert_int_equal(pith_plan_rope_table(plan, &plain_rope), rope);
    pith_rope other = plain_rope;
    other.base = 1e6f;
    assert_int_equal(pith_plan_rope_table(plan, &other), rope + 1);
    pith_plan_rope(plan, "q_rope", qkv[0], rope, 4, 16);
    pith_value a = pith_plan_attend(plan, "attend",
                                    &(pith_attend_op){.q = qkv[0],
                                                      .k = qkv[1],
                                                      .v = qkv[2],
                                                      .n_head = 4,
                                                      .n_head_kv = 2,
                                                      .head_dim = 16,
                                                      .head_dim_v = 16});
    pith_plan_linear(plan, "o", &(pith_linear_op){.x = a, .n = 1, .weight = {&q}, .residual = x},
                     &x);
    pith_plan_linear(plan, "gate_up",
                     &(pith_linear_op){.x = x,
                                       .n = 2,
                                       .weight = {&gate, &gate},
                                       .act = PITH_ACT_SILU,
                                       .residual = PITH_NO_VALUE},
                     &h);
    pith_plan_linear(plan, "down",
                     &(pith_linear_op){.x = h, .n = 1, .weight = {&down}, .residual = x}, &x);
    pith_plan_layer(plan, -1);
    x = pith_plan_select(plan, "select", x);
    pith_plan_output(plan, x);
    pith_error error;
    if (pith_plan_check(plan, &error)) fail_msg("%s", error.text);
    assert_int_equal(plan->n_op, 9);
    assert_string_equal(plan->ops[1].name, "layer 3 attn_norm");
    assert_string_equal(plan->ops[1].short_name, "attn_norm");
    assert_string_equal(plan->ops[8].name, "select");
    assert_int_equal(plan->ops[2].n_result, 3);
    assert_int_equal(plan->ops[3].n_result, 0);
    assert_int_equal(plan->values[plan->ops[2].first_result + 1].width, 32);
    assert_int_equal(plan->values[h].width, 96);
    assert_true(plan->values[x].is_out);
    pith_plan_free(plan);
}

static void expect_error(pith_plan *plan, const char *part1, const char *part2) {
    pith_error error = {0};
    pith_status status = pith_plan_check(plan, &error);
    if (!status || !strstr(error.text, part1) || !strstr(error.text, part2))
        fail_msg("status %d, text '%s' lacks '%s' or '%s'", status, error.text, part1, part2);
    pith_plan_free(plan);
}

static void disagreeing_shapes_are_told_with_both_numbers(void **state) {
    (void)state;
    pith_weight table = matrix("token_embd", 64, 100, 1), w65 = matrix("blk.0.w", 65, 8, 1);
    pith_weight w64 = matrix("blk.0.v", 64, 8, 1), v63 = vector("blk.0.norm", 63);
    pith_value out[3];
    pith_plan *plan = pith_plan_new();
    pith_value x = pith_plan_embed(plan, "embed", &table, 1);
    pith_linear_op linear = {.x = x, .n = 1, .weight = {&w65}, .residual = PITH_NO_VALUE};
    pith_plan_linear(plan, "proj", &linear, out);
    assert_int_equal(out[0], PITH_NO_VALUE);
    pith_plan_norm(plan, "later",
                   &(pith_norm_op){.x = x, .weight = &v63}); /* the first one stays */
    expect_error(plan, "blk.0.w takes rows of 65", "64");

    plan = pith_plan_new();
    x = pith_plan_embed(plan, "embed", &table, 1);
    pith_plan_norm(plan, "n", &(pith_norm_op){.x = x, .weight = &v63});
    expect_error(plan, "blk.0.norm is 63", "64");

    plan = pith_plan_new();
    x = pith_plan_embed(plan, "embed", &table, 1);
    linear = (pith_linear_op){.x = x, .n = 1, .weight = {&w64}, .residual = x};
    pith_plan_linear(plan, "proj", &linear, out);
    expect_error(plan, "residual", "expected 8");

    plan = pith_plan_new();
    x = pith_plan_embed(plan, "embed", &table, 1);
    pith_plan_rope(plan, "rope", x, 0, 4, 16);
    expect_error(plan, "rope setting", "0");

    plan = pith_plan_new();
    x = pith_plan_embed(plan, "embed", &table, 1);
    pith_attend_op attend = {.q = x, .k = x, .v = x, .n_head = 4, .n_head_kv = 0, .head_dim = 16};
    pith_plan_attend(plan, "attend", &attend);
    expect_error(plan, "64", "0");

    plan = pith_plan_new();
    linear = (pith_linear_op){.x = 7, .n = 1, .weight = {&w64}, .residual = PITH_NO_VALUE};
    pith_plan_linear(plan, "proj", &linear, out);
    expect_error(plan, "never made", "proj");

    plan = pith_plan_new();
    linear = (pith_linear_op){.x = 0, .n = 1, .weight = {NULL}, .residual = PITH_NO_VALUE};
    x = pith_plan_embed(plan, "embed", &table, 1);
    pith_plan_linear(plan, "proj", &linear, out);
    expect_error(plan, "missing", "proj");
}

static void rows_of_tokens_and_of_outputs_do_not_mix(void **state) {
    (void)state;
    pith_weight table = matrix("token_embd", 64, 100, 1);
    pith_plan *plan = pith_plan_new();
    pith_value x = pith_plan_embed(plan, "embed", &table, 1);
    pith_value y = pith_plan_select(plan, "select", x);
    pith_plan_add(plan, "sum", x, y);
    expect_error(plan, "sum", "output");

    plan = pith_plan_new();
    x = pith_plan_embed(plan, "embed", &table, 1);
    pith_plan_output(plan, x);
    expect_error(plan, "output", "plan_select");
}

static void experts_must_fit_together(void **state) {
    (void)state;
    pith_weight table = matrix("token_embd", 64, 100, 1), router = matrix("router", 64, 8, 1);
    pith_weight gate = matrix("gate", 64, 32, 8), down = matrix("down", 32, 64, 8);
    pith_moe_op op = {.residual = PITH_NO_VALUE,
                      .router = &router,
                      .gate = &gate,
                      .up = &gate,
                      .down = &down,
                      .n_expert = 8,
                      .n_used = 2,
                      .gating = PITH_GATING_SOFTMAX,
                      .act = PITH_ACT_SILU};
    pith_plan *plan = pith_plan_new();
    op.x = pith_plan_embed(plan, "embed", &table, 1);
    assert_true(pith_plan_moe(plan, "moe", &op) >= 0);
    assert_int_equal(pith_plan_check(plan, NULL), PITH_OK);
    op.n_used = 9;
    pith_plan_moe(plan, "moe", &op);
    expect_error(plan, "experts used is 9", "8");
    plan = pith_plan_new();
    pith_weight down7 = matrix("down", 32, 64, 7);
    op.n_used = 2;
    op.down = &down7;
    op.x = pith_plan_embed(plan, "embed", &table, 1);
    pith_plan_moe(plan, "moe", &op);
    expect_error(plan, "7", "8");
}

static void near(double got, double expected, double tolerance, int i) {
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("pair %d: %.9g, expected %.9g", i, got, expected);
}

static void plain_and_linear_angles(void **state) {
    (void)state;
    float factors[8] = {1, 1, 2, 2, 4, 8, 8, 1e30f}, table[16];
    pith_rope rope = plain_rope;
    rope.freq_scale = 0.25f;
    rope.factors = factors;
    rope.attn_factor = 1.5f;
    for (int32_t position = 0; position < 200000; position += 33331) {
        pith_rope_fill(&rope, position, table);
        for (int i = 0; i < 8; i++) {
            double angle = position * 0.25 / (double)factors[i] / pow(10000, i / 8.0);
            near((double)table[2 * i], 1.5 * cos(angle), 1e-6, i);
            near((double)table[2 * i + 1], 1.5 * sin(angle), 1e-6, i);
        }
    }
}

/* Numbers worked out by hand from the formula: n_rot 8, base 10000, n_ctx_orig 4096, factor 8,
 * beta 32 and 1. corr(32) = 8 ln(4096 / 64 pi) / (2 ln 10000) = 1.309, corr(1) = 2.814: low 1,
 * high 3. */
static void yarn_mixes_between_low_and_high_pairs(void **state) {
    (void)state;
    const pith_rope rope = {.n_rot = 8,
                            .base = 10000,
                            .freq_scale = 0.125f,
                            .ext_factor = 1,
                            .attn_factor = 1,
                            .beta_fast = 32,
                            .beta_slow = 1,
                            .n_ctx_orig = 4096};
    const double theta[] = {1, 0.1, 0.01, 0.001};
    const double mix[] = {1, 1, 0.5, 0};
    for (int i = 0; i < 4; i++) {
        double expected = 0.125 * theta[i] * (1 - mix[i]) + theta[i] * mix[i];
        near(pith_rope_frequency(&rope, (uint32_t)i), expected, 1e-12, i);
    }
}

static void senseless_rope_settings_are_refused(void **state) {
    (void)state;
    const float bad[] = {0, -1, NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        pith_plan *plan = pith_plan_new();
        pith_rope rope = plain_rope;
        rope.attn_factor = bad[i];
        pith_plan_rope_table(plan, &rope);
        expect_error(plan, "rope", "magnitude");
    }
    pith_plan *plan = pith_plan_new();
    pith_rope rope = plain_rope;
    rope.n_rot = 15;
    pith_plan_rope_table(plan, &rope);
    expect_error(plan, "rope", "15");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_records_values_in_order),
        cmocka_unit_test(disagreeing_shapes_are_told_with_both_numbers),
        cmocka_unit_test(rows_of_tokens_and_of_outputs_do_not_mix),
        cmocka_unit_test(experts_must_fit_together),
        cmocka_unit_test(plain_and_linear_angles),
        cmocka_unit_test(yarn_mixes_between_low_and_high_pairs),
        cmocka_unit_test(senseless_rope_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
