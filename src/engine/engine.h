/* SPDX-License-Identifier: Apache-2.0
 * An engine runs one model: it owns the recorded plan, the KV store, the runner with its threads
 * and workspace, and room for its sessions. A session is one timeline of tokens in it.
 *
 *   ids      [ a  b  c  d  e ]      what the session holds: `length` tokens
 *   in KV    [ a  b  c ]            what has been computed; the next call computes the rest
 *
 * Invariant: tokens in KV <= length <= n_ctx, and everything is allocated when the engine is
 * made: running a step and making a token allocate nothing. Arguments were checked by src/api;
 * numbers that depend on the model are checked here. Read next: engine.c (making one), session.c
 * (feeds), session_adapters.c, step.c (steps), reply.c and schedule.c (replies), prefix.h (prompts
 * on disk), estimate.c (before loading). */
#ifndef PITH_ENGINE_ENGINE_H
#define PITH_ENGINE_ENGINE_H

#include "chat/chat.h"
#include "engine/pace.h"
#include "kv/kv.h"
#include "model/model.h"
#include "sample/sample.h"

#include <stdatomic.h>

/* Published limits and defaults. */
enum {
    PITH_ENGINE_MAX_SESSIONS = 1024,
    PITH_ENGINE_MAX_THREADS = 512,
    PITH_ENGINE_MAX_STEP = 8192,        /* rows */
    PITH_ENGINE_DEFAULT_CONTEXT = 4096, /* tokens */
    PITH_ENGINE_DEFAULT_STEP = 256,     /* rows */
    PITH_ENGINE_FAST_LEAST = 64,        /* new tokens of a feed from which on it has fast rows */
    PITH_ENGINE_FIRST_EXACT = 4,        /* positions that are exact all the same */
    PITH_ENGINE_DEFAULT_ADAPTER_RANK = 64,
    PITH_ENGINE_MAX_ADAPTER_RANK = 8192
};

typedef struct pith_prefix pith_prefix; /* prefix.h */

struct pith_session {
    pith_engine *engine;
    bool is_open;
    pith_kv_sequence *kv;
    int32_t *ids;    /* [n_ctx] */
    size_t length;   /* tokens in ids */
    float *logits;   /* [row_width] of the engine */
    bool has_logits; /* logits are those after ids[length - 1] */
    /* Set from any thread or signal handler, cleared by the call that it stops. */
    atomic_int cancelled;
    pith_detok detok;       /* lent to the reply being made, so that a token needs no allocation */
    pith_reply *reply;      /* the one being made, or NULL */
    uint64_t checked_draft; /* content key of a model that has the same vocabulary; 0: none */
    /* What steps of the session are given; holders[i] is held and owns adapters.delta[i]. */
    pith_adapter_set adapters;
    pith_adapter *holders[PITH_ADAPTERS_MAX];
};

struct pith_engine {
    const pith_model *model;
    uint32_t n_ctx, n_sessions, step_limit; /* after defaults */
    pith_kv_storage storage;
    bool exact;         /* every row is in the exact contract */
    bool embeds;        /* rows are final states, not logits */
    uint32_t row_width; /* n_vocab, or n_embd when it embeds */
    pith_backend_options backend;
    pith_plan *plan;
    pith_kv_layout layout;
    uint64_t kv_bytes, workspace_bytes, cache_bytes; /* as accounted before they were made */
    pith_kv *kv;
    pith_runner *runner;
    pith_session *sessions; /* [n_sessions] */
    int32_t *ids;           /* [n_sessions, n_ctx] */
    float *logits;          /* [n_sessions, row_width] */
    /* [step_limit], of the step being run */
    int32_t *tokens, *positions, *sequence, *out_rows;
    bool *is_fast;                     /* the same */
    pith_kv_table *tables;             /* [n_sessions, n_group] */
    const pith_adapter_set **adapters; /* [n_sessions], of the step being run */
    struct pith_part *parts;           /* [n_sessions], of the step being made */
    pith_reply **replies;              /* [n_sessions], those being made, in the order they came */
    uint32_t n_replies, turn;          /* turn: which of them comes first in the next step */
    pith_pace pace;
    size_t max_token_bytes; /* longest text of a token */
    bool has_cache;         /* a cache folder was asked for, and there is memory for it */
    pith_prefix *prefix;    /* prompts on disk; NULL: none are kept, and cache_note says why */
    char cache_note[240];
};

