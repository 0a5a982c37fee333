/* SPDX-License-Identifier: Apache-2.0
 * Options of what makes replies: guesses, preferences, adapters, grammars, tools; and what is told
 * of a reply. Each group is one file. */
#ifndef PITH_APPS_PITH_REPLY_OPTION_H
#define PITH_APPS_PITH_REPLY_OPTION_H

#include "pith/cli.h"
#include "pith/shorten.h"

/* ---- Guesses (draft_option.c) ---- */

typedef struct pith_cli_draft {
    const char *source; /* as given; NULL: auto */
    pith_draft mode;
    pith_model *model; /* and the rest: NULL without a draft model */
    pith_engine *engine;
    pith_session *session;
} pith_cli_draft;
pith_cli_option pith_cli_draft_option(pith_cli_draft *draft);
/* Whose tokens are guessed. */
typedef struct pith_cli_draft_target {
    const pith_model *model;
    const pith_engine *engine;
    const pith_session *session;
} pith_cli_draft_target;
/* Whether a model that is named can be had, before another is loaded. Exit code, or -1. */
int pith_cli_check_draft(const pith_cli_draft *draft);
/* Settles the mode and opens the draft model where one is named. -1, or the exit code. */
int pith_cli_draft_open(const pith_cli_command *command, const pith_cli_model *values,
                        const pith_cli_draft_target *target, pith_cli_draft *draft);
void pith_cli_draft_close(pith_cli_draft *draft);
/* Whether a draft model is named. */
bool pith_cli_draft_is_model(const pith_cli_draft *draft);

/* ---- Preferences (prefer_option.c): --prefer ---- */

/* Fills what was not given with what --prefer chooses. draft: NULL where nothing is guessed. Exit
 * code, or -1. */
int pith_cli_prefer(pith_cli_model *values, pith_cli_draft *draft);
/* Takes back what the model does not allow; true where something was. */
bool pith_cli_prefer_check(pith_cli_model *values, const pith_model *model);
/* The same, then tells the choice on stderr and in prefer_text. Call it before the engine is
 * made. */
void pith_cli_prefer_tell(pith_cli_model *values, const pith_model *model);

/* ---- Adapters (adapter_option.c): --lora --control-vector ---- */
enum { PITH_CLI_ADAPTER_OPTIONS = 2 };
void pith_cli_adapter_options(pith_cli_model *values,
                              pith_cli_option out[PITH_CLI_ADAPTER_OPTIONS]);

/* "FILE:SCALE:FIRST-LAST" taken apart. */
typedef struct pith_cli_adapter_spec {
    size_t path_size; /* of the text: what is in front of the numbers */
    float scale;      /* 1 where it is not given */
    int32_t first, last;
} pith_cli_adapter_spec;
/* with_layers: FIRST-LAST may follow. What does not read as numbers belongs to the path. */
pith_cli_adapter_spec pith_cli_parse_adapter(const char *text, bool with_layers);

typedef struct pith_cli_adapters {
    pith_adapter *items[PITH_SESSION_MAX_ADAPTERS];
    float scales[PITH_SESSION_MAX_ADAPTERS];
    size_t n;
    int32_t rank;   /* that an engine needs room for; 0: none */
    uint64_t bytes; /* in memory */
} pith_cli_adapters;
/* Whether the files are there and the numbers right, which takes no model. Exit code, or -1. */
int pith_cli_check_adapters(const pith_cli_command *command, const pith_cli_model *values);
/* What the adapters will take in memory, as their files are large. */
uint64_t pith_cli_adapter_bytes(const pith_cli_model *values);
/* Opens what was checked. Exit code, or -1. Closed in every case. */
int pith_cli_open_adapters(const pith_cli_model *values, const pith_model *model,
                           pith_cli_adapters *out);
void pith_cli_close_adapters(pith_cli_adapters *adapters);
/* One line for each adapter of a session, "adapter NAME: ...", into a list of JSON strings. */
void pith_cli_note_adapters(const pith_session *session, json_t *notes);

