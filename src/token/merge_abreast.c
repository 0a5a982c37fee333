/* SPDX-License-Identifier: Apache-2.0
 *
 * Merging waits for memory: every merge makes two new pairs, and where their rule stands in the
 * table is known only then. So several pieces take turns. One round does the next merge of each and
 * sends for the rules of the new pairs; then it reads them, when they have come.
 *
 *   strand 0   [t][o][k][e][n]   merge . . . . . . rank   merge . . . . . . rank
 *   strand 1   [ ][q][u][a][y]     merge . . . . . . rank   merge . . . . . . rank
 *   strand 2   [z][e][r][o]          merge . . . . . . rank   merge . . . . . . rank
 *
 * Invariant: a strand does what merge_few in merge.c does, the lowest rank first, the leftmost of
 * equals: `order` has the index in its lowest bits. Read next: piece_learn.c, which asks.
 */
#include "token/merge_abreast.h"

enum { INDEX_BITS = 4, PLACES = PITH_STRAND_BYTES + 1 };
_Static_assert(PLACES == 1 << INDEX_BITS, "an index fits below the rank");

/* Where a pair stands in the order of merging. Of a pair that never merges: NEVER or more, without
 * a branch. */
#define NEVER (INT32_MAX - (PLACES - 1))
static inline int32_t order_of(uint32_t rank, unsigned i) {
    return (int32_t)((rank << INDEX_BITS | i) & INT32_MAX);
}
_Static_assert(PITH_TOKEN_MAX_MERGES < NEVER >> INDEX_BITS, "a rank fits above the index");

void pith_strand_init(pith_strand *strand, const pith_tokenizer *tokenizer, pith_span piece) {
    const unsigned char *bytes = (const unsigned char *)piece.data;
    const unsigned n = (unsigned)piece.size;
    for (unsigned i = 0; i < PLACES; i++) strand->order[i] = NEVER;
    for (unsigned i = 0; i + 1 < n; i++) {
        pith_byte_pair pair = tokenizer->byte_pairs[(size_t)bytes[i] << 8 | bytes[i + 1]];
        strand->piece[i] = tokenizer->byte_pieces[bytes[i]];
        strand->joined[i] = pair.joined;
        strand->order[i] = order_of(pair.rank, i);
    }
    strand->piece[n - 1] = tokenizer->byte_pieces[bytes[n - 1]];
    strand->piece[PITH_STRAND_END] = PITH_PIECE_NONE;
    strand->left = ((UINT32_C(1) << n) - 1) | UINT32_C(1) << PITH_STRAND_END;
    strand->size = (uint8_t)n;
    strand->slots[0] = strand->slots[1] = tokenizer->merges.n_slots; /* nothing was sent for */
    strand->before = strand->at = strand->after = PITH_STRAND_END;
}

/* By halves, which a compiler turns into vectors. */
static inline int32_t least_order(const pith_strand *strand) {
    int32_t least[PLACES / 2];
    for (unsigned i = 0; i < PLACES / 2; i++) {
        int32_t a = strand->order[i], b = strand->order[i + PLACES / 2];
        least[i] = a < b ? a : b;
    }
    for (unsigned n = PLACES / 4; n > 0; n /= 2)
        for (unsigned i = 0; i < n; i++)
            least[i] = least[i + n] < least[i] ? least[i + n] : least[i];
    return least[0];
}

/* The symbol in front of symbol i that is left, or END: the places are a ring, END in front of the
 * first one. */
static inline unsigned symbol_before(const pith_strand *strand, unsigned i) {
    uint32_t twice = strand->left << PLACES | strand->left;
    return pith_highest_bit(twice & ((UINT32_C(1) << PLACES << i) - 1)) & (PLACES - 1);
}

/* Reads what was sent for: how the symbol `left` merges with its neighbour `right`. Whether they do
 * is hard to foresee, so that is no branch: nearly always the first slot has their rule, or is free
 * and then has no rank. */
static inline int32_t rank_pair(pith_strand *strand, const pith_merge_rules *rules, unsigned left,
                                unsigned right, uint32_t slot) {
    const uint32_t a = strand->piece[left], b = strand->piece[right];
    const pith_merge_rule *rule = &rules->slots[slot];
    const uint32_t differs = (rule->left ^ a) | (rule->right ^ b);
    if ((0u - (uint32_t)(differs != 0)) & ~rule->left)
        rule = pith_merge_find_from(rules, a, b, slot);
    strand->joined[left] = rule->joined;
    return strand->order[left] = order_of(rule->rank, left);
}

bool pith_strand_step(pith_strand *strand, const pith_merge_rules *rules) {
    int32_t best = least_order(strand);
    unsigned before = strand->before, at = strand->at, after = strand->after;
    int32_t with_before = rank_pair(strand, rules, before, at, strand->slots[0]);
    int32_t with_after = rank_pair(strand, rules, at, after, strand->slots[1]);
    best = with_before < best ? with_before : best;
    best = with_after < best ? with_after : best;
    if (best >= NEVER) return false;
    at = (unsigned)best & (PLACES - 1);
    strand->piece[at] = strand->joined[at];
    const unsigned gone = pith_strand_next(strand, at);
    strand->left &= ~(UINT32_C(1) << gone);
    before = symbol_before(strand, at);
    after = pith_strand_next(strand, at);
    strand->slots[0] = pith_merge_expect(rules, strand->piece[before], strand->piece[at]);
    strand->slots[1] = pith_merge_expect(rules, strand->piece[at], strand->piece[after]);
    strand->order[gone] = strand->order[at] = strand->order[before] = NEVER;
    strand->before = (uint8_t)before;
    strand->at = (uint8_t)at;
    strand->after = (uint8_t)after;
    return true;
}