/* Bytes that pith_engine_open would allocate. options: complete (src/api fills absent fields
 * with zeros). */
pith_status pith_engine_measure(const pith_model *model, const pith_engine_options *options,
                                uint64_t *bytes, pith_error *error);
/* The same in parts: fills kv_bytes and workspace_bytes of *out, and what was settled. The model
 * may be an outline. */
pith_status pith_engine_measure_parts(const pith_model *model, const pith_engine_options *options,
                                      pith_engine_info *out, pith_error *error);
pith_status pith_engine_open(const pith_model *model, const pith_engine_options *options,
                             pith_engine **out, pith_error *error);
void pith_engine_close(pith_engine *engine); /* NULL is allowed */
pith_engine_info pith_engine_get_info(const pith_engine *engine);

/* ---- Sessions ---- */

pith_status pith_session_open(pith_engine *engine, pith_session **out, pith_error *error);
void pith_session_close(pith_session *session); /* NULL is allowed */

/* A new session with the first n_keep tokens (<= length) of this one; blocks of KV are shared. What
 * the window groups have dropped is computed again by its next feed. */
pith_status pith_session_branch(const pith_session *session, size_t n_keep, pith_session **out,
                                pith_error *error);

/* Ids that somebody else owns. */
typedef struct pith_id_span {
    const int32_t *data;
    size_t size; /* ids */
} pith_id_span;

/* Who watches the reading of a prompt; all members may be NULL. */
typedef struct pith_feed_watch {
    pith_progress progress; /* after each step */
    void *progress_user;
    pith_rows rows; /* logits of every new id */
    void *rows_user;
} pith_feed_watch;

/* Appends ids and computes them; with n_ids 0 computes what is still to be computed. */
pith_status pith_session_feed(pith_session *session, const int32_t *ids, size_t n_ids,
                              const pith_feed_watch *watch, pith_error *error);
/* Forgets positions >= n_keep (<= length). What the KV store cannot keep is computed again by
 * the next feed. */
void pith_session_cut(pith_session *session, size_t n_keep);
/* pith_session_embed of pith.h, arguments checked but for the ids. */
pith_status pith_session_pool(pith_session *session, pith_id_span ids, pith_pooling pooling,
                              float *out, pith_error *error);
/* True when somebody asked to stop; clears the request. */
bool pith_session_take_cancel(pith_session *session);

/* ---- Adapters of a session (session_adapters.c) ---- */

/* pith_session_set_adapters of pith.h; adapters: [n], none NULL. */
pith_status pith_session_adapt(pith_session *session, pith_adapter *const *adapters,
                               const float *scales, size_t n, pith_error *error);
/* Lets go of all of them, without looking at the tokens: for a session that begins or ends. */
void pith_session_drop_adapters(pith_session *session);
/* `to` (which has none) gets those of `from`, at the same places. */
void pith_session_copy_adapters(pith_session *to, const pith_session *from);
/* Whether both compute the positions before n with the same. */
bool pith_session_same_adapters(const pith_session *a, const pith_session *b, size_t n);
/* To be called when tokens were appended, before they are computed: where an activated adapter
 * begins among the first `length` ids. What was computed otherwise leaves the KV cache. */
void pith_session_aim_adapters(pith_session *session, size_t length);
/* A hash of what else than ids decides the KV of its first *n tokens; 0: nothing, and *n is lowered
 * to those that are, and will stay, the model's alone. */
uint64_t pith_session_variant(const pith_session *session, size_t *n);
/* For pith_step.adapters: NULL while the session has none. */
static inline const pith_adapter_set *pith_session_adapters(const pith_session *session) {
    return session->adapters.n ? &session->adapters : NULL;
}

/* ---- Replies (reply.c, schedule.c) ---- */

/* Starts a reply (pith_reply_new of pith.h). options: complete; what they point to, and the
 * sampler, must live as long as the reply. */
pith_status pith_reply_open(pith_session *session, pith_sampler *sampler, pith_id_span prompt,
                            const pith_generate_options *options, pith_reply **out,
                            pith_error *error);
