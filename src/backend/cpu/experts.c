/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixture of experts: each row chooses experts, rows are grouped by expert, each expert's
 * weights are read once for all its rows, and every row sums its experts in the order in which
 * the router chose them.
 *
 *   choice  row 0: e2 e0   row 1: e2 e1     gathered  | e0: row 0 | e1: row 1 | e2: row 0, row 1 |
 *   share         .7 .3          .6 .4      start     0           1           2                  4
 *   place          2  0           3  1      source    0           1           0      1
 *
 * Invariant: ties in the router go to the lower index, rows of an expert keep their order, and a
 * row's result depends on that row alone. The number of chunks depends on the number of rows
 * only, not on what the router chose: a thread that comes late must count as the others did.
 * Read next: product.c.
 */
#include "backend/cpu/runner.h"

#include <math.h>
#include <string.h>

enum { PANEL = PITH_PANEL_ROWS, CHUNKS_PER_THREAD = 4 };
static const float least_sum = 6.103515625e-5f;

/* ---- Routing ---- */

/* Probabilities of all experts, into p. */
static void gate_all(const pith_kernels *kernels, pith_gating gating, const float *logits, float *p,
                     uint32_t n) {
    float sum = 0.0f, max = gating == PITH_GATING_SIGMOID ? 0.0f : kernels->max(logits, n);
    float sign = gating == PITH_GATING_SIGMOID ? -1.0f : 1.0f;
    for (uint32_t i = 0; i < n; i++) p[i] = sign * (logits[i] - max);
    kernels->exp(p, p, n);
    for (uint32_t i = 0; i < n; i++) sum += p[i];
    for (uint32_t i = 0; i < n; i++)
        p[i] = gating == PITH_GATING_SIGMOID ? 1.0f / (1.0f + p[i]) : p[i] / sum;
}

/* The n_used largest, largest first, ties to the lower index; NaN is never larger, but indices
 * stay valid. */
static void choose(const float *p, uint32_t n, uint32_t n_used, int32_t *choice) {
    for (uint32_t j = 0; j < n_used; j++) {
        int32_t best = -1;
        for (uint32_t i = 0; i < n; i++) {
            bool is_taken = false;
            for (uint32_t k = 0; k < j; k++) is_taken |= choice[k] == (int32_t)i;
            if (!is_taken && (best < 0 || p[i] > p[best])) best = (int32_t)i;
        }
        choice[j] = best;
    }
}

static void share_out(const cpu_moe *moe, const float *p, const int32_t *choice, float *share) {
    const pith_moe_op *op = moe->op;
    float sum = 0.0f;
    for (uint32_t j = 0; j < op->n_used; j++) {
        share[j] = p[choice[j]];
        sum += share[j];
    }
    if (sum < least_sum) sum = least_sum;
    for (uint32_t j = 0; j < op->n_used; j++) {
        if (op->normalise) share[j] /= sum;
        if (op->scale != 0.0f) share[j] *= op->scale;
    }
}

void pith_cpu_route(const cpu_context *context, const cpu_moe *moe, uint32_t row) {
    const pith_kernels *kernels = &context->runner->program.kernels;
    const pith_moe_op *op = moe->op;
    const float *logits = cpu_row(&context->values[moe->logits], row);
    float *p = context->runner->scratch[context->thread].row;
    int32_t *choice = moe->choice + (size_t)row * op->n_used;
    float *share = moe->share + (size_t)row * op->n_used;
    if (op->gating == PITH_GATING_SOFTMAX_SELECTED) {
        choose(logits, op->n_expert, op->n_used, choice);
        float *chosen = p + op->n_expert;
        for (uint32_t j = 0; j < op->n_used; j++) chosen[j] = logits[choice[j]];
        gate_all(kernels, PITH_GATING_SOFTMAX, chosen, chosen, op->n_used);
        for (uint32_t j = 0; j < op->n_used; j++) p[choice[j]] = chosen[j];
    } else {
        gate_all(kernels, op->gating, logits, p, op->n_expert);
        choose(p, op->n_expert, op->n_used, choice);
    }
    share_out(moe, p, choice, share);
}

/* ---- Grouping ---- */

static void group_chunk(void *user, uint32_t i, int thread) {
    const cpu_context *c = user;
    const cpu_moe *moe = &c->runner->program.moes[c->phase->moe];
    uint32_t n_used = moe->op->n_used, n = c->n_row * n_used, n_expert = moe->op->n_expert;
    uint32_t *start = moe->start, n_active = 0;
    (void)i;
    (void)thread;
    memset(start, 0, (n_expert + 1) * sizeof *start);
    for (uint32_t j = 0; j < n; j++) start[moe->choice[j] + 1]++;
    for (uint32_t e = 0; e < n_expert; e++) {
        if (start[e + 1]) moe->active[n_active++] = (int32_t)e;
        start[e + 1] += start[e];
    }
    if (n_active < n_expert) moe->active[n_active] = -1;
    for (uint32_t j = 0; j < n; j++) { /* start[e] runs to the end of e's rows */
        moe->place[j] = start[moe->choice[j]]++;
        moe->source[moe->place[j]] = j / n_used;
    }
    memmove(start + 1, start, n_expert * sizeof *start);
    start[0] = 0;
}

