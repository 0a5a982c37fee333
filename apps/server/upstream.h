/* SPDX-License-Identifier: Apache-2.0
 * The upstream: one thread with libcurl that sends requests on and passes answers back as they
 * come. An upstream that cannot be reached gives requests back within PITH_UPSTREAM_CONNECT_MS, and
 * is not asked again before a probe without any request found it.
 * Invariant: what the upstream does wrong becomes one clear error of the request that it concerns;
 * a client that leaves ends its transfer. The key goes into the Authorization header and nowhere
 * else. Read next: upstream_reply.h, upstream_log.h. */
#ifndef PITH_APPS_SERVER_UPSTREAM_H
#define PITH_APPS_SERVER_UPSTREAM_H

#include "server/exchange.h"

enum { PITH_UPSTREAM_CONNECT_MS = 70 };

typedef struct pith_upstream pith_upstream;

/* NULL with an error: libcurl is not there, or the address is wrong. */
pith_upstream *pith_upstream_new(pith_server *server, pith_error *error);
/* Ends all transfers with an error; no new ones. */
void pith_upstream_cancel(pith_upstream *upstream);
/* The same, and waits until its thread has ended. */
void pith_upstream_stop(pith_upstream *upstream);
void pith_upstream_free(pith_upstream *upstream);

/* false: it could not be reached lately. Looks again in the background when it is time to. */
bool pith_upstream_is_there(pith_upstream *upstream);
/* Takes over body (of json_dumps), holds the exchange until it is answered or taken back. false:
 * nothing was sent and nothing will be; the error says why. */
bool pith_upstream_send(pith_upstream *upstream, pith_exchange *exchange, char *body,
                        bool wants_stream, pith_error *error);
/* Whether a request with this header Via was sent by us before, or passed too many others. */
bool pith_upstream_is_via(const pith_upstream *upstream, const char *via);
/* "https://host:port", for logs and messages. */
const char *pith_upstream_origin(const pith_upstream *upstream);

#endif
