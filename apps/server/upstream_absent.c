/* SPDX-License-Identifier: Apache-2.0
 * The upstream of a build without libcurl, or with one too old: it says so.
 * Read next: upstream.c. */
#include "server/upstream.h"

#if !PITH_WITH_UPSTREAM

pith_upstream *pith_upstream_new(pith_server *server, pith_error *error) {
    (void)server;
    pith_fail(error, PITH_ERROR_UNSUPPORTED,
              "this build has no upstream: install libcurl 7.68 or newer (script/bootstrap does) "
              "and build again");
    return NULL;
}

void pith_upstream_cancel(pith_upstream *upstream) {
    (void)upstream;
}

void pith_upstream_stop(pith_upstream *upstream) {
    (void)upstream;
}

void pith_upstream_free(pith_upstream *upstream) {
    (void)upstream;
}

bool pith_upstream_is_there(pith_upstream *upstream) {
    (void)upstream;
    return false;
}

bool pith_upstream_send(pith_upstream *upstream, pith_exchange *exchange, char *body,
                        bool wants_stream, pith_error *error) {
    (void)upstream;
    (void)exchange;
    (void)body;
    (void)wants_stream;
    pith_fail(error, PITH_ERROR_UNSUPPORTED, "this build has no upstream");
    return false;
}

bool pith_upstream_is_via(const pith_upstream *upstream, const char *via) {
    (void)upstream;
    (void)via;
    return false;
}

const char *pith_upstream_origin(const pith_upstream *upstream) {
    (void)upstream;
    return "";
}

#else
typedef int pith_upstream_is_elsewhere;
#endif
