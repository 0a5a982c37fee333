/* SPDX-License-Identifier: Apache-2.0
 * Models by name, and which of them are in memory.
 *
 *   ABSENT --lease--> LOADING --> READY --idle, or its memory is wanted--> ABSENT
 *                        \------> FAILED (the next lease tries again)
 *
 * Invariant: what all loaded models take together is below the ceiling: a load first takes out
 * models that nobody leases, the least recently used first, and waits while all are leased.
 * Requests whose model is not ready, or that would keep others waiting for room, are parked; every
 * change wakes all of them, and their handlers ask again. So no load starves behind a busy model.
 * Locks: `lock` covers everything here; engine threads are started and joined without it. */
#include "server/model_pool.h"

#include "base/clock.h"
#include "base/memory.h"
#include "server/engine_thread.h"
#include "server/exchange_state.h"

#include <string.h>

struct pith_served {
    pith_models *models;
    char *name, *path;
    bool is_first; /* of the models that the server was started with */
    bool was_ready;
    pith_served_state state;
    pith_error error; /* of the last failure */
    pith_engine_thread *thread;
    pith_model *model; /* and the engine: written by its thread before READY */
    pith_engine *engine;
    pith_model_info info;
    pith_engine_info engine_info;
    int n_leases;
    uint64_t used_ns, bytes; /* when it was given back last; what it takes, or is about to */
    _Atomic double progress;
};

struct pith_models {
    pith_server *server;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pith_served **items;
    size_t n;
    uint64_t limit, taken; /* bytes */
    int n_waiting;         /* loads that wait for room */
    pith_exchange *parked;
    atomic_bool is_cancelled;
};

/* ---- Names ---- */

static pith_served *add_model(pith_models *m, const char *name, const char *path) {
    pith_served **grown = pith_realloc(m->items, (m->n + 1) * sizeof *grown);
    pith_served *served = pith_alloc_zero(1, sizeof *served);
    if (grown) m->items = grown;
    if (served) {
        served->models = m;
        served->name = pith_copy_text(name, strlen(name));
        served->path = pith_copy_text(path, strlen(path));
    }
    if (grown && served && served->name && served->path) return grown[m->n++] = served;
    if (served) {
        pith_free(served->name);
        pith_free(served->path);
    }
    pith_free(served);
    return NULL;
}

static pith_served *find_known(const pith_models *m, const char *name) {
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->items[i]->name, name) == 0) return m->items[i];
    return NULL;
}

static bool add_found(void *user, const char *name, const char *path) {
    pith_models *m = user;
    if (!find_known(m, name)) add_model(m, name, path);
    return true;
}

/* Names come from the list of models alone, so none can lead elsewhere. */
static pith_served *find_model(pith_models *m, const char *name) {
    const pith_server_options *o = m->server->options;
    if (!name) return m->n > 0 && m->items[0]->is_first ? m->items[0] : NULL;
    pith_served *served = find_known(m, name);
    if (served || !o->each_model) return served;
    o->each_model(o->each_user, add_found, m);
    return find_known(m, name);
}

/* ---- Leases ---- */

/* Under the lock. */
static void wake_parked(pith_models *m) {
    pthread_cond_broadcast(&m->changed);
    while (m->parked) {
        pith_exchange *e = m->parked;
        m->parked = e->next;
        pith_desk_push_again(m->server->desk, e);
        pith_exchange_release(e);
    }
}

static void park(pith_models *m, pith_exchange *e) {
    pith_exchange_retain(e);
    e->next = m->parked;
    m->parked = e;
}

static pith_lease refuse(pith_exchange *e, int status, const char *code, const char *text) {
    const pith_http_error what = {status, status < 500 ? "invalid_request_error" : "server_error",
                                  code, "model", text};
    pith_exchange_fail(e, &what);
    return PITH_LEASE_REFUSED;
}

static pith_lease refuse_unknown(pith_exchange *e, const char *name) {
    pith_buffer text = {0};
    if (name)
        pith_buffer_append_format(&text, "there is no model '%.120s'; GET /v1/models lists them",
                                  name);
    else
        pith_buffer_append_text(&text, "is required: this server was started without a model");
    pith_lease lease = name ? refuse(e, 404, "model_not_found", text.data ? text.data : "")
                            : refuse(e, 400, "missing", text.data ? text.data : "");
    pith_buffer_deinit(&text);
    return lease;
}

/* Its thread ended after a failure, or after it was taken out: joined before another starts. Under
 * the lock, which is left meanwhile. */
