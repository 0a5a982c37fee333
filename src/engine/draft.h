/* SPDX-License-Identifier: Apache-2.0
 * Speculation: guessing the next tokens so that one step computes several (private to the engine
 * room). Sources of guesses: the text itself (draft_text.c), a smaller model (draft_model.c).
 *
 * How many guesses are worth a step is decided from what was measured while running: the time of
 * steps by rows (pace.h) and how often guesses of a kind were right. The account keeps the gain
 * honest: what speculation has lost may never pass a hundredth of the time spent, so the text as a
 * source makes no reply slower than that. Not in the account is that a draft model has to read the
 * prompt too, once, before its first guess: it pays off only in replies that are long enough. */
#ifndef PITH_ENGINE_DRAFT_H
#define PITH_ENGINE_DRAFT_H

#include "engine/engine.h"

enum {
    PITH_DRAFT_MAX = 15,       /* guesses a step */
    PITH_DRAFT_KINDS = 16,     /* kinds of guesses, by how much speaks for them */
    PITH_DRAFT_MODEL_KIND = 8, /* the first of a model's */
    PITH_DRAFT_LEAST = 3       /* tokens that must repeat before the text is a source */
};

/* Positions of every run of PITH_DRAFT_LEAST tokens. */
typedef struct pith_draft_text {
    int32_t *head;     /* [n_head] latest position after such a run; -1: none */
    int32_t *previous; /* [n_ctx] the one before, by position */
    uint32_t n_head;   /* a power of two */
    size_t n_known;    /* positions that are in */
} pith_draft_text;

typedef struct pith_drafter {
    pith_draft mode;     /* OFF: nothing below is used */
    pith_session *model; /* of a smaller model with the same vocabulary, or NULL */
    pith_draft_text text;
    /* Guesses of a kind that were right and that were looked at; old ones fade. */
    double right[PITH_DRAFT_KINDS], looked[PITH_DRAFT_KINDS];
    uint8_t kinds[PITH_DRAFT_MAX]; /* of the guesses being checked */
    double guess_ns;               /* of one guess of the model; 0: it has not read the prompt */
    double made_ns;                /* that this step's guesses took */
    double balance_ns, spent_ns;   /* won by speculation; time of all steps */
} pith_drafter;

/* false without memory: no speculation then. */
bool pith_draft_text_init(pith_draft_text *text, size_t n_ctx);
void pith_draft_text_deinit(pith_draft_text *text);
void pith_draft_text_clear(pith_draft_text *text); /* knows nothing any more */
/* Takes ids [n_ids], of which the first n_known are known already. */
void pith_draft_text_learn(pith_draft_text *text, const int32_t *ids, size_t n_ids);
/* What followed the longest earlier occurrence of the end of ids: writes at most `most` guesses,
 * returns their number and how many tokens matched. */
uint32_t pith_draft_text_guess(const pith_draft_text *text, const int32_t *ids, size_t n_ids,
                               uint32_t most, int32_t *guesses, uint32_t *n_matched);

/* Share of guesses of a kind that were right. Kinds 0 .. 6 are matches in the text, by length;
 * those from PITH_DRAFT_MODEL_KIND on are a model's, by the probability it gives. */
double pith_draft_share(const pith_drafter *drafter, uint32_t kind);
/* Guesses of the model behind ids [n_ids], at most `most` and only while another one is worth its
 * time: fills kinds, guess_ns and, but for the first time, made_ns. 0 also when the model cannot
 * follow (its context is full). */
uint32_t pith_draft_model_guess(pith_drafter *drafter, const pith_pace *pace, const int32_t *ids,
                                size_t n_ids, uint32_t most, int32_t *guesses);
/* The draft's tokens are the model's, id by id. */
pith_status pith_draft_check(const pith_model *model, const pith_model *draft, pith_error *error);

/* Guesses worth computing behind ids [n_ids], at most `most`; 0: none. */
uint32_t pith_draft_guess(pith_drafter *drafter, const pith_pace *pace, const int32_t *ids,
                          size_t n_ids, uint32_t most, int32_t *guesses);
/* A step with n_guesses took ns and gave n_drawn tokens (the last of them is no guess). alone:
 * nothing else was in the step, so its time says what speculation won. */
void pith_draft_learn(pith_drafter *drafter, const pith_pace *pace, uint32_t n_guesses,
                      uint32_t n_drawn, double ns, bool alone);

#endif
