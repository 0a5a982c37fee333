/* SPDX-License-Identifier: Apache-2.0
 * What the routes of Ollama's API share. */
#ifndef PITH_APPS_SERVER_OLLAMA_H
#define PITH_APPS_SERVER_OLLAMA_H

#include "server/chat_context.h"
#include "server/embed_job.h"
#include "server/route.h"

/* "2026-11-30T16:00:00.123456Z", of `seconds` since 1970, negative: now. */
void pith_ollama_time(double seconds, char out[40]);
/* options, format, stop, think, keep_alive, stream and logprobs into the request; `more` gets what
 * the template is told of thinking (released by the caller). */
void pith_ollama_read_shared(pith_fields *fields, pith_server *server, pith_answer_request *out,
                             json_t **more);
/* keep_alive alone: true when it is there and right. */
bool pith_ollama_read_keep(pith_fields *fields, int64_t *seconds);
/* {"parent_model", "format", "family", ...} of a model's file, with its size; NULL: it cannot be
 * read. */
json_t *pith_ollama_details(const char *path, json_int_t *bytes);
/* Checks messages and turns them into what templates read; NULL: the fields say what is wrong. */
json_t *pith_ollama_convert_messages(pith_fields *fields, json_t *messages);

#endif
