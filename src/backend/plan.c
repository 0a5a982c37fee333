/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording a plan: the straight list of operations of a model.
 *
 * Invariant: in a plan without error every operation's shapes agree with its weights and inputs,
 * every input was made by an earlier operation, and a value belongs to rows n or to rows n_out.
 * The first disagreement is kept with both numbers; after it recording goes on without effect
 * and gives PITH_NO_VALUE, so forward() needs no checks.
 *
 * Weights need not be loaded yet: only their shapes are read here. Read next: plan.h,
 * cpu/compile.c.
 */
#include "backend/plan.h"

#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

pith_plan *pith_plan_new(void) {
    pith_plan *plan = pith_alloc_zero(1, sizeof *plan);
    if (!plan) return NULL;
    plan->layer = -1;
    plan->output = PITH_NO_VALUE;
    return plan;
}

void pith_plan_free(pith_plan *plan) {
    if (!plan) return;
    for (uint32_t i = 0; i < plan->n_op; i++) pith_free(plan->ops[i].name);
    pith_free(plan->ops);
    pith_free(plan->values);
    pith_free(plan->ropes);
    pith_free(plan);
}

pith_status pith_plan_check(const pith_plan *plan, pith_error *error) {
    if (!plan->error.status) return PITH_OK;
    return pith_fail(error, plan->error.status, "%s", plan->error.text);
}

void pith_plan_layer(pith_plan *plan, int32_t layer) {
    plan->layer = layer;
}

/* ---- Growing lists and the sticky error ---- */

static void fail_memory(pith_plan *plan) {
    if (!plan->error.status) pith_fail_memory(&plan->error, "a plan", sizeof(pith_op));
}

/* Room for one more item. */
static void *grow(pith_plan *plan, void *items, uint32_t n, uint32_t *capacity, size_t size) {
    if (n < *capacity) return items;
    uint32_t wanted = *capacity ? *capacity * 2 : 64;
    size_t bytes;
    void *grown = pith_size_mul(wanted, size, &bytes) ? pith_realloc(items, bytes) : NULL;
    if (grown)
        *capacity = wanted;
    else
        fail_memory(plan);
    return grown;
}

static bool failed(const pith_plan *plan) {
    return plan->error.status != PITH_OK;
}

/* "layer 3 attn_norm" */
static char *full_name(const pith_plan *plan, const char *name, const char **short_name) {
    pith_buffer text = {0};
    if (plan->layer >= 0) pith_buffer_append_format(&text, "layer %" PRId32 " ", plan->layer);
    size_t prefix = text.size;
    pith_buffer_append_text(&text, name);
    if (text.failed || !text.data) {
        pith_buffer_deinit(&text);
        return NULL;
    }
    *short_name = text.data + prefix;
    return text.data;
}

/* A new operation at the end of the list, or NULL when something has failed. */
static pith_op *append_op(pith_plan *plan, pith_op_kind kind, const char *name) {
    if (failed(plan)) return NULL;
    pith_op *ops = grow(plan, plan->ops, plan->n_op, &plan->op_capacity, sizeof *ops);
    if (!ops) return NULL;
    plan->ops = ops;
    pith_op *op = &ops[plan->n_op];
    *op = (pith_op){.kind = kind, .first_result = PITH_NO_VALUE};
    op->name = full_name(plan, name, &op->short_name);
    if (!op->name) {
        fail_memory(plan);
        return NULL;
    }
    plan->n_op++;
    return op;
}

/* A result of the newest operation. */
static pith_value append_value(pith_plan *plan, uint64_t width, bool is_out) {
    if (failed(plan)) return PITH_NO_VALUE;
    pith_op *op = &plan->ops[plan->n_op - 1];
    if (width == 0 || width > PITH_PLAN_MAX_WIDTH) {
        pith_fail(&plan->error, PITH_ERROR_LIMIT,
                  "%s: a row of %" PRIu64 " elements; 1 to %d are possible", op->name, width,
                  PITH_PLAN_MAX_WIDTH);
        return PITH_NO_VALUE;
    }
    pith_plan_value *values =
        grow(plan, plan->values, plan->n_value, &plan->value_capacity, sizeof *values);
    if (!values) return PITH_NO_VALUE;
    plan->values = values;
    values[plan->n_value] = (pith_plan_value){(uint32_t)width, is_out, plan->n_op - 1, -1};
    if (!op->n_result++) op->first_result = (pith_value)plan->n_value;
    return (pith_value)plan->n_value++;
}

/* ---- Checks: each keeps the first error, with the name of the newest operation ---- */

