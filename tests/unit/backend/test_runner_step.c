/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises of the CPU backend about steps: what is wrong with a step is told before anything
 * runs; logits come in blocks and can be stopped; a trace tells every named value without
 * changing any; the profile counts; the memory told is the memory taken.
 */
#include "cpu/cpu.h"
#include "toy_model.h"

typedef struct bench {
    toy model;
    toy_run run;
} bench;

static void open_bench(bench *b) {
    pith_backend_options options = {
        .n_threads = 2, .step_limit = 64, .features = pith_cpu_detect()};
    toy_open(&b->model, PITH_LOAD_PACK, PITH_KV_STORE_F16, options.features);
    toy_run_open(&b->run, &b->model, &options);
}

static void close_bench(bench *b) {
    toy_run_close(&b->run);
    toy_close(&b->model);
}

/* A sound step of four tokens, to be spoilt. */
typedef struct four {
    int32_t tokens[4], positions[4], sequence[4], out[4];
    pith_step step;
} four;

static void make_four(four *f, bench *b) {
    *f = (four){{1, 2, 3, 4}, {0, 1, 2, 0}, {0, 0, 0, 1}, {2, 3, 0, 0}, {0}};
    f->step = (pith_step){.n = 4,
                          .n_out = 2,
                          .n_sequence = TOY_SEQUENCES,
                          .tokens = f->tokens,
                          .positions = f->positions,
                          .sequence = f->sequence,
                          .out_rows = f->out,
                          .tables = b->run.tables,
                          .on_logits = toy_on_logits,
                          .user = &b->run};
}

static void expect(bench *b, const four *f, pith_status status, const char *part) {
    pith_error error = {0};
    pith_status got = pith_runner_run(b->run.runner, &f->step, &error);
    if (got != status || (part && !strstr(error.text, part)))
        fail_msg("status %d '%s', expected %d '%s'", got, error.text, status, part ? part : "");
}

static void wrong_steps_are_refused(void **state) {
    (void)state;
    bench b;
    four f;
    open_bench(&b);
    make_four(&f, &b);
    expect(&b, &f, PITH_OK, NULL);
    assert_int_equal(b.run.n_logits, 2);
    f.tokens[1] = TOY_VOCAB - 1;
    expect(&b, &f, PITH_OK, NULL);
    f.tokens[1] = TOY_VOCAB;
    expect(&b, &f, PITH_ERROR_ARGUMENT, "317");
    f.tokens[1] = -1;
    expect(&b, &f, PITH_ERROR_ARGUMENT, "-1");
    make_four(&f, &b);
    f.positions[1] = 2;
    expect(&b, &f, PITH_ERROR_INTERNAL, "follows");
    make_four(&f, &b);
    f.positions[3] = TOY_CTX;
    expect(&b, &f, PITH_ERROR_INTERNAL, "context");
    f.positions[3] = -1;
    expect(&b, &f, PITH_ERROR_INTERNAL, "-1");
    make_four(&f, &b);
    f.sequence[3] = TOY_SEQUENCES;
    expect(&b, &f, PITH_ERROR_INTERNAL, "sequence");
    make_four(&f, &b);
    f.sequence[1] = 2;
    expect(&b, &f, PITH_ERROR_INTERNAL, "neighbours");
    make_four(&f, &b);
    f.out[1] = 2;
    expect(&b, &f, PITH_ERROR_INTERNAL, "output");
    f.out[1] = 4;
    expect(&b, &f, PITH_ERROR_INTERNAL, "output");
    make_four(&f, &b);
    f.step.on_logits = NULL;
    expect(&b, &f, PITH_ERROR_INTERNAL, "on_logits");
    make_four(&f, &b);
    f.step.n = 0;
    expect(&b, &f, PITH_ERROR_ARGUMENT, "limit");
    f.step.n = 65;
    expect(&b, &f, PITH_ERROR_ARGUMENT, "64");
    close_bench(&b);
}

