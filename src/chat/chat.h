/* SPDX-License-Identifier: Apache-2.0
 * Chat templates: a Jinja engine of our own (the language as in transformers' apply_chat_template). Strings carry who
 * wrote them, so that the result says which spans come from the template and which from the user, whatever filters the
 * text went through. No recursion whose depth the input decides; limits on steps, output and depth. */
#ifndef PITH_CHAT_CHAT_H
#define PITH_CHAT_CHAT_H

#include "base/text.h"
#include <jansson.h>

enum { /* published limits */
    PITH_TEMPLATE_MAX_BYTES = 1 << 20,        /* template text */
    PITH_TEMPLATE_MAX_DEPTH = 200,            /* nesting of statements, expressions, macro calls */
    PITH_TEMPLATE_MAX_OUTPUT = 64 << 20,      /* rendered bytes */
    PITH_TEMPLATE_MAX_STEPS = 50 * 1000 * 1000 /* evaluated nodes */
};

typedef struct pith_template pith_template;

/* Parses; PITH_ERROR_TEMPLATE with line and what was expected. */
pith_status pith_template_new(pith_span text, pith_template **out, pith_error *error);
void pith_template_free(pith_template *tpl);

typedef struct pith_rendered_span { size_t offset, size; bool is_user; } pith_rendered_span;
typedef struct pith_rendered {
    pith_buffer text;
    pith_rendered_span *spans; /* adjacent, in order, covering text */
    size_t n_spans;
} pith_rendered; /* zero-initialised is empty */

/* context: an object; its keys become variables. Strings inside are the user's, except those of the keys named in
 * `trusted` (NULL-terminated list, e.g. {"bos_token", "eos_token", NULL}; may be NULL). now: seconds since 1970 for
 * strftime_now (local time of the process), or -1 for the clock. On failure `error` holds the template's message. */
pith_status pith_template_render(const pith_template *tpl, const json_t *context, const char *const *trusted, int64_t now, pith_rendered *out, pith_error *error);
void pith_rendered_deinit(pith_rendered *rendered);

/* JSON text -> json_t with the limits of the room (depth, size), numbers keep int and float apart.
 * Error text has line and column. */
pith_status pith_json_parse(pith_span text, json_t **out, pith_error *error);

#endif
