/* SPDX-License-Identifier: Apache-2.0
 * SentencePiece's precompiled character map: which byte strings are replaced before a text is cut.
 * Layout: formats page 6.6. */
#ifndef PITH_TOKEN_CHARSMAP_H
#define PITH_TOKEN_CHARSMAP_H

#include "base/text.h"

typedef struct pith_charsmap {
    uint32_t *nodes; /* [n_nodes] double-array trie */
    char *texts;     /* [n_texts] replacements, each with a NUL; the last byte is one */
    size_t n_nodes, n_texts;
} pith_charsmap; /* zero-initialised replaces nothing */

/* Copies and checks a blob (size 0: none). */
pith_status pith_charsmap_copy(pith_charsmap *map, pith_span blob, pith_error *error);
void pith_charsmap_deinit(pith_charsmap *map);

/* Bytes of the longest entry that text[at, size) starts with (0: none), and what replaces it. */
size_t pith_charsmap_match(const pith_charsmap *map, pith_span text, size_t at, pith_span *with);

#endif