static void start_load(pith_models *m, pith_served *served) {
    pith_engine_thread *old = served->thread;
    served->thread = NULL;
    served->state = PITH_SERVED_LOADING;
    served->progress = 0;
    pthread_mutex_unlock(&m->lock);
    pith_engine_thread_free(old);
    pith_engine_thread *thread = NULL;
    pith_error error = {0};
    pith_status status = pith_engine_thread_new(served, &thread, &error);
    pthread_mutex_lock(&m->lock);
    served->thread = thread;
    pthread_cond_broadcast(&m->changed);
    if (status == PITH_OK) return;
    served->state = PITH_SERVED_FAILED;
    served->error = error;
}

/* The model is not there now. Where the upstream does not take it after all, it is asked for again
 * and waited for: pith_routing_may_hand_over is false then. */
static pith_lease hand_over(pith_models *m, const char *name, pith_exchange *e, pith_served **out) {
    if (pith_routing_hand_over(e, "the model here is not loaded")) return PITH_LEASE_REFUSED;
    return pith_models_lease(m, name, e, out);
}

pith_lease pith_models_lease(pith_models *m, const char *name, pith_exchange *e,
                             pith_served **out) {
    pith_lease lease = PITH_LEASE_PARKED;
    pith_error error = {0};
    pthread_mutex_lock(&m->lock);
    pith_served *served = find_model(m, name);
    if (!served && pith_routing_may_substitute(e)) served = find_model(m, NULL);
    bool is_held = served && served->state == PITH_SERVED_READY && m->n_waiting > 0;
    if (served && served->state == PITH_SERVED_FAILED && e->begun_ns < served->used_ns)
        error = served->error; /* it was tried for this request */
    else if (served && !m->is_cancelled &&
             (served->state == PITH_SERVED_ABSENT || served->state == PITH_SERVED_FAILED))
        start_load(m, served);
    if (served && served->state == PITH_SERVED_READY && !is_held && !m->is_cancelled) {
        served->n_leases++;
        *out = served;
        lease = PITH_LEASE_OK;
    } else if (!is_held && served && !m->is_cancelled && pith_routing_may_hand_over(e)) {
        lease = PITH_LEASE_REFUSED;
    } else if (served && !m->is_cancelled && error.status == PITH_OK) {
        park(m, e);
    }
    bool is_over = m->is_cancelled;
    pthread_mutex_unlock(&m->lock);
    if (lease == PITH_LEASE_REFUSED) return hand_over(m, name, e, out);
    if (!served) return refuse_unknown(e, name);
    if (is_over) return refuse(e, 503, "stopping", "the server is being stopped");
    if (error.status != PITH_OK) return refuse(e, 503, "model_failed", error.text);
    return lease;
}

void pith_models_lease_again(pith_served *served) {
    pthread_mutex_lock(&served->models->lock);
    served->n_leases++;
    pthread_mutex_unlock(&served->models->lock);
}

