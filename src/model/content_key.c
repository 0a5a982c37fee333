/* SPDX-License-Identifier: Apache-2.0
 * The content key of a model: tells two files apart without reading them whole. It covers every
 * byte in front of the tensor data (keys, vocabulary, tensor list) and three samples of each
 * tensor: first, middle and last bytes. Two files with the same key are taken for the same model,
 * for example by a store of prefixes. It is no proof against forgery. A full hash is not made
 * here. */
#include "base/memory.h"
#include "model/architecture.h"

enum { SAMPLE_BYTES = 64, CHUNK_BYTES = 16 * 1024 };

/* Bytes in front of the first tensor of each shard: its header. */
static uint64_t *header_bytes(const pith_gguf *gguf) {
    uint32_t n_shards = pith_gguf_n_shards(gguf);
    uint64_t *ends = pith_alloc_array(n_shards, sizeof *ends);
    if (!ends) return NULL;
    for (uint32_t i = 0; i < n_shards; i++) ends[i] = pith_source_size(pith_gguf_source(gguf, i));
    for (size_t i = 0; i < pith_gguf_n_tensors(gguf); i++) {
        const pith_gguf_tensor *tensor = pith_gguf_tensor_at(gguf, i);
        if (tensor->offset < ends[tensor->shard]) ends[tensor->shard] = tensor->offset;
    }
    return ends;
}

static pith_status hash_range(const pith_source *source, uint64_t end, uint64_t *key,
                              pith_error *error) {
    uint8_t chunk[CHUNK_BYTES];
    for (uint64_t at = 0; at < end; at += CHUNK_BYTES) {
        size_t size = end - at < CHUNK_BYTES ? (size_t)(end - at) : CHUNK_BYTES;
        pith_status status = pith_source_read(source, at, chunk, size, error);
        if (status != PITH_OK) return status;
        *key = pith_hash(chunk, size, *key);
    }
    return PITH_OK;
}

/* Where the samples of a tensor begin; returns their size. */
static size_t sample_offsets(const pith_gguf_tensor *tensor, uint64_t offsets[3]) {
    size_t size = tensor->bytes < SAMPLE_BYTES ? (size_t)tensor->bytes : SAMPLE_BYTES;
    offsets[0] = 0;
    offsets[2] = tensor->bytes - size;
    offsets[1] = offsets[2] / 2;
    return size;
}

/* A cold disk is asked for all samples at once: one after the other they take as long as the disk
 * takes to answer some hundred times. */
static void prefetch_samples(const pith_gguf *gguf) {
    for (size_t i = 0; i < pith_gguf_n_tensors(gguf); i++) {
        const pith_gguf_tensor *tensor = pith_gguf_tensor_at(gguf, i);
        const pith_source *source = pith_gguf_source(gguf, tensor->shard);
        uint64_t offsets[3];
        size_t size = sample_offsets(tensor, offsets);
        for (int s = 0; s < 3; s++) pith_source_prefetch(source, tensor->offset + offsets[s], size);
    }
}

static pith_status hash_samples(const pith_gguf *gguf, const pith_gguf_tensor *tensor,
                                uint64_t *key, pith_error *error) {
    uint8_t sample[SAMPLE_BYTES];
    uint64_t offsets[3];
    size_t size = sample_offsets(tensor, offsets);
    for (int i = 0; i < 3; i++) {
        pith_status status = pith_gguf_tensor_read(gguf, tensor, offsets[i], sample, size, error);
        if (status != PITH_OK) return status;
        *key = pith_hash(sample, size, *key);
    }
    return PITH_OK;
}

pith_status pith_model_file_key(const pith_gguf *gguf, uint64_t *key, pith_error *error) {
    return pith_content_key(gguf, key, error);
}

pith_status pith_content_key(const pith_gguf *gguf, uint64_t *key, pith_error *error) {
    uint32_t n_shards = pith_gguf_n_shards(gguf);
    uint64_t *ends = header_bytes(gguf), hash = 0;
    pith_status status = PITH_OK;
    if (!ends) return pith_fail_memory(error, "content key", (uint64_t)n_shards * sizeof *ends);
    prefetch_samples(gguf);
    for (uint32_t i = 0; i < n_shards && status == PITH_OK; i++) {
        status = hash_range(pith_gguf_source(gguf, i), ends[i], &hash, error);
    }
    pith_free(ends);
    for (size_t i = 0; i < pith_gguf_n_tensors(gguf) && status == PITH_OK; i++) {
        status = hash_samples(gguf, pith_gguf_tensor_at(gguf, i), &hash, error);
    }
    if (status == PITH_OK) *key = hash;
    return status;
}
