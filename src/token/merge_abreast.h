/* SPDX-License-Identifier: Apache-2.0
 * A short piece on its way through merging, one merge at a time, so that several can take turns:
 * the same merges as pith_merge_piece, in less time. Only for vocabularies with a merge list over
 * bytes (tokenizer.byte_pairs). */
#ifndef PITH_TOKEN_MERGE_ABREAST_H
#define PITH_TOKEN_MERGE_ABREAST_H

#include "token/token_internal.h"

enum {
    PITH_STRAND_BYTES = 15, /* of the longest piece */
    PITH_STRAND_END = PITH_STRAND_BYTES,
    PITH_STRANDS = 16 /* that take turns */
};

/* Symbol i starts at byte i. The place END stands for what is beyond either end: it has no piece
 * and merges with nothing. */
typedef struct pith_strand {
    int32_t order[PITH_STRAND_BYTES + 1];   /* with the next symbol: rank * 16 + i, or NEVER */
    uint32_t piece[PITH_STRAND_BYTES + 1];  /* of the symbols that are left */
    uint32_t joined[PITH_STRAND_BYTES + 1]; /* what the symbol and the next one become */
    uint32_t slots[2];                      /* of the rules of (before, at) and (at, after) */
    uint32_t left;                          /* bit i: symbol i is left; END always */
    uint8_t before, at, after;              /* round the last merge */
    uint8_t size;                           /* bytes */
    uint32_t owner;                         /* the caller's */
} pith_strand;

void pith_strand_init(pith_strand *strand, const pith_tokenizer *tokenizer, pith_span piece);
/* Does the next merge and sends for the rules of the pairs that it makes; the next step reads them.
 * False: no pair merges, the strand is done. */
bool pith_strand_step(pith_strand *strand, const pith_merge_rules *rules);

/* The symbol behind symbol i that is left, or END. */
static inline unsigned pith_strand_next(const pith_strand *strand, unsigned i) {
    return pith_lowest_bit(strand->left & UINT32_MAX << i << 1);
}

#endif
