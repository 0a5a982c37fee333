/* SPDX-License-Identifier: Apache-2.0
 * A model: the file, its hyper-parameters, its vocabulary, its template and its weights,
 * immutable once open.
 *
 * This file owns struct pith_model and what other rooms may ask of it. An architecture is one
 * file arch_<family>.c with two functions: `load` reads the family's keys and declares its
 * weights, `forward` records the plan. Both are named in one line of the registry
 * (architecture.c). Nothing here runs a step: that is the engine's.
 *
 * Everything that comes from the file is checked twice: when a key is read (type and range) and
 * once more after the defaults are applied (heads divide, shapes agree with the keys). Read next:
 * architecture.h, then arch_llama.c. */
#ifndef PITH_MODEL_MODEL_H
#define PITH_MODEL_MODEL_H

#include "backend/backend.h"
#include "gguf/gguf.h"
#include "kv/kv.h"
#include "token/token.h"

#include <stdatomic.h>

/* Published limits of a model. */
enum {
    PITH_MODEL_MAX_LAYERS = 512,
    PITH_MODEL_MAX_EXPERTS = 512,
    PITH_MODEL_MAX_EMBD = 1 << 17,
    PITH_MODEL_MAX_FF = 1 << 20,
    PITH_MODEL_MAX_HEADS = 1024,
    PITH_MODEL_MAX_HEAD_DIM = 1024,
    PITH_MODEL_MAX_VOCAB = 1 << 22,
    PITH_MODEL_MAX_CONTEXT = 1 << 27
};

typedef struct pith_arch pith_arch;   /* architecture.h */
typedef struct pith_layer pith_layer; /* architecture.h */
/* The vocabulary as a tree (src/sample), which this room only keeps. */
typedef _Atomic(struct pith_token_trie *) pith_model_trie;

/* Numbers of the whole model; what differs by layer is in pith_layer. */
typedef struct pith_hparams {
    uint32_t n_layer, n_embd, n_vocab;
    uint32_t n_ctx_train;             /* tokens */
    uint32_t n_expert, n_expert_used; /* 0: dense */
    float norm_eps;                   /* > 0, finite */
    float embed_scale;                /* embeddings times this */
    float attention_scale;            /* scores = scale * q . k */
    float final_softcap;              /* 0: off */
    pith_rope rope;                   /* positions of global layers */
    pith_rope rope_window;            /* positions of sliding layers, where they differ */
    uint32_t pooling_type;            /* as in the file: 0 none, 1 mean, 2 first, 3 last, 4 rank */
} pith_hparams;

struct pith_model {
    pith_gguf *gguf;                             /* owned */
    const pith_arch *arch;                       /* NULL only with vocab_only */
    pith_hparams hparams;                        /* zero with vocab_only */
    pith_layer *layers;                          /* [n_layer] */
    pith_tokenizer *tokenizer;                   /* owned */
    pith_weights *weights;                       /* owned; NULL with vocab_only */
    const pith_weight *token_embd, *output_norm; /* output_norm {n_embd} */
    const pith_weight *output;                   /* {n_embd, n_vocab}; token_embd when tied */
    const pith_weight *rope_freqs;               /* {n_rot / 2} divisors of the angles, or NULL */
    const char *architecture;                    /* general.architecture */
    const char *name;                            /* general.name or "" */
    const char *chat_template;                   /* NULL: none */
    char type[32];                               /* "Q4_K - Medium" */
    pith_buffer notes;                           /* what was assumed, one line each */
    uint64_t n_parameters, file_bytes, content_key;
    /* The control token that the chat template ends a reply with, -1: unknown. Written once by
     * the opener, which sees the template engine, before anybody else has the model. */
    int32_t turn_end;
    pith_model_trie trie; /* made when first asked for (src/engine); NULL: not yet */
};

/* Loads a model from an open file, which it takes over in every case. `options` may be NULL (all
 * defaults); features: the CPU tiers that may be used for packing. */
pith_status pith_model_load(pith_gguf *gguf, const pith_model_options *options, uint32_t features,
                            pith_model **out, pith_error *error);
void pith_model_free(pith_model *model); /* NULL is allowed */

/* PITH_OK when pith_model_load would run this file: architecture, keys, shapes, types and
 * vocabulary are checked, no weight is read. */
pith_status pith_model_check(const pith_gguf *gguf, pith_error *error);

/* The content key of an open file (pith_model_info); PITH_ERROR_FORMAT where bytes are missing. */
pith_status pith_model_file_key(const pith_gguf *gguf, uint64_t *key, pith_error *error);

/* A model without its weights' data: keys, shapes, vocabulary and the layout of a load in the
 * given mode (PACK or MMAP). It can be measured, not run. gguf stays the caller's and must outlive
 * it. */
pith_status pith_model_outline(const pith_gguf *gguf, pith_load load, uint32_t features,
                               pith_model **out, pith_error *error);

/* Of layers together. */
typedef struct pith_layer_cost {
    double memory; /* bytes of weights, all experts among them */
    double bytes;  /* that a token reads */
    /* multiply-adds of a token, and those of the last layer's feed-forward, which only the rows
     * that want logits go through */
    double attention_macs, ffn_macs, last_ffn_macs;
} pith_layer_cost;
pith_layer_cost pith_model_cost(const pith_model *model);

/* A part of an outline that is timed in place of the whole (part.c). */
typedef struct pith_model_part {
    pith_model model;    /* a copy of the outline with the chosen layers, in order of choice: the
                            first of them are an average part too */
    uint32_t n_all;      /* layers of the whole */
    pith_layer_cost all; /* of the whole's layers */
    double output_scale; /* rows of the output layer over those of the part's */
    uint32_t n_token;    /* ids below this have an embedding */
} pith_model_part;
/* memory: bytes that the part's weights may take. Shortens weights of the outline, which is good
 * for nothing else afterwards. */
pith_status pith_model_part_init(pith_model_part *part, const pith_model *outline, uint64_t memory,
                                 pith_error *error);
void pith_model_part_deinit(pith_model_part *part);

/* Records the forward pass. */
pith_status pith_model_record(const pith_model *model, pith_plan *plan, pith_error *error);
/* What each layer keeps in the KV cache: shapes[n_layer]. */
void pith_model_kv_shapes(const pith_model *model, pith_kv_shape *shapes);

pith_model_info pith_model_get_info(const pith_model *model);
/* End tokens: the tokenizer's and the chat template's. */
bool pith_model_is_end(const pith_model *model, int32_t id);

/* ---- Adapters (adapter.c) ---- */

struct pith_adapter {
    atomic_int n_holders; /* the opener and sessions; the last one to let go frees it */
    const pith_model *model;
    pith_adapter_kind kind;
    pith_delta *delta;                 /* owned; what it adds */
    char *name, *task, *prompt_prefix; /* owned */
    int32_t *invocation;               /* owned, [n_invocation]; NULL: always on */
    size_t n_invocation;
    uint64_t content_key;
};

/* options: complete. features: the CPU tiers that may be used for packing. The adapter has one
 * holder. */
pith_status pith_adapter_load(const pith_model *model, const char *path,
                              const pith_adapter_options *options, uint32_t features,
                              pith_adapter **out, pith_error *error);
void pith_adapter_hold(pith_adapter *adapter);
void pith_adapter_release(pith_adapter *adapter); /* NULL is allowed */
pith_adapter_info pith_adapter_get_info(const pith_adapter *adapter);

/* Name of the index-th architecture that this build runs; NULL past the end. */
const char *pith_architecture_name(size_t index);

#endif
