/* SPDX-License-Identifier: Apache-2.0
 * Storing prompts while they are read (private to the engine room).
 *
 *   engine's thread   copies each block of 64 tokens after the step that completes it  -> [buffer]
 *   worker            makes room in the index, writes the file, makes it findable     <- [buffer]
 *
 * A buffer is a part of a prompt: full ones, and the last of a prompt, are handed over. There are
 * two; while both are with the worker nothing is copied. What is left when the prompt has been read
 * is copied while the reply is made, a block a step, and what is left when that ends is not stored.
 * So no step waits for the disk, and memory is bounded. */
#ifndef PITH_ENGINE_PREFIX_RECORD_H
#define PITH_ENGINE_PREFIX_RECORD_H

#include "engine/engine.h"

typedef struct pith_prefix_recorder pith_prefix_recorder;

/* Borrowed; must outlive the recorder. */
typedef struct pith_prefix_setting {
    const pith_kv_layout *layout;
    uint32_t n_ctx;
    uint64_t quota;
    const char *folder, *model, *settings;
} pith_prefix_setting;

/* A prompt to be stored. */
typedef struct pith_prefix_task {
    const pith_session *session;
    uint64_t key;
    uint32_t first, end;  /* positions [first, end), first a multiple of 64 */
    const size_t *places; /* pith_generate_options.cache_at */
    size_t n_places;
} pith_prefix_task;

uint64_t pith_prefix_recorder_bytes(const pith_kv_layout *layout, uint32_t n_ctx);
pith_status pith_prefix_recorder_new(const pith_prefix_setting *setting, pith_prefix_recorder **out,
                                     pith_error *error);
/* Finishes what was handed over, or gives it up after a short while. NULL is allowed. */
void pith_prefix_recorder_free(pith_prefix_recorder *recorder);

/* Does nothing while another session's prompt is recorded. */
void pith_prefix_record_begin(pith_prefix_recorder *recorder, const pith_prefix_task *task);
/* Copies what is computed, at most so many blocks and as far as buffers are free. */
void pith_prefix_record_follow(pith_prefix_recorder *recorder, const pith_session *session,
                               uint32_t most);
void pith_prefix_record_end(pith_prefix_recorder *recorder, const pith_session *session);
/* Tells the index that what is stored of these places was used; forgotten when the worker is busy.
 */
void pith_prefix_record_use(pith_prefix_recorder *recorder, uint64_t key, const uint64_t *hashes,
                            size_t n);
/* What went wrong with storing, "" when nothing. */
const char *pith_prefix_recorder_note(const pith_prefix_recorder *recorder);

#endif