/* ---- Grammars (grammar_option.c): --grammar --schema --regex --choices ---- */
typedef struct pith_cli_grammar {
    const char *gbnf_file, *schema_file, *regex, *choices;
    pith_buffer text; /* of the one that is given, until the grammar is made */
} pith_cli_grammar;
enum { PITH_CLI_GRAMMAR_OPTIONS = 4 };
void pith_cli_grammar_options(pith_cli_grammar *values,
                              pith_cli_option out[PITH_CLI_GRAMMAR_OPTIONS]);
/* Before a model is loaded: *out is NULL where none is given, and where it names tokens, which are
 * the model's. Exit code, or -1. */
int pith_cli_read_grammar(const pith_cli_command *command, pith_cli_grammar *values,
                          pith_grammar **out);
/* Makes one of what was read, where *out is still NULL. Exit code, or -1. Read or not, it ends with
 * this call or with pith_cli_close_grammar. */
int pith_cli_finish_grammar(pith_cli_grammar *values, const pith_model *model, pith_grammar **out);
void pith_cli_close_grammar(pith_cli_grammar *values);

/* ---- Tools (tool_option.c): --tools --tool-choice --parallel-tools ---- */
typedef struct pith_cli_tools {
    const char *file, *choice; /* as given */
    bool parallel;
    json_t *list; /* NULL: no tools */
    pith_tool_options options;
    pith_tool_format format;
    pith_message *message; /* the reply taken apart */
} pith_cli_tools;
enum { PITH_CLI_TOOL_OPTIONS = 3 };
void pith_cli_tool_options(pith_cli_tools *values, pith_cli_option out[PITH_CLI_TOOL_OPTIONS]);
/* Reads the list. Exit code, or -1. Closed in every case. */
int pith_cli_read_tools(const pith_cli_command *command, pith_cli_tools *values);
/* The grammar and the message of a reply to the prompt, where there are tools. Exit code, or -1. */
int pith_cli_open_tools(pith_cli_tools *values, const pith_model *model, const pith_prompt *prompt,
                        pith_grammar **grammar);
/* [{"type": "function", "function": {"name", "arguments": TEXT}}], as in an OpenAI answer. */
json_t *pith_cli_tool_calls(const pith_message *message);
/* {"name", "arguments"}, one a line, behind what the reply says. */
void pith_cli_print_calls(const pith_message *message);
void pith_cli_close_tools(pith_cli_tools *values);

/* ---- What is told of a reply (reply_json.c) ---- */
typedef struct pith_cli_reply {
    const pith_model *model;
    const pith_engine *engine;
    const pith_session *session;
    const int32_t *prompt_ids; /* [made->n_prompt] */
    const int32_t *ids;        /* [made->n_predicted] */
    pith_span text;
    const pith_message *message; /* of tools; NULL: none were given */
    const pith_generation *made;
    const pith_conversation_info *shorter; /* what was summarised before; NULL: nothing */
    const char *prefer;                    /* what --prefer chose; "": nothing */
    json_t *logprobs;                      /* released; NULL: not asked for */
} pith_cli_reply;
json_t *pith_cli_reply_json(const pith_cli_reply *reply);
/* {"text", "ids", "stop_reason", "predicted_n", "predicted_ms"} of one of several replies. */
json_t *pith_cli_choice_json(pith_span text, const int32_t *ids, const pith_generation *made);
/* Appends {"id", "text", "logprob", "top"} of a token, as pith_generate_options.on_logprobs tells
 * it. */
void pith_cli_add_logprobs(json_t *list, const pith_model *model, pith_logprob own,
                           const pith_logprob *top, size_t n_top);
/* Whether the reply goes round in circles: its last tokens are one passage, over and over. A
 * sentence with what helps, or "". */
void pith_cli_describe_loop(const int32_t *ids, size_t n, char *text, size_t capacity);
/* Times and speeds in one line on stderr, guesses in another. */
void pith_cli_print_stats(const pith_generation *made);

#endif
