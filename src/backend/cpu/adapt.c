/* SPDX-License-Identifier: Apache-2.0
 *
 * What adapters add to the rows of their sequences (delta.h). A product with adapted weights is
 * two operations: first A x of all its weights, which are few rows of weights, then the product
 * itself, whose chunks add B (A x) to what they made, before bias, activation and residual.
 *
 *   sums   [row][weight][part][adapter rank]      A x, unscaled; adapters of a set side by side
 *            few rows: a part for each span of 1024 k, so that threads share a long A;
 *            more rows: one part, whose spans were added in order
 *
 * The order of sums, for one row, weight and adapter, t and y in f32:
 *   t = span_0 + span_1 + ..., each the float product of kernel.h (pith_mul) over 1024 k
 *   y = y + B (s t), s t rounded, B (..) a float product; adapters one after the other
 * A row of embeddings takes A's row of the token for t. A control vector: x = x + s v.
 *
 * Invariant: the number of chunks depends on the step alone, and a row's additions on that row and
 * its set alone: so threads, batches, tiers and neighbours change no bit. A step without adapters
 * never comes here. Read next: product.c, experts.c.
 */
#include "backend/cpu/runner.h"

#include <string.h>

enum { CHUNK_ROWS = 32, PANEL = PITH_PANEL_ROWS };

_Static_assert((int)CPU_ADAPT_FLOATS >= (int)PITH_DELTA_MAX_RANK, "a row of A x must fit");

/* ---- Whose rows, which pairs ---- */

static bool is_experts(const cpu_phase *phase) {
    return phase->kind == CPU_PHASE_EXPERTS_UP || phase->kind == CPU_PHASE_EXPERTS_DOWN;
}

/* NULL: the row is the model's alone. */
static const pith_adapter_set *set_of(const cpu_context *c, uint32_t row) {
    const pith_step *step = c->runner->step;
    if (is_experts(c->phase)) row = c->runner->program.moes[c->phase->moe].source[row];
    if (c->phase->is_out) row = (uint32_t)step->out_rows[row];
    const pith_adapter_set *set = step->adapters[step->sequence[row]];
    return set && set->n && step->positions[row] >= set->from ? set : NULL;
}

/* How many of the n rows from `row` on share their set. */
static uint32_t same_set(const cpu_context *c, uint32_t row, uint32_t n,
                         const pith_adapter_set **set) {
    uint32_t same = 1;
    *set = set_of(c, row);
    while (same < n && set_of(c, row + same) == *set) same++;
    return same;
}

static bool is_adapted(const cpu_context *c) {
    const pith_step *step = c->runner->step;
    const cpu_product *product = &c->phase->product;
    for (uint32_t s = 0; s < step->n_sequence; s++) {
        const pith_adapter_set *set = step->adapters[s];
        for (uint32_t i = 0; set && i < set->n; i++)
            for (uint32_t w = 0; w < product->n; w++)
                if (pith_delta_find(set->delta[i], product->weight[w], false)) return true;
    }
    return false;
}

/* ---- Where sums lie ---- */

static uint32_t n_span(const pith_weight *weight) {
    return (uint32_t)((weight->ne[0] + CPU_ADAPT_SPAN - 1) / CPU_ADAPT_SPAN);
}

/* Parts of a row's sums in this phase; its weights share x and so their spans. */
static uint32_t n_part(const cpu_context *c) {
    bool is_shared = !is_experts(c->phase) && c->n_row <= CPU_ADAPT_FEW;
    return is_shared ? n_span(c->phase->product.weight[0]) : 1;
}

static size_t row_floats(const cpu_context *c) {
    return (size_t)c->phase->product.n * n_part(c) * c->runner->program.options.adapter_rank;
}

static float *sums_at(const cpu_context *c, uint32_t row, uint32_t which, uint32_t part) {
    size_t at = (size_t)which * n_part(c) + part;
    return c->runner->sums + (row - c->first_row) * row_floats(c) +
           at * c->runner->program.options.adapter_rank;
}

