/* SPDX-License-Identifier: Apache-2.0
 * What an architecture file is made of (private to the model room): the registry entry, the
 * layer, the loader with its sticky first error, typed reading of keys, finding of weights, and
 * the shared pieces of forward passes.
 *
 * The loader keeps the first failure in `status`; every later call does nothing and returns a
 * default, so that `load` reads as a list. Whoever loops over a value from the file checks
 * `status` first. Read next: hparams.c (keys), weights.c (tensors), layers.c (pieces of plans),
 * arch_llama.c (a family). */
#ifndef PITH_MODEL_ARCHITECTURE_H
#define PITH_MODEL_ARCHITECTURE_H

#include "base/map.h"
#include "model/model.h"
#include "model/vocab.h"

typedef struct pith_loader pith_loader;

struct pith_arch {
    const char *name; /* general.architecture */
    /* Reads the family's keys into model->hparams and model->layers and declares the weights. */
    void (*load)(pith_loader *loader);
    /* Records the plan; faults stick in the plan. */
    void (*forward)(const pith_model *model, pith_plan *plan);
    /* Rows of q and k of a head lie in another order than in the original files, so that RoPE turns
     * neighbours: row 2j + p is the original's row p * head_dim / 2 + j. */
    bool permutes_qk;
};

/* NULL for an architecture that this build does not run. */
const pith_arch *pith_architecture_find(pith_span name);
extern const pith_arch pith_arch_gemma3, pith_arch_llama, pith_arch_qwen2;

/* One layer: its shapes and its weights. A weight that the family or the file does not have is
 * NULL. */
struct pith_layer {
    uint32_t n_head, n_head_kv, head_dim, head_dim_v;
    uint32_t n_ff;   /* of an expert where the layer has experts */
    uint32_t window; /* keys at this distance or more are invisible; 0: all are visible */
    const pith_weight *attn_norm; /* {n_embd} */
    const pith_weight *q, *k, *v; /* {n_embd, heads * head_dim} */
    const pith_weight *q_bias, *k_bias, *v_bias;
    const pith_weight *q_norm, *k_norm;                /* {head_dim} */
    const pith_weight *attn_output, *attn_output_bias; /* {n_head * head_dim_v, n_embd} */
    const pith_weight
        *post_attn_norm;         /* {n_embd}, on the attention's result before the residual sum */
    const pith_weight *ffn_norm; /* {n_embd} */
    const pith_weight *gate, *up, *down; /* {n_embd, n_ff} x 2, {n_ff, n_embd}; experts: 3-D */
    const pith_weight *gate_bias, *up_bias, *down_bias;
    const pith_weight *post_ffn_norm; /* {n_embd} */
    const pith_weight *router;        /* {n_embd, n_expert} */
};

struct pith_loader {
    pith_model *model; /* being filled */
    const pith_gguf *gguf;
    const char *arch;   /* prefix of keys, without the dot */
    pith_status status; /* the first failure */
    pith_error *error;  /* its text; may be NULL */
    pith_map taken;     /* names of tensors that the architecture asked for */
    bool is_outline;    /* weights are declared without their bytes */
};

/* Keeps the first failure. */
void pith_loader_fail(pith_loader *loader, pith_status status, const char *format, ...)
    PITH_PRINTF(3, 4);
/* Adds a line to the model's notes. */
void pith_loader_note(pith_loader *loader, const char *format, ...) PITH_PRINTF(2, 3);

/* ---- Keys (hparams.c). `key` is without the architecture's prefix. ---- */

/* Value in [min, max], or `absent` when the file does not have the key. */
uint32_t pith_load_u32(pith_loader *loader, const char *key, uint32_t min, uint32_t max,
                       uint32_t absent);
/* The same for a key that must exist. */
uint32_t pith_load_u32_needed(pith_loader *loader, const char *key, uint32_t min, uint32_t max);
float pith_load_f32(pith_loader *loader, const char *key, float absent);
bool pith_load_bool(pith_loader *loader, const char *key, bool absent);
bool pith_load_has(const pith_loader *loader, const char *key);
/* Text of a string key; "" when absent. */
pith_span pith_load_text(pith_loader *loader, const char *key);
/* The keys that every decoder has: sizes, heads, epsilon; makes model->layers. */
void pith_load_hparams(pith_loader *loader);
/* expert_count and expert_used_count; families without experts do not call it. */
void pith_load_expert_counts(pith_loader *loader);
/* Refuses a model whose key says something that this family's forward pass does not do. */
void pith_load_causal_only(pith_loader *loader);
/* Sets layers' windows from attention.sliding_window and .sliding_window_pattern; period: without
 * the pattern key, every period-th layer is global. */
