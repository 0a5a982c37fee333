/* SPDX-License-Identifier: Apache-2.0
 * Models in memory: room below the ceiling, loading, what is taken out, engines for vectors.
 * Invariant: see model_pool.c; what is counted in `taken` is given back where it is released. */
#include "base/clock.h"
#include "base/memory.h"
#include "server/adapter_pool.h"
#include "server/model_pool_state.h"

#include <string.h>

/* ---- Memory ---- */

/* The one that was not used for longest, of those that nobody leases or was promised. */
static pith_served *find_victim(const pith_models *m) {
    pith_served *victim = NULL;
    for (size_t i = 0; i < m->n; i++) {
        pith_served *s = m->items[i];
        if (s->state != PITH_SERVED_READY || s->n_leases > 0 || s->n_claims > 0) continue;
        if (!victim || s->used_ns < victim->used_ns) victim = s;
    }
    return victim;
}

/* Takes it out of memory. Under the lock, which is left meanwhile. */
static void take_out(pith_models *m, pith_served *served) {
    pith_engine_thread *thread = served->thread;
    served->thread = NULL;
    served->state = PITH_SERVED_LOADING; /* nobody may have it until it is gone */
    m->n_leaving++;
    pthread_mutex_unlock(&m->lock);
    pith_engine_thread_free(thread);
    pthread_mutex_lock(&m->lock);
    m->n_leaving--;
    served->state = PITH_SERVED_ABSENT;
    atomic_fetch_add(&m->server->counts.unloads, 1);
    pith_server_log_line(m->server, PITH_SERVER_LOG_INFO, "model %s was taken out of memory",
                         served->name);
    pith_models_wake(m);
}

/* Whether no token stands for more than its piece: unlike where words that are not known become one
 * token, and spaces none. */
static bool has_whole_pieces(const pith_file *file) {
    const char *name;
    char kind[16] = "";
    for (uint64_t i = 0; (name = pith_file_key(file, i)); i++)
        if (strcmp(name, "tokenizer.ggml.model") == 0)
            pith_file_value_text(file, i, 1, kind, sizeof kind);
    return strcmp(kind, "gpt2") == 0 || strcmp(kind, "llama") == 0;
}

static size_t find_longest_piece(const pith_model *model) {
    size_t longest = 0;
    int32_t n = pith_model_describe(model).n_vocab;
    for (int32_t id = 0; id < n; id++) {
        const char *piece = pith_token_piece(model, id);
        size_t size = piece ? strlen(piece) : 0;
        if (size > longest) longest = size;
    }
    return longest;
}

