/* SPDX-License-Identifier: Apache-2.0
 * The parts of `pith chat`: the conversation (chat_turn.c), its commands (chat_command.c) and line
 * input (chat_line.c). */
#ifndef PITH_APPS_PITH_CHAT_PARTS_H
#define PITH_APPS_PITH_CHAT_PARTS_H

#include "pith/reply_option.h"

/* ---- The conversation (chat_turn.c) ---- */

/* A place where the conversation's ids can be cut and continued with other text:
 *
 *   text   <|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello there!<|im_end|>
 *   marks                                                      |     |     ||         |
 *                                    end of the prompt, then after the reply's tokens     */
typedef struct pith_chat_mark {
    size_t bytes;      /* of the text */
    size_t n_ids;      /* that stand for them */
    size_t n_messages; /* the mark holds while these are the first messages */
} pith_chat_mark;

/* What happens when the conversation leaves a reply no room (--overflow). */
typedef enum pith_chat_overflow {
    PITH_CHAT_OVERFLOW_ERROR,
    PITH_CHAT_OVERFLOW_SHIFT, /* the oldest exchanges are left out */
    PITH_CHAT_OVERFLOW_SUMMARISE
} pith_chat_overflow;

/* A conversation: its messages, and the ids that the session holds for them. A reply's ids are
 * kept as they were made and never re-tokenized: the next turn adds only the ids of what the
 * template writes after the reply. */
typedef struct pith_chat {
    const pith_model *model;
    pith_session *session;
    pith_sampler *sampler;
    json_t *messages;      /* array of {"role", "content"} */
    pith_buffer text;      /* what the ids stand for: the last prompt and its reply */
    int32_t *ids;          /* [n_ids] of the conversation so far; capacity is the context */
    pith_chat_mark *marks; /* [n_marks], rising; at most capacity + 2 */
    size_t n_ids, n_marks, capacity;
    int32_t max_tokens;
    const pith_cli_draft *draft;
    const pith_grammar *grammar; /* of every reply; NULL: none */
    pith_chat_overflow overflow;
    int32_t n_keep;
    int32_t n_logprobs; /* -1: none are told */
    json_t *logprobs;   /* of the last reply; NULL: none */
    const pith_cli_list *banned;
    bool quiet; /* the reply is not printed while it is made */
    pith_cli_progress progress;
    pith_generation last;           /* the last reply; n_predicted 0: none was made */
    pith_conversation_info shorter; /* what was left out before it */
    size_t reply_from, reply_size;  /* its text in `text` */
    uint64_t kept;                  /* hash of its file as last read or written here; 0: none */
} pith_chat;

bool pith_chat_init(pith_chat *chat, const pith_model *model, pith_session *session, size_t n_ctx,
                    pith_error *error);
void pith_chat_deinit(pith_chat *chat);
/* Starts anew, keeping the system prompt (NULL or "": none). False without memory for it. */
bool pith_chat_clear(pith_chat *chat, const char *system);
/* Starts anew with these messages, which must be objects with the texts "role" and "content".
 * False without memory for them. */
bool pith_chat_load(pith_chat *chat, json_t *messages);
/* Adds a user message and makes the reply. On failure, and when it was stopped before the first
 * token, the message is taken back. */
pith_status pith_chat_say(pith_chat *chat, const char *text, pith_error *error);
/* Makes the last reply again. PITH_ERROR_NOT_FOUND when there is none. */
pith_status pith_chat_retry(pith_chat *chat, pith_error *error);
/* Takes back the last exchange; returns a copy of its user message, freed by the caller with
 * pith_free, or NULL when there is none. */
char *pith_chat_undo(pith_chat *chat);
pith_span pith_chat_last_text(const pith_chat *chat);
/* What a sentence about a full context adds where --overflow is not given: that it makes room. */
const char *pith_chat_overflow_hint(const pith_chat *chat);
/* Tokens that the messages take: the session may still hold those of messages taken back. */
size_t pith_chat_n_tokens(const pith_chat *chat);

/* ---- Kept conversations (chat_session.c) ---- */

/* Where the conversation NAME lies; make: its folder too. */
pith_status pith_chat_session_path(const char *name, bool make, pith_buffer *path,
                                   pith_error *error);
pith_status pith_chat_session_save(pith_chat *chat, const char *name, pith_error *error);
/* PITH_ERROR_NOT_FOUND when there is none; the chat is unchanged then. */
pith_status pith_chat_session_load(pith_chat *chat, const char *name, pith_error *error);
int pith_chat_session_list(void); /* names on stdout */
/* A list of objects with the texts "role" and "content". */
bool pith_chat_is_conversation(const json_t *json);
pith_status pith_chat_write_json(const json_t *json, const char *path, pith_error *error);

/* ---- Line input (chat_line.c): editing and history where the terminal allows it ---- */
typedef struct pith_chat_lines {
    bool terminal;
    bool failed;  /* the input broke off: told already */
    void *editor; /* libedit's; NULL: plain reading */
    void *history;
    char *history_path;
} pith_chat_lines;
void pith_chat_lines_open(pith_chat_lines *lines);
void pith_chat_lines_close(pith_chat_lines *lines);
/* The next line without its end, freed with pith_free; NULL at the end of input and when it failed.
 * A zero byte becomes U+FFFD. A line that ends with a backslash goes on in the next. On a
 * terminal Ctrl-C throws the line away and asks again. */
char *pith_chat_lines_read(pith_chat_lines *lines);

/* ---- The program (chat.c) and its commands (chat_command.c) ---- */
typedef struct pith_chat_state {
    pith_chat chat;
    pith_chat_lines lines;
    const pith_engine *engine;
    char *system;          /* owned; NULL: none */
    const char *prefer;    /* what --prefer chose; "": nothing */
    pith_grammar *grammar; /* owned; the chat's */
    bool json;             /* a reply is one JSON line */
    bool keep_record;      /* of each reply, for `pith fit` */
    bool quit;
    char *name;          /* under which the conversation is kept; owned; NULL: it is not */
    int code;            /* of the last reply */
    bool command_failed; /* one that begins with '/' */
} pith_chat_state;

/* Says text and prints the reply. */
void pith_chat_exchange(pith_chat_state *state, const char *text);
/* Tells how a reply ended, or why it failed. */
void pith_chat_tell(pith_chat_state *state, pith_status status, const pith_error *error);
/* Runs a line that begins with '/'. */
void pith_chat_run_command(pith_chat_state *state, const char *line);
/* Keeps the conversation where it has a name. */
void pith_chat_keep(pith_chat_state *state);
extern const char pith_chat_commands_text[]; /* what /help prints */

#endif
