/* SPDX-License-Identifier: Apache-2.0
 * Requests over HTTP: one answer into memory, and what downloads share (fetch.c; download.c).
 * Built with libcurl alone; commands see pull.h.
 * Invariant: a token goes to the host that it is for and nowhere else, and into no message. */
#ifndef PITH_APPS_PITH_FETCH_H
#define PITH_APPS_PITH_FETCH_H

#include "pith/cli.h"

#include <curl/curl.h>

typedef struct pith_cli_request {
    const char *url;
    const char *token;     /* for the host of `url` alone; NULL: none */
    const char *validator; /* If-Range; NULL or "": none */
    char range[64];        /* "0-99"; "": the whole */
    int32_t timeout;       /* seconds without a byte before the connection counts as dead */
} pith_cli_request;

/* What the headers said: of the last response of a chain of redirects, where not told otherwise. */
typedef struct pith_cli_answer {
    long status;
    char etag[256], modified[64], type[64];
    char next[1024]; /* the address of a list's next page */
    char digest[65]; /* X-Linked-ETag, when it is a SHA-256, of the host that was asked */
    uint64_t linked; /* X-Linked-Size of that host; 0: not told */
    uint64_t first;  /* of Content-Range */
    uint64_t total;  /* bytes of the whole file; 0: not told */
    bool has_range;  /* there was a Content-Range */
    bool has_total;
    long retry_after; /* seconds; 0: not told */
    size_t header_bytes;
    bool too_large;    /* more header than is read */
    bool is_elsewhere; /* a redirect left the host */
    char origin[300];  /* scheme://host:port of the request */
} pith_cli_answer;

/* A handle for the request. The answer and *headers live until pith_cli_fetch_end; they get the
 * headers as they come. NULL without memory. */
CURL *pith_cli_fetch_begin(const pith_cli_request *request, pith_cli_answer *answer,
                           struct curl_slist **headers);
void pith_cli_fetch_end(CURL *handle, struct curl_slist *headers);
/* Whether the same request may go well a little later. */
bool pith_cli_fetch_may_repeat(CURLcode code, long status);
/* The sentence for a request that failed; returns its status. */
pith_status pith_cli_fetch_explain(const pith_cli_request *request, const pith_cli_answer *answer,
                                   CURLcode code, pith_error *error);

/* How often to try again, and when. */
typedef struct pith_cli_patience {
    int32_t limit; /* tries in a row that may fail */
    int32_t failed;
    uint64_t until_ns; /* not before */
} pith_cli_patience;
/* One more failure; wanted: seconds that the server asked for, 0 none. false: enough. Failures
 * within a wait are those of the same incident and count once. */
bool pith_cli_patience_take(pith_cli_patience *patience, long wanted);
/* Milliseconds until the next try is due. */
int pith_cli_patience_left(const pith_cli_patience *patience);

/* The whole answer, at most `limit` bytes, with patience. */
pith_status pith_cli_fetch_text(const pith_cli_request *request, size_t limit, pith_buffer *out,
                                pith_cli_answer *answer, pith_error *error);
/* The first bytes of a file (the range of the request) and what the headers say of the whole. A
 * server that knows no ranges is cut off after them. */
enum { PITH_CLI_PEEK = 512 };
pith_status pith_cli_fetch_peek(const pith_cli_request *request, char bytes[PITH_CLI_PEEK],
                                size_t *size, pith_cli_answer *answer, pith_error *error);

#endif
