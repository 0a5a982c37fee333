/* SPDX-License-Identifier: Apache-2.0
 * Opening a model: from an open file to something an engine can be made of, in the order in which
 * a fault is cheapest to find: what the file says it is, vocabulary, keys and shapes, and only
 * then the weights.
 *
 * Invariant: a model that was handed out is complete and never changes; on any failure everything
 * is released, the file included. pith_model_check runs the same steps without the weights, so
 * that what it says and what happens agree. Next: architecture.h, arch_llama.c; the engine uses
 * pith_model_record. */
#include "base/memory.h"
#include "base/pool.h"
#include "model/architecture.h"

#include <math.h>
#include <string.h>

static void release_parts(pith_model *model) {
    pith_weights_free(model->weights);
    pith_tokenizer_free(model->tokenizer);
    pith_free(model->layers);
    pith_buffer_deinit(&model->notes);
}

void pith_model_free(pith_model *model) {
    if (!model) return;
    release_parts(model);
    pith_gguf_close(model->gguf);
    pith_free(model);
}

/* A string key; `absent` when it is not there or no string. */
static const char *text_of(const pith_gguf *gguf, const char *key, const char *absent) {
    pith_span value = {NULL, 0};
    bool found = false;
    pith_status status = pith_gguf_get_string(gguf, key, &value, &found, NULL);
    return status == PITH_OK && found ? value.data : absent;
}

/* What every reader wants to know of the file; the strings live in the file's header. */
static void describe_file(pith_model *model, const pith_gguf *gguf) {
    model->architecture = text_of(gguf, "general.architecture", "");
    model->name = text_of(gguf, "general.name", "");
    model->chat_template = text_of(gguf, "tokenizer.chat_template", NULL);
    pith_model_type_text(gguf, model->type, sizeof model->type);
    for (uint32_t i = 0; i < pith_gguf_n_shards(gguf); i++) {
        model->file_bytes += pith_source_size(pith_gguf_source(gguf, i));
    }
    for (size_t i = 0; i < pith_gguf_n_tensors(gguf); i++) {
        const uint64_t *ne = pith_gguf_tensor_at(gguf, i)->ne;
        model->n_parameters += ne[0] * ne[1] * ne[2] * ne[3];
    }
}

/* A key that says what the file is has to be a string where it is there. */
static pith_status check_string(const pith_gguf *gguf, const char *key, pith_error *error) {
    pith_span value;
    bool found;
    return pith_gguf_get_string(gguf, key, &value, &found, error);
}

static pith_status fail_unknown(const char *architecture, pith_error *error) {
    char known[128] = "";
    size_t used = 0;
    for (size_t i = 0; pith_architecture_name(i); i++) {
        const char *name = pith_architecture_name(i);
        size_t size = strlen(name);
        if (used + size + 3 > sizeof known) break;
        if (used > 0) memcpy(known + used, ", ", 2), used += 2;
        memcpy(known + used, name, size + 1);
        used += size;
    }
    return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                     "architecture \"%.40s\" is not run by this build, which knows %s",
                     architecture, known);
}

/* Which family, and that the file is a model at all. */
static pith_status find_architecture(pith_model *model, const pith_gguf *gguf, pith_error *error) {
    pith_status status = check_string(gguf, "general.type", error);
    if (status == PITH_OK) status = check_string(gguf, "general.architecture", error);
    if (status != PITH_OK) return status;
    const char *kind = text_of(gguf, "general.type", "model");
    if (strcmp(kind, "model") != 0) {
        return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                         "the file is no model: its general.type is \"%.40s\"", kind);
    }
    if (model->architecture[0] == '\0') {
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "key general.architecture is missing: the file does not say what it is");
    }
    model->arch = pith_architecture_find(pith_span_of(model->architecture));
    return model->arch ? PITH_OK : fail_unknown(model->architecture, error);
}

