/* SPDX-License-Identifier: Apache-2.0
 *
 * From pieces to ids, mostly without merging:
 *
 *   1. the memo, keyed by the piece itself (up to 15 bytes): what it gave before
 *   2. new short pieces of a batch: together, in piece_learn.c; the answers go into the memo
 *   3. others: the piece is a token, and merging is known to give just that (tokenizer.whole), or
 *      merge.c; the answers go into both memories
 *
 * Words repeat, so step 1 serves nearly all of a text: one cache line and two compares a word.
 * Invariant: both memories only hold what merging gave; leaving them out changes no id. `whole` is
 * shared by threads and written without order (relaxed): every writer writes the same value. Read
 * next: piece_memo.h, piece_learn.c.
 */
#include "token/piece_learn.h"

#include "base/byte_block.h"
#include "token/byte_words.h"

#include <string.h>

void pith_encode_append(pith_encode_run *run, int32_t id) {
    if (!pith_ids_append(run->ids, id)) run->failed = true;
}

void pith_encode_bytes(pith_encode_run *run, const char *data, size_t size) {
    const pith_tokenizer *t = run->tokenizer;
    bool unknown = false;
    for (size_t i = 0; i < size; i++) {
        uint32_t piece = t->byte_pieces[(unsigned char)data[i]];
        if (piece < t->n_tokens)
            pith_encode_append(run, (int32_t)piece);
        else
            unknown = true;
    }
    if (unknown && t->text_unknown >= 0) pith_encode_append(run, t->text_unknown);
}

/* Step 3. */
void pith_encode_piece(pith_encode_run *run, const char *data, size_t size) {
    const pith_tokenizer *t = run->tokenizer;
    uint32_t piece = PITH_PIECE_NONE;
    unsigned char whole = PITH_WHOLE_BARRED;
    if (size <= t->pieces.longest) piece = pith_piece_table_find(&t->pieces, data, size);
    if (piece < t->n_tokens) {
        whole = atomic_load_explicit(&t->whole[piece], memory_order_relaxed);
        bool ignore_merges = t->pre && (t->pre->flags & PITH_PRE_IGNORE_MERGES);
        if (whole == PITH_WHOLE_YES || (ignore_merges && whole != PITH_WHOLE_BARRED)) {
            pith_encode_append(run, (int32_t)piece);
            return;
        }
    }
    size_t before = run->ids->size;
    pith_merge_piece(run, data, size);
    if (whole != PITH_WHOLE_UNKNOWN || run->failed) return;
    bool yes = run->ids->size == before + 1 && run->ids->data[before] == (int32_t)piece;
    atomic_store_explicit(&t->whole[piece], yes ? PITH_WHOLE_YES : PITH_WHOLE_NO,
                          memory_order_relaxed);
}

/* clang-format off */
static const uint64_t low_masks[PITH_MEMO_PIECE_BYTES + 1] = {
    0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFF, 0xFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF,
    UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
static const uint64_t high_masks[PITH_MEMO_PIECE_BYTES + 1] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFF, 0xFFFFFFFFFFFF,
    0xFFFFFFFFFFFFFF};
/* clang-format on */

static void append_long_cell(pith_encode_run *run, const pith_memo_long_cell *cell) {
    if (!pith_ids_reserve(run->ids, PITH_MEMO_LONG_IDS)) run->failed = true;
    if (!run->failed) run->ids->size += pith_memo_read_long(cell, run->ids->data + run->ids->size);
}

static void encode_long_piece(pith_encode_run *run, const char *data, size_t size) {
    pith_piece_memo *memo = run->tokenizer->memo;
    const pith_memo_long_cell *cell = pith_piece_memo_find_long(memo, data, size);
    if (cell) {
        append_long_cell(run, cell);
        return;
    }
    size_t before = run->ids->size;
    pith_encode_piece(run, data, size);
    if (!run->failed)
        (void)pith_piece_memo_keep_long(memo, data, size, run->ids->data + before,
                                        run->ids->size - before);
}

/* A piece on its way through the memo: no cell has the key of a long one. */
struct wanted {
    pith_memo_key key;
    const pith_memo_cell *cell; /* the first to look at */
};

