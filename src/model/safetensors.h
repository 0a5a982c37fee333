/* SPDX-License-Identifier: Apache-2.0
 * Reading safetensors files (private to the model room): the list of tensors, every size and
 * offset checked.
 *
 *   | u64 n | n bytes of JSON | data |
 *   {"name": {"dtype": "F16", "shape": [8, 64], "data_offsets": [0, 1024]}, ...}
 *
 * Offsets count from the data, which the tensors fill without holes or overlaps; rows are in C
 * order, numbers little-endian. Nothing of the data is read here. Read next: safetensors.c. */
#ifndef PITH_MODEL_SAFETENSORS_H
#define PITH_MODEL_SAFETENSORS_H

#include "base/source.h"
#include "quant/quant.h"

/* Published limits. */
enum {
    PITH_SAFETENSORS_MAX_HEADER = 16 << 20, /* bytes; the format allows 100 MB */
    PITH_SAFETENSORS_MAX_TENSORS = 1 << 17,
    PITH_SAFETENSORS_MAX_DIMS = 8,
    PITH_SAFETENSORS_MAX_NAME = 512 /* bytes */
};

typedef struct pith_safetensor {
    const char *name, *dtype; /* dtype: "F16"; both live as long as the file */
    uint32_t n_dims;
    uint64_t shape[PITH_SAFETENSORS_MAX_DIMS]; /* outermost first */
    uint64_t offset, bytes;                    /* absolute, inside the source */
} pith_safetensor;

typedef struct pith_safetensors pith_safetensors;

/* Takes the source in every case. */
pith_status pith_safetensors_open(pith_source *source, pith_safetensors **out, pith_error *error);
void pith_safetensors_close(pith_safetensors *file); /* NULL is allowed */
size_t pith_safetensors_count(const pith_safetensors *file);
/* In the order of their data. */
const pith_safetensor *pith_safetensors_at(const pith_safetensors *file, size_t index);
const pith_source *pith_safetensors_source(const pith_safetensors *file);
/* The float type of ours that a dtype is; false for others. */
bool pith_safetensors_type(const char *dtype, pith_type *out);

#endif
