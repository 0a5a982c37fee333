/* SPDX-License-Identifier: Apache-2.0
 * Adapters in GGUF files (docs/formats.md):
 *
 *   LoRA             general.type "adapter", adapter.type "lora", adapter.lora.alpha; for a weight
 *                    NAME the tensors NAME.lora_a {in, rank} and NAME.lora_b {rank, out}; of
 *                    token_embd.weight A is {rank, n_vocab}. Factor alpha / rank; 1 for alpha 0.
 *   control vectors  tensors direction.N {n_embd} in F32 for layers N >= 1
 *
 * Invariant: both halves of a pair are there, and every tensor is one of these. Keys that do not
 * change the numbers are not looked at. */
#include "base/memory.h"
#include "model/adapter.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { NAME_BYTES = PITH_GGUF_MAX_NAME_BYTES + 8 };
static const char ending_a[] = ".lora_a", ending_b[] = ".lora_b";

static const char direction[] = "direction.";

/* ---- What the file says it is ---- */

/* A string key; *text is copied where it is there. */
static pith_status copy_key(const pith_gguf *gguf, const char *key, char **text,
                            pith_error *error) {
    pith_span value;
    bool found = false;
    pith_status status = pith_gguf_get_string(gguf, key, &value, &found, error);
    if (status != PITH_OK || !found) return status;
    *text = pith_copy_text(value.data, value.size);
    return *text ? PITH_OK : pith_fail_memory(error, key, value.size);
}

/* The value of a key must be this one. */
static pith_status want_text(const pith_gguf *gguf, const char *key, const char *wanted,
                             pith_error *error) {
    pith_span value = {"", 0};
    bool found = false;
    pith_status status = pith_gguf_get_string(gguf, key, &value, &found, error);
    if (status != PITH_OK || (found && pith_span_is(value, wanted))) return status;
    return pith_fail(error, found ? PITH_ERROR_UNSUPPORTED : PITH_ERROR_FORMAT,
                     "key %s is \"%.40s\"; an adapter for this model has \"%s\"", key,
                     found ? value.data : "", wanted);
}

static pith_status check_lora_keys(const pith_adapter_loader *loader, const pith_gguf *gguf) {
    pith_status status = want_text(gguf, "general.type", "adapter", loader->error);
    if (status == PITH_OK)
        status =
            want_text(gguf, "general.architecture", loader->model->architecture, loader->error);
    if (status == PITH_OK) status = want_text(gguf, "adapter.type", "lora", loader->error);
    return status;
}

static pith_status read_invocation(pith_adapter_loader *loader, const pith_gguf *gguf) {
    static const char key[] = "adapter.alora.invocation_tokens";
    const pith_gguf_value *value = pith_gguf_value_find(gguf, key);
    pith_adapter *adapter = loader->adapter;
    if (!value) return PITH_OK;
    bool is_list = value->kind == PITH_GGUF_ARRAY &&
                   (value->item_kind == PITH_GGUF_U32 || value->item_kind == PITH_GGUF_I32);
    if (!is_list || value->n_items < 1 || value->n_items > PITH_ADAPTER_MAX_INVOCATION)
        return pith_fail(loader->error, PITH_ERROR_FORMAT,
                         "key %s must hold 1 to %d token ids, it is %s of %" PRIu64, key,
                         PITH_ADAPTER_MAX_INVOCATION, pith_gguf_kind_text(value), value->n_items);
    size_t n = (size_t)value->n_items;
    adapter->invocation = pith_alloc_array(n, sizeof *adapter->invocation);
    if (!adapter->invocation) return pith_fail_memory(loader->error, "an adapter", n);
    for (size_t i = 0; i < n; i++) {
        double id = pith_gguf_item_number(value, i);
        if (!(id >= 0 && id < (double)loader->model->hparams.n_vocab))
            return pith_fail(loader->error, PITH_ERROR_FORMAT,
                             "key %s: id %.0f is outside the vocabulary of %u", key, id,
                             loader->model->hparams.n_vocab);
        adapter->invocation[i] = (int32_t)id;
    }
    adapter->n_invocation = n;
    return PITH_OK;
}

/* ---- LoRA ---- */

static bool ends_with(pith_span name, const char *ending) {
    size_t n = strlen(ending);
    return name.size > n && memcmp(name.data + name.size - n, ending, n) == 0;
}

static pith_adapter_matrix matrix_of(const pith_gguf *gguf, const pith_gguf_tensor *tensor) {
    return (pith_adapter_matrix){
        .name = tensor->name.data,
        .type = tensor->type,
        .ne = {tensor->ne[0], tensor->ne[1], tensor->ne[2] * tensor->ne[3]},
        .source = pith_gguf_source(gguf, tensor->shard),
        .offset = tensor->offset,
        .bytes = tensor->bytes};
}

