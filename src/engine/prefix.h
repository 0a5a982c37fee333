/* SPDX-License-Identifier: Apache-2.0
 * Prompts kept on disk (private to the engine room): what a session would have to compute again is
 * read instead.
 *
 *   prompt   [ a b c d .. 64 tokens ][ 64 ][ 64 ][ 64 ][ 64 ][ 23 ]
 *   parts    [ part 1: [0, 192)                 ][ part 2: [192, 343) ]     files, some MiB each
 *   another  [ the same 64 tokens   ][ 64 ][ 64 ][ 64 ][ 40 the same, then others ]
 *             part 1 whole, and of part 2 the blocks up to token 296
 *
 * A place is a multiple of 64 tokens; its hash stands for all tokens before it. Hashes find
 * candidates, ids decide. Parts of one prompt need each other from the front on.
 *
 * Invariant: an engine is the same with and without it, but for time: whatever is wrong with
 * folder, index or file means that the prompt is computed. Read next: prefix.c (lookup),
 * prefix_record.c (storing), prefix_file.h, prefix_index.h. */
#ifndef PITH_ENGINE_PREFIX_H
#define PITH_ENGINE_PREFIX_H

#include "engine/engine.h"
#include "engine/prefix_record.h"

enum {
    PITH_PREFIX_LEAST_READ = 64,   /* tokens that must be saved for the disk to be asked */
    PITH_PREFIX_LEAST_STORED = 128 /* tokens not yet stored for a prompt to be stored */
};

/* Bytes that a store for such an engine takes. */
uint64_t pith_prefix_bytes(const pith_kv_layout *layout, uint32_t n_ctx);
/* NULL and why in *error when the folder cannot be used. */
pith_prefix *pith_prefix_open(const pith_engine *engine, const char *folder, uint64_t quota,
                              pith_error *error);
/* What is being written is finished, or given up after a short while. NULL is allowed. */
void pith_prefix_close(pith_prefix *prefix);

/* Lengthens the session's KV with stored tokens of the prompt, where there are enough more than it
 * has; it must hold nothing but a beginning of the prompt. Begins to record the prompt. out: tells
 * source and miss. prefix NULL: off. */
void pith_prefix_take(pith_prefix *prefix, pith_session *session, pith_id_span prompt,
                      const pith_generate_options *options, pith_generation *out);
/* After a step: records blocks that are computed, `most` at most. */
void pith_prefix_follow(pith_prefix *prefix, const pith_session *session, uint32_t most);
/* The reply ends, or the session's ids change: nothing more is recorded. */
void pith_prefix_leave(pith_prefix *prefix, const pith_session *session);
/* What is wrong, for pith_engine_info; "" when all is well. */
const char *pith_prefix_note(const pith_prefix *prefix);

/* Hashes of the places of ids: writes n / 64 of them. */
void pith_prefix_hash_places(const int32_t *ids, size_t n, uint64_t *hashes);

#endif
