/* SPDX-License-Identifier: Apache-2.0
 *
 * A cell goes from free to written once and then stays, so a reader that sees it finished
 * (acquire) may read the rest without more ado. A writer takes a free cell by compare-and-swap;
 * who loses, or finds PROBES cells taken, keeps nothing. Two threads may keep the same piece
 * twice: both cells say the same.
 *
 * The table of short pieces starts small, so that a short prompt does not pay for pages of memory
 * it hardly uses, and grows eightfold when more than a quarter is taken: most pieces shall be found
 * at first sight. One thread copies the cells and then shows the new table (release); what others
 * write into the old one meanwhile is forgotten. Old tables stay for their readers.
 *
 * Invariant: a cell holds what encoding gave, so a full, empty or missing memo changes no id, only
 * time. Words met first stay; in running text those are the frequent ones. Read next:
 * piece_encode.c.
 */
#include "token/piece_memo.h"

#include "base/memory.h"
#include "token/byte_words.h"

_Static_assert(sizeof(pith_memo_cell) == 32, "two cells fill a cache line");
_Static_assert(sizeof(pith_memo_long_cell) == 256, "a long cell fills four cache lines");

enum { FREE = 0, BUSY = 1, READY = PITH_MEMO_READY };

static bool open_table(pith_memo_table *table, unsigned level) {
    size_t n = (size_t)1 << (PITH_MEMO_BITS - 3 * (PITH_MEMO_LEVELS - 1 - level));
    if (!pith_wide_table_open(&table->memory, n, sizeof *table->cells)) return false;
    table->cells = table->memory.data;
    table->mask = n - 1;
    atomic_init(&table->n_kept, 0);
    return true;
}

pith_piece_memo *pith_piece_memo_new(void) {
    pith_piece_memo *memo = pith_alloc_zero(1, sizeof *memo);
    if (!memo) return NULL;
    atomic_init(&memo->level, 0);
    atomic_init(&memo->growing, false);
    if (pith_wide_table_open(&memo->long_memory, (size_t)1 << PITH_MEMO_LONG_BITS,
                             sizeof *memo->long_cells) &&
        open_table(&memo->tables[0], 0)) {
        memo->long_cells = memo->long_memory.data;
        return memo;
    }
    pith_piece_memo_free(memo);
    return NULL;
}

void pith_piece_memo_free(pith_piece_memo *memo) {
    if (!memo) return;
    for (unsigned i = 0; i < PITH_MEMO_LEVELS; i++) pith_wide_table_close(&memo->tables[i].memory);
    pith_wide_table_close(&memo->long_memory);
    pith_free(memo);
}

