/* SPDX-License-Identifier: Apache-2.0
 *
 * What takes a new piece long is waiting for memory, and several pieces can wait together. So the
 * ids of a batch are written with gaps where new pieces are; these are then encoded together, and
 * the gaps are filled from the back:
 *
 *   ids     12 7 40|8 8 3|5           gaps in front of the 4th and the 7th
 *           12 7 40 71 8 8 3 90 91 5  the new pieces gave 71 and 90 91
 *
 * Where pieces merge by rules over bytes they merge abreast; elsewhere what the vocabulary says of
 * them is brought into the cache first. Invariant: a list's pieces are short, so none gives more
 * ids than PITH_MEMO_PIECE_BYTES, and a batch has at most as many gaps as pieces. Read next:
 * merge_abreast.c.
 */
#include "token/piece_learn.h"

#include "base/memory.h"
#include "token/merge_abreast.h"

#include <string.h>

_Static_assert(PITH_BATCH_PIECES <= 256, "a byte names a piece");
_Static_assert((int)PITH_MEMO_PIECE_BYTES == (int)PITH_STRAND_BYTES,
               "short pieces can merge abreast");

void pith_new_pieces_add(pith_encode_run *run, pith_memo_key key, pith_span text) {
    if (!run->fresh) {
        run->fresh = pith_alloc_zero(1, sizeof *run->fresh);
        run->failed = !run->fresh;
        if (run->failed) return;
    }
    pith_new_pieces *fresh = run->fresh;
    uint8_t *latest = &fresh->latest[pith_memo_hash(key) >> 56];
    uint32_t i = *latest;
    if (i >= fresh->n || !pith_memo_same_key(fresh->keys[i], key)) {
        i = fresh->n++;
        fresh->keys[i] = key;
        fresh->texts[i] = text;
        *latest = (uint8_t)i;
    }
    fresh->gaps[fresh->n_gaps] = run->ids->size;
    fresh->wanted[fresh->n_gaps++] = (uint8_t)i;
}

static void keep(const pith_encode_run *run, uint32_t i) {
    const pith_new_pieces *fresh = run->fresh;
    pith_piece_memo_keep_any(run->tokenizer->memo, fresh->keys[i], fresh->texts[i], fresh->ids[i],
                             fresh->n_ids[i]);
}

/* The ids that encoding has put behind the run's own are the next ones of a listed piece. */
static void take_ids(pith_encode_run *run, uint32_t i, size_t own) {
    pith_new_pieces *fresh = run->fresh;
    const size_t n = run->ids->size - own;
    if (run->failed) return;
    memcpy(fresh->ids[i] + fresh->n_ids[i], run->ids->data + own, n * sizeof *fresh->ids[i]);
    fresh->n_ids[i] += (uint8_t)n;
    run->ids->size = own;
}

/* Brings what the vocabulary says of the pieces into the cache: three look-ups, each of which waits
 * for the one before. */
static void expect_pieces(const pith_piece_table *pieces, const pith_new_pieces *fresh) {
    uint64_t hashes[PITH_BATCH_PIECES];
    for (uint32_t i = 0; i < fresh->n; i++)
        hashes[i] = pith_piece_table_hash(pieces, fresh->texts[i].data, fresh->texts[i].size);
    for (int step = 0; step < 2; step++)
        for (uint32_t i = 0; i < fresh->n; i++) pith_piece_table_expect(pieces, hashes[i], step);
}

/* Pieces that are tokens, where that is enough. */
static void encode_tokens(pith_encode_run *run) {
    const pith_tokenizer *t = run->tokenizer;
    for (uint32_t i = 0; i < run->fresh->n; i++) {
        pith_span text = run->fresh->texts[i];
        uint32_t piece = pith_piece_table_find(&t->pieces, text.data, text.size);
        if (piece >= t->n_tokens || t->whole[piece] == PITH_WHOLE_BARRED) continue;
        run->fresh->ids[i][0] = (int32_t)piece;
        run->fresh->n_ids[i] = 1;
        keep(run, i);
    }
}

