/* SPDX-License-Identifier: Apache-2.0
 * Weights in memory: declared from file tensors, then loaded all at once, packed into panels or
 * mapped in place (ARCHITECTURE.md, "Memory map"; why mmap mode packs on the fly:
 * docs/decisions/0002-mmap-mode-packs-on-the-fly.md). Immutable after load. Does not know models:
 * who declares what is in model/weights.c. Read next: weight.c, cpu/pack.c; rehearse.h for plans
 * that are timed without a file. */
#ifndef PITH_BACKEND_WEIGHT_H
#define PITH_BACKEND_WEIGHT_H

#include "base/source.h"
#include "base/text.h"
#include "quant/quant.h"

/* Roles, may be combined. */
enum {
    PITH_WEIGHT_LINEAR = 1, /* a matrix (or stack of experts) that multiplies rows: panels */
    PITH_WEIGHT_ROWS = 2,   /* rows are looked up (embeddings) */
    PITH_WEIGHT_VECTOR = 4  /* norm weights, biases, rope factors: converted to f32 */
};

typedef enum pith_layout {
    PITH_LAYOUT_ROWS,  /* file order, in the mapping or copied */
    PITH_LAYOUT_PANELS /* 16-row panels */
} pith_layout;

typedef struct pith_weight {
    const char *name;
    pith_type type;
    uint32_t n_dims;
    uint64_t ne[4]; /* ne[0] = k (inputs), ne[1] = rows (outputs), ne[2] = experts */
    uint64_t bytes; /* in the file */
    unsigned roles;
    pith_layout layout;
    const uint8_t *data; /* NULL before load */
    size_t row_bytes;    /* PITH_LAYOUT_ROWS: distance of rows */
    size_t panel_bytes;  /* PITH_LAYOUT_PANELS: distance of panels */
    size_t expert_bytes; /* distance of ne[2] slices */
    const float *values; /* VECTOR: all elements as f32, padded with zeros to a multiple of 16 */
    /* PITH_LAYOUT_PANELS: row `row` (0..15) of a panel as f32; else NULL. */
    void (*panel_decode)(const void *panel, uint32_t row, float *out, uint32_t k);
    uint32_t index; /* in the order in which weights were declared */
} pith_weight;

typedef struct pith_weight_source {
    const char *name; /* copied */
    pith_type type;
    uint32_t n_dims;
    uint64_t ne[4];
    pith_source *source;    /* must outlive the weights; NULL: there are no bytes to load */
    uint64_t offset, bytes; /* where the tensor lies in the source */
} pith_weight_source;

typedef struct pith_weights pith_weights;

/* How packed weights are read from a file (docs/decisions/0050-direct-reads.md). */
typedef enum pith_reading {
    PITH_READ_AUTO,   /* by what the page cache holds and could hold */
    PITH_READ_CACHED, /* through the page cache */
    PITH_READ_DIRECT  /* past it, but for what lies in it; where the system can */
} pith_reading;

typedef struct pith_weights_options {
    pith_load load;
    uint64_t memory_limit; /* bytes; 0: what the system can give */
    int32_t n_threads;     /* for packing */
    uint32_t features;     /* CPU tiers, for the pack kernels */
    bool full_precision;   /* keep nothing that only normal precision needs (reserved) */
    bool check_tensors;
    pith_reading reading;
    pith_progress progress;
    void *progress_user;
} pith_weights_options;

pith_status pith_weights_new(pith_weights **out, pith_error *error);
void pith_weights_free(pith_weights *weights);
/* Declares a tensor; the pointer stays valid until free. Declaring a name twice adds roles to the
 * first. */
pith_status pith_weights_add(pith_weights *weights, const pith_weight_source *source,
                             unsigned roles, const pith_weight **out, pith_error *error);
/* NULL: no weight of this name was declared. */
const pith_weight *pith_weights_find(const pith_weights *weights, pith_span name);
/* Reads, packs or maps everything that was declared. Refuses with the two numbers when
 * memory_limit or the system cannot hold it (AUTO then takes mmap). */
pith_status pith_weights_load(pith_weights *weights, const pith_weights_options *options,
                              pith_error *error);
/* Whether packed weights of so many bytes leave room in `available` for what else a model needs
 * (tokenizer, KV, workspace) and for others: 30 % of it, and never less than 96 MiB. What AUTO
 * goes by. */
bool pith_weights_leave_room(double bytes, double available);
/* Lays tensors out as a load in this mode (PACK or MMAP) would, and reads nothing:
 * pith_weights_bytes then tells what it would take. Weights declared without a source can only be
 * laid out. */
void pith_weights_lay_out(pith_weights *weights, pith_load mode, uint32_t features);
pith_load pith_weights_mode(const pith_weights *weights); /* PACK or MMAP, after load */
uint64_t pith_weights_bytes(const pith_weights *weights); /* resident (pack) or mapped */
/* Row `row` of a ROWS weight as f32 [ne[0]], from either layout. */
void pith_weight_decode_row(const pith_weight *weight, uint64_t row, float *out);

#endif
