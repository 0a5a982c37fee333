/* SPDX-License-Identifier: Apache-2.0
 * The parts of `pith chat`: the conversation (chat_turn.c) and line input (chat_line.c). */
#ifndef PITH_APPS_PITH_CHAT_H
#define PITH_APPS_PITH_CHAT_H

#include "pith/cli.h"

/* A conversation: its messages, and the ids that the session holds for them. A reply's ids are
 * kept as they were made
 * and never re-tokenized: the next turn adds only the ids of what the template writes after the
 * reply. */
typedef struct pith_chat {
    const pith_model *model;
    pith_session *session;
    pith_sampler *sampler;
    json_t *messages;   /* array of {"role", "content"} */
    pith_buffer prompt; /* rendered text that led to the last reply */
    pith_buffer reply;  /* text of the last reply */
    int32_t *ids;       /* [n_ids] of the conversation so far; capacity is the context */
    size_t n_ids, capacity;
    bool ids_match; /* ids stand for prompt + reply: the next turn may continue them */
    int32_t max_tokens;
    pith_generation last;
} pith_chat;

bool pith_chat_init(pith_chat *chat, const pith_model *model, pith_session *session, size_t n_ctx,
                    pith_error *error);
void pith_chat_deinit(pith_chat *chat);
/* Starts anew, keeping the system prompt (NULL or "": none). */
void pith_chat_clear(pith_chat *chat, const char *system);
/* Adds a user message and streams the reply to stdout. On failure the message is taken back. */
pith_status pith_chat_say(pith_chat *chat, const char *text, pith_error *error);
/* Makes the last reply again. PITH_ERROR_NOT_FOUND when there is none. */
pith_status pith_chat_retry(pith_chat *chat, pith_error *error);
/* Takes back the last exchange; its user message is copied to *text (freed by the caller with
 * pith_free) or NULL when there is none. */
char *pith_chat_undo(pith_chat *chat);

/* Line input with editing and history where the terminal allows it. NULL at the end of input;
 * freed with pith_free. A line that ends
 * with a backslash goes on in the next. */
typedef struct pith_chat_lines {
    bool terminal;
    char *history;
} pith_chat_lines;
void pith_chat_lines_open(pith_chat_lines *lines);
void pith_chat_lines_close(pith_chat_lines *lines);
char *pith_chat_lines_read(pith_chat_lines *lines, const char *prompt);

#endif
