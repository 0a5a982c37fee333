/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over the KV cache. Query rows of all heads that share a KV head, for a block of
 * tokens of one sequence, go over the pages together; the partial (m, l, o) of each page is
 * joined in page order.
 *
 *   pages of the sequence   | 0 | 1 | 2 | 3 | 4 |
 *   query token at 200      |---|---|---|-|            sees [0, 200] of 320
 *   with a window of 100          |-|---|-|            pages before the window are skipped
 *
 * Invariant: a row's result is a fold over absolute pages in increasing order, each page's
 * partial computed for that row alone: so batches, threads and the way of sharing out work
 * change no bit. Read next: kernel/ref/attend_ref.c.
 */
#include "backend/cpu/runner.h"

#include <math.h>
#include <string.h>

_Static_assert((int)PITH_PAGE_TOKENS == (int)PITH_KV_BLOCK_TOKENS, "a page is a block's tokens");

enum { TOKENS = PITH_PAGE_TOKENS, CHUNKS_PER_THREAD = 4, SPLIT_FROM_PAGES = 4 };

/* One task: a block of tokens, a KV head, and a range of pages. */
typedef struct attend_task {
    const cpu_context *context;
    const pith_attend_op *op;
    const pith_kv_layer *layer;
    const cpu_block *block;
    const cpu_scratch *scratch;
    uint32_t head;                 /* KV head */
    uint32_t group;                /* query heads of it */
    uint32_t n;                    /* query rows: tokens x group, token-major */
    uint32_t first_page, end_page; /* that the block sees */
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
    const int32_t *positions = runner->step->positions + t.block->first_row;
    int64_t oldest = op->window ? (int64_t)positions[0] + 1 - op->window : 0;
    t.first_page = oldest > 0 ? (uint32_t)(oldest / TOKENS) : 0;
    t.end_page = (uint32_t)positions[t.block->n_row - 1] / TOKENS + 1;
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

static const uint8_t *block_of(const attend_task *t, uint32_t page) {
    return cpu_kv_block(t->context->runner, t->block->sequence, t->layer->group, page);
}

/* Partials of all query rows over one page into m, l, o. */
static void attend_page(const attend_task *t, uint32_t page, float *m, float *l, float *o) {
    const pith_runner *runner = t->context->runner;
    const pith_kernels *kernels = &runner->program.kernels;
    const pith_kv_layer *layer = t->layer;
    const cpu_scratch *s = t->scratch;
    const uint8_t *block = block_of(t, page);
    const uint8_t *next = page + 1 < t->end_page ? block_of(t, page + 1) : NULL;
    size_t k = layer->k + t->head * layer->k_head_bytes,
           v = layer->v + t->head * layer->v_head_bytes;
    size_t scale = (size_t)t->head * TOKENS * sizeof(float);
    fill_ranges(t, page);
    pith_attend args = {
        .page = {.k = block + k,
                 .v = block + v,
                 .k_scale = (const float *)(const void *)(block + layer->k_scale + scale),
                 .v_scale = (const float *)(const void *)(block + layer->v_scale + scale)},
        .next_k = next ? next + k : NULL,
        .next_v = next ? next + v : NULL,
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
        .m = m,
        .l = l,
        .o = o,
        .o_stride = t->o_stride};
    switch (runner->program.options.kv->storage) {
    case PITH_KV_STORE_F32: kernels->attend_f32(&args); break;
    case PITH_KV_STORE_F16: kernels->attend_f16(&args); break;
    case PITH_KV_STORE_I8: kernels->attend_i8(&args); break;
    }
}

/* Joins a page's partials into the running sums. */
static void merge_page(const attend_task *t, const float *m, const float *l, const float *o) {
    const cpu_scratch *s = t->scratch;
    pith_merge_fn merge = t->context->runner->program.kernels.merge;
    for (uint32_t i = 0; i < t->n; i++) {
        size_t at = (size_t)i * t->o_stride;
        merge(&s->sum_m[i], &s->sum_l[i], s->sum_o + at, m[i], l[i], o + at, t->op->head_dim_v);
    }
}

/* sum_o / sum_l into the result, int8 too where the next product wants it and the columns fill
 * whole units. */
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
    pith_cpu_quantize_columns(t->context->runner, y, &tile, t->head * columns, columns);
}

static void clear_sums(const attend_task *t) {
    for (uint32_t i = 0; i < t->n; i++) t->scratch->sum_m[i] = -INFINITY;
}

/* ---- A task is a KV head: all pages, one after the other ---- */

static void whole_chunk(void *user, uint32_t index, int thread) {
    const cpu_context *c = user;
    attend_task t = task_of(c, index);
    const cpu_scratch *s = t.scratch;
    (void)thread;
    if (c->before) pith_cpu_rows_of_head(c, c->before, t.block, t.head, t.op->n_head_kv);
    gather_queries(&t);
    clear_sums(&t);
    for (uint32_t page = t.first_page; page < t.end_page; page++) {
        attend_page(&t, page, s->m, s->l, s->o);
        merge_page(&t, s->m, s->l, s->o);
    }
    write_result(&t);
}

/* ---- Few tasks, many pages -------------------------------------------------------------------
 * Pages are shared out, their partials kept and joined in a second operation. Partials of slot s
 * (a page, counted from the round's first): rows [s * rows, (s + 1) * rows) of split_m, _l, _o; a
 * KV head's rows are neighbours there. Rounds bound the memory; sums wait in slot 0 of the next
 * round. */

