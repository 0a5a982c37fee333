/* SPDX-License-Identifier: Apache-2.0
 * The parts of `pith run`: options and prompt (run.c), one reply (run_reply.c), several together
 * (run_choices.c). */
#ifndef PITH_APPS_PITH_RUN_PARTS_H
#define PITH_APPS_PITH_RUN_PARTS_H

#include "pith/reply_option.h"

enum { PITH_RUN_MAX_CHOICES = 64 };

typedef struct pith_run_options {
    pith_cli_model model;
    pith_cli_sampler sampler;
    bool raw, json, stats, ignore_end, show_control, parse_special, no_record;
    int32_t max_tokens, n_logprobs; /* -1: no log-probabilities */
    const char *system, *file, *stop;
    pith_cli_draft draft;
    pith_cli_grammar grammar;
    pith_cli_tools tools;
    int overflow;
    int32_t n_keep, n_choices; /* 0: one reply */
} pith_run_options;

/* What is made of one reply while it is made. */
typedef struct pith_run_output {
    bool streaming;
    int failure; /* errno of the write after which stdout is gone; 0: none */
    pith_buffer text;
    pith_buffer ids; /* int32_t, of the tokens made */
    pith_cli_progress progress;
    const pith_model *model;
    json_t *logprobs;      /* NULL: not asked for */
    pith_message *message; /* of tools; NULL: the text goes out as it is */
    bool lacks_memory;
} pith_run_output;

typedef struct pith_run_state {
    pith_model *model;
    pith_engine *engine;
    pith_session *session;
    pith_sampler *sampler;
    pith_grammar *grammar;
    json_t *messages; /* that the prompt is made of; NULL: it is plain text */
    int32_t *ids;     /* [n_ids] of the prompt */
    size_t n_ids;
    size_t shared; /* of them, those that other prompts begin with too; 0: unknown */
    pith_conversation_info shorter;
    pith_generation made;
    pith_run_output output;
} pith_run_state;

/* Overflow as --overflow numbers it: behind the library's own, what this program does. */
enum { PITH_RUN_SUMMARISE = PITH_OVERFLOW_TRUNCATE_MIDDLE + 1 };

/* What the options ask of a reply whose texts go to output. */
pith_generate_options pith_run_generate_options(const pith_run_options *o, const pith_run_state *s,
                                                pith_run_output *output);
void pith_run_output_open(const pith_run_options *o, const pith_run_state *s,
                          pith_run_output *output);
void pith_run_output_close(pith_run_output *output);
/* What is told of a reply that failed, or whose output did. Exit code, or -1. */
int pith_run_check(const pith_run_state *s, const pith_run_output *output, pith_status status,
                   const pith_error *error);
/* Notes on stderr: what was dropped, cached, summarised. */
void pith_run_print_notes(const pith_run_options *o, const pith_run_state *s,
                          const pith_generation *made);
/* The JSON of a reply as pith_cli_reply_json has it. */
json_t *pith_run_reply_json(const pith_run_options *o, const pith_run_state *s,
                            const pith_run_output *output, const pith_generation *made);

/* Makes and prints the reply, or all choices. Exit code. */
int pith_run_reply(const pith_run_options *o, pith_run_state *s);
int pith_run_choices(const pith_run_options *o, pith_run_state *s);

#endif
