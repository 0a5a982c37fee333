/* SPDX-License-Identifier: Apache-2.0
 * `--overflow summarise|shift` of a conversation (shorten.c). */
#ifndef PITH_APPS_PITH_SHORTEN_H
#define PITH_APPS_PITH_SHORTEN_H

#include <jansson.h>
#include <pith.h>

/* What a conversation has and pith_conversation_fit wants; tools may be NULL. */
typedef struct pith_cli_talk {
    pith_session *session;
    json_t *messages, *tools;
} pith_cli_talk;

/* Shortens talk->messages (pith_conversation_fit); Ctrl-C stops it. options: without on_prompt.
 * On failure the messages are as they were. */
pith_status pith_cli_shorten(const pith_cli_talk *talk, const pith_conversation_options *options,
                             pith_conversation_info *out, pith_error *error);
/* "4 messages were replaced by a summary of 93 tokens", NUL-terminated; "" for nothing. */
void pith_cli_shorten_describe(const pith_conversation_info *info, char *text, size_t capacity);

#endif
