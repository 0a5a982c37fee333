/* SPDX-License-Identifier: Apache-2.0
 * Texts to vectors: what protocols ask for, and the thread of a loaded model that makes them. The
 * thread has an engine of its own (embeddings need other outputs than replies), made when the first
 * vector is wanted; it goes with the model.
 * Read next: embed_job.c (fields and texts), embed_thread.c. */
#ifndef PITH_APPS_SERVER_EMBED_JOB_H
#define PITH_APPS_SERVER_EMBED_JOB_H

#include "server/job.h"

enum { PITH_EMBED_MAX_TEXTS = 2048, PITH_EMBED_MAX_VALUES = 1 << 22 /* of all vectors */ };

typedef struct pith_embed_text {
    int32_t *ids; /* owned, [n] */
    size_t n;
} pith_embed_text;

typedef struct pith_embed_job pith_embed_job;
struct pith_embed_job {
    pith_served *served;
    pith_exchange *exchange; /* held: its client is asked for, and it is answered */
    pith_embed_text *texts;  /* [n_texts] */
    size_t n_texts, n_tokens;
    size_t width;
    float *vectors; /* [n_texts, width], each of length 1 once the job is done */
    uint64_t begun_ns;
    /* answers the exchange from what was made; the job is freed afterwards */
    void (*answer)(pith_embed_job *job);
    /* of the protocol; freed with the job */
    json_t *fields;
    size_t n_done;        /* texts whose vectors are made */
    pith_embed_job *next; /* in the queue */
};

typedef struct pith_embed_request {
    const char *model; /* NULL: the first */
    const char *param; /* the field that the texts come from, for errors */
    json_t *texts;     /* owned list of strings, or with takes_ids also of lists of ids */
    bool takes_ids, keeps;
    bool cuts;            /* a text that the context does not hold is cut instead of refused */
    int64_t keep_seconds; /* with keeps: pith_served_keep */
    int64_t dimensions;   /* 0: the model's */
    int64_t wanted_ctx;   /* tokens of context that were asked for; 0: the server's */
    bool has_query;       /* the first text is "query", those of `param` come after it */
    json_t *fields;       /* owned: the job's */
    void (*answer)(pith_embed_job *job);
} pith_embed_request;
/* Closes the fields of a body, and makes a job of the texts where nothing is wrong. Takes the body
 * over and what the request owns. The exchange is answered in any case. */
void pith_embed_start(pith_exchange *exchange, pith_fields *fields, json_t *body,
                      const pith_embed_request *request);
void pith_embed_job_free(pith_embed_job *job);
/* "input": a string, a list of strings, or with ids a list of ids or of such lists; as a new list.
 * NULL: the fields say what is wrong. */
json_t *pith_embed_read_input(pith_fields *fields, bool with_ids);
/* Appends "[0.1,...]". */
void pith_embed_write_vector(pith_buffer *out, const float *vector, size_t width);

/* ---- The thread (embed_thread.c) ---- */
/* NULL with a message. */
pith_embed_thread *pith_embed_thread_new(pith_served *served, pith_error *error);
/* Takes the job over; false: the queue is full, or the thread is stopping. */
bool pith_embed_thread_push(pith_embed_thread *thread, pith_embed_job *job);
/* Stops what nobody waits for any more. Call it a few times a second. */
void pith_embed_thread_tick(pith_embed_thread *thread);
/* Refuses what waits or runs. */
void pith_embed_thread_stop(pith_embed_thread *thread);
/* The same, and waits until the thread has ended. NULL is allowed. */
void pith_embed_thread_free(pith_embed_thread *thread);

#endif
