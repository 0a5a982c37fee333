/* SPDX-License-Identifier: Apache-2.0
 * Reading an upstream's address. libcurl reads it again: here it is only made sure that nothing is
 * in it that would be logged, or that changes where requests go. Read next: upstream.c. */
#include "server/upstream_address.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_plain(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] <= ' ' || strchr("@?#\\\x7F", text[i])) return false;
    return size > 0;
}

/* Whether the host is the name, and not only begins so; `more` may follow. */
static bool is_host(const char *host, const char *name, const char *more) {
    size_t size = strlen(name);
    if (strncasecmp(host, name, size) != 0) return false;
    return strchr(":/", host[size + strspn(host + size, more)]) != NULL; /* or its end */
}

bool pith_upstream_address_read(const char *url, pith_upstream_address *out, pith_error *error) {
    const char *host = strstr(url, "://");
    bool ok = strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
    size_t n_host = ok ? strcspn(host + 3, "/") : 0, size = strlen(url);
    ok = ok && is_plain(host + 3, size - (size_t)(host + 3 - url)) && n_host > 0;
    while (size > 0 && url[size - 1] == '/') size--;
    if (!ok || size + sizeof "/v1" > sizeof out->base) {
        pith_fail(
            error, PITH_ERROR_ARGUMENT,
            "--upstream needs an address such as https://host:8000/v1, without name, password "
            "or query");
        return false;
    }
    size_t n_origin = (size_t)(host + 3 - url) + n_host;
    snprintf(out->origin, sizeof out->origin, "%.*s", (int)n_origin, url);
    snprintf(out->base, sizeof out->base, "%.*s%s", (int)size, url, size <= n_origin ? "/v1" : "");
    out->is_tls = strncasecmp(url, "https", 5) == 0;
    host += 3;
    out->is_loopback = is_host(host, "127.", "0123456789.") || is_host(host, "[::1]", "") ||
                       is_host(host, "localhost", "");
    return true;
}
