/* SPDX-License-Identifier: Apache-2.0
 * The models themselves: between model_pool.c (names, leases, lists) and model_load.c (memory,
 * loads, what a model takes beside its replies). `lock` covers everything here. */
#ifndef PITH_APPS_SERVER_MODEL_POOL_STATE_H
#define PITH_APPS_SERVER_MODEL_POOL_STATE_H

#include "server/embed_job.h"
#include "server/engine_thread.h"
#include "server/exchange_state.h"

struct pith_served {
    pith_models *models;
    char *name, *path;
    bool is_first;     /* of the models that the server was started with */
    uint64_t found_at; /* the last look for files that found its file */
    bool is_main;      /* the first of them */
    bool was_ready;
    pith_served_state state;
    pith_error error; /* of the last failure */
    pith_engine_thread *thread;
    pith_embed_thread *embed_thread; /* NULL: no vectors were asked for */
    bool is_closing;
    struct pith_lora *loras; /* loaded ones (adapter_pool.c) */
    uint64_t lora_bytes;     /* of those that were loaded with the model */
    pith_model *model;       /* and the engine: written by its thread before READY */
    pith_engine *engine;
    pith_model_info info;
    pith_engine_info engine_info;
    size_t longest_piece; /* bytes that a token stands for at most; 0: there is no such limit */
    int n_leases;
    int n_claims; /* parked exchanges that it was loaded for and that have no lease yet */
    uint64_t used_ns, bytes; /* when it was given back last; what it takes, or is about to */
    bool keeps;              /* a request said how long it stays */
    int64_t keep_seconds;    /* negative: for good */
    _Atomic double progress;
};

struct pith_models {
    pith_server *server;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pith_served **items;
    size_t n;
    uint64_t limit, taken;       /* bytes */
    int n_waiting;               /* loads that wait for room */
    int n_leaving;               /* models being taken out */
    uint64_t n_scans, last_scan; /* looks for files: begun, and the last of those that ended */
    pith_exchange *parked;
    atomic_bool is_cancelled;
};

/* Every change lets parked exchanges ask again. Under the lock. */
void pith_models_wake(pith_models *models);
/* Takes out what was idle for too long. Under the lock, which is left meanwhile. */
void pith_models_take_out_idle(pith_models *models);

#endif
