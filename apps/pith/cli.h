/* SPDX-License-Identifier: Apache-2.0
 * What the commands of the program share: options, finding models, progress on stderr, JSON on
 * stdout, exit codes. One section a file.
 * Invariant: text goes to stdout and nothing else does; notes, progress and statistics go to
 * stderr. Whatever fails is one sentence `pith: ...` there and a code. Read next: main.c, run.c. */
#ifndef PITH_APPS_PITH_CLI_H
#define PITH_APPS_PITH_CLI_H

#include "base/text.h"

#include <jansson.h>
#include <pith.h>
#include <stdio.h>

enum { PITH_EXIT_OK = 0, PITH_EXIT_FAILURE = 1, PITH_EXIT_USAGE = 2 };

/* ---- Options (options.c) ---- */
typedef enum pith_cli_kind {
    PITH_CLI_FLAG,   /* bool *target */
    PITH_CLI_TEXT,   /* const char **target */
    PITH_CLI_INT,    /* int32_t *target, min..max */
    PITH_CLI_FLOAT,  /* float *target, min..max */
    PITH_CLI_SIZE,   /* uint64_t *target: 512M, 2G, bytes */
    PITH_CLI_SEED,   /* uint64_t *target */
    PITH_CLI_CHOICE, /* int *target: index into choices ("a|b|c") */
    PITH_CLI_LIST    /* pith_cli_list *target: may be given several times */
} pith_cli_kind;

enum { PITH_CLI_LIST_MAX = 256 };
typedef struct pith_cli_list {
    const char *items[PITH_CLI_LIST_MAX]; /* [n] */
    size_t n;
} pith_cli_list;

typedef struct pith_cli_option {
    const char *name; /* "threads": --threads */
    char letter;      /* 't': -t; 0: none */
    pith_cli_kind kind;
    void *target;
    const char *value; /* shown in --help: "N"; for CHOICE the choices */
    const char *help;  /* one sentence, the default included */
    double min, max;
} pith_cli_option;

typedef struct pith_cli_command {
    const char *usage;   /* "pith run -m MODEL [options] [PROMPT]" */
    const char *summary; /* one sentence */
    const pith_cli_option *options;
    size_t n_options;
    const char *more; /* text after the options or NULL */
} pith_cli_command;

/* Parses argv[1..]; words that are no options are collected in order in words (capacity argc).
 * Returns -1 to go on, or the exit code when --help was asked for or something is wrong (already
 * told). */
int pith_cli_parse(const pith_cli_command *command, int argc, char **argv, const char **words,
                   int *n_words);
/* The same for a command that takes options alone. */
int pith_cli_parse_alone(const pith_cli_command *command, int argc, char **argv);
/* "pith: TEXT" on stderr; returns PITH_EXIT_USAGE. */
int pith_cli_usage(const pith_cli_command *command, const char *format, ...) PITH_PRINTF(2, 3);
/* "pith: TEXT" on stderr; returns PITH_EXIT_FAILURE. */
int pith_cli_fail(const pith_error *error);
int pith_cli_fail_text(const char *format, ...) PITH_PRINTF(1, 2);

/* ---- Models (model_option.c) ---- */
typedef struct pith_cli_model {
    const char *model; /* -m */
    int load, kv;      /* choices */
    int precision;
    bool exact, force;
    int32_t n_ctx, n_threads, step_limit;
    int32_t n_ctx_wanted; /* where --ctx says nothing; 0: the model's, at most 4096 */
    uint64_t memory;
    pith_cli_list loras, controls; /* of pith_cli_adapter_options */
    bool embeds;                   /* an engine for embeddings */
    bool use_cache;                /* set by commands that have --cache */
    const char *cache;             /* as given; NULL: the default folder */
    int32_t n_sessions;            /* 0: 1 */
    int prefer;                    /* a pith_prefer */
    int32_t decode_threads;        /* 0: as many as threads, or as the machine's record says */
    bool kv_is_chosen;             /* kv comes from --prefer: the model may not allow it */
    char prefer_text[320];         /* what --prefer chose (pith_cli_prefer); "" without it */
} pith_cli_model;

enum { PITH_CLI_MODEL_OPTIONS = 11 };
/* The options that mean the same everywhere: -m --ctx --threads --load --memory --kv --exact
 * --precision --force --step --prefer. */
void pith_cli_model_options(pith_cli_model *values, pith_cli_option out[PITH_CLI_MODEL_OPTIONS]);
/* Path of a model given as path or as a name of `pith list` (find_model.c); NULL with a message in
 * *error. Caller frees with pith_free. */
char *pith_cli_find_model(const char *name, pith_error *error);
/* The folder of everything that pith keeps: "$PITH_HOME", else pith/ below the XDG cache. Caller
 * frees with pith_free; NULL without memory, and where the environment names no place. */
