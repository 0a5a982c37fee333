/* SPDX-License-Identifier: Apache-2.0
 * A reply being made, and the parts it puts into steps (private to the engine room).
 *
 *   READING --prompt is in KV--> MAKING --stopped, failed--> DONE
 *
 * While MAKING, the last token of the session is drawn but not computed. A step computes it and
 * drafts behind it, whose rows are drawn from in order:
 *
 *   ids    [ ... last ] d1 d2 d3           row 0 draws a; a == d1: row 1 draws b; b != d2: done
 *   drawn               a  b               KV is cut behind d1
 *
 * So what is drawn never depends on drafts, whatever the sampler. Read next: reply.c (one reply),
 * schedule.c (all of them), draft.h. */
#ifndef PITH_ENGINE_REPLY_H
#define PITH_ENGINE_REPLY_H

#include "engine/draft.h"
#include "engine/step.h"
#include "sample/grammar.h"

typedef enum pith_reply_phase {
    PITH_REPLY_READING,
    PITH_REPLY_MAKING,
    PITH_REPLY_DONE
} pith_reply_phase;

typedef struct pith_drawn_logprobs pith_drawn_logprobs;

struct pith_reply {
    pith_session *session;
    pith_sampler *sampler;
    pith_generate_options options; /* what they point to is borrowed */
    pith_generation out;
    pith_reply_phase phase;
    size_t held;       /* tokens that the session had in common with the prompt */
    size_t first_fast; /* as in pith_part */
    pith_stop_text stops;
    pith_drafter drafter;
    int32_t drawn[PITH_DRAFT_MAX + 1];
    pith_drawn_logprobs *logprobs; /* [PITH_DRAFT_MAX + 1] of drawn; NULL: nobody asked */
    uint32_t n_drawn, n_drafts;    /* of the step being run */
    pith_matcher *matcher;         /* of the grammar; NULL: none */
    pith_token_filter filter;      /* of the matcher */
    bool is_stuck;                 /* the grammar allows no token */
    uint32_t max_drafts;
    bool is_closed;                      /* no more rows of this step are drawn from */
    uint64_t started, read, first, last; /* nanoseconds; 0: not yet */
    pith_status status;                  /* PITH_OK, or why it failed */
    pith_error error;
};

/* The rows of the coming step, at most n_rows (>= 1); n 0 when it wants none. */
pith_part pith_reply_part(pith_reply *reply, uint32_t n_rows);
/* What a step that ended means: tokens are told, the phase may change. Also for a prompt that was
 * there already. */
void pith_reply_after(pith_reply *reply, uint32_t n_rows);
/* Rows of its prompt that are still to be computed. */
size_t pith_reply_unread(const pith_reply *reply);
/* Ends it before its time: a stop, or a failure. */
void pith_reply_end(pith_reply *reply, pith_stop stop);
void pith_reply_fail(pith_reply *reply, pith_status status, const pith_error *error);

/* ---- Log-probabilities (logprobs.c) ---- */

/* Room for them where the options ask for them. */
pith_status pith_logprobs_prepare(pith_reply *reply, pith_error *error);
/* Of the token that becomes drawn[n_drawn]. */
void pith_logprobs_note(pith_reply *reply, const float *logits, int32_t id);
/* Tells those of drawn[i]. */
void pith_logprobs_tell(const pith_reply *reply, uint32_t i);

/* ---- Overflow (overflow.c) ---- */

/* First tokens that stay. */
size_t pith_overflow_keep(size_t n_ctx, const pith_generate_options *options);
/* Takes the older half behind `keep` out of ids [n_ids]; returns how many, 0: there is nothing. */
size_t pith_overflow_drop(int32_t *ids, size_t n_ids, size_t keep);
/* What stays of a prompt that is longer than the context: writes fewer than n_ctx ids. */
size_t pith_overflow_shorten(size_t n_ctx, const pith_generate_options *options,
                             pith_id_span prompt, int32_t *ids);

#endif
