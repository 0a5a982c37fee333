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

/* The rule of two bytes. */
typedef struct pith_byte_pair {
    uint32_t rank, joined; /* PITH_PIECE_NONE: they do not merge */
} pith_byte_pair;

typedef struct pith_merge_rules {
    pith_merge_rule *slots; /* [n_slots + 1], the last one free */
    pith_wide_table memory; /* of the slots */
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

/* The rule of a pair will soon be asked for. Returns the slot to start from; where no rule can be,
 * that is the free one behind the last. No branch: it would be a guess. */
static inline uint32_t pith_merge_expect(const pith_merge_rules *rules, uint32_t left,
                                         uint32_t right) {
    uint64_t hash = pith_merge_hash(rules, left, right);
    uint32_t some = 0u - (uint32_t)pith_merge_some(rules, hash);
    uint32_t at = (pith_merge_slot(rules, hash) & some) | (rules->n_slots & ~some);
    pith_prefetch(&rules->slots[at]);
    return at;
}

/* The rule of a pair from slot `at` on, or a free slot. */
static inline const pith_merge_rule *
pith_merge_find_from(const pith_merge_rules *rules, uint32_t left, uint32_t right, uint32_t at) {
    for (;;) {
        const pith_merge_rule *slot = &rules->slots[at];
        if (slot->left == left && slot->right == right) return slot;
        if (slot->left == PITH_PIECE_NONE) return slot;
        at = at + 1 == rules->n_slots ? 0 : at + 1;
    }
}

/* The rule of a pair, or NULL: they do not merge. */
static inline const pith_merge_rule *pith_merge_find(const pith_merge_rules *rules, uint32_t left,
                                                     uint32_t right) {
    uint64_t hash = pith_merge_hash(rules, left, right);
    if (!pith_merge_some(rules, hash)) return NULL;
    const pith_merge_rule *slot =
        pith_merge_find_from(rules, left, right, pith_merge_slot(rules, hash));
    return slot->left == left ? slot : NULL;
}

#endif
