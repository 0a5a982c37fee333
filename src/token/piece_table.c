/* SPDX-License-Identifier: Apache-2.0
 *
 * Open addressing with linear probing; a slot is 8 bytes, so that eight share a cache line, and
 * the upper half of the hash tells nearly always whether the text is worth comparing.
 *
 * Invariant: at most five eighths of the slots are taken, and no probe is longer than MOST_PROBES:
 * an insertion that would need more is refused, so a prepared file costs an error, not minutes.
 * Nothing is removed. Read next: tokenizer.c, which fills the table.
 */
#include "token/piece_table.h"

#include "base/byte_block.h"
#include "base/clock.h"
#include "base/memory.h"
#include "token/byte_words.h"

#include <string.h>

enum { MOST_PROBES = 512 };
#define ODD        0x80000000u
#define MULTIPLIER UINT64_C(0x9E3779B97F4A7C15)

/* 1 to 8 bytes as a number; their count goes into the hash separately. */
static inline uint64_t load_tail(const char *data, size_t n) {
    const unsigned char *b = (const unsigned char *)data;
    if (n == 8) return pith_load_8(data);
    if (n >= 4) return pith_load_4(data) | pith_load_4(data + n - 4) << 32;
    return (uint64_t)b[0] | (uint64_t)b[n / 2] << 8 | (uint64_t)b[n - 1] << 16;
}

static inline uint64_t hash_of(const char *data, size_t size, uint64_t seed) {
    uint64_t hash = seed + size;
    for (; size > 8; size -= 8, data += 8) {
        hash = (hash ^ pith_load_8(data)) * MULTIPLIER;
        hash ^= hash >> 29;
    }
    if (size) hash = (hash ^ load_tail(data, size)) * MULTIPLIER;
    hash ^= hash >> 32;
    hash *= MULTIPLIER;
    return hash ^ hash >> 29;
}

static inline uint32_t first_slot(const pith_piece_table *table, uint64_t hash) {
    return (uint32_t)((hash & 0xFFFFFFFFu) * table->n_slots >> 32);
}

static bool same_text(const pith_piece_table *table, uint32_t number, const char *data,
                      size_t size) {
    pith_span piece = pith_piece_at(table, number);
    return piece.size == size && memcmp(piece.data, data, size) == 0;
}

static inline uint32_t find(const pith_piece_table *table, const char *data, size_t size,
                            uint64_t hash, uint32_t odd) {
    uint32_t tag = (uint32_t)(hash >> 32);
    for (uint32_t at = first_slot(table, hash);; at = at + 1 == table->n_slots ? 0 : at + 1) {
        pith_piece_slot slot = table->slots[at];
        if (slot.number == PITH_PIECE_NONE) return PITH_PIECE_NONE;
        if (slot.tag == tag && (slot.number & ODD) == odd &&
            same_text(table, slot.number & ~ODD, data, size))
            return slot.number & ~ODD;
    }
}

uint32_t pith_piece_table_find(const pith_piece_table *table, const char *data, size_t size) {
    return find(table, data, size, hash_of(data, size, table->seed), 0);
}

uint32_t pith_piece_table_find_odd(const pith_piece_table *table, const char *data, size_t size) {
    return find(table, data, size, hash_of(data, size, table->seed), ODD);
}

uint64_t pith_piece_table_hash(const pith_piece_table *table, const char *data, size_t size) {
    uint64_t hash = hash_of(data, size, table->seed);
    pith_prefetch(&table->slots[first_slot(table, hash)]);
    return hash;
}

void pith_piece_table_expect(const pith_piece_table *table, uint64_t hash, int step) {
    pith_piece_slot slot = table->slots[first_slot(table, hash)];
    if (slot.tag != (uint32_t)(hash >> 32) || slot.number == PITH_PIECE_NONE) return;
    const uint32_t *start = &table->starts[slot.number & ~ODD];
    pith_prefetch(step ? (const void *)(table->bytes.data + *start) : start);
}

uint32_t pith_piece_table_find_hashed(const pith_piece_table *table, const char *data, size_t size,
                                      uint64_t hash) {
    return find(table, data, size, hash, 0);
}

