/* SPDX-License-Identifier: Apache-2.0
 *
 * Leftmost, then longest: what SentencePiece's user-defined symbols and Hugging Face's added
 * tokens do. A text is passed once; a byte that starts no special text costs one table look-up, or
 * a share of a memchr where all start alike.
 *
 * Work: at most (bytes of the text) x (longest special text), and that only for a text written
 * against the vocabulary. Read next: token_encode.c, which cuts texts at these matches.
 */
#include "token/special_match.h"

#include <string.h>

bool pith_special_match_add(pith_special_match *match, pith_span text, uint32_t id) {
    if (!text.size) return true;
    unsigned char first = (unsigned char)text.data[0];
    if (!match->trie.n_nodes)
        match->only_first = first;
    else if (match->only_first != first)
        match->only_first = -1;
    match->first[first] = true;
    return pith_byte_trie_add(&match->trie, text, id);
}

void pith_special_match_deinit(pith_special_match *match) {
    pith_byte_trie_deinit(&match->trie);
    *match = (pith_special_match){0};
}

static size_t next_candidate(const pith_special_match *match, pith_span text, size_t at) {
    if (match->only_first >= 0) {
        const char *found = memchr(text.data + at, match->only_first, text.size - at);
        return found ? (size_t)(found - text.data) : text.size;
    }
    while (at < text.size && !match->first[(unsigned char)text.data[at]]) at++;
    return at;
}

size_t pith_special_match_next(const pith_special_match *match, pith_span text, size_t at,
                               uint32_t *id, size_t *end, uint64_t *steps) {
    if (!match->trie.n_nodes) return text.size;
    while (at < text.size && (at = next_candidate(match, text, at)) < text.size) {
        uint32_t node = PITH_TRIE_ROOT;
        *id = PITH_TRIE_NONE;
        for (size_t to = at; to < text.size; to++, ++*steps) {
            node = pith_byte_trie_step(&match->trie, node, text.data[to]);
            if (node == PITH_TRIE_NONE) break;
            if (match->trie.values[node] == PITH_TRIE_NONE) continue;
            *id = match->trie.values[node];
            *end = to + 1;
        }
        if (*id != PITH_TRIE_NONE) return at;
        at++;
    }
    return text.size;
}
