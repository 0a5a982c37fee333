/* SPDX-License-Identifier: Apache-2.0
 * What chat templates read, built by the protocols: messages, tools, calls. All templates were
 * written for the shapes of OpenAI's API, so these are the neutral ones here. */
#ifndef PITH_APPS_SERVER_CHAT_CONTEXT_H
#define PITH_APPS_SERVER_CHAT_CONTEXT_H

#include "server/answer.h"

/* {"messages", "add_generation_prompt", "tools"} and what `more` has. Takes messages over; tools
 * and more are borrowed, or NULL. */
json_t *pith_chat_context(json_t *messages, json_t *tools, const json_t *more);
/* Appends {"type": "function", "function": {...}}; description and parameters may be NULL. */
void pith_chat_add_tool(json_t *tools, const char *name, const char *description,
                        json_t *parameters, bool strict);
/* Appends {"id", "type", "function": {"name", "arguments"}}, which templates read as an object;
 * takes the arguments over. */
void pith_chat_add_call(json_t *calls, const char *id, const char *name, json_t *arguments);
/* Text of the request as an object; text that is none stays text. Never NULL but without memory. */
json_t *pith_chat_arguments(const char *text);
/* Appends {"role", "content"} unless the text is empty. */
void pith_chat_add_text(json_t *messages, const char *role, const pith_buffer *text);

#endif
