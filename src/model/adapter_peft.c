/* SPDX-License-Identifier: Apache-2.0
 * PEFT folders: adapter_config.json and adapter_model.safetensors, read as they are.
 *
 *   base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight [rank, in]
 *                    \_____________ module ___________/ \___ half __/
 *   .lora_B.weight [out, rank]; of embed_tokens lora_embedding_A [rank, n_vocab], lora_embedding_B
 *
 * The tensors are listed, sorted by weight, expert and half, and taken pair by pair: so what comes
 * out does not depend on their order in the file. B's rows of q and k are put into the order that
 * GGUF files have (pith_arch.permutes_qk), A of embeddings is turned so that a token has a row, and
 * experts that have matrices of their own become stacks; those that have none add nothing.
 *
 * Invariant: every tensor belongs to a pair or is PEFT's copy of a matrix of the model, or the
 * opening fails with its name. */
#include "base/memory.h"
#include "model/adapter.h"
#include "model/hf_name.h"
#include "model/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct peft_tensor {
    pith_hf_name name;
    bool is_b, is_lookup;
    pith_span module; /* in the tensor's name */
    const pith_safetensor *tensor;
} peft_tensor;

typedef struct peft_reader {
    pith_adapter_loader *loader;
    pith_peft_config *config;
    pith_safetensors *file;
    peft_tensor *tensors;
    size_t n;
} peft_reader;

/* ---- Names ---- */

static const struct {
    const char *text;
    bool is_b, is_lookup;
} endings[] = {
    {".lora_A.weight", false, false},           {".lora_B.weight", true, false},
    {".lora_A.default.weight", false, false},   {".lora_B.default.weight", true, false},
    {".lora_embedding_A", false, true},         {".lora_embedding_B", true, true},
    {".lora_embedding_A.default", false, true}, {".lora_embedding_B.default", true, true}};

static bool cut_ending(peft_tensor *t) {
    pith_span name = pith_span_of(t->tensor->name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i].text);
        if (name.size <= n || strcmp(name.data + name.size - n, endings[i].text) != 0) continue;
        t->module = (pith_span){name.data, name.size - n};
        t->is_b = endings[i].is_b;
        t->is_lookup = endings[i].is_lookup;
        return true;
    }
    return false;
}

static void skip_prefix(pith_span *module) {
    static const char prefix[] = "base_model.model.";
    size_t n = sizeof prefix - 1;
    if (module->size <= n || memcmp(module->data, prefix, n) != 0) return;
    module->data += n;
    module->size -= n;
}

static pith_status name_tensor(const peft_reader *r, peft_tensor *t) {
    const char *name = t->tensor->name;
    pith_error *error = r->loader->error;
    if (strstr(name, "lora_magnitude_vector"))
        return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                         "tensor %.120s: DoRA (magnitudes beside the pairs) is not supported",
                         name);
    if (!cut_ending(t))
        return pith_fail(
            error, PITH_ERROR_UNSUPPORTED,
            "tensor %.100s is no half of a low-rank pair (lora_A, lora_B): pith cannot "
            "apply it, and without it the answers would be wrong",
            name);
    skip_prefix(&t->module);
    bool is_table =
        pith_hf_name_find(t->module, &t->name) && strcmp(t->name.gguf, "token_embd.weight") == 0;
    if (t->name.gguf[0] && is_table == t->is_lookup) return PITH_OK;
    return pith_fail(error, PITH_ERROR_FORMAT,
                     "tensor %.120s matches nothing: pith knows no such matrix of a decoder", name);
}

/* PEFT saves a copy of a table that it adapts. One of another size is no copy: the training added
 * tokens, which the model does not have. false: the tensor is something else. */
