/* SPDX-License-Identifier: Apache-2.0
 * LoRAs by name. What can be used is named when the server starts (--lora, --lora-folder): a
 * request names one of these names, never a path. An adapter belongs to a loaded model and goes
 * with it. Those of --lora are loaded with the first model and used, with their scales, by every
 * request to it that does not say otherwise. */
#ifndef PITH_APPS_SERVER_ADAPTER_POOL_H
#define PITH_APPS_SERVER_ADAPTER_POOL_H

#include "server/model_pool.h"

typedef struct pith_lora pith_lora; /* a loaded one, held by whoever uses it */

/* What a request asks for, and what a job holds. */
typedef struct pith_lora_set {
    const char *names[PITH_SESSION_MAX_ADAPTERS]; /* borrowed while a request is read */
    pith_lora *items[PITH_SESSION_MAX_ADAPTERS];
    float scales[PITH_SESSION_MAX_ADAPTERS];
    size_t n;
    bool is_given; /* by the request; else those of --lora are used */
} pith_lora_set;

/* Loads what is not loaded yet and holds all of the set; false: with a message. */
bool pith_loras_hold(pith_served *served, pith_lora_set *set, pith_error *error);
void pith_loras_release(pith_lora_set *set);
/* Whether the session has exactly these. */
bool pith_loras_are_of(const pith_lora_set *set, const pith_session *session);
pith_status pith_loras_apply(const pith_lora_set *set, pith_session *session, pith_error *error);

/* Of a leased model; unloading what is in use is allowed: replies that have it keep it. */
pith_status pith_loras_load(pith_served *served, const char *name, pith_error *error);
pith_status pith_loras_unload(pith_served *served, const char *name, pith_error *error);
typedef struct pith_lora_info {
    const char *name;
    bool is_loaded;
    float scale; /* with which --lora uses it; 0: only where a request names it */
    int32_t rank;
    uint64_t bytes;
} pith_lora_info;
void pith_loras_each(pith_served *served, void (*each)(void *user, const pith_lora_info *info),
                     void *user);

/* ---- For model_load.c ---- */
/* Those of --lora, while the model is loaded; *bytes: what they take. */
pith_status pith_loras_open(pith_served *served, const pith_model *model, uint64_t limit,
                            uint64_t *bytes, pith_error *error);
/* When no session is left. */
void pith_loras_close(pith_served *served);

#endif