static pith_status load_vocabulary(pith_model *model, const pith_gguf *gguf, bool force,
                                   pith_error *error) {
    pith_status status = pith_vocab_load(gguf, force, &model->tokenizer, error);
    if (status != PITH_OK || !model->tokenizer) return status;
    pith_buffer_append_text(&model->notes, pith_tokenizer_notes(model->tokenizer));
    return PITH_OK;
}

/* Reads the keys and declares the weights. */
static pith_status declare(pith_model *model, const pith_gguf *gguf, bool is_outline,
                           pith_error *error) {
    pith_status status = pith_weights_new(&model->weights, error);
    if (status != PITH_OK) return status;
    pith_loader loader = {.model = model,
                          .gguf = gguf,
                          .arch = model->arch->name,
                          .error = error,
                          .is_outline = is_outline};
    model->arch->load(&loader);
    pith_load_nothing_left(&loader);
    pith_map_deinit(&loader.taken);
    if (loader.status == PITH_OK && model->notes.failed) {
        return pith_fail_memory(error, "notes", model->notes.size);
    }
    return loader.status;
}

static pith_status check_rope_freqs(const pith_model *model, pith_error *error) {
    for (uint32_t i = 0; model->rope_freqs && i < model->hparams.rope.n_rot / 2; i++) {
        float divisor = model->rope_freqs->values[i];
        if (divisor > 0.0f && isfinite(divisor)) continue;
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "rope_freqs.weight: element %u is %g and cannot divide an angle", i,
                         (double)divisor);
    }
    return PITH_OK;
}

/* That a load chose the slower mode by itself is told. */
static pith_status note_mapped(pith_model *model, pith_error *error) {
    if (pith_weights_mode(model->weights) != PITH_LOAD_MMAP) return PITH_OK;
    if (model->notes.size > 0) pith_buffer_append_text(&model->notes, "\n");
    pith_buffer_append_format(&model->notes,
                              "memory is short for %llu MiB of weights: the file is mapped and "
                              "used in place, which is slower than packed weights",
                              (unsigned long long)(pith_weights_bytes(model->weights) >> 20));
    return model->notes.failed ? pith_fail_memory(error, "notes", model->notes.size) : PITH_OK;
}

static pith_status read_weights(pith_model *model, const pith_model_options *options,
                                uint32_t features, pith_error *error) {
    pith_weights_options weights = {.load = options->load,
                                    .memory_limit = options->memory_limit,
                                    .n_threads = options->n_threads > 0 ? options->n_threads
                                                                        : pith_thread_count(),
                                    .features = features,
                                    .check_tensors = options->check_tensors,
                                    .progress = options->progress,
                                    .progress_user = options->progress_user};
    pith_status status = pith_weights_load(model->weights, &weights, error);
    if (status == PITH_OK) status = check_rope_freqs(model, error);
    if (status == PITH_OK && options->load == PITH_LOAD_AUTO) status = note_mapped(model, error);
    return status;
}

static pith_status check_options(const pith_model_options *options, pith_error *error) {
    if (options->n_threads < 0) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "n_threads %d is negative",
                         options->n_threads);
    }
    if ((int)options->load < PITH_LOAD_AUTO || options->load > PITH_LOAD_MMAP) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "load %d is no way of loading", options->load);
    }
    return PITH_OK;
}

static pith_status load_all(pith_model *model, const pith_model_options *options, uint32_t features,
                            pith_error *error) {
    pith_status status = check_options(options, error);
    describe_file(model, model->gguf);
    if (status == PITH_OK && !options->vocab_only)
        status = find_architecture(model, model->gguf, error);
    if (status == PITH_OK) status = load_vocabulary(model, model->gguf, options->force, error);
    if (status == PITH_OK && !options->vocab_only) {
        status = declare(model, model->gguf, false, error);
        if (status == PITH_OK) status = read_weights(model, options, features, error);
    }
    if (status == PITH_OK) status = pith_content_key(model->gguf, &model->content_key, error);
    return status;
}