static const char *op_name(const pith_plan *plan) {
    return plan->ops[plan->n_op - 1].name;
}

static bool want(pith_plan *plan, bool condition, const char *what, uint64_t got,
                 uint64_t expected) {
    if (!condition && !failed(plan))
        pith_fail(&plan->error, PITH_ERROR_FORMAT, "%s: %s is %" PRIu64 ", expected %" PRIu64,
                  op_name(plan), what, got, expected);
    return !failed(plan);
}

static bool want_equal(pith_plan *plan, const char *what, uint64_t got, uint64_t expected) {
    return want(plan, got == expected, what, got, expected);
}

static bool want_value(pith_plan *plan, pith_value x, const char *what) {
    if (!failed(plan) && (x < 0 || (uint32_t)x >= plan->n_value))
        pith_fail(&plan->error, PITH_ERROR_INTERNAL, "%s: its input %s was never made",
                  op_name(plan), what);
    return !failed(plan);
}

/* A second input must have the first one's rows. */
static bool want_same_rows(pith_plan *plan, pith_value x, pith_value y) {
    bool same = plan->values[x].is_out == plan->values[y].is_out;
    if (!same)
        pith_fail(&plan->error, PITH_ERROR_INTERNAL,
                  "%s: one input has a row for each token, the other one for each output",
                  op_name(plan));
    return same;
}

static bool want_all_rows(pith_plan *plan, pith_value x) {
    if (plan->values[x].is_out)
        pith_fail(&plan->error, PITH_ERROR_INTERNAL, "%s: needs rows of all tokens", op_name(plan));
    return !failed(plan);
}

static bool want_weight(pith_plan *plan, const pith_weight *weight, unsigned role,
                        const char *what) {
    if (failed(plan)) return false;
    if (!weight) {
        pith_fail(&plan->error, PITH_ERROR_FORMAT, "%s: the tensor for %s is missing",
                  op_name(plan), what);
        return false;
    }
    if ((weight->roles & role) != role)
        pith_fail(&plan->error, PITH_ERROR_INTERNAL,
                  "%s: tensor %s was declared with roles %u, %u is needed", op_name(plan),
                  weight->name, weight->roles, role);
    return !failed(plan);
}

static uint64_t n_elements(const pith_weight *weight) {
    return weight->ne[0] * weight->ne[1] * weight->ne[2] * weight->ne[3];
}

/* A vector (norm weight, bias) of exactly n elements; NULL is allowed. */
static bool want_vector(pith_plan *plan, const pith_weight *weight, uint64_t n) {
    if (!weight) return !failed(plan);
    if (!want_weight(plan, weight, PITH_WEIGHT_VECTOR, "a vector")) return false;
    return want_equal(plan, weight->name, n_elements(weight), n);
}

/* A matrix of n_expert slices that takes rows of `width` elements. */
static bool want_matrix(pith_plan *plan, const pith_weight *weight, uint64_t width,
                        uint64_t n_expert, const char *what) {
    if (!want_weight(plan, weight, PITH_WEIGHT_LINEAR, what)) return false;
    if (weight->ne[0] != width)
        pith_fail(&plan->error, PITH_ERROR_FORMAT,
                  "%s: tensor %s takes rows of %" PRIu64 " elements, its input has %" PRIu64,
                  op_name(plan), weight->name, weight->ne[0], width);
    if (failed(plan)) return false;
    return want_equal(plan, "the number of matrices in a tensor", weight->ne[2] * weight->ne[3],
                      n_expert);
}

static uint32_t width_of(const pith_plan *plan, pith_value x) {
    return plan->values[x].width;
}

/* ---- Operations ---- */

pith_value pith_plan_embed(pith_plan *plan, const char *name, const pith_weight *table,
                           float scale) {
    pith_op *op = append_op(plan, PITH_OP_EMBED, name);
    if (!op || !want_weight(plan, table, PITH_WEIGHT_ROWS, "embeddings")) return PITH_NO_VALUE;
    if (!want_equal(plan, "the number of matrices in a tensor", table->ne[2] * table->ne[3], 1))
        return PITH_NO_VALUE;
    op->embed.table = table;
    op->embed.scale = scale;
    return append_value(plan, table->ne[0], false);
}

