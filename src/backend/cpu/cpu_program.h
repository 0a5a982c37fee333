/* SPDX-License-Identifier: Apache-2.0
 * Private to the CPU backend: a plan compiled into phases. A phase is what all threads do
 * together between two joins: either a group of row steps (each row of a block goes through all
 * of them), a product, or attention. compile.c makes it, runner.c walks it. */
#ifndef PITH_BACKEND_CPU_CPU_PROGRAM_H
#define PITH_BACKEND_CPU_CPU_PROGRAM_H

#include "backend/delta_store.h"
#include "backend/plan.h"
#include "base/memory.h"
#include "base/pool.h"
#include "kernel/kernel.h"

enum {
    CPU_UNIT = 64,          /* columns that are quantized where they are made: 4 panels */
    CPU_TOKEN_BLOCK = 512,  /* rows of a product that go over a panel together, at most */
    CPU_ATTEND_ROWS = 64,   /* query rows (tokens x heads of a KV head) that share a page */
    CPU_REPEAT_ROWS = 2,    /* rows up to which threads repeat a cheap phase instead of a join */
    CPU_SPLIT_PAGES = 128,  /* pages whose partials are kept when few rows face many pages */
    CPU_DECODE_PIECE = 256, /* elements decoded at a time: whole blocks of any type */
    CPU_SPLIT_ROWS = 8,     /* tokens of a step up to which pages are shared out to threads */
    CPU_ADAPT_SPAN = 512,   /* k of an adapter's A that are summed apart (adapt.c) */
    CPU_ADAPT_FEW = 8,      /* rows up to which threads share these spans */
    CPU_ADAPT_ROWS = 16,    /* rows that meet an adapter's B together */
    CPU_ADAPT_FLOATS = 4096 /* of additions made at once; at least PITH_DELTA_MAX_RANK */
};

/* A plan's value, or one that the compiler made (router logits, rows grouped by expert). */
typedef struct cpu_value {
    uint32_t width;
    uint32_t multiple;        /* rows per row of the step: 1, or experts used */
    bool is_out, in_tail;     /* rows are n_out; rows of the running block of logits only */
    bool needs_q8, needs_f32; /* who reads it */
    bool takes_fast;          /* its rows of the fast contract are quantized in groups of 64 */
    int32_t ends_layer;       /* whose control vectors are added to it; -1: none */
    uint32_t first_phase, last_phase;
    size_t stride;            /* elements, a multiple of 16 whose sixteenth is odd */
    size_t offset, q8_offset; /* in the arena */
    uint32_t first_row; /* row that lies at data: 0, or the first of the running block of logits */
    float *data;        /* [rows, stride] */
    pith_q8 q8;
} cpu_value;

typedef enum cpu_step_kind {
    CPU_STEP_OP,       /* embed, norm, rope, add, scale, softcap, select: rows of `op` */
    CPU_STEP_ANGLES,   /* cos and sin of all rope settings at the row's position */
    CPU_STEP_QUANTIZE, /* value -> its q8 rows */
    CPU_STEP_KV_PUT,   /* op's k and v into the cache */
    CPU_STEP_ROUTE,    /* router logits -> experts and their weights */
    CPU_STEP_SUM_EXPERTS
} cpu_step_kind;

typedef struct cpu_row_step {
    cpu_step_kind kind;
    const pith_op *op;
    pith_value value; /* quantize */
    uint32_t moe;     /* route, sum */
} cpu_row_step;

typedef enum cpu_phase_kind {
    CPU_PHASE_ROWS,
    CPU_PHASE_PRODUCT,
    CPU_PHASE_ATTEND,
    CPU_PHASE_GROUP,      /* rows sorted by expert */
    CPU_PHASE_EXPERTS_UP, /* gathered rows -> act(gate) * up */
    CPU_PHASE_EXPERTS_DOWN
} cpu_phase_kind;

/* y_i = W_i x and what follows in the same pass. */
typedef struct cpu_product {
    pith_value x;
    uint32_t n;
    const pith_weight *weight[3], *bias[3];
    pith_value y[3];
    pith_activation act;
    pith_value residual;
    float scale;
} cpu_product;

typedef struct cpu_phase {
    cpu_phase_kind kind;
    const pith_op *op; /* that it belongs to (of rows: the first) */
    const char *label; /* "linear", for the profile; rows: the first step's */
    bool is_out;
    bool repeatable; /* rows: only the next phase reads results, so threads may make their own */
    bool by_head;    /* rows: the attention task of a KV head can make that head's part */
    uint32_t first_step, n_step; /* rows */
    cpu_product product;         /* product, experts */
    uint32_t moe;
} cpu_phase;

/* Mixture of experts: where the routing of a step lies. Rows that go to one expert are
 * neighbours. */
