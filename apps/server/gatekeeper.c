/* SPDX-License-Identifier: Apache-2.0
 * Who may ask: keys, Host and Origin.
 *
 * A page of any site can make a browser send requests to this machine. Two checks stop it: its
 * Origin is not listed; and where its own name was made to point here (DNS rebinding), so that the
 * browser takes the server for the site's own, the Host header is that name and not an address.
 * Images, scripts and frames of a page have no Origin; browsers say Sec-Fetch-Site of them.
 * Invariant: what is not understood is refused. Read next: http.c. */
#include "server/server_parts.h"

#include <string.h>

bool pith_guard_same(const char *a, const char *b) {
    size_t n_a = strlen(a), n_b = strlen(b);
    size_t n = n_a > n_b ? n_a : n_b;
    unsigned differ = n_a == n_b ? 0 : 1;
    for (size_t i = 0; i < n; i++) {
        unsigned char x = i < n_a ? (unsigned char)a[i] : 0;
        unsigned char y = i < n_b ? (unsigned char)b[i] : 0;
        differ |= (unsigned)(x ^ y);
    }
    return differ == 0;
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_name(pith_span a, const char *b) {
    if (a.size != strlen(b)) return false;
    for (size_t i = 0; i < a.size; i++)
        if (lower(a.data[i]) != lower(b[i])) return false;
    return true;
}

/* The name in "name:port", "[v6]:port" (without brackets); size 0: it is none of them. */
static pith_span name_of(const char *host) {
    const char *end = host + strlen(host), *close = strchr(host, ']');
    pith_span name = {host, (size_t)(end - host)};
    const char *port = end;
    if (host[0] == '[') {
        if (!close) return (pith_span){NULL, 0};
        name = (pith_span){host + 1, (size_t)(close - host - 1)};
        port = close + 1;
    } else if (strchr(host, ':')) {
        port = strchr(host, ':');
        name.size = (size_t)(port - host);
    }
    if (*port == 0) return name;
    if (*port != ':' || strspn(port + 1, "0123456789") != strlen(port + 1))
        return (pith_span){NULL, 0};
    return name;
}

/* Digits and dots, or hexadecimal digits and colons: no name can be one of these. */
static bool is_address(pith_span name) {
    bool v4 = name.size > 0, v6 = name.size > 0 && memchr(name.data, ':', name.size);
    for (size_t i = 0; i < name.size; i++) {
        v4 = v4 && strchr("0123456789.", name.data[i]) && name.data[i];
        v6 = v6 && strchr("0123456789abcdefABCDEF:.", name.data[i]) && name.data[i];
    }
    return v4 || v6;
}

bool pith_guard_host(const pith_server_options *options, const char *host) {
    if (options->key || !host) return true; /* HTTP/1.0 has none, and no browser speaks it */
    pith_span name = name_of(host);
    return is_address(name) || same_name(name, "localhost") || same_name(name, options->host);
}

bool pith_guard_origin(const pith_server_options *options, const char *origin, const char *host) {
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < options->n_origins; i++)
        if (strcmp(origin, options->origins[i]) == 0) return true;
    for (size_t i = 0; host && host[0] && i < 2; i++) {
        size_t n = strlen(schemes[i]);
        pith_span rest = {origin + n, strlen(origin) > n ? strlen(origin) - n : 0};
        if (strncmp(origin, schemes[i], n) == 0 && same_name(rest, host)) return true;
    }
    return false;
}

bool pith_guard_site(const char *site, const char *mode, const char *dest) {
    bool is_own = !site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
    bool is_link = mode && strcmp(mode, "navigate") == 0 && dest && strcmp(dest, "document") == 0;
    return is_own || is_link;
}
