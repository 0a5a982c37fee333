/* SPDX-License-Identifier: Apache-2.0
 * The loop of a loaded model: admit, drop what nobody waits for, step, tell what is done.
 *
 *   queue: [job 3: choices 0 1][job 4: 0]      slots: [job 1: 0][job 2: 0][free][free]
 *            clients take turns, each with its requests in order; the later choices of a job
 *            follow once its prompt is read, and share it
 *
 * A run gets the free session that holds most of its prompt and loses least of what it holds: a
 * conversation that goes on finds its own tokens, a new one takes the session that is worth least,
 * and beginnings that sessions have in common are shared by the engine anyhow.
 * Invariant: events are sent from here alone; the lock is held for the queue, never for a step. */
#include "server/engine_thread.h"

#include "base/clock.h"
#include "base/memory.h"

#include <pthread.h>
#include <string.h>

enum {
    MOST_SLOTS = 256,
    MOST_CLIENTS = 64, /* whose turns are remembered */
    MOST_LOOKS = 4096  /* of the queue at once: what is behind waits in its order */
};

typedef struct slot {
    pith_session *session;
    pith_run *run; /* NULL: free */
} slot;

struct pith_engine_thread {
    pith_served *served;
    pith_server *server;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pith_run *first, *last; /* the queue */
    int n_first, limit;     /* of the queue: first choices, which are requests that wait */
    atomic_bool stop;
    slot slots[MOST_SLOTS];
    int n_slots, n_running;
    struct {
        uint64_t client, turn;
    } turns[MOST_CLIENTS];
    uint64_t n_turns;
};

/* ---- The queue ---- */

static void append(pith_engine_thread *t, pith_run *run) {
    run->next = NULL;
    if (t->last)
        t->last->next = run;
    else
        t->first = run;
    t->last = run;
    if (run->choice == 0) t->n_first++;
    atomic_fetch_add(&t->server->counts.queued, 1);
}

bool pith_engine_thread_push(pith_engine_thread *t, pith_job *job) {
    pthread_mutex_lock(&t->lock);
    /* what goes to a free session does not wait */
    bool ok = !t->stop && t->n_first < t->limit + t->n_slots - t->n_running;
    for (int i = 0; ok && i < job->n_runs; i++) append(t, &job->runs[i]);
    if (ok) pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return ok;
}

/* Whether its turn has come: later choices wait until the first one has read the prompt. */
static bool may_begin(const pith_run *run) {
    if (run->choice == 0 || run->job->is_abandoned) return true;
    const pith_run *leader = &run->job->runs[0];
    pith_generation made = {0};
    if (leader->is_over) return true;
    return leader->reply && pith_reply_result(leader->reply, &made, NULL) == PITH_OK &&
           made.n_predicted > 0;
}

/* When the client got a session last, in turns; 0: not that is remembered. */
static uint64_t last_turn(const pith_engine_thread *t, uint64_t client) {
    for (size_t i = 0; i < MOST_CLIENTS; i++)
        if (t->turns[i].turn > 0 && t->turns[i].client == client) return t->turns[i].turn;
    return 0;
}

static void note_turn(pith_engine_thread *t, uint64_t client) {
    size_t at = 0;
    for (size_t i = 0; i < MOST_CLIENTS; i++) {
        if (t->turns[i].turn > 0 && t->turns[i].client == client) {
            at = i;
            break;
        }
        if (t->turns[i].turn < t->turns[at].turn) at = i; /* the one that was longest ago */
    }
    t->turns[at].client = client;
    t->turns[at].turn = ++t->n_turns;
}

/* Whether a waiting run comes before another: clients take turns, each with its requests in order.
 * The later choices of a job go with its first. */
static bool comes_before(const pith_engine_thread *t, const pith_run *a, const pith_run *b) {
    bool a_goes_on = a->choice > 0, b_goes_on = b->choice > 0;
    if (a_goes_on != b_goes_on) return a_goes_on;
    return last_turn(t, a->job->client) < last_turn(t, b->job->client);
}

/* The run whose turn it is, or that is to be dropped, taken out of the queue; NULL: none. */
static pith_run *take(pith_engine_thread *t, bool only_dropped) {
    pith_run *found = NULL, *before_found = NULL, *before = NULL;
    int n = 0;
    pthread_mutex_lock(&t->lock);
    for (pith_run *run = t->first; run && n < MOST_LOOKS; before = run, run = run->next, n++) {
        bool fits = only_dropped ? run->job->is_abandoned : may_begin(run);
        if (only_dropped) n = 0;
        if (!fits || (found && !comes_before(t, run, found))) continue;
        found = run;
        before_found = before;
        if (only_dropped || run->job->is_abandoned) break;
    }
    if (found) {
        if (before_found)
            before_found->next = found->next;
        else
            t->first = found->next;
        if (t->last == found) t->last = before_found;
        if (found->choice == 0) t->n_first--;
        atomic_fetch_sub(&t->server->counts.queued, 1);
    }
    pthread_mutex_unlock(&t->lock);
    return found;
}

/* ---- Runs ---- */

