/* SPDX-License-Identifier: Apache-2.0
 * Finds the special tokens written out in a text. */
#ifndef PITH_TOKEN_SPECIAL_MATCH_H
#define PITH_TOKEN_SPECIAL_MATCH_H

#include "token/byte_trie.h"

typedef struct pith_special_match {
    pith_byte_trie trie; /* text -> id */
    bool first[256];     /* some text starts with this byte */
    int only_first;      /* the one byte all texts start with; -1: several */
} pith_special_match;    /* zero-initialised matches nothing */

bool pith_special_match_add(pith_special_match *match, pith_span text, uint32_t id);
void pith_special_match_deinit(pith_special_match *match);

/* The first special text at or behind `at`, the longest of those that start there. Returns its
 * start (text.size: none) and sets *id and *end. *steps grows by the bytes looked at beyond the
 * first of each try. */
size_t pith_special_match_next(const pith_special_match *match, pith_span text, size_t at,
                               uint32_t *id, size_t *end, uint64_t *steps);

#endif
