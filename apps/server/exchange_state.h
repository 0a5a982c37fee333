/* SPDX-License-Identifier: Apache-2.0
 * The exchange itself: between exchange.c (answers, from any thread) and http.c (the daemon's
 * thread).
 *
 *   READING --body is there--> HANDED --reply--> REPLIED
 *                                     --stream_begin--> STREAMING --stream_end--> STREAMING, ended
 *
 * While nothing is to be sent the connection is suspended, which costs no thread. Invariant:
 * `suspended` changes only under the lock, together with the daemon's own state. */
#ifndef PITH_APPS_SERVER_EXCHANGE_STATE_H
#define PITH_APPS_SERVER_EXCHANGE_STATE_H

#include "server/route.h"
#include "server/routing.h"

#include <microhttpd.h>
#include <pthread.h>

typedef enum pith_exchange_phase {
    PITH_EXCHANGE_READING,
    PITH_EXCHANGE_HANDED,
    PITH_EXCHANGE_REPLIED,
    PITH_EXCHANGE_STREAMING
} pith_exchange_phase;

enum { PITH_EXCHANGE_HEADERS = 8 };

struct pith_exchange {
    pith_server *server;
    const pith_route *route; /* NULL: refused before one was found */
    pith_error_shape shape;
    atomic_int n_holders;
    char *method, *path;
    pith_buffer body;
    uint64_t body_limit, body_seen, body_counted; /* bytes; counted: of those of all exchanges */
    uint64_t begun_ns;
    bool is_counted; /* in the daemon's number of answers */
    pith_route_state routing;
    pith_exchange *next;       /* in the desk's queue, or parked */
    pith_exchange *aborted;    /* the next one that is, when the server ends */
    struct pith_served *claim; /* that is loaded for it; under the lock of the models */

    pthread_mutex_t lock; /* of all below */
    pith_exchange_phase phase;
    struct MHD_Connection *connection; /* NULL once the daemon is done with it */
    int descriptor;
    bool is_suspended, is_gone, is_ended;
    int status;
    const char *type; /* of the answer; static */
    pith_buffer out;
    size_t n_sent; /* of out */
    size_t n_held; /* bytes of a large answer, counted in the server */
    char *header_names[PITH_EXCHANGE_HEADERS], *header_values[PITH_EXCHANGE_HEADERS];
    int n_headers;
};

/* NULL without memory. One holder. */
pith_exchange *pith_exchange_new(pith_server *server, const char *method, const char *path);
/* Ends whatever is still owed to its client: 503, or a stream that is cut. */
void pith_exchange_abort(pith_exchange *exchange);
/* Answers once the phase allows it: called by the daemon's thread. */
enum MHD_Result pith_exchange_answer(pith_exchange *exchange);
/* Suspends the connection unless the answer is there already; then answers. */
enum MHD_Result pith_exchange_wait(pith_exchange *exchange);

#endif
