/* SPDX-License-Identifier: Apache-2.0
 * What may still be chosen while one token is drawn, and the stages that narrow it down.
 *
 *   logits --filter, bias, penalties--> row --first cut--> list (id order) --other cuts--> list
 *          --last weighing, draw--> id              (no cut at all: drawn from the row)
 *
 * A choice is the whole row until the first cut, a list of candidates afterwards; every stage works
 * on both. Temperature multiplies a factor, `beta`, and touches no logit: a stage sees
 * beta * logit, whatever the order. The first cut finds a limit that what it keeps does not go
 * below (logit_row.h); only what reaches it becomes a candidate.
 * Read next: choice.c (row or list), stage.c (each stage), mirostat.c, sampler.c (the chain). */
#ifndef PITH_SAMPLE_CHOICE_H
#define PITH_SAMPLE_CHOICE_H

#include "sample/history.h"
#include "sample/logit_row.h"

typedef struct pith_choice {
    pith_logit_row row;
    bool is_list;         /* what is left is in list, else in row */
    pith_candidate *list; /* [n] of room for all; scratch while it is a row */
    size_t n;             /* candidates in the list */
    double beta;          /* 1 / temperature, 1 before */
    double total;         /* of the weights, since the last weighing */
    double *weights;      /* [n] of the list; room for all */
    float *row_weights;   /* [row.n] of the row; scratch while it is a list */
    double *sums;         /* [row.n_block] of row_weights */
    pith_selector *selector;
} pith_choice;

/* Only the row is made when `is_greedy`: no stage but pith_stage_penalties, pith_stage_dry and
 * changes of the row are allowed then. false without memory; pith_choice_deinit is allowed then. */
bool pith_choice_init(pith_choice *choice, int32_t n_vocab, bool is_greedy);
void pith_choice_deinit(pith_choice *choice);
void pith_choice_open(pith_choice *choice, const float *logits);

/* The largest logit, at most FLT_MAX; -inf when nothing is left (then none of what follows is
 * allowed). A row is scanned where it changed. */
float pith_choice_max(pith_choice *choice);
/* Fills the weights, exp(beta * (logit - max)), and total. */
void pith_choice_weigh(pith_choice *choice);
/* Keeps logits >= limit; always the largest. */
void pith_choice_keep(pith_choice *choice, double limit);
/* Makes a list of the row's logits >= limit with weights from the last weighing. */
void pith_choice_gather_weighed(pith_choice *choice, double limit);
/* Keeps the first of the largest. */
void pith_choice_keep_best(pith_choice *choice);
/* Numbers left, and over the last weighing: the mean of beta * (logit - max), <= 0. */
double pith_choice_count(pith_choice *choice);
double pith_choice_slope(pith_choice *choice);
/* uniform in [0, 1); after a weighing. */
int32_t pith_choice_draw(const pith_choice *choice, double uniform);
/* What the draw gives an id, after a weighing. */
double pith_choice_probability(const pith_choice *choice, int32_t id);
/* The ids that the draw may give, in order, with their probabilities: writes at most capacity,
 * returns how many there are. */
size_t pith_choice_list(const pith_choice *choice, int32_t *ids, double *probabilities,
                        size_t capacity);
/* A double as the nearest float that is finite. */
float pith_float_of(double x);

/* ---- Stages (stage.c); definitions in pith.h ---- */

void pith_stage_bias(pith_choice *choice, const pith_logit_bias *biases, size_t n);
void pith_stage_penalties(pith_choice *choice, const pith_penalty *penalty);
void pith_stage_dry(pith_choice *choice, pith_dry *dry, const pith_history *history);
void pith_stage_top_n_sigma(pith_choice *choice, double n);
void pith_stage_top_k(pith_choice *choice, size_t k);
void pith_stage_typical(pith_choice *choice, double p);
void pith_stage_top_p(pith_choice *choice, double p);
void pith_stage_min_p(pith_choice *choice, double p);
void pith_stage_xtc(pith_choice *choice, double threshold);
void pith_stage_temperature(pith_choice *choice, double temperature, double range, double exponent);

/* ---- Mirostat (mirostat.c): the cut before the draw, steered by what was drawn ---- */

/* version 1 or 2; mu: the surprise aimed at, in bits, twice tau at first. */
void pith_mirostat_cut(pith_choice *choice, int32_t version, double mu);
/* mu after a token of this probability was drawn. */
double pith_mirostat_observe(double mu, double probability, double tau, double eta);

#endif
