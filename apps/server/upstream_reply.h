/* SPDX-License-Identifier: Apache-2.0
 * An answer of the upstream on its way to the client: what is right passes unchanged, what is wrong
 * becomes one error. Knows no network: upstream.c gives it lines of the head, bytes and the end.
 *
 * A whole answer is checked before the client gets any of it: JSON, with choices; {"pith": ...} is
 * put in front of its members. A stream passes byte by byte and is over with its [DONE], whatever
 * comes then or does not come; one that ends without it gets an error event as its last word. */
#ifndef PITH_APPS_SERVER_UPSTREAM_REPLY_H
#define PITH_APPS_SERVER_UPSTREAM_REPLY_H

#include "server/exchange.h"

enum {
    PITH_UPSTREAM_WHOLE_MAX = 32 << 20,   /* bytes of an answer that is no stream */
    PITH_UPSTREAM_HELD_MAX = 256 << 20,   /* of all such answers together */
    PITH_UPSTREAM_VALUES_MAX = 4 << 20,   /* of an answer's JSON */
    PITH_UPSTREAM_UNSENT_MAX = 256 << 10, /* of a stream that the client did not take yet */
    PITH_UPSTREAM_TAIL = 32
};

typedef enum pith_upstream_taken {
    PITH_UPSTREAM_TAKEN,
    PITH_UPSTREAM_LATER, /* the client is slow: give the same bytes again */
    PITH_UPSTREAM_STOP   /* it is wrong, or the client left */
} pith_upstream_taken;

typedef struct pith_upstream_reply {
    pith_exchange *exchange;
    const char *key_name; /* for the message when the key is refused; NULL: none was sent */
    bool wants_stream;
    long status;
    char type[80], retry_after[16];
    bool has_begun, is_gone;
    bool is_complete; /* the stream said that it is at its end, and the client was told */
    char tail[PITH_UPSTREAM_TAIL]; /* [n_tail] the last bytes of a stream */
    size_t n_tail;
    pith_buffer whole;
    uint64_t n_held; /* of its bytes, counted in the server */
    json_t *json;    /* of it, once it was judged */
    uint64_t n_bytes;
    const char *code; /* of what is wrong; NULL: nothing so far */
    char wrong[240];
} pith_upstream_reply;

/* A line of a head; "HTTP/..." begins a new one. */
void pith_upstream_reply_line(pith_upstream_reply *reply, const char *line, size_t size);
pith_upstream_taken pith_upstream_reply_data(pith_upstream_reply *reply, const char *data,
                                             size_t size);
/* Records what is wrong, unless something was before. */
void pith_upstream_reply_wrong(pith_upstream_reply *reply, const char *code, const char *format,
                               ...) PITH_PRINTF(3, 4);
/* All came, or something is wrong: finds what is wrong with the whole. */
void pith_upstream_reply_judge(pith_upstream_reply *reply);
/* Afterwards: answers the exchange. */
void pith_upstream_reply_end(pith_upstream_reply *reply);

#endif
