/* SPDX-License-Identifier: Apache-2.0
 * Private to the engine room: what running a file would take, memory and time (pith.h, "Before
 * loading").
 *
 *   estimate.c         puts the answer together
 *   estimate_work.c    what a token costs, from tensors and keys alone: any architecture
 *   estimate_memory.c  weights, KV, workspace, and what would make them fit
 *   rehearsal.c        times the model's own plan with made-up weights
 *   device_table.c     devices by name
 *
 * Nothing here reads weights. */
#ifndef PITH_ENGINE_ESTIMATE_H
#define PITH_ENGINE_ESTIMATE_H

#include "engine/engine.h"

/* Work of a token and sizes, counted from the tensor list. */
typedef struct pith_work {
    uint64_t n_parameters, tensor_bytes;
    uint64_t header_bytes;    /* in front of the tensors: most of it is the vocabulary */
    uint32_t n_vocab;         /* tokens in it */
    double token_bytes;       /* read per token: embeddings one row, experts those used */
    double layer_macs;        /* per token, output layer left out */
    double output_macs;       /* of the output layer */
    uint32_t n_layer, n_embd; /* from keys; 0 unknown */
    uint32_t n_ctx_train;
    double kv_elements; /* of all layers for a token of context; 0 unknown */
    bool kv_is_guess;   /* from keys of an architecture that this build does not run */
} pith_work;
void pith_estimate_count_work(const pith_gguf *gguf, pith_work *work);

/* Fills the sizes of out and what would make it fit. outline: NULL where this build does not run
 * the file. */
pith_status pith_estimate_memory(const pith_model *outline, const pith_work *work,
                                 const pith_fit_options *options, pith_fit *out, pith_error *error);

/* Appends a line to out->notes; what does not fit is left out. */
void pith_estimate_note(pith_fit *out, const char *text);

/* Speeds from figures instead of measurement. */
void pith_estimate_by_figures(const pith_device *device, const pith_work *work, pith_fit *out);

/* Bytes of an element of keys and values, scales included. */
double pith_estimate_kv_element_bytes(pith_kv_type type);

#endif
