/* SPDX-License-Identifier: Apache-2.0
 *
 * Open addressing with linear probing over a power-of-two table.
 *
 * Invariant: at most three quarters of the slots are taken, so every probe ends at a free slot;
 * slot.hash is the key's hash under map->seed. The seed is drawn when the first table is made:
 * keys come from untrusted files, and with a fixed seed their author could make all of them
 * collide. Nothing can be removed, and there is no order to rely on.
 *
 * Read next: hash.c.
 */
#include "base/map.h"

#include "base/clock.h"
#include "base/memory.h"

#include <string.h>

enum { SMALLEST = 16 };

static size_t find_slot(const pith_map_slot *slots, size_t capacity, pith_span key, uint64_t hash) {
    size_t mask = capacity - 1, i = (size_t)hash & mask;
    while (slots[i].key) {
        bool same = slots[i].hash == hash && slots[i].key_size == key.size &&
                    (key.size == 0 || memcmp(slots[i].key, key.data, key.size) == 0);
        if (same) break;
        i = (i + 1) & mask;
    }
    return i;
}

/* All keys of the old table differ, so only a free slot is looked for. */
static void move_slots(const pith_map *map, pith_map_slot *slots, size_t capacity) {
    for (size_t i = 0; i < map->capacity; i++) {
        if (!map->slots[i].key) continue;
        size_t at = (size_t)map->slots[i].hash & (capacity - 1);
        while (slots[at].key) at = (at + 1) & (capacity - 1);
        slots[at] = map->slots[i];
    }
}

bool pith_map_reserve(pith_map *map, size_t count) {
    size_t capacity = map->capacity ? map->capacity : SMALLEST;
    while (capacity - capacity / 4 < count) {
        if (!pith_size_mul(capacity, 2, &capacity)) return false;
    }
    if (capacity == map->capacity) return true;
    pith_map_slot *slots = pith_alloc_zero(capacity, sizeof *slots);
    if (!slots) return false;
    if (!map->capacity) {
        uint64_t secret[3] = {pith_clock_ns(), (uint64_t)(uintptr_t)slots,
                              (uint64_t)(uintptr_t)map};
        map->seed = pith_hash(secret, sizeof secret, 0);
    }
    move_slots(map, slots, capacity);
    pith_free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return true;
}

int pith_map_insert(pith_map *map, pith_span key, int32_t value, int32_t *value_now) {
    if (key.size > UINT32_MAX || !pith_map_reserve(map, map->count + 1)) return -1;
    uint64_t hash = pith_hash(key.data, key.size, map->seed);
    pith_map_slot *slot = &map->slots[find_slot(map->slots, map->capacity, key, hash)];
    bool inserted = !slot->key;
    if (inserted) {
        *slot = (pith_map_slot){.key = key.size ? key.data : "",
                                .key_size = (uint32_t)key.size,
                                .value = value,
                                .hash = hash};
        map->count++;
    }
    if (value_now) *value_now = slot->value;
    return inserted;
}

bool pith_map_find(const pith_map *map, pith_span key, int32_t *value) {
    if (!map->count) return false;
    uint64_t hash = pith_hash(key.data, key.size, map->seed);
    const pith_map_slot *slot = &map->slots[find_slot(map->slots, map->capacity, key, hash)];
    if (!slot->key) return false;
    if (value) *value = slot->value;
    return true;
}

void pith_map_deinit(pith_map *map) {
    pith_free(map->slots);
    *map = (pith_map){0};
}
