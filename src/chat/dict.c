/* SPDX-License-Identifier: Apache-2.0
 *
 * Ordered dicts.
 *
 *   entries: | key value hash | key value hash | ...          in order of insertion
 *   slots:   | 0 | 2 | 0 | 1 | ...                            entry number + 1, open addressing,
 *   linear probing
 *
 * Invariants: no two entries have equal keys; from LINEAR_LIMIT entries on, slots holds every entry
 * and at least half of it is free. Small dicts have no slots and are searched from the front. Each
 * probe costs a step, so that keys chosen to collide end in a fault instead of a hang.
 */
#include "chat/value.h"

#include <string.h>

enum { LINEAR_LIMIT = 8 };

pith_dict *pith_dict_new(pith_heap *heap, size_t capacity) {
    pith_dict *dict = pith_heap_object(heap, sizeof *dict);
    if (dict == NULL) return NULL;
    *dict = (pith_dict){.capacity = capacity};
    dict->entries = pith_heap_array(heap, capacity, sizeof *dict->entries);
    return dict->entries != NULL ? dict : NULL;
}

static void place(pith_dict *dict, size_t number) {
    size_t at = (size_t)dict->entries[number].hash & (dict->n_slots - 1);
    while (dict->slots[at] != 0) at = (at + 1) & (dict->n_slots - 1);
    dict->slots[at] = (uint32_t)number + 1;
}

static bool grow_slots(pith_heap *heap, pith_dict *dict) {
    size_t n_slots = dict->n_slots == 0 ? 32 : dict->n_slots * 4;
    uint32_t *slots = pith_heap_array(heap, n_slots, sizeof *slots);
    if (slots == NULL) return false;
    memset(slots, 0, n_slots * sizeof *slots);
    dict->slots = slots;
    dict->n_slots = n_slots;
    for (size_t i = 0; i < dict->n; i++) place(dict, i);
    return true;
}

/* The number of the entry with this key, or dict->n. */
static size_t find_entry(pith_heap *heap, const pith_dict *dict, pith_value key, uint64_t hash) {
    if (dict->slots == NULL) {
        for (size_t i = 0; i < dict->n; i++) {
            const pith_entry *entry = &dict->entries[i];
            if (entry->hash == hash && pith_value_equal(heap, entry->key, key)) return i;
        }
        return dict->n;
    }
    size_t at = (size_t)hash & (dict->n_slots - 1);
    for (; dict->slots[at] != 0; at = (at + 1) & (dict->n_slots - 1)) {
        const pith_entry *entry = &dict->entries[dict->slots[at] - 1];
        if (entry->hash == hash && pith_value_equal(heap, entry->key, key))
            return dict->slots[at] - 1;
        if (!pith_heap_charge(heap, 1)) break;
    }
    return dict->n;
}

static bool grow_entries(pith_heap *heap, pith_dict *dict) {
    if (dict->n < dict->capacity) return true;
    size_t capacity = dict->capacity < 4 ? 4 : dict->capacity * 2;
    pith_entry *entries = pith_heap_array(heap, capacity, sizeof *entries);
    if (entries == NULL) return false;
    if (dict->n > 0) memcpy(entries, dict->entries, dict->n * sizeof *entries);
    dict->entries = entries;
    dict->capacity = capacity;
    return true;
}

bool pith_dict_set(pith_heap *heap, pith_dict *dict, pith_value key, pith_value value) {
    uint64_t hash;
    if (!pith_value_hash(heap, key, &hash)) return false;
    size_t number = find_entry(heap, dict, key, hash);
    if (heap->fault != PITH_FAULT_NONE) return false;
    if (number < dict->n) {
        dict->entries[number].value = value;
        return true;
    }
    if (dict->n >= UINT32_MAX - 1 || !grow_entries(heap, dict)) return false;
    dict->entries[dict->n++] = (pith_entry){key, value, hash};
    if (dict->n <= LINEAR_LIMIT) return true;
    if (dict->n * 2 > dict->n_slots) return grow_slots(heap, dict);
    place(dict, dict->n - 1);
    return true;
}

const pith_value *pith_dict_find(pith_heap *heap, const pith_dict *dict, pith_value key) {
    uint64_t hash;
    if (dict->n == 0 || !pith_value_hash(heap, key, &hash)) return NULL;
    size_t number = find_entry(heap, dict, key, hash);
    return number < dict->n ? &dict->entries[number].value : NULL;
}
