/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan becomes phases. Operations that work row by row (norm, rope, add, quantization, writing
 * K and V) join the group that is open; a product or attention closes the group. So a layer of a
 * usual model has these phases:
 *
 *   rows: norm, quantize   product: q k v   rows: rope, rope, put K V   attend, quantize
 *   product: o + residual   rows: norm, quantize   product: act(gate) * up, quantize
 *   product: down + residual
 *
 * Invariant: a step of a group reads only what earlier phases made, or its own row of what the
 * group made before. Rows groups marked repeatable make values that nobody but the next product
 * reads, so each thread may make its own. Values know the first and last phase that touch them;
 * place.c packs them by that. Read next: place.c, runner.c.
 */
#include "backend/cpu/cpu_program.h"

#include "base/machine.h"

#include <inttypes.h>
#include <string.h>

enum { TAIL_BYTES = 16 << 20, MAX_STEP = 1 << 16 };

typedef struct builder {
    cpu_program *program;
    bool is_open; /* a rows group is open */
    bool open_is_out;
    uint32_t open_step; /* its first step */
    bool *has_q8;       /* [n_value] a phase makes its q8 rows */
    bool no_memory;
} builder;

bool pith_cpu_takes_q8(const cpu_program *program, const pith_weight *weight) {
    return !program->options.full_precision && program->kernels.mul[weight->type] &&
           pith_mul_takes_q8(weight->type);
}

bool pith_cpu_takes_fast(const cpu_program *program, const pith_weight *weight) {
    return pith_cpu_takes_q8(program, weight) && program->kernels.fast_pays[weight->type];
}

bool pith_cpu_decodes(const cpu_program *program, const pith_weight *weight) {
    return !program->kernels.mul[weight->type] ||
           (program->options.full_precision && pith_mul_takes_q8(weight->type));
}

/* ---- Lists ---- */

static void *append(builder *b, void *list, uint32_t *n, uint32_t *capacity, size_t size) {
    if (*n == *capacity && !b->no_memory) {
        uint32_t wanted = *capacity ? *capacity * 2 : 64;
        size_t bytes;
        void *grown = pith_size_mul(wanted, size, &bytes) ? pith_realloc(list, bytes) : NULL;
        if (grown) {
            list = grown;
            *capacity = wanted;
        }
        b->no_memory = !grown;
    }
    if (!b->no_memory) memset((uint8_t *)list + (*n)++ * size, 0, size);
    return list;
}

static cpu_phase *append_phase(builder *b, cpu_phase_kind kind, const pith_op *op, bool is_out) {
    cpu_program *p = b->program;
    p->phases = append(b, p->phases, &p->n_phase, &p->phase_capacity, sizeof *p->phases);
    if (b->no_memory) return NULL;
    cpu_phase *phase = &p->phases[p->n_phase - 1];
    phase->kind = kind;
    phase->op = op;
    phase->label = pith_op_kind_name(op->kind);
    phase->is_out = is_out;
    return phase;
}

static pith_value append_value(builder *b, uint32_t width, uint32_t multiple, bool is_out) {
    cpu_program *p = b->program;
    p->values = append(b, p->values, &p->n_value, &p->value_capacity, sizeof *p->values);
    if (b->no_memory) return 0;
    p->values[p->n_value - 1] = (cpu_value){.width = width,
                                            .multiple = multiple,
                                            .is_out = is_out,
                                            .ends_layer = -1,
                                            .first_phase = UINT32_MAX};
    return (pith_value)(p->n_value - 1);
}

/* ---- Groups ---- */

static void close_group(builder *b) {
    cpu_program *p = b->program;
    if (!b->is_open) return;
    b->is_open = false;
    const cpu_row_step *first = &p->steps[b->open_step];
    cpu_phase *phase = append_phase(b, CPU_PHASE_ROWS, first->op, b->open_is_out);
    if (!phase) return;
    phase->first_step = b->open_step;
    phase->n_step = p->n_step - b->open_step;
    if (first->kind == CPU_STEP_QUANTIZE) phase->label = "quantize";
}

static void append_step(builder *b, cpu_row_step step, bool is_out) {
    cpu_program *p = b->program;
    if (b->is_open && b->open_is_out != is_out) close_group(b);
    p->steps = append(b, p->steps, &p->n_step, &p->step_capacity, sizeof *p->steps);
    if (b->no_memory) return;
    if (!b->is_open) b->open_step = p->n_step - 1;
    b->is_open = true;
    b->open_is_out = is_out;
    p->steps[p->n_step - 1] = step;
}

