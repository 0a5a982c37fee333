/* SPDX-License-Identifier: Apache-2.0
 * The parts of a running server and who holds whom (private to apps/server).
 *
 *   client -> http.c (one thread, no waiting) -> exchange
 *                 quick route: answered at once
 *                 else: desk.c (two threads) -> handler -> model_pool.c -> job -> engine_thread.c
 *                                             \-> routing.c -> upstream.c (one thread)
 *   client <- http.c <- exchange.c (bounded text) <- protocol's events <- engine_thread.c (one
 *                                                                     thread for a loaded model)
 *
 * Locks, outer to inner: models, engine thread, upstream, exchange. None is held while an engine
 * steps.
 * Read next: exchange.h (what a protocol sees of HTTP), job.h (what it asks of an engine). */
#ifndef PITH_APPS_SERVER_SERVER_PARTS_H
#define PITH_APPS_SERVER_SERVER_PARTS_H

#include "base/text.h"
#include "server/server.h"

#include <jansson.h>
#include <stdatomic.h>

typedef struct pith_server pith_server;
typedef struct pith_http pith_http;
typedef struct pith_desk pith_desk;
typedef struct pith_models pith_models;
typedef struct pith_exchange pith_exchange;
typedef struct pith_chat_history pith_chat_history;
struct pith_routing;

/* What /metrics tells, counted where it happens. */
typedef struct pith_server_counts {
    atomic_ullong requests, refused, failed; /* answered at all, with 4xx, with 5xx */
    atomic_ullong prompt_tokens, cached_tokens, predicted_tokens, drafted_tokens, accepted_tokens;
    atomic_ullong prompt_us, predicted_us; /* of finished replies */
    atomic_ullong replies, cancelled;      /* finished; of them, those whose client left */
    atomic_ullong loads, unloads;
    atomic_ullong upstream_requests, upstream_failed, upstream_sent; /* sent: bytes of bodies */
    atomic_int running, queued, connections;
} pith_server_counts;

struct pith_server {
    const pith_server_options *options;
    pith_http *http;
    pith_desk *desk, *list_desk; /* the second for routes that never take long */
    pith_desk *history_desk;     /* for those that may wait for the history's file */
    pith_models *models;
    pith_chat_history *history; /* of the page */
    struct pith_routing *routing;
    pith_server_counts counts;
    atomic_bool is_stopping;     /* new requests are refused */
    atomic_int n_handed;         /* exchanges that wait for their answer */
    atomic_ullong held_bytes;    /* of large answers that are not wholly sent */
    atomic_ullong n_ids;         /* of replies given out so far: their names */
    atomic_ullong upstream_held; /* bytes of the upstream's answers that are not whole yet */
    uint64_t started_ns;
};

/* "pith: TEXT" on stderr where the level is wanted. Never gets keys or what users wrote. */
void pith_server_log_line(const pith_server *server, pith_server_log level, const char *format, ...)
    PITH_PRINTF(3, 4);
/* "chatcmpl-0000002a5f3c..." with a prefix of the caller's; unique in this process and unlikely to
 * repeat in another. */
void pith_server_name_reply(pith_server *server, const char *prefix, char out[64]);

/* ---- Desk (desk.c): threads that run what may take a while ---- */
pith_desk *pith_desk_new(pith_server *server, int n_threads, size_t limit, pith_error *error);
/* Hands the exchange to its route's handler, at the desk of the route. false: too many wait. */
bool pith_desk_push(pith_exchange *exchange);
/* The same for one that was parked: never refused. The caller's hold is taken over. */
void pith_desk_push_again(pith_exchange *exchange);
void pith_desk_free(pith_desk *desk);

/* ---- HTTP (http.c) ---- */
pith_http *pith_http_new(pith_server *server, pith_error *error);
int pith_http_port(const pith_http *http);
/* Requests whose answer is not wholly sent yet. */
int pith_http_n_answers(const pith_http *http);
/* Closes connections that take too long over a request. Call it a few times a second. */
void pith_http_tick(pith_http *http);
/* Ends what is still owed to clients, so that the daemon can be stopped. */
void pith_http_abort(pith_http *http);
/* No new connections. */
void pith_http_quiesce(pith_http *http);
/* When no exchange waits any more. */
void pith_http_free(pith_http *http);

/* ---- Who may ask (gatekeeper.c) ---- */
/* Whether two texts are the same, in a time that does not tell where they differ. */
bool pith_guard_same(const char *a, const char *b);
/* Whether the Host header names this server: an address, localhost, or the bound host; a name of
 * another's domain that was made to point here is refused (rebinding). Where a key is needed any
 * name will do. */
bool pith_guard_host(const pith_server_options *options, const char *host);
/* Whether the Origin header may: it is listed, or it is the server itself, as Host says. */
bool pith_guard_origin(const pith_server_options *options, const char *origin, const char *host);
/* Whether a request without an Origin may, by what the browser says of it (Sec-Fetch-Site, -Mode
 * and -Dest; NULL: nothing): what a page of another site includes may not, but for a link that the
 * user follows. */
bool pith_guard_site(const char *site, const char *mode, const char *dest);

#endif
