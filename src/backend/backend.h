/* SPDX-License-Identifier: Apache-2.0
 * What a backend runs: a plan (the straight list of operations that a model's forward() records
 * once), weights, KV page tables, and steps. Nothing above this header knows an instruction set.
 * Plan recording never fails in the middle: the first error sticks and pith_plan_check tells it.
 * Read next: plan.c (recording), cpu/runner.c (running). */
#ifndef PITH_BACKEND_BACKEND_H
#define PITH_BACKEND_BACKEND_H

#include "backend/delta.h"
#include "backend/weight.h"
#include "base/status.h"
#include "quant/quant.h"

/* ---- Values -------------------------------------------------------------------------------------
 * A value is a matrix of floats [rows, width]; rows is n (tokens of the step) or n_out (rows that
 * want logits). */
typedef int32_t pith_value; /* -1: none */
#define PITH_NO_VALUE (-1)

typedef enum pith_activation {
    PITH_ACT_NONE,
    PITH_ACT_SILU,
    PITH_ACT_GELU,
    PITH_ACT_GELU_ERF,
    PITH_ACT_RELU2
} pith_activation;
typedef enum pith_norm_kind { PITH_NORM_RMS, PITH_NORM_LAYER } pith_norm_kind;

typedef struct pith_plan pith_plan;

pith_plan *pith_plan_new(void); /* NULL without memory */
void pith_plan_free(pith_plan *plan);
pith_status pith_plan_check(const pith_plan *plan, pith_error *error);
/* The name that trace and profile show; follows "layer 3 attn_norm" style. layer -1: none. Valid
 * for ops recorded after it. */
void pith_plan_layer(pith_plan *plan, int32_t layer);

/* rows of `table` [n_vocab rows] by the step's tokens, times scale. -> [n, n_embd] */
pith_value pith_plan_embed(pith_plan *plan, const char *name, const pith_weight *table,
                           float scale);

typedef struct pith_norm_op {
    pith_norm_kind kind;
    pith_value x;
    const pith_weight *weight, *bias; /* NULL: absent */
    uint32_t group;                   /* elements normalised together (a head); 0: the whole row */
    float eps;
} pith_norm_op;
pith_value pith_plan_norm(pith_plan *plan, const char *name, const pith_norm_op *args);

/* y_i = W_i x (+ bias_i); up to three weights share x.
 *   act, n = 1        y_0 = act(W_0 x)
 *   act, n = 2        y_0 = act(W_0 x) * (W_1 x): gate and up, one result
 *   residual, n = 1   y_0 = residual + W_0 x (+ bias)
 * scale, when not 0, multiplies W x (after all else, before the residual). */
typedef struct pith_linear_op {
    pith_value x;
    uint32_t n; /* weights, 1..3 */
    const pith_weight *weight[3], *bias[3];
    pith_activation act;
    pith_value residual; /* PITH_NO_VALUE: none */
    float scale;
} pith_linear_op;
/* out has n results, or one with act. */
void pith_plan_linear(pith_plan *plan, const char *name, const pith_linear_op *args,
                      pith_value *out);

/* How positions become angles; one per distinct setting of a model. The engine fills the tables of
 * a step. */
typedef struct pith_rope {
    uint32_t n_rot;             /* elements of a head that are rotated */
    bool neox;                  /* half-split pairs; else neighbours */
    float base, freq_scale;     /* theta_i = pos * base^(-2i/n_rot) * freq_scale (/ factor_i) */
    const float *factors;       /* [n_rot/2] divisors (rope_freqs, longrope) or NULL */
    float ext_factor;           /* YaRN (rope.c has its formula); 0: off */
    float beta_fast, beta_slow; /* YaRN: turns in n_ctx_orig where the ramp begins and ends */
    float attn_factor;          /* net magnitude of cos and sin */
    uint32_t n_ctx_orig;        /* YaRN: context of the training before it was stretched */
} pith_rope;
/* Registers a setting (copied, factors borrowed; equal settings share an index). */
uint32_t pith_plan_rope_table(pith_plan *plan, const pith_rope *rope);
/* Rotates each head of x [n, n_head * head_dim] in place by the step's positions. */
void pith_plan_rope(pith_plan *plan, const char *name, pith_value x, uint32_t table,
                    uint32_t n_head, uint32_t head_dim);

