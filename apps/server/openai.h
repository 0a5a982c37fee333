/* SPDX-License-Identifier: Apache-2.0
 * What the routes of OpenAI's API share. */
#ifndef PITH_APPS_SERVER_OPENAI_H
#define PITH_APPS_SERVER_OPENAI_H

#include "server/job.h"
#include "server/route.h"
#include "server/routing.h"

/* Reads messages, tools, tool_choice, parallel_tool_calls and chat_template_kwargs into what a
 * template reads (released by the caller; NULL when something is wrong, which the fields say), and
 * whether the reply may have calls. */
json_t *pith_openai_read_messages(pith_fields *fields, pith_job_request *request);
/* Checks messages [n] at path and turns them into what templates read: text parts joined, tool
 * calls' arguments as objects. */
json_t *pith_openai_convert_messages(pith_fields *fields, json_t *messages, const char *path);
/* Fields that change nothing here: user, metadata, store: false, ... */
void pith_openai_read_harmless(pith_fields *fields);
const char *pith_openai_finish(pith_job_finish finish);
/* The last word of a job that failed, as an error or inside a stream that has begun. */
void pith_openai_end_failed(pith_exchange *exchange, bool has_begun, const pith_error *error);

#endif