static bool is_base_copy(const peft_reader *r, const pith_safetensor *tensor, pith_status *status) {
    static const char ending[] = ".base_layer.weight";
    pith_span module = pith_span_of(tensor->name);
    size_t n = sizeof ending - 1;
    pith_hf_name name = {"", -1};
    pith_adapter_target target;
    if (module.size <= n || strcmp(module.data + module.size - n, ending) != 0) return false;
    module.size -= n;
    skip_prefix(&module);
    if (!pith_hf_name_find(module, &name)) return false;
    *status = pith_adapter_find(r->loader, name.gguf, tensor->name, &target);
    if (*status != PITH_OK) return true;
    const uint64_t *ne = target.weight->ne;
    if (tensor->n_dims != 2 || tensor->shape[0] != ne[1] || tensor->shape[1] != ne[0])
        *status = pith_fail(r->loader->error, PITH_ERROR_FORMAT,
                            "tensor %.90s is %" PRIu64 " x %" PRIu64 ", the model's is %" PRIu64
                            " x %" PRIu64 ": the adapter is for another one",
                            tensor->name, tensor->shape[1], tensor->shape[0], ne[0], ne[1]);
    return true;
}

static int by_weight(const void *a, const void *b) {
    const peft_tensor *x = a, *y = b;
    int order = strcmp(x->name.gguf, y->name.gguf);
    if (order == 0) order = (x->name.expert > y->name.expert) - (x->name.expert < y->name.expert);
    if (order == 0) order = (int)x->is_b - (int)y->is_b;
    return order ? order : strcmp(x->tensor->name, y->tensor->name);
}

static pith_status list_tensors(peft_reader *r) {
    size_t n = pith_safetensors_count(r->file);
    pith_error *error = r->loader->error;
    pith_status status = PITH_OK;
    r->tensors = pith_alloc_zero(n ? n : 1, sizeof *r->tensors);
    if (!r->tensors) return pith_fail_memory(error, "an adapter", n * sizeof *r->tensors);
    for (size_t i = 0; i < n && status == PITH_OK; i++) {
        const pith_safetensor *tensor = pith_safetensors_at(r->file, i);
        if (is_base_copy(r, tensor, &status)) continue;
        peft_tensor *t = &r->tensors[r->n++];
        t->tensor = tensor;
        status = name_tensor(r, t);
    }
    if (status == PITH_OK && r->n == 0)
        status = pith_fail(error, PITH_ERROR_FORMAT, "the adapter has no tensors");
    if (status == PITH_OK) qsort(r->tensors, r->n, sizeof *r->tensors, by_weight);
    return status;
}

/* ---- Pairs ---- */

/* Halves [0], [1] of a pair must be an A and a B of the same module. */
static pith_status check_halves(const peft_reader *r, size_t at) {
    const peft_tensor *t = &r->tensors[at];
    bool has_next = at + 1 < r->n;
    bool same = has_next && strcmp(t[0].name.gguf, t[1].name.gguf) == 0 &&
                t[0].name.expert == t[1].name.expert;
    if (same && !t[0].is_b && t[1].is_b) return PITH_OK;
    if (same && t[0].is_b == t[1].is_b)
        return pith_fail(r->loader->error, PITH_ERROR_FORMAT,
                         "tensors %.90s and %.90s are for the same weight", t[0].tensor->name,
                         t[1].tensor->name);
    return pith_fail(r->loader->error, PITH_ERROR_FORMAT,
                     "tensor %.120s: the other half of the pair is missing", t->tensor->name);
}

static pith_status matrix_of(const peft_reader *r, const peft_tensor *t, pith_adapter_matrix *out) {
    const pith_safetensor *tensor = t->tensor;
    *out = (pith_adapter_matrix){.name = tensor->name,
                                 .source = pith_safetensors_source(r->file),
                                 .offset = tensor->offset,
                                 .bytes = tensor->bytes};
    if (!pith_safetensors_type(tensor->dtype, &out->type))
        return pith_fail(r->loader->error, PITH_ERROR_UNSUPPORTED,
                         "tensor %.100s has dtype %.20s; pith reads F32, F16 and BF16 adapters",
                         tensor->name, tensor->dtype);
    if (tensor->n_dims != 2)
        return pith_fail(r->loader->error, PITH_ERROR_FORMAT,
                         "tensor %.100s has %u dimensions; a half of a pair has 2", tensor->name,
                         tensor->n_dims);
    out->ne[0] = tensor->shape[1];
    out->ne[1] = tensor->shape[0];
    out->ne[2] = 1;
    return PITH_OK;
}