typedef struct split_run {
    cpu_context *context;
    uint32_t rows;   /* query rows of the step: tokens x heads */
    uint32_t n_slot; /* pages of a round */
    uint32_t n_part; /* chunks of a KV head and round */
    uint32_t round;
} split_run;

static size_t split_row(const split_run *run, const attend_task *t, uint32_t slot) {
    return (size_t)slot * run->rows + t->block->first_row * t->op->n_head + t->head * t->n;
}

/* Pages [*first, *end) of a round. */
static void round_pages(const split_run *run, const attend_task *t, uint32_t *first,
                        uint32_t *end) {
    uint32_t n = t->end_page - t->first_page, begin = run->round * run->n_slot;
    *first = t->first_page + (begin < n ? begin : n);
    *end = t->first_page + (n - (*first - t->first_page) < run->n_slot ? n : begin + run->n_slot);
}

static void partial_chunk(void *user, uint32_t index, int thread) {
    const split_run *run = user;
    const pith_runner *runner = run->context->runner;
    attend_task t = task_of(run->context, index / run->n_part);
    uint32_t part = index % run->n_part, first, end;
    (void)thread;
    round_pages(run, &t, &first, &end);
    uint32_t n = end - first, begin = first + n * part / run->n_part;
    uint32_t stop = first + n * (part + 1) / run->n_part;
    if (begin == stop) return;
    gather_queries(&t);
    for (uint32_t page = begin; page < stop; page++) {
        size_t row = split_row(run, &t, page - first);
        attend_page(&t, page, runner->split_m + row, runner->split_l + row,
                    runner->split_o + row * t.o_stride);
    }
}

static void join_chunk(void *user, uint32_t index, int thread) {
    const split_run *run = user;
    const pith_runner *runner = run->context->runner;
    attend_task t = task_of(run->context, index);
    const cpu_scratch *s = t.scratch;
    uint32_t first, end;
    size_t kept = split_row(run, &t, run->n_slot);
    size_t o_bytes = (size_t)t.n * t.o_stride * sizeof(float);
    (void)thread;
    round_pages(run, &t, &first, &end);
    clear_sums(&t);
    if (run->round) {
        memcpy(s->sum_m, runner->split_m + kept, t.n * sizeof(float));
        memcpy(s->sum_l, runner->split_l + kept, t.n * sizeof(float));
        memcpy(s->sum_o, runner->split_o + kept * t.o_stride, o_bytes);
    }
    for (uint32_t page = first; page < end; page++) {
        size_t row = split_row(run, &t, page - first);
        merge_page(&t, runner->split_m + row, runner->split_l + row,
                   runner->split_o + row * t.o_stride);
    }
    if (end == t.end_page) {
        write_result(&t); /* again and the same when other sequences need more rounds */
    }
    memcpy(runner->split_m + kept, s->sum_m, t.n * sizeof(float));
    memcpy(runner->split_l + kept, s->sum_l, t.n * sizeof(float));
    memcpy(runner->split_o + kept * t.o_stride, s->sum_o, o_bytes);
}

/* Pages that a block sees, at most. */
static uint32_t most_pages(const pith_runner *runner, const pith_attend_op *op) {
    uint64_t seen = ((uint64_t)op->window + runner->step->n) / TOKENS + 2;
    return op->window && seen < runner->max_pages ? (uint32_t)seen : runner->max_pages;
}

static void run_split(cpu_context *c, uint64_t *index) {
    pith_runner *runner = c->runner;
    const cpu_program *p = &runner->program;
    const pith_attend_op *op = &c->phase->op->attend;
    uint32_t n_task = runner->n_block * op->n_head_kv;
    uint32_t wanted = CHUNKS_PER_THREAD * (uint32_t)p->options.n_threads;
    split_run run = {.context = c, .rows = runner->step->n * op->n_head};
    run.n_slot = (uint32_t)(p->split_rows / run.rows) - 1; /* the last one keeps the sums */
    run.n_part = (wanted + n_task - 1) / n_task;
    uint32_t n_page = most_pages(runner, op);
    for (; run.round * run.n_slot < n_page; run.round++) {
        pith_pool_for(runner->pool, (*index)++, n_task * run.n_part, partial_chunk, &run,
                      c->thread);
        pith_pool_for(runner->pool, (*index)++, n_task, join_chunk, &run, c->thread);
    }
}

bool pith_cpu_attend_is_whole(const pith_runner *runner, const cpu_phase *phase) {
    const pith_attend_op *op = &phase->op->attend;
    uint32_t n_task = runner->n_block * op->n_head_kv, n = runner->step->n;
    uint32_t n_thread = (uint32_t)runner->program.options.n_threads;
    bool is_split = most_pages(runner, op) >= SPLIT_FROM_PAGES && n <= CPU_SPLIT_ROWS &&
                    n_thread > 1 && n_task < CHUNKS_PER_THREAD * n_thread;
    return runner->is_single && !is_split;
}

void pith_cpu_attend(cpu_context *context, uint64_t *index) {
    const pith_runner *runner = context->runner;
    uint32_t n_chunk = runner->n_block * context->phase->op->attend.n_head_kv;
    if (runner->is_single && !pith_cpu_attend_is_whole(runner, context->phase))
        run_split(context, index);
    else
        pith_pool_for(runner->pool, (*index)++, n_chunk, whole_chunk, context, context->thread);
}