/* The phase being built reads or writes the value. */
static void touch(builder *b, pith_value value) {
    cpu_value *v = &b->program->values[value];
    uint32_t now = b->program->n_phase;
    if (v->first_phase > now) v->first_phase = now;
    if (v->last_phase < now) v->last_phase = now;
}

static void append_op_step(builder *b, const pith_op *op, bool is_out) {
    append_step(b, (cpu_row_step){.kind = CPU_STEP_OP, .op = op}, is_out);
    pith_value inputs[PITH_PLAN_MAX_INPUTS];
    uint32_t n = pith_op_inputs(op, inputs);
    for (uint32_t i = 0; i < n; i++) touch(b, inputs[i]);
    for (uint32_t i = 0; i < op->n_result; i++) touch(b, op->first_result + (pith_value)i);
}

/* Makes x's q8 rows in the open group unless they exist. */
static void quantize(builder *b, const pith_op *op, pith_value x) {
    if (b->has_q8[x]) return;
    b->has_q8[x] = true;
    append_step(b, (cpu_row_step){.kind = CPU_STEP_QUANTIZE, .op = op, .value = x},
                b->program->values[x].is_out);
    touch(b, x);
}

/* ---- Products ---- */

static void touch_product(builder *b, const cpu_product *product) {
    touch(b, product->x);
    if (product->residual != PITH_NO_VALUE) touch(b, product->residual);
    uint32_t n = product->act == PITH_ACT_NONE ? product->n : 1;
    for (uint32_t i = 0; i < n; i++) touch(b, product->y[i]);
}

static void add_product(builder *b, const pith_op *op, const cpu_product *product) {
    cpu_program *p = b->program;
    for (uint32_t i = 0; i < product->n; i++)
        if (pith_cpu_takes_q8(p, product->weight[i])) quantize(b, op, product->x);
    close_group(b);
    touch_product(b, product);
    cpu_phase *phase = append_phase(b, CPU_PHASE_PRODUCT, op, p->values[product->x].is_out);
    if (!phase) return;
    phase->product = *product;
    if (product->act != PITH_ACT_NONE && p->values[product->y[0]].needs_q8)
        b->has_q8[product->y[0]] = true; /* in the same pass */
}

static void add_linear(builder *b, const pith_op *op) {
    const pith_linear_op *l = &op->linear;
    cpu_product product = {
        .x = l->x, .n = l->n, .act = l->act, .residual = l->residual, .scale = l->scale};
    for (uint32_t i = 0; i < l->n; i++) {
        product.weight[i] = l->weight[i];
        product.bias[i] = l->bias[i];
        product.y[i] = op->first_result + (pith_value)(i < op->n_result ? i : 0);
    }
    add_product(b, op, &product);
}

static void add_attend(builder *b, const pith_op *op) {
    const pith_attend_op *a = &op->attend;
    append_step(b, (cpu_row_step){.kind = CPU_STEP_KV_PUT, .op = op}, false);
    touch(b, a->k);
    touch(b, a->v);
    close_group(b);
    touch(b, a->q);
    touch(b, op->first_result);
    cpu_value *result = &b->program->values[op->first_result];
    uint32_t columns = a->n_head / a->n_head_kv * a->head_dim_v;
    append_phase(b, CPU_PHASE_ATTEND, op, false);
    if (result->needs_q8 && columns % CPU_UNIT == 0) b->has_q8[op->first_result] = true;
}

/* ---- Experts ---- */

