/* SPDX-License-Identifier: Apache-2.0
 * Architectures, shapes of published models, their metadata keys, and which tensor gets which type.
 * The dimensions are facts of the models' cards; nothing of their weights is here.
 * Not here: the product's own quantization recipes, which know imatrix and experts too
 * (src/convert). */
#include "random_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const random_shape shapes[] = {
    /*            arch           layer  embd   ff     head kv  dim  vocab   context  base     factor window tied   like */
    {"1b",   RANDOM_LLAMA,  16,    2048,  8192,  32,  8,  64,  128256, 131072, 500000,  32,    0,     true,  "Llama-3.2-1B"},
    {"4b",   RANDOM_LLAMA,  36,    2560,  9728,  32,  8,  128, 151936, 40960,  1000000, 0,     0,     true,  "Qwen3-4B's dimensions"},
    {"8b",   RANDOM_LLAMA,  32,    4096,  14336, 32,  8,  128, 128256, 131072, 500000,  8,     0,     false, "Llama-3.1-8B"},
    {"tiny", RANDOM_LLAMA,  2,     256,   512,   4,   2,  64,  512,    512,    10000,   0,     0,     false, "nothing"},
    {"1b",   RANDOM_QWEN2,  28,    1536,  8960,  12,  2,  128, 151936, 32768,  1000000, 0,     0,     true,  "Qwen2.5-1.5B"},
    {"4b",   RANDOM_QWEN2,  36,    2048,  11008, 16,  2,  128, 151936, 32768,  1000000, 0,     0,     true,  "Qwen2.5-3B"},
    {"8b",   RANDOM_QWEN2,  28,    3584,  18944, 28,  4,  128, 152064, 32768,  1000000, 0,     0,     false, "Qwen2.5-7B"},
    {"tiny", RANDOM_QWEN2,  2,     256,   512,   4,   2,  64,  512,    512,    10000,   0,     0,     true,  "nothing"},
    {"1b",   RANDOM_GEMMA3, 26,    1152,  6912,  4,   1,  256, 262144, 32768,  1000000, 0,     512,   true,  "gemma-3-1b"},
    {"4b",   RANDOM_GEMMA3, 34,    2560,  10240, 8,   4,  256, 262144, 131072, 1000000, 8,     1024,  true,  "gemma-3-4b"},
    {"tiny", RANDOM_GEMMA3, 6,     256,   512,   4,   2,  64,  512,    512,    1000000, 0,     32,    true,  "nothing"},
};

static const random_recipe recipes[] = {
    {"F32", 0, PITH_TYPE_F32},      {"F16", 1, PITH_TYPE_F16},        {"BF16", 32, PITH_TYPE_BF16},
    {"Q4_0", 2, PITH_TYPE_Q4_0},    {"Q4_1", 3, PITH_TYPE_Q4_1},      {"Q5_0", 8, PITH_TYPE_Q5_0},
    {"Q5_1", 9, PITH_TYPE_Q5_1},    {"Q8_0", 7, PITH_TYPE_Q8_0},      {"Q2_K", 10, PITH_TYPE_Q2_K},
    {"Q3_K_S", 11, PITH_TYPE_Q3_K}, {"Q3_K_M", 12, PITH_TYPE_Q3_K},   {"Q3_K", 11, PITH_TYPE_Q3_K},
    {"Q4_K_S", 14, PITH_TYPE_Q4_K}, {"Q4_K_M", 15, PITH_TYPE_Q4_K},   {"Q4_K", 14, PITH_TYPE_Q4_K},
    {"Q5_K_S", 16, PITH_TYPE_Q5_K}, {"Q5_K_M", 17, PITH_TYPE_Q5_K},   {"Q5_K", 16, PITH_TYPE_Q5_K},
    {"Q6_K", 18, PITH_TYPE_Q6_K},   {"IQ4_NL", 25, PITH_TYPE_IQ4_NL}, {"IQ4_XS", 30, PITH_TYPE_IQ4_XS},
    {"IQ3_S", 26, PITH_TYPE_IQ3_S}, {"IQ3_XXS", 23, PITH_TYPE_IQ3_XXS}, {"IQ2_XXS", 19, PITH_TYPE_IQ2_XXS},
    {"IQ2_XS", 20, PITH_TYPE_IQ2_XS}, {"IQ2_S", 28, PITH_TYPE_IQ2_S}, {"IQ1_S", 24, PITH_TYPE_IQ1_S},
    {"IQ1_M", 31, PITH_TYPE_IQ1_M}, {"TQ1_0", 36, PITH_TYPE_TQ1_0},   {"TQ2_0", 37, PITH_TYPE_TQ2_0},
    {"MXFP4", 38, PITH_TYPE_MXFP4}, {"NVFP4", 39, PITH_TYPE_NVFP4},   {"Q1_0", 40, PITH_TYPE_Q1_0},
    {"Q2_0", 41, PITH_TYPE_Q2_0},
};
/* clang-format on */

