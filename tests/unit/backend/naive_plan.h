/* SPDX-License-Identifier: Apache-2.0
 * A plan computed the slow and obvious way: one row at a time, double everywhere, weights
 * decoded element by element (once), all keys and values kept. What the backend is checked
 * against. */
#ifndef PITH_TEST_NAIVE_PLAN_H
#define PITH_TEST_NAIVE_PLAN_H

#include "backend/delta_store.h"
#include "backend/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <stdbool.h>

enum { NAIVE_MAX_ROWS = 1024, NAIVE_MAX_LAYERS = 8, NAIVE_MAX_MATRICES = 512 };

/* A matrix as floats, made when it is met first. */
typedef struct naive_matrix {
    const uint8_t *data; /* of the weight, or of its slice for an expert */
    float *values;       /* [ne[1], ne[0]] */
} naive_matrix;

typedef struct naive {
    const pith_plan *plan;
    double **values;                                   /* [n_value], the row's */
    double *k[NAIVE_MAX_LAYERS], *v[NAIVE_MAX_LAYERS]; /* [rows, n_head_kv * dim] of one sequence */
    int32_t n;                                         /* positions held */
    const pith_adapter_set *set;                       /* NULL: none */
    naive_matrix matrices[NAIVE_MAX_MATRICES];
    int n_matrix;
} naive;

static inline naive *naive_new(const pith_plan *plan) {
    naive *m = calloc(1, sizeof *m);
    m->plan = plan;
    m->values = calloc(plan->n_value, sizeof *m->values);
    for (uint32_t i = 0; i < plan->n_value; i++)
        m->values[i] = calloc(plan->values[i].width, sizeof(double));
    for (uint32_t i = 0; i < plan->n_op; i++) {
        if (plan->ops[i].kind != PITH_OP_ATTEND) continue;
        const pith_attend_op *a = &plan->ops[i].attend;
        m->k[a->layer] =
            calloc((size_t)NAIVE_MAX_ROWS * a->n_head_kv * a->head_dim, sizeof(double));
        m->v[a->layer] =
            calloc((size_t)NAIVE_MAX_ROWS * a->n_head_kv * a->head_dim_v, sizeof(double));
    }
    return m;
}

static inline void naive_free(naive *m) {
    for (uint32_t i = 0; i < m->plan->n_value; i++) free(m->values[i]);
    for (int i = 0; i < NAIVE_MAX_LAYERS; i++) {
        free(m->k[i]);
        free(m->v[i]);
    }
    for (int i = 0; i < m->n_matrix; i++) free(m->matrices[i].values);
    free(m->values);
    free(m);
}

static inline void naive_row(const pith_weight *w, uint64_t row, float *out) {
    pith_weight_decode_row(w, row, out);
}

static inline const float *naive_values(naive *m, const pith_weight *w, uint64_t expert) {
    pith_weight slice = *w;
    slice.data += expert * w->expert_bytes;
    for (int i = 0; i < m->n_matrix; i++)
        if (m->matrices[i].data == slice.data) return m->matrices[i].values;
    if (m->n_matrix == NAIVE_MAX_MATRICES) abort();
    float *values = malloc((size_t)(w->ne[0] * w->ne[1]) * sizeof *values);
    for (uint64_t i = 0; i < w->ne[1]; i++) naive_row(&slice, i, values + i * w->ne[0]);
    m->matrices[m->n_matrix++] = (naive_matrix){slice.data, values};
    return values;
}

static inline void naive_linear(naive *m, const pith_weight *w, uint64_t expert, const double *x,
                                double *y) {
    const float *row = naive_values(m, w, expert);
    for (uint64_t i = 0; i < w->ne[1]; i++, row += w->ne[0]) {
        y[i] = 0;
        for (uint64_t k = 0; k < w->ne[0]; k++) y[i] += (double)row[k] * x[k];
    }
}

