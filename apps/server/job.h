/* SPDX-License-Identifier: Apache-2.0
 * A request for text in neutral form, and what comes of it as events. Protocols fill a
 * pith_job_request and get events; a whole answer is the fold of the same events that a stream
 * sends (pith_fold below).
 *
 *   request -> pith_job_start -> [queue] -> engine thread: PROGRESS*
 *                                           (TEXT | REASONING | CALL | SILENCE)*
 *                                           FINISH for each choice, then on_end once
 *
 * Events come from the engine's thread, one at a time; handlers must not wait. */
#ifndef PITH_APPS_SERVER_JOB_H
#define PITH_APPS_SERVER_JOB_H

#include "server/adapter_pool.h"
#include "server/fields.h"
#include "server/model_pool.h"

/* Of a prompt that a rule sends upstream. */
#define PITH_JOB_ROUTED "routed"

enum { PITH_JOB_MAX_CHOICES = 16, PITH_JOB_MAX_STOPS = 16, PITH_JOB_MAX_BIASES = 1024 };
enum { PITH_JOB_SILENT_TOKENS = 32 /* that told nothing: SILENCE */ };

typedef enum pith_job_thinking {
    PITH_THINKING_ANY, /* the template decides */
    PITH_THINKING_WANTED,
    PITH_THINKING_UNWANTED
} pith_job_thinking;

typedef struct pith_job_request {
    /* one of three: what the chat template reads (messages, tools, ...), text, or ids */
    json_t *context; /* borrowed during pith_job_start */
    const char *text;
    size_t text_size;
    int32_t *ids; /* taken over */
    size_t n_ids;
    pith_sampler_options sampler; /* seed: of the first choice, counted up for the others */
    pith_logit_bias biases[PITH_JOB_MAX_BIASES];
    int32_t max_tokens;    /* 0: as many as the context holds */
    int32_t wanted_ctx;    /* tokens of context that were asked for; 0: any */
    const char *ctx_param; /* the field that did */
    const char *stops[PITH_JOB_MAX_STOPS];
    size_t n_stops;
    bool has_grammar;
    pith_grammar_kind grammar_kind;
    const char *grammar;      /* text, with has_grammar */
    const char *grammar_path; /* of the field it comes from, for errors */
    json_t *tools;            /* borrowed list that the reply may call, or NULL */
    pith_tool_choice tool_choice;
    const char *only_tool; /* the one that may be called; NULL: every one */
    bool wants_logprobs;
    int32_t n_logprobs; /* likeliest tokens beside each */
    int32_t n;          /* choices; 0: 1 */
    bool ignore_end;
    bool reads_reasoning, reads_calls; /* parts of the text become REASONING and CALL events */
    pith_job_thinking thinking;        /* refused where the template has no choice of it */
    const char *thinking_path;         /* the field that says so */
    bool single_call;                  /* the reply ends after one tool call */
    bool wants_progress;               /* PROGRESS and SILENCE as well */
    double deadline_ms;                /* from now on; 0: none */
    pith_lora_set loras;
    const char *user;    /* who asks, as the request says; may be NULL */
    uint64_t client;     /* whose turn it is: a hash */
    int32_t route_limit; /* tokens; a longer prompt is not started, code PITH_JOB_ROUTED; 0: none */
} pith_job_request;

typedef enum pith_job_event_kind {
    PITH_JOB_PROGRESS,
    PITH_JOB_TEXT,
    PITH_JOB_REASONING,
    PITH_JOB_CALL,
    PITH_JOB_SILENCE, /* tokens are made, but held back: of a call, for instance */
    PITH_JOB_FINISH
} pith_job_event_kind;

typedef enum pith_job_finish {
    PITH_FINISH_STOP,
    PITH_FINISH_LENGTH,
    PITH_FINISH_CALLS
} pith_job_finish;

typedef struct pith_job_event {
    pith_job_event_kind kind;
    int choice; /* 0 .. n - 1 */
    pith_span text;
    json_t *logprobs; /* borrowed list of tokens, or NULL: of TEXT */
    const char *name; /* of CALL; text is its arguments, a JSON object */
    int call;         /* its index in the choice */
    double progress;  /* 0..1 */
    size_t n_prompt, n_cached;
    pith_job_finish finish;
    pith_stop stop;
    const char *stop_text; /* of FINISH: the stop string that ended it, or NULL; the job's */
} pith_job_event;

