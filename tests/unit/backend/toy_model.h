/* SPDX-License-Identifier: Apache-2.0
 * A small synthetic model with every kind of operation and many weight types, its weights in
 * memory, and the means to run token sequences through a backend with pages of its own making. */
#ifndef PITH_TEST_TOY_MODEL_H
#define PITH_TEST_TOY_MODEL_H

#include "backend/plan.h"
#include "base/memory.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    TOY_EMBD = 256,
    TOY_VOCAB = 317,
    TOY_CTX = 768,
    TOY_LAYERS = 3,
    TOY_WINDOW = 150,
    TOY_EXPERTS = 5
};

typedef struct toy_tensor {
    char name[32];
    pith_type type;
    uint64_t ne[4], offset, bytes;
    unsigned roles;
    const pith_weight **slot;
} toy_tensor;

typedef struct toy {
    uint8_t *blob;
    uint64_t blob_bytes;
    toy_tensor tensors[64];
    int n_tensor;
    pith_source *source;
    pith_weights *weights;
    pith_plan *plan;
    pith_rng rng;
    const pith_weight *embd, *norm[TOY_LAYERS], *norm2[TOY_LAYERS], *bias[TOY_LAYERS], *out_norm;
    const pith_weight *q[TOY_LAYERS], *k[TOY_LAYERS], *v[TOY_LAYERS], *o[TOY_LAYERS], *q_bias,
        *head_norm;
    const pith_weight *gate[TOY_LAYERS], *up[TOY_LAYERS], *down[TOY_LAYERS], *router, *down_bias;
    pith_kv_layout layout;
    pith_kv_layer layers[TOY_LAYERS];
    uint32_t windows[2];
    size_t block_bytes[2];
} toy;

/* The weights as encoded by the first toy: finding scales takes longer than most tests, and all
 * toys have the same. Kept until the program ends. */
static uint8_t *toy_kept;

static inline void toy_tensor_add(toy *t, const char *name, pith_type type, uint64_t k,
                                  uint64_t rows, uint64_t experts, unsigned roles,
                                  const pith_weight **slot) {
    toy_tensor *x = &t->tensors[t->n_tensor++];
    const pith_type_info *info = pith_type_get((uint32_t)type);
    uint64_t row_bytes = 0;
    assert_true(pith_type_row_bytes(type, k, &row_bytes));
    *x = (toy_tensor){.type = type, .ne = {k, rows, experts, 1}, .roles = roles, .slot = slot};
    snprintf(x->name, sizeof x->name, "%s", name);
    x->offset = (t->blob_bytes + 31) / 32 * 32;
    x->bytes = row_bytes * rows * experts;
    t->blob_bytes = x->offset + x->bytes;
    if (toy_kept) return;
    t->blob = realloc(t->blob, t->blob_bytes);
    float *row = malloc(k * sizeof *row);
    for (uint64_t r = 0; r < rows * experts; r++) {
        bool is_norm = roles == PITH_WEIGHT_VECTOR;
        for (uint64_t i = 0; i < k; i++)
            row[i] = (float)(is_norm ? 1 + 0.2 * pith_rng_normal(&t->rng)
                                     : pith_rng_normal(&t->rng) / sqrt((double)k));
        info->encode(row, t->blob + x->offset + r * row_bytes, k, NULL);
    }
    free(row);
}

/* Layer 0: grouped norms, NEOX, biases. Layer 1: window, softcap, layer norm, GELU. Layer 2:
 * experts. */
