/* SPDX-License-Identifier: Apache-2.0
 * Models by name, and which of them are in memory.
 *
 *   ABSENT --lease--> LOADING --> READY --idle, or its memory is wanted--> ABSENT
 *                        \------> FAILED (the next lease tries again)
 *
 * Invariant: what all loaded models take together is below the ceiling: a load first takes out
 * models that nobody leases, the least recently used first, and waits while all are leased.
 * Requests whose model is not ready, or that would keep others waiting for room, are parked; every
 * change wakes all of them, and their handlers ask again. Those that a load was made for have a
 * claim: the model stays until each of them had its lease. Later ones wait while another load waits
 * for room. So no load starves behind a busy model, and none is undone before it was of use.
 * Locks: `lock` covers everything here; engine threads are started and joined without it. */
#include "base/clock.h"
#include "base/memory.h"
#include "server/model_pool_state.h"

#include <string.h>

/* ---- Names ---- */

typedef struct found_file {
    char *name, *path;
} found_file;

typedef struct file_list {
    found_file *items; /* [n] */
    size_t n;
} file_list;

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

/* Nothing of it is in memory, or on its way. */
static bool is_at_rest(const pith_served *served) {
    return served->state == PITH_SERVED_ABSENT || served->state == PITH_SERVED_FAILED;
}

/* Whether there is such a model: one whose file was removed is forgotten once it was taken out. */
static bool is_there(const pith_models *m, const pith_served *served) {
    return served->is_first || served->found_at == m->last_scan || !is_at_rest(served);
}

/* Of two files of one name the first counts. Under the lock. */
static void add_file(pith_models *m, const found_file *file, uint64_t scan) {
    pith_served *served = find_known(m, file->name);
    if (!served) served = add_model(m, file->name, file->path);
    if (!served || served->is_first || served->found_at >= scan) return;
    served->found_at = scan;
    if (!is_at_rest(served) || strcmp(served->path, file->path) == 0) return;
    char *moved = pith_copy_text(file->path, strlen(file->path));
    if (moved) pith_free(served->path);
    if (moved) served->path = moved;
}

static bool take_found(void *user, const char *name, const char *path) {
    file_list *list = user;
    found_file *grown = pith_realloc(list->items, (list->n + 1) * sizeof *grown);
    if (!grown) return false;
    list->items = grown;
    grown[list->n].name = pith_copy_text(name, strlen(name));
    grown[list->n].path = pith_copy_text(path, strlen(path));
    list->n++;
    return grown[list->n - 1].name && grown[list->n - 1].path;
}

/* Files come and go while the server runs. Without the lock, since disks may be slow and health is
 * asked meanwhile; of scans that overlap the one that began last counts. */
static void look_for_files(pith_models *m) {
    const pith_server_options *o = m->server->options;
    file_list list = {NULL, 0};
    if (!o->each_model) return;
    pthread_mutex_lock(&m->lock);
    uint64_t scan = ++m->n_scans;
    pthread_mutex_unlock(&m->lock);
    o->each_model(o->each_user, take_found, &list);
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < list.n; i++)
        if (list.items[i].name && list.items[i].path) add_file(m, &list.items[i], scan);
    if (scan > m->last_scan) m->last_scan = scan;
    pthread_mutex_unlock(&m->lock);
    for (size_t i = 0; i < list.n; i++) {
        pith_free(list.items[i].name);
        pith_free(list.items[i].path);
    }
    pith_free(list.items);
}

/* Names come from the list of models alone, so none can lead elsewhere. */
static pith_served *find_model(const pith_models *m, const char *name) {
    if (!name) return m->n > 0 && m->items[0]->is_first ? m->items[0] : NULL;
    pith_served *served = find_known(m, name);
    return served && is_there(m, served) ? served : NULL;
}

/* The same where a client of Ollama's has added a tag to it. */
static pith_served *find_tagged(const pith_models *m, const char *name) {
    static const char tag[] = ":latest";
    pith_served *served = find_model(m, name);
    size_t n = name ? strlen(name) : 0, size = sizeof tag - 1;
    if (served || n <= size || strcmp(name + n - size, tag) != 0) return served;
    char *plain = pith_copy_text(name, n - size);
    if (plain) served = find_model(m, plain);
    pith_free(plain);
    return served;
}

/* Before a model is asked for by name: one that is not known may be new, and one that is about to
 * be loaded may have moved. Without the lock. */
static void look_for(pith_models *m, const char *name, bool loads) {
    pthread_mutex_lock(&m->lock);
    const pith_served *served = find_tagged(m, name);
    bool looks = name && (!served || (loads && !served->is_first && is_at_rest(served)));
    pthread_mutex_unlock(&m->lock);
    if (looks) look_for_files(m);
}

/* ---- Leases ---- */

/* Under the lock. */
void pith_models_wake(pith_models *m) {
    pthread_cond_broadcast(&m->changed);
    while (m->parked) {
        pith_exchange *e = m->parked;
        m->parked = e->next;
        pith_desk_push_again(e);
    }
}

/* With a claim unless the model is there and only held back for the sake of others. */
static void park(pith_models *m, pith_served *served, pith_exchange *e) {
    if (served->state != PITH_SERVED_READY) {
        e->claim = served;
        served->n_claims++;
    }
    pith_exchange_retain(e);
    e->next = m->parked;
    m->parked = e;
}

/* The model that the exchange had a claim to. Under the lock. */
static pith_served *drop_claim(pith_models *m, pith_exchange *e) {
    pith_served *claim = e->claim;
    e->claim = NULL;
    if (claim && --claim->n_claims == 0) pthread_cond_broadcast(&m->changed);
    return claim;
}

