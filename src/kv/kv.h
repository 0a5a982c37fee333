/* SPDX-License-Identifier: Apache-2.0
 * The KV cache: blocks of 64 tokens per window group, reference counted, in one committed region
 * made at start. A pith_kv_sequence is a table of blocks per group; forks share blocks, the tail is
 * copied when it is written.
 *
 *   tokens      0 ..  63  64 .. 127  128 .. 191
 *   sequence A  [ b0 ]    [ b1 ]     [ b4 ]         a block: 64 tokens x all layers of the group;
 *   fork B      [ b0 ]    [ b1 ]     [ b7 ]         in it per layer K and V pages, head by head
 *
 * It owns memory and tables and computes nothing: kernels write and read the pages (drawn in
 * docs/formats.md, "KV pages"). Read next: kv_layout.c, kv_store.c, kv_sequence.c, then
 * kv_snapshot.c. */
#ifndef PITH_KV_KV_H
#define PITH_KV_KV_H

#include "backend/backend.h"

/* What the model says about each layer; the layout is computed from it. Layers with the same
 * window form a group. */
typedef struct pith_kv_shape {
    uint32_t n_head_kv, head_dim, head_dim_v;
    uint32_t window; /* tokens a row sees; 0: all */
} pith_kv_shape;

pith_status pith_kv_layout_init(pith_kv_layout *layout, pith_kv_storage storage,
                                const pith_kv_shape *shapes, uint32_t n_layer, pith_error *error);
void pith_kv_layout_deinit(pith_kv_layout *layout);

typedef struct pith_kv pith_kv;
typedef struct pith_kv_sequence pith_kv_sequence;

/* Bytes for n_sequences of n_ctx tokens each. A window group needs window + step_limit + 64 tokens
 * a sequence at most. */
pith_status pith_kv_bytes(const pith_kv_layout *layout, uint32_t n_ctx, uint32_t n_sequences,
                          uint32_t step_limit, uint64_t *bytes, pith_error *error);
/* layout is borrowed and must outlive the store. */
pith_status pith_kv_new(const pith_kv_layout *layout, uint32_t n_ctx, uint32_t n_sequences,
                        uint32_t step_limit, pith_kv **out, pith_error *error);
void pith_kv_free(pith_kv *kv);

/* PITH_ERROR_LIMIT when n_sequences exist. */
pith_status pith_kv_sequence_new(pith_kv *kv, pith_kv_sequence **out, pith_error *error);
void pith_kv_sequence_free(pith_kv_sequence *sequence);
uint32_t pith_kv_sequence_length(const pith_kv_sequence *sequence);
/* Makes room for positions [length, length + n): blocks exist and are not shared. Drops blocks of
 * window groups that no later row can see. PITH_ERROR_LIMIT (nothing changed) past n_ctx or when
 * blocks run out. The caller writes them by running a step, then calls commit. */
pith_status pith_kv_sequence_reserve(pith_kv_sequence *sequence, uint32_t n, pith_error *error);
void pith_kv_sequence_commit(pith_kv_sequence *sequence, uint32_t n); /* length += n */
/* Forgets positions >= n_keep. Returns the position that can really be kept: less than n_keep
 * when blocks of a window group that the rows after n_keep need were dropped (then 0). */
uint32_t pith_kv_sequence_truncate(pith_kv_sequence *sequence, uint32_t n_keep);
/* dst (empty) becomes a copy of the first n tokens of src; whole blocks are shared. */
pith_status pith_kv_sequence_fork(pith_kv_sequence *dst, const pith_kv_sequence *src, uint32_t n,
                                  pith_error *error);
/* Fills tables[0..n_group). */
void pith_kv_sequence_tables(const pith_kv_sequence *sequence, pith_kv_table *tables);

/* ---- Snapshots (kv_snapshot.c): blocks as bytes that every tier and backend reads ---- */

/* First block of the group that rows from `position` on need. */
uint32_t pith_kv_first_block(const pith_kv_layout *layout, uint32_t group, uint32_t position);
/* Bytes of the first n (<= 64) tokens of a block of the group. */
size_t pith_kv_snapshot_bytes(const pith_kv_layout *layout, uint32_t group, uint32_t n);
/* Writes the first n tokens of a block. false: the block has left the window. */
bool pith_kv_snapshot_write(const pith_kv_sequence *sequence, uint32_t group, uint32_t block,
                            uint32_t n, uint8_t *out);
/* Where a sequence's blocks come from: *bytes is a snapshot of the first *n tokens of the block,
 * valid until the next call, *n at least `least`. NULL: there is none. */
typedef struct pith_kv_snapshot_source {
    const uint8_t *(*read)(void *user, uint32_t group, uint32_t block, uint32_t least, uint32_t *n);
    void *user;
} pith_kv_snapshot_source;
/* Lengthens a sequence, whose length is a multiple of 64, to n tokens with the blocks that rows
 * from n on need. false: a block was missing, or n is over n_ctx; the sequence is empty then. */
bool pith_kv_snapshot_read(pith_kv_sequence *sequence, uint32_t n,
                           const pith_kv_snapshot_source *source);

#endif
