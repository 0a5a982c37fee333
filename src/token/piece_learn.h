/* SPDX-License-Identifier: Apache-2.0
 * The new pieces of a batch, encoded together. */
#ifndef PITH_TOKEN_PIECE_LEARN_H
#define PITH_TOKEN_PIECE_LEARN_H

#include "token/token_internal.h"

enum { PITH_BATCH_PIECES = 256 };

/* Short pieces that the memo does not know, mostly once, and what they give. */
struct pith_new_pieces {
    uint32_t n, n_gaps;
    pith_memo_key keys[PITH_BATCH_PIECES];
    pith_span texts[PITH_BATCH_PIECES];
    uint8_t n_ids[PITH_BATCH_PIECES];
    int32_t ids[PITH_BATCH_PIECES][PITH_MEMO_PIECE_BYTES];
    /* where their ids belong among the run's, in order; a piece may be wanted several times */
    size_t gaps[PITH_BATCH_PIECES];
    uint8_t wanted[PITH_BATCH_PIECES];
    uint8_t latest[256]; /* by hash: the piece that may be the same; a guess, old lists' too */
};

/* Puts a piece on the list, its ids to come behind the run's ids of now. */
void pith_new_pieces_add(pith_encode_run *run, pith_memo_key key, pith_span text);
/* Encodes the pieces of the list, keeps them in the memo, puts their ids where they belong, and
 * empties the list. */
void pith_new_pieces_encode(pith_encode_run *run);

#endif
