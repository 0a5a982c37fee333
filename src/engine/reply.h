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
 * reply_text.c (what it tells), reply_ban.c, reply_forced.c, schedule.c (all of them), draft.h. */
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
typedef struct pith_bans pith_bans; /* reply_ban.c */

/* A token that was taken and is not told yet. Places are bytes of the reply's text. */
typedef struct pith_untold {
    int32_t id;
    size_t before; /* text that was there before it */
    size_t begin;  /* where its own bytes begin: behind those of a character that waits */
    size_t end;    /* of the text that it completes */
    char pending[4];
    uint8_t n_pending;
    bool started; /* with pending: the detokenizer before it */
} pith_untold;

enum {
    PITH_UNTOLD_MAX = 512 /* tokens that may wait for a banned string */
};
_Static_assert(PITH_DRAFT_MAX + 1 <= PITH_SAMPLE_MAX_UNDO, "what a step draws can be undone");
_Static_assert(PITH_UNTOLD_MAX + PITH_DRAFT_MAX < PITH_SAMPLE_MAX_REWIND, "and what is not told");

struct pith_reply {
    pith_session *session;
    pith_sampler *sampler;
    pith_generate_options options; /* what they point to is borrowed */
    pith_generation out;
    pith_reply_phase phase;
    size_t held;       /* tokens that the session had in common with the prompt */
    size_t n_fed;      /* tokens of the session that were read, not made */
    size_t first_fast; /* as in pith_part, of those that were read */
    size_t logits_at;  /* session->logits are those behind so many tokens */
    size_t n_fixed;    /* tokens of the session that cannot be taken back */
    pith_stop_text stops;
    pith_untold *untold; /* [n_slots] of token t of the reply at t % n_slots */
    size_t n_slots;      /* PITH_UNTOLD_MAX with banned strings, else 1 */
    size_t n_told;       /* tokens */
    size_t n_text,
        n_sent;      /* bytes of text that is made; that was told: the rest is in stops.held */
    pith_bans *bans; /* NULL: none */
    pith_drafter drafter;
    pith_ids encoded; /* scratch of reply_forced.c */
    int32_t drawn[PITH_DRAFT_MAX + 1];
    pith_drawn_logprobs *logprobs; /* [n_slots + PITH_DRAFT_MAX], as untold; NULL: nobody asked */
    uint32_t n_drawn, n_drafts;    /* of the step being run */
    pith_matcher *matcher;         /* of the grammar; NULL: none */
    pith_token_filter filter;      /* of the matcher */
    bool is_stuck;                 /* the grammar allows no token */
    bool is_numb;                  /* because no logit is a number */
    uint32_t max_drafts;
    bool is_closed;                      /* no more rows of this step are drawn from */
    uint64_t started, read, first, last; /* nanoseconds; 0: not yet */
    pith_status status;                  /* PITH_OK, or why it failed */
    pith_error error;
};

/* The rows of the coming step, 1 to n_rows. READING: only while rows are unread. */
pith_part pith_reply_part(pith_reply *reply, uint32_t n_rows);
/* What a step that ended means: tokens are told, the phase may change. Also for a prompt that was
 * there already. */
void pith_reply_after(pith_reply *reply, uint32_t n_rows);
/* Rows of its prompt that are still to be computed. */
size_t pith_reply_unread(const pith_reply *reply);
/* Ends it before its time: a stop, or a failure. */
void pith_reply_end(pith_reply *reply, pith_stop stop);
void pith_reply_fail(pith_reply *reply, pith_status status, const pith_error *error);

/* ---- Text (reply_text.c) ---- */

typedef enum pith_told {
    PITH_TOLD,      /* or waiting: the reply goes on */
    PITH_TOLD_STOP, /* a stop string, or on_text stopped it */
    PITH_TOLD_BACK  /* a banned string has been made */
} pith_told;

pith_status pith_text_prepare(pith_reply *reply, pith_error *error);
void pith_text_deinit(pith_reply *reply);
/* Takes the text of the session's last token, number n_predicted - 1 of the reply, and tells what
 * is settled by it. STOP sets *stop; BACK sets *back to the number of the token that the string
 * begins in. */
pith_told pith_text_push(pith_reply *reply, int32_t id, pith_stop *stop, size_t *back);
/* Number of the first token that can be taken back: it is not told, nor in front of a shift. */
size_t pith_text_first(const pith_reply *reply);
/* The text is as before token `back`, which is not told. */
void pith_text_return(pith_reply *reply, size_t back);
/* The reply ends: tells all that waits. */
void pith_text_finish(pith_reply *reply);

/* ---- Banned strings (reply_ban.c) ---- */

/* Room for them where the options ask for them. */
pith_status pith_bans_prepare(pith_reply *reply, pith_error *error);
void pith_bans_free(pith_bans *bans);
/* Whether tokens are banned at number `token` of the reply. */
bool pith_bans_are_at(const pith_reply *reply, size_t token);
/* What may be drawn next: of the grammar and not banned; NULL: anything. */
const pith_token_filter *pith_bans_filter(pith_reply *reply);
/* Tokens before n_told stay: what is banned there is of no use any more. */
void pith_bans_settle(pith_reply *reply);
/* Takes back the tokens of the reply from number `back` (>= n_told) on; nothing else that a step
 * drew may be left. KV is the caller's. ban: token `back` may not be drawn there again. False: the
 * reply has failed. */
bool pith_reply_return(pith_reply *reply, size_t back, bool ban);

/* ---- Forced text (reply_forced.c) ---- */

/* Fills drafter.forced: the tokens of the text that the grammar forces next, at most `most`. */
void pith_forced_find(pith_reply *reply, uint32_t most);

/* ---- Log-probabilities (logprobs.c) ---- */

/* Room for them where the options ask for them. */
pith_status pith_logprobs_prepare(pith_reply *reply, pith_error *error);
/* Of the token that becomes drawn[n_drawn]. */
void pith_logprobs_note(pith_reply *reply, const float *logits, int32_t id);
/* Tells those of token number `token` of the reply. */
void pith_logprobs_tell(const pith_reply *reply, size_t token, int32_t id);

/* ---- Overflow (overflow.c) ---- */

/* First tokens that stay. */
size_t pith_overflow_keep(size_t n_ctx, const pith_generate_options *options);
/* Takes the older half behind `keep` out of ids [n_ids]; returns how many, 0: there is nothing. */
size_t pith_overflow_drop(int32_t *ids, size_t n_ids, size_t keep);
/* What stays of a prompt that is longer than the context: writes fewer than n_ctx ids. */
size_t pith_overflow_shorten(size_t n_ctx, const pith_generate_options *options,
                             pith_id_span prompt, int32_t *ids);

#endif
