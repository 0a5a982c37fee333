/* SPDX-License-Identifier: Apache-2.0
 *
 * One timeline: for each window group a table from position / 64 to a block.
 *
 *   table of a group:  | NULL NULL | b7 b2 b9 | b4 |     window groups drop blocks at the front
 *                       dropped      whole      tail: copied before it is written when shared
 *
 * Invariant: a table's entries in [first, n) are blocks, all before are NULL; every position
 * below `length` that a row at `length` or later can see lies in a block. Changes are all or
 * nothing: reserve counts what it needs first.
 *
 * Not safe for use by several threads at once on one store. Read next: kv_store.c.
 */
#include "kv/kv_store.h"

#include <string.h>

pith_status pith_kv_sequence_new(pith_kv *kv, pith_kv_sequence **out, pith_error *error) {
    *out = NULL;
    if (kv->n_open == kv->n_sequences)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "the engine was made for %u sequences and all are in use; "
                         "free one or make the engine for more",
                         kv->n_sequences);
    uint32_t n_group = kv->layout->n_group;
    pith_kv_sequence *sequence = pith_alloc_zero(1, sizeof *sequence);
    if (sequence) {
        sequence->kv = kv;
        sequence->tables = pith_alloc_zero(n_group, sizeof *sequence->tables);
        sequence->entries =
            pith_alloc_zero((size_t)n_group * kv->n_table, sizeof *sequence->entries);
    }
    if (!sequence || !sequence->tables || !sequence->entries) {
        if (sequence) pith_free(sequence->tables);
        if (sequence) pith_free(sequence->entries);
        pith_free(sequence);
        return pith_fail_memory(error, "a sequence", (uint64_t)n_group * kv->n_table * 8);
    }
    for (uint32_t g = 0; g < n_group; g++)
        sequence->tables[g].blocks = sequence->entries + (size_t)g * kv->n_table;
    kv->n_open++;
    *out = sequence;
    return PITH_OK;
}

void pith_kv_table_keep(pith_kv_block_table *table, pith_kv_pool *pool, uint32_t first,
                        uint32_t n) {
    for (uint32_t i = table->first; i < table->n; i++) {
        if (i >= first && i < n) continue;
        pith_kv_block_drop(pool, table->blocks[i]);
        table->blocks[i] = NULL;
    }
    if (first > table->first) table->first = first;
    if (n < table->n) table->n = n;
    if (table->first >= table->n) table->first = table->n;
}

void pith_kv_sequence_empty(pith_kv_sequence *sequence) {
    for (uint32_t g = 0; g < sequence->kv->layout->n_group; g++) {
        pith_kv_table_keep(&sequence->tables[g], &sequence->kv->pools[g], 0, 0);
        sequence->tables[g].first = 0;
    }
    sequence->length = 0;
}

void pith_kv_sequence_free(pith_kv_sequence *sequence) {
    if (!sequence) return;
    pith_kv_sequence_empty(sequence);
    sequence->kv->n_open--;
    pith_free(sequence->tables);
    pith_free(sequence->entries);
    pith_free(sequence);
}

uint32_t pith_kv_sequence_length(const pith_kv_sequence *sequence) {
    return sequence->length;
}

static uint32_t first_block(const pith_kv *kv, uint32_t group, uint32_t position) {
    return pith_kv_first_block(kv->layout, group, position);
}

/* Entries that rows [length, end) write and that exist already: shared ones must be copied. */
static uint32_t count_copies(const pith_kv_block_table *table, const pith_kv_pool *pool,
                             uint32_t from) {
    uint32_t n = 0;
    for (uint32_t i = from > table->first ? from : table->first; i < table->n; i++)
        n += pith_kv_block_is_shared(pool, table->blocks[i]);
    return n;
}

/* Blocks that become free when entries before `first` are dropped. */
static uint32_t count_freed(const pith_kv_block_table *table, const pith_kv_pool *pool,
                            uint32_t first) {
    uint32_t n = 0;
    for (uint32_t i = table->first; i < table->n && i < first; i++)
        n += !pith_kv_block_is_shared(pool, table->blocks[i]);
    return n;
}

static bool has_room(const pith_kv_sequence *sequence, uint32_t group, uint32_t end) {
    const pith_kv_block_table *table = &sequence->tables[group];
    const pith_kv_pool *pool = &sequence->kv->pools[group];
    uint32_t want = pith_kv_blocks_below(end);
    uint32_t need = want > table->n ? want - table->n : 0;
    need += count_copies(table, pool, sequence->length / PITH_KV_BLOCK_TOKENS);
    uint32_t first = first_block(sequence->kv, group, sequence->length);
    return need <= pool->n_free + count_freed(table, pool, first);
}