/* The values of a mixture that the plan does not name, and who reads them in which form. */
static cpu_moe *append_moe(builder *b, const pith_op *op) {
    cpu_program *p = b->program;
    cpu_moe *moe = &p->moes[p->n_moe++];
    const pith_moe_op *o = &op->moe;
    bool is_out = p->values[o->x].is_out;
    uint32_t width = p->values[o->x].width;
    *moe = (cpu_moe){.op = o};
    moe->logits = append_value(b, o->n_expert, 1, is_out);
    moe->gathered = append_value(b, width, o->n_used, is_out);
    moe->inner = append_value(b, (uint32_t)o->gate->ne[1], o->n_used, is_out);
    moe->outer = append_value(b, width, o->n_used, is_out);
    if (b->no_memory) return NULL;
    cpu_value *v = p->values;
    bool gate_q8 = pith_cpu_takes_q8(p, o->gate), up_q8 = pith_cpu_takes_q8(p, o->up);
    v[moe->logits].needs_f32 = v[moe->outer].needs_f32 = true;
    v[moe->gathered].needs_q8 = gate_q8 || up_q8;
    v[moe->gathered].needs_f32 = !gate_q8 || !up_q8;
    v[moe->inner].needs_q8 = pith_cpu_takes_q8(p, o->down);
    v[moe->inner].needs_f32 = !v[moe->inner].needs_q8;
    return moe;
}

static void add_expert_phase(builder *b, cpu_phase_kind kind, const pith_op *op, uint32_t moe,
                             const cpu_product *product) {
    touch_product(b, product);
    cpu_phase *phase = append_phase(b, kind, op, b->program->values[op->moe.x].is_out);
    if (!phase) return;
    phase->product = *product;
    phase->moe = moe;
}

static void add_moe(builder *b, const pith_op *op) {
    cpu_program *p = b->program;
    const pith_moe_op *o = &op->moe;
    uint32_t index = p->n_moe;
    cpu_moe *moe = append_moe(b, op);
    if (!moe) return;
    bool is_out = p->values[o->x].is_out;
    if (p->values[moe->gathered].needs_q8) quantize(b, op, o->x);
    cpu_product router = {.x = o->x, .n = 1, .weight = {o->router}, .residual = PITH_NO_VALUE};
    router.y[0] = moe->logits;
    add_product(b, op, &router);
    append_step(b, (cpu_row_step){.kind = CPU_STEP_ROUTE, .op = op, .moe = index}, is_out);
    touch(b, moe->logits);
    moe->first_phase = p->n_phase;
    close_group(b);
    cpu_product none = {.x = o->x, .residual = PITH_NO_VALUE};
    touch(b, moe->gathered);
    add_expert_phase(b, CPU_PHASE_GROUP, op, index, &none);
    cpu_product up = {.x = moe->gathered, .n = 2, .residual = PITH_NO_VALUE, .act = o->act};
    up.weight[0] = o->gate;
    up.weight[1] = o->up;
    up.y[0] = moe->inner;
    add_expert_phase(b, CPU_PHASE_EXPERTS_UP, op, index, &up);
    cpu_product down = {.x = moe->inner, .n = 1, .weight = {o->down}, .residual = PITH_NO_VALUE};
    down.y[0] = moe->outer;
    add_expert_phase(b, CPU_PHASE_EXPERTS_DOWN, op, index, &down);
    append_step(b, (cpu_row_step){.kind = CPU_STEP_SUM_EXPERTS, .op = op, .moe = index}, is_out);
    moe->last_phase = p->n_phase;
    touch(b, moe->outer);
    touch(b, op->first_result);
    if (o->residual != PITH_NO_VALUE) touch(b, o->residual);
}

/* ---- Who reads what ---- */

static void mark_weight_input(cpu_program *p, pith_value x, const pith_weight *weight) {
    if (pith_cpu_takes_q8(p, weight))
        p->values[x].needs_q8 = true;
    else
        p->values[x].needs_f32 = true;
}

/* Rows of one value come in one form: fast only if each product that reads it can take it so. The
 * head and mixtures stay exact: few rows meet each weight there. */
static void mark_fast(cpu_program *p, const pith_plan *plan) {
    for (uint32_t pass = 0; pass < 2; pass++) /* who can; who cannot */
        for (uint32_t i = 0; i < plan->n_op; i++) {
            const pith_op *op = &plan->ops[i];
            if (op->kind == PITH_OP_MOE) p->values[op->moe.x].takes_fast = false;
            if (op->kind != PITH_OP_LINEAR) continue;
            cpu_value *x = &p->values[op->linear.x];
            for (uint32_t j = 0; j < op->linear.n; j++) {
                const pith_weight *weight = op->linear.weight[j];
                if (!pith_cpu_takes_fast(p, weight))
                    x->takes_fast = x->takes_fast && !pith_cpu_takes_q8(p, weight);
                else if (pass == 0)
                    x->takes_fast = !x->is_out;
            }
        }
}