static inline void toy_declare(toy *t) {
    const unsigned linear = PITH_WEIGHT_LINEAR, vector = PITH_WEIGHT_VECTOR;
    const pith_type q[] = {PITH_TYPE_Q4_K, PITH_TYPE_Q4_0, PITH_TYPE_Q8_0};
    const pith_type v[] = {PITH_TYPE_Q6_K, PITH_TYPE_F16, PITH_TYPE_Q5_0};
    const pith_type o[] = {PITH_TYPE_Q5_K, PITH_TYPE_IQ4_NL, PITH_TYPE_BF16};
    const pith_type up[] = {PITH_TYPE_Q4_1, PITH_TYPE_Q5_1, PITH_TYPE_Q8_0};
    const pith_type down[] = {PITH_TYPE_Q6_K, PITH_TYPE_Q5_0, PITH_TYPE_Q4_0};
    const uint64_t ff[] = {512, 416, 96}, experts[] = {1, 1, TOY_EXPERTS};
    char name[32];
    toy_tensor_add(t, "embd", PITH_TYPE_Q6_K, TOY_EMBD, TOY_VOCAB, 1, linear | PITH_WEIGHT_ROWS,
                   &t->embd);
    for (int i = 0; i < TOY_LAYERS; i++) {
#define ADD(what, ...)                                                                             \
    (snprintf(name, sizeof name, "%d." what, i), toy_tensor_add(t, name, __VA_ARGS__))
        ADD("norm", PITH_TYPE_F32, TOY_EMBD, 1, 1, vector, &t->norm[i]);
        ADD("norm2", PITH_TYPE_F32, TOY_EMBD, 1, 1, vector, &t->norm2[i]);
        ADD("bias", PITH_TYPE_F32, TOY_EMBD, 1, 1, vector, &t->bias[i]);
        ADD("q", q[i], TOY_EMBD, 256, 1, linear, &t->q[i]);
        ADD("k", q[i], TOY_EMBD, 128, 1, linear, &t->k[i]);
        ADD("v", v[i], TOY_EMBD, 128, 1, linear, &t->v[i]);
        ADD("o", o[i], 256, TOY_EMBD, 1, linear, &t->o[i]);
        ADD("gate", up[i], TOY_EMBD, ff[i], experts[i], linear, &t->gate[i]);
        ADD("up", i == 1 ? PITH_TYPE_F32 : up[i], TOY_EMBD, ff[i], experts[i], linear, &t->up[i]);
        ADD("down", ff[i] % 256 ? down[i] : PITH_TYPE_Q6_K, ff[i], TOY_EMBD, experts[i], linear,
            &t->down[i]);
#undef ADD
    }
    toy_tensor_add(t, "q_bias", PITH_TYPE_F32, 256, 1, 1, vector, &t->q_bias);
    toy_tensor_add(t, "head_norm", PITH_TYPE_F32, 64, 1, 1, vector, &t->head_norm);
    toy_tensor_add(t, "down_bias", PITH_TYPE_F16, TOY_EMBD, 1, 1, vector, &t->down_bias);
    toy_tensor_add(t, "router", PITH_TYPE_F32, TOY_EMBD, TOY_EXPERTS, 1, linear, &t->router);
    toy_tensor_add(t, "out_norm", PITH_TYPE_F32, TOY_EMBD, 1, 1, vector, &t->out_norm);
}

static inline pith_value toy_attention(toy *t, int i, pith_value x) {
    pith_plan *plan = t->plan;
    pith_norm_op norm = {.kind = i == 1 ? PITH_NORM_LAYER : PITH_NORM_RMS,
                         .x = x,
                         .weight = t->norm[i],
                         .bias = i == 1 ? t->bias[i] : NULL,
                         .eps = 1e-5f};
    pith_value h = pith_plan_norm(plan, "attn_norm", &norm), qkv[3];
    pith_linear_op linear = {
        .x = h, .n = 3, .weight = {t->q[i], t->k[i], t->v[i]}, .residual = PITH_NO_VALUE};
    if (i == 0) linear.bias[0] = t->q_bias;
    pith_plan_linear(plan, "qkv", &linear, qkv);
    if (i == 0)
        for (int j = 0; j < 2; j++)
            qkv[j] = pith_plan_norm(
                plan, "head_norm",
                &(pith_norm_op){.x = qkv[j], .weight = t->head_norm, .group = 64, .eps = 1e-6f});
    pith_rope rope = {.n_rot = i == 2 ? 32 : 64,
                      .neox = i != 1,
                      .base = i == 1 ? 500.0f : 10000.0f,
                      .freq_scale = i == 1 ? 0.5f : 1.0f,
                      .attn_factor = i == 2 ? 1.25f : 1.0f};
    uint32_t table = pith_plan_rope_table(plan, &rope);
    pith_plan_rope(plan, "q_rope", qkv[0], table, 4, 64);
    pith_plan_rope(plan, "k_rope", qkv[1], table, 2, 64);
    pith_attend_op attend = {.q = qkv[0],
                             .k = qkv[1],
                             .v = qkv[2],
                             .layer = (uint32_t)i,
                             .n_head = 4,
                             .n_head_kv = 2,
                             .head_dim = 64,
                             .head_dim_v = 64,
                             .scale = 0.125f,
                             .window = i == 1 ? TOY_WINDOW : 0,
                             .softcap = i == 1 ? 3.0f : 0};
    h = pith_plan_attend(plan, "attend", &attend);
    linear = (pith_linear_op){
        .x = h, .n = 1, .weight = {t->o[i]}, .residual = i == 1 ? PITH_NO_VALUE : x};
    if (i == 2) linear.scale = 0.5f;
    pith_plan_linear(plan, "o", &linear, &h);
    return i == 1 ? pith_plan_add(plan, "attn_add", h, x) : h;
}

