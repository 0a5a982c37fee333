/* SPDX-License-Identifier: Apache-2.0
 * Models by name: loaded when they are asked for, taken out when they are idle or another needs
 * their memory. A handler leases a model, and may use it until it gives it back; jobs hold leases
 * of their own. */
#ifndef PITH_APPS_SERVER_MODEL_POOL_H
#define PITH_APPS_SERVER_MODEL_POOL_H

#include "server/server_parts.h"

typedef struct pith_served pith_served; /* one model by its name */
typedef struct pith_engine_thread pith_engine_thread;
typedef struct pith_embed_thread pith_embed_thread;

typedef enum pith_served_state {
    PITH_SERVED_ABSENT,  /* not loaded */
    PITH_SERVED_LOADING, /* or waiting for memory */
    PITH_SERVED_READY,
    PITH_SERVED_FAILED
} pith_served_state;

typedef enum pith_lease {
    PITH_LEASE_OK,
    PITH_LEASE_PARKED, /* the handler returns; it is called again when the model is loaded */
    PITH_LEASE_REFUSED /* the exchange was answered, or handed over to the upstream */
} pith_lease;

pith_models *pith_models_new(pith_server *server, pith_error *error);
/* Loads those that the server was started with. */
void pith_models_start(pith_models *models);
void pith_models_free(pith_models *models);
/* name NULL: the first model. Before the exchange is parked nothing of it may be in use. */
pith_lease pith_models_lease(pith_models *models, const char *name, pith_exchange *exchange,
                             pith_served **out);
void pith_models_lease_again(pith_served *served); /* of one that is leased */
/* The model that was loaded for the exchange need not wait for it any more. */
void pith_models_drop_claim(pith_models *models, pith_exchange *exchange);
/* Whether a model of this name is known and not in memory, nor on its way there. */
bool pith_models_is_absent(pith_models *models, const char *name);
void pith_models_give_back(pith_served *served);
/* Takes out what was idle for too long; stops vectors that nobody waits for. Call it a few times a
 * second. */
void pith_models_tick(pith_models *models);
/* No more loads; everything that runs is cancelled, parked exchanges are refused. */
void pith_models_cancel(pith_models *models);
/* true: one of the models that the server was started with cannot be loaded. */
bool pith_models_failed(pith_models *models, pith_error *error);

/* The file of a model, for its header alone: it is never told. Released by the caller; NULL: there
 * is none of this name. */
char *pith_models_path(pith_models *models, const char *name);

/* ---- Of a leased model ---- */
/* How long it stays once it is idle, until the next lease; negative: for good. */
void pith_served_keep(pith_served *served, int64_t seconds);
const char *pith_served_name(const pith_served *served);
const pith_model *pith_served_model(const pith_served *served);
pith_engine_thread *pith_served_thread(const pith_served *served);
/* Made when it is first asked for; NULL with a message. */
pith_embed_thread *pith_served_embed_thread(pith_served *served, pith_error *error);
int32_t pith_served_n_ctx(const pith_served *served);
/* Bytes: a longer text cannot fit into the context, however it is cut into tokens. */
size_t pith_served_text_limit(const pith_served *served);
const char *pith_served_backend(const pith_served *served);

/* ---- Lists ---- */
typedef struct pith_served_info {
    const char *name;
    pith_served_state state;
    bool is_starting; /* the server was started with it, and it was not ready yet */
    double progress;  /* of loading, 0..1 */
    int32_t n_ctx;    /* 0: not loaded */
    int32_t n_ctx_train;
    uint64_t n_parameters, weight_bytes, bytes; /* bytes: of all that it takes while loaded */
    int64_t keep_seconds; /* that it stays once it is idle; negative: for good */
    double idle_seconds;
} pith_served_info;
/* Calls each for every model, those of the start first; the names live while it is called. Returns
 * false to end. */
void pith_models_each(pith_models *models, bool (*each)(void *user, const pith_served_info *info),
                      void *user);
/* The same without a look into the folder: quick. */
void pith_models_each_known(pith_models *models,
                            bool (*each)(void *user, const pith_served_info *info), void *user);

/* ---- For engine_thread.c ---- */
/* Makes room and loads; the thread then tells one of the next two. */
bool pith_served_open(pith_served *served, pith_error *error);
void pith_served_ready(pith_served *served);
void pith_served_fail(pith_served *served, const pith_error *error);
void pith_served_close(pith_served *served);
/* For embed_thread.c: an engine for vectors, which the ceiling allows. */
pith_status pith_served_open_embeddings(pith_served *served, pith_engine **out,
                                        pith_session **session, pith_error *error);
pith_engine *pith_served_engine(const pith_served *served);
pith_server *pith_served_server(const pith_served *served);

#endif