/* Also of a reply that is not made to its end: the session keeps what there is. NULL is allowed. */
void pith_reply_close(pith_reply *reply);
/* Its session is closed: it is done and failed. */
void pith_reply_abandon(pith_reply *reply);
bool pith_reply_is_made(const pith_reply *reply);
/* Why it failed, or PITH_OK and what it is so far. */
pith_status pith_reply_outcome(const pith_reply *reply, pith_generation *out, pith_error *error);
/* One step for all replies being made. A failure is that of each reply in the step. */
void pith_engine_advance(pith_engine *engine);

/* ---- Prompts on disk (prefix.h; a folder as a whole: prefix_folder.c) ---- */

/* pith_cache_list and pith_cache_clear of pith.h, arguments checked. */
pith_status pith_prefix_list(const char *folder, pith_cache_visit visit, void *user,
                             pith_error *error);
pith_status pith_prefix_clear(const char *folder, size_t *n_removed, pith_error *error);
/* Version of the library that keeps the index; NULL: this build keeps no prompts. */
const char *pith_prefix_library(void);

/* ---- Estimates (estimate.c) ---- */

/* What running the file would take (pith_file_fit). options: complete. out is whole afterwards,
 * also where parts are unknown. */
pith_status pith_estimate_file(const pith_gguf *gguf, const pith_fit_options *options,
                               pith_fit *out, pith_error *error);
/* A row of the table of devices. */
bool pith_device_find(size_t index, pith_device *out);

/* ---- Stop strings and banned strings (stop_text.c) ---- */

/* Text that waits because it may be the start of one. */
typedef struct pith_stop_text {
    const char *const *stops;  /* [n_stops], borrowed */
    const char *const *banned; /* [n_banned], the same */
    size_t n_stops, n_banned, longest;
    char *held; /* [capacity] */
    size_t n_held, capacity;
    bool is_banned; /* what was found last is a banned string */
} pith_stop_text;

/* max_chunk: largest size of a push. */
pith_status pith_stop_text_init(pith_stop_text *text, const char *const *stops, size_t n_stops,
                                size_t max_chunk, pith_error *error);
/* Strings that are banned, too: before the first push. */
pith_status pith_stop_text_ban(pith_stop_text *text, const char *const *banned, size_t n_banned,
                               size_t max_chunk, pith_error *error);
void pith_stop_text_deinit(pith_stop_text *text);
/* Appends a chunk. Returns the bytes at the start of `held` that are no part of a string, and sets
 * *found when one follows them, and is_banned; a stop string where both end at once. The caller
 * takes the bytes, then calls pith_stop_text_drop. */
size_t pith_stop_text_push(pith_stop_text *text, const char *chunk, size_t size, bool *found);
void pith_stop_text_drop(pith_stop_text *text, size_t n);
/* Bytes at the start of `held` in which no banned string can begin any more. */
size_t pith_stop_text_settled(const pith_stop_text *text);

/* ---- Chat templates (prompt.c, turn_end.c) ---- */

/* Sets bos_token and eos_token in context as far as the model knows them (it may be NULL). */
pith_status pith_prompt_compose(const pith_model *model, const pith_template *tpl, json_t *context,
                                int64_t now, pith_rendered *out, pith_error *error);
/* Appends the ids of the text from byte `from` on: from 0, with BOS as the vocabulary asks. */
pith_status pith_prompt_encode(const pith_model *model, const pith_rendered *rendered, size_t from,
                               pith_ids *ids, pith_error *error);
/* The control token that the model's chat template puts after a reply; -1 when it does not show. */
int32_t pith_turn_end_find(const pith_model *model);

/* ---- Conversations that outgrow the context (conversation.c, summary.c) ---- */

/* pith_conversation_fit: sets other messages in context where they do not fit; not on failure. */
pith_status pith_conversation_shorten(pith_session *session, json_t *context,
                                      const pith_conversation_options *options,
                                      pith_conversation_info *out, pith_error *error);

/* ---- Constrained output (model_trie.c) ---- */

/* The model's vocabulary for a matcher (sample/grammar.h): made when first asked for, kept with the
 * model. Any thread may ask. */
pith_status pith_model_get_trie(const pith_model *model, const struct pith_token_trie **out,
                                pith_error *error);
/* Before pith_model_free, when nobody asks any more. */
void pith_model_drop_trie(pith_model *model);
/* The id of a text that is one token as a whole, control tokens included; -1: it is not. */
int32_t pith_model_find_token(const pith_model *model, pith_span text);

#endif
