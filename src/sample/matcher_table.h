/* SPDX-License-Identifier: Apache-2.0
 * Tables of a matcher (private to the sample room): what one state says about the whole vocabulary,
 * whatever the text before it was.
 *
 * A mask differs from the next in little: within a string nearly every token is allowed, however the
 * string came about and whatever follows it. So the vocabulary's tree is walked once for a thread's
 * state, with a stack that ends in the unknown below the top frame. That sorts the ids:
 *
 *   certain   the text stays within the part that the top frame belongs to. With a counter on top:
 *             certain once `need` more rounds may begin
 *   exits     the part may end before a byte of the tree: what follows depends on the stack. The
 *             node of that byte is kept, and walked for each mask with the real stack
 *   neither   never allowed
 *
 *   "x": |hello"    he  certain, need 1     hello"  exit at '"', need 4      \x01  never
 *
 * A mask is then the certain ids, less those of too large a need, and short walks from the exits,
 * most of which lead nowhere at their first byte. Read next: matcher_survey.c (the walk),
 * matcher_table.c (keeping and using). */
#ifndef PITH_SAMPLE_MATCHER_TABLE_H
#define PITH_SAMPLE_MATCHER_TABLE_H

#include "sample/matcher_internal.h"

enum { PITH_TABLE_LEVELS = 16 /* needs that have bits of their own */ };

typedef struct pith_needed {
    uint32_t number; /* a node, or an id */
    uint32_t need;
} pith_needed;

typedef struct pith_needed_list {
    pith_needed *data;
    uint32_t n, capacity;
} pith_needed_list;

struct pith_table {
    uint32_t state;
    bool is_walked; /* no table could be made */
    /* Certain ids: few are a list, as long as that takes less than bits. Else all are `bits`, those
     * of a need of at most k < n_levels `levels` k, and those of larger needs are listed. */
    uint32_t *bits;   /* [n_words], or NULL: the list */
    uint32_t *levels; /* [n_levels, n_words] */
    uint32_t n_levels, most_need;
    pith_needed_list ids;
    pith_needed_list exits;   /* nodes, by byte */
    uint32_t exit_first[257]; /* of a byte, in exits */
    size_t bytes;             /* of all */
};

/* Fills the table of `state` in a part whose top frame is a counter of `loop` (PITH_NONE: it is
 * not). false on trouble, and where memory is short without it. */
bool pith_matcher_survey(pith_matcher *matcher, pith_table *table, uint32_t loop);

#endif
