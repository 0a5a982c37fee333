/* SPDX-License-Identifier: Apache-2.0
 * The history: conversations of the page, kept in one SQLite file.
 *
 *   conversations  row id title leaf settings created changed bytes n
 *   messages       row conversation id parent role text more created
 *   found          an index of three characters at a time over messages.text, where SQLite has it
 *
 * A conversation is a forest of messages: a message names its parent, which came before it, and
 * neither parent nor role ever change, so there are no cycles. Messages of one parent are its
 * branches, in the order in which they came; leaf names the message that is being looked at.
 * `settings` and `more` are JSON objects of the client's, which the store does not look into.
 *
 * Invariant: a change is there whole or not at all, whatever is killed at any moment. A file that
 * is not ours, or is damaged, is never written to. Every function may be called from any thread.
 * Read next: chat_history.c (opening), history_store.c, history_route.c (HTTP). */
#ifndef PITH_APPS_SERVER_CHAT_HISTORY_H
#define PITH_APPS_SERVER_CHAT_HISTORY_H

#include "server/server_parts.h"

enum {
    PITH_CHAT_HISTORY_ID = 64,               /* characters of an id: letters, digits, '-', '_' */
    PITH_CHAT_HISTORY_TITLE = 400,           /* bytes */
    PITH_CHAT_HISTORY_TEXT = 1 << 20,        /* bytes of a message's text */
    PITH_CHAT_HISTORY_BYTES = 12 << 20,      /* of a conversation: it comes back in one request */
    PITH_CHAT_HISTORY_MESSAGES = 4096,       /* of a conversation */
    PITH_CHAT_HISTORY_CONVERSATIONS = 50000, /* at all */
    PITH_CHAT_HISTORY_LISTED = 1000,         /* in one list */
    PITH_CHAT_HISTORY_HITS = 100,            /* of one search */
    PITH_CHAT_HISTORY_EXPORT = 64 << 20      /* bytes of an export */
};

typedef struct pith_chat_history_head {
    const char *title;        /* NULL: it stays; "" for a new one */
    const char *leaf;         /* NULL: it stays */
    const json_t *settings;   /* NULL: they stay */
    int64_t created, changed; /* seconds since 1970; 0: now */
} pith_chat_history_head;

typedef struct pith_chat_history_message {
    const char *id, *parent; /* parent NULL: a first message */
    const char *role, *text;
    const json_t *more; /* NULL: {} */
    int64_t created;    /* 0: now */
} pith_chat_history_message;

/* path NULL: nothing is kept. Opens nothing yet; NULL without memory. */
pith_chat_history *pith_chat_history_new(const char *path);
void pith_chat_history_free(pith_chat_history *history);
/* "SQLite 3.40.1"; NULL in a build without it. */
const char *pith_chat_history_library(void);

/* PITH_OK once conversations can be read and written; else a sentence. Each of the functions below
 * begins with it, so that a file that was not to be had is tried again.
 * PITH_ERROR_UNSUPPORTED: nothing is kept here; PITH_ERROR_IO: disk or file; PITH_ERROR_NOT_FOUND;
 * PITH_ERROR_ARGUMENT: the client's mistake; PITH_ERROR_LIMIT. */
pith_status pith_chat_history_check(pith_chat_history *history, pith_error *error);

/* {"conversations": [{"id", "title", "created", "changed", "n"}], "more": those that are left
 * out}; what was changed last comes first. Results are released by the caller. */
pith_status pith_chat_history_list(pith_chat_history *history, json_t **out, pith_error *error);
/* {"id", "title", "leaf", "settings", "created", "changed", "messages": [{"id", "parent", "role",
 * "text", "more", "created"}]}: parents before children. */
pith_status pith_chat_history_read(pith_chat_history *history, const char *id, json_t **out,
                                   pith_error *error);
/* Makes the conversation where there is none. */
pith_status pith_chat_history_write(pith_chat_history *history, const char *id,
                                    const pith_chat_history_head *head, pith_error *error);
/* Adds a message, or gives one that is there its new text and more; it becomes the leaf. */
pith_status pith_chat_history_write_message(pith_chat_history *history, const char *conversation,
                                            const pith_chat_history_message *message,
                                            pith_error *error);
/* Its text is overwritten in the file too (of what the index keeps: history_store.c, wipe). */
pith_status pith_chat_history_remove(pith_chat_history *history, const char *id, pith_error *error);
/* {"hits": [{"conversation", "title", "message", "role", "text": around the words}]}: messages and
 * titles that have every word of the query. */
pith_status pith_chat_history_search(pith_chat_history *history, const char *query, json_t **out,
                                     pith_error *error);
/* {"format": "pith-conversations", "version": 1, "conversations": [as from read]} */
pith_status pith_chat_history_export(pith_chat_history *history, json_t **out, pith_error *error);

/* A conversation to be added whole: head and messages, parents first. Messages whose ids are there
 * already stay as they are. *n_added counts new messages. */
typedef struct pith_chat_history_import {
    const char *id;
    pith_chat_history_head head;
    const pith_chat_history_message *messages;
    size_t n_messages;
} pith_chat_history_import;
/* All of them or none. */
pith_status pith_chat_history_add(pith_chat_history *history, const pith_chat_history_import *items,
                                  size_t n, size_t *n_added, pith_error *error);

#endif
