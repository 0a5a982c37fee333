/* SPDX-License-Identifier: Apache-2.0
 * Calls that a model writes without the marks of its format (private to the chat room). */
#ifndef PITH_CHAT_UNMARKED_CALL_H
#define PITH_CHAT_UNMARKED_CALL_H

#include "chat/chat.h"
#include "chat/tool_call.h"

#include <jansson.h>

/* What may be called. */
typedef struct pith_offer {
    json_t *tools; /* {name: {"name", "parameters", "strict", ...}}; NULL: nothing */
    pith_call_check check;
} pith_offer;

/* The tools of a list as in an OpenAI request, of `only` alone where it is not NULL, as in
 * pith_offer; to be released with json_decref. */
pith_status pith_offered_tools(pith_span tools_json, const char *only, json_t **out,
                               pith_error *error);

/* What one look at the text tells. */
typedef enum pith_unmarked_found {
    PITH_UNMARKED_NONE,   /* no call stands at `begin` */
    PITH_UNMARKED_WAIT,   /* more text may decide */
    PITH_UNMARKED_CALL,   /* `name` with `arguments`; more may follow */
    PITH_UNMARKED_MEMORY, /* it could not be read */
    PITH_UNMARKED_OVER    /* behind the last call, and what closes it, is `at` */
} pith_unmarked_found;

/* Which sign the calls stand in. */
typedef enum pith_unmarked_wrap {
    PITH_UNMARKED_BARE,
    PITH_UNMARKED_FENCE,
    PITH_UNMARKED_TAG
} pith_unmarked_wrap;

typedef enum pith_unmarked_part {
    PITH_UNMARKED_OPENING,
    PITH_UNMARKED_LIST,
    PITH_UNMARKED_HEAD,
    PITH_UNMARKED_OBJECT,
    PITH_UNMARKED_LINE_END,
    PITH_UNMARKED_BEHIND,
    PITH_UNMARKED_CLOSING
} pith_unmarked_part;

/* Zero-initialised but for `at`, the first sign of a line, and most_calls. Offsets are those of the
 * text, and may be moved all together when its beginning is forgotten. */
typedef struct pith_unmarked_scan {
    pith_unmarked_part part;
    pith_unmarked_wrap wrap;
    bool in_list, is_closed; /* is_closed: what closes the wrap has been seen */
    size_t n_calls, most_calls;
    size_t at; /* the next byte to look at */
    pith_object_scan object;
    const char *name;    /* of the last call: a key of the offered tools */
    pith_span arguments; /* of it: in the text, valid until the text moves */
} pith_unmarked_scan;

/* Goes on behind what the last look told. at_end: there is no more text. */
pith_unmarked_found pith_unmarked_next(pith_unmarked_scan *scan, pith_span text, bool at_end,
                                       const pith_offer *offer);

#endif
