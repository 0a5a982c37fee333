/* SPDX-License-Identifier: Apache-2.0
 * For tests: writes a copy of a GGUF file with some keys and tensors changed, so that a test can
 * say "this golden model, but with three key-value heads". Values of tensors are copied as they
 * are; added and reshaped tensors hold zeros. */
#ifndef PITH_TESTS_CHANGED_MODEL_H
#define PITH_TESTS_CHANGED_MODEL_H

#include "base/memory.h"
#include "gguf/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum change_kind {
    CHANGE_NONE,
    DROP_KEY,
    SET_U32,   /* number */
    SET_F32,   /* number */
    SET_BOOL,  /* number */
    SET_TEXT,  /* text */
    SET_FLAGS, /* array of bool from text, "1101" */
    DROP_TENSOR,
    ADD_TENSOR, /* F32, `number` elements, all 1 */
    RESHAPE     /* ne[0] becomes number (F32 tensors only) */
} change_kind;

typedef struct change {
    change_kind kind;
    const char *name;
    double number;
    const char *text;
} change;

/* The change of `kind` in [first, last] for a name; NULL: none. */
static const change *change_find(const change *changes, size_t n, const char *name,
                                 change_kind first, change_kind last) {
    for (size_t i = 0; i < n; i++) {
        if (changes[i].kind >= first && changes[i].kind <= last && !strcmp(changes[i].name, name)) {
            return &changes[i];
        }
    }
    return NULL;
}

static pith_status changed_set(pith_gguf_writer *writer, const change *c) {
    uint8_t flags[512];
    switch (c->kind) {
    case SET_U32: return pith_gguf_write_u32(writer, c->name, (uint32_t)c->number, NULL);
    case SET_F32: return pith_gguf_write_f32(writer, c->name, (float)c->number, NULL);
    case SET_BOOL: return pith_gguf_write_bool(writer, c->name, c->number != 0, NULL);
    case SET_TEXT: return pith_gguf_write_string(writer, c->name, c->text, NULL);
    case SET_FLAGS:
        for (size_t i = 0; c->text[i]; i++) flags[i] = c->text[i] == '1';
        return pith_gguf_write_array(writer, c->name, PITH_GGUF_BOOL, flags, strlen(c->text), NULL);
    default: return PITH_OK;
    }
}

static pith_status changed_copy_value(pith_gguf_writer *writer, const pith_gguf_value *value) {
    const char *key = value->key.data;
    if (value->strings) {
        return pith_gguf_write_strings(writer, key, value->strings, value->n_items, NULL);
    }
    if (value->kind == PITH_GGUF_ARRAY) {
        return pith_gguf_write_array(writer, key, value->item_kind, value->bytes, value->n_items,
                                     NULL);
    }
    return pith_gguf_write_value(writer, key, value->kind, value->bytes, (size_t)value->size, NULL);
}

static pith_status changed_keys(pith_gguf_writer *writer, const pith_gguf *gguf,
                                const change *changes, size_t n) {
    pith_status status = PITH_OK;
    for (size_t i = 0; i < pith_gguf_n_values(gguf) && status == PITH_OK; i++) {
        const pith_gguf_value *value = pith_gguf_value_at(gguf, i);
        if (change_find(changes, n, value->key.data, DROP_KEY, SET_FLAGS)) continue;
        status = changed_copy_value(writer, value);
    }
    for (size_t i = 0; i < n && status == PITH_OK; i++) status = changed_set(writer, &changes[i]);
    return status;
}

/* Declares (data false) or sends (data true) the tensors. */
static pith_status changed_tensors(pith_gguf_writer *writer, const pith_gguf *gguf,
                                   const change *changes, size_t n, bool data) {
    pith_status status = PITH_OK;
    for (size_t i = 0; i < pith_gguf_n_tensors(gguf) && status == PITH_OK; i++) {
        const pith_gguf_tensor *tensor = pith_gguf_tensor_at(gguf, i);
        const change *c = change_find(changes, n, tensor->name.data, DROP_TENSOR, RESHAPE);
        if (c && c->kind == DROP_TENSOR) continue;
        uint64_t ne[4], bytes = tensor->bytes;
        memcpy(ne, tensor->ne, sizeof ne);
        if (c) ne[0] = (uint64_t)c->number, bytes = ne[0] * ne[1] * ne[2] * sizeof(float);
        if (!data) {
            status = pith_gguf_write_tensor(writer, tensor->name.data, tensor->type, tensor->n_dims,
                                            ne, NULL);
            continue;
        }
        void *copy = pith_alloc_zero(1, (size_t)bytes + 1);
        if (!copy) return PITH_ERROR_MEMORY;
        if (!c) status = pith_gguf_tensor_read(gguf, tensor, 0, copy, (size_t)bytes, NULL);
        if (status == PITH_OK) status = pith_gguf_write_data(writer, copy, (size_t)bytes, NULL);
        pith_free(copy);
    }
    for (size_t i = 0; i < n && status == PITH_OK; i++) {
        if (changes[i].kind != ADD_TENSOR) continue;
        uint64_t ne[4] = {(uint64_t)changes[i].number, 1, 1, 1};
        const float one = 1.0f;
        if (!data) {
            status = pith_gguf_write_tensor(writer, changes[i].name, PITH_TYPE_F32, 1, ne, NULL);
        }
        for (uint64_t e = 0; data && e < ne[0] && status == PITH_OK; e++) {
            status = pith_gguf_write_data(writer, &one, sizeof one, NULL);
        }
    }
    return status;
}

/* false when something went wrong; then there is no file `to`. */
static inline bool changed_model_write(const char *from, const char *to, const change *changes,
                                       size_t n) {
    pith_gguf *gguf = NULL;
    pith_gguf_writer *writer = NULL;
    if (pith_gguf_open_path(from, &gguf, NULL) != PITH_OK) return false;
    pith_status status = pith_gguf_writer_new(to, 3, 32, &writer, NULL);
    if (status == PITH_OK) status = changed_keys(writer, gguf, changes, n);
    if (status == PITH_OK) status = changed_tensors(writer, gguf, changes, n, false);
    if (status == PITH_OK) status = changed_tensors(writer, gguf, changes, n, true);
    if (status == PITH_OK) status = pith_gguf_writer_finish(writer, NULL);
    if (writer) pith_gguf_writer_free(writer);
    pith_gguf_close(gguf);
    return status == PITH_OK;
}

/* Path of a golden model in the repository. */
static inline const char *golden_path(const char *name, char path[1024]) {
    const char *root = getenv("PITH_SOURCE_DIR");
    snprintf(path, 1024, "%s/tests/data/arch/%s", root ? root : ".", name);
    return path;
}

/* A path of one's own in the build folder. */
static inline const char *scratch_path(const char *name, char path[1024]) {
    const char *root = getenv("PITH_BINARY_DIR");
    snprintf(path, 1024, "%s/%s", root ? root : ".", name);
    return path;
}

#endif
