/* SPDX-License-Identifier: Apache-2.0
 *
 * What adapters add to the rows of their sequences (delta.h). A product with adapted weights is
 * two operations: first A x of all its weights, which are few rows of weights, then the product
 * itself, whose chunks add B (A x) to what they made, before bias, activation and residual.
 *
 *   sums   [row][weight][part][adapter rank]      A x, unscaled; adapters of a set side by side
 *            few rows: a part for each span of 512 k, so that threads share a long A;
 *            more rows: one part, whose spans were added in order
 *
 * The order of sums, for one row and weight, t_i, d and y in f32:
 *   t_i = span_0 + span_1 + ..., each the float product of kernel.h (pith_mul) over 512 k of A_i x
 *   d = B_0 (s_0 t_0) + B_1 (s_1 t_1) + ..., s t rounded, each B (..) a float product
 *   y = y + d
 * A row of embeddings takes A's row of the token for t, and adapters are added to it one after the
 * other. A control vector: x = x + s v.
 *
 * Invariant: the number of chunks depends on the step alone, and a row's additions on that row and
 * its set alone: so threads, batches, tiers and neighbours change no bit. A step without adapters
 * never comes here. Read next: product.c, experts.c.
 */
#include "backend/cpu/runner.h"

#include "base/prefetch.h"

#include <string.h>

enum { CHUNK_ROWS = 32, PANEL = PITH_PANEL_ROWS };

_Static_assert((int)CPU_ADAPT_ROWS <= 3 * (int)CPU_ADAPT_FEW, "rows of low must fit");
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

/* Rows whose spans are shared out to threads. */
static bool is_few(const cpu_context *c) {
    return !is_experts(c->phase) && c->n_row <= CPU_ADAPT_FEW;
}

/* Parts of a row's sums in this phase; its weights share x and so their spans. */
static uint32_t n_part(const cpu_context *c) {
    return is_few(c) ? n_span(c->phase->product.weight[0]) : 1;
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
    bool few = is_few(c);
    (void)thread;
    pith_cpu_make_before(c);
    cpu_tile tile = {.weight = product->weight[which], .x = &c->values[product->x]};
    tile.row = c->first_row + (few ? 0 : rest * CHUNK_ROWS);
    uint32_t left = c->first_row + c->n_row - tile.row;
    tile.n_row = left < CHUNK_ROWS ? left : CHUNK_ROWS;
    make_low_rows(c, tile, which, few ? (int32_t)rest : -1);
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
    else if (is_few(context))
        n *= n_part(context);
    else
        n *= (context->n_row + CHUNK_ROWS - 1) / CHUNK_ROWS;
    pith_pool_for(context->runner->pool, (*index)++, n,
                  is_experts(phase) ? low_expert_chunk : low_chunk, context, context->thread);
}

/* ---- B (A x) ---- */

/* s (A x) of rows that share a set, adapters side by side as in the sums: low [n_row, rank]. */
static void scale_low(const cpu_context *c, const pith_adapter_set *set, const cpu_tile *tile,
                      uint32_t which, float *low) {
    const pith_kernels *kernels = &c->runner->program.kernels;
    uint32_t rank = c->runner->program.options.adapter_rank, n = n_part(c), at = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        const pith_delta_pair *pair = pith_delta_find(set->delta[i], tile->weight, false);
        if (!pair) continue;
        uint32_t width = pith_delta_round_rank(pair->rank);
        for (uint32_t row = 0; row < tile->n_row; row++) {
            float *t = low + (size_t)row * rank + at;
            memcpy(t, sums_at(c, tile->row + row, which, 0) + at, width * sizeof *t);
            for (uint32_t part = 1; part < n; part++)
                kernels->add(t, t, sums_at(c, tile->row + row, which, part) + at, width);
            kernels->scale(t, t, set->scale[i] * pair->scale, width);
        }
        at += width;
    }
}

/* The place of a few rows' low: the thread has those of all weights of the phase. */
static float *few_low(const cpu_context *c, uint32_t row, uint32_t which) {
    size_t at = (size_t)which * CPU_ADAPT_FEW + (row - c->first_row);
    return c->runner->scratch[c->thread].low + at * c->runner->program.options.adapter_rank;
}

void pith_cpu_adapt_begin(cpu_context *context) {
    const cpu_product *product = &context->phase->product;
    if (context->has_low || !is_few(context)) return;
    context->has_low = true;
    cpu_tile tile = {.n_row = 1};
    for (uint32_t which = 0; which < product->n; which++)
        for (uint32_t i = 0; i < context->n_row; i++) {
            tile.weight = product->weight[which];
            tile.row = context->first_row + i;
            const pith_adapter_set *set = set_of(context, tile.row);
            if (set) scale_low(context, set, &tile, which, few_low(context, tile.row, which));
        }
}

/* y [n_row, 16 * n_panel] = B low. */
static void mul_high(const cpu_context *c, const pith_delta_pair *pair, const cpu_tile *tile,
                     const float *low, float *y) {
    const cpu_program *p = &c->runner->program;
    const pith_weight *b = &pair->b;
    pith_mul args = {.w = b->data + tile->expert * b->expert_bytes + tile->panel * b->panel_bytes,
                     .panel_bytes = b->panel_bytes,
                     .n_panel = tile->n_panel,
                     .k = pair->rank,
                     .x = low,
                     .x_stride = p->options.adapter_rank,
                     .n = tile->n_row,
                     .y = y,
                     .y_stride = (size_t)tile->n_panel * PANEL,
                     .prefetch = c->runner->prefetch};
    p->kernels.mul[b->type](&args);
}

