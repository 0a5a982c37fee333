/* SPDX-License-Identifier: Apache-2.0
 * What the files of /v1/responses share. */
#ifndef PITH_APPS_SERVER_RESPONSES_H
#define PITH_APPS_SERVER_RESPONSES_H

#include "server/chat_context.h"
#include "server/route.h"

/* The messages of a template; instructions may be NULL. Never NULL but without memory: what is
 * wrong the fields say. */
json_t *pith_responses_read_input(pith_fields *fields, const char *instructions);
/* A tool of a kind that is known and not offered to the model: what runs at OpenAI's servers, or
 * takes free text. Beside functions such an offer is left out, and the answer says so. */
bool pith_responses_leaves_out(const json_t *tool);
/* tools, tool_choice, parallel_tool_calls: the tools as templates read them (a new list). */
json_t *pith_responses_read_tools(pith_fields *fields, pith_job_request *job);

#endif