static void missing_pages_are_refused(void **state) {
    (void)state;
    bench b;
    four f;
    open_bench(&b);
    make_four(&f, &b);
    f.positions[3] = 64 * 4;
    expect(&b, &f, PITH_OK, NULL);
    uint8_t *page = b.run.blocks[1][0][0];
    b.run.blocks[1][0][0] = NULL; /* global layers see everything */
    expect(&b, &f, PITH_ERROR_INTERNAL, "page");
    b.run.blocks[1][0][0] = page;
    page = b.run.blocks[1][1][1]; /* the window of 150 begins in block 1 */
    b.run.blocks[1][1][1] = NULL;
    expect(&b, &f, PITH_ERROR_INTERNAL, "page");
    b.run.blocks[1][1][1] = page;
    page = b.run.blocks[1][1][0];
    b.run.blocks[1][1][0] = NULL;
    expect(&b, &f, PITH_OK, NULL);
    b.run.blocks[1][1][0] = page;
    b.run.tables[2].n_blocks = 4;
    expect(&b, &f, PITH_ERROR_INTERNAL, "page");
    close_bench(&b);
}

/* ---- Trace ---- */

typedef struct record {
    char names[128][48];
    size_t rows[128], widths[128];
    double sums[128];
    int n;
} record;

static void on_value(void *user, const char *name, size_t n_rows, size_t width,
                     const float *values) {
    record *r = user;
    assert_true(r->n < 128);
    snprintf(r->names[r->n], sizeof r->names[0], "%s", name);
    r->rows[r->n] = n_rows;
    r->widths[r->n] = width;
    r->sums[r->n] = 0;
    for (size_t i = 0; i < n_rows * width; i++) r->sums[r->n] += fabs((double)values[i]);
    if (!isfinite(r->sums[r->n])) fail_msg("%s is not finite", name);
    r->n++;
}

static int find(const record *r, const char *name) {
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->names[i], name) == 0) return i;
    fail_msg("%s was not told", name);
    return -1;
}

static void a_trace_tells_every_value_and_changes_none(void **state) {
    (void)state;
    bench b;
    four f;
    record *r = calloc(1, sizeof *r);
    float expected[2 * TOY_VOCAB];
    open_bench(&b);
    make_four(&f, &b);
    expect(&b, &f, PITH_OK, NULL);
    memcpy(expected, b.run.logits, sizeof expected);
    pith_runner_trace(b.run.runner, on_value, r);
    expect(&b, &f, PITH_OK, NULL);
    assert_memory_equal(expected, b.run.logits, sizeof expected);
    const struct {
        const char *name;
        size_t rows, width;
    } want[] = {{"embed", 4, 256},
                {"layer 0 attn_norm", 4, 256},
                {"layer 0 qkv.0", 4, 256},
                {"layer 0 qkv.2", 4, 128},
                {"layer 0 q_rope", 4, 256},
                {"layer 0 attend", 4, 256},
                {"layer 0 gate_up", 4, 512},
                {"layer 0 down", 4, 256},
                {"layer 1 attn_add", 4, 256},
                {"layer 2 moe", 4, 256},
                {"select", 2, 256},
                {"head", 2, TOY_VOCAB},
                {"softcap", 2, TOY_VOCAB},
                {"scale", 2, TOY_VOCAB}};
    int last = -1;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        int at = find(r, want[i].name);
        assert_true(at > last);
        assert_int_equal(r->rows[at], want[i].rows);
        assert_int_equal(r->widths[at], want[i].width);
        assert_true(r->sums[at] > 0);
        last = at;
    }
    double sum = 0;
    for (int i = 0; i < 2 * TOY_VOCAB; i++) sum += fabs((double)expected[i]);
    assert_true(fabs(sum - r->sums[find(r, "scale")]) < 1e-9 * sum);
    pith_runner_trace(b.run.runner, NULL, NULL);
    r->n = 0;
    expect(&b, &f, PITH_OK, NULL);
    assert_int_equal(r->n, 0);
    assert_memory_equal(expected, b.run.logits, sizeof expected);
    free(r);
    close_bench(&b);
}

