/* SPDX-License-Identifier: Apache-2.0
 * LoRAs by name, of each loaded model.
 * Invariant: a loaded adapter is freed when neither the list nor a job holds it, and before its
 * model; `lock` of the models covers the lists, files are read without it. */
#include "server/adapter_pool.h"

#include "base/memory.h"
#include "server/model_pool_state.h"

#include <string.h>

struct pith_lora {
    pith_lora *next; /* in the model's list */
    atomic_int n_holders;
    char *name;
    pith_adapter *adapter;
    uint64_t bytes;
    pith_served *counted; /* whose bytes hold these too; NULL: none */
};

/* ---- Names ---- */

typedef struct lookup {
    const char *name;
    char *path; /* found; owned */
} lookup;

static bool match(void *user, const char *name, const char *path) {
    lookup *l = user;
    if (strcmp(name, l->name) != 0) return true;
    l->path = pith_copy_text(path, strlen(path));
    return false;
}

/* The file of a name that the server was started with; NULL: there is none. */
static char *find_path(const pith_server_options *o, const char *name) {
    lookup l = {.name = name};
    for (size_t i = 0; i < o->n_loras && !l.path; i++)
        match(&l, o->loras[i].name, o->loras[i].path);
    if (!l.path && o->each_lora) o->each_lora(o->each_lora_user, match, &l);
    return l.path;
}

static pith_lora *find_loaded(const pith_served *served, const char *name) {
    pith_lora *at = served->loras;
    while (at && strcmp(at->name, name) != 0) at = at->next;
    return at;
}

/* Not before the last job is done with it. */
static void give_bytes_back(const pith_lora *lora) {
    pith_served *served = lora->counted;
    if (!served) return;
    pthread_mutex_lock(&served->models->lock);
    served->bytes -= lora->bytes;
    served->models->taken -= lora->bytes;
    pthread_cond_broadcast(&served->models->changed);
    pthread_mutex_unlock(&served->models->lock);
}

static void release(pith_lora *lora) {
    if (!lora || atomic_fetch_sub(&lora->n_holders, 1) != 1) return;
    give_bytes_back(lora);
    pith_adapter_free(lora->adapter);
    pith_free(lora->name);
    pith_free(lora);
}

/* ---- Loading ---- */

static pith_lora *open_lora(const pith_model *model, const char *name, const char *path,
                            uint64_t limit, pith_error *error) {
    const pith_adapter_options options = {.size = sizeof options, .memory_limit = limit};
    pith_lora *lora = pith_alloc_zero(1, sizeof *lora);
    if (!lora || !(lora->name = pith_copy_text(name, strlen(name)))) {
        pith_free(lora);
        pith_fail_memory(error, "an adapter", sizeof *lora);
        return NULL;
    }
    atomic_init(&lora->n_holders, 1);
    pith_status status = pith_adapter_open(model, path, &options, &lora->adapter, error);
    if (status == PITH_OK && pith_adapter_describe(lora->adapter).kind != PITH_ADAPTER_LORA)
        status = pith_fail(error, PITH_ERROR_UNSUPPORTED, "'%.80s' holds control vectors, no LoRA",
                           name);
    if (status == PITH_OK) {
        lora->bytes = pith_adapter_describe(lora->adapter).bytes;
        return lora;
    }
    release(lora);
    return NULL;
}

/* Puts it into the list, unless another thread was first; the one that is there, held once more. */
static pith_lora *insert(pith_served *served, pith_lora *lora) {
    pith_models *m = served->models;
    pthread_mutex_lock(&m->lock);
    pith_lora *there = find_loaded(served, lora->name);
    if (!there) {
        lora->next = served->loras;
        served->loras = there = lora;
        lora->counted = served;
        served->bytes += lora->bytes;
        m->taken += lora->bytes;
        lora = NULL;
    }
    atomic_fetch_add(&there->n_holders, 1);
    pthread_mutex_unlock(&m->lock);
    release(lora);
    return there;
}

/* The adapter of a name, held once more; NULL with a message. */
static pith_lora *hold(pith_served *served, const char *name, pith_error *error) {
    pith_models *m = served->models;
    pthread_mutex_lock(&m->lock);
    pith_lora *lora = find_loaded(served, name);
    if (lora) atomic_fetch_add(&lora->n_holders, 1);
    uint64_t left = m->limit > m->taken ? m->limit - m->taken : 1;
    pthread_mutex_unlock(&m->lock);
    if (lora) return lora;
    char *path = find_path(m->server->options, name);
    if (!path) {
        pith_fail(error, PITH_ERROR_NOT_FOUND,
                  "there is no adapter '%.80s'; GET /v1/adapters lists them", name);
        return NULL;
    }
    lora = open_lora(served->model, name, path, left, error);
    pith_free(path);
    if (!lora) return NULL;
    pith_server_log_line(m->server, PITH_SERVER_LOG_INFO, "adapter %s was loaded", name);
    return insert(served, lora);
}

pith_status pith_loras_open(pith_served *served, const pith_model *model, uint64_t limit,
                            uint64_t *bytes, pith_error *error) {
    const pith_server_options *o = served->models->server->options;
    pith_error own = {0};
    *bytes = 0;
    for (size_t i = 0; served->is_main && i < o->n_loras; i++) {
        pith_lora *lora = open_lora(model, o->loras[i].name, o->loras[i].path,
                                    limit > *bytes ? limit - *bytes : 1, &own);
        if (!lora) {
            *error = own;
            return own.status;
        }
        lora->next = served->loras;
        lora->counted = served;
        served->loras = lora;
        *bytes += lora->bytes;
    }
    return PITH_OK;
}

