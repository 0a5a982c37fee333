/* SPDX-License-Identifier: Apache-2.0
 *
 * Open addressing with linear probing over pairs. A slot is 12 bytes; what a rule yields is kept
 * by rank, because it is asked once per merge done, while ranks are asked for every neighbour.
 *
 * Invariant: half of the slots are free and no probe is longer than MOST_PROBES (a list made to
 * collide is refused). A left number PITH_PIECE_NONE never finds a rule: it equals the mark of a
 * free slot, whose right is NONE too and whose rank is NONE. Read next: merge.c.
 */
#include "token/merge_rules.h"

#include "base/clock.h"
#include "base/memory.h"

#include <string.h>

enum { MOST_PROBES = 512 };

bool pith_merge_rules_init(pith_merge_rules *rules, uint32_t n) {
    *rules = (pith_merge_rules){0};
    if (n > UINT32_MAX / 4) return false;
    uint64_t secret[2] = {pith_clock_ns(), (uint64_t)(uintptr_t)rules};
    rules->seed = pith_hash(secret, sizeof secret, 1);
    rules->n_slots = n * 2 + 16;
    rules->slots = pith_alloc_array(rules->n_slots, sizeof *rules->slots);
    rules->joined = pith_alloc_array(n ? n : 1, sizeof *rules->joined);
    if (!rules->slots || !rules->joined) return false;
    memset(rules->slots, 0xFF, rules->n_slots * sizeof *rules->slots);
    return true;
}

void pith_merge_rules_deinit(pith_merge_rules *rules) {
    pith_free(rules->slots);
    pith_free(rules->joined);
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
    uint32_t places[PITH_RULES_AT_ONCE], touched = 0;
    for (uint32_t i = 0; i < n; i++) { /* all places come into the cache side by side */
        places[i] = pith_merge_slot(rules, added[i].left, added[i].right);
        touched += rules->slots[places[i]].left;
    }
    rules->touched = touched;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = rules->n++;
        rules->joined[rank] = added[i].rank;
        if (!put(rules, places[i], (pith_merge_rule){added[i].left, added[i].right, rank}))
            return false;
    }
    return true;
}
