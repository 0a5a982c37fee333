/* SPDX-License-Identifier: Apache-2.0
 * Split models: NAME-00001-of-00003.gguf and so on, each a complete GGUF file.
 * The first holds all keys; the tensors of the others are appended to its list, in the order of the
 * shards.
 *
 * Invariant: a set is joined whole or not at all: every shard is there, says its own number and the
 * same count, no tensor name comes twice, and the tensors together are as many as the first shard
 * promises.
 * Not here: writing shards. */
#include "base/memory.h"
#include "gguf/gguf_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KEY_NO     "split.no"
#define KEY_COUNT  "split.count"
#define KEY_TOTAL  "split.tensors.count"
#define SUFFIX_FMT "-%05" PRIu32 "-of-%05" PRIu32 ".gguf"

enum { SUFFIX_CAPACITY = 40 };

pith_status pith_gguf_split_count(const pith_gguf *gguf, uint32_t *count, pith_error *error) {
    *count = 1;
    pith_status status =
        pith_gguf_get_u32(gguf, KEY_COUNT, 0, PITH_GGUF_MAX_SHARDS, count, NULL, error);
    if (*count == 0) *count = 1; /* what merging tools leave behind */
    return status;
}

/* "a/model" of "a/model-00001-of-00003.gguf". */
static pith_status find_prefix(const pith_gguf *gguf, const char *path, uint32_t count,
                               pith_span *prefix, pith_error *error) {
    char suffix[SUFFIX_CAPACITY];
    int length = snprintf(suffix, sizeof suffix, SUFFIX_FMT, (uint32_t)1, count);
    size_t size = strlen(path), suffix_size = (size_t)length;
    if (size >= suffix_size && strcmp(path + size - suffix_size, suffix) == 0) {
        *prefix = (pith_span){path, size - suffix_size};
        return PITH_OK;
    }
    return pith_fail(error, PITH_ERROR_FORMAT,
                     "%s is the first of %" PRIu32
                     " shards, so its name must end in %s to find the others",
                     pith_gguf_label(gguf->sources[0]).text, count, suffix);
}

static pith_status check_number(const pith_gguf *gguf, uint32_t number, uint32_t count,
                                pith_error *error) {
    pith_gguf_shown label = pith_gguf_label(gguf->sources[0]);
    uint32_t its_number = 0, its_count = 0;
    bool has_number = false, has_count = false;
    pith_status status = pith_gguf_get_u32(gguf, KEY_NO, 0, PITH_GGUF_MAX_SHARDS - 1, &its_number,
                                           &has_number, error);
    if (status == PITH_OK)
        status = pith_gguf_get_u32(gguf, KEY_COUNT, 0, PITH_GGUF_MAX_SHARDS, &its_count, &has_count,
                                   error);
    if (status) return status;
    if (!has_number || !has_count)
        return pith_fail(error, PITH_ERROR_FORMAT, "%s is a shard without the key %s", label.text,
                         has_number ? KEY_COUNT : KEY_NO);
    if (its_count != count)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "%s says it is one of %" PRIu32 " shards, the first shard says %" PRIu32,
                         label.text, its_count, count);
    if (its_number == number) return PITH_OK;
    if (number == 0)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "%s is shard %" PRIu32 " of %" PRIu32
                         ": name the first one, ...-00001-of-%05" PRIu32 ".gguf",
                         label.text, its_number + 1, count, count);
    return pith_fail(error, PITH_ERROR_FORMAT,
                     "%s says it is shard %" PRIu32 ", its name and place say %" PRIu32, label.text,
                     its_number + 1, number + 1);
}