static void add_account(pith_engine_thread *t, pith_run *run, const pith_generation *made) {
    pith_job_account *a = &run->job->account;
    pith_server_counts *c = &t->server->counts;
    if (run->choice == 0) {
        a->n_cached = made->n_cached;
        a->prompt_ms = made->prompt_ms;
        a->ttft_ms = made->ttft_ms;
        a->cache_source = pith_cache_source_text(made->cache_source);
    }
    a->n_predicted += made->n_predicted;
    a->stop = made->stop;
    a->n_reasoning += run->n_reasoning;
    a->n_drafted += made->n_drafted;
    a->n_draft_accepted += made->n_draft_accepted;
    if (made->predicted_ms > a->predicted_ms) a->predicted_ms = made->predicted_ms;
    atomic_fetch_add(&c->prompt_tokens, made->n_prompt);
    atomic_fetch_add(&c->cached_tokens, made->n_cached);
    atomic_fetch_add(&c->predicted_tokens, made->n_predicted);
    atomic_fetch_add(&c->drafted_tokens, made->n_drafted);
    atomic_fetch_add(&c->accepted_tokens, made->n_draft_accepted);
    atomic_fetch_add(&c->prompt_us, (uint64_t)(made->prompt_ms * 1000));
    atomic_fetch_add(&c->predicted_us, (uint64_t)(made->predicted_ms * 1000));
}

static void end_job(pith_engine_thread *t, pith_job *job) {
    job->account.n_prompt = job->n_ids;
    atomic_fetch_add(&t->server->counts.replies, 1);
    job->listener.on_end(job->listener.user, job->failed ? &job->error : NULL, &job->account);
    pith_job_free(job);
}

/* The run is over, whatever it came to. */
static void end_run(pith_engine_thread *t, pith_run *run) {
    pith_job *job = run->job;
    if (run->slot >= 0) {
        t->slots[run->slot].run = NULL;
        pthread_mutex_lock(&t->lock);
        t->n_running--;
        pthread_mutex_unlock(&t->lock);
        atomic_fetch_sub(&t->server->counts.running, 1);
    }
    pith_reply_free(run->reply);
    run->reply = NULL;
    run->is_over = true;
    if (++job->n_over == job->n_runs) end_job(t, job);
}

static void fail_run(pith_engine_thread *t, pith_run *run, const pith_error *error) {
    pith_job *job = run->job;
    if (!job->failed) job->error = *error;
    job->failed = job->is_abandoned = true;
    end_run(t, run);
}

static void finish_run(pith_engine_thread *t, pith_run *run) {
    pith_generation made = {0};
    pith_error error = {0};
    pith_status status = pith_reply_result(run->reply, &made, &error);
    if (run->failed) status = pith_fail_memory(&error, "a reply's text", 0);
    if (status != PITH_OK) {
        fail_run(t, run, &error);
        return;
    }
    add_account(t, run, &made);
    if (pith_run_finish(run, &made, &error))
        end_run(t, run);
    else
        fail_run(t, run, &error);
}

/* ---- Sessions ---- */

static size_t common_prefix(const pith_session *session, const pith_job *job) {
    if (!pith_loras_are_of(&job->loras, session)) return 0; /* it will forget all */
    const int32_t *held = pith_session_ids(session);
    size_t n = pith_session_length(session), same = 0;
    if (n > job->n_ids) n = job->n_ids;
    while (same < n && held[same] == job->ids[same]) same++;
    return same;
}

/* The free slot that gains most and loses least; -1: none is free. */
static int choose_slot(const pith_engine_thread *t, const pith_job *job) {
    int best = -1;
    int64_t best_worth = 0;
    for (int i = 0; i < t->n_slots; i++) {
        if (t->slots[i].run) continue;
        int64_t same = (int64_t)common_prefix(t->slots[i].session, job);
        int64_t lost = (int64_t)pith_session_length(t->slots[i].session) - same;
        if (best >= 0 && same - lost <= best_worth) continue;
        best = i;
        best_worth = same - lost;
    }
    return best;
}

static double ms_left(const pith_job *job) {
    return ((double)job->deadline_ns - (double)pith_clock_ns()) / 1e6;
}

static void begin_run(pith_engine_thread *t, pith_run *run, int at) {
    pith_job *job = run->job;
    pith_generate_options options = job->options;
    pith_error error = {0};
    options.on_text = pith_run_on_text;
    options.user = run;
    if (job->wants_logprobs) options.on_logprobs = pith_run_on_logprobs;
    options.logprobs_user = run;
    if (job->wants_progress && run->choice == 0) options.on_prompt = pith_run_on_prompt;
    options.prompt_user = run;
    if (run->choice == 0) job->account.queued_ms = (double)(pith_clock_ns() - job->queued_ns) / 1e6;
    run->slot = at;
    job->has_begun = true;
    run->session = t->slots[at].session;
    t->slots[at].run = run;
    pthread_mutex_lock(&t->lock);
    t->n_running++;
    pthread_mutex_unlock(&t->lock);
    atomic_fetch_add(&t->server->counts.running, 1);
    if (run->choice == 0) note_turn(t, job->client);
    if (job->deadline_ns > 0) options.deadline_ms = ms_left(job) > 0.001 ? ms_left(job) : 0.001;
    if (pith_loras_apply(&job->loras, t->slots[at].session, &error) != PITH_OK ||
        pith_reply_new(t->slots[at].session, run->sampler, job->ids, job->n_ids, &options,
                       &run->reply, &error) != PITH_OK)
        fail_run(t, run, &error);
}

