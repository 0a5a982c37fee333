/* SPDX-License-Identifier: Apache-2.0
 *
 * From pieces to ids, mostly without merging:
 *
 *   1. the memo, keyed by the piece itself (up to 15 bytes): what it gave before
 *   2. the piece is a token, and merging is known to give just that token (tokenizer.whole)
 *   3. merge.c; the answers go into both memories
 *
 * Words repeat, so step 1 serves nearly all of a text: one cache line and two compares a word.
 * Invariant: both memories only hold what merging gave; leaving them out changes no id. `whole` is
 * shared by threads and written without order (relaxed): every writer writes the same value. Read
 * next: piece_memo.h, merge.c.
 */
#include "token/token_internal.h"

#include "token/byte_words.h"

#include <string.h>

enum { AT_ONCE = 64 };

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
    if (unknown && t->unknown >= 0) pith_encode_append(run, t->unknown);
}

/* Steps 2 and 3. */
static void encode_piece(pith_encode_run *run, const char *data, size_t size) {
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

/* The key of text[at, at + size), size <= PITH_MEMO_PIECE_BYTES. */
static inline pith_memo_key key_of(pith_span text, size_t at, size_t size) {
    char last[16] = {0};
    const char *from = text.data + at;
    if (text.size - at < sizeof last) from = memcpy(last, from, size);
    return (pith_memo_key){pith_load_8(from) & low_masks[size],
                           (pith_load_8(from + 8) & high_masks[size]) | (uint64_t)size << 56};
}

/* Room for the ids of a memo cell, all of them written at once. */
static inline bool reserve(pith_ids *ids) {
    if (ids->capacity - ids->size >= PITH_MEMO_IDS) return true;
    size_t size = ids->size;
    for (int i = 0; i < PITH_MEMO_IDS; i++)
        if (!pith_ids_append(ids, 0)) return false;
    ids->size = size;
    return true;
}

/* A piece that is long or has many tokens. */
static void encode_long_piece(pith_encode_run *run, const char *data, size_t size) {
    const pith_piece_memo *memo = &run->tokenizer->memo;
    const pith_memo_long_cell *cell = pith_piece_memo_find_long(memo, data, size);
    if (cell) {
        size_t n = atomic_load_explicit(&cell->state, memory_order_relaxed) - PITH_MEMO_READY;
        for (size_t i = 0; i < n; i++) pith_encode_append(run, pith_memo_id(cell->ids, i));
        return;
    }
    size_t before = run->ids->size;
    encode_piece(run, data, size);
    if (!run->failed)
        pith_piece_memo_keep_long(memo, data, size, run->ids->data + before,
                                  run->ids->size - before);
}

static void encode_new_piece(pith_encode_run *run, pith_memo_key key, const char *data,
                             size_t size) {
    const pith_piece_memo *memo = &run->tokenizer->memo;
    size_t before = run->ids->size;
    encode_piece(run, data, size);
    if (run->failed) return;
    const int32_t *ids = run->ids->data + before;
    size_t n = run->ids->size - before;
    pith_piece_memo_keep(memo, key, ids, n);
    if (n > PITH_MEMO_IDS) pith_piece_memo_keep_long(memo, data, size, ids, n);
}

/* A piece on its way through the memo. */
struct wanted {
    pith_memo_key key;
    size_t place;
};

/* Keys and places of the next pieces. Asking each place for its state in passing brings the cells
 * into the cache side by side, where the second pass would wait for one after the other. */
static unsigned read_keys(const pith_piece_memo *memo, pith_span text, size_t at,
                          const size_t *ends, size_t n, struct wanted *wanted) {
    unsigned touched = 0;
    for (size_t i = 0; i < n; at = ends[i++]) {
        size_t size = ends[i] - at;
        if (size > PITH_MEMO_PIECE_BYTES) continue;
        wanted[i].key = key_of(text, at, size);
        wanted[i].place = pith_memo_place(wanted[i].key);
        touched += atomic_load_explicit(&memo->cells[wanted[i].place].state, memory_order_relaxed);
    }
    return touched;
}

/* False: the cell sends to the long ones. */
static inline bool append_cell(pith_encode_run *run, const pith_memo_cell *cell) {
    unsigned state = atomic_load_explicit(&cell->state, memory_order_relaxed);
    size_t n = state - PITH_MEMO_READY;
    if (state == PITH_MEMO_ELSEWHERE) return false;
    if (!reserve(run->ids)) {
        run->failed = true;
        return true;
    }
    int32_t *out = run->ids->data + run->ids->size;
    uint64_t two = pith_load_8((const char *)cell->ids);
    out[0] = (int32_t)(two & 0xFFFFFF);
    out[1] = (int32_t)(two >> 24 & 0xFFFFFF);
    for (size_t i = 2; i < n; i++) out[i] = pith_memo_id(cell->ids, i);
    run->ids->size += n;
    return true;
}

static void encode_batch(pith_encode_run *run, pith_span text, size_t at, const size_t *ends,
                         size_t n) {
    const pith_piece_memo *memo = &run->tokenizer->memo;
    struct wanted wanted[AT_ONCE];
    run->touched += read_keys(memo, text, at, ends, n, wanted);
    for (size_t i = 0; i < n && !run->failed; at = ends[i++]) {
        const char *data = text.data + at;
        size_t size = ends[i] - at;
        if (size > PITH_MEMO_PIECE_BYTES) {
            encode_long_piece(run, data, size);
            continue;
        }
        const pith_memo_cell *cell = pith_piece_memo_find(memo, wanted[i].key, wanted[i].place);
        if (!cell)
            encode_new_piece(run, wanted[i].key, data, size);
        else if (!append_cell(run, cell))
            encode_long_piece(run, data, size);
    }
}

void pith_encode_pieces(pith_encode_run *run, pith_span text, size_t at, const size_t *ends,
                        size_t n) {
    for (size_t i = 0; i < n; i += AT_ONCE) {
        encode_batch(run, text, at, ends + i, n - i < AT_ONCE ? n - i : AT_ONCE);
        at = ends[n - i < AT_ONCE ? n - 1 : i + AT_ONCE - 1];
    }
}