static pith_status add_pair(pith_adapter_loader *loader, const char *name,
                            const pith_adapter_matrix *a, const pith_adapter_matrix *b,
                            float alpha) {
    pith_adapter_target target;
    pith_status status = pith_adapter_find(loader, name, a->name, &target);
    if (status == PITH_OK) status = pith_adapter_check_pair(loader, &target, a, b);
    if (status == PITH_OK)
        status = pith_adapter_begin(loader, &loader->a, a, (uint32_t)a->ne[2], false);
    if (status == PITH_OK)
        status = pith_adapter_begin(loader, &loader->b, b, (uint32_t)b->ne[2], false);
    if (status == PITH_OK) status = pith_adapter_read(loader, &loader->a, a, 0);
    if (status == PITH_OK) status = pith_adapter_read(loader, &loader->b, b, 0);
    if (status != PITH_OK) return status;
    float scale = alpha != 0.0f ? (float)((double)alpha / (double)b->ne[0]) : 1.0f;
    return pith_adapter_add(loader, &target, scale);
}

/* The pair whose A is `tensor`. */
static pith_status read_pair(pith_adapter_loader *loader, const pith_gguf *gguf,
                             const pith_gguf_tensor *tensor, float alpha) {
    char name[NAME_BYTES];
    size_t n = tensor->name.size - (sizeof ending_a - 1);
    memcpy(name, tensor->name.data, n);
    memcpy(name + n, ending_b, sizeof ending_b);
    const pith_gguf_tensor *other = pith_gguf_tensor_find(gguf, name);
    if (!other)
        return pith_fail(loader->error, PITH_ERROR_FORMAT,
                         "tensor %.80s has no %.80s: half a pair is missing", tensor->name.data,
                         name);
    name[n] = '\0';
    pith_adapter_matrix a = matrix_of(gguf, tensor), b = matrix_of(gguf, other);
    return add_pair(loader, name, &a, &b, alpha);
}

/* A B without its A, or what is neither. */
static pith_status check_other(const pith_adapter_loader *loader, const pith_gguf *gguf,
                               const pith_gguf_tensor *tensor) {
    char name[NAME_BYTES];
    if (!ends_with(tensor->name, ending_b))
        return pith_fail(loader->error, PITH_ERROR_UNSUPPORTED,
                         "tensor %.100s is no half of a low-rank pair (.lora_a, .lora_b): pith "
                         "cannot apply it, and without it the answers would be wrong",
                         tensor->name.data);
    size_t n = tensor->name.size - (sizeof ending_b - 1);
    memcpy(name, tensor->name.data, n);
    memcpy(name + n, ending_a, sizeof ending_a);
    if (pith_gguf_tensor_find(gguf, name)) return PITH_OK;
    return pith_fail(loader->error, PITH_ERROR_FORMAT,
                     "tensor %.80s has no %.80s: half a pair is missing", tensor->name.data, name);
}

static void expect_all(pith_adapter *adapter, const pith_gguf *gguf) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < pith_gguf_n_tensors(gguf); i++) {
        const pith_gguf_tensor *tensor = pith_gguf_tensor_at(gguf, i);
        uint64_t n_slice = tensor->ne[2] * tensor->ne[3];
        pith_adapter_expect(&bytes, tensor->type, tensor->ne[0] * n_slice, tensor->ne[1]);
    }
    pith_delta_expect(adapter->delta, bytes);
}

static pith_status read_lora(pith_adapter_loader *loader, const pith_gguf *gguf) {
    pith_adapter *adapter = loader->adapter;
    float alpha = 0.0f;
    pith_error *error = loader->error;
    pith_status status = check_lora_keys(loader, gguf);
    if (status == PITH_OK)
        status = pith_gguf_get_f32(gguf, "adapter.lora.alpha", &alpha, NULL, error);
    if (status == PITH_OK) status = copy_key(gguf, "adapter.lora.task_name", &adapter->task, error);
    if (status == PITH_OK)
        status = copy_key(gguf, "adapter.lora.prompt_prefix", &adapter->prompt_prefix, error);
    if (status == PITH_OK) status = read_invocation(loader, gguf);
    expect_all(adapter, gguf);
    for (size_t i = 0; i < pith_gguf_n_tensors(gguf) && status == PITH_OK; i++) {
        const pith_gguf_tensor *tensor = pith_gguf_tensor_at(gguf, i);
        status = ends_with(tensor->name, ending_a) ? read_pair(loader, gguf, tensor, alpha)
                                                   : check_other(loader, gguf, tensor);
    }
    if (status != PITH_OK || pith_delta_n_pairs(adapter->delta)) return status;
    return pith_fail(error, PITH_ERROR_FORMAT, "the adapter has no tensors");
}

/* ---- Control vectors ---- */

static bool is_direction(pith_span name) {
    size_t n = sizeof direction - 1;
    return name.size > n && memcmp(name.data, direction, n) == 0;
}

