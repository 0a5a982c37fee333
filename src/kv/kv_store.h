/* SPDX-License-Identifier: Apache-2.0
 * Private to kv: the blocks of all window groups with their reference counts, and the tables of a
 * sequence (kv_sequence.c says what holds for them). */
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

/* From position / 64 to a block. */
typedef struct pith_kv_block_table {
    uint8_t **blocks; /* [n_table] */
    uint32_t first;   /* blocks before are dropped */
    uint32_t n;
} pith_kv_block_table;

struct pith_kv_sequence {
    pith_kv *kv;
    uint32_t length;
    uint8_t **entries;           /* memory of all tables */
    pith_kv_block_table *tables; /* [n_group] */
};

/* Keeps entries [first, n) of a table. */
void pith_kv_table_keep(pith_kv_block_table *table, pith_kv_pool *pool, uint32_t first, uint32_t n);
/* Forgets everything, blocks that were reserved and never committed too. */
void pith_kv_sequence_empty(pith_kv_sequence *sequence);

static inline uint32_t pith_kv_blocks_below(uint32_t position) {
    return (position + PITH_KV_BLOCK_TOKENS - 1) / PITH_KV_BLOCK_TOKENS;
}

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