char *pith_cli_home_folder(void);
bool pith_cli_has_home(void);
/* What is to be said where there is none. */
#define PITH_CLI_NO_HOME "none of PITH_HOME, XDG_CACHE_HOME and HOME is set: set PITH_HOME"
/* models/ in it. Caller frees with pith_free; NULL as above. */
char *pith_cli_models_folder(void);
/* Opens what -m names, shows progress, prints the model's notes. Exit code, or -1 when *model is
 * open. */
int pith_cli_open_model(const pith_cli_command *command, const pith_cli_model *values,
                        bool vocab_only, pith_model **model);
/* n_ctx_wanted: the context where --ctx says nothing; 0: the model's, at most 4096. The session has
 * the adapters that were asked for. Exit code, or -1 when both are open. */
int pith_cli_open_engine(const pith_cli_model *values, const pith_model *model,
                         int32_t n_ctx_wanted, pith_engine **engine, pith_session **session);
/* Holds weights, KV and workspace together against --memory, before anything is loaded
 * (memory_plan.c). *load: how to load, where --load is auto. Exit code, or -1 to go on. */
int pith_cli_plan_memory(const pith_cli_model *values, const char *path, pith_load *load);

/* ---- Prompts on disk (cache_option.c): --cache DIR|off ---- */

pith_cli_option pith_cli_cache_option(pith_cli_model *values);
/* The folder that --cache means; released with pith_free. NULL: off, or without memory. */
char *pith_cli_cache_folder(const char *source);
/* Prints what is wrong with it, where something is. */
void pith_cli_cache_note(const pith_engine *engine);

/* ---- Sampling (sampler_option.c): --temp to --seed ---- */
typedef struct pith_cli_sampler {
    pith_sampler_options options;
    pith_cli_list breakers; /* of DRY; "none": none */
    pith_cli_list biases;   /* ID+B, TEXT-B, "TEXT"-inf */
    pith_cli_list banned;   /* strings: for pith_generate_options */
} pith_cli_sampler;
enum { PITH_CLI_SAMPLER_OPTIONS = 26 };
void pith_cli_sampler_options(pith_cli_sampler *values,
                              pith_cli_option out[PITH_CLI_SAMPLER_OPTIONS]);
/* What can be told without a model. Exit code, or -1. */
int pith_cli_check_sampler(const pith_cli_command *command, const pith_cli_sampler *values);
/* Exit code, or -1 when *sampler is made. */
int pith_cli_sampler_open(const pith_cli_command *command, const pith_cli_sampler *values,
                          const pith_model *model, pith_sampler **sampler);

/* ---- Progress (progress.c): a line on stderr for what takes longer than a second ---- */
typedef struct pith_cli_progress {
    const char *what; /* "reading the prompt" */
    uint64_t start_ns, shown_ns;
    bool shown, quiet;
} pith_cli_progress;
pith_cli_progress pith_cli_progress_start(const char *what);
int pith_cli_progress_step(void *user, double fraction); /* a pith_progress */
/* Clears the line; the progress is not shown again. Call it before anything else is printed. */
void pith_cli_progress_end(pith_cli_progress *progress);

/* ---- Output (cli_output.c) ---- */
/* Once, before any JSON is made: keeps in mind whether memory was denied to it. */
void pith_cli_json_watch(void);
/* Whether memory was denied to JSON since the last call: what was built then may lack members. */
bool pith_cli_json_failed(void);
/* Writes the JSON and a newline to stdout, releases it. Exit code. */
int pith_cli_print_json(json_t *json);
/* Appends {"role", "content"}; false without memory. */
bool pith_cli_add_message(json_t *messages, const char *role, pith_span text);
/* A JSON string even when the bytes are not UTF-8 (ill-formed bytes become U+FFFD). NULL without
 * memory. */
json_t *pith_cli_json_text(const char *text, size_t size);
json_t *pith_cli_json_string(const char *text); /* the same for a NUL-terminated text */
/* Sets a key that may be no UTF-8; the value is released. */
void pith_cli_json_set(json_t *object, const char *key, json_t *value);
void pith_cli_release_json(char *text); /* of json_dumps */
json_t *pith_cli_json_ids(const int32_t *ids, size_t n);
/* At most `limit` bytes of text that a file brought, on one line and without control characters,
 * so that it cannot steer the terminal. */
void pith_cli_print_clean(FILE *out, const char *text, size_t size, size_t limit);
/* Flushes stdout; a full disk or a closed pipe becomes a message. Exit code. */
int pith_cli_finish(void);

/* ---- Input (input.c) ---- */
/* Everything of a stream or file into *out; false with a message in error. limit in bytes. */
bool pith_cli_read_all(FILE *file, const char *name, size_t limit, pith_buffer *out,
                       pith_error *error);
