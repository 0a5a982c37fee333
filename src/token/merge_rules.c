/* SPDX-License-Identifier: Apache-2.0
 *
 * Open addressing with linear probing over pairs. A slot is 16 bytes, so none lies in two cache
 * lines: nearly every look-up waits for memory, and once is enough.
 *
 * Invariant: half of the slots are free and no probe is longer than MOST_PROBES (a list made to
 * collide is refused). A left number PITH_PIECE_NONE never finds a rule: it equals the mark of a
 * free slot, whose right is NONE too and whose rank is NONE. Read next: merge.c.
 */
#include "token/merge_rules.h"

#include "base/clock.h"

#include <string.h>

enum { MOST_PROBES = 512, FEWEST_BITS = 10 };

bool pith_merge_rules_init(pith_merge_rules *rules, uint32_t n) {
    *rules = (pith_merge_rules){0};
    if (n > UINT32_MAX / 4) return false;
    uint64_t secret[2] = {pith_clock_ns(), (uint64_t)(uintptr_t)rules};
    rules->seed = pith_hash(secret, sizeof secret, 1);
    rules->n_slots = n * 2 + 16;
    rules->some_shift = 32 - FEWEST_BITS;
    while (rules->some_shift > 8 && n >> (29 - rules->some_shift)) rules->some_shift--;
    const size_t n_all = (size_t)rules->n_slots + 1, n_bits = (size_t)1 << (32 - rules->some_shift);
    const size_t n_behind = n_bits / 8 / sizeof *rules->slots; /* slots' room for the bits */
    if (!pith_wide_table_open(&rules->memory, n_all + n_behind, sizeof *rules->slots)) return false;
    rules->slots = rules->memory.data;
    rules->some = (uint64_t *)(void *)(rules->slots + n_all);
    memset(rules->slots, 0xFF, n_all * sizeof *rules->slots);
    return true;
}

void pith_merge_rules_deinit(pith_merge_rules *rules) {
    pith_wide_table_close(&rules->memory);
    *rules = (pith_merge_rules){0};
}

static bool put(pith_merge_rules *rules, uint32_t at, pith_merge_rule rule) {
    for (int probe = 0; probe < MOST_PROBES; probe++) {
        pith_merge_rule *slot = &rules->slots[at];
        if (slot->left == PITH_PIECE_NONE) {
            *slot = rule;
            return true;
        }
        if (slot->left == rule.left && slot->right == rule.right) return true;
        at = at + 1 == rules->n_slots ? 0 : at + 1;
    }
    return false;
}

bool pith_merge_rules_append(pith_merge_rules *rules, const pith_merge_rule *added, uint32_t n) {
    uint32_t places[PITH_RULES_AT_ONCE];
    for (uint32_t i = 0; i < n; i++) { /* all places come into the cache side by side */
        uint64_t hash = pith_merge_hash(rules, added[i].left, added[i].right);
        uint32_t bit = (uint32_t)hash >> rules->some_shift;
        rules->some[bit / 64] |= UINT64_C(1) << bit % 64;
        places[i] = pith_merge_slot(rules, hash);
        pith_prefetch(&rules->slots[places[i]]);
    }
    for (uint32_t i = 0; i < n; i++) {
        pith_merge_rule rule = {added[i].left, added[i].right, rules->n++, added[i].joined};
        if (!put(rules, places[i], rule)) return false;
    }
    return true;
}
