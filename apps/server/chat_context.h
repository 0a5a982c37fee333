/* SPDX-License-Identifier: Apache-2.0
 * What chat templates read, built by the protocols: messages, tools, calls. All templates were
 * written for the shapes of OpenAI's API, so these are the neutral ones here. */
#ifndef PITH_APPS_SERVER_CHAT_CONTEXT_H
#define PITH_APPS_SERVER_CHAT_CONTEXT_H

#include "server/answer.h"

/* {"messages", "add_generation_prompt", "tools"} and what `more` has. Takes messages over; tools
 * and more are borrowed, or NULL. NULL: memory was short, which the fields say. */
json_t *pith_chat_context(pith_fields *fields, json_t *messages, json_t *tools, const json_t *more);
typedef struct pith_chat_tool {
    const char *name, *description; /* description may be NULL */
    json_t *parameters;             /* borrowed, or NULL */
    bool strict;
} pith_chat_tool;
/* Appends {"type": "function", "function": {...}}. */
void pith_chat_add_tool(pith_fields *fields, json_t *tools, const pith_chat_tool *tool);
/* Appends {"id", "type", "function": {"name", "arguments"}}, which templates read as an object;
 * takes the arguments over. */
void pith_chat_add_call(pith_fields *fields, json_t *calls, const char *id, const char *name,
                        json_t *arguments);
/* Text of the request as an object; text that is none, or is nested too deep, stays text. Never
 * NULL but without memory. */
json_t *pith_chat_arguments(const char *text);
/* The text at `key` becomes that at `as` of a message. */
void pith_chat_copy_text(pith_fields *fields, const char *key, const char *as, json_t *out);
/* A message's list of calls (NULL: it has none), each converted into one of out's "tool_calls". */
typedef void pith_chat_convert_call(pith_fields *message, json_t *call, size_t at, json_t *calls);
void pith_chat_convert_calls(pith_fields *message, json_t *calls, pith_chat_convert_call *convert,
                             json_t *out);
/* The effort at `key`: to the template as reasoning_effort and enable_thinking in `more` (made when
 * NULL), to the job as thinking. path: of the field, static. */
void pith_chat_read_effort(pith_fields *fields, const char *key, const char *path, json_t **more,
                           pith_job_request *job);

#endif