void pith_models_give_back(pith_served *served) {
    if (!served) return;
    pith_models *m = served->models;
    pthread_mutex_lock(&m->lock);
    served->n_leases--;
    served->used_ns = pith_clock_ns();
    if (served->n_leases == 0) pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* ---- Memory ---- */

/* The one that was not used for longest, of those that nobody leases. */
static pith_served *find_victim(const pith_models *m) {
    pith_served *victim = NULL;
    for (size_t i = 0; i < m->n; i++) {
        pith_served *s = m->items[i];
        if (s->state != PITH_SERVED_READY || s->n_leases > 0) continue;
        if (!victim || s->used_ns < victim->used_ns) victim = s;
    }
    return victim;
}

/* Takes it out of memory. Under the lock, which is left meanwhile. */
static void take_out(pith_models *m, pith_served *served) {
    pith_engine_thread *thread = served->thread;
    served->thread = NULL;
    served->state = PITH_SERVED_LOADING; /* nobody may have it until it is gone */
    pthread_mutex_unlock(&m->lock);
    pith_engine_thread_free(thread);
    pthread_mutex_lock(&m->lock);
    served->state = PITH_SERVED_ABSENT;
    atomic_fetch_add(&m->server->counts.unloads, 1);
    pith_server_log_line(m->server, PITH_SERVER_LOG_INFO, "model %s was taken out of memory",
                         served->name);
    wake_parked(m);
}

/* What it will take, by its header. */
static uint64_t estimate(const pith_served *served) {
    const pith_server_options *o = served->models->server->options;
    pith_file *file = NULL;
    pith_fit fit = {0};
    pith_fit_options options = {.size = sizeof options,
                                .n_ctx = o->engine.n_ctx,
                                .n_threads = o->engine.n_threads,
                                .step_limit = o->engine.step_limit,
                                .load = o->model.load,
                                .kv_type = o->engine.kv_type,
                                .no_probe = true,
                                .precision = o->engine.precision};
    uint64_t bytes = 0;
    if (pith_file_open(served->path, &file, NULL) != PITH_OK) return 0;
    if (pith_file_fit(file, &options, &fit, NULL) == PITH_OK)
        bytes = fit.weight_bytes + fit.workspace_bytes + fit.other_bytes +
                fit.kv_bytes * (uint64_t)(o->engine.n_sessions > 0 ? o->engine.n_sessions : 1);
    if (bytes == 0) bytes = pith_file_summarize(file).total_bytes;
    pith_file_close(file);
    return bytes;
}

/* Under the lock, which is left meanwhile; false: the ceiling does not allow it. */
static bool make_room(pith_models *m, pith_served *served, uint64_t bytes, pith_error *error) {
    bool ok = bytes <= m->limit;
    m->n_waiting++;
    while (ok && !m->is_cancelled && m->taken + bytes > m->limit) {
        pith_served *victim = find_victim(m);
        if (victim)
            take_out(m, victim);
        else
            pthread_cond_wait(&m->changed, &m->lock);
    }
    if (--m->n_waiting == 0) wake_parked(m);
    ok = ok && !m->is_cancelled;
    if (ok) {
        served->bytes = bytes;
        m->taken += bytes;
    } else {
        pith_fail(
            error, m->is_cancelled ? PITH_ERROR_CANCELLED : PITH_ERROR_MEMORY,
            "'%.80s' needs %.0f MiB with its contexts, the ceiling is %.0f MiB: give --memory, "
            "a smaller --ctx or --parallel",
            served->name, (double)bytes / 1048576.0, (double)m->limit / 1048576.0);
    }
    return ok;
}

/* ---- Loading, on the model's own thread ---- */

static int on_progress(void *user, double fraction) {
    pith_served *served = user;
    served->progress = fraction;
    return served->models->is_cancelled;
}

static pith_status load(pith_served *served, pith_error *error) {
    const pith_server_options *o = served->models->server->options;
    pith_model_options options = o->model;
    options.size = sizeof options;
    options.progress = on_progress;
    options.progress_user = served;
    pith_engine_options engine = o->engine;
    engine.size = sizeof engine;
    pith_status status = pith_model_open(served->path, &options, &served->model, error);
    if (status == PITH_OK) status = pith_engine_new(served->model, &engine, &served->engine, error);
    if (status != PITH_OK) return status;
    served->info = pith_model_describe(served->model);
    served->engine_info = pith_engine_describe(served->engine);
    return PITH_OK;
}

bool pith_served_open(pith_served *served, pith_error *error) {
    pith_models *m = served->models;
    uint64_t bytes = estimate(served);
    pthread_mutex_lock(&m->lock);
    served->bytes = 0;
    bool ok = make_room(m, served, bytes, error);
    pthread_mutex_unlock(&m->lock);
    if (ok && load(served, error) == PITH_OK) return true;
    pith_served_close(served);
    return false;
}

void pith_served_ready(pith_served *served) {
    pith_models *m = served->models;
    uint64_t bytes = served->engine_info.kv_bytes + served->engine_info.workspace_bytes +
                     served->engine_info.cache_bytes + served->info.weight_bytes;
    pthread_mutex_lock(&m->lock);
    while (!served->thread) pthread_cond_wait(&m->changed, &m->lock);
    if (bytes > served->bytes) { /* the estimate knows of the vocabulary too */
        m->taken += bytes - served->bytes;
        served->bytes = bytes;
    }
    served->used_ns = pith_clock_ns();
    served->state = PITH_SERVED_READY;
    served->was_ready = true;
    wake_parked(m);
    pthread_mutex_unlock(&m->lock);
    atomic_fetch_add(&m->server->counts.loads, 1);
    pith_server_log_line(m->server, PITH_SERVER_LOG_INFO, "model %s was loaded", served->name);
}

void pith_served_fail(pith_served *served, const pith_error *error) {
    pith_models *m = served->models;
    pthread_mutex_lock(&m->lock);
    served->error = *error;
    served->used_ns = pith_clock_ns();
    served->state = PITH_SERVED_FAILED;
    wake_parked(m);
    pthread_mutex_unlock(&m->lock);
    bool is_fatal = served->is_first && !served->was_ready; /* told when the server ends */
    if (!m->is_cancelled && !is_fatal)
        pith_server_log_line(m->server, PITH_SERVER_LOG_ERROR, "model %s: %s", served->name,
                             error->text);
}

/* The engine is freed by its thread, which has freed its sessions. */
void pith_served_close(pith_served *served) {
    pith_models *m = served->models;
    pith_engine_free(served->engine);
    pith_model_close(served->model);
    served->engine = NULL;
    served->model = NULL;
    pthread_mutex_lock(&m->lock);
    m->taken -= served->bytes;
    served->bytes = 0;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* ---- Of a leased model ---- */

const char *pith_served_name(const pith_served *served) {
    return served->name;
}

const pith_model *pith_served_model(const pith_served *served) {
    return served->model;
}

pith_engine *pith_served_engine(const pith_served *served) {
    return served->engine;
}

pith_engine_thread *pith_served_thread(const pith_served *served) {
    return served->thread;
}

pith_server *pith_served_server(const pith_served *served) {
    return served->models->server;
}

int32_t pith_served_n_ctx(const pith_served *served) {
    return served->engine_info.n_ctx;
}

const char *pith_served_backend(const pith_served *served) {
    return served->engine_info.backend;
}

/* ---- All of them ---- */

void pith_models_each(pith_models *m, bool (*each)(void *user, const pith_served_info *info),
                      void *user) {
    const pith_server_options *o = m->server->options;
    pthread_mutex_lock(&m->lock);
    if (o->each_model) o->each_model(o->each_user, add_found, m);
    pthread_mutex_unlock(&m->lock);
    pith_models_each_known(m, each, user);
}

void pith_models_each_known(pith_models *m, bool (*each)(void *user, const pith_served_info *info),
                            void *user) {
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->n; i++) {
        const pith_served *s = m->items[i];
        pith_served_info info = {.name = s->name, .state = s->state, .progress = s->progress};
        info.is_starting = s->is_first && !s->was_ready;
        if (s->state == PITH_SERVED_READY) {
            info.n_ctx = s->engine_info.n_ctx;
            info.n_ctx_train = s->info.n_ctx_train;
            info.n_parameters = s->info.n_parameters;
            info.weight_bytes = s->info.weight_bytes;
            info.bytes = s->bytes;
        }
        if (!each(user, &info)) break;
    }
    pthread_mutex_unlock(&m->lock);
}

void pith_models_tick(pith_models *m) {
    int32_t seconds = m->server->options->idle_unload;
    if (seconds <= 0) return;
    pthread_mutex_lock(&m->lock);
    uint64_t now = pith_clock_ns();
    pith_served *victim = find_victim(m);
    if (victim && !m->is_cancelled && now > victim->used_ns &&
        now - victim->used_ns > (uint64_t)seconds * 1000000000u)
        take_out(m, victim);
    pthread_mutex_unlock(&m->lock);
}

void pith_models_cancel(pith_models *m) {
    pthread_mutex_lock(&m->lock);
    m->is_cancelled = true;
    for (size_t i = 0; i < m->n; i++)
        if (m->items[i]->thread) pith_engine_thread_stop(m->items[i]->thread);
    wake_parked(m);
    pthread_mutex_unlock(&m->lock);
}

bool pith_models_failed(pith_models *m, pith_error *error) {
    bool failed = false;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->n && !failed; i++) {
        failed = m->items[i]->is_first && !m->items[i]->was_ready &&
                 m->items[i]->state == PITH_SERVED_FAILED;
        if (failed) *error = m->items[i]->error;
    }
    pthread_mutex_unlock(&m->lock);
    return failed;
}

