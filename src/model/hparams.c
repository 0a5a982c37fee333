/* SPDX-License-Identifier: Apache-2.0
 * Hyper-parameters: the keys of a file as checked numbers.
 *
 * Owns the prefixing of keys, their ranges, the defaults and the checks that follow them.
 * Invariant: after pith_load_hparams without a failure every number is in its published limit,
 * heads divide, head sizes are even and epsilon is positive; loops over n_layer are safe. Does
 * not know tensors (weights.c) nor angles (rope_setting.c). */
#include "base/memory.h"
#include "model/architecture.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { KEY_BYTES = 128 };

void pith_loader_fail(pith_loader *loader, pith_status status, const char *format, ...) {
    if (loader->status != PITH_OK) return;
    char text[sizeof loader->error->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    loader->status = pith_fail(loader->error, status, "%s", text);
}

void pith_loader_note(pith_loader *loader, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pith_buffer *notes = &loader->model->notes;
    if (notes->size > 0) pith_buffer_append_text(notes, "\n");
    pith_buffer_append_text(notes, text);
}

/* "llama" + "block_count" -> "llama.block_count". Both come from this program, so they fit. */
static const char *full_key(const pith_loader *loader, const char *key, char out[KEY_BYTES]) {
    snprintf(out, KEY_BYTES, "%s.%s", loader->arch, key);
    return out;
}

uint32_t pith_load_u32(pith_loader *loader, const char *key, uint32_t min, uint32_t max,
                       uint32_t absent) {
    char name[KEY_BYTES];
    uint32_t value = absent;
    bool found = false;
    if (loader->status != PITH_OK) return absent;
    loader->status = pith_gguf_get_u32(loader->gguf, full_key(loader, key, name), min, max, &value,
                                       &found, loader->error);
    return loader->status == PITH_OK && found ? value : absent;
}

uint32_t pith_load_u32_needed(pith_loader *loader, const char *key, uint32_t min, uint32_t max) {
    char name[KEY_BYTES];
    if (loader->status == PITH_OK && !pith_load_has(loader, key)) {
        pith_loader_fail(loader, PITH_ERROR_FORMAT,
                         "key %s is missing: architecture %s cannot be loaded without it",
                         full_key(loader, key, name), loader->arch);
    }
    return pith_load_u32(loader, key, min, max, min);
}

float pith_load_f32(pith_loader *loader, const char *key, float absent) {
    char name[KEY_BYTES];
    float value = absent;
    bool found = false;
    if (loader->status != PITH_OK) return absent;
    loader->status =
        pith_gguf_get_f32(loader->gguf, full_key(loader, key, name), &value, &found, loader->error);
    return loader->status == PITH_OK && found ? value : absent;
}

bool pith_load_bool(pith_loader *loader, const char *key, bool absent) {
    char name[KEY_BYTES];
    bool value = absent, found = false;
    if (loader->status != PITH_OK) return absent;
    loader->status = pith_gguf_get_bool(loader->gguf, full_key(loader, key, name), &value, &found,
                                        loader->error);
    return loader->status == PITH_OK && found ? value : absent;
}

bool pith_load_has(const pith_loader *loader, const char *key) {
    char name[KEY_BYTES];
    return pith_gguf_value_find(loader->gguf, full_key(loader, key, name)) != NULL;
}

pith_span pith_load_text(pith_loader *loader, const char *key) {
    char name[KEY_BYTES];
    pith_span value = {"", 0};
    bool found = false;
    if (loader->status != PITH_OK) return value;
    loader->status = pith_gguf_get_string(loader->gguf, full_key(loader, key, name), &value, &found,
                                          loader->error);
    return loader->status == PITH_OK && found ? value : (pith_span){"", 0};
}

/* A number for each layer: a scalar or an array of n_layer. Returns whether the key exists. */
static bool load_each(pith_loader *loader, const char *key, uint32_t max, uint32_t *out) {
    char name[KEY_BYTES];
    bool found = false;
    if (loader->status != PITH_OK) return false;
    loader->status = pith_gguf_get_u32_each(loader->gguf, full_key(loader, key, name), 1, max, out,
                                            loader->model->hparams.n_layer, &found, loader->error);
    return loader->status == PITH_OK && found;
}

static bool load_each_needed(pith_loader *loader, const char *key, uint32_t max, uint32_t *out) {
    if (load_each(loader, key, max, out)) return true;
    pith_loader_fail(loader, PITH_ERROR_FORMAT,
                     "key %s.%s is missing: architecture %s cannot be loaded without it",
                     loader->arch, key, loader->arch);
    return false;
}

/* Heads and inner widths by layer. */
static void load_layers(pith_loader *loader) {
    pith_model *model = loader->model;
    uint32_t n_layer = model->hparams.n_layer, n_embd = model->hparams.n_embd;
    uint32_t each[PITH_MODEL_MAX_LAYERS];
    if (load_each_needed(loader, "feed_forward_length", PITH_MODEL_MAX_FF, each)) {
        for (uint32_t i = 0; i < n_layer; i++) model->layers[i].n_ff = each[i];
    }
    if (load_each_needed(loader, "attention.head_count", PITH_MODEL_MAX_HEADS, each)) {
        for (uint32_t i = 0; i < n_layer; i++) model->layers[i].n_head = each[i];
    }
    bool has_kv = load_each(loader, "attention.head_count_kv", PITH_MODEL_MAX_HEADS, each);
    uint32_t key = pith_load_u32(loader, "attention.key_length", 1, PITH_MODEL_MAX_HEAD_DIM, 0);
    uint32_t value = pith_load_u32(loader, "attention.value_length", 1, PITH_MODEL_MAX_HEAD_DIM, 0);
    for (uint32_t i = 0; i < n_layer && loader->status == PITH_OK; i++) {
        pith_layer *layer = &model->layers[i];
        layer->n_head_kv = has_kv ? each[i] : layer->n_head;
        if ((key == 0 || value == 0) && n_embd % layer->n_head != 0) {
            pith_loader_fail(loader, PITH_ERROR_FORMAT,
                             "%s.embedding_length %u is not a multiple of attention.head_count %u "
                             "and there is no attention.key_length",
                             loader->arch, n_embd, layer->n_head);
            return;
        }
        layer->head_dim = key != 0 ? key : n_embd / layer->n_head;
        layer->head_dim_v = value != 0 ? value : n_embd / layer->n_head;
    }
}

/* What must hold between the numbers, after the defaults. */
static void check_layers(pith_loader *loader) {
    const pith_model *model = loader->model;
    for (uint32_t i = 0; i < model->hparams.n_layer && loader->status == PITH_OK; i++) {
        const pith_layer *layer = &model->layers[i];
        if (layer->n_head % layer->n_head_kv != 0) {
            pith_loader_fail(
                loader, PITH_ERROR_FORMAT,
                "layer %u: %u attention heads are not a multiple of %u key-value heads", i,
                layer->n_head, layer->n_head_kv);
        }
        if (layer->head_dim % 2 != 0 || layer->head_dim > PITH_MODEL_MAX_HEAD_DIM ||
            layer->head_dim_v > PITH_MODEL_MAX_HEAD_DIM) {
            pith_loader_fail(loader, PITH_ERROR_FORMAT,
                             "layer %u: head sizes %u and %u must be even and at most %d", i,
                             layer->head_dim, layer->head_dim_v, PITH_MODEL_MAX_HEAD_DIM);
        }
    }
}

void pith_load_expert_counts(pith_loader *loader) {
    pith_hparams *hparams = &loader->model->hparams;
    hparams->n_expert = pith_load_u32(loader, "expert_count", 0, PITH_MODEL_MAX_EXPERTS, 0);
    if (hparams->n_expert == 0) return;
    hparams->n_expert_used =
        pith_load_u32_needed(loader, "expert_used_count", 1, PITH_MODEL_MAX_EXPERTS);
    if (hparams->n_expert_used > hparams->n_expert) {
        pith_loader_fail(loader, PITH_ERROR_FORMAT,
                         "%s.expert_used_count %u is more than expert_count %u", loader->arch,
                         hparams->n_expert_used, hparams->n_expert);
    }
}

void pith_load_hparams(pith_loader *loader) {
    pith_model *model = loader->model;
    pith_hparams *hparams = &model->hparams;
    hparams->n_ctx_train =
        pith_load_u32_needed(loader, "context_length", 1, PITH_MODEL_MAX_CONTEXT);
    hparams->pooling_type = pith_load_u32(loader, "pooling_type", 0, 4, 0);
    hparams->n_embd = pith_load_u32_needed(loader, "embedding_length", 1, PITH_MODEL_MAX_EMBD);
    hparams->n_layer = pith_load_u32_needed(loader, "block_count", 1, PITH_MODEL_MAX_LAYERS);
    hparams->embed_scale = 1.0f;
    if (loader->status != PITH_OK) return;
    model->layers = pith_alloc_zero(hparams->n_layer, sizeof *model->layers);
    if (!model->layers) {
        loader->status = pith_fail_memory(loader->error, "layers",
                                          (uint64_t)hparams->n_layer * sizeof *model->layers);
        return;
    }
    load_layers(loader);
    hparams->norm_eps = pith_load_f32(loader, "attention.layer_norm_rms_epsilon", 0.0f);
    if (!(hparams->norm_eps > 0.0f) || !isfinite(hparams->norm_eps)) {
        pith_loader_fail(loader, PITH_ERROR_FORMAT,
                         "%s.attention.layer_norm_rms_epsilon is missing or not positive (%g)",
                         loader->arch, (double)hparams->norm_eps);
    }
    check_layers(loader);
    if (loader->status != PITH_OK) return;
    float scale = pith_load_f32(loader, "attention.scale", 0.0f);
    hparams->attention_scale =
        scale != 0.0f ? scale : 1.0f / sqrtf((float)model->layers[0].head_dim);
}

void pith_load_causal_only(pith_loader *loader) {
    if (!pith_load_bool(loader, "attention.causal", true)) {
        pith_loader_fail(loader, PITH_ERROR_UNSUPPORTED,
                         "%s.attention.causal is false: pith runs %s only with causal attention",
                         loader->arch, loader->arch);
    }
}

/* attention.sliding_window_pattern: a period, or a flag (slides) for each layer. */
static void load_pattern(pith_loader *loader, uint32_t period, uint32_t window) {
    char name[KEY_BYTES];
    pith_model *model = loader->model;
    uint32_t slides[PITH_MODEL_MAX_LAYERS], n_layer = model->hparams.n_layer;
    const pith_gguf_value *pattern = pith_gguf_value_find(
        loader->gguf, full_key(loader, "attention.sliding_window_pattern", name));
    bool found = false, is_list = pattern && pattern->kind == PITH_GGUF_ARRAY;
    if (is_list) {
        loader->status = pith_gguf_get_u32_each(loader->gguf, name, 0, 1, slides, n_layer, &found,
                                                loader->error);
    } else {
        period = pith_load_u32(loader, "attention.sliding_window_pattern", 0, PITH_MODEL_MAX_LAYERS,
                               period);
    }
    if (loader->status != PITH_OK) return;
    for (uint32_t i = 0; i < n_layer; i++) {
        bool slide = is_list ? slides[i] != 0 : period == 0 || i % period < period - 1;
        model->layers[i].window = slide ? window : 0;
    }
}

void pith_load_windows(pith_loader *loader, uint32_t period) {
    uint32_t window = pith_load_u32(loader, "attention.sliding_window", 0, UINT32_MAX, 0);
    if (loader->status != PITH_OK || window == 0) return;
    /* A window as long as the context hides nothing. */
    if (window > loader->model->hparams.n_ctx_train) window = loader->model->hparams.n_ctx_train;
    load_pattern(loader, period, window);
}
