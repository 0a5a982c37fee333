/* SPDX-License-Identifier: Apache-2.0
 * What an adapter adds to a model's results, in memory: low-rank pairs by weight and vectors by
 * layer.
 *
 *   y = W x + s B (A x)    A [rank, k], B [rows, rank]: LoRA (Hu et al. 2021, arXiv:2106.09685)
 *   y = table[token] + s B A[token]    the same where rows are looked up: A [n_vocab, rank]
 *   x = x + s v            at the end of a layer: a control vector
 *
 * A delta is immutable once it is filled and may be shared by threads and engines. It belongs to
 * the weights of one model and knows no file: model/adapter.c reads those. Read next: delta.c,
 * cpu/adapt.c (what a step does with it). */
#ifndef PITH_BACKEND_DELTA_H
#define PITH_BACKEND_DELTA_H

#include "backend/weight.h"
#include "base/status.h"

enum {
    PITH_DELTA_MAX_RANK = 1024,
    PITH_ADAPTERS_MAX = 32, /* of one sequence */
    PITH_DELTA_RANK_UNIT = 16
};

typedef struct pith_delta pith_delta;

/* Dense rows of F32, F16 or BF16: [n_slice][n_row][k]. */
typedef struct pith_delta_rows {
    pith_type type;
    uint32_t k, n_row, n_slice;
    const void *data; /* copied */
} pith_delta_rows;

typedef struct pith_delta_source {
    const pith_weight *weight;
    bool is_lookup; /* of an embedding table: A is [n_vocab][rank] */
    float scale;    /* the adapter's own (alpha / rank), finite */
    pith_delta_rows a, b;
} pith_delta_source;

/* features: the CPU tiers that may be used for packing. */
pith_status pith_delta_new(uint32_t features, pith_delta **out, pith_error *error);
void pith_delta_free(pith_delta *delta); /* NULL is allowed */
/* About how many bytes its matrices will take: memory comes in few large blocks, which the system
 * may back with huge pages. A hint. */
void pith_delta_expect(pith_delta *delta, uint64_t bytes);
/* The shapes must be those of the weight, which has one pair at most (two where it is looked up
 * and multiplies). PITH_ERROR_FORMAT for inf and NaN. */
pith_status pith_delta_add_pair(pith_delta *delta, const pith_delta_source *source,
                                pith_error *error);
/* values: [n], copied; n is the width of the residual stream. */
pith_status pith_delta_add_vector(pith_delta *delta, uint32_t layer, const float *values,
                                  uint32_t n, pith_error *error);

uint64_t pith_delta_bytes(const pith_delta *delta); /* of its matrices and vectors */
uint32_t pith_delta_rank(const pith_delta *delta);  /* largest of its pairs; 0: none */
/* What it takes of pith_backend_options.adapter_rank. */
uint32_t pith_delta_rank_room(const pith_delta *delta);
size_t pith_delta_n_pairs(const pith_delta *delta);
size_t pith_delta_n_vectors(const pith_delta *delta);

/* What the rows of a sequence are computed with: additions in this order. */
typedef struct pith_adapter_set {
    uint32_t n;
    const pith_delta *delta[PITH_ADAPTERS_MAX];
    float scale[PITH_ADAPTERS_MAX]; /* the user's, finite */
    int32_t from;                   /* rows at earlier positions are computed without */
} pith_adapter_set;

#endif
