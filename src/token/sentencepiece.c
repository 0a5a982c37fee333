/* SPDX-License-Identifier: Apache-2.0
 *
 * SentencePiece BPE ("llama"): no pre-tokenizer, merges by score over the whole text. All that
 * changes the text is that spaces and U+2581 are one.
 *
 * Merges never cross a place where no token does. Nearly always that is in front of a space behind
 * something else: no token has "x " inside. `glued` lists the bytes x for which one has, and the
 * text is cut at all other such places; words then go through the memo like those of byte-level
 * BPE, with the same ids as merging the whole text. Read next: piece_encode.c.
 */
#include "token/token_internal.h"

#include "base/memory.h"

#include <string.h>

enum { ENDS_AT_ONCE = 256 };

/* Higher scores get lower ranks; equal scores equal ones. */
static uint32_t rank_of_score(float score) {
    uint32_t bits;
    score += 0.0f; /* -0 is 0 */
    memcpy(&bits, &score, sizeof bits);
    uint32_t rising = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return ~rising;
}

pith_status pith_sentencepiece_prepare(pith_tokenizer *tokenizer, const pith_vocab_source *source,
                                       pith_error *error) {
    pith_tokenizer *t = tokenizer;
    t->order = PITH_ORDER_SCORES;
    t->ranks = pith_alloc_array(t->n_tokens, sizeof *t->ranks);
    if (!t->ranks) return pith_fail_memory(error, "scores", t->n_tokens);
    for (uint32_t i = 0; i < t->n_tokens; i++) {
        t->ranks[i] = rank_of_score(source->scores ? source->scores[i] : 0.0f);
        if (t->whole[i] == PITH_WHOLE_BARRED) continue;
        pith_span piece = pith_piece_at(&t->pieces, i);
        for (size_t k = 1; k < piece.size; k++)
            if (piece.data[k] == ' ') t->glued[(unsigned char)piece.data[k - 1]] = true;
    }
    t->glued[' '] = true; /* runs of spaces stay together */
    return PITH_OK;
}

/* End of the part of the text that starts at `at`. */
static size_t word_end(const pith_tokenizer *t, pith_span text, size_t at) {
    for (;;) {
        const char *space = memchr(text.data + at + 1, ' ', text.size - at - 1);
        if (!space) return text.size;
        at = (size_t)(space - text.data);
        if (!t->glued[(unsigned char)space[-1]]) return at;
        if (at + 1 == text.size) return text.size;
    }
}

void pith_encode_spm(pith_encode_run *run, pith_span text) {
    size_t ends[ENDS_AT_ONCE], at = 0;
    while (at < text.size && !run->failed) {
        size_t n = 0, start = at;
        while (n < ENDS_AT_ONCE && at < text.size)
            ends[n++] = at = word_end(run->tokenizer, text, at);
        pith_encode_pieces(run, text, start, ends, n);
    }
}
