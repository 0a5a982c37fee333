/* SPDX-License-Identifier: Apache-2.0
 * Conversations that outgrow the context (summarise.c). */
#ifndef PITH_APPS_PITH_SUMMARISE_H
#define PITH_APPS_PITH_SUMMARISE_H

#include <jansson.h>
#include <pith.h>

typedef struct pith_summarise_options {
    const pith_model *model; /* with a chat template */
    /* makes the summaries; what it held is forgotten but for what it shares with them */
    pith_session *session;
    size_t n_ctx;  /* of its engine, tokens */
    size_t room;   /* tokens that must be left for the reply */
    size_t n_keep; /* whole exchanges within the first so many tokens stay as they are */
    bool drop;     /* makes no summary: what is older is left out */
    pith_draft draft;
    pith_session *draft_session; /* as in pith_generate_options; may be NULL */
    pith_progress on_prompt;     /* progress of reading for one summary; may be NULL */
    void *user;
} pith_summarise_options;

typedef struct pith_summary {
    size_t n_messages; /* that were replaced or left out whole */
    size_t n_dropped;  /* tokens of the prompt that are gone */
    size_t n_tokens;   /* of the summaries that stand for them; 0: there is none */
    double ms;         /* that making them took */
} pith_summary;

/* Shortens `messages`, objects with the texts "role" and "content" of which the last is the user's,
 * until the prompt they make and `room` fit into the context; those that fit are left alone (*out
 * is 0). PITH_ERROR_LIMIT when even the summary, the system prompt and the last message do not;
 * PITH_ERROR_CANCELLED. On failure the messages are as they were. */
pith_status pith_summarise(const pith_summarise_options *options, json_t *messages,
                           pith_summary *out, pith_error *error);
/* Tokens of the prompt that messages make; false with *error. */
bool pith_summarise_count(const pith_model *model, json_t *messages, size_t *n, pith_error *error);
/* Tokens to leave for a reply of at most max_tokens (0: no limit). */
size_t pith_summarise_room(size_t n_ctx, int32_t max_tokens);
/* "4 messages were replaced by a summary of 93 tokens", NUL-terminated; "" for nothing. */
void pith_summarise_describe(const pith_summary *summary, char *text, size_t capacity);

#endif
