/* SPDX-License-Identifier: Apache-2.0
 * GET /: the page. It needs no key, since it holds nothing of anybody's; what it then asks for
 * does.
 * Invariant: the policy that goes with it lets it run its own script, talk to this server, and
 * nothing else: not even an image is loaded from elsewhere. */
#include "server/page_file.h"
#include "server/route.h"

#include <stdlib.h>
#include <string.h>

static bool is_word_end(char c) {
    return c == 0 || c == ',' || c == ';' || c == ' ' || c == '\t';
}

/* "gzip" among the codings, unless its weight is 0. */
bool pith_page_takes_gzip(const char *codings) {
    for (const char *at = codings; at && *at;) {
        at += strspn(at, " \t,");
        const char *end = at + strcspn(at, ",");
        const char *weight = memchr(at, ';', (size_t)(end - at));
        bool named = strncmp(at, "gzip", 4) == 0 && is_word_end(at[4]);
        if (named && weight) weight += strspn(weight, "; \t");
        if (named && (!weight || strncmp(weight, "q=", 2) != 0 || strtod(weight + 2, NULL) > 0))
            return true;
        at = end;
    }
    return false;
}

static void refuse(pith_exchange *exchange) {
    pith_buffer text = {0};
    pith_buffer_append_format(&text,
                              "pith serves, but this build is without its page: %s. The API is "
                              "below /v1; GET /v1/models lists the models.\n",
                              pith_page.absence);
    pith_exchange_reply_text(exchange, 404, "text/plain; charset=utf-8",
                             pith_span_of(text.data ? text.data : "out of memory\n"));
    pith_buffer_deinit(&text);
}

void pith_handle_page(pith_exchange *exchange) {
    const pith_page_file *page = &pith_page;
    if (!page->plain) {
        refuse(exchange);
        return;
    }
    bool packed = pith_page_takes_gzip(pith_exchange_header(exchange, "Accept-Encoding"));
    if (packed) pith_exchange_add_header(exchange, "Content-Encoding", "gzip");
    pith_exchange_add_header(exchange, "Vary", "Accept-Encoding");
    pith_exchange_add_header(exchange, "Content-Security-Policy", page->policy);
    pith_exchange_add_header(exchange, "X-Frame-Options", "DENY");
    pith_exchange_add_header(exchange, "Referrer-Policy", "no-referrer");
    pith_exchange_add_header(exchange, "Cross-Origin-Opener-Policy", "same-origin");
    pith_span text = {(const char *)(packed ? page->packed : page->plain),
                      packed ? page->packed_size : page->plain_size};
    pith_exchange_reply_text(exchange, 200, "text/html; charset=utf-8", text);
}