static void mark_inputs(cpu_program *p, const pith_op *op) {
    pith_value inputs[PITH_PLAN_MAX_INPUTS];
    uint32_t n = pith_op_inputs(op, inputs), first = 0;
    if (op->kind == PITH_OP_LINEAR) {
        for (uint32_t i = 0; i < op->linear.n; i++)
            mark_weight_input(p, op->linear.x, op->linear.weight[i]);
        first = 1;
    } else if (op->kind == PITH_OP_MOE) {
        const pith_weight *const weights[] = {op->moe.router, op->moe.gate, op->moe.up};
        for (int i = 0; i < 3; i++) mark_weight_input(p, op->moe.x, weights[i]);
        first = 1;
    }
    for (uint32_t i = first; i < n; i++) p->values[inputs[i]].needs_f32 = true;
}

/* A value that was made by something else than a norm, or whose maker is not the phase before,
 * is still fine: only what THIS group makes must not be read later than in the next phase. */
static void mark_repeatable(cpu_program *p) {
    for (uint32_t i = 0; i + 1 < p->n_phase; i++) {
        cpu_phase *rows = &p->phases[i], *next = &p->phases[i + 1];
        bool fits = rows->kind == CPU_PHASE_ROWS && next->kind == CPU_PHASE_PRODUCT &&
                    rows->is_out == next->is_out && i + 1 != p->tail_phase;
        for (uint32_t s = 0; fits && s < rows->n_step; s++) {
            const cpu_row_step *step = &p->steps[rows->first_step + s];
            bool is_norm = step->kind == CPU_STEP_OP && step->op->kind == PITH_OP_NORM;
            pith_value made = is_norm ? step->op->first_result : step->value;
            fits =
                (is_norm || step->kind == CPU_STEP_QUANTIZE) && p->values[made].last_phase <= i + 1;
        }
        rows->repeatable = fits;
    }
}

/* Norms of heads, rotations and the put of the attention that follows: a task of that attention
 * can do its KV head's part itself, if nobody else reads the results. */
static bool is_by_head(const cpu_program *p, const cpu_phase *rows, const pith_attend_op *attend,
                       uint32_t last_phase) {
    for (uint32_t s = 0; s < rows->n_step; s++) {
        const cpu_row_step *step = &p->steps[rows->first_step + s];
        const pith_op *op = step->op;
        if (step->kind == CPU_STEP_KV_PUT) continue;
        if (step->kind != CPU_STEP_OP) return false;
        if (op->kind != PITH_OP_ROPE && op->kind != PITH_OP_NORM) return false;
        bool is_rope = op->kind == PITH_OP_ROPE;
        pith_value value = is_rope ? op->rope.x : op->first_result;
        uint32_t dim = is_rope ? op->rope.head_dim : op->norm.group;
        uint32_t n_head = p->values[value].width / dim;
        bool fits = n_head % attend->n_head_kv == 0 && p->values[value].last_phase <= last_phase &&
                    (dim == attend->head_dim || dim == attend->head_dim_v);
        if (!fits) return false;
    }
    return true;
}

/* The attention runs these steps itself, one phase later: what they read and make must live
 * until then. */
static void keep_for_attend(cpu_program *p, const cpu_phase *rows, uint32_t phase) {
    for (uint32_t s = 0; s < rows->n_step; s++) {
        pith_value inputs[PITH_PLAN_MAX_INPUTS];
        const pith_op *op = p->steps[rows->first_step + s].op;
        uint32_t n = pith_op_inputs(op, inputs);
        if (op->kind == PITH_OP_NORM) inputs[n++] = op->first_result;
        for (uint32_t i = 0; i < n; i++) {
            cpu_value *v = &p->values[inputs[i]];
            if (v->last_phase < phase) v->last_phase = phase;
        }
    }
}

static void mark_by_head(cpu_program *p) {
    for (uint32_t i = 0; i + 1 < p->n_phase; i++) {
        cpu_phase *rows = &p->phases[i], *next = &p->phases[i + 1];
        if (rows->kind != CPU_PHASE_ROWS || next->kind != CPU_PHASE_ATTEND) continue;
        rows->by_head = is_by_head(p, rows, &next->op->attend, i + 1);
        if (rows->by_head) keep_for_attend(p, rows, i + 1);
    }
}

