/* SPDX-License-Identifier: Apache-2.0
 *
 * Interned tuples of words.
 *
 * Open addressing with linear probing, at most half of the slots taken. The words of all tuples lie
 * in one array one after another. The hash is seeded as that of base/map.c is: the tuples come from
 * texts whose author could otherwise make all of them collide.
 */
#include "sample/tuple_table.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#include <string.h>

enum { SMALLEST_SLOTS = 64 };

static bool is_tuple(const pith_tuple_table *table, uint32_t number, const uint32_t *words,
                     const pith_tuple *wanted) {
    const pith_tuple *tuple = &table->tuples[number];
    return tuple->hash == wanted->hash && tuple->n == wanted->n &&
           (wanted->n == 0 ||
            memcmp(table->words + tuple->offset, words, wanted->n * sizeof *words) == 0);
}

static bool grow_slots(pith_tuple_table *table) {
    size_t n = table->n_slots ? table->n_slots * 2 : SMALLEST_SLOTS;
    uint32_t *slots = pith_alloc_zero(n, sizeof *slots);
    if (slots == NULL) return false;
    for (uint32_t i = 0; i < table->n; i++) {
        size_t at = table->tuples[i].hash & (n - 1);
        while (slots[at]) at = (at + 1) & (n - 1);
        slots[at] = i + 1;
    }
    pith_free(table->slots);
    table->slots = slots;
    table->n_slots = n;
    return true;
}

static bool reserve(pith_tuple_table *table, uint32_t n) {
    if (table->n_slots == 0) {
        uint64_t secret[2] = {pith_clock_ns(), (uint64_t)(uintptr_t)table};
        table->seed = pith_hash(secret, sizeof secret, 0);
    }
    if ((size_t)table->n * 2 >= table->n_slots && !grow_slots(table)) return false;
    if (table->n == table->capacity) {
        uint32_t capacity = table->capacity ? table->capacity * 2 : 32;
        pith_tuple *tuples = pith_realloc(table->tuples, capacity * sizeof *tuples);
        if (tuples == NULL) return false;
        table->tuples = tuples;
        table->capacity = capacity;
    }
    if (table->n_words + n > table->word_capacity) {
        size_t capacity = (table->n_words + n) * 2;
        uint32_t *words = pith_realloc(table->words, capacity * sizeof *words);
        if (words == NULL) return false;
        table->words = words;
        table->word_capacity = capacity;
    }
    return true;
}

uint32_t pith_tuple_intern(pith_tuple_table *table, const uint32_t *words, uint32_t n,
                           bool *is_new) {
    if (is_new != NULL) *is_new = false;
    if (!reserve(table, n)) return PITH_TUPLE_NONE;
    pith_tuple tuple = {table->n_words, n,
                        (uint32_t)pith_hash(words, n * sizeof *words, table->seed)};
    size_t at = tuple.hash & (table->n_slots - 1);
    for (; table->slots[at]; at = (at + 1) & (table->n_slots - 1)) {
        if (is_tuple(table, table->slots[at] - 1, words, &tuple)) return table->slots[at] - 1;
    }
    if (n > 0) memcpy(table->words + table->n_words, words, n * sizeof *words);
    table->n_words += n;
    table->tuples[table->n] = tuple;
    table->slots[at] = table->n + 1;
    if (is_new != NULL) *is_new = true;
    return table->n++;
}

const uint32_t *pith_tuple_get(const pith_tuple_table *table, uint32_t number, uint32_t *n) {
    *n = table->tuples[number].n;
    return table->words + table->tuples[number].offset;
}

void pith_tuple_table_deinit(pith_tuple_table *table) {
    pith_free(table->tuples);
    pith_free(table->words);
    pith_free(table->slots);
    *table = (pith_tuple_table){0};
}
