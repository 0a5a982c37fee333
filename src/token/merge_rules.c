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

bool pith_merge_rules_append(pith_merge_rules *rules, uint32_t left, uint32_t right,
                             uint32_t joined) {
    uint32_t at = pith_merge_slot(rules, left, right), rank = rules->n++;
    rules->joined[rank] = joined;
    for (int probe = 0; probe < MOST_PROBES; probe++) {
        pith_merge_rule *slot = &rules->slots[at];
        if (slot->left == PITH_PIECE_NONE) {
            *slot = (pith_merge_rule){left, right, rank};
            return true;
        }
        if (slot->left == left && slot->right == right) return true;
        at = at + 1 == rules->n_slots ? 0 : at + 1;
    }
    return false;
}