static void the_profile_counts_operations_of_all_layers(void **state) {
    (void)state;
    bench b;
    four f;
    pith_profile_row rows[64];
    open_bench(&b);
    make_four(&f, &b);
    expect(&b, &f, PITH_OK, NULL);
    assert_int_equal(pith_runner_profile_rows(b.run.runner, rows, 64), 0);
    pith_runner_profile(b.run.runner, true);
    for (int i = 0; i < 3; i++) expect(&b, &f, PITH_OK, NULL);
    size_t n = pith_runner_profile_rows(b.run.runner, rows, 64);
    assert_true(n > 5 && n < 64);
    assert_int_equal(pith_runner_profile_rows(b.run.runner, rows, 1), n);
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].operation, "linear qkv") != 0) continue;
        assert_int_equal(rows[i].n_calls, 3 * TOY_LAYERS);
        assert_true(rows[i].ms > 0);
        found = true;
    }
    assert_true(found);
    pith_runner_profile(b.run.runner, true);
    pith_runner_profile_rows(b.run.runner, rows, 64);
    for (size_t i = 0; i < n; i++) assert_int_equal(rows[i].n_calls, 0);
    close_bench(&b);
}

static void a_runner_needs_loaded_weights_and_the_right_layout(void **state) {
    (void)state;
    bench b;
    pith_runner *runner;
    pith_error error;
    uint64_t bytes, more;
    open_bench(&b);
    pith_backend_options options = {.n_threads = 2,
                                    .step_limit = 64,
                                    .features = pith_cpu_detect(),
                                    .kv = &b.model.layout,
                                    .n_ctx = TOY_CTX};
    assert_int_equal(pith_runner_bytes(b.model.plan, &options, &bytes, NULL), PITH_OK);
    options.step_limit = 128;
    assert_int_equal(pith_runner_bytes(b.model.plan, &options, &more, NULL), PITH_OK);
    assert_true(more > bytes + bytes / 4);
    options.kv = NULL;
    assert_int_equal(pith_runner_new(b.model.plan, &options, &runner, &error), PITH_ERROR_INTERNAL);
    options.kv = &b.model.layout;
    b.model.layers[1].window++;
    assert_int_equal(pith_runner_new(b.model.plan, &options, &runner, &error), PITH_ERROR_INTERNAL);
    assert_non_null(strstr(error.text, "window"));
    b.model.layers[1].window--;
    options.step_limit = 0;
    assert_int_equal(pith_runner_new(b.model.plan, &options, &runner, &error), PITH_ERROR_ARGUMENT);
    options.step_limit = 64;
    const uint8_t *data = b.model.up[0]->data;
    ((pith_weight *)(uintptr_t)b.model.up[0])->data = NULL;
    assert_int_equal(pith_runner_new(b.model.plan, &options, &runner, &error), PITH_ERROR_INTERNAL);
    assert_non_null(strstr(error.text, "0.up"));
    ((pith_weight *)(uintptr_t)b.model.up[0])->data = data;
    assert_int_equal(pith_runner_new(b.model.plan, &options, &runner, &error), PITH_OK);
    assert_int_equal(pith_runner_threads(runner), 2);
    assert_non_null(strstr(pith_runner_name(runner), "cpu "));
    pith_runner_free(runner);
    close_bench(&b);
}

/* ---- Blocks of logits: a plan with a wide head ---- */

enum { WIDE_VOCAB = 1 << 16, WIDE_EMBD = 32, WIDE_ROWS = 150 };

typedef struct wide {
    float *table;
    pith_weight weight;
    pith_plan *plan;
    uint32_t n_block, next, stop_at;
    double worst;
} wide;