/* Writes the rows' k, v into the KV cache and attends q over it. layer: index of the layer in the
 * KV layout. -> [n, n_head * head_dim_v] */
typedef struct pith_attend_op {
    pith_value q;   /* [n, n_head * head_dim] */
    pith_value k;   /* [n, n_head_kv * head_dim] */
    pith_value v;   /* [n, n_head_kv * head_dim_v] */
    uint32_t layer; /* in the KV layout */
    uint32_t n_head, n_head_kv, head_dim, head_dim_v;
    float scale;     /* scores are scale * (q . k) */
    uint32_t window; /* keys at distance >= window are invisible; 0: all */
    float softcap;   /* 0: off */
} pith_attend_op;
pith_value pith_plan_attend(pith_plan *plan, const char *name, const pith_attend_op *args);

/* Mixture of experts: router logits = router x; probabilities by gating; top n_used (ties: lower
 * index); their weights w divided by max(sum, 2^-14) when `normalise`, times scale when not 0.
 * Result: residual + sum over used experts, in router order, of w * down(act(gate x) * up x). */
typedef enum pith_gating {
    PITH_GATING_SOFTMAX = 1,
    PITH_GATING_SIGMOID = 2,
    PITH_GATING_SOFTMAX_SELECTED = 3
} pith_gating;
typedef struct pith_moe_op {
    pith_value x, residual;
    const pith_weight *router, *gate, *up, *down; /* experts: ne[2] = n_expert */
    uint32_t n_expert, n_used;
    pith_gating gating;
    bool normalise;
    float scale; /* of the experts' weights; 0: none */
    pith_activation act;
} pith_moe_op;
pith_value pith_plan_moe(pith_plan *plan, const char *name, const pith_moe_op *args);

pith_value pith_plan_add(pith_plan *plan, const char *name, pith_value a, pith_value b);
pith_value pith_plan_scale(pith_plan *plan, const char *name, pith_value x, float scale);
/* cap * tanh(x / cap) */
pith_value pith_plan_softcap(pith_plan *plan, const char *name, pith_value x, float cap);
/* Keeps the rows that want logits. -> [n_out, width] */
pith_value pith_plan_select(pith_plan *plan, const char *name, pith_value x);
/* x is the residual stream at the end of the layer being recorded: a row's control vectors of that
 * layer are added where x is made, by a product with one result and no activation, a sum or a
 * mixture. */
void pith_plan_end_layer(pith_plan *plan, pith_value x);
/* The plan's result: logits [n_out, n_vocab], or states [n_out, n_embd]. */
void pith_plan_output(pith_plan *plan, pith_value x);
/* Said before anything is recorded: the result shall be the final states, from which the output
 * layer would make logits. */
void pith_plan_want_states(pith_plan *plan);
bool pith_plan_wants_states(const pith_plan *plan);
/* Floats in a row of the result. */
uint32_t pith_plan_output_width(const pith_plan *plan);

/* ---- KV pages -----------------------------------------------------------------------------------
 * A block holds 64 tokens of all layers of one window group. The kv room owns the memory; the
 * backend finds a page at table.blocks[position / 64] + layer.k + head * layer.k_head_bytes. */
enum { PITH_KV_BLOCK_TOKENS = 64 };

typedef enum pith_kv_storage {
    PITH_KV_STORE_F32,
    PITH_KV_STORE_F16,
    PITH_KV_STORE_I8
} pith_kv_storage;

typedef struct pith_kv_layer {
    uint32_t group; /* window group whose block table holds this layer */
    uint32_t n_head_kv, head_dim, head_dim_v;
    uint32_t window;                   /* tokens a row sees; 0: all */
    size_t k, v;                       /* byte offsets in a block, 64-byte aligned */
    size_t k_scale, v_scale;           /* the same; int8 only */
    size_t k_head_bytes, v_head_bytes; /* distance of heads; scales: 64 floats a head */
} pith_kv_layer;

