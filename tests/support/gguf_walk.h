/* SPDX-License-Identifier: Apache-2.0
 * Touches everything an open GGUF file offers, as a careless caller would: every value through every typed getter, every
 * string, every tensor's bytes. Used by the fuzz target and by the tests that break files on purpose. */
#ifndef PITH_TESTS_GGUF_WALK_H
#define PITH_TESTS_GGUF_WALK_H

#include "gguf/gguf.h"

/* Sums bytes, so that every byte that a span promises is really read. */
static inline uint64_t gguf_walk_bytes(const void *data, size_t size) {
    const uint8_t *bytes = data;
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++) sum = sum * 31 + bytes[i];
    return sum;
}

static inline uint64_t gguf_walk_typed(const pith_gguf *gguf, const char *key) {
    uint32_t number = 0, each[3] = {0, 0, 0};
    float real = 0;
    bool flag = false, found = false;
    pith_span text = {NULL, 0};
    pith_error error;
    uint64_t sum = 0;
    (void)pith_gguf_get_u32(gguf, key, 1, 1000, &number, &found, &error);
    (void)pith_gguf_get_f32(gguf, key, &real, &found, NULL);
    (void)pith_gguf_get_bool(gguf, key, &flag, NULL, &error);
    (void)pith_gguf_get_u32_each(gguf, key, 0, UINT32_MAX, each, 3, &found, &error);
    if (pith_gguf_get_string(gguf, key, &text, &found, &error) == PITH_OK && found)
        sum += gguf_walk_bytes(text.data, text.size + 1); /* the NUL too */
    return sum + number + each[0] + each[1] + each[2] + flag + (real > 0);
}

static inline uint64_t gguf_walk_value(const pith_gguf *gguf, const pith_gguf_value *value) {
    uint64_t sum = gguf_walk_bytes(value->key.data, value->key.size + 1);
    sum += gguf_walk_bytes(value->bytes, (size_t)value->size);
    for (uint64_t i = 0; value->strings && i < value->n_items; i++)
        sum += gguf_walk_bytes(value->strings[i].data, value->strings[i].size);
    for (uint64_t i = 0; i < value->n_items && i < 4096; i++)
        sum += pith_gguf_item_number(value, i) > 0.5;
    sum += pith_gguf_item_number(value, value->n_items) > 0.5; /* past the end */
    sum += (uint64_t)pith_gguf_kind_text(value)[0];
    return sum + gguf_walk_typed(gguf, value->key.data);
}

static inline uint64_t gguf_walk_tensor(const pith_gguf *gguf, const pith_gguf_tensor *tensor) {
    uint8_t buffer[256];
    uint64_t sum = gguf_walk_bytes(tensor->name.data, tensor->name.size + 1);
    for (uint64_t at = 0; at < tensor->bytes; at += sizeof buffer) {
        uint64_t left = tensor->bytes - at;
        size_t size = left < sizeof buffer ? (size_t)left : sizeof buffer;
        if (pith_gguf_tensor_read(gguf, tensor, at, buffer, size, NULL) != PITH_OK) return 0;
        sum += gguf_walk_bytes(buffer, size);
    }
    return sum + (pith_gguf_tensor_find(gguf, tensor->name.data) == tensor);
}

/* Some number that depends on all of it. (Stored in a volatile: a compiler must not leave the walk out.) */
static inline uint64_t gguf_walk(const pith_gguf *gguf) {
    uint64_t sum = pith_gguf_version(gguf) + pith_gguf_alignment(gguf) + pith_gguf_n_shards(gguf);
    for (size_t i = 0; i < pith_gguf_n_values(gguf); i++)
        sum += gguf_walk_value(gguf, pith_gguf_value_at(gguf, i));
    for (size_t i = 0; i < pith_gguf_n_tensors(gguf); i++)
        sum += gguf_walk_tensor(gguf, pith_gguf_tensor_at(gguf, i));
    volatile uint64_t kept = sum + gguf_walk_typed(gguf, "no.such.key");
    return kept;
}

#endif
