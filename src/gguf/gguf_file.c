/* SPDX-License-Identifier: Apache-2.0
 * An open GGUF file: opening, closing, and looking things up by index or name.
 *
 * Invariant: a pith_gguf that a caller holds has passed every check of gguf_header.c and
 * gguf_tensor.c (and of gguf_split.c when it has several shards), so nothing here needs to doubt an
 * offset or a size again.
 * Not here: what keys hold, see gguf_key.c. Next: gguf_header.c. */
#include "base/memory.h"
#include "gguf/gguf_internal.h"

#include <inttypes.h>

/* Takes source in every case. */
static pith_status open_source(pith_source *source, bool takes_header, pith_gguf **out,
                               pith_error *error) {
    *out = NULL;
    pith_gguf *gguf = pith_alloc_zero(1, sizeof *gguf);
    pith_source **sources = pith_alloc_zero(1, sizeof(pith_source *));
    if (!gguf || !sources) {
        pith_free(gguf);
        pith_free(sources);
        pith_source_close(source);
        return pith_fail_memory(error, "an open file", sizeof *gguf);
    }
    gguf->sources = sources;
    gguf->sources[0] = source;
    gguf->n_shards = 1;
    gguf->takes_header = takes_header;
    pith_status status = pith_gguf_header_read(gguf, error);
    if (status == PITH_OK)
        *out = gguf;
    else
        pith_gguf_close(gguf);
    return status;
}

pith_status pith_gguf_open_source(pith_source *source, pith_gguf **out, pith_error *error) {
    return open_source(source, false, out, error);
}

pith_status pith_gguf_open_header(const char *path, pith_gguf **out, pith_error *error) {
    *out = NULL;
    if (pith_gguf_open_path(path, out, NULL) == PITH_OK) return PITH_OK;
    pith_source *source;
    pith_status status = pith_source_open_path(path, &source, error);
    return status == PITH_OK ? open_source(source, true, out, error) : status;
}

bool pith_gguf_is_whole(const pith_gguf *gguf) {
    uint32_t count = 1;
    pith_status status = pith_gguf_split_count(gguf, &count, NULL);
    return !gguf->is_cut && status == PITH_OK && count == gguf->n_shards;
}

uint64_t pith_gguf_total_bytes(const pith_gguf *gguf) {
    uint64_t total = 0, end = 0;
    for (uint32_t i = 0; i < gguf->n_shards; i++) total += pith_source_size(gguf->sources[i]);
    for (size_t i = 0; gguf->is_cut && i < gguf->n_tensors; i++) {
        uint64_t last = gguf->tensors[i].offset + gguf->tensors[i].bytes; /* checked: below 2^64 */
        if (last > end) end = last;
    }
    return end > total ? end : total;
}

pith_status pith_gguf_open_path(const char *path, pith_gguf **out, pith_error *error) {
    *out = NULL;
    pith_source *source;
    pith_gguf *gguf;
    pith_status status = pith_source_open_path(path, &source, error);
    if (status == PITH_OK) status = pith_gguf_open_source(source, &gguf, error);
    if (status) return status;
    uint32_t count;
    status = pith_gguf_split_count(gguf, &count, error);
    if (status == PITH_OK && count > 1) status = pith_gguf_split_join(gguf, path, count, error);
    if (status == PITH_OK)
        *out = gguf;
    else
        pith_gguf_close(gguf);
    return status;
}

void pith_gguf_close(pith_gguf *gguf) {
    if (!gguf) return;
    pith_gguf_header_reset(gguf);
    pith_free(gguf->window);
    for (uint32_t i = 0; i < gguf->n_shards; i++) pith_source_close(gguf->sources[i]);
    pith_free(gguf->sources);
    pith_free(gguf);
}

uint32_t pith_gguf_version(const pith_gguf *gguf) {
    return gguf->version;
}

uint32_t pith_gguf_alignment(const pith_gguf *gguf) {
    return gguf->alignment;
}

uint32_t pith_gguf_n_shards(const pith_gguf *gguf) {
    return gguf->n_shards;
}

pith_source *pith_gguf_source(const pith_gguf *gguf, uint32_t shard) {
    return shard < gguf->n_shards ? gguf->sources[shard] : NULL;
}

size_t pith_gguf_n_values(const pith_gguf *gguf) {
    return gguf->n_values;
}

const pith_gguf_value *pith_gguf_value_at(const pith_gguf *gguf, size_t index) {
    return index < gguf->n_values ? &gguf->values[index] : NULL;
}

const pith_gguf_value *pith_gguf_value_find(const pith_gguf *gguf, const char *key) {
    int32_t index;
    return pith_map_find(&gguf->keys, pith_span_of(key), &index) ? &gguf->values[index] : NULL;
}

size_t pith_gguf_n_tensors(const pith_gguf *gguf) {
    return gguf->n_tensors;
}

const pith_gguf_tensor *pith_gguf_tensor_at(const pith_gguf *gguf, size_t index) {
    return index < gguf->n_tensors ? &gguf->tensors[index] : NULL;
}

const pith_gguf_tensor *pith_gguf_tensor_find(const pith_gguf *gguf, const char *name) {
    int32_t index;
    return pith_map_find(&gguf->names, pith_span_of(name), &index) ? &gguf->tensors[index] : NULL;
}

pith_status pith_gguf_tensor_read(const pith_gguf *gguf, const pith_gguf_tensor *tensor,
                                  uint64_t offset, void *buffer, size_t size, pith_error *error) {
    uint64_t end;
    if (!pith_u64_add(offset, size, &end) || end > tensor->bytes)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "tensor \"%s\": %zu bytes from %" PRIu64
                         " were asked for, it has %" PRIu64,
                         pith_gguf_show(tensor->name).text, size, offset, tensor->bytes);
    return pith_source_read(gguf->sources[tensor->shard], tensor->offset + offset, buffer, size,
                            error);
}
