/* SPDX-License-Identifier: Apache-2.0
 * pith-random-model: models of real shapes with random weights, for measuring speed and memory without a download.
 * random_model.c reads options and writes; random_shape.c knows architectures and which tensor gets which type;
 * random_vocab.c makes up a vocabulary; random_weights.c makes up blocks. */
#ifndef PITH_TOOLS_RANDOM_MODEL_H
#define PITH_TOOLS_RANDOM_MODEL_H

#include "base/rng.h"
#include "gguf/gguf.h"

typedef enum random_arch {
    RANDOM_LLAMA,
    RANDOM_QWEN2,
    RANDOM_GEMMA3,
    RANDOM_ARCH_COUNT
} random_arch;

typedef struct random_shape {
    const char *name; /* "1b" */
    random_arch arch;
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, head_dim, n_vocab, n_ctx;
    float rope_base;
    float rope_factor; /* llama3 scaling as rope_freqs.weight, gemma3 linear; 0: none */
    uint32_t window;   /* gemma3 */
    bool tied;
    const char *like; /* the model whose dimensions these are */
} random_shape;

/* A quantization recipe (general.file_type). */
typedef struct random_recipe {
    const char *name; /* "Q4_K_M" */
    uint32_t file_type;
    pith_type type; /* of most tensors */
} random_recipe;

typedef enum random_fill { RANDOM_WEIGHT, RANDOM_ONES, RANDOM_BIAS, RANDOM_ROPE_FREQS } random_fill;

typedef struct random_tensor {
    char name[64];
    pith_type type;
    uint32_t n_dims;
    uint64_t ne[2];
    uint64_t bytes;
    random_fill fill;
    float deviation; /* of the weights */
} random_tensor;

const char *random_arch_name(random_arch arch);
/* NULL when there is no such shape of this architecture. */
const random_shape *random_shape_find(random_arch arch, const char *name);
const random_recipe *random_recipe_find(const char *name); /* any case; NULL: unknown */
/* Shapes and recipes for the usage text, to stderr. */
void random_shape_print_all(void);
/* The tensors of a model, n of them; freed by the caller with free(). NULL without memory. */
random_tensor *random_tensor_list(const random_shape *shape, const random_recipe *recipe, bool pure,
                                  size_t *n);

/* Writes all metadata but the vocabulary. */
pith_status random_write_keys(pith_gguf_writer *writer, const random_shape *shape,
                              const random_recipe *recipe, pith_error *error);
/* Writes a byte-level BPE vocabulary of n_vocab tokens: 256 bytes, made-up pieces with their merges, special tokens. */
pith_status random_write_vocab(pith_gguf_writer *writer, const random_shape *shape, pith_rng *rng,
                               pith_error *error);

enum { RANDOM_MIN_VOCAB = 256 + 8 };

/* Fills `bytes` of whole blocks of a type with random codes whose decoded values have this standard deviation. */
typedef struct random_filler {
    pith_type type;
    uint32_t block_bytes;
    size_t n_stamps; /* bytes of each block that are not random */
    struct {
        uint16_t offset;
        uint8_t value, mask; /* mask: which bits are set to value */
    } stamps[8];
    float deviation;
} random_filler;

/* false when the type cannot be filled. */
bool random_filler_init(random_filler *filler, pith_type type, float deviation);
void random_filler_run(const random_filler *filler, pith_rng *rng, uint8_t *blocks, size_t bytes);

#endif
