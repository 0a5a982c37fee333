/* SPDX-License-Identifier: Apache-2.0
 * Private to backend: how tensors get from a source into memory, in panels where the CPU has
 * kernels for them. */
#ifndef PITH_BACKEND_CPU_PACK_H
#define PITH_BACKEND_CPU_PACK_H

#include "backend/weight.h"

typedef struct pith_pack_item {
    pith_weight *weight;
    pith_source *source;
    uint64_t offset;
    uint8_t *memory; /* where the tensor goes; in mmap mode where it lies */
    bool in_place;   /* mmap mode: only checked */
} pith_pack_item;

/* Sets layout, strides and panel_decode; returns the bytes that the tensor takes in memory.
 * packed: panels are allowed. */
uint64_t pith_pack_layout(pith_weight *weight, bool packed, uint32_t features);

/* Settled by the caller for all items. */
typedef struct pith_pack_way {
    bool is_cold;   /* most of what is to be read does not lie in memory */
    bool is_direct; /* pith_source_begin_direct was called for the sources */
} pith_pack_way;

/* Reads, packs and checks all items with threads of its own, options->n_threads and some more for
 * a cold file; weight->data is set by the caller. */
pith_status pith_pack_run(const pith_pack_item *items, size_t n_item,
                          const pith_weights_options *options, const pith_pack_way *way,
                          pith_error *error);

#endif
