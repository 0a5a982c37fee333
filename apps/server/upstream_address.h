/* SPDX-License-Identifier: Apache-2.0
 * The address of an upstream, as --upstream has it. */
#ifndef PITH_APPS_SERVER_UPSTREAM_ADDRESS_H
#define PITH_APPS_SERVER_UPSTREAM_ADDRESS_H

#include "base/status.h"

enum { PITH_UPSTREAM_URL = 1000 };

typedef struct pith_upstream_address {
    char base[PITH_UPSTREAM_URL];   /* "https://host:8000/v1", without a slash at its end */
    char origin[PITH_UPSTREAM_URL]; /* "https://host:8000" */
    bool is_tls;
    bool is_loopback; /* by its name: no proxy leads there */
} pith_upstream_address;

/* "https://host[:port][/path]" without a name, a password or a query; no path means /v1. false
 * with an error that does not repeat the address, which may hold a password. */
bool pith_upstream_address_read(const char *url, pith_upstream_address *out, pith_error *error);

#endif