size_t pith_cpu_adapt_floats(const cpu_program *program) {
    size_t most = 0;
    for (uint32_t i = 0; i < program->n_phase; i++) {
        const cpu_phase *phase = &program->phases[i];
        const cpu_product *product = &phase->product;
        if (!product->n || phase->kind == CPU_PHASE_GROUP) continue;
        size_t rows = pith_cpu_value_rows(program, &program->values[product->x]);
        size_t shared = CPU_ADAPT_FEW * (size_t)n_span(product->weight[0]);
        size_t n = product->n * (rows > shared ? rows : shared);
        if (n > most) most = n;
    }
    return most * program->options.adapter_rank;
}

/* ---- A x ---- */

/* Rows that meet one A. */
typedef struct low_task {
    const pith_weight *a;
    const cpu_value *x;
    uint32_t expert, row, n_row;
    float *sums;   /* of the first row */
    size_t stride; /* floats between rows */
} low_task;

static void mul_span(const cpu_context *c, const low_task *t, uint32_t span, float *y,
                     size_t y_stride) {
    const cpu_program *p = &c->runner->program;
    uint32_t from = span * CPU_ADAPT_SPAN, left = (uint32_t)t->a->ne[0] - from;
    size_t element = pith_type_get((uint32_t)t->a->type)->block_bytes;
    pith_mul args = {.w = t->a->data + t->expert * t->a->expert_bytes + from * element * PANEL,
                     .panel_bytes = t->a->panel_bytes,
                     .n_panel = (uint32_t)((t->a->ne[1] + PANEL - 1) / PANEL),
                     .k = left < CPU_ADAPT_SPAN ? left : CPU_ADAPT_SPAN,
                     .x = cpu_row(t->x, t->row) + from,
                     .x_stride = t->x->stride,
                     .n = t->n_row,
                     .y = y,
                     .y_stride = y_stride,
                     .prefetch = c->runner->prefetch};
    p->kernels.mul[t->a->type](&args);
}

/* All spans of a few rows, added in order. */
static void mul_spans(const cpu_context *c, const low_task *t) {
    float *addition = c->runner->scratch[c->thread].addition;
    uint32_t width = (uint32_t)cpu_round_up((size_t)t->a->ne[1], PANEL);
    mul_span(c, t, 0, t->sums, t->stride);
    for (uint32_t span = 1; span < n_span(t->a); span++) {
        mul_span(c, t, span, addition, width);
        for (uint32_t i = 0; i < t->n_row; i++) {
            float *sum = t->sums + i * t->stride;
            c->runner->program.kernels.add(sum, sum, addition + (size_t)i * width, width);
        }
    }
}

/* One span, or all of them (span < 0), of rows that share a set. */
static void make_low(const cpu_context *c, const pith_adapter_set *set, const cpu_tile *tile,
                     uint32_t which, int32_t span) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        const pith_delta_pair *pair = pith_delta_find(set->delta[i], tile->weight, false);
        if (!pair) continue;
        low_task t = {.a = &pair->a, .x = tile->x, .expert = tile->expert, .row = tile->row};
        t.sums = sums_at(c, tile->row, which, span > 0 ? (uint32_t)span : 0) + at;
        t.stride = row_floats(c);
        at += pith_delta_round_rank(pair->rank);
        if (span >= 0) {
            t.n_row = tile->n_row;
            mul_span(c, &t, (uint32_t)span, t.sums, t.stride);
            continue;
        }
        uint32_t most = CPU_ADAPT_FLOATS / pith_delta_round_rank(pair->rank);
        for (uint32_t done = 0; done < tile->n_row; done += t.n_row) {
            t.n_row = tile->n_row - done < most ? tile->n_row - done : most;
            mul_spans(c, &t);
            t.row += t.n_row;
            t.sums += t.n_row * t.stride;
        }
    }
}

