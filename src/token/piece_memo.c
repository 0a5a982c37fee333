/* SPDX-License-Identifier: Apache-2.0
 *
 * A cell goes from free to written once and then stays, so a reader that sees it finished
 * (acquire) may read the rest without more ado. A writer takes a free cell by compare-and-swap;
 * who loses, or finds PROBES cells taken, keeps nothing. Two threads may keep the same piece
 * twice: both cells say the same.
 *
 * Invariant: a cell holds what encoding gave, so a full, empty or missing memo changes no id, only
 * time. Words met first stay; in running text those are the frequent ones. Read next:
 * piece_encode.c.
 */
#include "token/piece_memo.h"

#include "base/memory.h"
#include "token/byte_words.h"

#include <string.h>

_Static_assert(sizeof(pith_memo_cell) == 32, "two cells fill a cache line");
_Static_assert(sizeof(pith_memo_long_cell) == 128, "a long cell fills two cache lines");

enum { LINE = 64, FREE = 0, BUSY = 1, READY = PITH_MEMO_READY };

bool pith_piece_memo_init(pith_piece_memo *memo) {
    size_t bytes = sizeof(pith_memo_cell) << PITH_MEMO_BITS;
    size_t long_bytes = sizeof(pith_memo_long_cell) << PITH_MEMO_LONG_BITS;
    memo->memory = pith_alloc_zero(bytes + long_bytes + LINE, 1);
    if (!memo->memory) return false;
    uintptr_t start = ((uintptr_t)memo->memory + LINE - 1) & ~(uintptr_t)(LINE - 1);
    memo->cells = (pith_memo_cell *)start;
    memo->long_cells = (pith_memo_long_cell *)(start + bytes);
    return true;
}

void pith_piece_memo_deinit(pith_piece_memo *memo) {
    pith_free(memo->memory);
    *memo = (pith_piece_memo){0};
}

/* True: the cell was free and is now the caller's to write. */
static bool take(atomic_uchar *state) {
    unsigned char expected = FREE;
    return atomic_compare_exchange_strong_explicit(state, &expected, BUSY, memory_order_relaxed,
                                                   memory_order_relaxed);
}

static void finish(atomic_uchar *state, uint8_t *out, const int32_t *ids, size_t n) {
    for (size_t i = 0; i < 3 * n; i++) out[i] = (uint8_t)(ids[i / 3] >> (8 * (i % 3)));
    atomic_store_explicit(state, (unsigned char)(READY + n), memory_order_release);
}

void pith_piece_memo_keep(const pith_piece_memo *memo, pith_memo_key key, const int32_t *ids,
                          size_t n) {
    size_t at = pith_memo_place(key);
    for (size_t probe = 0; probe < PITH_MEMO_PROBES; probe++) {
        pith_memo_cell *cell = &memo->cells[(at + probe) & (((size_t)1 << PITH_MEMO_BITS) - 1)];
        if (!take(&cell->state)) continue;
        cell->key = key;
        if (n <= PITH_MEMO_IDS)
            finish(&cell->state, cell->ids, ids, n);
        else
            atomic_store_explicit(&cell->state, PITH_MEMO_ELSEWHERE, memory_order_release);
        return;
    }
}

/* FNV-like over words: a collision only costs a probe. */
static pith_memo_long_cell *long_cell(const pith_piece_memo *memo, const char *data, size_t size,
                                      size_t probe) {
    uint64_t hash = size;
    for (size_t i = 0; i + 8 <= size; i += 8)
        hash = (hash ^ pith_load_8(data + i)) * UINT64_C(0x9E3779B97F4A7C15);
    if (size >= 8) hash ^= pith_load_8(data + size - 8);
    for (size_t i = 0; size < 8 && i < size; i++) hash = hash << 8 | (unsigned char)data[i];
    hash = (hash ^ hash >> 29) * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (size_t)(hash >> (64 - PITH_MEMO_LONG_BITS)) + probe;
    return &memo->long_cells[at & (((size_t)1 << PITH_MEMO_LONG_BITS) - 1)];
}

void pith_piece_memo_keep_long(const pith_piece_memo *memo, const char *data, size_t size,
                               const int32_t *ids, size_t n) {
    if (n > PITH_MEMO_LONG_IDS || size > PITH_MEMO_LONG_PIECE_BYTES) return;
    for (size_t probe = 0; probe < PITH_MEMO_PROBES; probe++) {
        pith_memo_long_cell *cell = long_cell(memo, data, size, probe);
        if (!take(&cell->state)) continue;
        cell->size = (uint8_t)size;
        memcpy(cell->text, data, size);
        finish(&cell->state, cell->ids, ids, n);
        return;
    }
}

const pith_memo_long_cell *pith_piece_memo_find_long(const pith_piece_memo *memo, const char *data,
                                                     size_t size) {
    if (size > PITH_MEMO_LONG_PIECE_BYTES) return NULL;
    for (size_t probe = 0; probe < PITH_MEMO_PROBES; probe++) {
        const pith_memo_long_cell *cell = long_cell(memo, data, size, probe);
        if (atomic_load_explicit(&cell->state, memory_order_acquire) < READY) return NULL;
        if (cell->size == size && !memcmp(cell->text, data, size)) return cell;
    }
    return NULL;
}