static inline pith_value toy_feed_forward(toy *t, int i, pith_value x) {
    pith_plan *plan = t->plan;
    pith_value h = pith_plan_norm(plan, "ffn_norm",
                                  &(pith_norm_op){.x = x, .weight = t->norm2[i], .eps = 1e-5f});
    if (i == 2)
        return pith_plan_moe(plan, "moe",
                             &(pith_moe_op){.x = h,
                                            .residual = x,
                                            .router = t->router,
                                            .gate = t->gate[i],
                                            .up = t->up[i],
                                            .down = t->down[i],
                                            .n_expert = TOY_EXPERTS,
                                            .n_used = 2,
                                            .gating = PITH_GATING_SOFTMAX,
                                            .normalise = true,
                                            .scale = 1.5f,
                                            .act = PITH_ACT_SILU});
    pith_linear_op op = {.x = h,
                         .n = 2,
                         .weight = {t->gate[i], t->up[i]},
                         .act = i ? PITH_ACT_GELU : PITH_ACT_SILU,
                         .residual = PITH_NO_VALUE};
    pith_plan_linear(plan, "gate_up", &op, &h);
    op = (pith_linear_op){
        .x = h, .n = 1, .weight = {t->down[i]}, .bias = {t->down_bias}, .residual = x};
    pith_plan_linear(plan, "down", &op, &h);
    return h;
}

static inline void toy_record(toy *t) {
    pith_plan *plan = t->plan = pith_plan_new();
    pith_value x = pith_plan_embed(plan, "embed", t->embd, 4.0f);
    for (int i = 0; i < TOY_LAYERS; i++) {
        pith_plan_layer(plan, i);
        x = toy_attention(t, i, x);
        x = toy_feed_forward(t, i, x);
        pith_plan_end_layer(plan, x);
    }
    pith_plan_layer(plan, -1);
    x = pith_plan_select(plan, "select", x);
    x = pith_plan_norm(plan, "out_norm",
                       &(pith_norm_op){.x = x, .weight = t->out_norm, .eps = 1e-5f});
    pith_linear_op head = {.x = x, .n = 1, .weight = {t->embd}, .residual = PITH_NO_VALUE};
    pith_plan_linear(plan, "head", &head, &x);
    x = pith_plan_softcap(plan, "softcap", x, 5.0f);
    x = pith_plan_scale(plan, "scale", x, 2.0f);
    pith_plan_output(plan, x);
    pith_error error;
    if (pith_plan_check(plan, &error)) fail_msg("%s", error.text);
}