pith_value pith_plan_norm(pith_plan *plan, const char *name, const pith_norm_op *args) {
    pith_op *op = append_op(plan, PITH_OP_NORM, name);
    if (!op || !want_value(plan, args->x, "x")) return PITH_NO_VALUE;
    uint32_t width = width_of(plan, args->x), group = args->group ? args->group : width;
    if (!want_equal(plan, "the rest of the row after whole groups", width % group, 0) ||
        !want_vector(plan, args->weight, group) || !want_vector(plan, args->bias, group))
        return PITH_NO_VALUE;
    op->norm = *args;
    op->norm.group = group;
    return append_value(plan, width, plan->values[args->x].is_out);
}

static bool check_linear(pith_plan *plan, const pith_linear_op *args) {
    if (!want_value(plan, args->x, "x")) return false;
    uint32_t limit = args->act == PITH_ACT_NONE ? 3 : 2;
    if (!want(plan, args->n >= 1 && args->n <= limit, "the number of weights", args->n, limit))
        return false;
    for (uint32_t i = 0; i < args->n; i++) {
        if (!want_matrix(plan, args->weight[i], width_of(plan, args->x), 1, "a product"))
            return false;
        if (!want_vector(plan, args->bias[i], args->weight[i]->ne[1])) return false;
    }
    uint64_t width = args->weight[0]->ne[1];
    if (args->act != PITH_ACT_NONE && args->n == 2 &&
        !want_equal(plan, "the width of up", args->weight[1]->ne[1], width))
        return false;
    if (args->residual == PITH_NO_VALUE) return true;
    if (!want_value(plan, args->residual, "residual")) return false;
    if (!want(plan, args->n == 1 || args->act != PITH_ACT_NONE,
              "the number of weights with a residual", args->n, 1))
        return false;
    return want_equal(plan, "the width of the residual", width_of(plan, args->residual), width) &&
           want_same_rows(plan, args->x, args->residual);
}

void pith_plan_linear(pith_plan *plan, const char *name, const pith_linear_op *args,
                      pith_value *out) {
    uint32_t n_out = args->act == PITH_ACT_NONE && args->n <= 3 ? args->n : 1;
    for (uint32_t i = 0; i < n_out; i++) out[i] = PITH_NO_VALUE;
    pith_op *op = append_op(plan, PITH_OP_LINEAR, name);
    if (!op || !check_linear(plan, args)) return;
    op->linear = *args;
    for (uint32_t i = 0; i < n_out; i++)
        out[i] = append_value(plan, args->weight[i]->ne[1], plan->values[args->x].is_out);
}

static bool same_rope(const pith_rope *a, const pith_rope *b) {
    return a->n_rot == b->n_rot && a->neox == b->neox && a->base == b->base &&
           a->freq_scale == b->freq_scale && a->factors == b->factors &&
           a->ext_factor == b->ext_factor && a->attn_factor == b->attn_factor &&
           a->beta_fast == b->beta_fast && a->beta_slow == b->beta_slow &&
           a->n_ctx_orig == b->n_ctx_orig;
}

enum { MAX_ROT = 1 << 16 }; /* elements of a head that rotate, at most */

static bool rope_is_sound(const pith_rope *rope) {
    bool plain = rope->n_rot >= 2 && rope->n_rot % 2 == 0 && rope->n_rot <= MAX_ROT &&
                 isfinite(rope->base) && rope->base > 0 && isfinite(rope->freq_scale) &&
                 rope->freq_scale > 0 && isfinite(rope->attn_factor) && rope->attn_factor > 0;
    if (!plain || rope->ext_factor == 0.0f) return plain;
    return isfinite(rope->ext_factor) && rope->base > 1 && rope->beta_fast > 0 &&
           rope->beta_slow > 0 && rope->n_ctx_orig > 0;
}

uint32_t pith_plan_rope_table(pith_plan *plan, const pith_rope *rope) {
    if (failed(plan)) return 0;
    if (!rope_is_sound(rope)) {
        pith_fail(&plan->error, PITH_ERROR_FORMAT,
                  "rope: %u rotated elements, base %g, scale %g, magnitude %g cannot be right",
                  rope->n_rot, (double)rope->base, (double)rope->freq_scale,
                  (double)rope->attn_factor);
        return 0;
    }
    for (uint32_t i = 0; i < plan->n_rope; i++)
        if (same_rope(&plan->ropes[i], rope)) return i;
    pith_rope *ropes = grow(plan, plan->ropes, plan->n_rope, &plan->rope_capacity, sizeof *ropes);
    if (!ropes) return 0;
    plan->ropes = ropes;
    ropes[plan->n_rope] = *rope;
    return plan->n_rope++;
}