typedef struct cpu_moe {
    const pith_moe_op *op;
    pith_value logits, gathered, inner, outer; /* values: [n, n_expert]; [n * used, ...] */
    size_t offset;                             /* of all arrays below, in the arena */
    uint32_t first_phase, last_phase;
    int32_t *choice;  /* [n, used] expert */
    float *share;     /* [n, used] weight */
    uint32_t *place;  /* [n, used] row in gathered */
    uint32_t *source; /* [n * used] row of x */
    uint32_t *start;  /* [n_expert + 1] first gathered row of each expert */
    int32_t *active;  /* [n_expert] experts that have rows; -1 ends the list */
} cpu_moe;

/* Memory of one thread. */
typedef struct cpu_scratch {
    uint8_t *panel;       /* one panel: packed or f32 [k][16] */
    float *row;           /* pieces of 16 decoded weight rows; router probabilities */
    float *tile;          /* [token block, 2 * unit] gate and up */
    float *q, *o, *sum_o; /* [attend rows, head_dim or head_dim_v] */
    float *m, *l, *sum_m, *sum_l;
    int32_t *begin, *end;
    float *low;        /* [3 * CPU_ADAPT_FEW, adapter rank] scaled A x (adapt.c) */
    float *addition;   /* [2 * CPU_ADAPT_FLOATS]: of a set, and of one adapter on its way there */
    pith_q8 q8;        /* [attend rows, head_dim] */
    cpu_value *values; /* own view of all values, for repeated phases */
} cpu_scratch;

typedef struct cpu_scratch_sizes {
    size_t panel, row, tile, q, o, attend_rows, q8_row, low, addition, own_values;
} cpu_scratch_sizes;

typedef struct cpu_program {
    const pith_plan *plan;
    pith_backend_options options;
    pith_kernels kernels;
    cpu_value *values;
    uint32_t n_value, value_capacity;
    cpu_row_step *steps;
    uint32_t n_step, step_capacity;
    cpu_phase *phases;
    uint32_t n_phase, phase_capacity;
    uint32_t tail_phase; /* first phase of the head, run once per block of logits; n_phase: none */
    uint32_t tail_rows;  /* rows of a block of logits */
    cpu_moe *moes;
    uint32_t n_moe;
    double *frequencies;  /* of all rope settings, one after the other */
    uint32_t *rope_first; /* [n_rope] first pair of a setting */
    uint32_t n_pair;
    size_t angles_offset; /* [step_limit, 2 * n_pair] */
    uint32_t n_vocab;     /* rows of the embeddings */
    uint32_t block_rows;  /* tokens that attend together */
    size_t block_bytes;   /* activations that a product goes over together: half the second cache */
    uint32_t max_group;   /* query heads of a KV head */
    uint32_t split_pages; /* pages of a sequence, up to CPU_SPLIT_PAGES */
    size_t split_rows;    /* partials that are kept: (m, l, o) of a query row and a page */
    size_t split_stride;  /* floats of an o */
    size_t split_offset;  /* in the arena: all o, all m, all l */
    size_t sums_offset;   /* in the arena: A x of adapters (adapt.c) */
    cpu_scratch_sizes sizes;
    size_t scratch_offset, scratch_bytes; /* one thread */
    size_t arena_bytes, heap_bytes;
} cpu_program;

/* Compiles and measures; nothing of the arena is allocated. deinit is allowed after failure. */
pith_status pith_cpu_compile(cpu_program *program, const pith_plan *plan,
                             const pith_backend_options *options, pith_error *error);
void pith_cpu_program_deinit(cpu_program *program);
/* Gives every value, workspace and scratch its place in an arena (compile calls it once with
 * NULL to measure). */
pith_status pith_cpu_place(cpu_program *program, pith_error *error);

/* Rows of int8 activations in memory (place.c). */
size_t pith_cpu_q8_bytes(size_t rows, size_t width);
pith_q8 pith_cpu_q8_at(uint8_t *memory, size_t rows, size_t width);
size_t pith_cpu_part_bytes(const cpu_value *value, size_t rows, bool is_q8);
size_t pith_cpu_value_rows(const cpu_program *program, const cpu_value *value);

/* Floats that A x of adapters take, for any phase (adapt.c). */
size_t pith_cpu_adapt_floats(const cpu_program *program);

/* Whether products with this weight read q8 rows. */
bool pith_cpu_takes_q8(const cpu_program *program, const pith_weight *weight);
/* Whether they have a product in the fast contract that is worth it. */
bool pith_cpu_takes_fast(const cpu_program *program, const pith_weight *weight);
/* Whether they go through f32 panels made on the way. */
bool pith_cpu_decodes(const cpu_program *program, const pith_weight *weight);

static inline size_t cpu_round_up(size_t n, size_t unit) {
    return (n + unit - 1) / unit * unit;
}

/* The least odd multiple of `unit` that is >= n: rows that do not fall on the same cache sets. */
static inline size_t cpu_odd_multiple(size_t n, size_t unit) {
    size_t count = (n + unit - 1) / unit;
    return (count | 1) * unit;
}

#endif