/* Sums over the choices; the times are those of the longest. */
typedef struct pith_job_account {
    size_t n_prompt, n_cached, n_predicted, n_drafted, n_draft_accepted;
    size_t n_reasoning; /* of n_predicted, in thoughts */
    double prompt_ms, predicted_ms, ttft_ms, queued_ms;
    const char *cache_source, *device;
    pith_stop stop; /* of the last choice */
} pith_job_account;

typedef struct pith_job_listener {
    void (*on_event)(void *user, const pith_job_event *event);
    /* The last call; error NULL: all went well. */
    void (*on_end)(void *user, const pith_error *error, const pith_job_account *account);
    bool (*is_gone)(void *user); /* nobody waits for the answer any more; asked before each step */
    void *user;
} pith_job_listener;

/* Renders, tokenizes and compiles here, then queues. On failure nothing is called; *param names the
 * field that is at fault, or is NULL. PITH_ERROR_LIMIT with *is_busy: the queue is full. The job
 * holds a lease of its own. */
typedef struct pith_job_refusal {
    pith_error error;
    const char *param, *code;
    bool is_busy;
} pith_job_refusal;
bool pith_job_start(pith_served *served, pith_job_request *request,
                    const pith_job_listener *listener, pith_job_refusal *why);
/* Tokens that the request's prompt has. */
bool pith_job_count(pith_served *served, const pith_job_request *request, size_t *n,
                    pith_job_refusal *why);
/* Answers the exchange with why a job, of text or of vectors, could not be started. */
void pith_job_refuse(pith_exchange *exchange, const pith_job_refusal *why);

/* ---- Fields that protocols share (job_fields.c) ---- */
/* What every API has: temperature, top_p, top_k, min_p, seed. */
void pith_job_read_draw(pith_fields *fields, pith_server *server, pith_job_request *request);
/* temperature, top_p, top_k, min_p, frequency_penalty, presence_penalty, repeat_penalty, seed,
 * logit_bias, stop, n. What is absent gets the API's default: temperature 1, a seed of its own. */
void pith_job_read_sampling(pith_fields *fields, pith_server *server, pith_job_request *request);
/* A string or a list of them. */
void pith_job_read_stops(pith_fields *fields, const char *key, pith_job_request *request);
/* What all protocols have beyond their APIs: lora [{"id", "scale"}], deadline_ms. */
void pith_job_read_own(pith_fields *fields, pith_job_request *request);
/* The field, or a number that no other request had. */
void pith_job_read_seed(pith_fields *fields, pith_server *server, pith_job_request *request);
/* {"prompt_tokens", ...} and {"cache_n", ...}. */
json_t *pith_job_usage(const pith_job_account *account);
json_t *pith_job_timings(const pith_job_account *account);

/* ---- The whole answer ---- */
/* Parts of a choice in the order in which they came: of the same kind together. */
typedef struct pith_fold_part {
    pith_job_event_kind kind;         /* TEXT, REASONING or CALL */
    size_t from_logprobs, n_logprobs; /* of TEXT: in the choice's */
    size_t from, size; /* of CALL: from is its index; else bytes of the kind's text */
} pith_fold_part;
typedef struct pith_fold_choice {
    pith_buffer text, reasoning;
    json_t *logprobs, *calls; /* lists or NULL; calls: {"name", "arguments"} */
    pith_fold_part *parts;    /* [n_parts] */
    size_t n_parts, parts_capacity;
    pith_job_finish finish;
    pith_stop stop;
    const char *stop_text;
} pith_fold_choice;
typedef struct pith_fold {
    pith_fold_choice choices[PITH_JOB_MAX_CHOICES];
    int n;
    bool failed; /* memory was short */
} pith_fold;
void pith_fold_add(pith_fold *fold, const pith_job_event *event);
void pith_fold_deinit(pith_fold *fold);
/* The text of a part; of a call its arguments. */
pith_span pith_fold_text(const pith_fold_choice *choice, const pith_fold_part *part);
const char *pith_fold_call_name(const pith_fold_choice *choice, const pith_fold_part *part);

#endif