void pith_plan_rope(pith_plan *plan, const char *name, pith_value x, uint32_t table,
                    uint32_t n_head, uint32_t head_dim) {
    pith_op *op = append_op(plan, PITH_OP_ROPE, name);
    if (!op || !want_value(plan, x, "x") || !want_all_rows(plan, x)) return;
    if (!want(plan, table < plan->n_rope, "the rope setting", table, plan->n_rope) ||
        !want_equal(plan, "heads times head size", (uint64_t)n_head * head_dim, width_of(plan, x)))
        return;
    uint32_t n_rot = plan->ropes[table].n_rot;
    if (!want(plan, n_rot <= head_dim, "the rotated part of a head", n_rot, head_dim)) return;
    op->rope.x = x;
    op->rope.table = table;
    op->rope.n_head = n_head;
    op->rope.head_dim = head_dim;
}

static bool check_attend(pith_plan *plan, const pith_attend_op *args) {
    const pith_value inputs[] = {args->q, args->k, args->v};
    const uint64_t widths[] = {(uint64_t)args->n_head * args->head_dim,
                               (uint64_t)args->n_head_kv * args->head_dim,
                               (uint64_t)args->n_head_kv * args->head_dim_v};
    const char *const names[] = {"q", "k", "v"};
    for (int i = 0; i < 3; i++) {
        if (!want_value(plan, inputs[i], names[i]) || !want_all_rows(plan, inputs[i])) return false;
        if (!want_equal(plan, names[i], width_of(plan, inputs[i]), widths[i])) return false;
    }
    return want_equal(plan, "query heads modulo KV heads", args->n_head % args->n_head_kv, 0);
}

pith_value pith_plan_attend(pith_plan *plan, const char *name, const pith_attend_op *args) {
    pith_op *op = append_op(plan, PITH_OP_ATTEND, name);
    if (!op || !check_attend(plan, args)) return PITH_NO_VALUE;
    op->attend = *args;
    return append_value(plan, (uint64_t)args->n_head * args->head_dim_v, false);
}

static bool check_moe(pith_plan *plan, const pith_moe_op *args) {
    if (!want_value(plan, args->x, "x")) return false;
    uint32_t width = width_of(plan, args->x), n = args->n_expert;
    if (!want(plan, n >= 1 && n <= PITH_PLAN_MAX_EXPERTS, "the number of experts", n,
              PITH_PLAN_MAX_EXPERTS) ||
        !want(plan, args->n_used >= 1 && args->n_used <= n, "the number of experts used",
              args->n_used, n) ||
        !want(plan, args->n_used <= PITH_PLAN_MAX_EXPERTS_USED, "the number of experts used",
              args->n_used, PITH_PLAN_MAX_EXPERTS_USED))
        return false;
    if (!want_matrix(plan, args->router, width, 1, "the router") ||
        !want_equal(plan, "the width of the router", args->router->ne[1], n) ||
        !want_matrix(plan, args->gate, width, n, "gate") ||
        !want_matrix(plan, args->up, width, n, "up") ||
        !want_equal(plan, "the width of up", args->up->ne[1], args->gate->ne[1]) ||
        !want_matrix(plan, args->down, args->gate->ne[1], n, "down") ||
        !want_equal(plan, "the width of down", args->down->ne[1], width))
        return false;
    if (!want(plan,
              args->gating >= PITH_GATING_SOFTMAX && args->gating <= PITH_GATING_SOFTMAX_SELECTED,
              "the gating function", args->gating, PITH_GATING_SOFTMAX))
        return false;
    if (args->residual == PITH_NO_VALUE) return true;
    return want_value(plan, args->residual, "residual") &&
           want_equal(plan, "the width of the residual", width_of(plan, args->residual), width) &&
           want_same_rows(plan, args->x, args->residual);
}

pith_value pith_plan_moe(pith_plan *plan, const char *name, const pith_moe_op *args) {
    pith_op *op = append_op(plan, PITH_OP_MOE, name);
    if (!op || !check_moe(plan, args)) return PITH_NO_VALUE;
    op->moe = *args;
    return append_value(plan, width_of(plan, args->x), plan->values[args->x].is_out);
}

pith_value pith_plan_add(pith_plan *plan, const char *name, pith_value a, pith_value b) {
    pith_op *op = append_op(plan, PITH_OP_ADD, name);
    if (!op || !want_value(plan, a, "a") || !want_value(plan, b, "b")) return PITH_NO_VALUE;
    if (!want_equal(plan, "the width of b", width_of(plan, b), width_of(plan, a)) ||
        !want_same_rows(plan, a, b))
        return PITH_NO_VALUE;
    op->add.a = a;
    op->add.b = b;
    return append_value(plan, width_of(plan, a), plan->values[a].is_out);
}

