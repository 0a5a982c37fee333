/* SPDX-License-Identifier: Apache-2.0
 * What the routes of OpenAI's API share. */
#ifndef PITH_APPS_SERVER_OPENAI_H
#define PITH_APPS_SERVER_OPENAI_H

#include "server/answer.h"
#include "server/route.h"
#include "server/routing.h"

/* Reads messages, tools, tool_choice, parallel_tool_calls and chat_template_kwargs into what a
 * template reads (released by the caller; NULL when something is wrong, which the fields say), and
 * whether the reply may have calls. */
json_t *pith_openai_read_messages(pith_fields *fields, pith_job_request *request);
/* tools, checked; borrowed, NULL: none. */
json_t *pith_openai_read_tools(pith_fields *fields);
/* tool_choice, and whether the reply may call the tools (may be NULL). */
void pith_openai_read_choice(pith_fields *fields, json_t *tools, pith_job_request *request);
/* Checks messages [n] at path and turns them into what templates read: text parts joined, tool
 * calls' arguments as objects. */
json_t *pith_openai_convert_messages(pith_fields *fields, json_t *messages, const char *path);
/* What all its routes have beside what they ask for: user, metadata, store: false, ..., lora,
 * deadline_ms. */
void pith_openai_read_harmless(pith_fields *fields, pith_job_request *job);
/* The field "pith" of the routes that may go upstream; routing.c heeded it before. */
void pith_openai_read_route(pith_fields *fields);
/* verbosity, for the template; more is made when NULL. */
void pith_openai_read_verbosity(pith_fields *fields, json_t **more);
/* The type of a response_format: text, json_object or json_schema. */
void pith_openai_read_format(pith_fields *fields, const char **type);
/* {"type", "schema", "name", "strict", "description"} without its type: the schema, or NULL. */
json_t *pith_openai_read_schema(pith_fields *fields);
/* stream and stream_options. */
void pith_openai_read_stream(pith_fields *fields, pith_answer_request *out);
/* include_obfuscation, of stream_options: false. */
void pith_openai_refuse_obfuscation(pith_fields *stream_options);
const char *pith_openai_finish(pith_job_finish finish);
/* {"id", "object", "created", "model", "choices"}; takes the choices over. */
json_t *pith_openai_object(const pith_answer *answer, const char *object, json_t *choices);
/* The same with usage and timings: the whole answer. */
json_t *pith_openai_whole(const pith_answer *answer, const char *object, json_t *choices,
                          const pith_job_account *account);
/* A chunk with a finish_reason, taken over. That of the last choice waits for the account, which
 * it tells: every chunk has a choice, so that clients may read choices[0]. */
void pith_openai_send_finish(pith_answer *answer, json_t *chunk);
/* The rest of a stream, and [DONE]. */
void pith_openai_stream_end(pith_answer *answer, const char *object,
                            const pith_job_account *account);

#endif