/* A free cell for the key, now marked as being written; NULL: the first ones are taken. */
static pith_memo_cell *take_cell(pith_memo_table *table, pith_memo_key key) {
    size_t at = pith_memo_place(table, key);
    for (size_t probe = 0; probe < PITH_MEMO_PROBES; probe++) {
        pith_memo_cell *cell = &table->cells[(at + probe) & table->mask];
        uint32_t free = (uint32_t)FREE << PITH_MEMO_STATE_SHIFT;
        if (atomic_compare_exchange_strong_explicit(&cell->last, &free,
                                                    (uint32_t)BUSY << PITH_MEMO_STATE_SHIFT,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            atomic_fetch_add_explicit(&table->n_kept, 1, memory_order_relaxed);
            return cell;
        }
    }
    return NULL;
}

static void copy_cells(const pith_memo_table *from, pith_memo_table *to) {
    for (size_t i = 0; i <= from->mask; i++) {
        const pith_memo_cell *old = &from->cells[i];
        uint32_t last = atomic_load_explicit(&old->last, memory_order_acquire);
        if (last >> PITH_MEMO_STATE_SHIFT < READY) continue;
        pith_memo_cell *cell = take_cell(to, old->key);
        if (!cell) continue;
        cell->key = old->key;
        memcpy(cell->ids, old->ids, sizeof cell->ids);
        atomic_store_explicit(&cell->last, last, memory_order_release);
    }
}

static void grow_if_full(pith_piece_memo *memo, unsigned level) {
    pith_memo_table *table = &memo->tables[level];
    unsigned n = atomic_load_explicit(&table->n_kept, memory_order_relaxed);
    if (n <= (table->mask + 1) / 4 || level + 1 == PITH_MEMO_LEVELS) return;
    if (atomic_exchange_explicit(&memo->growing, true, memory_order_acquire)) return;
    if (atomic_load_explicit(&memo->level, memory_order_relaxed) == level) {
        if (!open_table(&memo->tables[level + 1], level + 1)) return; /* and never again */
        copy_cells(table, &memo->tables[level + 1]);
        atomic_store_explicit(&memo->level, level + 1, memory_order_release);
    }
    atomic_store_explicit(&memo->growing, false, memory_order_release);
}

/* Writes a cell: n words of ids, and the last one. */
static void keep(pith_piece_memo *memo, pith_memo_key key, const uint32_t *ids, size_t n,
                 uint32_t last) {
    unsigned level = atomic_load_explicit(&memo->level, memory_order_acquire);
    pith_memo_cell *cell = take_cell(&memo->tables[level], key);
    if (!cell) return;
    cell->key = key;
    for (size_t i = 0; i < n; i++) cell->ids[i] = ids[i];
    atomic_store_explicit(&cell->last, last, memory_order_release);
    grow_if_full(memo, level);
}

void pith_piece_memo_keep(pith_piece_memo *memo, pith_memo_key key, const int32_t *ids, size_t n) {
    uint32_t words[PITH_MEMO_IDS] = {0};
    if (n > PITH_MEMO_IDS) return;
    for (size_t i = 0; i < n; i++) words[i] = (uint32_t)ids[i];
    keep(memo, key, words, PITH_MEMO_IDS - 1,
         (uint32_t)(READY + n) << PITH_MEMO_STATE_SHIFT | words[PITH_MEMO_IDS - 1]);
}

void pith_piece_memo_keep_number(pith_piece_memo *memo, pith_memo_key key, uint32_t number) {
    if (number == PITH_MEMO_NOWHERE) return;
    keep(memo, key, &number, 1, (uint32_t)PITH_MEMO_ELSEWHERE << PITH_MEMO_STATE_SHIFT);
}

void pith_piece_memo_keep_any(pith_piece_memo *memo, pith_memo_key key, pith_span piece,
                              const int32_t *ids, size_t n) {
    if (n <= PITH_MEMO_IDS)
        pith_piece_memo_keep(memo, key, ids, n);
    else
        pith_piece_memo_keep_number(
            memo, key, pith_piece_memo_keep_long(memo, piece.data, piece.size, ids, n));
}

const pith_memo_cell *pith_piece_memo_find(const pith_piece_memo *memo, pith_memo_key key,
                                           uint32_t *last) {
    const pith_memo_table *table = pith_memo_table_now(memo);
    size_t at = pith_memo_place(table, key);
    for (size_t probe = 0; probe < PITH_MEMO_PROBES; probe++) {
        const pith_memo_cell *cell = &table->cells[(at + probe) & table->mask];
        *last = atomic_load_explicit(&cell->last, memory_order_acquire);
        if (*last >> PITH_MEMO_STATE_SHIFT < READY) return NULL;
        if (pith_memo_has(cell, key)) return cell;
    }
    return NULL;
}

/* FNV-like over words: a collision only costs a probe. */
static size_t long_place(const char *data, size_t size) {
    uint64_t hash = size;
    for (size_t i = 0; i + 8 <= size; i += 8)
        hash = (hash ^ pith_load_8(data + i)) * UINT64_C(0x9E3779B97F4A7C15);
    if (size >= 8) hash ^= pith_load_8(data + size - 8);
    for (size_t i = 0; size < 8 && i < size; i++) hash = hash << 8 | (unsigned char)data[i];
    hash = (hash ^ hash >> 29) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash >> (64 - PITH_MEMO_LONG_BITS));
}

static pith_memo_long_cell *long_cell(const pith_piece_memo *memo, size_t place) {
    return &memo->long_cells[place & (((size_t)1 << PITH_MEMO_LONG_BITS) - 1)];
}

uint32_t pith_piece_memo_keep_long(pith_piece_memo *memo, const char *data, size_t size,
                                   const int32_t *ids, size_t n) {
    if (n > PITH_MEMO_LONG_IDS || size > PITH_MEMO_LONG_PIECE_BYTES) return PITH_MEMO_NOWHERE;
    size_t place = long_place(data, size);
    for (size_t probe = 0; probe < PITH_MEMO_PROBES; probe++) {
        pith_memo_long_cell *cell = long_cell(memo, place + probe);
        unsigned char state = FREE; /* of the cell, where it is not free */
        if (!atomic_compare_exchange_strong_explicit(&cell->state, &state, BUSY,
                                                     memory_order_acquire, memory_order_acquire)) {
            if (state >= READY && cell->size == size && !memcmp(cell->text, data, size))
                return (uint32_t)(cell - memo->long_cells);
            continue;
        }
        cell->size = (uint8_t)size;
        memcpy(cell->text, data, size);
        for (size_t i = 0; i < 3 * n; i++) cell->ids[i] = (uint8_t)(ids[i / 3] >> (8 * (i % 3)));
        atomic_store_explicit(&cell->state, (unsigned char)(READY + n), memory_order_release);
        return (uint32_t)(cell - memo->long_cells);
    }
    return PITH_MEMO_NOWHERE;
}

const pith_memo_long_cell *pith_piece_memo_find_long(const pith_piece_memo *memo, const char *data,
                                                     size_t size) {
    if (size > PITH_MEMO_LONG_PIECE_BYTES) return NULL;
    size_t place = long_place(data, size);
    for (size_t probe = 0; probe < PITH_MEMO_PROBES; probe++) {
        const pith_memo_long_cell *cell = long_cell(memo, place + probe);
        if (atomic_load_explicit(&cell->state, memory_order_acquire) < READY) return NULL;
        if (cell->size == size && !memcmp(cell->text, data, size)) return cell;
    }
    return NULL;
}

size_t pith_memo_read_long(const pith_memo_long_cell *cell, int32_t *out) {
    size_t n = atomic_load_explicit(&cell->state, memory_order_relaxed) - READY;
    for (size_t i = 0; i < n; i++)
        out[i] = (int32_t)(pith_load_4((const char *)cell->ids + 3 * i) & 0xFFFFFF);
    return n;
}
