/* SPDX-License-Identifier: Apache-2.0
 * What runs measured, kept beside what was estimated: one small file for each machine, model and
 * setting in $PITH_HOME/fit. An estimate is corrected by what the runs before it showed.
 *
 *   pith fit   raw estimate * factor -> shown; the raw one is kept
 *   pith run   measured / (raw * factor) - 1 = the error; factor *= sqrt(1 + error)
 *              where memory's speed changes, the part of a decoding error that this explains does
 *              not count
 *
 * Nothing here fails: a folder that can't be written keeps no record, a broken file counts as none
 * and is replaced. */
#ifndef PITH_APPS_PITH_RECORD_H
#define PITH_APPS_PITH_RECORD_H

#include "pith/cli.h"

/* Errors are measured / estimated - 1. */
typedef struct pith_cli_record {
    bool has_estimate;
    pith_speed_model speed;             /* raw: without factors */
    uint64_t other_bytes;               /* raw: vocabulary and program */
    int32_t n_runs;                     /* 0: nothing was measured */
    double token_factor, prompt_factor; /* times that estimates are multiplied with */
    /* Times of a token at the fastest and the slowest that memory was seen, of the estimate's: a
     * run between them says nothing against it. Both 1 where memory is steady. */
    double token_fast, token_slow;
    double other_more;                              /* bytes that are added to other_bytes */
    double token_error, prompt_error, memory_error; /* of the last run; 0 where it told nothing */
    /* The last run: kept for an estimate that comes after it */
    int32_t n_prompt, prompt_depth, token_depth; /* n_prompt 0, token_depth -1: not measured */
    double prompt_ms, token_ms;
    double memory_more; /* bytes beyond weights, KV and workspace; 0: not measured */
} pith_cli_record;

/* What tells one record from another. */
typedef struct pith_cli_record_key {
    uint64_t content_key;                          /* 0: no record is kept */
    int32_t n_threads, decode_threads, step_limit; /* decode_threads 0: n_threads */
    int load;                                      /* pith_load */
    const char *kv_type;
} pith_cli_record_key;

/* Whether a run with these options is what an estimate is about: the usual contract and steps. */
bool pith_cli_record_is_for(const pith_cli_model *values);
/* The record of the key; without one all factors are 1. */
void pith_cli_record_load(const pith_cli_record_key *key, pith_cli_record *out);
/* Keeps a new estimate; a run that came before it now has its error and corrects it. */
void pith_cli_record_estimate(const pith_cli_record_key *key, const pith_fit *fit,
                              pith_cli_record *record);

/* What one run measured; counts of 0 leave a part out. */
typedef struct pith_cli_measure {
    const pith_model *model;
    const pith_engine *engine;
    int32_t n_prompt, prompt_depth; /* ids read, and those before them */
    double prompt_ms;
    int32_t n_token, token_depth; /* steps of one token, and where the middle one was */
    double token_ms;              /* of one */
    uint64_t peak_bytes;
} pith_cli_measure;
void pith_cli_record_run(const pith_cli_measure *measure);
/* The same for one reply. */
void pith_cli_record_reply(const pith_model *model, const pith_engine *engine,
                           const pith_generation *made);

#endif