enum { N_SHAPES = sizeof shapes / sizeof *shapes, N_RECIPES = sizeof recipes / sizeof *recipes };

const char *random_arch_name(random_arch arch) {
    static const char *const names[] = {"llama", "qwen2", "gemma3"};
    return names[arch];
}

const random_shape *random_shape_find(random_arch arch, const char *name) {
    for (size_t i = 0; i < N_SHAPES; i++)
        if (shapes[i].arch == arch && strcmp(shapes[i].name, name) == 0) return &shapes[i];
    return NULL;
}

static bool same_name(const char *a, const char *b) {
    for (; *a && *b; a++, b++) {
        char upper = *b >= 'a' && *b <= 'z' ? (char)(*b - 'a' + 'A') : *b;
        if (*a != upper) return false;
    }
    return *a == *b;
}

const random_recipe *random_recipe_find(const char *name) {
    for (size_t i = 0; i < N_RECIPES; i++)
        if (same_name(recipes[i].name, name)) return &recipes[i];
    return NULL;
}

void random_shape_print_all(void) {
    for (size_t i = 0; i < N_SHAPES; i++)
        fprintf(stderr, "  --arch %-6s --shape %-4s  like %s\n", random_arch_name(shapes[i].arch),
                shapes[i].name, shapes[i].like);
    fprintf(stderr, "  --type");
    for (size_t i = 0; i < N_RECIPES; i++) fprintf(stderr, " %s", recipes[i].name);
    fprintf(stderr, "\n");
}

/* ---- Types -------------------------------------------------------------------------------------------------- */

typedef enum role {
    ROLE_OTHER,
    ROLE_OUTPUT,
    ROLE_EMBEDDING,
    ROLE_VALUE,
    ROLE_DOWN,
    ROLE_ATTENTION_OUTPUT
} role;

