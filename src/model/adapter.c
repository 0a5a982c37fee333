/* SPDX-License-Identifier: Apache-2.0
 * Adapters: opening one, and who holds it.
 *
 * A path is a GGUF file, a PEFT folder, or one of a PEFT folder's two files. Invariant: an adapter
 * that was handed out is complete and never changes; each tensor of its file is applied or the
 * opening fails with its name, because half an adapter answers wrongly. The last holder frees it,
 * so that a session may go on with an adapter that its opener has let go. Read next: adapter.h,
 * adapter_gguf.c, adapter_peft.c. */
#include "model/adapter.h"

#include "base/memory.h"

#include <string.h>

static void adapter_free(pith_adapter *adapter) {
    pith_delta_free(adapter->delta);
    pith_free(adapter->name);
    pith_free(adapter->task);
    pith_free(adapter->prompt_prefix);
    pith_free(adapter->invocation);
    pith_free(adapter);
}

void pith_adapter_hold(pith_adapter *adapter) {
    atomic_fetch_add(&adapter->n_holders, 1);
}

void pith_adapter_release(pith_adapter *adapter) {
    if (adapter && atomic_fetch_sub(&adapter->n_holders, 1) == 1) adapter_free(adapter);
}

/* ---- Which kind of path ---- */

/* Up to the last separator, which stays. */
static size_t folder_size(const char *path) {
    size_t size = strlen(path);
    while (size > 0 && path[size - 1] != '/' && path[size - 1] != '\\') size--;
    return size;
}

static bool ends_with(const char *path, const char *ending) {
    size_t n = strlen(path), m = strlen(ending);
    return n >= m && strcmp(path + n - m, ending) == 0;
}

typedef struct peft_paths {
    pith_buffer config, weights;
} peft_paths;

static void paths_deinit(peft_paths *paths) {
    pith_buffer_deinit(&paths->config);
    pith_buffer_deinit(&paths->weights);
}

/* The two files of a PEFT folder. weights: the file itself where the path named it. */
static void join_paths(const char *path, peft_paths *out) {
    bool is_file = ends_with(path, ".safetensors") || ends_with(path, "adapter_config.json");
    size_t folder = is_file ? folder_size(path) : strlen(path);
    const char *slash = is_file || folder_size(path) == folder ? "" : "/";
    pith_buffer_append_format(&out->config, "%.*s%sadapter_config.json", (int)folder, path, slash);
    if (ends_with(path, ".safetensors"))
        pith_buffer_append_text(&out->weights, path);
    else
        pith_buffer_append_format(&out->weights, "%.*s%sadapter_model.safetensors", (int)folder,
                                  path, slash);
}

/* A folder with a config, or one of its files. */
static pith_status find_kind(const char *path, const peft_paths *paths, bool *is_peft,
                             pith_error *error) {
    pith_source *source = NULL;
    *is_peft = ends_with(path, ".safetensors") || ends_with(path, "adapter_config.json");
    if (*is_peft) return PITH_OK;
    pith_status status = pith_source_open_path(paths->config.data, &source, error);
    *is_peft = status == PITH_OK;
    pith_source_close(source);
    return status == PITH_ERROR_MEMORY ? status : PITH_OK;
}

static pith_status read_path(pith_adapter_loader *loader, const char *path) {
    peft_paths paths = {0};
    bool is_peft = false;
    pith_status status = PITH_OK;
    if (strlen(path) > INT32_MAX / 2)
        return pith_fail(loader->error, PITH_ERROR_ARGUMENT, "the path is too long");
    join_paths(path, &paths);
    if (paths.config.failed || paths.weights.failed)
        status = pith_fail_memory(loader->error, "a path", strlen(path));
    if (status == PITH_OK) status = find_kind(path, &paths, &is_peft, loader->error);
    if (status == PITH_OK && is_peft)
        status = pith_adapter_read_peft(loader, paths.config.data, paths.weights.data);
    else if (status == PITH_OK)
        status = pith_adapter_read_gguf(loader, path);
    paths_deinit(&paths);
    return status;
}

/* ---- Opening ---- */

/* The file's or folder's own name, without what says its kind. */
static char *name_of(const char *path) {
    size_t end = strlen(path), start;
    while (end > 1 && (path[end - 1] == '/' || path[end - 1] == '\\')) end--;
    for (start = end; start > 0 && path[start - 1] != '/' && path[start - 1] != '\\';) start--;
    if (end - start > 5 && strncmp(path + end - 5, ".gguf", 5) == 0) end -= 5;
    return pith_copy_text(path + start, end - start);
}

static pith_status check_options(const pith_model *model, const pith_adapter_options *options,
                                 pith_error *error) {
    int32_t first = options->first_layer, last = options->last_layer;
    if (!model->weights)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the model was opened with vocab_only: nothing can be added to it");
    if (first < 0 || last < first || (uint32_t)last >= model->hparams.n_layer)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "layers %d to %d; the model has layers 0 to %u", first, last,
                         model->hparams.n_layer - 1);
    return PITH_OK;
}

static pith_status finish(pith_adapter *adapter, const char *path, pith_error *error) {
    if (!adapter->name) adapter->name = name_of(path);
    if (!adapter->name) return pith_fail_memory(error, "an adapter", strlen(path));
    return PITH_OK;
}

pith_status pith_adapter_load(const pith_model *model, const char *path,
                              const pith_adapter_options *options, uint32_t features,
                              pith_adapter **out, pith_error *error) {
    *out = NULL;
    pith_status status = check_options(model, options, error);
    if (status != PITH_OK) return status;
    pith_adapter *adapter = pith_alloc_zero(1, sizeof *adapter);
    if (!adapter) return pith_fail_memory(error, "an adapter", sizeof *adapter);
    atomic_init(&adapter->n_holders, 1);
    adapter->model = model;
    pith_adapter_loader loader = {
        .adapter = adapter, .model = model, .options = options, .error = error};
    status = pith_delta_new(features, &adapter->delta, error);
    if (status == PITH_OK) status = read_path(&loader, path);
    if (status == PITH_OK) status = finish(adapter, path, error);
    pith_adapter_loader_deinit(&loader);
    if (status != PITH_OK) {
        pith_adapter_release(adapter);
        return status;
    }
    *out = adapter;
    return PITH_OK;
}

pith_adapter_info pith_adapter_get_info(const pith_adapter *adapter) {
    const pith_delta *delta = adapter->delta;
    return (pith_adapter_info){
        .kind = adapter->kind,
        .name = adapter->name,
        .task = adapter->task ? adapter->task : "",
        .prompt_prefix = adapter->prompt_prefix ? adapter->prompt_prefix : "",
        .rank = (int32_t)pith_delta_rank(delta),
        .n_tensors = (int32_t)(pith_delta_n_pairs(delta) + pith_delta_n_vectors(delta)),
        .bytes = pith_delta_bytes(delta),
        .content_key = adapter->content_key,
        .invocation = adapter->invocation,
        .n_invocation = adapter->n_invocation};
}
