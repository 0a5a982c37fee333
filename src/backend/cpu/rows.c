/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that works row by row: embeddings, norms, rotations, sums, quantization, and writing keys and values into
 * the cache. A block of rows goes through all steps of a group, step by step, so that it stays in the first cache.
 *
 * Invariant: a row's result depends on that row alone (and on weights, position, token), never on the block it came in.
 * Read next: kernel/ref/norm_ref.c, product.c.
 */
#include "backend/cpu/runner.h"

#include <math.h>
#include <string.h>

static void embed_row(const cpu_context *c, const pith_op *op, uint32_t row) {
    const cpu_value *y = &c->values[op->first_result];
    float *out = cpu_row(y, row);
    pith_weight_decode_row(op->embed.table, (uint64_t)c->runner->step->tokens[row], out);
    if (op->embed.scale != 1.0f && op->embed.scale != 0.0f)
        c->runner->program.kernels.scale(out, out, op->embed.scale, y->width);
}

static void norm_row(const cpu_context *c, const pith_op *op, uint32_t row) {
    const pith_norm_op *n = &op->norm;
    const pith_kernels *kernels = &c->runner->program.kernels;
    uint32_t width = c->values[n->x].width;
    pith_norm_args args = {.x = cpu_row(&c->values[n->x], row),
                           .y = cpu_row(&c->values[op->first_result], row),
                           .w = n->weight ? n->weight->values : NULL,
                           .b = n->bias ? n->bias->values : NULL,
                           .n = n->group,
                           .eps = n->eps};
    for (uint32_t i = 0; i < width; i += n->group) {
        if (n->kind == PITH_NORM_RMS)
            kernels->rms_norm(&args);
        else
            kernels->layer_norm(&args);
        args.x += n->group;
        args.y += n->group;
    }
}

static void rope_row(const cpu_context *c, const pith_op *op, uint32_t row) {
    const cpu_program *p = &c->runner->program;
    const pith_rope *rope = &p->plan->ropes[op->rope.table];
    const float *angles =
        c->runner->angles + 2 * ((size_t)row * p->n_pair + p->rope_first[op->rope.table]);
    float *x = cpu_row(&c->values[op->rope.x], row);
    pith_rope_fn rotate = rope->neox ? p->kernels.rope_neox : p->kernels.rope_norm;
    for (uint32_t h = 0; h < op->rope.n_head; h++)
        rotate(x + (size_t)h * op->rope.head_dim, angles, rope->n_rot);
}

static void op_row(const cpu_context *c, const pith_op *op, uint32_t row) {
    const pith_kernels *kernels = &c->runner->program.kernels;
    if (op->kind == PITH_OP_EMBED) {
        embed_row(c, op, row);
    } else if (op->kind == PITH_OP_NORM) {
        norm_row(c, op, row);
    } else if (op->kind == PITH_OP_ROPE) {
        rope_row(c, op, row);
    } else if (op->kind == PITH_OP_ADD) {
        const cpu_value *y = &c->values[op->first_result];
        kernels->add(cpu_row(y, row), cpu_row(&c->values[op->add.a], row),
                     cpu_row(&c->values[op->add.b], row), y->width);
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

/* The row's k and v, head by head, into the page of its position. */
static void put_row(const cpu_context *c, const pith_op *op, uint32_t row) {
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
    for (uint32_t h = 0; h < layer->n_head_kv; h++) {
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
        p->kernels.quantize(cpu_row(x, begin), x->stride, end - begin, x->width, &x->q8,
                            begin - x->first_row);
        return;
    }
    for (uint32_t row = begin; row < end; row++) {
        switch (step->kind) {
        case CPU_STEP_OP: op_row(c, step->op, row); break;
        case CPU_STEP_ANGLES: angles_row(c, row); break;
        case CPU_STEP_KV_PUT: put_row(c, step->op, row); break;
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
