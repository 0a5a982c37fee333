/* SPDX-License-Identifier: Apache-2.0
 * Private to backend: declared weights and the memory behind them. weight.c loads them,
 * pretend.c makes values up. */
#ifndef PITH_BACKEND_WEIGHT_STORE_H
#define PITH_BACKEND_WEIGHT_STORE_H

#include "backend/weight.h"
#include "base/map.h"
#include "base/memory.h"

typedef struct pith_weight_entry {
    pith_weight weight; /* first: the pointer that callers hold */
    char *name;
    pith_source *source; /* NULL: cannot be loaded */
    uint64_t offset;
    uint64_t memory_offset; /* in the region (pack) */
    float *values;
} pith_weight_entry;

struct pith_weights {
    pith_weight_entry **entries; /* each allocated alone: callers keep pointers */
    size_t n, capacity;
    pith_map names;
    pith_region region;
    pith_load mode;
    uint64_t vector_bytes, tensor_bytes; /* after load or lay_out */
    bool is_loaded;
};

static inline bool pith_weight_is_tensor(const pith_weight_entry *entry) {
    return (entry->weight.roles & (PITH_WEIGHT_LINEAR | PITH_WEIGHT_ROWS)) != 0;
}

static inline bool pith_weight_is_vector(const pith_weight_entry *entry) {
    return (entry->weight.roles & PITH_WEIGHT_VECTOR) != 0;
}

/* Bytes of the f32 array of a vector, padding included. */
uint64_t pith_weight_values_bytes(const pith_weight_entry *entry);

#endif