static void make_room(pith_kv_sequence *sequence, uint32_t group, uint32_t end) {
    pith_kv_block_table *table = &sequence->tables[group];
    pith_kv_pool *pool = &sequence->kv->pools[group];
    uint32_t from = sequence->length / PITH_KV_BLOCK_TOKENS, want = pith_kv_blocks_below(end);
    pith_kv_table_keep(table, pool, first_block(sequence->kv, group, sequence->length), table->n);
    for (uint32_t i = from > table->first ? from : table->first; i < table->n; i++) {
        uint8_t *old = table->blocks[i];
        if (!pith_kv_block_is_shared(pool, old)) continue;
        table->blocks[i] = pith_kv_block_take(pool);
        memcpy(table->blocks[i], old, pool->block_bytes);
        pith_kv_block_drop(pool, old);
    }
    while (table->n < want) table->blocks[table->n++] = pith_kv_block_take(pool);
}

pith_status pith_kv_sequence_reserve(pith_kv_sequence *sequence, uint32_t n, pith_error *error) {
    const pith_kv *kv = sequence->kv;
    if (n > kv->n_ctx - sequence->length)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "%u more tokens after %u exceed the context of %u; "
                         "shorten the text or open the engine with a longer context",
                         n, sequence->length, kv->n_ctx);
    if (n > kv->step_limit)
        return pith_fail(error, PITH_ERROR_LIMIT, "a step of %u tokens exceeds the limit of %u", n,
                         kv->step_limit);
    uint32_t end = sequence->length + n;
    for (uint32_t g = 0; n && g < kv->layout->n_group; g++)
        if (!has_room(sequence, g, end))
            return pith_fail(error, PITH_ERROR_LIMIT,
                             "the KV cache has %u free blocks, too few for %u more tokens; "
                             "free a sequence",
                             kv->pools[g].n_free, n);
    for (uint32_t g = 0; n && g < kv->layout->n_group; g++) make_room(sequence, g, end);
    return PITH_OK;
}

void pith_kv_sequence_commit(pith_kv_sequence *sequence, uint32_t n) {
    sequence->length += n;
}

uint32_t pith_kv_sequence_truncate(pith_kv_sequence *sequence, uint32_t n_keep) {
    const pith_kv *kv = sequence->kv;
    if (n_keep > sequence->length) n_keep = sequence->length;
    for (uint32_t g = 0; g < kv->layout->n_group; g++) {
        const pith_kv_block_table *table = &sequence->tables[g];
        /* Rows from n_keep on need blocks from `need` on; what lies before n_keep must still be
         * there. */
        uint32_t need = first_block(kv, g, n_keep);
        if (need < table->first && need < pith_kv_blocks_below(n_keep)) n_keep = 0;
    }
    if (n_keep == 0) {
        pith_kv_sequence_empty(sequence);
        return 0;
    }
    for (uint32_t g = 0; g < kv->layout->n_group; g++)
        pith_kv_table_keep(&sequence->tables[g], &kv->pools[g], 0, pith_kv_blocks_below(n_keep));
    sequence->length = n_keep;
    return n_keep;
}

static pith_status check_fork(const pith_kv_sequence *dst, const pith_kv_sequence *src, uint32_t n,
                              pith_error *error) {
    if (dst == src || dst->kv != src->kv || dst->length)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "a fork needs an empty sequence of the same engine");
    if (n > src->length)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "cannot fork %u tokens of a sequence of %u", n,
                         src->length);
    for (uint32_t g = 0; g < src->kv->layout->n_group; g++) {
        uint32_t need = first_block(src->kv, g, n);
        if (need < src->tables[g].first && need < pith_kv_blocks_below(n))
            return pith_fail(error, PITH_ERROR_LIMIT,
                             "the tokens that a fork at %u needs have left the window of %u", n,
                             src->kv->layout->group_window[g]);
    }
    return PITH_OK;
}

pith_status pith_kv_sequence_fork(pith_kv_sequence *dst, const pith_kv_sequence *src, uint32_t n,
                                  pith_error *error) {
    pith_status status = check_fork(dst, src, n, error);
    if (status) return status;
    pith_kv_sequence_empty(dst); /* blocks reserved and never committed */
    for (uint32_t g = 0; g < src->kv->layout->n_group; g++) {
        pith_kv_block_table *table = &dst->tables[g];
        table->n = pith_kv_blocks_below(n);
        table->first = first_block(src->kv, g, n);
        if (table->first > table->n) table->first = table->n;
        for (uint32_t i = table->first; i < table->n; i++) {
            table->blocks[i] = src->tables[g].blocks[i];
            pith_kv_block_share(&src->kv->pools[g], table->blocks[i]);
        }
    }
    dst->length = n;
    return PITH_OK;
}

void pith_kv_sequence_tables(const pith_kv_sequence *sequence, pith_kv_table *tables) {
    for (uint32_t g = 0; g < sequence->kv->layout->n_group; g++)
        tables[g] = (pith_kv_table){sequence->tables[g].blocks, sequence->tables[g].n};
}
