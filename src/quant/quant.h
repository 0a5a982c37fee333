/* SPDX-License-Identifier: Apache-2.0
 * Every GGUF tensor type: name, block layout, sizes, and the reference codecs. The decoders here
 * are the definition of what stored bytes mean (checked against published vectors by
 * tests/unit/quant). Start reading at type_table.c; pictures of the blocks: docs/formats.md. */
#ifndef PITH_QUANT_QUANT_H
#define PITH_QUANT_QUANT_H

#include "base/status.h"

/* Values are the ids in GGUF files. */
typedef enum pith_type {
    PITH_TYPE_F32 = 0,
    PITH_TYPE_F16 = 1,
    PITH_TYPE_Q4_0 = 2,
    PITH_TYPE_Q4_1 = 3,
    PITH_TYPE_Q5_0 = 6,
    PITH_TYPE_Q5_1 = 7,
    PITH_TYPE_Q8_0 = 8,
    PITH_TYPE_Q8_1 = 9,
    PITH_TYPE_Q2_K = 10,
    PITH_TYPE_Q3_K = 11,
    PITH_TYPE_Q4_K = 12,
    PITH_TYPE_Q5_K = 13,
    PITH_TYPE_Q6_K = 14,
    PITH_TYPE_Q8_K = 15,
    PITH_TYPE_IQ2_XXS = 16,
    PITH_TYPE_IQ2_XS = 17,
    PITH_TYPE_IQ3_XXS = 18,
    PITH_TYPE_IQ1_S = 19,
    PITH_TYPE_IQ4_NL = 20,
    PITH_TYPE_IQ3_S = 21,
    PITH_TYPE_IQ2_S = 22,
    PITH_TYPE_IQ4_XS = 23,
    PITH_TYPE_I8 = 24,
    PITH_TYPE_I16 = 25,
    PITH_TYPE_I32 = 26,
    PITH_TYPE_I64 = 27,
    PITH_TYPE_F64 = 28,
    PITH_TYPE_IQ1_M = 29,
    PITH_TYPE_BF16 = 30,
    PITH_TYPE_TQ1_0 = 34,
    PITH_TYPE_TQ2_0 = 35,
    PITH_TYPE_MXFP4 = 39,
    PITH_TYPE_NVFP4 = 40,
    PITH_TYPE_Q1_0 = 41,
    PITH_TYPE_Q2_0 = 42,
    PITH_TYPE_COUNT = 43
} pith_type;

typedef struct pith_type_info {
    const char *name;     /* "Q4_K"; NULL for ids that were removed or never given */
    uint32_t block_elems; /* elements a block, 1 for scalar types */
    uint32_t block_bytes;
    bool is_quantized; /* false for scalar types */
    bool is_weight;    /* may hold the weights of a linear layer in a file */
    /* n elements (a multiple of block_elems) to f32. */
    void (*decode)(const void *src, float *dst, size_t n);
    /* f32 to the n elements of one row, plain C; rules: head of encode_*.c. weights: NULL or one
     * importance per column [n]. A scale beyond f16 is stored as inf: validate tells. NULL for
     * types whose encoder needs a search that pith does not have yet (IQ1, IQ2, IQ3). */
    void (*encode)(const float *src, void *dst, size_t n, const float *weights);
} pith_type_info;

/* NULL for an id that is not a known type. */
const pith_type_info *pith_type_get(uint32_t id);
/* Type called `name` (any case); false when unknown. */
bool pith_type_find(const char *name, pith_type *out);
/* Bytes of a row of ne0 elements; false when ne0 is not a multiple of the block, the size overflows
 * or the type is unknown. */
bool pith_type_row_bytes(pith_type type, uint64_t ne0, uint64_t *bytes);
/* Checks every block of n elements (finite scales). Returns the index of the first bad block, or
 * -1; 0 for an unknown type. */
int64_t pith_type_validate(pith_type type, const void *src, size_t n);

#endif