pith_status pith_model_load(pith_gguf *gguf, const pith_model_options *options, uint32_t features,
                            pith_model **out, pith_error *error) {
    static const pith_model_options defaults = {.size = sizeof defaults};
    *out = NULL;
    pith_model *model = pith_alloc_zero(1, sizeof *model);
    if (!model) {
        pith_gguf_close(gguf);
        return pith_fail_memory(error, "model", sizeof *model);
    }
    model->gguf = gguf;
    model->turn_end = -1;
    pith_status status = load_all(model, options ? options : &defaults, features, error);
    if (status != PITH_OK) {
        pith_model_free(model);
        return status;
    }
    *out = model;
    return PITH_OK;
}

pith_status pith_model_check(const pith_gguf *gguf, pith_error *error) {
    pith_model model = {.turn_end = -1};
    describe_file(&model, gguf);
    pith_status status = find_architecture(&model, gguf, error);
    if (status == PITH_OK) status = load_vocabulary(&model, gguf, false, error);
    if (status == PITH_OK) status = declare(&model, gguf, false, error);
    release_parts(&model);
    return status;
}

pith_status pith_model_outline(const pith_gguf *gguf, pith_load load, uint32_t features,
                               pith_model **out, pith_error *error) {
    *out = NULL;
    pith_model *model = pith_alloc_zero(1, sizeof *model);
    if (!model) return pith_fail_memory(error, "model", sizeof *model);
    model->turn_end = -1;
    describe_file(model, gguf);
    pith_status status = find_architecture(model, gguf, error);
    if (status == PITH_OK) status = load_vocabulary(model, gguf, true, error);
    if (status == PITH_OK) status = declare(model, gguf, true, error);
    if (status != PITH_OK) {
        pith_model_free(model);
        return status;
    }
    pith_weights_lay_out(model->weights, load, features);
    *out = model;
    return PITH_OK;
}

pith_status pith_model_record(const pith_model *model, pith_plan *plan, pith_error *error) {
    if (!model->weights) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the model was opened with vocab_only: it has no weights to run");
    }
    model->arch->forward(model, plan);
    return pith_plan_check(plan, error);
}

void pith_model_kv_shapes(const pith_model *model, pith_kv_shape *shapes) {
    for (uint32_t i = 0; i < model->hparams.n_layer; i++) {
        const pith_layer *layer = &model->layers[i];
        shapes[i] =
            (pith_kv_shape){layer->n_head_kv, layer->head_dim, layer->head_dim_v, layer->window};
    }
}

pith_model_info pith_model_get_info(const pith_model *model) {
    const pith_hparams *hparams = &model->hparams;
    uint32_t n_tokens = model->tokenizer ? pith_tokenizer_size(model->tokenizer) : 0;
    pith_model_info info = {.architecture = model->architecture,
                            .name = model->name,
                            .type = model->type,
                            .n_layer = (int32_t)hparams->n_layer,
                            .n_embd = (int32_t)hparams->n_embd,
                            .n_vocab =
                                (int32_t)(hparams->n_vocab > 0 ? hparams->n_vocab : n_tokens),
                            .n_ctx_train = (int32_t)hparams->n_ctx_train,
                            .n_parameters = model->n_parameters,
                            .file_bytes = model->file_bytes,
                            .notes = model->notes.data ? model->notes.data : "",
                            .content_key = model->content_key};
    if (model->layers) {
        info.n_head = (int32_t)model->layers[0].n_head;
        info.n_head_kv = (int32_t)model->layers[0].n_head_kv;
    }
    if (model->weights) {
        info.weight_bytes = pith_weights_bytes(model->weights);
        info.load = pith_weights_mode(model->weights);
    }
    return info;
}

bool pith_model_is_end(const pith_model *model, int32_t id) {
    if (id < 0 || !model->tokenizer) return false;
    return id == model->turn_end || pith_tokenizer_is_end(model->tokenizer, id);
}
