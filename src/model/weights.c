/* SPDX-License-Identifier: Apache-2.0
 * From tensor names to weights: finds, checks the shape against the keys, declares.
 *
 * Invariant: a weight that is handed out has exactly the shape that was asked for and a type that
 * this build decodes; every tensor of the file is asked for once or the load fails, because a
 * graph that leaves weights out answers wrongly. Does not read data: pith_weights_load does,
 * after everything is declared. Next: layers.c. */
#include "model/architecture.h"

#include <stdio.h>

enum { NAME_BYTES = 96 };

/* What is looked for: ne[0..2] and what it will be used as. */
typedef struct wanted {
    uint64_t ne[3];
    unsigned roles;
    pith_need need;
} wanted;

static void tensor_name(int32_t layer, const char *name, const char *suffix, char out[NAME_BYTES]) {
    if (layer < 0)
        snprintf(out, NAME_BYTES, "%s%s", name, suffix);
    else
        snprintf(out, NAME_BYTES, "blk.%d.%s%s", (int)layer, name, suffix);
}

static bool check_shape(pith_loader *loader, const pith_gguf_tensor *tensor, const wanted *want) {
    const uint64_t *ne = tensor->ne;
    if (ne[0] == want->ne[0] && ne[1] == want->ne[1] && ne[2] == want->ne[2] && ne[3] == 1)
        return true;
    pith_loader_fail(loader, PITH_ERROR_FORMAT,
                     "tensor %.64s is %llu x %llu x %llu, but the keys of the file ask for %llu x "
                     "%llu x %llu",
                     tensor->name.data, (unsigned long long)ne[0], (unsigned long long)ne[1],
                     (unsigned long long)ne[2], (unsigned long long)want->ne[0],
                     (unsigned long long)want->ne[1], (unsigned long long)want->ne[2]);
    return false;
}

static bool check_type(pith_loader *loader, const pith_gguf_tensor *tensor, unsigned roles) {
    const pith_type_info *info = pith_type_get(tensor->type);
    bool is_vector = (roles & PITH_WEIGHT_VECTOR) != 0;
    if (info && info->decode && (info->is_weight || is_vector)) return true;
    pith_loader_fail(loader, PITH_ERROR_UNSUPPORTED,
                     "tensor %.64s has type %s (%d), which cannot be used as a weight",
                     tensor->name.data, info && info->name ? info->name : "unknown",
                     (int)tensor->type);
    return false;
}

static const pith_weight *find(pith_loader *loader, const char *name, const wanted *want) {
    if (loader->status != PITH_OK) return NULL;
    const pith_gguf_tensor *tensor = pith_gguf_tensor_find(loader->gguf, name);
    if (!tensor) {
        if (want->need == PITH_NEEDED) {
            pith_loader_fail(loader, PITH_ERROR_FORMAT,
                             "tensor %s is missing: the file is not a complete %s model", name,
                             loader->arch);
        }
        return NULL;
    }
    if (!check_shape(loader, tensor, want) || !check_type(loader, tensor, want->roles)) return NULL;
    pith_weight_source source = {
        .name = tensor->name.data,
        .type = tensor->type,
        .n_dims = tensor->n_dims,
        .source = loader->is_outline ? NULL : pith_gguf_source(loader->gguf, tensor->shard),
        .offset = tensor->offset,
        .bytes = tensor->bytes};
    for (int i = 0; i < 4; i++) source.ne[i] = tensor->ne[i];
    int32_t now;
    if (pith_map_insert(&loader->taken, tensor->name, 1, &now) < 0) {
        loader->status = pith_fail_memory(loader->error, "names of tensors", tensor->name.size);
        return NULL;
    }
    const pith_weight *weight = NULL;
    loader->status =
        pith_weights_add(loader->model->weights, &source, want->roles, &weight, loader->error);
    return loader->status == PITH_OK ? weight : NULL;
}

const pith_weight *pith_load_matrix(pith_loader *loader, int32_t layer, const char *name,
                                    uint32_t n_in, uint32_t n_out) {
    char full[NAME_BYTES];
    tensor_name(layer, name, ".weight", full);
    return find(loader, full, &(wanted){{n_in, n_out, 1}, PITH_WEIGHT_LINEAR, PITH_NEEDED});
}

const pith_weight *pith_load_experts(pith_loader *loader, int32_t layer, const char *name,
                                     uint32_t n_in, uint32_t n_out) {
    char full[NAME_BYTES];
    uint32_t n_expert = loader->model->hparams.n_expert;
    tensor_name(layer, name, ".weight", full);
    return find(loader, full, &(wanted){{n_in, n_out, n_expert}, PITH_WEIGHT_LINEAR, PITH_NEEDED});
}

const pith_weight *pith_load_vector(pith_loader *loader, int32_t layer, const char *name,
                                    uint32_t n, pith_need need) {
    char full[NAME_BYTES];
    tensor_name(layer, name, "", full);
    return find(loader, full, &(wanted){{n, 1, 1}, PITH_WEIGHT_VECTOR, need});
}