void pith_models_drop_claim(pith_models *m, pith_exchange *e) {
    pthread_mutex_lock(&m->lock);
    drop_claim(m, e);
    pthread_mutex_unlock(&m->lock);
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
    served->used_ns = pith_clock_ns();
    pith_models_wake(m);
}

/* Not for this request: it is tried again. */
static bool has_failed_before(const pith_served *served, const pith_exchange *e) {
    return served->state == PITH_SERVED_FAILED && e->begun_ns >= served->used_ns;
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
    look_for(m, name, true);
    pthread_mutex_lock(&m->lock);
    pith_served *served = find_tagged(m, name);
    if (!served && pith_routing_may_substitute(e)) served = find_model(m, NULL);
    bool has_claim = drop_claim(m, e) == served;
    if (served && !m->is_cancelled &&
        (served->state == PITH_SERVED_ABSENT || has_failed_before(served, e)))
        start_load(m, served);
    bool is_held = m->n_waiting > 0 && !has_claim;
    if (served && served->state == PITH_SERVED_FAILED)
        error = served->error; /* it was tried for this request */
    if (served && served->state == PITH_SERVED_READY && !is_held && !m->is_cancelled) {
        served->n_leases++;
        served->keeps = false; /* each request says anew how long it stays */
        *out = served;
        lease = PITH_LEASE_OK;
    } else if (!is_held && served && !m->is_cancelled && pith_routing_may_hand_over(e)) {
        lease = PITH_LEASE_REFUSED;
    } else if (served && !m->is_cancelled && error.status == PITH_OK) {
        park(m, served, e);
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

bool pith_models_is_absent(pith_models *m, const char *name) {
    look_for(m, name, false);
    pthread_mutex_lock(&m->lock);
    const pith_served *served = find_tagged(m, name);
    bool is_absent = served && is_at_rest(served);
    pthread_mutex_unlock(&m->lock);
    return is_absent;
}

char *pith_models_path(pith_models *m, const char *name) {
    look_for(m, name, false);
    pthread_mutex_lock(&m->lock);
    pith_served *served = find_tagged(m, name);
    char *path = served ? pith_copy_text(served->path, strlen(served->path)) : NULL;
    pthread_mutex_unlock(&m->lock);
    return path;
}

/* ---- Of a leased model ---- */

void pith_served_keep(pith_served *served, int64_t seconds) {
    pthread_mutex_lock(&served->models->lock);
    served->keeps = true;
    served->keep_seconds = seconds;
    pthread_mutex_unlock(&served->models->lock);
}

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

size_t pith_served_text_limit(const pith_served *served) {
    size_t n_ctx = (size_t)served->engine_info.n_ctx, longest = served->longest_piece;
    enum { COMPOSED = 3 }; /* times that composing characters may make a text shorter */
    return longest > 0 ? n_ctx * longest * COMPOSED : SIZE_MAX;
}

const char *pith_served_backend(const pith_served *served) {
    return served->engine_info.backend;
}

/* ---- All of them ---- */

void pith_models_each(pith_models *m, bool (*each)(void *user, const pith_served_info *info),
                      void *user) {
    look_for_files(m);
    pith_models_each_known(m, each, user);
}

void pith_models_each_known(pith_models *m, bool (*each)(void *user, const pith_served_info *info),
                            void *user) {
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->n; i++) {
        const pith_served *s = m->items[i];
        if (!is_there(m, s)) continue;
        pith_served_info info = {.name = s->name, .state = s->state, .progress = s->progress};
        info.is_starting = s->is_first && !s->was_ready;
        if (s->state == PITH_SERVED_READY) {
            info.n_ctx = s->engine_info.n_ctx;
            info.n_ctx_train = s->info.n_ctx_train;
            info.n_parameters = s->info.n_parameters;
            info.weight_bytes = s->info.weight_bytes;
            info.bytes = s->bytes;
            info.keep_seconds = s->keeps ? s->keep_seconds
                                : m->server->options->idle_unload > 0
                                    ? m->server->options->idle_unload
                                    : -1;
            info.idle_seconds = s->n_leases > 0 ? 0 : (double)(pith_clock_ns() - s->used_ns) * 1e-9;
        }
        if (!each(user, &info)) break;
    }
    pthread_mutex_unlock(&m->lock);
}

void pith_models_tick(pith_models *m) {
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->n; i++)
        if (m->items[i]->embed_thread) pith_embed_thread_tick(m->items[i]->embed_thread);
    pith_models_take_out_idle(m);
    pthread_mutex_unlock(&m->lock);
}

void pith_models_cancel(pith_models *m) {
    pthread_mutex_lock(&m->lock);
    m->is_cancelled = true;
    for (size_t i = 0; i < m->n; i++)
        if (m->items[i]->thread) pith_engine_thread_stop(m->items[i]->thread);
    pith_models_wake(m);
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
        if (served && i == 0) served->is_main = true;
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
    /* A model may be taking out another: that is over before any of them goes. */
    pthread_mutex_lock(&m->lock);
    while (m->n_leaving > 0) pthread_cond_wait(&m->changed, &m->lock);
    pthread_mutex_unlock(&m->lock);
    for (size_t i = 0; i < m->n; i++) pith_engine_thread_free(m->items[i]->thread);
    for (size_t i = 0; i < m->n; i++) {
        pith_free(m->items[i]->name);
        pith_free(m->items[i]->path);
        pith_free(m->items[i]);
    }
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    pith_free(m->items);
    pith_free(m);
}
