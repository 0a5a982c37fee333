/* SPDX-License-Identifier: Apache-2.0
 * One request and its answer, as protocols see it. A handler reads the body and either replies,
 * begins a stream, or hands the exchange to something that does later, from any thread.
 * Invariant: every exchange is answered exactly once; a client that left or does not read makes
 * writes fail and disturbs nobody else. Read next: route.h, then exchange.c. */
#ifndef PITH_APPS_SERVER_EXCHANGE_H
#define PITH_APPS_SERVER_EXCHANGE_H

#include "server/server_parts.h"

/* Unsent text of a stream at which its client counts as gone. */
enum { PITH_EXCHANGE_MAX_UNSENT = 1 << 20 };

pith_server *pith_exchange_server(const pith_exchange *exchange);
const char *pith_exchange_path(const pith_exchange *exchange);
/* The request's header; NULL: absent. Valid until the exchange is answered. */
const char *pith_exchange_header(pith_exchange *exchange, const char *name);
pith_span pith_exchange_body(const pith_exchange *exchange);
/* Who asks: a hash of address, key and program (User-Agent). */
uint64_t pith_exchange_client(pith_exchange *exchange);
/* When its head was read, on pith_clock_ns. */
uint64_t pith_exchange_begun_ns(const pith_exchange *exchange);
/* Keeps the exchange beyond its answer; one release for each. */
void pith_exchange_retain(pith_exchange *exchange);
void pith_exchange_release(pith_exchange *exchange);

/* ---- Answers ---- */
/* Before the answer; value is copied. At most 8. */
void pith_exchange_add_header(pith_exchange *exchange, const char *name, const char *value);
void pith_exchange_reply_text(pith_exchange *exchange, int status, const char *type,
                              pith_span text);
/* The JSON is released; NULL: memory was short, which becomes an error 500. */
void pith_exchange_reply(pith_exchange *exchange, int status, json_t *body);

/* What went wrong, in the shape of the route's protocol. */
typedef struct pith_http_error {
    int status;          /* 400 */
    const char *type;    /* "invalid_request_error" */
    const char *code;    /* "unknown_field"; may be NULL */
    const char *param;   /* "messages[0].role"; may be NULL */
    const char *message; /* one sentence */
} pith_http_error;
void pith_exchange_fail(pith_exchange *exchange, const pith_http_error *what);
/* The body that pith_exchange_fail would send, for errors inside a stream. Released by the caller;
 * NULL without memory. */
json_t *pith_exchange_error_body(const pith_exchange *exchange, const pith_http_error *what);
/* An error of the library: its status decides 400, 503 or 500. */
pith_http_error pith_http_error_of(const pith_error *error);

/* ---- Streams ---- */
void pith_exchange_stream_begin(pith_exchange *exchange, const char *type);
/* false: the client is gone, or does not read. */
bool pith_exchange_stream_write(pith_exchange *exchange, const char *text, size_t size);
void pith_exchange_stream_end(pith_exchange *exchange);
/* "data: JSON\n\n", with "event: NAME\n" before it unless event is NULL. The JSON is released; NULL
 * (memory was short) cuts the stream. */
bool pith_exchange_stream_event(pith_exchange *exchange, const char *event, json_t *data);
/* The JSON and a line's end: NDJSON. The same. */
bool pith_exchange_stream_line(pith_exchange *exchange, json_t *data);
/* Bytes of a stream that the client did not take yet. */
size_t pith_exchange_unsent(pith_exchange *exchange);
/* Asks the system too; costs a call of it. */
bool pith_exchange_is_gone(pith_exchange *exchange);

#endif