void pith_load_windows(pith_loader *loader, uint32_t period);
/* rope.* keys (rope_setting.c): one setting for the whole model into hparams.rope, with n_rot
 * pairs in the given order. */
void pith_load_rope(pith_loader *loader, bool neox);

/* ---- Weights (weights.c) ---------------------------------------------------------------------
 * Names are completed: layer 3, "attn_q" -> "blk.3.attn_q.weight"; layer -1: no prefix. */

typedef enum pith_need { PITH_NEEDED, PITH_OPTIONAL } pith_need;

/* A matrix of n_out rows of n_in. */
const pith_weight *pith_load_matrix(pith_loader *loader, int32_t layer, const char *name,
                                    uint32_t n_in, uint32_t n_out);
/* A stack of n_expert matrices. */
const pith_weight *pith_load_experts(pith_loader *loader, int32_t layer, const char *name,
                                     uint32_t n_in, uint32_t n_out);
/* A vector of n elements; `name` with its suffix ("attn_norm.weight", "attn_q.bias"). */
const pith_weight *pith_load_vector(pith_loader *loader, int32_t layer, const char *name,
                                    uint32_t n, pith_need need);
/* token_embd, output_norm, output (or tied); sets hparams.n_vocab and checks it against the
 * vocabulary. */
void pith_load_embedding(pith_loader *loader);
/* The weights of a layer as most decoders have them: norms, q, k, v, output with optional
 * biases; dense or experts. */
void pith_load_attention(pith_loader *loader, uint32_t il);
void pith_load_ffn(pith_loader *loader, uint32_t il);
/* Fails when the file holds a tensor that nobody asked for: a graph that ignores weights gives
 * wrong answers. */
void pith_load_nothing_left(pith_loader *loader);

/* ---- Pieces of forward passes (layers.c) ---- */

/* RMS norm of rows, or of heads of `group` elements. */
pith_value pith_record_norm(const pith_model *model, pith_plan *plan, const char *name,
                            pith_value x, const pith_weight *weight, uint32_t group);
/* q, k, v of the normalised input: three products that share it. */
void pith_record_qkv(pith_plan *plan, const pith_layer *layer, pith_value x, pith_value qkv[3]);
/* q and k turned by the positions. */
void pith_record_rope(pith_plan *plan, const pith_layer *layer, const pith_value qkv[3],
                      uint32_t table);
/* Attention over the cache; layer index il. -> [n, n_head * head_dim_v] */
pith_value pith_record_attend(const pith_model *model, pith_plan *plan, uint32_t il,
                              const pith_value qkv[3]);
/* y = W x (+ bias) (+ residual). */
pith_value pith_record_product(pith_plan *plan, const char *name, const pith_weight *weight,
                               const pith_weight *bias, pith_value x, pith_value residual);
/* down(act(gate x) * up x) (+ residual), or the mixture of experts. */
pith_value pith_record_ffn(const pith_model *model, pith_plan *plan, uint32_t il,
                           pith_activation act, pith_value x, pith_value residual);
/* Final norm, output product, softcap. */
void pith_record_head(const pith_model *model, pith_plan *plan, pith_value x);
/* The model's rope setting with its divisors, registered with the plan. */
uint32_t pith_record_rope_table(const pith_model *model, pith_plan *plan);

/* ---- Others of the room ---- */

/* "Q4_K - Medium" for general.file_type; NULL when unknown (file_type.c). */
const char *pith_file_type_text(uint32_t file_type);
/* Most frequent type of the weights, or the file type's name. */
void pith_model_type_text(const pith_gguf *gguf, char *text, size_t capacity);
/* Hash of the header and of sampled bytes of every tensor (content_key.c). */
pith_status pith_content_key(const pith_gguf *gguf, uint64_t *key, pith_error *error);

#endif