/* What check_pair is asked: shapes as they will lie in memory. */
static pith_status check_shapes(const peft_reader *r, const pith_adapter_target *target,
                                pith_adapter_matrix a, pith_adapter_matrix b, bool is_expert) {
    if (target->is_lookup) {
        uint64_t n_vocab = a.ne[0];
        a.ne[0] = a.ne[1];
        a.ne[1] = n_vocab;
    }
    if (is_expert) a.ne[2] = b.ne[2] = target->weight->ne[2];
    return pith_adapter_check_pair(r->loader, target, &a, &b);
}

/* q and k of a layer, where their rows lie in another order in GGUF; 0: not so. */
static uint32_t permuted_head(const pith_model *model, const pith_weight *weight) {
    for (uint32_t i = 0; model->arch->permutes_qk && i < model->hparams.n_layer; i++)
        if (weight == model->layers[i].q || weight == model->layers[i].k)
            return model->layers[i].head_dim;
    return 0;
}

/* One expert's halves, or the weight's only ones, to where they belong. */
static pith_status read_halves(peft_reader *r, size_t at, const pith_adapter_target *target,
                               const pith_adapter_matrix m[2]) {
    pith_adapter_loader *loader = r->loader;
    int32_t expert = r->tensors[at].name.expert;
    uint32_t slice = expert < 0 ? 0 : (uint32_t)expert;
    if (slice >= target->weight->ne[2])
        return pith_fail(loader->error, PITH_ERROR_FORMAT,
                         "tensor %.100s: expert %u, but the model has %" PRIu64, m[0].name, slice,
                         target->weight->ne[2]);
    pith_status status = check_shapes(r, target, m[0], m[1], expert >= 0);
    if (status == PITH_OK) status = pith_adapter_read(loader, &loader->a, &m[0], slice);
    if (status == PITH_OK) status = pith_adapter_read(loader, &loader->b, &m[1], slice);
    return status;
}

static pith_status begin_pair(peft_reader *r, size_t at, const pith_adapter_target *target,
                              pith_adapter_matrix m[2]) {
    pith_adapter_loader *loader = r->loader;
    bool is_expert = r->tensors[at].name.expert >= 0;
    uint32_t n_slice = is_expert ? (uint32_t)target->weight->ne[2] : 1;
    pith_status status = check_shapes(r, target, m[0], m[1], is_expert);
    if (status == PITH_OK)
        status = pith_adapter_begin(loader, &loader->a, &m[0], n_slice, is_expert);
    if (status == PITH_OK)
        status = pith_adapter_begin(loader, &loader->b, &m[1], n_slice, is_expert);
    return status;
}

/* The pair of a weight: tensors [at, end), two for each expert. */
static pith_status read_weight(peft_reader *r, size_t at, size_t end, pith_adapter_target *target) {
    const peft_tensor *first = &r->tensors[at];
    pith_status status =
        pith_adapter_find(r->loader, first->name.gguf, first->tensor->name, target);
    uint64_t rank = 0;
    for (size_t i = at; i < end && status == PITH_OK; i += 2) {
        pith_adapter_matrix m[2];
        status = matrix_of(r, &r->tensors[i], &m[0]);
        if (status == PITH_OK) status = matrix_of(r, &r->tensors[i + 1], &m[1]);
        if (status == PITH_OK && i == at) status = begin_pair(r, at, target, m);
        if (status != PITH_OK) return status;
        if (i == at) rank = m[1].ne[0];
        if (m[1].ne[0] != rank)
            return pith_fail(r->loader->error, PITH_ERROR_UNSUPPORTED,
                             "tensor %.100s: rank %" PRIu64 " where other experts have %" PRIu64,
                             m[1].name, m[1].ne[0], rank);
        status = read_halves(r, i, target, m);
    }
    return status;
}