static bool use_more_bits(uint32_t i, uint32_t n) {
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

/* Type of a value or ffn_down projection of layer i of n. */
static pith_type mixed_type(const random_shape *shape, const random_recipe *recipe, role r,
                            uint32_t i) {
    uint32_t n = shape->n_layer;
    bool is_value = r == ROLE_VALUE, many_share = shape->n_head / shape->n_head_kv >= 4;
    switch (recipe->file_type) {
    case 10: return is_value && many_share ? PITH_TYPE_Q4_K : PITH_TYPE_Q3_K;
    case 12: return i < (is_value ? 2 : n / 16) ? PITH_TYPE_Q5_K : PITH_TYPE_Q4_K;
    case 14: return i < (is_value ? 4 : n / 8) ? PITH_TYPE_Q5_K : PITH_TYPE_Q4_K;
    case 15:
    case 17: return use_more_bits(i, n) ? PITH_TYPE_Q6_K : recipe->type;
    case 25:
    case 30: return (is_value ? many_share : i < n / 8) ? PITH_TYPE_Q5_K : recipe->type;
    default: return recipe->type;
    }
}

static pith_type wanted_type(const random_shape *shape, const random_recipe *recipe, role r,
                             uint32_t layer) {
    bool quantized = pith_type_get((uint32_t)recipe->type)->is_quantized;
    bool is_output = r == ROLE_OUTPUT || (r == ROLE_EMBEDDING && shape->tied);
    if (!quantized) return recipe->type;
    if (is_output) return recipe->type == PITH_TYPE_Q8_0 ? PITH_TYPE_Q8_0 : PITH_TYPE_Q6_K;
    bool named_alone = recipe->name[strlen(recipe->name) - 1] == 'K' && recipe->file_type != 10;
    if (named_alone) return recipe->type; /* "Q4_K" means nothing but Q4_K beside the output */
    if (r == ROLE_VALUE || r == ROLE_DOWN) return mixed_type(shape, recipe, r, layer);
    if (r == ROLE_ATTENTION_OUTPUT && recipe->file_type == 10) return PITH_TYPE_Q3_K;
    if (r == ROLE_ATTENTION_OUTPUT && recipe->file_type == 12) return PITH_TYPE_Q4_K;
    return recipe->type;
}

/* What stands in where rows are no multiple of the block. */
static pith_type fitting_type(pith_type type, uint64_t ne0) {
    if (ne0 % pith_type_get((uint32_t)type)->block_elems == 0) return type;
    pith_type fallback = type == PITH_TYPE_Q4_K                                 ? PITH_TYPE_Q5_0
                         : type == PITH_TYPE_Q5_K                               ? PITH_TYPE_Q5_1
                         : type == PITH_TYPE_Q6_K                               ? PITH_TYPE_Q8_0
                         : type >= PITH_TYPE_IQ2_XXS && type <= PITH_TYPE_IQ1_M ? PITH_TYPE_IQ4_NL
                                                                                : PITH_TYPE_Q4_0;
    return ne0 % 32 == 0 ? fallback : PITH_TYPE_F16;
}

/* ---- Tensors ------------------------------------------------------------------------------------------------ */

typedef struct tensor_list {
    const random_shape *shape;
    const random_recipe *recipe;
    bool pure;
    random_tensor *tensors;
    size_t n;
} tensor_list;

static random_tensor *add(tensor_list *list, const char *name, random_fill fill, pith_type type,
                          uint64_t ne0, uint64_t ne1) {
    random_tensor *t = &list->tensors[list->n++];
    memset(t, 0, sizeof *t);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->fill = fill;
    t->type = type;
    t->n_dims = ne1 ? 2 : 1;
    t->ne[0] = ne0;
    t->ne[1] = ne1;
    uint64_t row = 0;
    (void)pith_type_row_bytes(type, ne0, &row);
    t->bytes = row * (ne1 ? ne1 : 1);
    return t;
}

/* Deviation 1 / sqrt(ne0): products of unit vectors stay of unit size. */
static void add_weight(tensor_list *list, const char *name, role r, uint32_t layer, uint64_t ne0,
                       uint64_t ne1) {
    pith_type type =
        list->pure ? list->recipe->type : wanted_type(list->shape, list->recipe, r, layer);
    random_tensor *t = add(list, name, RANDOM_WEIGHT, fitting_type(type, ne0), ne0, ne1);
    float gain = r == ROLE_OUTPUT || r == ROLE_EMBEDDING ? 2.0f : 1.0f; /* logits of deviation 2 */
    t->deviation = gain / sqrtf((float)ne0);
}

static void add_vector(tensor_list *list, const char *name, random_fill fill, uint64_t n) {
    (void)add(list, name, fill, PITH_TYPE_F32, n, 0);
}

static const char *in_layer(char buffer[64], uint32_t layer, const char *name) {
    snprintf(buffer, 64, "blk.%u.%s", layer, name);
    return buffer;
}

static void add_attention(tensor_list *list, uint32_t i) {
    const random_shape *s = list->shape;
    char name[64];
    uint64_t q = (uint64_t)s->n_head * s->head_dim, kv = (uint64_t)s->n_head_kv * s->head_dim;
    add_vector(list, in_layer(name, i, "attn_norm.weight"), RANDOM_ONES, s->n_embd);
    add_weight(list, in_layer(name, i, "attn_q.weight"), ROLE_OTHER, i, s->n_embd, q);
    add_weight(list, in_layer(name, i, "attn_k.weight"), ROLE_OTHER, i, s->n_embd, kv);
    add_weight(list, in_layer(name, i, "attn_v.weight"), ROLE_VALUE, i, s->n_embd, kv);
    if (s->arch == RANDOM_QWEN2) {
        add_vector(list, in_layer(name, i, "attn_q.bias"), RANDOM_BIAS, q);
        add_vector(list, in_layer(name, i, "attn_k.bias"), RANDOM_BIAS, kv);
        add_vector(list, in_layer(name, i, "attn_v.bias"), RANDOM_BIAS, kv);
    }
    if (s->arch == RANDOM_GEMMA3) {
        add_vector(list, in_layer(name, i, "attn_q_norm.weight"), RANDOM_ONES, s->head_dim);
        add_vector(list, in_layer(name, i, "attn_k_norm.weight"), RANDOM_ONES, s->head_dim);
        add_vector(list, in_layer(name, i, "post_attention_norm.weight"), RANDOM_ONES, s->n_embd);
    }
    add_weight(list, in_layer(name, i, "attn_output.weight"), ROLE_ATTENTION_OUTPUT, i, q,
               s->n_embd);
}

static void add_feed_forward(tensor_list *list, uint32_t i) {
    const random_shape *s = list->shape;
    char name[64];
    add_vector(list, in_layer(name, i, "ffn_norm.weight"), RANDOM_ONES, s->n_embd);
    add_weight(list, in_layer(name, i, "ffn_gate.weight"), ROLE_OTHER, i, s->n_embd, s->n_ff);
    add_weight(list, in_layer(name, i, "ffn_up.weight"), ROLE_OTHER, i, s->n_embd, s->n_ff);
    add_weight(list, in_layer(name, i, "ffn_down.weight"), ROLE_DOWN, i, s->n_ff, s->n_embd);
    if (s->arch == RANDOM_GEMMA3)
        add_vector(list, in_layer(name, i, "post_ffw_norm.weight"), RANDOM_ONES, s->n_embd);
}

random_tensor *random_tensor_list(const random_shape *shape, const random_recipe *recipe, bool pure,
                                  size_t *n) {
    enum { MOST_IN_LAYER = 16, MOST_OUTSIDE = 4 };
    tensor_list list = {.shape = shape, .recipe = recipe, .pure = pure};
    list.tensors =
        calloc((size_t)shape->n_layer * MOST_IN_LAYER + MOST_OUTSIDE, sizeof *list.tensors);
    if (!list.tensors) return NULL;
    add_weight(&list, "token_embd.weight", ROLE_EMBEDDING, 0, shape->n_embd, shape->n_vocab);
    if (shape->arch == RANDOM_LLAMA && shape->rope_factor > 0)
        add_vector(&list, "rope_freqs.weight", RANDOM_ROPE_FREQS, shape->head_dim / 2);
    for (uint32_t i = 0; i < shape->n_layer; i++) {
        add_attention(&list, i);
        add_feed_forward(&list, i);
    }
    add_vector(&list, "output_norm.weight", RANDOM_ONES, shape->n_embd);
    if (!shape->tied)
        add_weight(&list, "output.weight", ROLE_OUTPUT, 0, shape->n_embd, shape->n_vocab);
    *n = list.n;
    return list.tensors;
}

/* ---- Keys --------------------------------------------------------------------------------------------------- */

typedef struct key_writer {
    pith_gguf_writer *writer;
    const char *arch;
    pith_status status;
    pith_error *error;
} key_writer;

static void key_u32(key_writer *w, const char *name, uint32_t value) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", w->arch, name);
    if (!w->status) w->status = pith_gguf_write_u32(w->writer, key, value, w->error);
}

