/* SPDX-License-Identifier: Apache-2.0
 * Which two pieces merge, in what order: the merge list of a BPE vocabulary as a hash table over
 * pairs of numbers. */
#ifndef PITH_TOKEN_MERGE_RULES_H
#define PITH_TOKEN_MERGE_RULES_H

#include "base/byte_block.h"
#include "token/piece_table.h"
#include "token/wide_table.h"

typedef struct pith_merge_rule {
    uint32_t left, right; /* piece numbers; left PITH_PIECE_NONE: a free slot */
    uint32_t rank;        /* lower merges first */
    uint32_t joined;      /* the piece that comes out */
} pith_merge_rule;

typedef struct pith_merge_rules {
    pith_merge_rule *slots; /* [n_slots] */
    pith_wide_table memory; /* of the slots */
    uint32_t *joined; /* [n] by rank: the piece that comes out, where only the rank is known */
    uint32_t n_slots, n;
    uint64_t seed;
    uint64_t *some;      /* bits by hash: 0 where no rule is. Most pairs have none, and the bits
                          * stay in the cache where the slots do not */
    unsigned some_shift; /* from a hash to a bit */
} pith_merge_rules;

bool pith_merge_rules_init(pith_merge_rules *rules, uint32_t n);
void pith_merge_rules_deinit(pith_merge_rules *rules);
/* Appends n <= PITH_RULES_AT_ONCE rules in order of rank, which is given here: what `rank` holds
 * does not matter. A pair that is there already keeps its rank. False: too many collisions. */
enum { PITH_RULES_AT_ONCE = 64 };
bool pith_merge_rules_append(pith_merge_rules *rules, const pith_merge_rule *added, uint32_t n);

static inline uint64_t pith_merge_hash(const pith_merge_rules *rules, uint32_t left,
                                       uint32_t right) {
    uint64_t hash = (((uint64_t)left << 32 | right) ^ rules->seed) * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 32;
    return hash * UINT64_C(0xD6E8FEB86659FD93);
}

static inline uint32_t pith_merge_slot(const pith_merge_rules *rules, uint64_t hash) {
    return (uint32_t)((hash >> 32) * rules->n_slots >> 32);
}

/* Some rule has this bit. Not the upper bits of the hash: those name the slot. */
static inline bool pith_merge_some(const pith_merge_rules *rules, uint64_t hash) {
    uint32_t bit = (uint32_t)hash >> rules->some_shift;
    return rules->some[bit / 64] >> bit % 64 & 1;
}

/* The rule of a pair will soon be asked for. */
static inline void pith_merge_expect(const pith_merge_rules *rules, uint32_t left, uint32_t right) {
    pith_prefetch(&rules->slots[pith_merge_slot(rules, pith_merge_hash(rules, left, right))]);
}

/* The rule of a pair, or NULL: they do not merge. */
static inline const pith_merge_rule *pith_merge_find(const pith_merge_rules *rules, uint32_t left,
                                                     uint32_t right) {
    uint64_t hash = pith_merge_hash(rules, left, right);
    if (!pith_merge_some(rules, hash)) return NULL;
    for (uint32_t at = pith_merge_slot(rules, hash);;) {
        const pith_merge_rule *slot = &rules->slots[at];
        if (slot->left == left && slot->right == right) return slot;
        if (slot->left == PITH_PIECE_NONE) return NULL;
        at = at + 1 == rules->n_slots ? 0 : at + 1;
    }
}

#endif