static int on_wide(void *user, uint32_t first, uint32_t n, const float *logits, size_t stride) {
    wide *w = user;
    assert_int_equal(first, w->next);
    w->next += n;
    w->n_block++;
    for (uint32_t i = 0; i < n; i++) {
        const float *x = w->table + (size_t)(first + i) * 2 * WIDE_EMBD; /* token 2 * row */
        for (uint32_t j = 0; j < WIDE_VOCAB; j += 4093) {
            double expected = 0;
            for (size_t k = 0; k < WIDE_EMBD; k++)
                expected += (double)x[k] * (double)w->table[(size_t)j * WIDE_EMBD + k];
            double d = fabs((double)logits[i * stride + j] - expected);
            if (!(d <= w->worst)) w->worst = d;
        }
    }
    return w->next >= w->stop_at;
}

static void logits_come_in_blocks_and_can_be_stopped(void **state) {
    (void)state;
    wide w = {.table = malloc(sizeof(float) * WIDE_VOCAB * WIDE_EMBD), .stop_at = UINT32_MAX};
    pith_rng rng;
    pith_runner *runner;
    pith_error error;
    int32_t tokens[WIDE_ROWS], positions[WIDE_ROWS], sequence[WIDE_ROWS], out[WIDE_ROWS];
    pith_rng_init(&rng, 1);
    for (int i = 0; i < WIDE_VOCAB * WIDE_EMBD; i++) w.table[i] = (float)pith_rng_normal(&rng);
    w.weight = (pith_weight){.name = "table",
                             .ne = {WIDE_EMBD, WIDE_VOCAB, 1, 1},
                             .roles = PITH_WEIGHT_LINEAR | PITH_WEIGHT_ROWS,
                             .data = (const uint8_t *)w.table,
                             .row_bytes = WIDE_EMBD * sizeof(float)};
    w.plan = pith_plan_new();
    pith_value x = pith_plan_embed(w.plan, "embed", &w.weight, 1);
    x = pith_plan_select(w.plan, "select", x);
    pith_linear_op head = {.x = x, .n = 1, .weight = {&w.weight}, .residual = PITH_NO_VALUE};
    pith_plan_linear(w.plan, "head", &head, &x);
    pith_plan_output(w.plan, x);
    pith_backend_options options = {.n_threads = 2, .step_limit = 256, .n_ctx = 256};
    options.features = pith_cpu_detect();
    if (pith_runner_new(w.plan, &options, &runner, &error)) fail_msg("%s", error.text);
    for (int i = 0; i < WIDE_ROWS; i++) {
        tokens[i] = 2 * i;
        positions[i] = out[i] = i;
        sequence[i] = 0;
    }
    pith_step step = {.n = WIDE_ROWS,
                      .n_out = WIDE_ROWS,
                      .n_sequence = 1,
                      .tokens = tokens,
                      .positions = positions,
                      .sequence = sequence,
                      .out_rows = out,
                      .on_logits = on_wide,
                      .user = &w};
    assert_int_equal(pith_runner_run(runner, &step, &error), PITH_OK);
    assert_int_equal(w.next, WIDE_ROWS);
    assert_true(w.n_block > 1);
    if (!(w.worst < 1e-4)) fail_msg("off by %g", w.worst);
    w.next = 0;
    w.stop_at = 1;
    assert_int_equal(pith_runner_run(runner, &step, &error), PITH_ERROR_CANCELLED);
    assert_true(w.next < WIDE_ROWS);
    w.next = 0;
    step.n_out = 0;
    assert_int_equal(pith_runner_run(runner, &step, &error), PITH_OK);
    assert_int_equal(w.next, 0);
    pith_runner_free(runner);
    pith_plan_free(w.plan);
    free(w.table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_steps_are_refused),
        cmocka_unit_test(missing_pages_are_refused),
        cmocka_unit_test(a_trace_tells_every_value_and_changes_none),
        cmocka_unit_test(the_profile_counts_operations_of_all_layers),
        cmocka_unit_test(a_runner_needs_loaded_weights_and_the_right_layout),
        cmocka_unit_test(logits_come_in_blocks_and_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
