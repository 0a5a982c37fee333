/* SPDX-License-Identifier: Apache-2.0
 * Which two pieces merge, in what order: the merge list of a BPE vocabulary as a hash table over
 * pairs of numbers. */
#ifndef PITH_TOKEN_MERGE_RULES_H
#define PITH_TOKEN_MERGE_RULES_H

#include "token/piece_table.h"

typedef struct pith_merge_rule {
    uint32_t left, right; /* piece numbers; left PITH_PIECE_NONE: a free slot */
    uint32_t rank;        /* lower merges first */
} pith_merge_rule;

typedef struct pith_merge_rules {
    pith_merge_rule *slots;
    uint32_t *joined; /* [n] by rank: the piece that comes out */
    uint32_t n_slots, n;
    uint32_t touched; /* keeps looks ahead alive; says nothing */
    uint64_t seed;
} pith_merge_rules;

bool pith_merge_rules_init(pith_merge_rules *rules, uint32_t n);
void pith_merge_rules_deinit(pith_merge_rules *rules);
/* Appends n <= PITH_RULES_AT_ONCE rules in order of rank: left and right as given, `rank` holding
 * the piece that comes out. A pair that is there already keeps its rank. False: too many
 * collisions. */
enum { PITH_RULES_AT_ONCE = 64 };
bool pith_merge_rules_append(pith_merge_rules *rules, const pith_merge_rule *added, uint32_t n);

static inline uint32_t pith_merge_slot(const pith_merge_rules *rules, uint32_t left,
                                       uint32_t right) {
    uint64_t hash = (((uint64_t)left << 32 | right) ^ rules->seed) * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 32;
    hash *= UINT64_C(0xD6E8FEB86659FD93);
    return (uint32_t)((hash >> 32) * rules->n_slots >> 32);
}

/* Rank of the pair; PITH_PIECE_NONE: it does not merge. */
static inline uint32_t pith_merge_rank(const pith_merge_rules *rules, uint32_t left,
                                       uint32_t right) {
    uint32_t at = pith_merge_slot(rules, left, right);
    for (;;) {
        const pith_merge_rule *slot = &rules->slots[at];
        if (slot->left == left && slot->right == right) return slot->rank;
        if (slot->left == PITH_PIECE_NONE) return PITH_PIECE_NONE;
        at = at + 1 == rules->n_slots ? 0 : at + 1;
    }
}

#endif
