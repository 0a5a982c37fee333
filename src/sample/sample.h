/* SPDX-License-Identifier: Apache-2.0
 * Logits -> next token. What the stages do and in which order is said in pith.h at
 * pith_sampler_options. One sampler serves one sequence and allocates nothing after new.
 * Read next: sampler.c (the chain), choice.h (what is left at each stage), stage.c, history.h
 * (penalties, DRY), log_softmax.c (log-probabilities). */
#ifndef PITH_SAMPLE_SAMPLE_H
#define PITH_SAMPLE_SAMPLE_H

#include "base/rng.h"
#include "base/status.h"
#include "base/text.h"

/* pith_sampler, its options and pith_logprob are the public types of pith.h. */

enum {                                   /* published limits */
       PITH_SAMPLE_MAX_WINDOW = 1 << 24, /* of penalty_window and dry_window, tokens */
       PITH_SAMPLE_MAX_REWIND = PITH_SAMPLER_MAX_REWIND,
       PITH_SAMPLE_MAX_UNDO = 64,
       PITH_SAMPLE_KEPT =
           PITH_SAMPLE_MAX_REWIND + PITH_SAMPLE_MAX_UNDO, /* tokens before the window */
       PITH_SAMPLE_MAX_BIASES = 1 << 20,
       PITH_SAMPLE_MAX_BREAKERS = 64,
       PITH_SAMPLE_MAX_BREAKER = 64 /* bytes */
};

/* Checks the options (ranges, NaN) and allocates everything that sampling from n_vocab logits
 * needs. Refuses DRY with sequence breakers, which needs to know the text of the tokens. */
pith_status pith_sample_new(int32_t n_vocab, const pith_sampler_options *options,
                            pith_sampler **out, pith_error *error);
/* The same with the text that each id stands for, [n_vocab], or NULL; read here only. */
pith_status pith_sample_new_with_pieces(const pith_span *pieces, int32_t n_vocab,
                                        const pith_sampler_options *options, pith_sampler **out,
                                        pith_error *error);
/* Whether these options want pieces. */
bool pith_sample_wants_pieces(const pith_sampler_options *options);
/* The same options and memory of tokens, with random numbers of its own. */
pith_status pith_sample_clone(const pith_sampler *sampler, uint64_t seed, pith_sampler **out,
                              pith_error *error);
void pith_sample_free(pith_sampler *sampler); /* NULL is allowed */
/* Size of the logits it was made for. */
int32_t pith_sample_n_vocab(const pith_sampler *sampler);

/* Draws from logits [n_vocab] and remembers the token. Cannot fail, allocates nothing. Id 0 when no
 * logit is above -inf. */
int32_t pith_sample_next(pith_sampler *sampler, const float *logits);
/* What may come next, asked while drawing: one id, or all of them as bits (id % 32 of word id / 32,
 * [ceil(n_vocab / 32)], valid until the next token is accepted). */
typedef struct pith_token_filter {
    void *user;
    bool (*allows)(void *user, int32_t id);
    const uint32_t *(*mask)(void *user);
    /* The one id that is allowed; -1: there are several, or none, or it does not know. May be NULL.
     * What it says must depend on what may come alone, for it decides about random numbers. */
    int32_t (*only)(void *user);
} pith_token_filter;
/* As pith_sample_next from the ids that the filter allows, exactly as if the others had the logit
 * -inf; -1, and nothing is remembered, when no id with a logit above -inf is left. A greedy draw
 * asks for single ids, the likeliest first, before it asks for the mask; others ask for the mask.
 * Where the filter knows of one id only, that is taken without a look at the others and without a
 * random number. filter NULL: everything is allowed. */
int32_t pith_sample_next_of(pith_sampler *sampler, const float *logits,
                            const pith_token_filter *filter);
/* The distribution that pith_sample_next_of would draw from: ids in order with probabilities
 * above 0. Writes at most capacity of them, returns how many there are; 0 when nothing is left.
 * Nothing is drawn but XTC's coin, which is kept for the token that comes: the next draw, or the
 * next accept, is of this position. A token accepted after this moves mirostat as if it had been
 * drawn from this distribution. */
size_t pith_sample_distribution(pith_sampler *sampler, const float *logits,
                                const pith_token_filter *filter, int32_t *ids,
                                double *probabilities, size_t capacity);
/* Remembers tokens that were not drawn here; ids outside the vocabulary are ignored. */
void pith_sample_accept(pith_sampler *sampler, const int32_t *ids, size_t n_ids);
/* Forgets the last n tokens, drawn or accepted: penalties, DRY and mirostat are as they were before
 * them. Random numbers go on: what was taken back would otherwise decide what is drawn instead.
 * False, and nothing is changed, when there are fewer, or n is more than PITH_SAMPLE_MAX_REWIND
 * together with what was taken back since. */
bool pith_sample_rewind(pith_sampler *sampler, size_t n);
/* The same with the random numbers and XTC's coins given back: what is drawn next is what would
 * have been drawn without the last n tokens. For tokens that nobody wants, never for another
 * choice. At most PITH_SAMPLE_MAX_UNDO in a row. */
bool pith_sample_undo(pith_sampler *sampler, size_t n);

/* Log-probability of id (-inf outside 0 .. n-1 and for logits that are no number) in softmax(logits
 * [n]), to within 1e-9, and the n_top <= PITH_LOGPROBS_MAX likeliest ids, descending, of equal ones
 * the lower first. Returns how many of these there are. */
size_t pith_sample_logprobs(const float *logits, size_t n, int32_t id, double *logprob,
                            pith_logprob *top, size_t n_top);

#endif
