/* SPDX-License-Identifier: Apache-2.0
 * What the routes of Anthropic's API share. */
#ifndef PITH_APPS_SERVER_ANTHROPIC_H
#define PITH_APPS_SERVER_ANTHROPIC_H

#include "server/chat_context.h"
#include "server/route.h"

/* Reads system, messages, tools, tool_choice and thinking into what a template reads; false: the
 * fields say what is wrong. */
bool pith_anthropic_read_messages(pith_fields *fields, pith_answer_request *request);

#endif
