/* SPDX-License-Identifier: Apache-2.0
 * Reading adapters (private to the model room): what the readers of GGUF files and PEFT folders
 * share. A reader brings one pair of matrices after the other into the loader's rows, as dense
 * floats, and adds them to the adapter under the weight's name in GGUF.
 *
 *   pith_adapter_begin -> pith_adapter_read (each slice) -> [turn, permute] -> pith_adapter_add
 *
 * Read next: adapter.c (opening), adapter_matrix.c, adapter_gguf.c, adapter_peft.c. */
#ifndef PITH_MODEL_ADAPTER_H
#define PITH_MODEL_ADAPTER_H

#include "model/architecture.h"

/* A matrix in a file. */
typedef struct pith_adapter_matrix {
    const char *name;
    pith_type type;
    uint64_t ne[3]; /* elements of a row, rows, slices (experts) */
    const pith_source *source;
    uint64_t offset, bytes;
} pith_adapter_matrix;

/* Dense rows being filled; the memory is used again for the next matrix. */
typedef struct pith_adapter_rows {
    pith_delta_rows rows; /* data: memory */
    uint8_t *memory;
    size_t capacity;
} pith_adapter_rows;

/* Which weight of the model a pair adds to. */
typedef struct pith_adapter_target {
    const pith_weight *weight;
    bool is_lookup;
} pith_adapter_target;

typedef struct pith_adapter_loader {
    pith_adapter *adapter;
    const pith_model *model;
    const pith_adapter_options *options;
    pith_adapter_rows a, b;
    uint8_t *raw; /* a tensor on its way to f32 */
    size_t raw_capacity;
    pith_error *error; /* may be NULL */
} pith_adapter_loader;

/* ---- Matrices (adapter_matrix.c) ---- */

/* The weight called `name` in GGUF files; `tensor`: who asks, for the sentence. */
pith_status pith_adapter_find(const pith_adapter_loader *loader, const char *name,
                              const char *tensor, pith_adapter_target *out);
/* Whether A and B, as they lie in memory, are a pair for the weight: within the limit of rank and
 * of the shapes that it asks for. */
pith_status pith_adapter_check_pair(const pith_adapter_loader *loader,
                                    const pith_adapter_target *target, const pith_adapter_matrix *a,
                                    const pith_adapter_matrix *b);
/* What a tensor's rows will take in the delta, about: k elements each. */
void pith_adapter_expect(uint64_t *bytes, pith_type type, uint64_t k, uint64_t n_row);
/* Makes room for n_slice slices of the matrix's shape, zeroed where `clear`. */
pith_status pith_adapter_begin(const pith_adapter_loader *loader, pith_adapter_rows *rows,
                               const pith_adapter_matrix *matrix, uint32_t n_slice, bool clear);
/* Reads the matrix to where slice `slice` begins. */
pith_status pith_adapter_read(pith_adapter_loader *loader, pith_adapter_rows *rows,
                              const pith_adapter_matrix *matrix, uint32_t slice);
/* Rows become columns; one slice. */
pith_status pith_adapter_turn(pith_adapter_loader *loader, pith_adapter_rows *rows);
/* The order of q's and k's rows in GGUF (pith_arch.permutes_qk), one slice of whole heads. */
pith_status pith_adapter_permute(pith_adapter_loader *loader, pith_adapter_rows *rows,
                                 uint32_t head_dim);
/* The pair that lies in loader->a and loader->b. */
pith_status pith_adapter_add(pith_adapter_loader *loader, const pith_adapter_target *target,
                             float scale);
void pith_adapter_loader_deinit(pith_adapter_loader *loader);

/* ---- Files ---- */

/* adapter_gguf.c: a LoRA or control vectors. */
pith_status pith_adapter_read_gguf(pith_adapter_loader *loader, const char *path);
/* adapter_peft.c: both paths exist or the sentence says which does not. */
pith_status pith_adapter_read_peft(pith_adapter_loader *loader, const char *config,
                                   const char *weights);

/* What adapter_config.json says of the numbers (peft_config.c). */
typedef struct pith_peft_config pith_peft_config;
pith_status pith_peft_config_open(const char *path, pith_peft_config **out, pith_error *error);
void pith_peft_config_close(pith_peft_config *config); /* NULL is allowed */
/* Factor of a module's pair, and the rank that it must have. */
pith_status pith_peft_config_scale(const pith_peft_config *config, pith_span module, uint32_t *rank,
                                   float *scale, pith_error *error);
/* Ids of an activated LoRA, malloced; none: *n is 0. */
pith_status pith_peft_config_invocation(const pith_peft_config *config, const pith_model *model,
                                        int32_t **ids, size_t *n, pith_error *error);

/* Ids that invoke an adapter must be tokens of the model, and not too many. */
enum { PITH_ADAPTER_MAX_INVOCATION = 1024 };

#endif