/* What a set adds to a tile of at most CPU_ADAPT_FLOATS, into sum [n_row, 16 * n_panel]. */
static void sum_high(const cpu_context *c, const pith_adapter_set *set, const cpu_tile *tile,
                     const float *low, float *sum) {
    uint32_t at = 0, n = tile->n_row * tile->n_panel * PANEL;
    for (uint32_t i = 0; i < set->n; i++) {
        const pith_delta_pair *pair = pith_delta_find(set->delta[i], tile->weight, false);
        if (!pair) continue;
        float *own = at ? sum + CPU_ADAPT_FLOATS : sum;
        mul_high(c, pair, tile, low + at, own);
        if (at) c->runner->program.kernels.add(sum, sum, own, n);
        at += pith_delta_round_rank(pair->rank);
    }
}

/* Rows that share a set: as many panels at a time as the thread's memory holds. */
static void add_high(const cpu_context *c, const pith_adapter_set *set, const cpu_tile *tile,
                     const float *low) {
    float *sum = c->runner->scratch[c->thread].addition;
    uint32_t most = CPU_ADAPT_FLOATS / PANEL / tile->n_row;
    cpu_tile part = *tile;
    for (uint32_t left = tile->n_panel; left > 0; left -= part.n_panel) {
        part.n_panel = left < most ? left : most;
        uint32_t width = part.n_panel * PANEL;
        sum_high(c, set, &part, low, sum);
        for (uint32_t row = 0; row < part.n_row; row++) {
            float *y = part.y + row * part.y_stride;
            c->runner->program.kernels.add(y, y, sum + (size_t)row * width, width);
        }
        part.panel += part.n_panel;
        part.y += width;
    }
}

/* B of a panel range, of every adapter of a set. */
static void ask_for(const pith_adapter_set *set, const cpu_tile *tile) {
    for (uint32_t i = 0; i < set->n; i++) {
        const pith_delta_pair *pair = pith_delta_find(set->delta[i], tile->weight, false);
        if (!pair) continue;
        const pith_weight *b = &pair->b;
        pith_prefetch(b->data + tile->panel * b->panel_bytes, tile->n_panel * b->panel_bytes);
    }
}

/* B is read in pieces too short for the processor to see them coming, while W is being read. */
void pith_cpu_adapt_ahead(const cpu_context *context, const cpu_tile *tile, uint32_t which) {
    cpu_tile part = *tile;
    if (!is_few(context)) return;
    part.weight = context->phase->product.weight[which];
    for (uint32_t left = tile->n_row; left > 0; left -= part.n_row) {
        const pith_adapter_set *set;
        part.n_row = same_set(context, part.row, left, &set);
        if (set) ask_for(set, &part);
        part.row += part.n_row;
    }
}

static bool has_pair(const pith_adapter_set *set, const pith_weight *weight) {
    for (uint32_t i = 0; i < set->n; i++)
        if (pith_delta_find(set->delta[i], weight, false)) return true;
    return false;
}

/* Rows that share a set. */
static void adapt_rows(const cpu_context *c, const pith_adapter_set *set, const cpu_tile *tile,
                       uint32_t which) {
    if (!has_pair(set, tile->weight)) return;
    if (is_few(c)) {
        add_high(c, set, tile, few_low(c, tile->row, which));
    } else {
        float *low = c->runner->scratch[c->thread].low;
        scale_low(c, set, tile, which, low);
        add_high(c, set, tile, low);
    }
}

void pith_cpu_adapt_tile(const cpu_context *context, const cpu_tile *tile, uint32_t which) {
    cpu_tile part = *tile;
    for (uint32_t left = tile->n_row; left > 0; left -= part.n_row) {
        const pith_adapter_set *set;
        uint32_t most = left < CPU_ADAPT_ROWS ? left : CPU_ADAPT_ROWS;
        part.n_row = same_set(context, part.row, most, &set);
        if (set) adapt_rows(context, set, &part, which);
        part.row += part.n_row;
        part.y += part.n_row * part.y_stride;
    }
}

/* Of a row of embeddings: A's row of the token stands for A x. */
void pith_cpu_adapt_lookup(const cpu_context *context, const pith_weight *table, uint32_t row,
                           float *y) {
    const cpu_scratch *scratch = &context->runner->scratch[context->thread];
    const pith_kernels *kernels = &context->runner->program.kernels;
    const pith_adapter_set *set = set_of(context, row);
    cpu_tile tile = {.weight = table, .n_row = 1};
    uint32_t n_panel = (uint32_t)((table->ne[0] + PANEL - 1) / PANEL),
             most = CPU_ADAPT_FLOATS / PANEL;
    for (uint32_t i = 0; set && i < set->n; i++) {
        const pith_delta_pair *pair = pith_delta_find(set->delta[i], table, true);
        if (!pair) continue;
        uint64_t token = (uint64_t)context->runner->step->tokens[row];
        pith_weight_decode_row(&pair->a, token, scratch->low);
        kernels->scale(scratch->low, scratch->low, set->scale[i] * pair->scale, pair->rank);
        for (tile.panel = 0; tile.panel < n_panel; tile.panel += tile.n_panel) {
            tile.n_panel = n_panel - tile.panel < most ? n_panel - tile.panel : most;
            mul_high(context, pair, &tile, scratch->low, scratch->addition);
            float *part = y + (size_t)tile.panel * PANEL;
            kernels->add(part, part, scratch->addition, tile.n_panel * PANEL);
        }
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
