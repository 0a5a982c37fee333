/* SPDX-License-Identifier: Apache-2.0
 * Private to the CPU backend: a running program, and what its parts call of each other. What the
 * running step needs is written between parallel regions only; inside one, threads write only
 * values of the arena and their own cpu_context and cpu_scratch. Read next: runner.c. */
#ifndef PITH_BACKEND_CPU_RUNNER_H
#define PITH_BACKEND_CPU_RUNNER_H

#include "backend/cpu/cpu_program.h"
#include "backend/cpu/trial.h"

/* Tokens of one sequence that attend together. */
typedef struct cpu_block {
    uint32_t first_row, n_row;
    int32_t sequence;
} cpu_block;

typedef struct cpu_profile {
    uint64_t ns, n_calls;
    char name[64]; /* "linear attn_q"; set in the first phase of that name */
    uint32_t row;  /* phase that sums up all of this name */
} cpu_profile;

struct pith_runner {
    cpu_program program;
    pith_pool *pool;
    pith_region region;
    cpu_scratch *scratch;               /* [n_threads] */
    float *angles;                      /* [step_limit, 2 * n_pair] cos, sin */
    float *split_o, *split_m, *split_l; /* partials of pages (attention.c) */
    float *sums;                        /* A x of adapters (adapt.c) */
    cpu_block *blocks;                  /* [step_limit] */
    char name[32];
    pith_trace trace;
    void *trace_user;
    bool profiling;
    cpu_profile *profile; /* [n_phase] */
    cpu_trial trial;
    /* The running step; written between regions. */
    const pith_step *step;
    uint32_t n_block;
    uint32_t first_phase, end_phase; /* of the region */
    /* Of the only phase, when a trace runs steps one by one; n_step 0: all. */
    uint32_t first_step, n_step;
    uint32_t first_out, n_out; /* rows of n_out values in this region */
    bool is_single;            /* no sequence has more than one block */
    uint32_t max_pages;        /* of a sequence */
    bool is_small;             /* few rows: cheap phases are repeated by every thread */
    bool prefetch;             /* of products (trial.h) */
    bool adapts;               /* a sequence has adapters: floats of all values are made */
};

/* What chunks of the running phase get; each thread has its own. */
typedef struct cpu_context {
    pith_runner *runner;
    const cpu_phase *phase;
    cpu_value *values; /* shared, or the thread's own where a phase was repeated */
    /* Repeatable rows that this thread must make first; NULL: none or done. */
    const cpu_phase *before;
    bool has_low; /* this thread has the scaled A x of the phase's few rows (adapt.c) */
    int thread;
    uint32_t rows_per_chunk;   /* rows phases */
    uint32_t first_row, n_row; /* of the phase's domain; first_row is not 0 in blocks of logits */
} cpu_context;

static inline float *cpu_row(const cpu_value *value, uint32_t row) {
    return value->data + (size_t)(row - value->first_row) * value->stride;
}

/* Block `page` (64 tokens) of a sequence, all layers of one window group. */
static inline uint8_t *cpu_kv_block(const pith_runner *runner, int32_t sequence, uint32_t group,
                                    uint32_t page) {
    const pith_step *step = runner->step;
    uint32_t n_group = runner->program.options.kv->n_group;
    return step->tables[(size_t)sequence * n_group + group].blocks[page];
}

/* runner.c: all threads walk phases [first, end). */
void pith_cpu_run_phases(pith_runner *runner, uint32_t first, uint32_t end);

/* trace.c: the same one by one, and each named value is told. */
void pith_cpu_trace_phases(pith_runner *runner, uint32_t first, uint32_t end);

/* rows.c: steps [first, first + n) for rows [begin, end). */
void pith_cpu_rows(const cpu_context *context, uint32_t first, uint32_t n, uint32_t begin,
                   uint32_t end);

/* One KV head's part of a group of steps that work head by head (cpu_phase.by_head), for a block
 * of rows. */
void pith_cpu_rows_of_head(const cpu_context *context, const cpu_phase *rows,
                           const cpu_block *block, uint32_t head, uint32_t n_head_kv);

/* How many of the n rows from `row` on are in the contract of the first; *fast: in which. */
static inline uint32_t cpu_same_contract(const pith_runner *runner, const cpu_value *value,
                                         uint32_t row, uint32_t n, bool *fast) {
    const bool *is_fast = value->takes_fast ? runner->step->is_fast : NULL;
    uint32_t same = 1;
    *fast = is_fast && is_fast[row];
    if (!is_fast) return n;
    while (same < n && is_fast[row + same] == *fast) same++;
    return same;
}

/* product.c */
typedef struct cpu_tile {
    const pith_weight *weight;
    uint32_t expert;
    uint32_t panel, n_panel;
    const cpu_value *x;
    uint32_t row, n_row; /* of x */
    float *y;            /* first column of the first panel, first row */
    size_t y_stride;
} cpu_tile;
void pith_cpu_tile(const cpu_context *context, const cpu_tile *tile);
/* act(gate) * up of the phase's product for a range of panels and rows, 64 columns at a time. */
void pith_cpu_joined(const cpu_context *context, cpu_tile tile);
/* Columns [column, column + n) of the tile's rows become int8 rows of y, each in its contract. */
void pith_cpu_quantize_columns(const pith_runner *runner, const cpu_value *y, const cpu_tile *tile,
                               uint32_t column, uint32_t n);
void pith_cpu_product(cpu_context *context, uint64_t *index);
/* Makes the repeatable rows before the phase, unless this thread has. */
void pith_cpu_make_before(cpu_context *context);

/* attention.c */
/* Whether the tasks of this phase are KV heads of whole sequences, which may then make their own
 * q, k, v. */
bool pith_cpu_attend_is_whole(const pith_runner *runner, const cpu_phase *phase);
void pith_cpu_attend(cpu_context *context, uint64_t *index);

/* adapt.c: called only where runner->adapts. */
/* A x of the phase's adapted weights, an operation of its own before the product's; none where
 * nothing of the phase is adapted. */
void pith_cpu_adapt_inputs(cpu_context *context, uint64_t *index);
/* Once a chunk, before its tiles. */
void pith_cpu_adapt_begin(cpu_context *context);
/* Asks the processor for B of the tile's panels. */
void pith_cpu_adapt_ahead(const cpu_context *context, const cpu_tile *tile, uint32_t which);
/* Adds B (A x) to the tile, which weight `which` of the phase's product made. */
void pith_cpu_adapt_tile(const cpu_context *context, const cpu_tile *tile, uint32_t which);
/* Adds B A[token] to a row of embeddings. */
void pith_cpu_adapt_lookup(const cpu_context *context, const pith_weight *table, uint32_t row,
                           float *y);
/* Adds control vectors to columns [column, column + n) of a value's row, which lie at y. */
void pith_cpu_adapt_end(const cpu_context *context, const cpu_value *value, const cpu_tile *tile,
                        uint32_t column, uint32_t n);

/* experts.c */
void pith_cpu_route(const cpu_context *context, const cpu_moe *moe, uint32_t row);
void pith_cpu_sum_experts(const cpu_context *context, const cpu_moe *moe, const pith_op *op,
                          uint32_t row);
void pith_cpu_experts(cpu_context *context, uint64_t *index);

#endif
