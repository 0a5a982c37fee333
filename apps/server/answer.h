/* SPDX-License-Identifier: Apache-2.0
 * An answer of generated text on its way to its client: what the answers of all protocols have in
 * common. A protocol gives functions that read its request and shape its answer:
 *
 *   body -> read -> job -> events -> stream_event ..., stream_end     with a stream
 *                             \----> fold --------> whole             without
 *
 * Invariant: a whole answer is made of the same events as a stream.
 * Read next: openai_chat.c, a protocol from end to end. */
#ifndef PITH_APPS_SERVER_ANSWER_H
#define PITH_APPS_SERVER_ANSWER_H

#include "server/job.h"

typedef struct pith_answer_protocol pith_answer_protocol;

/* What was asked for. A protocol's own struct may begin with it. */
typedef struct pith_answer_request {
    pith_job_request job;
    const char *model; /* NULL: the first */
    json_t *context;   /* owned: of job.context */
    char *grammar;     /* owned: of job.grammar */
    bool stream, include_usage;
    bool tells_progress;        /* the protocol's stream_event gets what is read of the prompt */
    const char *needs_template; /* the field that a template alone heeds; NULL: none */
    bool only_loads; /* nothing is to be made: `loaded` answers once the model is there */
    bool keeps;      /* with keep_seconds: pith_served_keep */
    int64_t keep_seconds;
} pith_answer_request;

/* The answer. A protocol's own struct may begin with it. */
typedef struct pith_answer {
    const pith_answer_protocol *protocol;
    pith_exchange *exchange;
    char id[64];
    char *model; /* as the answer names it */
    json_int_t created;
    uint64_t loaded_ns; /* when the model was there */
    bool stream, include_usage, tells_progress, has_begun;
    json_t *held;   /* a chunk that waits for the account, or NULL */
    pith_fold fold; /* without stream, or where the protocol folds streams too */
} pith_answer;

struct pith_answer_protocol {
    size_t request_bytes, answer_bytes; /* sizeof its own structs */
    const char *id_prefix, *stream_type;
    bool folds_streams;
    /* false: the fields say what is wrong */
    bool (*read)(pith_fields *fields, pith_server *server, pith_answer_request *request);
    void (*release)(pith_answer_request *request); /* of its own fields; may be NULL */
    /* Takes over what it needs; false: without memory; may be NULL, as deinit. JSON is never shared
     * between the request and the answer, which other threads have. */
    bool (*init)(pith_answer *answer, pith_answer_request *request);
    void (*deinit)(pith_answer *answer);
    void (*stream_event)(pith_answer *answer, const pith_job_event *event);
    void (*stream_end)(pith_answer *answer, const pith_job_account *account);
    /* the last words of a stream that fails; NULL: data: with the error's body */
    void (*stream_failed)(pith_answer *answer, const pith_http_error *what);
    json_t *(*whole)(pith_answer *answer, const pith_job_account *account);
    json_t *(*loaded)(pith_answer *answer); /* of only_loads */
};

/* A handler: reads the body, leases the model, starts the job; refuses what is wrong. */
void pith_answer_handle(pith_exchange *exchange, const pith_answer_protocol *protocol);
/* Begins the stream unless it has begun. */
void pith_answer_begin(pith_answer *answer);
/* The answer's model as JSON text. */
json_t *pith_answer_model(const pith_answer *answer);
/* The reply is held to a JSON schema, which the field at `path` (static) gave; NULL: any object. */
void pith_answer_hold_to_schema(pith_answer_request *request, const json_t *schema,
                                const char *path);

#endif