/* What it will take, by its header. */
static uint64_t estimate(pith_served *served) {
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
    served->longest_piece = has_whole_pieces(file) ? 1 : 0;
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
    if (--m->n_waiting == 0) pith_models_wake(m);
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

static bool is_idle(const pith_models *m, const pith_served *s, uint64_t now) {
    int64_t seconds = s->keeps ? s->keep_seconds : m->server->options->idle_unload;
    if (s->state != PITH_SERVED_READY || s->n_leases > 0 || s->n_claims > 0) return false;
    if (now <= s->used_ns) return false;
    if (!s->keeps && seconds == 0) return false;
    return seconds >= 0 && (now - s->used_ns) / 1000000000u >= (uint64_t)seconds;
}

void pith_models_take_out_idle(pith_models *m) {
    uint64_t now = pith_clock_ns();
    for (size_t i = 0; i < m->n && !m->is_cancelled; i++)
        if (is_idle(m, m->items[i], now)) take_out(m, m->items[i]);
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
    if (served->longest_piece > 0) served->longest_piece = find_longest_piece(served->model);
    served->info = pith_model_describe(served->model);
    served->engine_info = pith_engine_describe(served->engine);
    return pith_loras_open(served, served->model, served->models->limit, &served->lora_bytes,
                           error);
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
                     served->engine_info.cache_bytes + served->info.weight_bytes +
                     served->lora_bytes;
    pthread_mutex_lock(&m->lock);
    while (!served->thread) pthread_cond_wait(&m->changed, &m->lock);
    if (bytes > served->bytes) { /* the estimate knows of the vocabulary too */
        m->taken += bytes - served->bytes;
        served->bytes = bytes;
    }
    served->used_ns = pith_clock_ns();
    served->keeps = false;
    served->state = PITH_SERVED_READY;
    served->was_ready = true;
    pith_models_wake(m);
    pthread_mutex_unlock(&m->lock);
    atomic_fetch_add(&m->server->counts.loads, 1);
    pith_server_log_line(m->server, PITH_SERVER_LOG_INFO, "model %s was loaded", served->name);
}

void pith_served_fail(pith_served *served, const pith_error *error) {
    pith_models *m = served->models;
    pthread_mutex_lock(&m->lock);
    while (!served->thread) pthread_cond_wait(&m->changed, &m->lock); /* or it would be started */
    served->error = *error;
    served->used_ns = pith_clock_ns();
    served->state = PITH_SERVED_FAILED;
    pith_models_wake(m);
    pthread_mutex_unlock(&m->lock);
    bool is_fatal = served->is_first && !served->was_ready; /* told when the server ends */
    if (!m->is_cancelled && !is_fatal)
        pith_server_log_line(m->server, PITH_SERVER_LOG_ERROR, "model %s: %s", served->name,
                             error->text);
}

/* The engine is freed by its thread, which has freed its sessions, once no handler has the model.
 */
void pith_served_close(pith_served *served) {
    pith_models *m = served->models;
    pthread_mutex_lock(&m->lock);
    served->is_closing = true;
    if (served->embed_thread) pith_embed_thread_stop(served->embed_thread);
    while (served->n_leases > 0) pthread_cond_wait(&m->changed, &m->lock); /* its jobs have some */
    pith_embed_thread *embed_thread = served->embed_thread;
    served->embed_thread = NULL;
    pthread_mutex_unlock(&m->lock);
    pith_embed_thread_free(embed_thread);
    pthread_mutex_lock(&m->lock);
    served->is_closing = false;
    pthread_mutex_unlock(&m->lock);
    pith_engine_free(served->engine);
    pith_loras_close(served);
    pith_model_close(served->model);
    served->engine = NULL;
    served->model = NULL;
    pthread_mutex_lock(&m->lock);
    m->taken -= served->bytes;
    served->bytes = 0;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* ---- Vectors ---- */

pith_embed_thread *pith_served_embed_thread(pith_served *served, pith_error *error) {
    pith_models *m = served->models;
    pthread_mutex_lock(&m->lock);
    if (served->is_closing || m->is_cancelled)
        pith_fail(error, PITH_ERROR_CANCELLED, "the server is being stopped");
    else if (!served->embed_thread)
        served->embed_thread = pith_embed_thread_new(served, error);
    pith_embed_thread *thread = served->is_closing ? NULL : served->embed_thread;
    pthread_mutex_unlock(&m->lock);
    return thread;
}

/* Room beside what the model has already; its own replies go on, so none is waited for. */
static bool add_room(pith_models *m, pith_served *served, uint64_t bytes, pith_error *error) {
    pthread_mutex_lock(&m->lock);
    pith_served *victim;
    while (!m->is_cancelled && m->taken + bytes > m->limit && (victim = find_victim(m)))
        take_out(m, victim);
    bool ok = m->taken + bytes <= m->limit;
    if (ok) {
        served->bytes += bytes;
        m->taken += bytes;
    }
    pthread_mutex_unlock(&m->lock);
    if (ok) return true;
    pith_fail(error, PITH_ERROR_MEMORY,
              "embeddings with '%.80s' need %.0f MiB more, which the ceiling of %.0f MiB does not "
              "allow: give --memory or a smaller --ctx",
              served->name, (double)bytes / 1048576.0, (double)m->limit / 1048576.0);
    return false;
}

pith_status pith_served_open_embeddings(pith_served *served, pith_engine **out,
                                        pith_session **session, pith_error *error) {
    pith_engine_options options = served->models->server->options->engine;
    uint64_t bytes = 0;
    options.size = sizeof options;
    options.n_sessions = 1;
    options.adapter_rank_limit = -1;
    options.cache_folder = NULL;
    options.embeddings = true;
    pith_status status = pith_engine_bytes(served->model, &options, &bytes, error);
    if (status != PITH_OK) return status;
    if (!add_room(served->models, served, bytes, error)) return PITH_ERROR_MEMORY;
    status = pith_engine_new(served->model, &options, out, error);
    if (status == PITH_OK) status = pith_session_new(*out, session, error);
    if (status == PITH_OK) return PITH_OK;
    pith_engine_free(*out);
    *out = NULL;
    pthread_mutex_lock(&served->models->lock);
    served->bytes -= bytes;
    served->models->taken -= bytes;
    pthread_mutex_unlock(&served->models->lock);
    return status;
}