/* The factor, from the config, whose rank must be the matrices'. */
static pith_status scale_of(const peft_reader *r, size_t at, float *scale) {
    uint32_t rank = 0, found = r->loader->b.rows.k;
    const peft_tensor *t = &r->tensors[at];
    pith_status status =
        pith_peft_config_scale(r->config, t->module, &rank, scale, r->loader->error);
    if (status != PITH_OK || rank == found) return status;
    return pith_fail(r->loader->error, PITH_ERROR_FORMAT,
                     "tensor %.100s has rank %u, but adapter_config.json says %u", t->tensor->name,
                     found, rank);
}

static pith_status take_weight(peft_reader *r, size_t at, size_t end) {
    pith_adapter_loader *loader = r->loader;
    pith_adapter_target target;
    float scale = 0;
    pith_status status = PITH_OK;
    for (size_t i = at; i < end && status == PITH_OK; i += 2) status = check_halves(r, i);
    if (status == PITH_OK) status = read_weight(r, at, end, &target);
    if (status == PITH_OK) status = scale_of(r, at, &scale);
    if (status != PITH_OK) return status;
    uint32_t head_dim = permuted_head(loader->model, target.weight);
    if (target.is_lookup) status = pith_adapter_turn(loader, &loader->a);
    if (status == PITH_OK && head_dim) status = pith_adapter_permute(loader, &loader->b, head_dim);
    return status == PITH_OK ? pith_adapter_add(loader, &target, scale) : status;
}

static void expect_all(const peft_reader *r) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->n; i++) {
        const pith_safetensor *tensor = r->tensors[i].tensor;
        pith_type type;
        if (tensor->n_dims == 2 && pith_safetensors_type(tensor->dtype, &type))
            pith_adapter_expect(&bytes, type, tensor->shape[1], tensor->shape[0]);
    }
    pith_delta_expect(r->loader->adapter->delta, bytes);
}

static pith_status take_all(peft_reader *r) {
    pith_status status = PITH_OK;
    expect_all(r);
    for (size_t at = 0, end; at < r->n && status == PITH_OK; at = end) {
        end = at + 1;
        while (end < r->n && strcmp(r->tensors[at].name.gguf, r->tensors[end].name.gguf) == 0)
            end++;
        status = take_weight(r, at, end);
    }
    return status;
}

/* ---- The folder ---- */

/* A pickle in its place is told apart. */
static pith_status open_weights(peft_reader *r, const char *path) {
    pith_error *error = r->loader->error;
    pith_source *source = NULL, *pickle = NULL;
    pith_buffer bin = {0};
    pith_status status = pith_source_open_path(path, &source, error);
    if (status == PITH_OK) return pith_safetensors_open(source, &r->file, error);
    size_t n = strlen(path), ending = sizeof "safetensors" - 1;
    if (n > ending) pith_buffer_append_format(&bin, "%.*sbin", (int)(n - ending), path);
    if (bin.data && !bin.failed && pith_source_open_path(bin.data, &pickle, NULL) == PITH_OK) {
        pith_source_close(pickle);
        status = pith_fail(error, PITH_ERROR_UNSUPPORTED,
                           "%.150s is a pickle, which pith does not read: save the adapter as "
                           "safetensors",
                           bin.data);
    }
    pith_buffer_deinit(&bin);
    return status;
}

pith_status pith_adapter_read_peft(pith_adapter_loader *loader, const char *config,
                                   const char *weights) {
    pith_adapter *adapter = loader->adapter;
    peft_reader r = {.loader = loader};
    pith_error *error = loader->error;
    pith_status status = PITH_OK;
    if (loader->options->first_layer || loader->options->last_layer)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "layers can be chosen for control vectors, and a PEFT folder holds none");
    status = pith_peft_config_open(config, &r.config, error);
    if (status == PITH_OK)
        status = pith_peft_config_invocation(r.config, loader->model, &adapter->invocation,
                                             &adapter->n_invocation, error);
    if (status == PITH_OK) status = open_weights(&r, weights);
    if (status == PITH_OK) status = list_tensors(&r);
    if (status == PITH_OK) status = take_all(&r);
    pith_free(r.tensors);
    pith_safetensors_close(r.file);
    pith_peft_config_close(r.config);
    return status;
}