pith_models *pith_models_new(pith_server *server, pith_error *error) {
    const pith_server_options *o = server->options;
    pith_models *m = pith_alloc_zero(1, sizeof *m);
    if (!m) {
        pith_fail_memory(error, "the list of models", sizeof *m);
        return NULL;
    }
    m->server = server;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    uint64_t total = pith_memory_total();
    m->limit = o->memory ? o->memory : total ? total - total / 10 : UINT64_MAX / 2;
    for (size_t i = 0; i < o->n_models; i++) {
        pith_served *served = find_known(m, o->models[i].name);
        if (!served) served = add_model(m, o->models[i].name, o->models[i].path);
        if (served) served->is_first = true;
    }
    return m;
}

void pith_models_start(pith_models *m) {
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->n; i++)
        if (m->items[i]->is_first && m->items[i]->state == PITH_SERVED_ABSENT)
            start_load(m, m->items[i]);
    pthread_mutex_unlock(&m->lock);
}

void pith_models_free(pith_models *m) {
    if (!m) return;
    pith_models_cancel(m);
    for (size_t i = 0; i < m->n; i++) {
        pith_engine_thread_free(m->items[i]->thread);
        pith_free(m->items[i]->name);
        pith_free(m->items[i]->path);
        pith_free(m->items[i]);
    }
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    pith_free(m->items);
    pith_free(m);
}