/* The next piece of the list that has no ids yet. False: none. */
static bool begin_strand(const pith_encode_run *run, pith_strand *strand, uint32_t *next) {
    const pith_new_pieces *fresh = run->fresh;
    while (*next < fresh->n && fresh->n_ids[*next]) ++*next;
    if (*next == fresh->n) return false;
    pith_strand_init(strand, run->tokenizer, fresh->texts[*next]);
    strand->owner = (*next)++;
    return true;
}

static void end_strand(pith_encode_run *run, const pith_strand *strand) {
    const pith_tokenizer *t = run->tokenizer;
    const uint32_t owner = strand->owner;
    const char *data = run->fresh->texts[owner].data;
    const size_t own = run->ids->size;
    for (unsigned i = 0, next; i < strand->size; i = next) {
        const uint32_t piece = strand->piece[i];
        next = pith_strand_next(strand, i);
        if (next == PITH_STRAND_END) next = strand->size;
        if (piece < t->n_tokens && t->types[piece] != PITH_TOKEN_UNUSED) {
            run->fresh->ids[owner][run->fresh->n_ids[owner]++] = (int32_t)piece;
        } else {
            pith_encode_bytes(run, data + i, next - i);
            take_ids(run, owner, own);
        }
    }
    if (!run->failed) keep(run, owner);
}

static void merge_abreast(pith_encode_run *run) {
    const pith_merge_rules *rules = &run->tokenizer->merges;
    pith_strand strands[PITH_STRANDS], *busy[PITH_STRANDS];
    uint32_t next = 0;
    size_t n = 0;
    while (n < PITH_STRANDS && begin_strand(run, &strands[n], &next)) {
        busy[n] = &strands[n];
        n++;
    }
    while (n) {
        for (size_t i = 0; i < n;) {
            run->steps += busy[i]->size;
            bool merged = pith_strand_step(busy[i], rules);
            if (!merged) end_strand(run, busy[i]);
            if (merged || begin_strand(run, busy[i], &next))
                i++;
            else
                busy[i] = busy[--n];
        }
    }
}

static void encode_alone(pith_encode_run *run) {
    const size_t own = run->ids->size;
    for (uint32_t i = 0; i < run->fresh->n && !run->failed; i++) {
        pith_encode_piece(run, run->fresh->texts[i].data, run->fresh->texts[i].size);
        take_ids(run, i, own);
        if (!run->failed) keep(run, i);
    }
}

static void fill_gaps(pith_encode_run *run) {
    const pith_new_pieces *fresh = run->fresh;
    pith_ids *ids = run->ids;
    size_t more = 0, from = ids->size;
    for (uint32_t g = 0; g < fresh->n_gaps; g++) more += fresh->n_ids[fresh->wanted[g]];
    if (!pith_ids_reserve(ids, more)) {
        run->failed = true;
        return;
    }
    size_t to = ids->size += more; /* where the moved ids start */
    for (uint32_t g = fresh->n_gaps; g-- > 0;) {
        const size_t gap = fresh->gaps[g], n = fresh->n_ids[fresh->wanted[g]];
        to -= from - gap;
        memmove(ids->data + to, ids->data + gap, (from - gap) * sizeof *ids->data);
        to -= n;
        memcpy(ids->data + to, fresh->ids[fresh->wanted[g]], n * sizeof *ids->data);
        from = gap;
    }
}

void pith_new_pieces_encode(pith_encode_run *run) {
    const pith_tokenizer *t = run->tokenizer;
    pith_new_pieces *fresh = run->fresh;
    const bool ignore_merges = t->pre && (t->pre->flags & PITH_PRE_IGNORE_MERGES);
    memset(fresh->n_ids, 0, fresh->n);
    if (ignore_merges || !t->byte_pairs) expect_pieces(&t->pieces, fresh);
    if (ignore_merges && t->byte_pairs) encode_tokens(run);
    if (t->byte_pairs)
        merge_abreast(run);
    else
        encode_alone(run);
    if (!run->failed) fill_gaps(run);
    fresh->n = fresh->n_gaps = 0;
}
