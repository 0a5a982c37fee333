/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over the KV cache. Query rows of all heads that share a KV head, for a block of tokens of one sequence, go
 * over the pages together; the partial (m, l, o) of each page is joined in page order.
 *
 *   pages of the sequence   | 0 | 1 | 2 | 3 | 4 |
 *   query token at 200      |---|---|---|-|            sees [0, 200] of 320
 *   with a window of 100          |-|---|-|            pages before the window are skipped
 *
 * Invariant: a row's result is a fold over absolute pages in increasing order, each page's partial computed for that row
 * alone: so batches, threads and the way of sharing out work change no bit.
 * Read next: kernel/ref/attend_ref.c.
 */
#include "backend/cpu/runner.h"

#include <math.h>
#include <string.h>

enum { TOKENS = PITH_PAGE_TOKENS };

/* One task: a block of tokens and a KV head. */
typedef struct attend_task {
    const cpu_context *context;
    const pith_attend_op *op;
    const pith_kv_layer *layer;
    const cpu_block *block;
    const cpu_scratch *scratch;
    uint32_t head;       /* KV head */
    uint32_t group;      /* query heads of it */
    uint32_t n;          /* query rows: tokens x group, token-major */
    int32_t first, last; /* positions of the block's tokens */
    uint32_t q_stride, o_stride;
} attend_task;

static attend_task task_of(const cpu_context *c, uint32_t index) {
    const pith_runner *runner = c->runner;
    const pith_attend_op *op = &c->phase->op->attend;
    attend_task t = {.context = c,
                     .op = op,
                     .layer = &runner->program.options.kv->layers[op->layer],
                     .scratch = &runner->scratch[c->thread],
                     .head = index % op->n_head_kv,
                     .group = op->n_head / op->n_head_kv};
    t.block = &runner->blocks[runner->n_block - 1 - index / op->n_head_kv]; /* long ones first */
    t.n = t.block->n_row * t.group;
    t.first = runner->step->positions[t.block->first_row];
    t.last = runner->step->positions[t.block->first_row + t.block->n_row - 1];
    t.q_stride = (uint32_t)cpu_round_up(op->head_dim, 16);
    t.o_stride = (uint32_t)cpu_round_up(op->head_dim_v, 16);
    return t;
}

static void gather_queries(const attend_task *t) {
    const pith_attend_op *op = t->op;
    const cpu_value *q = &t->context->values[op->q];
    const pith_kernels *kernels = &t->context->runner->program.kernels;
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t head = t->head * t->group + i % t->group;
        const float *row = cpu_row(q, t->block->first_row + i / t->group);
        memcpy(t->scratch->q + (size_t)i * t->q_stride, row + (size_t)head * op->head_dim,
               op->head_dim * sizeof(float));
    }
    if (t->context->runner->program.options.kv->storage == PITH_KV_STORE_I8)
        kernels->quantize(t->scratch->q, t->q_stride, t->n, op->head_dim, &t->scratch->q8, 0);
}

static int32_t clamp_token(int64_t token) {
    return token < 0 ? 0 : token > TOKENS ? TOKENS : (int32_t)token;
}

/* Which tokens of a page each query row sees. */
static void fill_ranges(const attend_task *t, uint32_t page) {
    const int32_t *positions = t->context->runner->step->positions + t->block->first_row;
    int64_t start = (int64_t)page * TOKENS;
    for (uint32_t i = 0; i < t->n; i++) {
        int64_t position = positions[i / t->group];
        t->scratch->end[i] = clamp_token(position + 1 - start);
        t->scratch->begin[i] =
            t->op->window ? clamp_token(position + 1 - t->op->window - start) : 0;
    }
}

static void attend_page(const attend_task *t, uint32_t page) {
    const pith_runner *runner = t->context->runner;
    const pith_kernels *kernels = &runner->program.kernels;
    const pith_kv_layer *layer = t->layer;
    const cpu_scratch *s = t->scratch;
    const uint8_t *block = cpu_kv_block(runner, t->block->sequence, layer->group, page);
    size_t scale = (size_t)t->head * TOKENS * sizeof(float);
    fill_ranges(t, page);
    pith_attend args = {
        .page = {.k = block + layer->k + t->head * layer->k_head_bytes,
                 .v = block + layer->v + t->head * layer->v_head_bytes,
                 .k_scale = (const float *)(const void *)(block + layer->k_scale + scale),
                 .v_scale = (const float *)(const void *)(block + layer->v_scale + scale)},
        .q = s->q,
        .q_stride = t->q_stride,
        .q8 = &s->q8,
        .n = t->n,
        .begin = s->begin,
        .end = s->end,
        .head_dim = t->op->head_dim,
        .head_dim_v = t->op->head_dim_v,
        .scale = t->op->scale,
        .softcap = t->op->softcap,
        .m = s->m,
        .l = s->l,
        .o = s->o,
        .o_stride = t->o_stride};
    switch (runner->program.options.kv->storage) {
    case PITH_KV_STORE_F32: kernels->attend_f32(&args); break;
    case PITH_KV_STORE_F16: kernels->attend_f16(&args); break;
    case PITH_KV_STORE_I8: kernels->attend_i8(&args); break;
    }
}

static void merge_page(const attend_task *t) {
    const cpu_scratch *s = t->scratch;
    pith_merge_fn merge = t->context->runner->program.kernels.merge;
    for (uint32_t i = 0; i < t->n; i++) {
        size_t o = (size_t)i * t->o_stride;
        merge(&s->sum_m[i], &s->sum_l[i], s->sum_o + o, s->m[i], s->l[i], s->o + o,
              t->op->head_dim_v);
    }
}

/* sum_o / sum_l into the result, int8 too where the next product wants it and the columns fill whole units. */
static void write_result(const attend_task *t) {
    const cpu_program *p = &t->context->runner->program;
    const cpu_value *y = &t->context->values[t->context->phase->op->first_result];
    const cpu_scratch *s = t->scratch;
    uint32_t dim = t->op->head_dim_v, columns = t->group * dim;
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t head = t->head * t->group + i % t->group;
        float *out = cpu_row(y, t->block->first_row + i / t->group) + (size_t)head * dim;
        p->kernels.scale(out, s->sum_o + (size_t)i * t->o_stride, 1.0f / s->sum_l[i], dim);
    }
    if (!y->needs_q8 || columns % CPU_UNIT != 0) return;
    cpu_tile tile = {.row = t->block->first_row, .n_row = t->block->n_row, .y_stride = y->stride};
    tile.y = cpu_row(y, tile.row) + (size_t)t->head * columns;
    pith_cpu_quantize_columns(p, y, &tile, t->head * columns, columns);
}

static void attend_chunk(void *user, uint32_t index, int thread) {
    const cpu_context *c = user;
    (void)thread;
    attend_task t = task_of(c, index);
    int64_t oldest = t.op->window ? (int64_t)t.first + 1 - t.op->window : 0;
    uint32_t page = oldest > 0 ? (uint32_t)(oldest / TOKENS) : 0;
    gather_queries(&t);
    for (uint32_t i = 0; i < t.n; i++) t.scratch->sum_m[i] = -INFINITY;
    for (; page <= (uint32_t)t.last / TOKENS; page++) {
        attend_page(&t, page);
        merge_page(&t);
    }
    write_result(&t);
}

void pith_cpu_attend(cpu_context *context, uint64_t *index) {
    const pith_runner *runner = context->runner;
    uint32_t n_chunk = runner->n_block * context->phase->op->attend.n_head_kv;
    pith_pool_for(runner->pool, (*index)++, n_chunk, attend_chunk, context, context->thread);
}