/* One slice of a pair: y += s B t, t: A x, or A's row of a token (x NULL). */
static inline void naive_pair(naive *m, const pith_delta_pair *pair, uint64_t expert,
                              const double *x, uint64_t token, double scale, double *y) {
    double *t = calloc(pair->rank, sizeof *t), *add = calloc((size_t)pair->b.ne[1], sizeof *add);
    float *row = malloc(pair->rank * sizeof *row);
    if (x) {
        naive_linear(m, &pair->a, expert, x, t);
    } else {
        naive_row(&pair->a, token, row);
        for (uint32_t i = 0; i < pair->rank; i++) t[i] = (double)row[i];
    }
    naive_linear(m, &pair->b, expert, t, add);
    for (uint64_t i = 0; i < pair->b.ne[1]; i++) y[i] += scale * (double)pair->scale * add[i];
    free(t);
    free(add);
    free(row);
}

/* W x and what the adapters add. */
static inline void naive_product(naive *m, const pith_weight *w, uint64_t expert, const double *x,
                                 double *y) {
    naive_linear(m, w, expert, x, y);
    for (uint32_t i = 0; m->set && i < m->set->n; i++) {
        const pith_delta_pair *pair = pith_delta_find(m->set->delta[i], w, false);
        if (pair) naive_pair(m, pair, expert, x, 0, (double)m->set->scale[i], y);
    }
}

static inline void naive_end_layer(const naive *m, const pith_plan_value *value, double *x) {
    for (uint32_t i = 0; m->set && value->ends_layer >= 0 && i < m->set->n; i++) {
        const pith_delta *delta = m->set->delta[i];
        const float *v =
            (size_t)value->ends_layer < delta->n_layer ? delta->vectors[value->ends_layer] : NULL;
        for (uint32_t j = 0; v && j < value->width; j++)
            x[j] += (double)m->set->scale[i] * (double)v[j];
    }
}

static inline double naive_act(pith_activation act, double x) {
    switch (act) {
    case PITH_ACT_NONE: return x;
    case PITH_ACT_SILU: return x / (1 + exp(-x));
    case PITH_ACT_GELU:
        return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case PITH_ACT_GELU_ERF: return 0.5 * x * (1 + erf(x / sqrt(2.0)));
    case PITH_ACT_RELU2: return x > 0 ? x * x : 0;
    }
    return 0;
}

static inline void naive_norm(const pith_norm_op *n, const double *x, double *y, uint32_t width) {
    for (uint32_t at = 0; at < width; at += n->group) {
        double mean = 0, square = 0;
        for (uint32_t i = 0; i < n->group; i++) mean += x[at + i] / n->group;
        if (n->kind == PITH_NORM_RMS) mean = 0;
        for (uint32_t i = 0; i < n->group; i++)
            square += (x[at + i] - mean) * (x[at + i] - mean) / n->group;
        for (uint32_t i = 0; i < n->group; i++) {
            y[at + i] = (x[at + i] - mean) / sqrt(square + (double)n->eps);
            if (n->weight) y[at + i] *= (double)n->weight->values[i];
            if (n->bias) y[at + i] += (double)n->bias->values[i];
        }
    }
}

static inline void naive_linear_op(naive *m, const pith_op *op) {
    const pith_linear_op *l = &op->linear;
    double *y[3] = {0};
    for (uint32_t i = 0; i < l->n; i++) {
        y[i] = calloc((size_t)l->weight[i]->ne[1], sizeof(double));
        naive_product(m, l->weight[i], 0, m->values[l->x], y[i]);
        for (uint64_t j = 0; l->bias[i] && j < l->weight[i]->ne[1]; j++)
            y[i][j] += (double)l->bias[i]->values[j];
    }
    for (uint32_t i = 0; i < op->n_result; i++) {
        double *out = m->values[op->first_result + (pith_value)i];
        for (uint64_t j = 0; j < l->weight[i]->ne[1]; j++) {
            out[j] = naive_act(l->act, y[i][j]);
            if (l->act != PITH_ACT_NONE && l->n == 2) out[j] *= y[1][j];
            if (l->scale != 0.0f) out[j] *= (double)l->scale;
            if (l->residual != PITH_NO_VALUE) out[j] += m->values[l->residual][j];
        }
    }
    for (int i = 0; i < 3; i++) free(y[i]);
}

