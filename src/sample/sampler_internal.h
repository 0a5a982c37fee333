/* SPDX-License-Identifier: Apache-2.0
 * The sampler's parts, and its options once they are checked (sampler_settings.c). */
#ifndef PITH_SAMPLE_SAMPLER_INTERNAL_H
#define PITH_SAMPLE_SAMPLER_INTERNAL_H

#include "sample/choice.h"

/* In the default order. */
typedef enum pith_stage {
    PITH_STAGE_PENALTIES,
    PITH_STAGE_DRY,
    PITH_STAGE_TOP_N_SIGMA,
    PITH_STAGE_TOP_K,
    PITH_STAGE_TYPICAL,
    PITH_STAGE_TOP_P,
    PITH_STAGE_MIN_P,
    PITH_STAGE_XTC,
    PITH_STAGE_TEMPERATURE,
    PITH_N_STAGES
} pith_stage;

typedef struct pith_sampler_settings {
    pith_sampler_options options; /* checked, defaults filled in; pointers are the caller's */
    pith_stage stages[PITH_N_STAGES];
    size_t n_stages; /* that do something, in order */
    bool is_greedy;  /* nothing but penalties and DRY, then the largest */
    bool penalises, uses_dry;
} pith_sampler_settings;

/* Refuses what is out of range by its name. */
pith_status pith_settings_read(const pith_sampler_options *given, int32_t n_vocab,
                               pith_sampler_settings *out, pith_error *error);
/* The sequence breakers of checked options, [PITH_SAMPLE_MAX_BREAKERS]; returns how many. */
size_t pith_settings_breakers(const pith_sampler_options *options, pith_span *texts);

/* What a draw changes that taking its token back leaves alone, and undoing it does not. */
typedef struct pith_sampler_luck {
    pith_rng rng;
    double coin;   /* XTC's, of the token that comes */
    bool has_coin; /* it was thrown */
} pith_sampler_luck;

struct pith_sampler {
    int32_t n_vocab;
    pith_sampler_settings settings; /* pointers NULL */
    pith_logit_bias *biases;        /* [settings.options.n_biases] */
    pith_history history;
    pith_penalty penalty;
    pith_dry dry;
    pith_choice choice;
    double mu;         /* mirostat's, in bits */
    double *mu_before; /* [PITH_SAMPLE_KEPT] mu before token t, at t % that; or NULL */
    pith_sampler_luck luck, luck_now; /* luck_now: as the running draw or accept found it */
    /* [n_undo] before the last tokens: of token t at t % PITH_SAMPLE_MAX_UNDO */
    pith_sampler_luck luck_before[PITH_SAMPLE_MAX_UNDO];
    uint32_t n_rewind_before[PITH_SAMPLE_MAX_UNDO]; /* history.n_rewind, the same */
    size_t n_undo;                                  /* tokens that can be undone */
    bool is_weighed; /* choice holds the distribution of the token that comes */
};

#endif