/* Puts a piece into the index unless an equal one is there. */
static bool put(pith_piece_table *table, uint32_t number, uint64_t hash, uint32_t odd,
                uint32_t *earlier) {
    pith_span piece = pith_piece_at(table, number);
    uint32_t tag = (uint32_t)(hash >> 32), at = first_slot(table, hash);
    *earlier = PITH_PIECE_NONE;
    for (int probe = 0; probe < MOST_PROBES; probe++) {
        pith_piece_slot *slot = &table->slots[at];
        if (slot->number == PITH_PIECE_NONE) {
            *slot = (pith_piece_slot){tag, number | odd};
            return true;
        }
        if (slot->tag == tag && (slot->number & ODD) == odd &&
            same_text(table, slot->number & ~ODD, piece.data, piece.size)) {
            *earlier = slot->number & ~ODD;
            return false;
        }
        at = at + 1 == table->n_slots ? 0 : at + 1;
    }
    return false;
}

/* Twice as many slots as pieces will be needed. */
static bool make_slots(pith_piece_table *table, uint32_t capacity) {
    if (capacity > UINT32_MAX / 4) return false;
    uint32_t n_slots = capacity * 2 + 16;
    pith_wide_table memory, old_memory = table->memory;
    if (!pith_wide_table_open(&memory, n_slots, sizeof *table->slots)) return false;
    const pith_piece_slot *old = table->slots;
    table->memory = memory;
    table->slots = memory.data;
    memset(table->slots, 0xFF, n_slots * sizeof *table->slots);
    uint32_t n_old = table->n_slots, ignored;
    table->n_slots = n_slots;
    bool good = true;
    for (uint32_t i = 0; i < n_old && good; i++) {
        if (old[i].number == PITH_PIECE_NONE) continue;
        pith_span piece = pith_piece_at(table, old[i].number & ~ODD);
        uint64_t hash = hash_of(piece.data, piece.size, table->seed);
        good = put(table, old[i].number & ~ODD, hash, old[i].number & ODD, &ignored);
    }
    pith_wide_table_close(&old_memory);
    return good;
}

static bool grow(pith_piece_table *table, uint32_t capacity) {
    if (capacity >= ODD) return false;
    uint32_t *starts = pith_realloc(table->starts, ((size_t)capacity + 1) * sizeof *starts);
    if (!starts) return false;
    table->starts = starts;
    table->capacity = capacity;
    return make_slots(table, capacity);
}

bool pith_piece_table_init(pith_piece_table *table, uint32_t n, size_t bytes) {
    *table = (pith_piece_table){0};
    uint64_t secret[2] = {pith_clock_ns(), (uint64_t)(uintptr_t)table};
    table->seed = pith_hash(secret, sizeof secret, 0);
    if (!grow(table, n)) return false;
    table->starts[0] = 0;
    table->bytes.data = pith_alloc(bytes + 1);
    if (!table->bytes.data) return false;
    table->bytes.data[0] = 0;
    table->bytes.capacity = bytes + 1;
    return true;
}

void pith_piece_table_deinit(pith_piece_table *table) {
    pith_buffer_deinit(&table->bytes);
    pith_free(table->starts);
    pith_wide_table_close(&table->memory);
    *table = (pith_piece_table){0};
}

bool pith_piece_table_append(pith_piece_table *table, size_t start) {
    if (table->bytes.failed || table->bytes.size > UINT32_MAX) return false;
    if (table->n == table->capacity && !grow(table, table->n + table->n / 4 + 16)) return false;
    uint32_t number = table->n++;
    table->starts[number] = (uint32_t)start;
    table->starts[number + 1] = (uint32_t)table->bytes.size;
    return true;
}

uint32_t pith_piece_table_index(pith_piece_table *table, uint32_t first, uint32_t n,
                                const bool *odd, uint32_t *earlier) {
    uint64_t hashes[PITH_PIECES_AT_ONCE]; /* all places are brought into the cache side by side */
    for (uint32_t i = 0; i < n; i++) {
        pith_span piece = pith_piece_at(table, first + i);
        hashes[i] = pith_piece_table_hash(table, piece.data, piece.size);
        if (!odd[i] && piece.size > table->longest) table->longest = (uint32_t)piece.size;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!put(table, first + i, hashes[i], odd[i] ? ODD : 0, earlier)) return i;
    return n;
}
