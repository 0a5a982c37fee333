/* SPDX-License-Identifier: Apache-2.0
 * Who answers a request: the model here, or the upstream that the server's options name.
 *
 *   head -> pith_routing_read_headers (HTTP's thread)
 *   body -> pith_routing_take (desk): upstream, or the handler, which may find that the model here
 *           cannot -> pith_routing_hand_over -> upstream
 *   upstream cannot be reached -> pith_routing_take_back -> desk again, local alone
 *
 * Invariant: nothing leaves without the policy's leave; a request marked private never does; every
 * answer says who gave it and why. Read next: upstream.h. */
#ifndef PITH_APPS_SERVER_ROUTING_H
#define PITH_APPS_SERVER_ROUTING_H

#include "server/fields.h"

typedef struct pith_routing pith_routing;

typedef enum pith_route_wish {
    PITH_WISH_NONE,
    PITH_WISH_LOCAL,
    PITH_WISH_UPSTREAM,
    PITH_WISH_UNKNOWN
} pith_route_wish;

enum { PITH_ROUTE_REASON = 160 };

/* Of one exchange; zero at first. Written by whoever works on it, before it is answered. */
typedef struct pith_route_state {
    pith_route_wish wish; /* of the header X-Pith-Route */
    bool is_private;      /* header X-Pith-Private */
    bool came_back;       /* header Via: we sent it upstream, and it led here */
    bool is_decided;
    bool may_leave;          /* it may still be handed over */
    bool may_substitute;     /* the model that it names is the upstream's: any of ours will do */
    const char *answered_by; /* "local", "upstream"; NULL: not known, or not asked */
    char reason[PITH_ROUTE_REASON];
} pith_route_state;

pith_routing *pith_routing_new(pith_server *server, pith_error *error);
void pith_routing_free(pith_routing *routing);
/* What the upstream calls its model; NULL: nothing may go there. */
const char *pith_routing_upstream_model(const pith_routing *routing);
/* What is upstream gets an error; nothing more leaves. */
void pith_routing_cancel(pith_routing *routing);
/* The same; afterwards nothing is done by another thread. NULL is allowed. */
void pith_routing_stop(pith_routing *routing);

void pith_routing_read_headers(pith_exchange *exchange);
/* true: the exchange was answered, or went upstream. */
bool pith_routing_take(pith_exchange *exchange);
/* Whether pith_routing_hand_over could be right now. */
bool pith_routing_may_hand_over(const pith_exchange *exchange);
/* The model here cannot, for why ("the queue is full"). true: the upstream has it, and answers. */
bool pith_routing_hand_over(pith_exchange *exchange, const char *why);
/* The upstream gave it back unanswered: it goes to the desk again. */
void pith_routing_take_back(pith_exchange *exchange, const char *why);
/* Prompts longer than this go upstream by rule; 0: no rule, or it may not leave. */
int32_t pith_routing_token_limit(const pith_exchange *exchange);
bool pith_routing_may_substitute(const pith_exchange *exchange);

/* {"answered_by", "reason"}: the member "pith" of answers. */
json_t *pith_routing_describe(const pith_exchange *exchange);
/* Reads the field "pith": {"route": "local" | "upstream", "private": true}. */
void pith_routing_read_field(pith_fields *fields, pith_route_wish *wish, bool *is_private);

#endif
