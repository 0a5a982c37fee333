/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte-level BPE ("gpt2") and its raw kin: loading the merge list, and encoding a text piece by
 * piece.
 *
 * A merge "left right" is split at the first space behind its first byte and turned into piece
 * numbers. Parts that are no tokens get numbers of their own, so that merging goes through them as
 * the list says; where one is left at the end, its bytes are given. A merge that would make a
 * control token is left out: a user's text never becomes one. Vocabularies sort their merge
 * results mostly in merge order, so the token behind the last result is tried first. Read next:
 * piece_encode.c.
 */
#include "token/token_internal.h"

#include "base/memory.h"
#include "token/char_class.h"
#include "token/normal_form.h"

#include <string.h>

enum { ENDS_AT_ONCE = 256 };

/* The number of a piece in running form; a new one when the vocabulary lacks it. False: no memory.
 * */
static bool number_of(pith_piece_table *pieces, const char *form, size_t size, uint32_t *number) {
    *number = pith_piece_table_find(pieces, form, size);
    if (*number != PITH_PIECE_NONE) return true;
    size_t start = pieces->bytes.size;
    uint32_t earlier;
    pith_buffer_append(&pieces->bytes, form, size);
    *number = pieces->n;
    return pith_piece_table_append(pieces, start, false, &earlier);
}

static uint32_t number_of_result(const pith_piece_table *pieces, uint32_t guess, const char *form,
                                 size_t size) {
    if (guess < pieces->n) {
        pith_span piece = pith_piece_at(pieces, guess);
        if (piece.size == size && !memcmp(piece.data, form, size)) return guess;
    }
    return pith_piece_table_find(pieces, form, size);
}

static pith_status load_merge(pith_tokenizer *t, uint32_t rank, pith_span merge, uint32_t *guess,
                              pith_error *error) {
    char form[2 * PITH_TOKEN_MAX_PIECE_BYTES];
    pith_piece_table *pieces = &t->pieces;
    const char *space = merge.size > 1 ? memchr(merge.data + 1, ' ', merge.size - 1) : NULL;
    size_t border = space ? (size_t)(space - merge.data) : 0;
    if (!space || border + 1 == merge.size)
        return pith_fail(error, PITH_ERROR_FORMAT, "merge %u has no two parts", rank);
    pith_span right = {space + 1, merge.size - border - 1};
    if (border > PITH_TOKEN_MAX_PIECE_BYTES || right.size > PITH_TOKEN_MAX_PIECE_BYTES)
        return pith_fail(error, PITH_ERROR_LIMIT, "merge %u has %zu bytes; pith takes %d a part",
                         rank, merge.size, PITH_TOKEN_MAX_PIECE_BYTES);
    size_t left_size = pith_piece_form_write(t->form, (pith_span){merge.data, border}, form);
    if (left_size == SIZE_MAX) return PITH_OK; /* cannot come out of text */
    size_t right_size = pith_piece_form_write(t->form, right, form + left_size);
    if (right_size == SIZE_MAX) return PITH_OK;
    uint32_t a, b, joined = number_of_result(pieces, *guess, form, left_size + right_size);
    bool good = number_of(pieces, form, left_size, &a) &&
                number_of(pieces, form + left_size, right_size, &b);
    if (good && joined == PITH_PIECE_NONE)
        good = number_of(pieces, form, left_size + right_size, &joined);
    if (!good) return pith_fail_memory(error, "merges", pieces->bytes.size);
    *guess = joined + 1;
    uint8_t type = joined < t->n_tokens ? t->types[joined] : (uint8_t)PITH_TOKEN_NORMAL;
    if (type == PITH_TOKEN_CONTROL || type == PITH_TOKEN_UNKNOWN) return PITH_OK;
    if (!pith_merge_rules_append(&t->merges, a, b, joined))
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "the index of merges cannot be built at merge %u", rank);
    return PITH_OK;
}

/* Words start as bytes, so ranks of two bytes are asked most: a table of their own. */
static pith_status rank_bytes(pith_tokenizer *t, pith_error *error) {
    t->byte_ranks = pith_alloc_array(65536, sizeof *t->byte_ranks);
    if (!t->byte_ranks) return pith_fail_memory(error, "merges", 65536 * sizeof *t->byte_ranks);
    memset(t->byte_ranks, 0xFF, 65536 * sizeof *t->byte_ranks);
    for (uint32_t i = 0; i < t->merges.n_slots; i++) {
        pith_merge_rule rule = t->merges.slots[i];
        if (rule.left == PITH_PIECE_NONE) continue;
        pith_span left = pith_piece_at(&t->pieces, rule.left);
        pith_span right = pith_piece_at(&t->pieces, rule.right);
        if (left.size != 1 || right.size != 1) continue;
        size_t pair = (size_t)(unsigned char)left.data[0] << 8 | (unsigned char)right.data[0];
        t->byte_ranks[pair] = rule.rank;
    }
    return PITH_OK;
}

pith_status pith_merges_load(pith_tokenizer *tokenizer, const pith_vocab_source *source,
                             pith_error *error) {
    pith_tokenizer *t = tokenizer;
    t->order = source->n_merges ? PITH_ORDER_RULES : PITH_ORDER_IDS;
    if (!pith_merge_rules_init(&t->merges, source->n_merges))
        return pith_fail_memory(error, "merges", source->n_merges);
    /* every single byte is a symbol, token or not */
    for (unsigned b = 0; b < 256 && t->form == PITH_FORM_MAPPED; b++)
        if (!number_of(&t->pieces, &t->byte_values[b], 1, &t->byte_pieces[b]))
            return pith_fail_memory(error, "merges", 256);
    uint32_t guess = PITH_PIECE_NONE;
    for (uint32_t i = 0; i < source->n_merges; i++) {
        pith_status status = load_merge(t, i, source->merges[i], &guess, error);
        if (status != PITH_OK) return status;
    }
    return t->form == PITH_FORM_MAPPED && source->n_merges ? rank_bytes(t, error) : PITH_OK;
}

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
        else if (t->unknown >= 0)
            pith_encode_append(run, t->unknown);
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
