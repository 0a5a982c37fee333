/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Models": opening from the four kinds of sources, all of which end in open_gguf.
 *
 * Invariant: whoever is handed a source or a file closes it, also when it fails, so a caller never
 * has something to release after an error. Loading itself is model/model.c. */
#include "api/api_argument.h"
#include "cpu/cpu.h"
#include "engine/engine.h"

/* Takes gguf in every case. options: complete. */
static pith_status open_gguf(pith_gguf *gguf, const pith_model_options *options, pith_model **out,
                             pith_error *error) {
    uint32_t features = 0;
    pith_status status = pith_cpu_features(&features, error);
    if (status != PITH_OK) {
        pith_gguf_close(gguf);
        return status;
    }
    status = pith_model_load(gguf, options, features, out, error);
    if (status == PITH_OK) (*out)->turn_end = pith_turn_end_find(*out);
    return status;
}

/* Takes source in every case. */
static pith_status open_source(pith_source *source, const pith_model_options *options,
                               pith_model **out, pith_error *error) {
    pith_gguf *gguf = NULL;
    pith_status status = pith_gguf_open_source(source, &gguf, error);
    return status == PITH_OK ? open_gguf(gguf, options, out, error) : status;
}

static pith_status start(const pith_model_options *options, pith_model_options *full,
                         pith_model **out, pith_error *error) {
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    return pith_copy_options(full, sizeof *full, options, "pith_model_options", error);
}

pith_status pith_model_open(const char *path, const pith_model_options *options, pith_model **out,
                            pith_error *error) {
    pith_model_options full;
    pith_gguf *gguf = NULL;
    pith_status status = start(options, &full, out, error);
    if (status == PITH_OK && !path) status = pith_fail_null(error, "path");
    if (status == PITH_OK) status = pith_gguf_open_path(path, &gguf, error);
    return status == PITH_OK ? open_gguf(gguf, &full, out, error) : status;
}

pith_status pith_model_open_descriptor(int descriptor, uint64_t offset, uint64_t size,
                                       const pith_model_options *options, pith_model **out,
                                       pith_error *error) {
    pith_model_options full;
    pith_source *source = NULL;
    pith_status status = start(options, &full, out, error);
    if (status == PITH_OK) {
        status = pith_source_open_descriptor(descriptor, offset, size, &source, error);
    }
    return status == PITH_OK ? open_source(source, &full, out, error) : status;
}

pith_status pith_model_open_memory(const void *data, uint64_t size,
                                   const pith_model_options *options, pith_model **out,
                                   pith_error *error) {
    pith_model_options full;
    pith_source *source = NULL;
    pith_status status = start(options, &full, out, error);
    if (status == PITH_OK && !data) status = pith_fail_null(error, "data");
    if (status == PITH_OK) status = pith_source_open_memory(data, size, &source, error);
    return status == PITH_OK ? open_source(source, &full, out, error) : status;
}

pith_status pith_model_open_reader(const pith_reader *reader, const pith_model_options *options,
                                   pith_model **out, pith_error *error) {
    pith_model_options full;
    pith_reader whole;
    pith_source *source = NULL;
    pith_status status = start(options, &full, out, error);
    if (status == PITH_OK && !reader) status = pith_fail_null(error, "reader");
    if (status == PITH_OK) {
        status = pith_copy_options(&whole, sizeof whole, reader, "pith_reader", error);
    }
    if (status == PITH_OK && !whole.read_at) status = pith_fail_null(error, "reader.read_at");
    if (status == PITH_OK) status = pith_source_open_reader(&whole, &source, error);
    return status == PITH_OK ? open_source(source, &full, out, error) : status;
}

void pith_model_close(pith_model *model) {
    if (model) pith_model_drop_trie(model);
    pith_model_free(model);
}

pith_model_info pith_model_describe(const pith_model *model) {
    if (!model) return (pith_model_info){.architecture = "", .name = "", .type = "", .notes = ""};
    return pith_model_get_info(model);
}

const char *pith_model_chat_template(const pith_model *model) {
    return model ? model->chat_template : NULL;
}
