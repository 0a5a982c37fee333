/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that works row by row: embeddings, norms, rotations, sums, quantization, and
 * writing keys and values into the cache. A block of rows goes through all steps of a group,
 * step by step, so that it stays in the first cache.
 *
 * Invariant: a row's result depends on that row alone (and on weights, position, token), never
 * on the block it came in. Read next: kernel/ref/norm_ref.c, product.c.
 */
#include "backend/cpu/runner.h"

#include <math.h>
#include <string.h>

static void embed_row(const cpu_context *c, const pith_op *op, uint32_t row) {
    const cpu_value *y = &c->values[op->first_result];
    float *out = cpu_row(y, row);
    pith_weight_decode_row(op->embed.table, (uint64_t)c->runner->step->tokens[row], out);
    if (c->runner->adapts) pith_cpu_adapt_lookup(c, op->embed.table, row, out);
    if (op->embed.scale != 1.0f && op->embed.scale != 0.0f)
        c->runner->program.kernels.scale(out, out, op->embed.scale, y->width);
}

/* Groups (heads) [first, first + n) of a row. */
static void norm_row(const cpu_context *c, const pith_op *op, uint32_t row, uint32_t first,
                     uint32_t n) {
    const pith_norm_op *args = &op->norm;
    const pith_kernels *kernels = &c->runner->program.kernels;
    size_t at = (size_t)first * args->group;
    pith_norm_args group = {.x = cpu_row(&c->values[args->x], row) + at,
                            .y = cpu_row(&c->values[op->first_result], row) + at,
                            .w = args->weight ? args->weight->values : NULL,
                            .b = args->bias ? args->bias->values : NULL,
                            .n = args->group,
                            .eps = args->eps};
    for (uint32_t i = 0; i < n; i++) {
        if (args->kind == PITH_NORM_RMS)
            kernels->rms_norm(&group);
        else
            kernels->layer_norm(&group);
        group.x += args->group;
        group.y += args->group;
    }
}

static void rope_row(const cpu_context *c, const pith_op *op, uint32_t row, uint32_t first,
                     uint32_t n) {
    const cpu_program *p = &c->runner->program;
    const pith_rope *rope = &p->plan->ropes[op->rope.table];
    const float *angles =
        c->runner->angles + 2 * ((size_t)row * p->n_pair + p->rope_first[op->rope.table]);
    float *x = cpu_row(&c->values[op->rope.x], row);
    pith_rope_fn rotate = rope->neox ? p->kernels.rope_neox : p->kernels.rope_norm;
    for (uint32_t h = first; h < first + n; h++)
        rotate(x + (size_t)h * op->rope.head_dim, angles, rope->n_rot);
}

static void op_row(const cpu_context *c, const pith_op *op, uint32_t row) {
    const pith_kernels *kernels = &c->runner->program.kernels;
    if (op->kind == PITH_OP_EMBED) {
        embed_row(c, op, row);
    } else if (op->kind == PITH_OP_NORM) {
        norm_row(c, op, row, 0, c->values[op->norm.x].width / op->norm.group);
    } else if (op->kind == PITH_OP_ROPE) {
        rope_row(c, op, row, 0, op->rope.n_head);
    } else if (op->kind == PITH_OP_ADD) {
        const cpu_value *y = &c->values[op->first_result];
        kernels->add(cpu_row(y, row), cpu_row(&c->values[op->add.a], row),
                     cpu_row(&c->values[op->add.b], row), y->width);
        if (c->runner->adapts && y->ends_layer >= 0)
            pith_cpu_adapt_end(c, y, &(cpu_tile){.row = row, .n_row = 1, .y = cpu_row(y, row)}, 0,
                               y->width);
    } else {
        const cpu_value *x = &c->values[op->unary.x], *y = &c->values[op->first_result];
        uint32_t from = op->kind == PITH_OP_SELECT ? (uint32_t)c->runner->step->out_rows[row] : row;
        if (op->kind == PITH_OP_SELECT)
            memcpy(cpu_row(y, row), cpu_row(x, from), y->width * sizeof(float));
        else if (op->kind == PITH_OP_SCALE)
            kernels->scale(cpu_row(y, row), cpu_row(x, from), op->unary.factor, y->width);
        else
            kernels->softcap(cpu_row(y, row), cpu_row(x, from), op->unary.factor, y->width);
    }
}

/* cos and sin of every rope setting at the row's position; the same numbers as pith_rope_fill. */
static void angles_row(const cpu_context *c, uint32_t row) {
    const cpu_program *p = &c->runner->program;
    float *table = c->runner->angles + 2 * (size_t)row * p->n_pair;
    int32_t position = c->runner->step->positions[row];
    for (uint32_t i = 0; i < p->plan->n_rope; i++) {
        const pith_rope *rope = &p->plan->ropes[i];
        for (uint32_t j = p->rope_first[i]; j < p->rope_first[i] + rope->n_rot / 2; j++) {
            double angle = position * p->frequencies[j];
            table[2 * j] = (float)(cos(angle) * (double)rope->attn_factor);
            table[2 * j + 1] = (float)(sin(angle) * (double)rope->attn_factor);
        }
    }
}

