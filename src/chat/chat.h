/* SPDX-License-Identifier: Apache-2.0
 * Chat templates: a Jinja engine of our own (the language as in transformers' apply_chat_template).
 * Strings carry who wrote them, so that the result says which spans come from the template and
 * which from the user, whatever filters the text went through. No recursion whose depth the input
 * decides; limits on steps, output, memory and depth. */
#ifndef PITH_CHAT_CHAT_H
#define PITH_CHAT_CHAT_H

#include "base/status.h"
#include "base/text.h"
#include <jansson.h>

/* Published limits. Memory and steps hold for one rendering each (and memory for one compiled
 * template). A step is an instruction, an item gone through, or 64 bytes looked at. */
enum {
    PITH_TEMPLATE_MAX_BYTES = 1 << 20,    /* template text */
    PITH_TEMPLATE_MAX_DEPTH = 200,        /* nesting of tags, brackets, macro calls, values */
    PITH_TEMPLATE_MAX_OUTPUT = 64 << 20,  /* bytes of the result, and of a captured block */
    PITH_TEMPLATE_MAX_MEMORY = 256 << 20, /* bytes */
    PITH_TEMPLATE_MAX_STEPS = 50 * 1000 * 1000,
    PITH_TEMPLATE_MAX_RANGE = 100 * 1000, /* numbers in one range() */
    PITH_JSON_MAX_BYTES = 256 << 20,      /* JSON text */
    PITH_JSON_MAX_DEPTH = 200             /* nesting of arrays and objects */
};

typedef struct pith_template pith_template;

/* Compiles; PITH_ERROR_TEMPLATE with line and what was expected, PITH_ERROR_LIMIT for a text that
 * is too long. The template is immutable: any number of threads may render it at once. */
pith_status pith_template_new(pith_span text, pith_template **out, pith_error *error);
void pith_template_free(pith_template *tpl); /* NULL is allowed */

typedef struct pith_rendered_span {
    size_t offset, size;
    bool is_user;
} pith_rendered_span;
typedef struct pith_rendered {
    pith_buffer text;
    pith_rendered_span *spans; /* adjacent, in order, covering text; neighbours differ */
    size_t n_spans;
} pith_rendered; /* zero-initialised is empty */

/* context: an object; its keys become variables. Strings inside are the user's (keys of objects
 * too), except
 * - those below the keys named in `trusted` (NULL-terminated list, e.g. {"bos_token", "eos_token",
 * NULL}; may be NULL),
 * - the value of `role` in an item of `messages`, when it is one of the words that name roles
 * (system, developer, user,
 *   assistant, tool, function, model, ipython): many templates write control tokens around it, as
 *   in <|user|>.
 * now: seconds since 1970 for strftime_now (local time of the process), or -1 for the clock. On
 * failure `error` holds the template's message (raise_exception) or a sentence that starts with the
 * line, and *out is empty. */
pith_status pith_template_render(const pith_template *tpl, const json_t *context,
                                 const char *const *trusted, int64_t now, pith_rendered *out,
                                 pith_error *error);
void pith_rendered_deinit(pith_rendered *rendered);

/* JSON text -> json_t with the limits of the room (depth, size), numbers keep int and float apart.
 * Any value may stand at the top. PITH_ERROR_FORMAT with line and column. */
pith_status pith_json_parse(pith_span text, json_t **out, pith_error *error);

/* ---- Replies: content, thoughts and calls of tools, while they are made (message.c) ----
 * How models write calls is pith.h's pith_tool_format. Which texts of control tokens belong to a
 * reply is decided by whoever feeds it. */

typedef struct pith_reply_reader pith_reply_reader;

/* The strings of the format are borrowed. in_thought: the prompt has begun a thought. */
pith_status pith_reply_reader_new(const pith_tool_format *format, bool in_thought,
                                  pith_reply_reader **out, pith_error *error);
void pith_reply_reader_free(pith_reply_reader *reader); /* NULL is allowed */
/* Asked whether the arguments of a call are valid by the schema of its tool: PITH_OK, or
 * PITH_ERROR_FORMAT: they are not, PITH_ERROR_UNSUPPORTED: that cannot be told of this schema,
 * PITH_ERROR_MEMORY. `parameters` stays what it is as long as the reader lives, so an answer may
 * keep what it has made of it. */
typedef struct pith_call_check {
    void *user;
    pith_status (*ask)(void *user, json_t *parameters, pith_span arguments);
} pith_call_check;

/* Before the first push: calls of these tools (a list as in an OpenAI request; of `only` alone
 * where it is not NULL) count without the format's marks, too, where their arguments fit
 * (unmarked_call.c). Not `parallel`: there is one call at most, what follows is content. check.ask
 * NULL: no schema can be told of. */
pith_status pith_reply_reader_offer(pith_reply_reader *reader, pith_span tools_json,
                                    const char *only, bool parallel, pith_call_check check,
                                    pith_error *error);
/* More of the reply; at_end: there is no more. */
pith_status pith_reply_reader_push(pith_reply_reader *reader, pith_span text, bool at_end,
                                   pith_error *error);
/* All so far. */
pith_span pith_reply_reader_content(const pith_reply_reader *reader);
pith_span pith_reply_reader_reasoning(const pith_reply_reader *reader);
size_t pith_reply_reader_n_calls(const pith_reply_reader *reader);
bool pith_reply_reader_call(const pith_reply_reader *reader, size_t index, pith_tool_call *out);

#endif