/* "direction.12" -> 12. */
static bool layer_of(pith_span name, uint32_t *layer) {
    *layer = 0;
    for (size_t i = sizeof direction - 1; i < name.size; i++) {
        char c = name.data[i];
        if (c < '0' || c > '9' || *layer > PITH_MODEL_MAX_LAYERS) return false;
        *layer = *layer * 10 + (uint32_t)(c - '0');
    }
    return true;
}

static pith_status check_direction(const pith_adapter_loader *loader,
                                   const pith_gguf_tensor *tensor, uint32_t *layer) {
    uint32_t n_layer = loader->model->hparams.n_layer, n_embd = loader->model->hparams.n_embd;
    const char *name = tensor->name.data;
    if (!is_direction(tensor->name) || !layer_of(tensor->name, layer) || *layer == 0 ||
        *layer >= n_layer)
        return pith_fail(loader->error, PITH_ERROR_FORMAT,
                         "tensor %.80s matches nothing: control vectors are direction.1 to "
                         "direction.%u",
                         name, n_layer - 1);
    if (tensor->type != PITH_TYPE_F32 || tensor->ne[0] != n_embd ||
        tensor->ne[1] * tensor->ne[2] * tensor->ne[3] != 1)
        return pith_fail(loader->error, PITH_ERROR_FORMAT,
                         "tensor %.80s is %" PRIu64 " x %" PRIu64
                         " of type %s; a control vector of this model is %u x 1 of F32",
                         name, tensor->ne[0], tensor->ne[1],
                         pith_type_get((uint32_t)tensor->type)->name, n_embd);
    return PITH_OK;
}

static bool is_wanted(const pith_adapter_options *options, uint32_t layer) {
    if (options->first_layer == 0 && options->last_layer == 0) return true;
    return layer >= (uint32_t)options->first_layer && layer <= (uint32_t)options->last_layer;
}

static pith_status read_direction(pith_adapter_loader *loader, const pith_gguf *gguf,
                                  const pith_gguf_tensor *tensor) {
    pith_adapter *adapter = loader->adapter;
    uint32_t layer = 0;
    pith_error inner = {0};
    pith_adapter_matrix matrix = matrix_of(gguf, tensor);
    pith_status status = check_direction(loader, tensor, &layer);
    if (status != PITH_OK || !is_wanted(loader->options, layer)) return status;
    status = pith_adapter_begin(loader, &loader->a, &matrix, 1, false);
    if (status == PITH_OK) status = pith_adapter_read(loader, &loader->a, &matrix, 0);
    if (status != PITH_OK) return status;
    status =
        pith_delta_add_vector(adapter->delta, layer, loader->a.rows.data, loader->a.rows.k, &inner);
    if (status != PITH_OK)
        return pith_fail(loader->error, status, "tensor %.80s: %s", matrix.name, inner.text);
    adapter->content_key = pith_hash(&layer, sizeof layer, adapter->content_key);
    adapter->content_key =
        pith_hash(loader->a.memory, loader->a.rows.k * sizeof(float), adapter->content_key);
    return PITH_OK;
}

static pith_status read_control(pith_adapter_loader *loader, const pith_gguf *gguf) {
    pith_status status = PITH_OK;
    loader->adapter->kind = PITH_ADAPTER_CONTROL;
    for (size_t i = 0; i < pith_gguf_n_tensors(gguf) && status == PITH_OK; i++)
        status = read_direction(loader, gguf, pith_gguf_tensor_at(gguf, i));
    if (status != PITH_OK || pith_delta_n_vectors(loader->adapter->delta)) return status;
    return pith_fail(loader->error, PITH_ERROR_FORMAT,
                     "the file has no control vector for layers %d to %d",
                     loader->options->first_layer, loader->options->last_layer);
}

/* ---- The whole ---- */

static bool is_control(const pith_gguf *gguf) {
    pith_span architecture = {NULL, 0};
    pith_gguf_get_string(gguf, "general.architecture", &architecture, NULL, NULL);
    if (pith_span_is(architecture, "controlvector")) return true;
    return pith_gguf_n_tensors(gguf) && is_direction(pith_gguf_tensor_at(gguf, 0)->name);
}

static pith_status read_file(pith_adapter_loader *loader, const pith_gguf *gguf) {
    const pith_adapter_options *options = loader->options;
    pith_status status = copy_key(gguf, "general.name", &loader->adapter->name, loader->error);
    if (status != PITH_OK) return status;
    if (is_control(gguf)) return read_control(loader, gguf);
    if (options->first_layer || options->last_layer)
        return pith_fail(loader->error, PITH_ERROR_ARGUMENT,
                         "layers can be chosen for control vectors, and the file holds none");
    return read_lora(loader, gguf);
}

pith_status pith_adapter_read_gguf(pith_adapter_loader *loader, const char *path) {
    pith_gguf *gguf = NULL;
    pith_status status = pith_gguf_open_path(path, &gguf, loader->error);
    if (status == PITH_OK) status = read_file(loader, gguf);
    pith_gguf_close(gguf);
    return status;
}