/* k and v of heads [first, first + n) into the page of the row's position. */
static void put_row(const cpu_context *c, const pith_op *op, uint32_t row, uint32_t first,
                    uint32_t n) {
    const pith_runner *runner = c->runner;
    const pith_kernels *kernels = &runner->program.kernels;
    const pith_kv_layout *kv = runner->program.options.kv;
    const pith_kv_layer *layer = &kv->layers[op->attend.layer];
    uint32_t position = (uint32_t)runner->step->positions[row];
    uint8_t *block = cpu_kv_block(runner, runner->step->sequence[row], layer->group,
                                  position / PITH_PAGE_TOKENS);
    pith_kv_put_fn put = kv->storage == PITH_KV_STORE_F32   ? kernels->kv_put_f32
                         : kv->storage == PITH_KV_STORE_F16 ? kernels->kv_put_f16
                                                            : kernels->kv_put_i8;
    const float *k = cpu_row(&c->values[op->attend.k], row);
    const float *v = cpu_row(&c->values[op->attend.v], row);
    for (uint32_t h = first; h < first + n; h++) {
        size_t scale = (size_t)h * PITH_PAGE_TOKENS * sizeof(float);
        put(&(pith_kv_put){.k = block + layer->k + h * layer->k_head_bytes,
                           .v = block + layer->v + h * layer->v_head_bytes,
                           .k_scale = (float *)(void *)(block + layer->k_scale + scale),
                           .v_scale = (float *)(void *)(block + layer->v_scale + scale),
                           .t = position % PITH_PAGE_TOKENS,
                           .k_row = k + (size_t)h * layer->head_dim,
                           .v_row = v + (size_t)h * layer->head_dim_v,
                           .head_dim = layer->head_dim,
                           .head_dim_v = layer->head_dim_v});
    }
}

static void step_rows(const cpu_context *c, const cpu_row_step *step, uint32_t begin,
                      uint32_t end) {
    const cpu_program *p = &c->runner->program;
    if (step->kind == CPU_STEP_QUANTIZE) {
        const cpu_value *x = &c->values[step->value];
        cpu_tile tile = {.row = begin, .n_row = end - begin, .y = cpu_row(x, begin)};
        tile.y_stride = x->stride;
        pith_cpu_quantize_columns(c->runner, x, &tile, 0, x->width);
        return;
    }
    for (uint32_t row = begin; row < end; row++) {
        switch (step->kind) {
        case CPU_STEP_OP: op_row(c, step->op, row); break;
        case CPU_STEP_ANGLES: angles_row(c, row); break;
        case CPU_STEP_KV_PUT: put_row(c, step->op, row, 0, step->op->attend.n_head_kv); break;
        case CPU_STEP_ROUTE: pith_cpu_route(c, &p->moes[step->moe], row); break;
        case CPU_STEP_SUM_EXPERTS:
            pith_cpu_sum_experts(c, &p->moes[step->moe], step->op, row);
            break;
        case CPU_STEP_QUANTIZE: break;
        }
    }
}

void pith_cpu_rows(const cpu_context *context, uint32_t first, uint32_t n, uint32_t begin,
                   uint32_t end) {
    for (uint32_t i = 0; i < n; i++)
        step_rows(context, &context->runner->program.steps[first + i], begin, end);
}

/* The part of a KV head: its query heads too, where the value holds those. */
static void step_head(const cpu_context *c, const cpu_row_step *step, uint32_t row, uint32_t head,
                      uint32_t n_head_kv) {
    const pith_op *op = step->op;
    if (step->kind == CPU_STEP_KV_PUT) {
        put_row(c, op, row, head, 1);
    } else if (op->kind == PITH_OP_ROPE) {
        uint32_t n = op->rope.n_head / n_head_kv;
        rope_row(c, op, row, head * n, n);
    } else {
        uint32_t n = c->values[op->norm.x].width / op->norm.group / n_head_kv;
        norm_row(c, op, row, head * n, n);
    }
}

void pith_cpu_rows_of_head(const cpu_context *context, const cpu_phase *rows,
                           const cpu_block *block, uint32_t head, uint32_t n_head_kv) {
    const cpu_row_step *steps = &context->runner->program.steps[rows->first_step];
    for (uint32_t i = 0; i < rows->n_step; i++)
        for (uint32_t row = 0; row < block->n_row; row++)
            step_head(context, &steps[i], block->first_row + row, head, n_head_kv);
}