/* The head: the product that makes the output, perhaps scaled and capped, and nothing else after
 * it. It runs once per block of rows, so that logits of many rows need not exist at once. */
static void find_tail(cpu_program *p) {
    const pith_plan *plan = p->plan;
    p->tail_phase = p->n_phase;
    p->tail_rows = p->options.step_limit;
    const pith_op *op = &plan->ops[plan->values[plan->output].op];
    while (op->kind == PITH_OP_SCALE || op->kind == PITH_OP_SOFTCAP)
        op = &plan->ops[plan->values[op->unary.x].op];
    uint32_t last = p->n_phase;
    for (uint32_t i = 0; i < p->n_phase; i++)
        if (p->phases[i].kind == CPU_PHASE_PRODUCT && p->phases[i].op == op) last = i;
    bool is_end = last < p->n_phase && op->kind == PITH_OP_LINEAR && op->n_result == 1;
    for (uint32_t i = last + 1; is_end && i < p->n_phase; i++)
        is_end = p->phases[i].kind == CPU_PHASE_ROWS && p->phases[i].is_out;
    if (!is_end) return;
    p->tail_phase = last;
    for (uint32_t i = 0; i < p->n_value; i++) {
        cpu_value *v = &p->values[i];
        v->in_tail = v->first_phase >= last;
        if (!v->in_tail && v->last_phase >= last) v->last_phase = p->n_phase;
    }
    size_t row_bytes = (size_t)p->values[plan->output].width * sizeof(float);
    size_t rows = TAIL_BYTES / row_bytes;
    if (rows < p->tail_rows) p->tail_rows = rows ? (uint32_t)rows : 1;
}

/* ---- Checks and the whole ---- */

static pith_status check_attend(const pith_backend_options *options, const pith_op *op,
                                pith_error *error) {
    const pith_attend_op *a = &op->attend;
    const pith_kv_layout *kv = options->kv;
    if (!kv || a->layer >= kv->n_layer)
        return pith_fail(error, PITH_ERROR_INTERNAL, "%s: layer %u is not in a KV layout of %u",
                         op->name, a->layer, kv ? kv->n_layer : 0);
    const pith_kv_layer *layer = &kv->layers[a->layer];
    bool same = layer->n_head_kv == a->n_head_kv && layer->head_dim == a->head_dim &&
                layer->head_dim_v == a->head_dim_v && layer->window == a->window;
    if (!same)
        return pith_fail(error, PITH_ERROR_INTERNAL,
                         "%s: %u heads of %u, window %u; the KV layout has %u of %u, window %u",
                         op->name, a->n_head_kv, a->head_dim, a->window, layer->n_head_kv,
                         layer->head_dim, layer->window);
    return PITH_OK;
}

static pith_status check_options(const pith_plan *plan, const pith_backend_options *options,
                                 pith_error *error) {
    pith_status status = pith_plan_check(plan, error);
    if (status) return status;
    if (plan->output == PITH_NO_VALUE)
        return pith_fail(error, PITH_ERROR_INTERNAL, "the plan has no output");
    if (options->step_limit < 1 || options->step_limit > MAX_STEP)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "a step limit of %u; 1 to %d are possible",
                         options->step_limit, MAX_STEP);
    for (uint32_t i = 0; i < plan->n_op && !status; i++)
        if (plan->ops[i].kind == PITH_OP_ATTEND)
            status = check_attend(options, &plan->ops[i], error);
    return status;
}

static void build(builder *b) {
    cpu_program *p = b->program;
    const pith_plan *plan = p->plan;
    append_step(b, (cpu_row_step){.kind = CPU_STEP_ANGLES, .op = &plan->ops[0]}, false);
    for (uint32_t i = 0; i < plan->n_op && !b->no_memory; i++) {
        const pith_op *op = &plan->ops[i];
        switch (op->kind) {
        case PITH_OP_LINEAR: add_linear(b, op); break;
        case PITH_OP_ATTEND: add_attend(b, op); break;
        case PITH_OP_MOE: add_moe(b, op); break;
        case PITH_OP_ROPE: append_op_step(b, op, false); break;
        default: append_op_step(b, op, plan->values[op->first_result].is_out); break;
        }
    }
    close_group(b);
}

