/* SPDX-License-Identifier: Apache-2.0
 * Hash map from byte strings to 32-bit values. Keys are borrowed: the caller keeps their bytes
 * alive. */
#ifndef PITH_BASE_MAP_H
#define PITH_BASE_MAP_H

#include "base/text.h"

typedef struct pith_map_slot {
    const char *key;
    uint32_t key_size;
    int32_t value;
    uint64_t hash;
} pith_map_slot;
/* Zero-initialised is empty. */
typedef struct pith_map {
    pith_map_slot *slots; /* [capacity], a power of two; key NULL: free */
    size_t capacity, count;
    uint64_t seed; /* of the hash; drawn when the first table is made */
} pith_map;

bool pith_map_reserve(pith_map *map, size_t count); /* false without memory */
/* Inserts or finds: *value_now is the stored value afterwards. Returns 1 inserted, 0 was there
 * (unchanged), -1 no memory. */
int pith_map_insert(pith_map *map, pith_span key, int32_t value, int32_t *value_now);
bool pith_map_find(const pith_map *map, pith_span key, int32_t *value);
void pith_map_deinit(pith_map *map);

#endif