/* "-" is standard input. */
bool pith_cli_read_file(const char *path, size_t limit, pith_buffer *out, pith_error *error);
/* The same without the byte order mark that some editors write in front of UTF-8. */
bool pith_cli_read_text(const char *path, size_t limit, pith_buffer *out, pith_error *error);
/* Ids of text, *n_ids of them, for pith_free; NULL with a message in error. */
int32_t *pith_cli_tokenize(const pith_model *model, const char *text, size_t size, unsigned flags,
                           size_t *n_ids, pith_error *error);
/* Renders {"messages", "add_generation_prompt"} with the model's template; NULL with a message. */
pith_prompt *pith_cli_render_chat(const pith_model *model, json_t *messages, pith_error *error);
/* The context for that and "tools" (NULL: without), for pith_cli_release_json; the prompt of it. */
char *pith_cli_context_json(json_t *messages, json_t *tools, pith_error *error);
pith_prompt *pith_cli_render_tools(const pith_model *model, json_t *messages, json_t *tools,
                                   pith_error *error);
/* How many of a prompt's ids any other prompt begins with that has the same system messages and
 * another user's text: those in front of the first user's text. 0: unknown, also where a user's
 * text is so long that prompts may share it too. messages: those that the prompt was rendered
 * from. */
size_t pith_cli_shared_ids(const pith_model *model, json_t *messages, const int32_t *ids,
                           size_t n_ids);
/* "1,2,3" -> ids. NULL with a message. Caller frees with pith_free. */
int32_t *pith_cli_parse_ids(const char *text, size_t size, size_t *n_ids, pith_error *error);

/* ---- The system (host.c): what differs between systems ---- */
/* The program's arguments in UTF-8 and standard streams that change no byte. */
void pith_cli_host_open(int *argc, char ***argv);
/* A variable of the environment in UTF-8; NULL when it is not set, empty, or memory is short. The
 * caller frees it with pith_free. */
char *pith_cli_variable(const char *name);
FILE *pith_cli_open_file(const char *path, const char *mode); /* fopen with a UTF-8 path */
/* 0 when the path may be read, else errno. Opens nothing, so that a pipe is not waited for. */
int pith_cli_try_read(const char *path);
/* Waits without using the processor. */
void pith_cli_sleep(int milliseconds);
/* Calls each(user, name) for everything in a folder until it returns false. 0 or errno. */
int pith_cli_each_name(const char *folder, bool (*each)(void *user, const char *name), void *user);
bool pith_cli_is_terminal(FILE *file);
bool pith_cli_is_device(const char *path); /* it exists and is neither a file nor a folder */
/* 0, also when the folder is there already, or errno. Makes only the last part of the path. */
int pith_cli_make_folder(const char *path);
/* Makes every part of the path. */
int pith_cli_make_folders(const char *path);
/* Puts a small file in the place of `path`, whole or not at all; does not wait for the disk. */
bool pith_cli_replace_file(const char *path, const char *data, size_t size);
void pith_cli_remove_file(const char *path);

/* ---- Interrupt (interrupt.c): Ctrl-C stops the running reply; a second one ends pith ---- */
void pith_cli_interrupt_watch(pith_session *session); /* NULL: back to the default */
/* The same for n replies that are made together. The array lives until the next call. */
void pith_cli_interrupt_watch_all(pith_session *const *sessions, size_t n);
/* The same for whatever asks the program to end: for work that has something to clear away. */
void pith_cli_end_watch(pith_session *session);
/* For work without a session: from now on the first Ctrl-C only makes pith_cli_interrupted true. */
void pith_cli_interrupt_count(bool on);
bool pith_cli_interrupted(void);
/* A file that was cut short while it is mapped becomes a sentence and exit code 1. */
void pith_cli_watch_faults(void);

/* ---- Commands: argv[0] is the command's name; the exit code is returned ---- */
int pith_command_run(int argc, char **argv);
int pith_command_chat(int argc, char **argv);
int pith_command_inspect(int argc, char **argv);
int pith_command_tokenize(int argc, char **argv);
int pith_command_template(int argc, char **argv);
int pith_command_logits(int argc, char **argv);
int pith_command_embed(int argc, char **argv);
int pith_command_bench(int argc, char **argv);
int pith_command_fit(int argc, char **argv);
int pith_command_list(int argc, char **argv);
int pith_command_pull(int argc, char **argv);
int pith_command_rm(int argc, char **argv);
int pith_command_show(int argc, char **argv);
int pith_command_cache(int argc, char **argv);
int pith_command_doctor(int argc, char **argv);
int pith_command_serve(int argc, char **argv);

#endif
