/* SPDX-License-Identifier: Apache-2.0
 * The HTTP server of `pith serve`: what the program gives it and the one call that runs it. All
 * else of the room is private to it.
 * Read next: server_parts.h (what holds what), route.c (which path goes where). */
#ifndef PITH_APPS_SERVER_SERVER_H
#define PITH_APPS_SERVER_SERVER_H

#include <pith.h>
#include <signal.h>

/* Returns false to end. */
typedef bool (*pith_server_visit)(void *user, const char *name, const char *path);

typedef enum pith_server_log {
    PITH_SERVER_LOG_ERROR = 0, /* what went wrong in the server */
    PITH_SERVER_LOG_INFO = 1,  /* and models that come and go */
    PITH_SERVER_LOG_DEBUG = 2  /* and a line for each request: method, path, status, time */
} pith_server_log;

typedef struct pith_server_model {
    const char *name; /* as requests call it */
    const char *path;
} pith_server_model;

typedef struct pith_server_lora {
    const char *name; /* as requests call it */
    const char *path; /* a GGUF file or a PEFT folder */
    float scale;
} pith_server_lora;
typedef enum pith_server_policy {
    PITH_ROUTE_LOCAL_ONLY = 0,  /* nothing leaves */
    PITH_ROUTE_LOCAL_FIRST = 1, /* what the local model cannot do, and what a caller sends */
    PITH_ROUTE_BY_RULES = 2     /* and what the rules below say */
} pith_server_policy;

/* A bigger engine that may answer instead: any service with OpenAI's API. */
typedef struct pith_server_upstream {
    const char *url;         /* "https://host/v1"; NULL: there is none */
    const char *model;       /* as the service calls it */
    const char *key;         /* NULL: none is sent */
    const char *key_name;    /* the variable that it came from, for messages */
    const char *authorities; /* PEM file of the certificates to trust; NULL: the system's */
    pith_server_policy policy;
    int32_t over_tokens;       /* rule: longer prompts go upstream; 0: no such rule */
    bool tools;                /* rule: requests that use tools do */
    const char *const *models; /* rule: [n_models] these names mean the upstream */
    size_t n_models;
    const char *marks;       /* text of words that keep a request here (private_marks.h), or NULL */
    const char *marks_name;  /* its file, for messages */
    const char *log_path;    /* lists what left; its folder exists */
    int32_t timeout_seconds; /* without a byte from the upstream; 0: 120 */
} pith_server_upstream;

typedef struct pith_server_options {
    const char *host;           /* "127.0.0.1", "::1"; an address, not a name */
    int32_t port;               /* 0: any that is free */
    const char *key;            /* NULL: none is needed */
    const char *const *origins; /* that browsers may ask from, besides the server's own */
    size_t n_origins;
    const pith_server_model *models; /* loaded at once; the first answers where none is named */
    size_t n_models;
    /* Further models, loaded when they are asked for; may be NULL. Called from any thread. */
    void (*each_model)(void *user, pith_server_visit visit, void *visit_user);
    void *each_user;
    const pith_server_lora *loras; /* loaded with the first model, used where none is named */
    size_t n_loras;
    /* Further LoRAs, loaded when they are asked for; may be NULL. Called from any thread. */
    void (*each_lora)(void *user, pith_server_visit visit, void *visit_user);
    void *each_lora_user;
    pith_model_options model;   /* the same for every model */
    pith_engine_options engine; /* n_sessions: replies at once; n_ctx: of each */
    int32_t n_queue;            /* requests that wait for a session; more are answered with 429 */
    uint64_t memory;            /* ceiling over all loaded models; 0: most of what the system has */
    int32_t idle_unload;        /* seconds without a request; 0: models stay */
    const char *certificate, *certificate_key; /* PEM texts; NULL: plain HTTP */
    const char *history; /* file of the page's conversations; NULL: they are not kept */
    pith_server_upstream upstream;
    pith_server_log log;
    int32_t header_seconds; /* to send a request's head; 0: 20 */
    int32_t body_seconds;   /* to send its body; 0: 60 */
    int32_t idle_seconds;   /* between requests of a connection; 0: 60 */
    int32_t stop_seconds;   /* that running replies get when the server is stopped; 0: 5 */
    uint64_t body_limit;    /* bytes; 0: 16 MiB */
    int32_t n_connections;  /* at most; 0: as many as the system gives, up to 16384 */
} pith_server_options;

/* Serves until *stop is not zero (a signal handler may set it); requests that run then get
 * stop_seconds. Writes "listening on http://HOST:PORT" to stderr once it does. Fails when the
 * address cannot be had or one of `models` cannot be loaded. */
pith_status pith_server_run(const pith_server_options *options, const volatile sig_atomic_t *stop,
                            pith_error *error);
/* "libmicrohttpd 0.9.75"; NULL in a build without it, whose pith_server_run refuses. */
const char *pith_server_library(void);

#endif
