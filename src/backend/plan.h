/* SPDX-License-Identifier: Apache-2.0
 * Private to backend: what pith_plan_* recorded. Backends read it; nobody changes it after
 * recording. */
#ifndef PITH_BACKEND_PLAN_H
#define PITH_BACKEND_PLAN_H

#include "backend/backend.h"

typedef enum pith_op_kind {
    PITH_OP_EMBED,
    PITH_OP_NORM,
    PITH_OP_LINEAR,
    PITH_OP_ROPE,
    PITH_OP_ATTEND,
    PITH_OP_MOE,
    PITH_OP_ADD,
    PITH_OP_SCALE,
    PITH_OP_SOFTCAP,
    PITH_OP_SELECT,
    PITH_OP_COUNT
} pith_op_kind;

/* One operation. Its results are values [first_result, first_result + n_result). */
typedef struct pith_op {
    pith_op_kind kind;
    char *name;             /* "layer 3 attn_norm" */
    const char *short_name; /* "attn_norm", inside name */
    pith_value first_result;
    uint32_t n_result; /* rope: 0, it changes x */
    union {
        struct {
            const pith_weight *table;
            float scale;
        } embed;
        pith_norm_op norm;
        pith_linear_op linear;
        struct {
            pith_value x;
            uint32_t table, n_head, head_dim;
        } rope;
        pith_attend_op attend;
        pith_moe_op moe;
        struct {
            pith_value a, b;
        } add;
        struct {
            pith_value x;
            float factor; /* scale, or cap of softcap */
        } unary;          /* scale, softcap, select */
    };
} pith_op;

typedef struct pith_plan_value {
    uint32_t width;     /* elements of a row */
    bool is_out;        /* rows are n_out, else n */
    uint32_t op;        /* that defines it */
    int32_t ends_layer; /* layer whose control vectors are added to it; -1: none */
} pith_plan_value;

struct pith_plan {
    pith_op *ops;
    uint32_t n_op, op_capacity;
    pith_plan_value *values;
    uint32_t n_value, value_capacity;
    pith_rope *ropes;
    uint32_t n_rope, rope_capacity;
    int32_t layer; /* of what is recorded next; -1: none */
    pith_value output;
    bool wants_states;
    pith_error error; /* the first one; status PITH_OK: none */
};

enum {
    PITH_PLAN_MAX_INPUTS = 8,      /* values an operation reads */
    PITH_PLAN_MAX_WIDTH = 1 << 28, /* elements of a row */
    PITH_PLAN_MAX_EXPERTS = 4096,
    PITH_PLAN_MAX_EXPERTS_USED = 256
};

/* Values that op reads (rope's x among them); returns how many. */
uint32_t pith_op_inputs(const pith_op *op, pith_value inputs[PITH_PLAN_MAX_INPUTS]);
const char *pith_op_kind_name(pith_op_kind kind);

/* Radians per position of pair i: scalings, factors and YaRN included. */
double pith_rope_frequency(const pith_rope *rope, uint32_t pair);

#endif
