/* SPDX-License-Identifier: Apache-2.0
 * What a token costs, counted from the tensor list and a few keys, for any architecture.
 *
 *   read per token   every matrix once; of embedding tables one row; of stacks of experts the
 *                    share that is used; the output layer, which is the embedding table where
 *                    there is no other
 *   KV per token     key and value heads of each layer; with a compressed KV (kv_lora_rank) its
 *                    rank and the rotated part
 *
 * Invariant: reads keys with ranges and never fails: what the file does not say is 0. Names of
 * tensors are those of the format's convention; parts of other modalities (v., mm., a.) are read
 * with the file but not per token. Next: estimate_memory.c. */
#include "engine/estimate.h"

#include <stdio.h>
#include <string.h>

enum { KEY_BYTES = 160, MAX_LAYERS = PITH_MODEL_MAX_LAYERS, MAX_HEADS = 1 << 16 };

static bool starts(pith_span name, const char *text) {
    size_t size = strlen(text);
    return name.size >= size && memcmp(name.data, text, size) == 0;
}

static bool holds(pith_span name, const char *text) {
    return strstr(name.data, text) != NULL; /* names are NUL-terminated and hold no NUL */
}

/* Key of the architecture as a number; `absent` when it is not there or no such number. */
static uint32_t number(const pith_gguf *gguf, const char *key, uint32_t absent) {
    char name[KEY_BYTES];
    uint32_t value = absent;
    pith_span arch = {"", 0};
    bool found = false;
    pith_gguf_get_string(gguf, "general.architecture", &arch, &found, NULL);
    int size = snprintf(name, sizeof name, "%.64s.%s", arch.data, key);
    if (size < 0 || (size_t)size >= sizeof name) return absent;
    if (pith_gguf_get_u32(gguf, name, 0, UINT32_MAX, &value, &found, NULL) != PITH_OK)
        return absent;
    return found ? value : absent;
}

/* Sum of a per-layer key (a scalar counts for each layer); 0 when it is not there. */
static double layer_sum(const pith_gguf *gguf, const char *key, uint32_t n_layer) {
    char name[KEY_BYTES];
    uint32_t each[MAX_LAYERS];
    pith_span arch = {"", 0};
    bool found = false;
    double sum = 0;
    if (n_layer == 0 || n_layer > MAX_LAYERS) return 0;
    pith_gguf_get_string(gguf, "general.architecture", &arch, &found, NULL);
    int size = snprintf(name, sizeof name, "%.64s.%s", arch.data, key);
    if (size < 0 || (size_t)size >= sizeof name) return 0;
    if (pith_gguf_get_u32_each(gguf, name, 0, MAX_HEADS, each, n_layer, &found, NULL) != PITH_OK ||
        !found)
        return 0;
    for (uint32_t i = 0; i < n_layer; i++) sum += each[i];
    return sum;
}

static double kv_elements(const pith_gguf *gguf, uint32_t n_layer, uint32_t n_embd) {
    uint32_t rank = number(gguf, "attention.kv_lora_rank", 0);
    if (rank > 0) return (double)n_layer * (rank + number(gguf, "rope.dimension_count", 0));
    double heads = layer_sum(gguf, "attention.head_count", n_layer);
    double kv_heads = layer_sum(gguf, "attention.head_count_kv", n_layer);
    if (heads <= 0) return 0;
    if (kv_heads <= 0) kv_heads = heads;
    double head_dim = (double)n_embd * n_layer / heads;
    double key = number(gguf, "attention.key_length", 0);
    double value = number(gguf, "attention.value_length", 0);
    return kv_heads * ((key > 0 ? key : head_dim) + (value > 0 ? value : head_dim));
}

/* Share of a stack of experts that a token uses. */
static double expert_share(const pith_gguf *gguf) {
    uint32_t n = number(gguf, "expert_count", 0), used = number(gguf, "expert_used_count", 0);
    return n > 0 && used > 0 && used < n ? (double)used / n : 1;
}

static void add_tensor(const pith_gguf_tensor *tensor, double share, bool is_tied,
                       pith_work *work) {
    double elements = 1, rows = (double)tensor->ne[1];
    for (int i = 0; i < 4; i++) elements *= (double)tensor->ne[i];
    work->tensor_bytes += tensor->bytes;
    work->n_parameters += (uint64_t)elements;
    bool is_table = holds(tensor->name, "token_embd.weight") ||
                    starts(tensor->name, "position_embd") || starts(tensor->name, "token_types");
    bool is_output = pith_span_is(tensor->name, "output.weight") ||
                     (is_tied && pith_span_is(tensor->name, "token_embd.weight"));
    if (starts(tensor->name, "v.") || starts(tensor->name, "mm.") || starts(tensor->name, "a."))
        return;
    if (is_output) {
        work->token_bytes += (double)tensor->bytes;
        work->output_macs += elements;
    } else if (is_table) {
        work->token_bytes += rows > 0 ? (double)tensor->bytes / rows : 0;
    } else {
        double used = holds(tensor->name, "_exps") ? share : 1;
        work->token_bytes += (double)tensor->bytes * used;
        if (tensor->n_dims >= 2 && tensor->ne[1] > 1) work->layer_macs += elements * used;
    }
}

void pith_estimate_count_work(const pith_gguf *gguf, pith_work *work) {
    *work = (pith_work){.n_layer = number(gguf, "block_count", 0),
                        .n_embd = number(gguf, "embedding_length", 0),
                        .n_ctx_train = number(gguf, "context_length", 0),
                        .kv_is_guess = true};
    double share = expert_share(gguf);
    bool is_tied = pith_gguf_tensor_find(gguf, "output.weight") == NULL;
    for (size_t i = 0; i < pith_gguf_n_tensors(gguf); i++)
        add_tensor(pith_gguf_tensor_at(gguf, i), share, is_tied, work);
    work->kv_elements = kv_elements(gguf, work->n_layer, work->n_embd);
    const pith_gguf_value *tokens = pith_gguf_value_find(gguf, "tokenizer.ggml.tokens");
    if (tokens && tokens->strings) work->n_vocab = (uint32_t)tokens->n_items; /* at most 2^26 */
    for (size_t i = 0; i < pith_gguf_n_tensors(gguf); i++) {
        const pith_gguf_tensor *tensor = pith_gguf_tensor_at(gguf, i);
        bool is_first = work->header_bytes == 0 || tensor->offset < work->header_bytes;
        if (tensor->shard == 0 && is_first) work->header_bytes = tensor->offset;
    }
}