/* Tokens: as many as the embedding has rows, which must be as many as the vocabulary has. */
static void load_n_vocab(pith_loader *loader) {
    pith_hparams *hparams = &loader->model->hparams;
    const pith_gguf_tensor *table = pith_gguf_tensor_find(loader->gguf, "token_embd.weight");
    uint64_t n_rows = table ? table->ne[1] : 0;
    const pith_tokenizer *tokenizer = loader->model->tokenizer;
    uint32_t n_tokens = tokenizer ? pith_tokenizer_size(tokenizer) : 0;
    if (!table) {
        pith_loader_fail(loader, PITH_ERROR_FORMAT,
                         "tensor token_embd.weight is missing: the file holds no weights of a "
                         "language model");
    } else if (n_rows == 0 || n_rows > PITH_MODEL_MAX_VOCAB) {
        pith_loader_fail(loader, PITH_ERROR_LIMIT,
                         "token_embd.weight has %llu rows, pith takes 1 to %d",
                         (unsigned long long)n_rows, PITH_MODEL_MAX_VOCAB);
    } else if (n_tokens != 0 && n_tokens != n_rows) {
        pith_loader_fail(loader, PITH_ERROR_FORMAT,
                         "token_embd.weight has %llu rows, but the vocabulary has %u tokens",
                         (unsigned long long)n_rows, n_tokens);
    }
    if (loader->status == PITH_OK) hparams->n_vocab = (uint32_t)n_rows;
}

void pith_load_embedding(pith_loader *loader) {
    pith_model *model = loader->model;
    if (loader->status != PITH_OK) return;
    load_n_vocab(loader);
    uint32_t n_embd = model->hparams.n_embd, n_vocab = model->hparams.n_vocab;
    bool tied = pith_gguf_tensor_find(loader->gguf, "output.weight") == NULL;
    unsigned roles = PITH_WEIGHT_ROWS | (tied ? PITH_WEIGHT_LINEAR : 0u);
    model->token_embd =
        find(loader, "token_embd.weight", &(wanted){{n_embd, n_vocab, 1}, roles, PITH_NEEDED});
    model->output_norm = pith_load_vector(loader, -1, "output_norm.weight", n_embd, PITH_NEEDED);
    model->output =
        tied ? model->token_embd : pith_load_matrix(loader, -1, "output", n_embd, n_vocab);
}

void pith_load_attention(pith_loader *loader, uint32_t il) {
    if (loader->status != PITH_OK) return;
    pith_layer *layer = &loader->model->layers[il];
    uint32_t n_embd = loader->model->hparams.n_embd;
    uint32_t n_q = layer->n_head * layer->head_dim, n_k = layer->n_head_kv * layer->head_dim,
             n_v = layer->n_head_kv * layer->head_dim_v, n_out = layer->n_head * layer->head_dim_v;
    int32_t i = (int32_t)il;
    layer->attn_norm = pith_load_vector(loader, i, "attn_norm.weight", n_embd, PITH_NEEDED);
    layer->q = pith_load_matrix(loader, i, "attn_q", n_embd, n_q);
    layer->k = pith_load_matrix(loader, i, "attn_k", n_embd, n_k);
    layer->v = pith_load_matrix(loader, i, "attn_v", n_embd, n_v);
    layer->q_bias = pith_load_vector(loader, i, "attn_q.bias", n_q, PITH_OPTIONAL);
    layer->k_bias = pith_load_vector(loader, i, "attn_k.bias", n_k, PITH_OPTIONAL);
    layer->v_bias = pith_load_vector(loader, i, "attn_v.bias", n_v, PITH_OPTIONAL);
    layer->attn_output = pith_load_matrix(loader, i, "attn_output", n_out, n_embd);
    layer->attn_output_bias =
        pith_load_vector(loader, i, "attn_output.bias", n_embd, PITH_OPTIONAL);
}

void pith_load_ffn(pith_loader *loader, uint32_t il) {
    if (loader->status != PITH_OK) return;
    pith_layer *layer = &loader->model->layers[il];
    uint32_t n_embd = loader->model->hparams.n_embd, n_ff = layer->n_ff;
    int32_t i = (int32_t)il;
    layer->ffn_norm = pith_load_vector(loader, i, "ffn_norm.weight", n_embd, PITH_NEEDED);
    if (loader->model->hparams.n_expert > 0) {
        layer->router =
            pith_load_matrix(loader, i, "ffn_gate_inp", n_embd, loader->model->hparams.n_expert);
        layer->gate = pith_load_experts(loader, i, "ffn_gate_exps", n_embd, n_ff);
        layer->up = pith_load_experts(loader, i, "ffn_up_exps", n_embd, n_ff);
        layer->down = pith_load_experts(loader, i, "ffn_down_exps", n_ff, n_embd);
        return;
    }
    layer->gate = pith_load_matrix(loader, i, "ffn_gate", n_embd, n_ff);
    layer->up = pith_load_matrix(loader, i, "ffn_up", n_embd, n_ff);
    layer->down = pith_load_matrix(loader, i, "ffn_down", n_ff, n_embd);
    layer->gate_bias = pith_load_vector(loader, i, "ffn_gate.bias", n_ff, PITH_OPTIONAL);
    layer->up_bias = pith_load_vector(loader, i, "ffn_up.bias", n_ff, PITH_OPTIONAL);
    layer->down_bias = pith_load_vector(loader, i, "ffn_down.bias", n_embd, PITH_OPTIONAL);
}

void pith_load_nothing_left(pith_loader *loader) {
    if (loader->status != PITH_OK) return;
    for (size_t i = 0; i < pith_gguf_n_tensors(loader->gguf); i++) {
        const pith_gguf_tensor *tensor = pith_gguf_tensor_at(loader->gguf, i);
        int32_t value;
        if (pith_map_find(&loader->taken, tensor->name, &value)) continue;
        pith_loader_fail(loader, PITH_ERROR_UNSUPPORTED,
                         "tensor %.64s is no part of architecture %s as pith runs it: without it "
                         "the answers would be wrong",
                         tensor->name.data, loader->arch);
        return;
    }
}
