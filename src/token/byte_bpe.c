/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte-level BPE ("gpt2") and its raw kin: a text is normalised where the model does so, cut by the
 * pre-tokenizer, and each piece encoded by itself. Pieces are handed over some hundreds at a time.
 * The merge list is read in merge_list.c. Read next: splitter.h, piece_encode.c.
 */
#include "token/token_internal.h"

#include "token/char_class.h"
#include "token/normal_form.h"

enum { ENDS_AT_ONCE = 512 };

static void encode_whole_words(pith_encode_run *run, pith_span text, size_t at, const size_t *ends,
                               size_t n) {
    const pith_tokenizer *t = run->tokenizer;
    for (size_t i = 0; i < n; at = ends[i++]) {
        size_t size;
        if (pith_char_at(text.data, at, ends[i], &size) & PITH_CHAR_SPACE) continue; /* a gap */
        uint32_t piece = pith_piece_table_find(&t->pieces, text.data + at, ends[i] - at);
        bool known = piece < t->n_tokens && t->whole[piece] != PITH_WHOLE_BARRED;
        if (known)
            pith_encode_append(run, (int32_t)piece);
        else if (t->text_unknown >= 0)
            pith_encode_append(run, t->text_unknown);
    }
}

void pith_encode_bpe(pith_encode_run *run, pith_span text) {
    const pith_tokenizer *t = run->tokenizer;
    if (t->pre->flags & PITH_PRE_NFC) text = pith_normal_form_c(text, &run->normal, &run->failed);
    if (run->failed) return;
    pith_split split;
    run->failed = !pith_split_open(&split, t->splitter, text);
    size_t ends[ENDS_AT_ONCE], n, at = 0;
    while (!run->failed && (n = pith_split_next(&split, ends, ENDS_AT_ONCE)) > 0) {
        if (t->pre->flags & PITH_PRE_WHOLE_WORDS)
            encode_whole_words(run, text, at, ends, n);
        else
            pith_encode_pieces(run, text, at, ends, n);
        at = ends[n - 1];
    }
    run->failed = run->failed || split.failed;
    pith_split_close(&split);
}
