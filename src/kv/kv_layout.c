/* SPDX-License-Identifier: Apache-2.0
 *
 * Where keys and values of each layer lie inside a block of 64 tokens.
 *
 *   block of a window group:
 *   | layer a: K head 0 | K head 1 | .. | V head 0 | .. | int8: K scales | V scales | layer b: ..
 *
 * Invariant: every part starts at a multiple of 64 bytes, layers of one window share one group,
 * groups are numbered in the order in which their first layer appears. The bytes inside a head's
 * part are the attention kernels' business (kernel.h: K in panels of 16 tokens, V token by
 * token).
 *
 * It allocates no cache memory. Read next: kv_store.c.
 */
#include "kv/kv_store.h"

#include "base/memory.h"

static const size_t element_bytes[] = {
    [PITH_KV_STORE_F32] = 4, [PITH_KV_STORE_F16] = 2, [PITH_KV_STORE_I8] = 1};

static bool take(size_t *cursor, size_t n, size_t bytes, size_t *offset) {
    size_t size;
    *offset = *cursor;
    return pith_size_mul(n, bytes, &size) && pith_size_add(*cursor, size, cursor);
}

static bool head_bytes(uint32_t dim, pith_kv_storage storage, size_t *bytes) {
    return pith_size_mul((size_t)PITH_KV_BLOCK_TOKENS * element_bytes[storage], dim, bytes);
}

/* Gives layer its place behind *cursor. false: the sizes overflow. */
static bool place_layer(pith_kv_layer *layer, pith_kv_storage storage, size_t *cursor) {
    size_t scales = storage == PITH_KV_STORE_I8 ? PITH_KV_BLOCK_TOKENS * sizeof(float) : 0;
    size_t n = layer->n_head_kv;
    return head_bytes(layer->head_dim, storage, &layer->k_head_bytes) &&
           head_bytes(layer->head_dim_v, storage, &layer->v_head_bytes) &&
           take(cursor, n, layer->k_head_bytes, &layer->k) &&
           take(cursor, n, layer->v_head_bytes, &layer->v) &&
           take(cursor, n, scales, &layer->k_scale) && take(cursor, n, scales, &layer->v_scale);
}

static pith_status check_shape(const pith_kv_shape *shape, pith_kv_storage storage, uint32_t layer,
                               pith_error *error) {
    if (!shape->n_head_kv) return PITH_OK;
    bool groups = shape->head_dim % 32 == 0 && shape->head_dim_v % 32 == 0;
    if (storage == PITH_KV_STORE_I8 && !groups)
        return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                         "layer %u: an int8 KV cache needs head sizes that are multiples of 32, "
                         "this layer has %u and %u; use f16",
                         layer, shape->head_dim, shape->head_dim_v);
    if (!shape->head_dim || !shape->head_dim_v)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "layer %u: head sizes are %u and %u", layer,
                         shape->head_dim, shape->head_dim_v);
    return PITH_OK;
}

static uint32_t group_of(pith_kv_layout *layout, uint32_t window) {
    for (uint32_t g = 0; g < layout->n_group; g++)
        if (layout->group_window[g] == window) return g;
    layout->group_window[layout->n_group] = window;
    layout->block_bytes[layout->n_group] = 0;
    return layout->n_group++;
}

static pith_status place_all(pith_kv_layout *layout, const pith_kv_shape *shapes,
                             pith_error *error) {
    for (uint32_t i = 0; i < layout->n_layer; i++) {
        pith_status status = check_shape(&shapes[i], layout->storage, i, error);
        if (status) return status;
        pith_kv_layer *layer = &layout->layers[i];
        *layer = (pith_kv_layer){.group = group_of(layout, shapes[i].window),
                                 .n_head_kv = shapes[i].n_head_kv,
                                 .head_dim = shapes[i].head_dim,
                                 .head_dim_v = shapes[i].head_dim_v,
                                 .window = shapes[i].window};
        if (!place_layer(layer, layout->storage, &layout->block_bytes[layer->group]))
            return pith_fail(error, PITH_ERROR_LIMIT,
                             "layer %u: %u KV heads of %u elements do not fit in memory", i,
                             shapes[i].n_head_kv, shapes[i].head_dim);
    }
    for (uint32_t g = 0; g < layout->n_group;
         g++) /* layers without KV: a block still has an address */
        if (!layout->block_bytes[g]) layout->block_bytes[g] = 64;
    return PITH_OK;
}

pith_status pith_kv_layout_init(pith_kv_layout *layout, pith_kv_storage storage,
                                const pith_kv_shape *shapes, uint32_t n_layer, pith_error *error) {
    *layout = (pith_kv_layout){.storage = storage, .n_layer = n_layer};
    if ((unsigned)storage > PITH_KV_STORE_I8)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "KV storage %d is not known", (int)storage);
    layout->layers = pith_alloc_zero(n_layer, sizeof *layout->layers);
    layout->group_window = pith_alloc_zero(n_layer, sizeof *layout->group_window);
    layout->block_bytes = pith_alloc_zero(n_layer, sizeof *layout->block_bytes);
    pith_status status = PITH_OK;
    if (!layout->layers || !layout->group_window || !layout->block_bytes)
        status = pith_fail_memory(error, "the KV layout", n_layer * sizeof *layout->layers);
    if (!status) status = place_all(layout, shapes, error);
    if (status) pith_kv_layout_deinit(layout);
    return status;
}

void pith_kv_layout_deinit(pith_kv_layout *layout) {
    pith_free(layout->layers);
    pith_free(layout->group_window);
    pith_free(layout->block_bytes);
    *layout = (pith_kv_layout){0};
}