void pith_loras_close(pith_served *served) {
    while (served->loras) {
        pith_lora *lora = served->loras;
        served->loras = lora->next;
        lora->counted = NULL; /* all that the model takes is given back at once */
        release(lora);
    }
}

pith_status pith_loras_load(pith_served *served, const char *name, pith_error *error) {
    pith_lora *lora = hold(served, name, error);
    release(lora);
    return lora ? PITH_OK : error->status;
}

pith_status pith_loras_unload(pith_served *served, const char *name, pith_error *error) {
    pith_models *m = served->models;
    pthread_mutex_lock(&m->lock);
    pith_lora **at = &served->loras, *lora;
    while (*at && strcmp((*at)->name, name) != 0) at = &(*at)->next;
    lora = *at;
    if (lora) *at = lora->next;
    pthread_mutex_unlock(&m->lock);
    release(lora);
    if (lora) return PITH_OK;
    return pith_fail(error, PITH_ERROR_NOT_FOUND, "no adapter '%.80s' is loaded", name);
}

/* ---- Lists ---- */

typedef struct listing {
    pith_served *served;
    void (*each)(void *user, const pith_lora_info *info);
    void *user;
} listing;

static bool tell(void *user, const char *name, const char *path) {
    listing *l = user;
    pith_models *m = l->served->models;
    const pith_server_options *o = m->server->options;
    pith_lora_info info = {.name = name};
    (void)path;
    for (size_t i = 0; l->served->is_main && i < o->n_loras; i++)
        if (strcmp(o->loras[i].name, name) == 0) info.scale = o->loras[i].scale;
    pthread_mutex_lock(&m->lock);
    const pith_lora *lora = find_loaded(l->served, name);
    if (lora) {
        info.is_loaded = true;
        info.rank = pith_adapter_describe(lora->adapter).rank;
        info.bytes = lora->bytes;
    }
    pthread_mutex_unlock(&m->lock);
    l->each(l->user, &info);
    return true;
}

void pith_loras_each(pith_served *served, void (*each)(void *user, const pith_lora_info *info),
                     void *user) {
    const pith_server_options *o = served->models->server->options;
    listing l = {served, each, user};
    for (size_t i = 0; i < o->n_loras; i++) tell(&l, o->loras[i].name, o->loras[i].path);
    if (o->each_lora) o->each_lora(o->each_lora_user, tell, &l);
}

/* ---- Sets ---- */

/* What the engine counts for an adapter. */
static int32_t room_of(const pith_lora *lora) {
    return (pith_adapter_describe(lora->adapter).rank + 15) / 16 * 16;
}

/* Those of --lora, as far as they were not unloaded. */
static void take_default(pith_served *served, pith_lora_set *set) {
    const pith_server_options *o = served->models->server->options;
    pthread_mutex_lock(&served->models->lock);
    for (size_t i = 0; served->is_main && i < o->n_loras; i++) {
        pith_lora *lora = find_loaded(served, o->loras[i].name);
        if (!lora || set->n == PITH_SESSION_MAX_ADAPTERS) continue;
        atomic_fetch_add(&lora->n_holders, 1);
        set->scales[set->n] = o->loras[i].scale;
        set->items[set->n++] = lora;
    }
    pthread_mutex_unlock(&served->models->lock);
}

bool pith_loras_hold(pith_served *served, pith_lora_set *set, pith_error *error) {
    int32_t rank = 0, most = pith_engine_describe(served->engine).adapter_rank_limit;
    size_t n = set->n;
    set->n = 0;
    if (!set->is_given) take_default(served, set);
    for (size_t i = 0; i < n; i++) {
        pith_lora *lora = hold(served, set->names[i], error);
        if (!lora) return false;
        set->items[set->n++] = lora;
    }
    for (size_t i = 0; i < set->n; i++) rank += room_of(set->items[i]);
    if (rank <= most) return true;
    pith_fail(error, PITH_ERROR_LIMIT,
              "these adapters have a rank of %d together, each rounded up to 16; %d is allowed",
              (int)rank, (int)most);
    return false;
}

void pith_loras_release(pith_lora_set *set) {
    for (size_t i = 0; i < set->n; i++) release(set->items[i]);
    set->n = 0;
}

bool pith_loras_are_of(const pith_lora_set *set, const pith_session *session) {
    const pith_adapter *adapter = NULL;
    float scale = 0;
    size_t k = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (set->scales[i] == 0) continue; /* left out */
        if (!pith_session_adapter_at(session, k++, &adapter, &scale)) return false;
        if (adapter != set->items[i]->adapter || scale != set->scales[i]) return false;
    }
    return !pith_session_adapter_at(session, k, &adapter, &scale);
}

pith_status pith_loras_apply(const pith_lora_set *set, pith_session *session, pith_error *error) {
    pith_adapter *adapters[PITH_SESSION_MAX_ADAPTERS];
    if (pith_loras_are_of(set, session)) return PITH_OK;
    for (size_t i = 0; i < set->n; i++) adapters[i] = set->items[i]->adapter;
    return pith_session_set_adapters(session, adapters, set->scales, set->n, error);
}
