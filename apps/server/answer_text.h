/* SPDX-License-Identifier: Apache-2.0
 * Tells a reply's parts apart while its text comes: reasoning in <think> ... </think> at its
 * beginning, tool calls in <tool_call> JSON </tool_call>, and the answer. Marks may be cut anywhere
 * between pieces. All pieces together are the text without marks, however it was cut. */
#ifndef PITH_APPS_SERVER_ANSWER_TEXT_H
#define PITH_APPS_SERVER_ANSWER_TEXT_H

#include "base/text.h"

#include <jansson.h>

typedef struct pith_reply_part {
    enum { PITH_PART_TEXT, PITH_PART_REASONING, PITH_PART_CALL } kind;
    pith_span text;   /* of CALL: its arguments, a JSON object */
    const char *name; /* of CALL */
} pith_reply_part;
typedef void (*pith_reply_part_fn)(void *user, const pith_reply_part *part);

typedef struct pith_answer_text {
    bool reads_reasoning, reads_calls;
    enum { PITH_TEXT_START, PITH_TEXT_ANSWER, PITH_TEXT_REASONING, PITH_TEXT_CALL } state;
    bool is_blank;     /* nothing of the part but white space came yet, which is left out */
    pith_buffer held;  /* may be the beginning of a mark; in CALL: all that came */
    size_t n_searched; /* bytes of a call that do not hold its end */
    int n_calls;
    pith_reply_part_fn tell;
    void *user;
} pith_answer_text;

/* starts_reasoning: the prompt ends inside <think>. */
void pith_answer_text_init(pith_answer_text *text, bool reads_reasoning, bool reads_calls,
                           bool starts_reasoning);
void pith_answer_text_push(pith_answer_text *text, const char *data, size_t size);
void pith_answer_text_end(pith_answer_text *text); /* what was held back */
void pith_answer_text_deinit(pith_answer_text *text);

#endif