/* Rows of the tile, in runs that share a set. */
static void make_low_rows(const cpu_context *c, cpu_tile tile, uint32_t which, int32_t span) {
    for (uint32_t left = tile.n_row; left > 0; left -= tile.n_row) {
        const pith_adapter_set *set;
        tile.n_row = same_set(c, tile.row, left, &set);
        if (set) make_low(c, set, &tile, which, span);
        tile.row += tile.n_row;
    }
}

/* A chunk is a weight and a span (few rows), or a weight and a block of rows. */
static void low_chunk(void *user, uint32_t i, int thread) {
    cpu_context *c = user;
    const cpu_product *product = &c->phase->product;
    uint32_t which = i % product->n, rest = i / product->n;
    bool is_few = c->n_row <= CPU_ADAPT_FEW;
    (void)thread;
    pith_cpu_make_before(c);
    cpu_tile tile = {.weight = product->weight[which], .x = &c->values[product->x]};
    tile.row = c->first_row + (is_few ? 0 : rest * CHUNK_ROWS);
    uint32_t left = c->first_row + c->n_row - tile.row;
    tile.n_row = left < CHUNK_ROWS ? left : CHUNK_ROWS;
    make_low_rows(c, tile, which, is_few ? (int32_t)rest : -1);
}

/* A chunk is a weight and a row of one of its experts. */
static void low_expert_chunk(void *user, uint32_t i, int thread) {
    const cpu_context *c = user;
    const cpu_product *product = &c->phase->product;
    const cpu_moe *moe = &c->runner->program.moes[c->phase->moe];
    uint32_t which = i % product->n, choice = i / product->n;
    (void)thread;
    cpu_tile tile = {.weight = product->weight[which],
                     .x = &c->values[product->x],
                     .expert = (uint32_t)moe->choice[choice],
                     .row = moe->place[choice],
                     .n_row = 1};
    make_low_rows(c, tile, which, -1);
}

void pith_cpu_adapt_inputs(cpu_context *context, uint64_t *index) {
    const cpu_phase *phase = context->phase;
    const cpu_program *p = &context->runner->program;
    uint32_t n = phase->product.n;
    if (!is_adapted(context)) return;
    if (is_experts(phase))
        n *= context->n_row * p->moes[phase->moe].op->n_used;
    else if (context->n_row <= CPU_ADAPT_FEW)
        n *= n_part(context);
    else
        n *= (context->n_row + CHUNK_ROWS - 1) / CHUNK_ROWS;
    pith_pool_for(context->runner->pool, (*index)++, n,
                  is_experts(phase) ? low_expert_chunk : low_chunk, context, context->thread);
}

/* ---- B (A x) ---- */

/* Adds B times rows of low [n_row, rank rounded] to the tile. */
static void add_high(const cpu_context *c, const pith_delta_pair *pair, const cpu_tile *tile) {
    const cpu_program *p = &c->runner->program;
    const cpu_scratch *scratch = &c->runner->scratch[c->thread];
    const pith_weight *b = &pair->b;
    uint32_t most = CPU_ADAPT_FLOATS / PANEL / tile->n_row;
    pith_mul args = {.panel_bytes = b->panel_bytes,
                     .k = pair->rank,
                     .x = scratch->low,
                     .x_stride = pith_delta_round_rank(pair->rank),
                     .n = tile->n_row,
                     .y = scratch->addition,
                     .prefetch = c->runner->prefetch};
    for (uint32_t done = 0; done < tile->n_panel; done += args.n_panel) {
        args.n_panel = tile->n_panel - done < most ? tile->n_panel - done : most;
        args.w = b->data + tile->expert * b->expert_bytes + (tile->panel + done) * b->panel_bytes;
        args.y_stride = (size_t)args.n_panel * PANEL;
        p->kernels.mul[b->type](&args);
        for (uint32_t i = 0; i < tile->n_row; i++) {
            float *y = tile->y + i * tile->y_stride + (size_t)done * PANEL;
            p->kernels.add(y, y, args.y + i * args.y_stride, (uint32_t)args.y_stride);
        }
    }
}