typedef struct pith_kv_layout {
    pith_kv_storage storage;
    uint32_t n_layer, n_group; /* window groups */
    pith_kv_layer *layers;     /* [n_layer] */
    uint32_t *group_window;    /* [n_group], 0: all */
    size_t *block_bytes;       /* [n_group] */
} pith_kv_layout;

typedef struct pith_kv_table {
    uint8_t *const *blocks; /* [n_blocks] of 64 tokens; NULL: dropped (outside the window) */
    uint32_t n_blocks;
} pith_kv_table;

/* ---- Steps ---------------------------------------------------------------------------------- */

/* Rows of one sequence are contiguous and in order of position. */
typedef struct pith_step {
    uint32_t n, n_out, n_sequence; /* rows; rows that want logits; sequences they belong to */
    const int32_t *tokens;         /* [n] */
    const int32_t *positions;      /* [n] */
    const int32_t *sequence;       /* [n], 0 .. n_sequence - 1 */
    const bool *is_fast;           /* [n] rows in the fast contract (kernel.h); NULL: none */
    const int32_t *out_rows;       /* [n_out], increasing */
    const pith_kv_table *tables;   /* [n_sequence, n_group] */
    /* [n_sequence] what each sequence is computed with, NULL entries: the model alone; NULL: no
     * sequence has adapters. What is added to a product is computed from its input before that is
     * rounded to int8, the same in both contracts (cpu/adapt.c has the order of sums). */
    const pith_adapter_set *const *adapters;
    /* Result: called with blocks of rows, in order; row counts from 0 over out_rows. Rows are as
     * wide as the plan's result, `stride` apart, valid during the call. Returns non-zero to stop.
     */
    int (*on_logits)(void *user, uint32_t first, uint32_t n, const float *logits, size_t stride);
    void *user;
} pith_step;

typedef struct pith_backend_options {
    int32_t n_threads;
    int32_t decode_threads; /* of them, for steps of one or two rows; 0: all */
    uint32_t step_limit;    /* largest n */
    bool full_precision;
    uint32_t features;        /* CPU tiers (cpu/cpu.h) */
    const pith_kv_layout *kv; /* borrowed */
    uint32_t n_ctx;           /* tokens a sequence can hold */
    /* Sum of pith_delta_rank_room over a sequence's adapters, at most; 0: no adapters. */
    uint32_t adapter_rank;
} pith_backend_options;

/* A plan made ready on a backend: threads, workspace. Running a step allocates nothing. */
typedef struct pith_runner pith_runner;

/* Bytes pith_runner_new would allocate. */
pith_status pith_runner_bytes(const pith_plan *plan, const pith_backend_options *options,
                              uint64_t *bytes, pith_error *error);
/* The plan and weights must outlive the runner. */
pith_status pith_runner_new(const pith_plan *plan, const pith_backend_options *options,
                            pith_runner **out, pith_error *error);
void pith_runner_free(pith_runner *runner);
/* PITH_ERROR_CANCELLED when on_logits stopped it; otherwise cannot fail for checked input. */
pith_status pith_runner_run(pith_runner *runner, const pith_step *step, pith_error *error);
void pith_runner_trace(pith_runner *runner, pith_trace trace, void *user);
void pith_runner_profile(pith_runner *runner, bool enable);
/* Whether the last step asked for weights ahead of its loops: single tokens try both at first. */
bool pith_runner_prefetched(const pith_runner *runner);
size_t pith_runner_profile_rows(const pith_runner *runner, pith_profile_row *rows, size_t capacity);
const char *pith_runner_name(const pith_runner *runner); /* "cpu avx512" */
int32_t pith_runner_threads(const pith_runner *runner);

/* cos, sin of a rope setting at a position: [n_rot/2][2] floats, angles in double (rope.c). */
void pith_rope_fill(const pith_rope *rope, int32_t position, float *table);

#endif
