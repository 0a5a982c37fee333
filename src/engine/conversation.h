/* SPDX-License-Identifier: Apache-2.0
 * What the two halves of shortening a conversation share (private to the engine room):
 * conversation.c says what stays, summary.c asks the model for what stands in place of the rest. */
#ifndef PITH_ENGINE_CONVERSATION_H
#define PITH_ENGINE_CONVERSATION_H

#include "engine/engine.h"

/* One call of pith_conversation_shorten. */
typedef struct pith_talk {
    pith_session *session;
    const pith_model *model;
    const pith_template *tpl;
    json_t *context; /* the caller's; its messages are looked at through copies */
    const pith_conversation_options *options;
    size_t n_ctx;             /* tokens */
    size_t room;              /* that must be left for the reply */
    size_t limit;             /* tokens of a summary */
    size_t seam;              /* tokens that come with it */
    size_t texts;             /* tokens of the texts of all messages */
    pith_ids ids;             /* of the prompt that was counted last */
    bool in_thought;          /* that prompt ends with the mark that begins a thought */
    pith_tool_format thought; /* the template's marks of thoughts, no others */
    pith_sampler *sampler;
    pith_buffer summary; /* the last one */
    size_t n_summary;    /* tokens made for it */
    bool starved;        /* something was not counted for lack of memory */
    pith_error *error;
} pith_talk;

/* The question that stands before a summary of messages. */
extern const char pith_talk_question[];

/* PITH_ERROR_MEMORY in talk->error. */
pith_status pith_talk_no_memory(pith_talk *talk);
/* *n: tokens of the prompt that messages make in the caller's context; asks: with the beginning of
 * a reply, which need not be thought about, whatever the context says. */
pith_status pith_talk_count(pith_talk *talk, json_t *messages, bool asks, size_t *n);
/* Tokens of a text; 0 and talk->starved without memory. */
size_t pith_talk_text_tokens(pith_talk *talk, pith_span text);
/* Appends {"role": role, "content": text}. */
bool pith_talk_add(json_t *messages, const char *role, pith_span text);
/* Appends from[first .. end). */
bool pith_talk_add_range(json_t *messages, json_t *from, size_t first, size_t end);
/* "" where there is none. */
const char *pith_talk_role(json_t *messages, size_t index);
/* Appends the text of a message: its content, or the texts among the parts of it. */
void pith_talk_append_content(pith_buffer *text, json_t *messages, size_t index);
/* At a character's start, after a space or a line's end where one is near. */
size_t pith_talk_cut_before(pith_span text, size_t at);

/* ---- summary.c: talk->summary and talk->n_summary are the result ---- */

/* The summary of messages [head, end): asked for behind them where that fits, else read in pieces.
 */
pith_status pith_talk_summarise(pith_talk *talk, json_t *messages, size_t head, size_t end);
/* The summary goes on over all of a text. */
pith_status pith_talk_read_text(pith_talk *talk, pith_span text);

#endif