/* Asks for the cell of a piece whose 16 bytes from `data` can be read. */
static inline void want(struct wanted *wanted, const pith_memo_table *table, const char *data,
                        size_t size) {
    pith_memo_key key = {0, 0};
    if (size <= PITH_MEMO_PIECE_BYTES) {
        key.low = pith_load_8(data) & low_masks[size];
        key.high = (pith_load_8(data + 8) & high_masks[size]) | (uint64_t)size << 56;
    }
    wanted->key = key;
    wanted->cell = &table->cells[pith_memo_place(table, key)];
    pith_prefetch(wanted->cell);
}

/* Keys and places of the next pieces. Cells come into the cache side by side, where the second
 * pass would wait for one after the other. */
static inline void want_pieces(struct wanted *wanted, const pith_memo_table *table, pith_span text,
                               size_t at, const size_t *ends, size_t n) {
    const size_t safe = text.size >= 16 ? text.size - 16 : 0; /* last start of 16 bytes */
    size_t i = 0;
    if (text.size >= 16)
        for (; i < n && at <= safe; at = ends[i++])
            want(&wanted[i], table, text.data + at, ends[i] - at);
    for (; i < n; at = ends[i++]) {
        char copy[16] = {0};
        memcpy(copy, text.data + at, text.size - at < 16 ? text.size - at : 16);
        want(&wanted[i], table, copy, ends[i] - at);
    }
}

/* A piece whose ids do not stand in the first cell. */
static void encode_other_piece(pith_encode_run *run, const struct wanted *wanted, pith_span piece) {
    const pith_piece_memo *memo = run->tokenizer->memo;
    if (piece.size > PITH_MEMO_PIECE_BYTES) {
        encode_long_piece(run, piece.data, piece.size);
        return;
    }
    uint32_t last = atomic_load_explicit(&wanted->cell->last, memory_order_relaxed);
    const pith_memo_cell *cell = NULL;
    if (last) cell = pith_piece_memo_find(memo, wanted->key, &last);
    if (!cell)
        pith_new_pieces_add(run, wanted->key, piece);
    else if (last >> PITH_MEMO_STATE_SHIFT == PITH_MEMO_ELSEWHERE)
        append_long_cell(run, &memo->long_cells[cell->ids[0]]);
    else
        run->ids->size += pith_memo_read(cell, last, run->ids->data + run->ids->size);
}

static void encode_batch(pith_encode_run *run, pith_span text, size_t at, const size_t *ends,
                         size_t n) {
    struct wanted wanted[PITH_BATCH_PIECES];
    pith_ids *ids = run->ids;
    want_pieces(wanted, pith_memo_table_now(run->tokenizer->memo), text, at, ends, n);
    if (!pith_ids_reserve(ids, n * PITH_MEMO_IDS)) {
        run->failed = true;
        return;
    }
    int32_t *out = ids->data + ids->size;
    for (size_t i = 0; i < n; i++) {
        const pith_memo_cell *cell = wanted[i].cell;
        uint32_t last = atomic_load_explicit(&cell->last, memory_order_acquire);
        if (pith_memo_is_short(last) && pith_memo_has(cell, wanted[i].key)) {
            out += pith_memo_read(cell, last, out);
            continue;
        }
        size_t from = i ? ends[i - 1] : at;
        ids->size = (size_t)(out - ids->data);
        encode_other_piece(run, &wanted[i], (pith_span){text.data + from, ends[i] - from});
        run->failed = run->failed || !pith_ids_reserve(ids, (n - i) * PITH_MEMO_IDS);
        if (run->failed) return;
        out = ids->data + ids->size;
    }
    ids->size = (size_t)(out - ids->data);
    if (run->fresh && run->fresh->n) pith_new_pieces_encode(run);
}

void pith_encode_pieces(pith_encode_run *run, pith_span text, size_t at, const size_t *ends,
                        size_t n) {
    for (size_t i = 0; i < n && !run->failed; i += PITH_BATCH_PIECES) {
        encode_batch(run, text, at, ends + i,
                     n - i < PITH_BATCH_PIECES ? n - i : PITH_BATCH_PIECES);
        at = ends[n - i < PITH_BATCH_PIECES ? n - 1 : i + PITH_BATCH_PIECES - 1];
    }
}