static inline void naive_rope(naive *m, const pith_op *op, int32_t position) {
    const pith_rope *rope = &m->plan->ropes[op->rope.table];
    for (uint32_t h = 0; h < op->rope.n_head; h++) {
        double *x = m->values[op->rope.x] + (size_t)h * op->rope.head_dim;
        for (uint32_t i = 0; i < rope->n_rot / 2; i++) {
            uint32_t a = rope->neox ? i : 2 * i, b = rope->neox ? i + rope->n_rot / 2 : 2 * i + 1;
            double angle = position * pith_rope_frequency(rope, i), xa = x[a], xb = x[b];
            x[a] = (xa * cos(angle) - xb * sin(angle)) * (double)rope->attn_factor;
            x[b] = (xa * sin(angle) + xb * cos(angle)) * (double)rope->attn_factor;
        }
    }
}

static inline void naive_attend(naive *m, const pith_op *op, int32_t position) {
    const pith_attend_op *a = &op->attend;
    uint32_t kw = a->n_head_kv * a->head_dim, vw = a->n_head_kv * a->head_dim_v;
    memcpy(m->k[a->layer] + (size_t)position * kw, m->values[a->k], kw * sizeof(double));
    memcpy(m->v[a->layer] + (size_t)position * vw, m->values[a->v], vw * sizeof(double));
    int32_t first =
        a->window && position >= (int32_t)a->window ? position - (int32_t)a->window + 1 : 0;
    double *s = calloc((size_t)position + 1, sizeof *s);
    for (uint32_t h = 0; h < a->n_head; h++) {
        uint32_t g = h / (a->n_head / a->n_head_kv);
        double top = -HUGE_VAL, sum = 0,
               *out = m->values[op->first_result] + (size_t)h * a->head_dim_v;
        for (int32_t t = first; t <= position; t++) {
            s[t] = 0;
            for (uint32_t d = 0; d < a->head_dim; d++)
                s[t] += m->values[a->q][h * a->head_dim + d] *
                        m->k[a->layer][(size_t)t * kw + g * a->head_dim + d];
            s[t] *= (double)a->scale;
            if (a->softcap > 0) s[t] = (double)a->softcap * tanh(s[t] / (double)a->softcap);
            if (s[t] > top) top = s[t];
        }
        for (int32_t t = first; t <= position; t++) sum += exp(s[t] - top);
        for (uint32_t d = 0; d < a->head_dim_v; d++) {
            out[d] = 0;
            for (int32_t t = first; t <= position; t++)
                out[d] +=
                    exp(s[t] - top) / sum * m->v[a->layer][(size_t)t * vw + g * a->head_dim_v + d];
        }
    }
    free(s);
}

static inline void naive_gate(const pith_moe_op *o, double *p, uint32_t n, pith_gating gating) {
    double top = -HUGE_VAL, sum = 0;
    (void)o;
    for (uint32_t i = 0; i < n; i++) top = p[i] > top ? p[i] : top;
    for (uint32_t i = 0; i < n; i++) sum += exp(p[i] - top);
    for (uint32_t i = 0; i < n; i++)
        p[i] = gating == PITH_GATING_SIGMOID ? 1 / (1 + exp(-p[i])) : exp(p[i] - top) / sum;
}

static inline void naive_choose(const double *p, uint32_t n, uint32_t used, uint32_t *choice) {
    for (uint32_t j = 0; j < used; j++) {
        choice[j] = n;
        for (uint32_t i = 0; i < n; i++) {
            bool taken = false;
            for (uint32_t k = 0; k < j; k++) taken |= choice[k] == i;
            if (!taken && (choice[j] == n || p[i] > p[choice[j]])) choice[j] = i;
        }
    }
}