static void key_f32(key_writer *w, const char *name, float value) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", w->arch, name);
    if (!w->status) w->status = pith_gguf_write_f32(w->writer, key, value, w->error);
}

static void key_text(key_writer *w, const char *key, const char *value) {
    if (!w->status) w->status = pith_gguf_write_string(w->writer, key, value, w->error);
}

pith_status random_write_keys(pith_gguf_writer *writer, const random_shape *shape,
                              const random_recipe *recipe, pith_error *error) {
    key_writer w = {writer, random_arch_name(shape->arch), PITH_OK, error};
    char name[96];
    snprintf(name, sizeof name, "random %s %s", w.arch, shape->name);
    key_text(&w, "general.architecture", w.arch);
    key_text(&w, "general.type", "model");
    key_text(&w, "general.name", name);
    key_text(&w, "general.description", "random weights: for measuring, not for reading");
    key_u32(&w, "block_count", shape->n_layer);
    key_u32(&w, "context_length", shape->n_ctx);
    key_u32(&w, "embedding_length", shape->n_embd);
    key_u32(&w, "feed_forward_length", shape->n_ff);
    key_u32(&w, "attention.head_count", shape->n_head);
    key_u32(&w, "attention.head_count_kv", shape->n_head_kv);
    key_u32(&w, "attention.key_length", shape->head_dim);
    key_u32(&w, "attention.value_length", shape->head_dim);
    key_f32(&w, "attention.layer_norm_rms_epsilon", shape->arch == RANDOM_LLAMA ? 1e-5f : 1e-6f);
    key_u32(&w, "rope.dimension_count", shape->head_dim);
    key_f32(&w, "rope.freq_base", shape->rope_base);
    key_u32(&w, "vocab_size", shape->n_vocab);
    if (shape->arch == RANDOM_GEMMA3) {
        key_u32(&w, "attention.sliding_window", shape->window);
        key_f32(&w, "rope.freq_base_swa", 10000.0f);
    }
    if (shape->arch == RANDOM_GEMMA3 && shape->rope_factor > 0) {
        key_text(&w, "gemma3.rope.scaling.type", "linear");
        key_f32(&w, "rope.scaling.factor", shape->rope_factor);
    }
    w.arch = "general";
    key_u32(&w, "file_type", recipe->file_type);
    key_u32(&w, "quantization_version", 2);
    return w.status;
}