static pith_status take_tensors(pith_gguf *gguf, pith_gguf *shard, uint32_t number,
                                pith_error *error) {
    size_t count = gguf->n_tensors + shard->n_tensors;
    if (count > PITH_GGUF_MAX_TENSORS)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "the first %" PRIu32 " shards have %zu tensors, at most %d are allowed",
                         number + 1, count, PITH_GGUF_MAX_TENSORS);
    pith_gguf_tensor *tensors = pith_realloc(gguf->tensors, count * sizeof *tensors);
    if (!tensors) return pith_fail_memory(error, "the list of tensors", count * sizeof *tensors);
    gguf->tensors = tensors;
    pith_gguf_arena_adopt(&gguf->arena, &shard->arena); /* the names */
    for (size_t i = 0; i < shard->n_tensors; i++) {
        pith_gguf_tensor *tensor = &gguf->tensors[gguf->n_tensors];
        *tensor = shard->tensors[i];
        tensor->shard = number;
        int32_t first;
        int inserted =
            pith_map_insert(&gguf->names, tensor->name, (int32_t)gguf->n_tensors, &first);
        if (inserted < 0) return pith_fail_memory(error, "the index of tensors", count);
        if (inserted == 0)
            return pith_fail(
                error, PITH_ERROR_FORMAT,
                "tensor name \"%s\" is there twice, in shards %" PRIu32 " and %" PRIu32,
                pith_gguf_show(tensor->name).text, gguf->tensors[first].shard + 1, number + 1);
        gguf->n_tensors++;
    }
    return PITH_OK;
}

static pith_status join_shard(pith_gguf *gguf, const char *path, uint32_t number, uint32_t count,
                              pith_error *error) {
    pith_source *source;
    pith_gguf *shard;
    pith_status status = pith_source_open_path(path, &source, error);
    if (status == PITH_OK) status = pith_gguf_open_source(source, &shard, error);
    if (status) return status;
    status = check_number(shard, number, count, error);
    if (status == PITH_OK) status = take_tensors(gguf, shard, number, error);
    if (status == PITH_OK) { /* the file stays open with the first shard, the rest of it goes */
        gguf->sources[number] = source;
        gguf->n_shards = number + 1;
        shard->n_shards = 0;
    }
    pith_gguf_close(shard);
    return status;
}

static pith_status check_total(const pith_gguf *gguf, uint32_t count, pith_error *error) {
    uint32_t total = 0;
    bool found;
    pith_status status =
        pith_gguf_get_u32(gguf, KEY_TOTAL, 0, PITH_GGUF_MAX_TENSORS, &total, &found, error);
    if (status) return status;
    if (!found)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "%s is the first of %" PRIu32 " shards without the key %s",
                         pith_gguf_label(gguf->sources[0]).text, count, KEY_TOTAL);
    if (total != gguf->n_tensors)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "key \"%s\" promises %" PRIu32 " tensors, the %" PRIu32 " shards have %zu",
                         KEY_TOTAL, total, count, gguf->n_tensors);
    return PITH_OK;
}

static pith_status join_all(pith_gguf *gguf, pith_span prefix, uint32_t count, pith_error *error) {
    pith_source **sources = pith_realloc(gguf->sources, count * sizeof(pith_source *));
    if (!sources)
        return pith_fail_memory(error, "the list of shards", count * sizeof(pith_source *));
    gguf->sources = sources;
    size_t capacity = prefix.size + SUFFIX_CAPACITY;
    char *path = pith_alloc(capacity);
    if (!path) return pith_fail_memory(error, "a path", capacity);
    pith_status status = PITH_OK;
    if (prefix.size > 0) memcpy(path, prefix.data, prefix.size);
    for (uint32_t i = 1; i < count && status == PITH_OK; i++) {
        snprintf(path + prefix.size, SUFFIX_CAPACITY, SUFFIX_FMT, i + 1, count);
        status = join_shard(gguf, path, i, count, error);
    }
    pith_free(path);
    return status;
}

pith_status pith_gguf_split_join(pith_gguf *gguf, const char *path, uint32_t count,
                                 pith_error *error) {
    pith_span prefix = {NULL, 0};
    pith_status status = check_number(gguf, 0, count, error);
    if (status == PITH_OK) status = find_prefix(gguf, path, count, &prefix, error);
    if (status == PITH_OK) status = join_all(gguf, prefix, count, error);
    return status ? status : check_total(gguf, count, error);
}