static bool list_values(builder *b) {
    cpu_program *p = b->program;
    const pith_plan *plan = p->plan;
    uint32_t n_moe = 0;
    for (uint32_t i = 0; i < plan->n_value; i++)
        append_value(b, plan->values[i].width, 1, plan->values[i].is_out);
    for (uint32_t i = 0; i < plan->n_op; i++) n_moe += plan->ops[i].kind == PITH_OP_MOE;
    p->moes = pith_alloc_zero(n_moe, sizeof *p->moes);
    b->has_q8 = pith_alloc_zero((size_t)plan->n_value + 4 * (size_t)n_moe, sizeof *b->has_q8);
    if (b->no_memory || !p->moes || !b->has_q8) return false;
    for (uint32_t i = 0; i < plan->n_value; i++)
        p->values[i].ends_layer = plan->values[i].ends_layer;
    for (uint32_t i = 0; i < plan->n_op; i++) mark_inputs(p, &plan->ops[i]);
    mark_fast(p, plan);
    p->values[plan->output].needs_f32 = true;
    return true;
}

/* Query heads of a KV head, at most; they attend together. */
static void measure_groups(cpu_program *p) {
    p->max_group = 1;
    for (uint32_t i = 0; i < p->plan->n_op; i++) {
        const pith_op *op = &p->plan->ops[i];
        if (op->kind != PITH_OP_ATTEND) continue;
        uint32_t group = op->attend.n_head / op->attend.n_head_kv;
        if (group > p->max_group) p->max_group = group;
    }
    p->n_vocab = UINT32_MAX;
    for (uint32_t i = 0; i < p->plan->n_op; i++) {
        const pith_op *op = &p->plan->ops[i];
        if (op->kind == PITH_OP_EMBED && op->embed.table->ne[1] < p->n_vocab)
            p->n_vocab = (uint32_t)op->embed.table->ne[1];
    }
    p->block_rows = p->max_group < CPU_ATTEND_ROWS ? CPU_ATTEND_ROWS / p->max_group : 1;
}

static bool list_frequencies(cpu_program *p) {
    const pith_plan *plan = p->plan;
    p->rope_first = pith_alloc_zero(plan->n_rope, sizeof *p->rope_first);
    if (!p->rope_first) return false;
    for (uint32_t i = 0; i < plan->n_rope; i++) {
        p->rope_first[i] = p->n_pair;
        p->n_pair += plan->ropes[i].n_rot / 2;
    }
    p->frequencies = pith_alloc_array(p->n_pair, sizeof *p->frequencies);
    if (!p->frequencies) return false;
    for (uint32_t i = 0; i < plan->n_rope; i++)
        for (uint32_t j = 0; j < plan->ropes[i].n_rot / 2; j++)
            p->frequencies[p->rope_first[i] + j] = pith_rope_frequency(&plan->ropes[i], j);
    return true;
}

/* Half of the second cache, in the bounds of known machines; where it is unknown, of 1 MiB. */
static size_t block_bytes(void) {
    enum { LEAST = 128 << 10, USUAL = 512 << 10, MOST = 1 << 20 };
    size_t half = pith_machine_second_cache() / 2;
    return !half ? USUAL : half < LEAST ? LEAST : half > MOST ? MOST : half;
}

pith_status pith_cpu_compile(cpu_program *program, const pith_plan *plan,
                             const pith_backend_options *options, pith_error *error) {
    *program = (cpu_program){.plan = plan, .options = *options, .block_bytes = block_bytes()};
    pith_status status = check_options(plan, options, error);
    if (status) return status;
    if (program->options.n_threads < 1) program->options.n_threads = pith_thread_count();
    pith_kernels_init(&program->kernels, options->features);
    builder b = {.program = program};
    bool made = list_values(&b);
    if (made) build(&b);
    pith_free(b.has_q8);
    if (!made || b.no_memory || !list_frequencies(program))
        return pith_fail_memory(error, "a program", plan->n_op * sizeof(cpu_phase));
    program->values[plan->output].last_phase = program->n_phase;
    measure_groups(program);
    find_tail(program);
    mark_repeatable(program);
    mark_by_head(program);
    return pith_cpu_place(program, error);
}

void pith_cpu_program_deinit(cpu_program *program) {
    pith_free(program->values);
    pith_free(program->steps);
    pith_free(program->phases);
    pith_free(program->moes);
    pith_free(program->frequencies);
    pith_free(program->rope_first);
    *program = (cpu_program){0};
}
