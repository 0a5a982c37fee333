/* SPDX-License-Identifier: Apache-2.0
 * Private to kv: the blocks of all window groups and their reference counts. */
#ifndef PITH_KV_KV_STORE_H
#define PITH_KV_KV_STORE_H

#include "base/memory.h"
#include "kv/kv.h"

/* The blocks of one window group. */
typedef struct pith_kv_pool {
    uint8_t *data; /* first block, in the store's region */
    size_t block_bytes;
    uint32_t n_block;
    uint32_t per_sequence; /* blocks a sequence can hold at once */
    uint32_t *count;       /* [n_block] references; 0: free */
    uint32_t *free;        /* [n_block] stack of free blocks */
    uint32_t n_free;
} pith_kv_pool;

struct pith_kv {
    const pith_kv_layout *layout;
    uint32_t n_ctx, step_limit;
    uint32_t n_table; /* entries of a block table: n_ctx / 64, rounded up */
    uint32_t n_sequences, n_open;
    pith_kv_pool *pools; /* [n_group] */
    pith_region region;
};

/* A block with one reference; the caller has made sure that one is free. */
uint8_t *pith_kv_block_take(pith_kv_pool *pool);
void pith_kv_block_share(pith_kv_pool *pool, const uint8_t *block);
void pith_kv_block_drop(pith_kv_pool *pool, const uint8_t *block);
bool pith_kv_block_is_shared(const pith_kv_pool *pool, const uint8_t *block);

/* First position that a row at `position` sees in a group with this window. */
static inline uint32_t pith_kv_first_visible(uint32_t position, uint32_t window) {
    return window && position >= window ? position - window + 1 : 0;
}

#endif
