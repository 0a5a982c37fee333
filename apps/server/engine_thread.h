/* SPDX-License-Identifier: Apache-2.0
 * The thread that owns a model's engine, its sessions and the replies being made, and the jobs that
 * it works on. Invariant: sessions and replies are touched by this thread alone; a cancel belongs
 * to a job, never to a session, so it cannot hit another request. */
#ifndef PITH_APPS_SERVER_ENGINE_THREAD_H
#define PITH_APPS_SERVER_ENGINE_THREAD_H

#include "server/job.h"

typedef struct pith_job pith_job;

/* One choice of a job. */
typedef struct pith_run {
    pith_job *job;
    int choice;
    pith_sampler *sampler;
    pith_reply *reply;           /* NULL: not begun, or over */
    int slot;                    /* session of the engine thread */
    const pith_session *session; /* that one's; NULL: not begun */
    pith_message *message;       /* takes the text apart; NULL: all of it is the answer */
    int n_calls;
    size_t n_made, n_reasoning; /* tokens told so far; of them, in thoughts */
    int n_silent;               /* tokens since the last event */
    bool failed;                /* memory was short */
    json_t *logprobs;           /* of tokens whose text did not come yet; NULL: none */
    bool is_over;
    struct pith_run *next; /* in the queue */
} pith_run;

struct pith_job {
    pith_served *served;
    pith_job_listener listener;
    int32_t *ids;
    size_t n_ids;
    pith_grammar *grammar;
    pith_lora_set loras;
    uint64_t client, deadline_ns;  /* whose turn it is; 0: no deadline */
    pith_generate_options options; /* without functions */
    char *stops[PITH_JOB_MAX_STOPS];
    bool wants_logprobs, wants_progress, single_call;
    pith_job_account account;
    pith_error error;
    bool has_begun;            /* a choice has got a session */
    bool failed, is_abandoned; /* the rest of its choices is left out */
    uint64_t queued_ns;
    int n_runs, n_over;
    pith_run runs[PITH_JOB_MAX_CHOICES];
};

/* Starts the thread, which loads the model first. */
pith_status pith_engine_thread_new(pith_served *served, pith_engine_thread **out,
                                   pith_error *error);
/* Cancels what runs or waits, and waits until the thread has ended. */
void pith_engine_thread_free(pith_engine_thread *thread);
/* The same without waiting. */
void pith_engine_thread_stop(pith_engine_thread *thread);
/* Takes the job over; false: the queue is full, or the thread is stopping. */
bool pith_engine_thread_push(pith_engine_thread *thread, pith_job *job);
void pith_job_free(pith_job *job);

/* The run's text was told (job.c): turns tokens into events. Non-zero ends the reply. */
int pith_run_on_text(void *user, int32_t id, const char *text, size_t size);
void pith_run_on_logprobs(void *user, int32_t id, double logprob, const pith_logprob *top,
                          size_t n_top);
int pith_run_on_prompt(void *user, double fraction);
/* Sends what was held back and FINISH; false: without memory. */
bool pith_run_finish(pith_run *run, const pith_generation *made, pith_error *error);

#endif
