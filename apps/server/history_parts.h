/* SPDX-License-Identifier: Apache-2.0
 * What the files of the history share (private to them): the opened database and its statements.
 * All of it is called under the history's lock. */
#ifndef PITH_APPS_SERVER_HISTORY_PARTS_H
#define PITH_APPS_SERVER_HISTORY_PARTS_H

#include "server/chat_history.h"

#include <pthread.h>
#include <sqlite3.h>

struct pith_chat_history {
    char *path; /* NULL: nothing is kept */
    pthread_mutex_t lock;
    sqlite3 *db;            /* NULL: not opened, or it failed */
    uint64_t device, inode; /* of the file that is open: another in its place is opened anew */
    bool has_index;         /* `found` is there and kept by triggers */
};

/* Locks, and opens what is not open. On failure it is not locked. */
pith_status pith_chat_history_enter(pith_chat_history *history, pith_error *error);
void pith_chat_history_leave(pith_chat_history *history);
/* What the database's last error means to the user. A file that cannot go on is closed. */
pith_status pith_chat_history_fail(pith_chat_history *history, pith_error *error);

typedef enum pith_chat_history_kind {
    PITH_CHAT_HISTORY_NOTHING,
    PITH_CHAT_HISTORY_NUMBER,
    PITH_CHAT_HISTORY_STRING
} pith_chat_history_kind;
/* Bound to ?1, ?2, ... */
typedef struct pith_chat_history_value {
    pith_chat_history_kind kind;
    int64_t number;
    const char *text;
} pith_chat_history_value;
pith_chat_history_value pith_chat_history_number(int64_t number);
pith_chat_history_value pith_chat_history_string(const char *text); /* NULL: nothing */

typedef struct pith_chat_history_query {
    const char *sql;
    pith_chat_history_value values[8];
    int n_values;
} pith_chat_history_query;

/* NULL with the error. Finalized by the caller. */
sqlite3_stmt *pith_chat_history_prepare(pith_chat_history *history,
                                        const pith_chat_history_query *query, pith_error *error);
/* 1: a row, 0: no more, -1 with the error. */
int pith_chat_history_step(pith_chat_history *history, sqlite3_stmt *statement, pith_error *error);
/* Runs a statement without rows. */
pith_status pith_chat_history_change(pith_chat_history *history,
                                     const pith_chat_history_query *query, pith_error *error);
/* The first column of the first row; as pith_chat_history_step. */
int pith_chat_history_ask(pith_chat_history *history, const pith_chat_history_query *query,
                          int64_t *out, pith_error *error);
pith_status pith_chat_history_begin(pith_chat_history *history, pith_error *error);
/* Commits when status is PITH_OK, else takes all back; the final status. */
pith_status pith_chat_history_end(pith_chat_history *history, pith_status status,
                                  pith_error *error);

#endif
