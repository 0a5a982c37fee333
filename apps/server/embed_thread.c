/* SPDX-License-Identifier: Apache-2.0
 * The thread that makes vectors with a loaded model, one text after another. Jobs take turns: one
 * with many texts goes back to the end of the queue when it had its time and others wait.
 *
 * Invariant: engine and session are used by this thread alone, but for a cancel, which is sent
 * under the lock while the session exists and aims at the job that runs: one that hits the next job
 * by being late is seen by that job's client being there, and its text is computed again.
 * Its steps are made beside those of replies: the system shares the processors between both. */
#include "base/clock.h"
#include "base/memory.h"
#include "server/embed_job.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

struct pith_embed_thread {
    pith_served *served;
    pith_server *server;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    pith_embed_job *first, *last, *running;
    int n_queued;
    bool stop;
    pith_engine *engine;
    pith_session *session;
};

/* ---- One job ---- */

/* To length 1; a vector of zeros stays. false: a value is no number. */
static bool normalise(float *vector, size_t n) {
    double square = 0;
    for (size_t i = 0; i < n; i++) square += (double)vector[i] * (double)vector[i];
    if (!isfinite(square)) return false;
    double scale = square > 0 ? 1 / sqrt(square) : 1;
    for (size_t i = 0; i < n; i++) vector[i] = (float)((double)vector[i] * scale);
    return true;
}

static bool is_unwanted(pith_embed_thread *t, const pith_embed_job *job, pith_error *error) {
    pthread_mutex_lock(&t->lock);
    bool stops = t->stop;
    pthread_mutex_unlock(&t->lock);
    if (stops)
        pith_fail(error, PITH_ERROR_CANCELLED, "the server is being stopped");
    else if (pith_exchange_is_gone(job->exchange))
        pith_fail(error, PITH_ERROR_CANCELLED, "the client left");
    else
        return false;
    if (!stops) atomic_fetch_add(&t->server->counts.cancelled, 1);
    return true;
}

static pith_status make_vector(pith_embed_thread *t, const pith_embed_job *job, size_t at,
                               pith_error *error) {
    float *vector = job->vectors + at * job->width;
    const pith_embed_text *text = &job->texts[at];
    pith_status status;
    do {
        if (is_unwanted(t, job, error)) return error->status;
        status =
            pith_session_embed(t->session, text->ids, text->n, PITH_POOLING_AUTO, vector, error);
    } while (status == PITH_ERROR_CANCELLED);
    if (status != PITH_OK || normalise(vector, job->width)) return status;
    return pith_fail(error, PITH_ERROR_INTERNAL,
                     "the vector of text %zu has values that are no numbers: the model's weights "
                     "are damaged",
                     at);
}

static bool open_engine(pith_embed_thread *t, pith_error *error) {
    pith_engine *engine = NULL;
    pith_session *session = NULL;
    if (t->session) return true;
    if (pith_served_open_embeddings(t->served, &engine, &session, error) != PITH_OK) return false;
    pthread_mutex_lock(&t->lock);
    t->engine = engine;
    t->session = session;
    pthread_mutex_unlock(&t->lock);
    return true;
}

/* Under the lock. */
static void append(pith_embed_thread *t, pith_embed_job *job) {
    job->next = NULL;
    if (t->last)
        t->last->next = job;
    else
        t->first = job;
    t->last = job;
    t->n_queued++;
    atomic_fetch_add(&t->server->counts.queued, 1);
}

/* The turn of a job is over. true: it waits for its next one. */
static bool end_turn(pith_embed_thread *t, pith_embed_job *job, bool is_over) {
    pthread_mutex_lock(&t->lock);
    bool waits = !is_over && t->first;
    if (is_over || waits) {
        t->running = NULL;
        atomic_fetch_sub(&t->server->counts.running, 1);
    }
    if (waits) append(t, job);
    pthread_mutex_unlock(&t->lock);
    return waits;
}

static void run(pith_embed_thread *t, pith_embed_job *job) {
    enum { TURN_NS = 100000000 };
    pith_error error = {0};
    uint64_t begun = pith_clock_ns(), turn = begun;
    bool ok = open_engine(t, &error);
    while (ok && job->n_done < job->n_texts) {
        ok = make_vector(t, job, job->n_done, &error) == PITH_OK;
        if (!ok || ++job->n_done == job->n_texts || pith_clock_ns() - turn < TURN_NS) continue;
        turn = pith_clock_ns();
        if (!end_turn(t, job, false)) continue;
        atomic_fetch_add(&t->server->counts.prompt_us, (turn - begun) / 1000);
        return;
    }
    end_turn(t, job, true);
    atomic_fetch_add(&t->server->counts.replies, 1);
    if (ok) atomic_fetch_add(&t->server->counts.prompt_tokens, job->n_tokens);
    atomic_fetch_add(&t->server->counts.prompt_us, (pith_clock_ns() - begun) / 1000);
    if (ok) {
        job->answer(job);
    } else {
        const pith_http_error what = pith_http_error_of(&error);
        pith_exchange_fail(job->exchange, &what);
    }
    pith_embed_job_free(job);
}

/* ---- The loop ---- */

/* NULL: the thread is to end, and nothing waits. */
static pith_embed_job *take(pith_embed_thread *t) {
    pthread_mutex_lock(&t->lock);
    while (!t->first && !t->stop) pthread_cond_wait(&t->changed, &t->lock);
    pith_embed_job *job = t->first;
    if (job) {
        t->first = job->next;
        if (!t->first) t->last = NULL;
        t->n_queued--;
        t->running = job;
        atomic_fetch_sub(&t->server->counts.queued, 1);
        atomic_fetch_add(&t->server->counts.running, 1);
    }
    pthread_mutex_unlock(&t->lock);
    return job;
}

static void *work(void *user) {
    pith_embed_thread *t = user;
    for (pith_embed_job *job; (job = take(t));) run(t, job);
    pthread_mutex_lock(&t->lock);
    pith_session *session = t->session;
    t->session = NULL;
    pthread_mutex_unlock(&t->lock);
    pith_session_free(session);
    pith_engine_free(t->engine);
    return NULL;
}

bool pith_embed_thread_push(pith_embed_thread *t, pith_embed_job *job) {
    pthread_mutex_lock(&t->lock);
    bool ok = !t->stop && t->n_queued <= t->server->options->n_queue;
    if (ok) {
        append(t, job);
        pthread_cond_signal(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
    return ok;
}

void pith_embed_thread_tick(pith_embed_thread *t) {
    pthread_mutex_lock(&t->lock);
    if (t->running && t->session && (t->stop || pith_exchange_is_gone(t->running->exchange)))
        pith_session_cancel(t->session);
    pthread_mutex_unlock(&t->lock);
}

pith_embed_thread *pith_embed_thread_new(pith_served *served, pith_error *error) {
    pith_embed_thread *t = pith_alloc_zero(1, sizeof *t);
    if (!t) {
        pith_fail_memory(error, "a thread for embeddings", sizeof *t);
        return NULL;
    }
    t->served = served;
    t->server = pith_served_server(served);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    if (pthread_create(&t->thread, NULL, work, t) == 0) return t;
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    pith_free(t);
    pith_fail(error, PITH_ERROR_MEMORY, "the system has no more threads for us");
    return NULL;
}

void pith_embed_thread_stop(pith_embed_thread *t) {
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    if (t->session) pith_session_cancel(t->session);
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

void pith_embed_thread_free(pith_embed_thread *t) {
    if (!t) return;
    pith_embed_thread_stop(t);
    pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    pith_free(t);
}