static pith_value append_unary(pith_plan *plan, pith_op_kind kind, const char *name, pith_value x,
                               float factor) {
    pith_op *op = append_op(plan, kind, name);
    if (!op || !want_value(plan, x, "x")) return PITH_NO_VALUE;
    if (kind == PITH_OP_SELECT && !want_all_rows(plan, x)) return PITH_NO_VALUE;
    op->unary.x = x;
    op->unary.factor = factor;
    bool is_out = kind == PITH_OP_SELECT || plan->values[x].is_out;
    return append_value(plan, width_of(plan, x), is_out);
}

pith_value pith_plan_scale(pith_plan *plan, const char *name, pith_value x, float scale) {
    return append_unary(plan, PITH_OP_SCALE, name, x, scale);
}

pith_value pith_plan_softcap(pith_plan *plan, const char *name, pith_value x, float cap) {
    return append_unary(plan, PITH_OP_SOFTCAP, name, x, cap);
}

pith_value pith_plan_select(pith_plan *plan, const char *name, pith_value x) {
    return append_unary(plan, PITH_OP_SELECT, name, x, 0);
}

void pith_plan_end_layer(pith_plan *plan, pith_value x) {
    if (failed(plan) || !want_value(plan, x, "x")) return;
    pith_plan_value *value = &plan->values[x];
    const pith_op *op = &plan->ops[value->op];
    bool takes = op->kind == PITH_OP_ADD || op->kind == PITH_OP_MOE ||
                 (op->kind == PITH_OP_LINEAR && op->n_result == 1 && !op->linear.act);
    if (!takes || plan->layer < 0 || value->ends_layer >= 0)
        pith_fail(&plan->error, PITH_ERROR_INTERNAL, "%s: cannot be the end of layer %" PRId32,
                  op->name, plan->layer);
    else
        value->ends_layer = plan->layer;
}

void pith_plan_output(pith_plan *plan, pith_value x) {
    if (failed(plan)) return;
    if (x < 0 || (uint32_t)x >= plan->n_value || !plan->values[x].is_out)
        pith_fail(&plan->error, PITH_ERROR_INTERNAL,
                  "the plan's output must be a value that plan_select or a later operation made");
    else
        plan->output = x;
}

void pith_plan_want_states(pith_plan *plan) {
    plan->wants_states = true;
}

bool pith_plan_wants_states(const pith_plan *plan) {
    return plan->wants_states;
}

uint32_t pith_plan_output_width(const pith_plan *plan) {
    return plan->output == PITH_NO_VALUE ? 0 : plan->values[plan->output].width;
}

uint32_t pith_op_inputs(const pith_op *op, pith_value inputs[PITH_PLAN_MAX_INPUTS]) {
    uint32_t n = 0;
    switch (op->kind) {
    case PITH_OP_EMBED:
    case PITH_OP_COUNT: break;
    case PITH_OP_NORM: inputs[n++] = op->norm.x; break;
    case PITH_OP_LINEAR:
        inputs[n++] = op->linear.x;
        if (op->linear.residual != PITH_NO_VALUE) inputs[n++] = op->linear.residual;
        break;
    case PITH_OP_ROPE: inputs[n++] = op->rope.x; break;
    case PITH_OP_ATTEND:
        inputs[n++] = op->attend.q;
        inputs[n++] = op->attend.k;
        inputs[n++] = op->attend.v;
        break;
    case PITH_OP_MOE:
        inputs[n++] = op->moe.x;
        if (op->moe.residual != PITH_NO_VALUE) inputs[n++] = op->moe.residual;
        break;
    case PITH_OP_ADD:
        inputs[n++] = op->add.a;
        inputs[n++] = op->add.b;
        break;
    case PITH_OP_SCALE:
    case PITH_OP_SOFTCAP:
    case PITH_OP_SELECT: inputs[n++] = op->unary.x; break;
    }
    return n;
}

const char *pith_op_kind_name(pith_op_kind kind) {
    static const char *const names[PITH_OP_COUNT] = {
        [PITH_OP_EMBED] = "embed",  [PITH_OP_NORM] = "norm",     [PITH_OP_LINEAR] = "linear",
        [PITH_OP_ROPE] = "rope",    [PITH_OP_ATTEND] = "attend", [PITH_OP_MOE] = "moe",
        [PITH_OP_ADD] = "add",      [PITH_OP_SCALE] = "scale",   [PITH_OP_SOFTCAP] = "softcap",
        [PITH_OP_SELECT] = "select"};
    return names[kind];
}
