/* SPDX-License-Identifier: Apache-2.0
 *
 * The store owns every block: one region, cut into blocks per window group, with a reference
 * count each.
 *
 *   region: | group 0: block 0, block 1, ... | group 1: ... |    groups start at multiples of 4096
 *
 * Invariant: a block is either on its pool's free stack with count 0, or held by exactly `count`
 * tables. A pool has n_sequences times the blocks that one sequence can hold, and sharing only
 * saves, so a reserve within n_ctx and step_limit never finds it empty. The memory is written
 * once when the store is made: the system has then really given it, and no step can die for lack
 * of it.
 *
 * It knows no positions; that is kv_sequence.c.
 */
#include "kv/kv_store.h"

#include <string.h>

enum { PAGE_BYTES = 4096 };

static uint32_t blocks_of(uint64_t n_token) {
    return (uint32_t)((n_token + PITH_KV_BLOCK_TOKENS - 1) / PITH_KV_BLOCK_TOKENS);
}

/* Blocks of a group that one sequence holds at most: everything, or what rows [L, L +
 * step_limit) see. */
static uint32_t blocks_per_sequence(uint32_t window, uint32_t n_ctx, uint32_t step_limit) {
    uint32_t all = blocks_of(n_ctx);
    if (!window) return all;
    uint32_t seen = blocks_of((uint64_t)window + step_limit + PITH_KV_BLOCK_TOKENS);
    return seen < all ? seen : all;
}

/* Fills pools' sizes and the size of the region; the pools' memory is not touched. */
static bool measure(const pith_kv_layout *layout, uint32_t n_ctx, uint32_t n_sequences,
                    uint32_t step_limit, pith_kv_pool *pool, uint32_t group, size_t *region) {
    uint64_t n_block;
    pool->block_bytes = layout->block_bytes[group];
    pool->per_sequence = blocks_per_sequence(layout->group_window[group], n_ctx, step_limit);
    if (!pith_u64_mul(pool->per_sequence, n_sequences, &n_block) || n_block > UINT32_MAX / 2)
        return false;
    pool->n_block = (uint32_t)n_block;
    size_t bytes;
    if (!pith_size_mul(pool->n_block, pool->block_bytes, &bytes)) return false;
    if (!pith_size_add(bytes, PAGE_BYTES - 1, &bytes)) return false;
    return pith_size_add(*region, bytes - bytes % PAGE_BYTES, region);
}

static pith_status check_limits(uint32_t n_ctx, uint32_t n_sequences, uint32_t step_limit,
                                pith_error *error) {
    if (n_ctx && n_sequences && step_limit && n_ctx <= INT32_MAX) return PITH_OK;
    return pith_fail(error, PITH_ERROR_ARGUMENT,
                     "a KV cache needs a context of 1 to %d tokens, sequences and a step limit; "
                     "got %u, %u and %u",
                     INT32_MAX, n_ctx, n_sequences, step_limit);
}

/* Bytes of one sequence's bookkeeping (kv_sequence.c) and of the counts of all blocks. */
static bool book_bytes(const pith_kv_layout *layout, uint32_t n_ctx, uint32_t n_sequences,
                       uint64_t n_block, uint64_t *bytes) {
    uint64_t table = (uint64_t)blocks_of(n_ctx) * sizeof(uint8_t *), tables;
    if (!pith_u64_mul(table, layout->n_group, &tables)) return false;
    if (!pith_u64_mul(tables, n_sequences, &tables)) return false;
    return pith_u64_add(tables, n_block * 2 * sizeof(uint32_t), bytes);
}

static pith_status too_large(pith_error *error, uint32_t n_ctx, uint32_t n_sequences) {
    return pith_fail(error, PITH_ERROR_LIMIT,
                     "a KV cache for %u sequences of %u tokens is larger than any memory; "
                     "ask for a shorter context",
                     n_sequences, n_ctx);
}

pith_status pith_kv_bytes(const pith_kv_layout *layout, uint32_t n_ctx, uint32_t n_sequences,
                          uint32_t step_limit, uint64_t *bytes, pith_error *error) {
    *bytes = 0;
    pith_status status = check_limits(n_ctx, n_sequences, step_limit, error);
    if (status) return status;
    size_t region = 0;
    uint64_t n_block = 0, books;
    for (uint32_t g = 0; g < layout->n_group; g++) {
        pith_kv_pool pool = {0};
        if (!measure(layout, n_ctx, n_sequences, step_limit, &pool, g, &region))
            return too_large(error, n_ctx, n_sequences);
        n_block += pool.n_block;
    }
    if (!book_bytes(layout, n_ctx, n_sequences, n_block, &books) ||
        !pith_u64_add(books, region, bytes))
        return too_large(error, n_ctx, n_sequences);
    return PITH_OK;
}