static inline void toy_layout(toy *t, pith_kv_storage storage) {
    size_t element = storage == PITH_KV_STORE_F32 ? 4 : storage == PITH_KV_STORE_F16 ? 2 : 1;
    size_t head = 64 * 64 * element;
    t->block_bytes[0] = t->block_bytes[1] = 0;
    t->windows[0] = 0;
    t->windows[1] = TOY_WINDOW;
    for (int i = 0; i < TOY_LAYERS; i++) {
        size_t *end = &t->block_bytes[i == 1];
        t->layers[i] = (pith_kv_layer){.group = i == 1,
                                       .n_head_kv = 2,
                                       .head_dim = 64,
                                       .head_dim_v = 64,
                                       .window = i == 1 ? TOY_WINDOW : 0,
                                       .k = *end,
                                       .v = *end + 2 * head,
                                       .k_scale = *end + 4 * head,
                                       .v_scale = *end + 4 * head + 512,
                                       .k_head_bytes = head,
                                       .v_head_bytes = head};
        *end += 4 * head + 1024;
    }
    t->layout = (pith_kv_layout){storage, TOY_LAYERS, 2, t->layers, t->windows, t->block_bytes};
}

static inline void toy_open(toy *t, pith_load load, pith_kv_storage storage, uint32_t features) {
    pith_error error = {0};
    *t = (toy){0};
    pith_rng_init(&t->rng, 7);
    toy_declare(t);
    if (!toy_kept) toy_kept = t->blob;
    t->blob = malloc(t->blob_bytes);
    memcpy(t->blob, toy_kept, t->blob_bytes);
    assert_int_equal(pith_source_open_memory(t->blob, t->blob_bytes, &t->source, NULL), PITH_OK);
    assert_int_equal(pith_weights_new(&t->weights, NULL), PITH_OK);
    for (int i = 0; i < t->n_tensor; i++) {
        const toy_tensor *x = &t->tensors[i];
        pith_weight_source source = {.name = x->name,
                                     .type = x->type,
                                     .n_dims = 3,
                                     .ne = {x->ne[0], x->ne[1], x->ne[2], x->ne[3]},
                                     .source = t->source,
                                     .offset = x->offset,
                                     .bytes = x->bytes};
        if (pith_weights_add(t->weights, &source, x->roles, x->slot, &error))
            fail_msg("%s", error.text);
    }
    pith_weights_options options = {
        .load = load, .n_threads = 2, .features = features, .check_tensors = true};
    if (pith_weights_load(t->weights, &options, &error)) fail_msg("%s", error.text);
    toy_layout(t, storage);
    toy_record(t);
}

static inline void toy_close(toy *t) {
    pith_plan_free(t->plan);
    pith_weights_free(t->weights);
    pith_source_close(t->source);
    free(t->blob);
}

/* ---- Running sequences ---- */

enum { TOY_BLOCKS = TOY_CTX / 64, TOY_SEQUENCES = 3 };

typedef struct toy_run {
    toy *model;
    pith_runner *runner;
    uint8_t *blocks[TOY_SEQUENCES][2][TOY_BLOCKS];
    pith_kv_table tables[TOY_SEQUENCES * 2];
    uint32_t length[TOY_SEQUENCES];
    float *logits; /* [limit, TOY_VOCAB] of the last step */
    uint32_t n_logits;
    const pith_adapter_set *adapters[TOY_SEQUENCES]; /* all NULL: the step has none */
    bool mixed; /* rows are in the fast contract, but for a few whose position says so */
} toy_run;

static inline int toy_on_logits(void *user, uint32_t first, uint32_t n, const float *logits,
                                size_t stride) {
    toy_run *run = user;
    for (uint32_t i = 0; i < n; i++)
        memcpy(run->logits + (size_t)(first + i) * TOY_VOCAB, logits + i * stride,
               TOY_VOCAB * sizeof(float));
    run->n_logits = first + n;
    return 0;
}

static inline void toy_run_open(toy_run *run, toy *model, const pith_backend_options *options) {
    pith_error error = {0};
    pith_backend_options o = *options;
    *run = (toy_run){.model = model};
    o.kv = &model->layout;
    o.n_ctx = TOY_CTX;
    if (pith_runner_new(model->plan, &o, &run->runner, &error)) fail_msg("%s", error.text);
    run->logits = malloc((size_t)o.step_limit * TOY_VOCAB * sizeof(float));
    for (int s = 0; s < TOY_SEQUENCES; s++)
        for (int g = 0; g < 2; g++) {
            for (int b = 0; b < TOY_BLOCKS; b++) {
                run->blocks[s][g][b] = pith_alloc_aligned(model->block_bytes[g]);
                memset(run->blocks[s][g][b], 0xFF,
                       model->block_bytes[g]); /* NaN where not written */
            }
            run->tables[s * 2 + g] = (pith_kv_table){run->blocks[s][g], TOY_BLOCKS};
        }
}