/* ---- The loop ---- */

static void admit(pith_engine_thread *t) {
    while (t->n_running < t->n_slots) {
        pith_run *run = take(t, false);
        if (!run) return;
        if (run->job->is_abandoned)
            end_run(t, run);
        else
            begin_run(t, run, choose_slot(t, run->job));
    }
}

static void abandon(pith_engine_thread *t, pith_job *job) {
    static const pith_error stopping = {PITH_ERROR_CANCELLED, "the server is being stopped"};
    static const pith_error left = {PITH_ERROR_CANCELLED, "the client left"};
    static const pith_error late = {PITH_ERROR_CANCELLED,
                                    "deadline_ms passed while the request waited"};
    if (job->is_abandoned) return;
    if (t->stop) {
        job->error = stopping;
    } else if (job->deadline_ns > 0 && !job->has_begun && ms_left(job) <= 0) {
        job->error = late;
    } else if (job->listener.is_gone(job->listener.user)) {
        job->error = left;
        atomic_fetch_add(&t->server->counts.cancelled, 1);
    } else {
        return;
    }
    job->is_abandoned = job->failed = true;
}

/* Ends what nobody waits for, running or queued, and everything when the thread is to stop. */
static void drop_abandoned(pith_engine_thread *t) {
    pthread_mutex_lock(&t->lock);
    const pith_job *asked = NULL; /* choices of a job follow each other, and one question will do */
    for (pith_run *run = t->first; run; asked = run->job, run = run->next)
        if (run->job != asked) abandon(t, run->job);
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->n_slots; i++) {
        pith_run *run = t->slots[i].run;
        if (!run) continue;
        abandon(t, run->job);
        if (run->job->is_abandoned) end_run(t, run);
    }
    for (pith_run *run; (run = take(t, true));) end_run(t, run);
}

static void wait_for_work(pith_engine_thread *t) {
    pthread_mutex_lock(&t->lock);
    while (!t->stop && !t->first && t->n_running == 0) pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

static void step(pith_engine_thread *t) {
    pith_error error = {0};
    pith_status status = pith_engine_step(pith_served_engine(t->served), NULL, &error);
    for (int i = 0; i < t->n_slots; i++) {
        pith_run *run = t->slots[i].run;
        if (!run) continue;
        if (pith_reply_is_done(run->reply))
            finish_run(t, run);
        else if (status != PITH_OK)
            fail_run(t, run, &error);
    }
}

static bool open_sessions(pith_engine_thread *t, pith_error *error) {
    pith_engine *engine = pith_served_engine(t->served);
    int n = pith_engine_describe(engine).n_sessions;
    for (int i = 0; i < n && i < MOST_SLOTS; i++) {
        if (pith_session_new(engine, &t->slots[i].session, error) != PITH_OK) return false;
        t->n_slots++;
    }
    return true;
}

static void end_loop(pith_engine_thread *t) {
    pthread_mutex_lock(&t->lock);
    t->stop = true; /* nothing comes any more */
    pthread_mutex_unlock(&t->lock);
    drop_abandoned(t);
    for (int i = 0; i < t->n_slots; i++) pith_session_free(t->slots[i].session);
    pith_served_close(t->served);
}

static void *work(void *user) {
    pith_engine_thread *t = user;
    pith_error error = {0};
    bool is_open = pith_served_open(t->served, &error);
    if (!is_open || !open_sessions(t, &error)) {
        if (is_open) end_loop(t);
        pith_served_fail(t->served, &error);
        return NULL;
    }
    pith_served_ready(t->served);
    while (!t->stop) {
        wait_for_work(t);
        drop_abandoned(t);
        admit(t);
        if (t->n_running > 0) step(t);
    }
    end_loop(t);
    return NULL;
}

pith_status pith_engine_thread_new(pith_served *served, pith_engine_thread **out,
                                   pith_error *error) {
    pith_engine_thread *t = pith_alloc_zero(1, sizeof *t);
    *out = NULL;
    if (!t) return pith_fail_memory(error, "an engine's thread", sizeof *t);
    t->served = served;
    t->server = pith_served_server(served);
    t->limit = t->server->options->n_queue;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    if (pthread_create(&t->thread, NULL, work, t) == 0) {
        *out = t;
        return PITH_OK;
    }
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    pith_free(t);
    return pith_fail(error, PITH_ERROR_MEMORY, "the system has no more threads for us");
}

void pith_engine_thread_stop(pith_engine_thread *t) {
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

void pith_engine_thread_free(pith_engine_thread *t) {
    if (!t) return;
    pith_engine_thread_stop(t);
    pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    pith_free(t);
}
