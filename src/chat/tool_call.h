/* SPDX-License-Identifier: Apache-2.0
 * Where a text that grows is in the form of a tool call (private to the chat room). */
#ifndef PITH_CHAT_TOOL_CALL_H
#define PITH_CHAT_TOOL_CALL_H

#include "base/text.h"

typedef enum pith_match {
    PITH_MATCH_NO,
    PITH_MATCH_WAIT, /* more text may decide */
    PITH_MATCH_YES
} pith_match;

/* White space of JSON. */
static inline bool pith_is_json_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The mark at text[*at], whatever space stands between its signs; *at goes behind it. An empty mark
 * matches. */
pith_match pith_match_mark(pith_span text, const char *mark, size_t *at);

/* An object that is read piece by piece. */
typedef struct pith_object_scan {
    size_t begin, at; /* its first byte; the next one to look at */
    uint32_t depth;
    bool in_string, is_escaped;
} pith_object_scan;
/* Zero-initialised but for `begin` and `at`, where a brace is expected, behind any space. On YES
 * text[begin, at) is the object as far as its brackets go. */
pith_match pith_scan_object(pith_span text, pith_object_scan *scan);

/* What stands in a second pair of braces, as Qwen2.5-Coder's template shows calls; else the object
 * itself. No JSON object begins like that. */
pith_span pith_object_undoubled(pith_span object);
/* The parts of an object {"name": "f", KEY: {...}}: *name is to be freed, *arguments lies in the
 * text, or is "{}" where there is none; of the keys "arguments" and "parameters" one stands for the
 * other. PITH_ERROR_FORMAT: it is no call. */
pith_status pith_tool_call_read(pith_span object, const char *key, char **name,
                                pith_span *arguments);
/* The last member `key`, of ASCII letters, of a well-formed object, as it is written; size 0: there
 * is none. */
pith_span pith_object_member(pith_span object, const char *key);
/* PITH_OK: the text is one JSON object. */
pith_status pith_object_check(pith_span text);

#endif