static inline void toy_run_close(toy_run *run) {
    pith_runner_free(run->runner);
    for (int s = 0; s < TOY_SEQUENCES; s++)
        for (int g = 0; g < 2; g++)
            for (int b = 0; b < TOY_BLOCKS; b++) pith_free_aligned(run->blocks[s][g][b]);
    free(run->logits);
}

/* tokens[i] of sequence[i], all of them with logits; rows of a sequence are neighbours. */
static inline void toy_step(toy_run *run, const int32_t *tokens, const int32_t *sequence,
                            uint32_t n) {
    int32_t positions[TOY_CTX], out[TOY_CTX];
    bool is_fast[TOY_CTX];
    pith_error error = {0};
    for (uint32_t i = 0; i < n; i++) {
        positions[i] = (int32_t)run->length[sequence[i]]++;
        out[i] = (int32_t)i;
        is_fast[i] = positions[i] > 2 && positions[i] % 17 != 5;
    }
    bool adapts = false;
    for (int s = 0; s < TOY_SEQUENCES; s++) adapts |= run->adapters[s] != NULL;
    pith_step step = {.n = n,
                      .n_out = n,
                      .n_sequence = TOY_SEQUENCES,
                      .adapters = adapts ? run->adapters : NULL,
                      .tokens = tokens,
                      .positions = positions,
                      .sequence = sequence,
                      .is_fast = run->mixed ? is_fast : NULL,
                      .out_rows = out,
                      .tables = run->tables,
                      .on_logits = toy_on_logits,
                      .user = run};
    if (pith_runner_run(run->runner, &step, &error)) fail_msg("%s", error.text);
    assert_int_equal(run->n_logits, n);
}

/* All tokens of one sequence in steps of `batch`; logits of all rows into out [n, TOY_VOCAB]. */
static inline void toy_prefill(toy_run *run, const int32_t *tokens, uint32_t n, uint32_t batch,
                               float *out) {
    int32_t sequence[TOY_CTX] = {0};
    for (uint32_t i = 0; i < n; i += batch) {
        uint32_t now = n - i < batch ? n - i : batch;
        toy_step(run, tokens + i, sequence, now);
        memcpy(out + (size_t)i * TOY_VOCAB, run->logits, (size_t)now * TOY_VOCAB * sizeof(float));
    }
}

/* ---- Ways to compute the same ---- */

static inline void toy_fill_tokens(int32_t *tokens, uint32_t n, uint64_t seed) {
    pith_rng rng;
    pith_rng_init(&rng, seed);
    for (uint32_t i = 0; i < n; i++) tokens[i] = (int32_t)(pith_rng_next(&rng) % TOY_VOCAB);
}

typedef struct toy_variant {
    const char *name;
    pith_load load;
    int32_t n_threads;
    uint32_t batch;
    const char *tier; /* NULL: the best one */
} toy_variant;

/* n rows of logits to the bit. */
static inline void toy_expect_same(const char *name, const float *a, const float *b, uint32_t n) {
    for (uint32_t i = 0; i < n * TOY_VOCAB; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            fail_msg("%s: row %u logit %u is %.9g, expected %.9g", name, i / TOY_VOCAB,
                     i % TOY_VOCAB, (double)b[i], (double)a[i]);
}

/* Root mean square of the difference over that of the expected logits of a row. */
static inline double toy_distance(const float *logits, const double *expected) {
    double difference = 0, size = 0;
    for (uint32_t i = 0; i < TOY_VOCAB; i++) {
        double d = (double)logits[i] - expected[i];
        difference += d * d;
        size += expected[i] * expected[i];
    }
    return sqrt(difference / size);
}

#endif