static void touch(uint8_t *data, size_t size) {
    for (size_t i = 0; i < size; i += PAGE_BYTES) *(volatile uint8_t *)(data + i) = 0;
}

static bool open_pool(pith_kv_pool *pool, uint8_t *data) {
    pool->data = data;
    pool->count = pith_alloc_zero(pool->n_block, sizeof *pool->count);
    pool->free = pith_alloc_array(pool->n_block, sizeof *pool->free);
    if (!pool->count || !pool->free) return false;
    for (uint32_t i = 0; i < pool->n_block; i++) pool->free[i] = pool->n_block - 1 - i;
    pool->n_free = pool->n_block;
    return true;
}

/* Sizes, region and pools of a store whose fields are set. */
static pith_status fill_store(pith_kv *kv, pith_error *error) {
    uint32_t n_group = kv->layout->n_group;
    size_t size = 0, at = 0;
    kv->pools = pith_alloc_zero(n_group, sizeof *kv->pools);
    if (!kv->pools) return pith_fail_memory(error, "the KV cache", n_group * sizeof *kv->pools);
    for (uint32_t g = 0; g < n_group; g++)
        if (!measure(kv->layout, kv->n_ctx, kv->n_sequences, kv->step_limit, &kv->pools[g], g,
                     &size))
            return too_large(error, kv->n_ctx, kv->n_sequences);
    if (size && !pith_region_open(&kv->region, size, true))
        return pith_fail_memory(error, "the KV cache", size);
    touch(kv->region.data, size);
    for (uint32_t g = 0; g < n_group; g++) {
        pith_kv_pool *pool = &kv->pools[g];
        if (!open_pool(pool, kv->region.data + at))
            return pith_fail_memory(error, "the KV cache's block list", pool->n_block * 8ull);
        at += (pool->n_block * pool->block_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    }
    return PITH_OK;
}

pith_status pith_kv_new(const pith_kv_layout *layout, uint32_t n_ctx, uint32_t n_sequences,
                        uint32_t step_limit, pith_kv **out, pith_error *error) {
    *out = NULL;
    pith_status status = check_limits(n_ctx, n_sequences, step_limit, error);
    if (status) return status;
    pith_kv *kv = pith_alloc_zero(1, sizeof *kv);
    if (!kv) return pith_fail_memory(error, "the KV cache", sizeof *kv);
    kv->layout = layout;
    kv->n_ctx = n_ctx;
    kv->n_sequences = n_sequences;
    kv->step_limit = step_limit;
    kv->n_table = blocks_of(n_ctx);
    status = fill_store(kv, error);
    if (status)
        pith_kv_free(kv);
    else
        *out = kv;
    return status;
}

void pith_kv_free(pith_kv *kv) {
    if (!kv) return;
    for (uint32_t g = 0; kv->pools && g < kv->layout->n_group; g++) {
        pith_free(kv->pools[g].count);
        pith_free(kv->pools[g].free);
    }
    pith_free(kv->pools);
    pith_region_close(&kv->region);
    pith_free(kv);
}

static uint32_t index_of(const pith_kv_pool *pool, const uint8_t *block) {
    return (uint32_t)((size_t)(block - pool->data) / pool->block_bytes);
}

uint8_t *pith_kv_block_take(pith_kv_pool *pool) {
    uint32_t i = pool->free[--pool->n_free];
    pool->count[i] = 1;
    return pool->data + (size_t)i * pool->block_bytes;
}

void pith_kv_block_share(pith_kv_pool *pool, const uint8_t *block) {
    pool->count[index_of(pool, block)]++;
}

void pith_kv_block_drop(pith_kv_pool *pool, const uint8_t *block) {
    uint32_t i = index_of(pool, block);
    if (--pool->count[i] == 0) pool->free[pool->n_free++] = i;
}

bool pith_kv_block_is_shared(const pith_kv_pool *pool, const uint8_t *block) {
    return pool->count[index_of(pool, block)] > 1;
}