/* s (A x) of the tile's rows into the thread's `low`; sums: where the pair's lie in each row. */
static void scale_low(const cpu_context *c, const cpu_tile *tile, uint32_t which, uint32_t at,
                      const pith_delta_pair *pair, float scale) {
    float *low = c->runner->scratch[c->thread].low;
    uint32_t width = pith_delta_round_rank(pair->rank), n = n_part(c);
    const pith_kernels *kernels = &c->runner->program.kernels;
    for (uint32_t i = 0; i < tile->n_row; i++, low += width) {
        memcpy(low, sums_at(c, tile->row + i, which, 0) + at, width * sizeof *low);
        for (uint32_t part = 1; part < n; part++)
            kernels->add(low, low, sums_at(c, tile->row + i, which, part) + at, width);
        kernels->scale(low, low, scale, width);
    }
}

void pith_cpu_adapt_tile(const cpu_context *context, const cpu_tile *tile, uint32_t which) {
    cpu_tile part = *tile;
    for (uint32_t left = tile->n_row; left > 0; left -= part.n_row) {
        const pith_adapter_set *set;
        part.n_row =
            same_set(context, part.row, left < CPU_ADAPT_ROWS ? left : CPU_ADAPT_ROWS, &set);
        uint32_t at = 0;
        for (uint32_t i = 0; set && i < set->n; i++) {
            const pith_delta_pair *pair = pith_delta_find(set->delta[i], tile->weight, false);
            if (!pair) continue;
            scale_low(context, &part, which, at, pair, set->scale[i] * pair->scale);
            add_high(context, pair, &part);
            at += pith_delta_round_rank(pair->rank);
        }
        part.row += part.n_row;
        part.y += part.n_row * part.y_stride;
    }
}

void pith_cpu_adapt_lookup(const cpu_context *context, const pith_weight *table, uint32_t row,
                           float *y) {
    const cpu_scratch *scratch = &context->runner->scratch[context->thread];
    const pith_adapter_set *set = set_of(context, row);
    cpu_tile tile = {.n_row = 1, .n_panel = (uint32_t)((table->ne[0] + PANEL - 1) / PANEL), .y = y};
    for (uint32_t i = 0; set && i < set->n; i++) {
        const pith_delta_pair *pair = pith_delta_find(set->delta[i], table, true);
        if (!pair) continue;
        uint64_t token = (uint64_t)context->runner->step->tokens[row];
        pith_weight_decode_row(&pair->a, token, scratch->low);
        context->runner->program.kernels.scale(scratch->low, scratch->low,
                                               set->scale[i] * pair->scale, pair->rank);
        add_high(context, pair, &tile);
    }
}

/* ---- Control vectors ---- */

static void add_vector(const cpu_context *c, const float *v, float scale, float *y, uint32_t n) {
    const pith_kernels *kernels = &c->runner->program.kernels;
    float *addition = c->runner->scratch[c->thread].addition;
    for (uint32_t done = 0, now; done < n; done += now) {
        now = n - done < CPU_ADAPT_FLOATS ? n - done : CPU_ADAPT_FLOATS;
        kernels->scale(addition, v + done, scale, now);
        kernels->add(y + done, y + done, addition, now);
    }
}

void pith_cpu_adapt_end(const cpu_context *context, const cpu_value *value, const cpu_tile *tile,
                        uint32_t column, uint32_t n) {
    size_t layer = (size_t)value->ends_layer;
    for (uint32_t row = 0; row < tile->n_row; row++) {
        const pith_adapter_set *set = set_of(context, tile->row + row);
        for (uint32_t i = 0; set && i < set->n; i++) {
            const pith_delta *delta = set->delta[i];
            if (layer >= delta->n_layer || !delta->vectors[layer]) continue;
            if (delta->width != value->width) continue;
            add_vector(context, delta->vectors[layer] + column, set->scale[i],
                       tile->y + row * tile->y_stride, n);
        }
    }
}