static void gather_chunk(void *user, uint32_t i, int thread) {
    const cpu_context *c = user;
    const cpu_moe *moe = &c->runner->program.moes[c->phase->moe];
    const cpu_value *x = &c->values[moe->op->x], *y = &c->values[moe->gathered];
    uint32_t from = moe->source[i];
    (void)thread;
    if (y->needs_f32 || c->runner->adapts)
        memcpy(cpu_row(y, i), cpu_row(x, from), x->width * sizeof(float));
    if (!y->needs_q8) return;
    const pith_q8 *a = &x->q8, *b = &y->q8;
    memcpy(b->q + i * b->q_stride, a->q + from * a->q_stride, a->q_stride);
    memcpy(b->d + i * b->d_stride, a->d + from * a->d_stride, a->d_stride * sizeof *a->d);
    memcpy(b->sum + i * b->d_stride, a->sum + from * a->d_stride, a->d_stride * sizeof *a->sum);
    memcpy(b->sum16 + 2 * i * b->d_stride, a->sum16 + 2 * from * a->d_stride,
           2 * a->d_stride * sizeof *a->sum16);
}

/* ---- Products of experts ---- */

typedef struct experts_run {
    cpu_context *context;
    uint32_t range, n_range; /* panels of a chunk, chunks of an expert */
} experts_run;

static void experts_chunk(void *user, uint32_t i, int thread) {
    const experts_run *run = user;
    const cpu_context *c = run->context;
    const cpu_product *product = &c->phase->product;
    const cpu_moe *moe = &c->runner->program.moes[c->phase->moe];
    int32_t expert = -1;
    (void)thread;
    for (uint32_t a = 0; a <= i / run->n_range; a++) {
        expert = moe->active[a];
        if (expert < 0) return; /* fewer experts are active than there could be */
    }
    const pith_weight *weight = product->weight[0];
    uint32_t n_panel = (uint32_t)((weight->ne[1] + PANEL - 1) / PANEL),
             end = moe->start[expert + 1];
    cpu_tile tile = {.weight = weight,
                     .expert = (uint32_t)expert,
                     .x = &c->values[product->x],
                     .panel = i % run->n_range * run->range};
    tile.n_panel = n_panel - tile.panel < run->range ? n_panel - tile.panel : run->range;
    const cpu_value *y = &c->values[product->y[0]];
    for (tile.row = moe->start[expert]; tile.row < end; tile.row += CPU_TOKEN_BLOCK) {
        tile.n_row = end - tile.row < CPU_TOKEN_BLOCK ? end - tile.row : CPU_TOKEN_BLOCK;
        if (product->act != PITH_ACT_NONE) {
            pith_cpu_joined(c, tile);
            continue;
        }
        tile.y = cpu_row(y, tile.row) + (size_t)tile.panel * PANEL;
        tile.y_stride = y->stride;
        pith_cpu_tile(c, &tile);
        if (c->runner->adapts) pith_cpu_adapt_tile(c, &tile, 0);
    }
}

static void run_experts(cpu_context *c, uint64_t *index) {
    const cpu_program *p = &c->runner->program;
    const cpu_moe *moe = &p->moes[c->phase->moe];
    uint32_t used = c->n_row * moe->op->n_used, unit = CPU_UNIT / PANEL;
    uint32_t n_active = used < moe->op->n_expert ? used : moe->op->n_expert;
    uint32_t n_panel = (uint32_t)((c->phase->product.weight[0]->ne[1] + PANEL - 1) / PANEL);
    uint32_t wanted = CHUNKS_PER_THREAD * (uint32_t)p->options.n_threads;
    uint32_t per_expert = (wanted + n_active - 1) / n_active;
    experts_run run = {.context = c};
    run.range = (uint32_t)cpu_round_up((n_panel + per_expert - 1) / per_expert, unit);
    run.n_range = (n_panel + run.range - 1) / run.range;
    pith_pool_for(c->runner->pool, (*index)++, n_active * run.n_range, experts_chunk, &run,
                  c->thread);
}

void pith_cpu_experts(cpu_context *context, uint64_t *index) {
    pith_runner *runner = context->runner;
    if (!context->n_row) return;
    if (context->phase->kind != CPU_PHASE_GROUP) {
        if (runner->adapts) pith_cpu_adapt_inputs(context, index);
        run_experts(context, index);
        return;
    }
    uint32_t n = context->n_row * runner->program.moes[context->phase->moe].op->n_used;
    pith_pool_for(runner->pool, (*index)++, 1, group_chunk, context, context->thread);
    pith_pool_for(runner->pool, (*index)++, n, gather_chunk, context, context->thread);
}

void pith_cpu_sum_experts(const cpu_context *context, const cpu_moe *moe, const pith_op *op,
                          uint32_t row) {
    const pith_kernels *kernels = &context->runner->program.kernels;
    const cpu_value *y = &context->values[op->first_result], *outer = &context->values[moe->outer];
    float *out = cpu_row(y, row);
    for (uint32_t j = 0; j < moe->op->n_used; j++) {
        size_t at = (size_t)row * moe->op->n_used + j;
        float *part = cpu_row(outer, moe->place[at]);
        kernels->scale(j ? part : out, part, moe->share[at], y->width);
        if (j) kernels->add(out, out, part, y->width);
    }
    if (op->moe.residual != PITH_NO_VALUE)
        kernels->add(out, cpu_row(&context->values[op->moe.residual], row), out, y->width);
    if (!context->runner->adapts || y->ends_layer < 0) return;
    cpu_tile tile = {.row = row, .n_row = 1, .y = out};
    pith_cpu_adapt_end(context, y, &tile, 0, y->width);
}
