/* SPDX-License-Identifier: Apache-2.0
 * What a sampler remembers of the tokens before: the tokens themselves, their counts for the
 * penalties, and where text begins anew for DRY. All of it can be taken back token by token.
 *
 *   ids      [ .. o o o o w w w w w w ]        n_total tokens so far
 *   window                [ w w w w w w ]      what a stage looks at
 *   kept       [ o o o o ]                     comes back when tokens are taken back
 *
 * Read next: history.c, penalty.c, breaker.c, dry.c. */
#ifndef PITH_SAMPLE_HISTORY_H
#define PITH_SAMPLE_HISTORY_H

#include "sample/sample.h"

/* Token number t (from 0) is at t & (capacity - 1). */
typedef struct pith_history {
    int32_t *ids;      /* [capacity] */
    bool *ends;        /* [capacity] a sequence breaker ends in the token */
    size_t capacity;   /* a power of two, more than window + PITH_SAMPLE_KEPT */
    uint64_t n_total;  /* tokens accepted and not taken back */
    uint32_t n_rewind; /* how many can be taken back, up to PITH_SAMPLE_MAX_REWIND */
} pith_history;

/* window: the longest of the stages. false without memory; pith_history_deinit is allowed then. */
bool pith_history_init(pith_history *history, size_t window);
void pith_history_deinit(pith_history *history);
void pith_history_push(pith_history *history, int32_t id, bool ends);
void pith_history_pop(pith_history *history);
/* The token `back` places before the last (0: the last itself); back < n_total and within what is
 * kept. */
int32_t pith_history_at(const pith_history *history, uint64_t back);
/* Tokens at the end in which no sequence breaker ends, at most `limit`. */
size_t pith_history_since_break(const pith_history *history, size_t limit);

/* ---- Counts of the last tokens (penalty.c) ---- */

typedef struct pith_penalty {
    float repeat, frequency, presence; /* repeat 1: off; the others 0: off */
    int32_t window;                    /* tokens; 0: the stage is off */
    size_t n_distinct;                 /* ids that occur in the window */
    int32_t *distinct;                 /* [min(window, n_vocab)] these ids */
    int32_t *place;                    /* [n_vocab] index in distinct where count > 0 */
    int32_t *count;                    /* [n_vocab] occurrences in the window */
} pith_penalty;

/* false without memory; pith_penalty_deinit is allowed then. The three factors are set by the
 * caller. */
bool pith_penalty_init(pith_penalty *penalty, int32_t n_vocab, int32_t window);
void pith_penalty_deinit(pith_penalty *penalty);
/* The history's last token has just been added, or is about to be taken back. */
void pith_penalty_accept(pith_penalty *penalty, const pith_history *history);
void pith_penalty_take_back(pith_penalty *penalty, const pith_history *history);
/* The logit of a token that occurs `count` times in the window. */
double pith_penalty_apply(const pith_penalty *penalty, double logit, int32_t count);

/* ---- Sequence breakers (breaker.c) ---- */

/* Strings over the text of the tokens, that may lie across several of them. Most tokens touch none
 * of them or hold one whole; the bytes of those that touch one at a border are kept. */
typedef struct pith_breakers {
    size_t n, longest;                       /* strings; bytes of the longest */
    uint8_t sizes[PITH_SAMPLE_MAX_BREAKERS]; /* [n] bytes */
    char texts[PITH_SAMPLE_MAX_BREAKERS][PITH_SAMPLE_MAX_BREAKER]; /* [n] */
    uint32_t *whole;    /* bit id % 32 of word id / 32: a breaker lies whole in the token */
    size_t n_touching;  /* tokens that touch a longer breaker */
    int32_t *touching;  /* [n_touching] their ids, ascending */
    size_t *first_byte; /* [n_touching + 1] where their bytes begin */
    char *bytes;
    char tail[PITH_SAMPLE_MAX_BREAKER]; /* the end of the text so far, as far as it matters */
    size_t n_tail;
} pith_breakers;

/* pieces: [n_vocab]. The strings were checked. false without memory; pith_breakers_deinit is
 * allowed then. */
bool pith_breakers_init(pith_breakers *breakers, const pith_span *texts, size_t n,
                        const pith_span *pieces, int32_t n_vocab);
void pith_breakers_deinit(pith_breakers *breakers);
bool pith_breakers_copy(pith_breakers *out, const pith_breakers *from, int32_t n_vocab);
/* Whether a breaker ends in this token, which follows the text so far. */
bool pith_breakers_push(pith_breakers *breakers, int32_t id);
/* The text so far becomes that of the history. */
void pith_breakers_return(pith_breakers *breakers, const pith_history *history);
bool pith_breakers_is_whole(const pith_breakers *breakers, int32_t id);

/* ---- DRY (dry.c): "don't repeat yourself" ---- */

typedef struct pith_dry {
    double multiplier, base;
    int32_t allowed;  /* a repetition of this many tokens costs the multiplier */
    int32_t window;   /* tokens; 0: the stage is off */
    int32_t *text;    /* [window] scratch: the last tokens, backwards */
    int32_t *reach;   /* [window] scratch: how far the end of the text is repeated there */
    int32_t *longest; /* [n_vocab] 0 but while it is looked at */
    int32_t *found;   /* [window] tokens that would go on with a repetition */
    pith_breakers breakers;
} pith_dry;

bool pith_dry_init(pith_dry *dry, int32_t n_vocab, int32_t window);
void pith_dry_deinit(pith_dry *dry);
/* Fills found and, for each id in it, longest; returns how many. */
size_t pith_dry_find(pith_dry *dry, const pith_history *history);
/* What is subtracted from the logit of a token that repeats `length` tokens; finite. */
double pith_dry_penalty(const pith_dry *dry, int32_t length);

#endif