static inline void naive_moe(naive *m, const pith_op *op) {
    const pith_moe_op *o = &op->moe;
    size_t inner = (size_t)o->gate->ne[1], width = (size_t)o->down->ne[1];
    double p[PITH_PLAN_MAX_EXPERTS], chosen[PITH_PLAN_MAX_EXPERTS_USED], sum = 0;
    double *g = calloc(inner, 8), *u = calloc(inner, 8), *y = calloc(width, 8);
    double *out = m->values[op->first_result];
    uint32_t choice[PITH_PLAN_MAX_EXPERTS_USED];
    naive_product(m, o->router, 0, m->values[o->x], p);
    if (o->gating != PITH_GATING_SOFTMAX_SELECTED) naive_gate(o, p, o->n_expert, o->gating);
    naive_choose(p, o->n_expert, o->n_used, choice);
    for (uint32_t j = 0; j < o->n_used; j++) chosen[j] = p[choice[j]];
    if (o->gating == PITH_GATING_SOFTMAX_SELECTED)
        naive_gate(o, chosen, o->n_used, PITH_GATING_SOFTMAX);
    for (uint32_t j = 0; j < o->n_used; j++) sum += chosen[j];
    for (size_t i = 0; i < width; i++)
        out[i] = o->residual == PITH_NO_VALUE ? 0 : m->values[o->residual][i];
    for (uint32_t j = 0; j < o->n_used; j++) {
        double share = chosen[j] / (o->normalise ? fmax(sum, 6.103515625e-5) : 1);
        if (o->scale != 0.0f) share *= (double)o->scale;
        naive_product(m, o->gate, choice[j], m->values[o->x], g);
        naive_product(m, o->up, choice[j], m->values[o->x], u);
        for (size_t i = 0; i < inner; i++) g[i] = naive_act(o->act, g[i]) * u[i];
        naive_product(m, o->down, choice[j], g, y);
        for (size_t i = 0; i < width; i++) out[i] += share * y[i];
    }
    free(g);
    free(u);
    free(y);
}

/* One token at the next position; returns the plan's output row. */
static inline const double *naive_step(naive *m, int32_t token) {
    const pith_plan *plan = m->plan;
    int32_t position = m->n++;
    for (uint32_t i = 0; i < plan->n_op; i++) {
        const pith_op *op = &plan->ops[i];
        double *out = op->n_result ? m->values[op->first_result] : NULL;
        uint32_t width = op->n_result ? plan->values[op->first_result].width : 0;
        const double *x = op->kind >= PITH_OP_SCALE ? m->values[op->unary.x] : NULL;
        double factor = op->kind >= PITH_OP_SCALE ? (double)op->unary.factor : 0;
        switch (op->kind) {
        case PITH_OP_EMBED: {
            float *row = malloc(width * sizeof *row);
            naive_row(op->embed.table, (uint64_t)token, row);
            for (uint32_t j = 0; j < width; j++) out[j] = (double)row[j];
            for (uint32_t j = 0; m->set && j < m->set->n; j++) {
                const pith_delta_pair *pair =
                    pith_delta_find(m->set->delta[j], op->embed.table, true);
                if (pair)
                    naive_pair(m, pair, 0, NULL, (uint64_t)token, (double)m->set->scale[j], out);
            }
            for (uint32_t j = 0; j < width; j++) out[j] *= (double)op->embed.scale;
            free(row);
            break;
        }
        case PITH_OP_NORM: naive_norm(&op->norm, m->values[op->norm.x], out, width); break;
        case PITH_OP_LINEAR: naive_linear_op(m, op); break;
        case PITH_OP_ROPE: naive_rope(m, op, position); break;
        case PITH_OP_ATTEND: naive_attend(m, op, position); break;
        case PITH_OP_MOE: naive_moe(m, op); break;
        case PITH_OP_ADD:
            for (uint32_t j = 0; j < width; j++)
                out[j] = m->values[op->add.a][j] + m->values[op->add.b][j];
            break;
        case PITH_OP_SCALE:
            for (uint32_t j = 0; j < width; j++) out[j] = x[j] * factor;
            break;
        case PITH_OP_SOFTCAP:
            for (uint32_t j = 0; j < width; j++) out[j] = factor * tanh(x[j] / factor);
            break;
        case PITH_OP_SELECT: memcpy(out, x, width * sizeof(double)); break;
        case PITH_OP_COUNT: break;
        }
        if (op->n_result == 1) naive_end_layer(m, &plan->values[op->first_result], out);
    }
    return m->values[plan->output];
}

#endif
