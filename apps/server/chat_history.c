/* SPDX-License-Identifier: Apache-2.0
 * Opening the history's file, and running statements on it.
 *
 * The journal is a WAL that is synced at each commit: whatever is killed, what was answered with
 * 200 is there. A file that could not be opened is tried again with each request, so that freed
 * room or a mounted disk helps without a new start. secure_delete overwrites what is removed.
 *
 * Invariant: a database that is not marked as ours is not written to, nor is a damaged one removed:
 * these are texts of the user's.
 * Read next: history_store.c, history_search.c. */
#define _DEFAULT_SOURCE /* POSIX and BSD names under -std=c11 */

#include "server/history_parts.h"

#include "base/folder.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 1, MARK = 0x70697468 /* "pith" */, WAIT_MS = 2000 };

static const char schema[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE conversations(row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, "
    "title TEXT NOT NULL, leaf TEXT, settings TEXT NOT NULL, created INTEGER NOT NULL, "
    "changed INTEGER NOT NULL, bytes INTEGER NOT NULL, n INTEGER NOT NULL);"
    "CREATE INDEX conversations_changed ON conversations(changed);"
    "CREATE TABLE messages(row INTEGER PRIMARY KEY, conversation INTEGER NOT NULL REFERENCES "
    "conversations(row) ON DELETE CASCADE, id TEXT NOT NULL, parent TEXT, role TEXT NOT NULL, "
    "text TEXT NOT NULL, more TEXT NOT NULL, created INTEGER NOT NULL, UNIQUE(conversation, id));"
    "PRAGMA application_id = 1885959272;"
    "PRAGMA user_version = 1;"
    "COMMIT;";

static const char settings[] =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
    "PRAGMA secure_delete = ON; PRAGMA cache_size = -1024;"
    "PRAGMA max_page_count = 1048576;"; /* 4 GiB */

/* What a build without the index added or removed is made good by 'rebuild'. */
static const char index_schema[] =
    "BEGIN IMMEDIATE;"
    "CREATE VIRTUAL TABLE IF NOT EXISTS found USING fts5(text, content = 'messages', "
    "content_rowid = 'row', tokenize = 'trigram');"
    "INSERT INTO found(found) VALUES('rebuild');"
    "CREATE TRIGGER found_insert AFTER INSERT ON messages BEGIN "
    "INSERT INTO found(rowid, text) VALUES(new.row, new.text); END;"
    "CREATE TRIGGER found_delete AFTER DELETE ON messages BEGIN "
    "INSERT INTO found(found, rowid, text) VALUES('delete', old.row, old.text); END;"
    "CREATE TRIGGER found_update AFTER UPDATE OF text ON messages BEGIN "
    "INSERT INTO found(found, rowid, text) VALUES('delete', old.row, old.text);"
    "INSERT INTO found(rowid, text) VALUES(new.row, new.text); END;"
    "COMMIT;";
static const char index_is_kept[] =
    "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND name = 'found_insert'";
static const char index_probe[] =
    "CREATE VIRTUAL TABLE temp.probe USING fts5(text, tokenize = 'trigram');"
    "DROP TABLE temp.probe;";
/* Without FTS5 the triggers would make every write fail. */
static const char index_left[] =
    "BEGIN IMMEDIATE; DROP TRIGGER IF EXISTS found_insert; DROP TRIGGER IF EXISTS found_delete;"
    "DROP TRIGGER IF EXISTS found_update; COMMIT;";

const char *pith_chat_history_library(void) {
    static const char name[] = "SQLite " SQLITE_VERSION;
    return name;
}

/* ---- Errors ---- */

/* A statement that runs yet is its caller's to finalize; the file is closed then. */
static void close_database(pith_chat_history *h) {
    (void)sqlite3_close_v2(h->db);
    h->db = NULL;
}

pith_status pith_chat_history_fail(pith_chat_history *h, pith_error *error) {
    int code = h->db ? sqlite3_errcode(h->db) & 0xFF : SQLITE_NOMEM;
    bool goes_on = code == SQLITE_BUSY || code == SQLITE_LOCKED || code == SQLITE_FULL ||
                   code == SQLITE_NOMEM || code == SQLITE_CONSTRAINT || code == SQLITE_TOOBIG;
    const char *why = sqlite3_errstr(code);
    if (h->db && sqlite3_get_autocommit(h->db) == 0)
        (void)sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL);
    switch (code) {
    case SQLITE_FULL: why = "there is no room: the disk is full, or the file has 4 GiB"; break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: why = "another program has held it for 2 s; try again"; break;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN: why = "it cannot be written"; break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        why = "it is damaged, or no database; move it away and a new one is made";
        break;
    case SQLITE_NOMEM: return pith_fail_memory(error, "the history", 0);
    default: break;
    }
    if (!goes_on) close_database(h);
    return pith_fail(error, PITH_ERROR_IO, "the history file: %s. Chats go on, but are not kept",
                     why);
}

/* ---- Statements ---- */

pith_chat_history_value pith_chat_history_number(int64_t number) {
    return (pith_chat_history_value){PITH_CHAT_HISTORY_NUMBER, number, NULL};
}

pith_chat_history_value pith_chat_history_string(const char *text) {
    return (pith_chat_history_value){text ? PITH_CHAT_HISTORY_STRING : PITH_CHAT_HISTORY_NOTHING, 0,
                                     text};
}

sqlite3_stmt *pith_chat_history_prepare(pith_chat_history *h, const pith_chat_history_query *query,
                                        pith_error *error) {
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(h->db, query->sql, -1, &statement, NULL);
    for (int i = 0; i < query->n_values && code == SQLITE_OK; i++) {
        const pith_chat_history_value *value = &query->values[i];
        if (value->kind == PITH_CHAT_HISTORY_NUMBER)
            code = sqlite3_bind_int64(statement, i + 1, value->number);
        else if (value->kind == PITH_CHAT_HISTORY_STRING)
            code = sqlite3_bind_text(statement, i + 1, value->text, -1, SQLITE_STATIC);
    }
    if (code == SQLITE_OK) return statement;
    sqlite3_finalize(statement);
    pith_chat_history_fail(h, error);
    return NULL;
}

int pith_chat_history_step(pith_chat_history *h, sqlite3_stmt *statement, pith_error *error) {
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) return 1;
    if (code == SQLITE_DONE) return 0;
    (void)sqlite3_reset(statement); /* ends its transaction */
    pith_chat_history_fail(h, error);
    return -1;
}

pith_status pith_chat_history_change(pith_chat_history *h, const pith_chat_history_query *query,
                                     pith_error *error) {
    int64_t ignored;
    return pith_chat_history_ask(h, query, &ignored, error) < 0 ? PITH_ERROR_IO : PITH_OK;
}

int pith_chat_history_ask(pith_chat_history *h, const pith_chat_history_query *query, int64_t *out,
                          pith_error *error) {
    sqlite3_stmt *statement = pith_chat_history_prepare(h, query, error);
    if (!statement) return -1;
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) *out = sqlite3_column_int64(statement, 0);
    bool failed = code != SQLITE_ROW && code != SQLITE_DONE;
    int at_end = sqlite3_finalize(statement);
    if (!failed && at_end == SQLITE_OK) return code == SQLITE_ROW;
    pith_chat_history_fail(h, error);
    return -1;
}

static pith_status run(pith_chat_history *h, const char *sql, pith_error *error) {
    if (sqlite3_exec(h->db, sql, NULL, NULL, NULL) == SQLITE_OK) return PITH_OK;
    return pith_chat_history_fail(h, error);
}

pith_status pith_chat_history_begin(pith_chat_history *h, pith_error *error) {
    return run(h, "BEGIN IMMEDIATE", error);
}

pith_status pith_chat_history_end(pith_chat_history *h, pith_status status, pith_error *error) {
    if (status == PITH_OK) return run(h, "COMMIT", error);
    if (h->db && sqlite3_get_autocommit(h->db) == 0)
        (void)sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* ---- Opening ---- */

static int64_t number_of(pith_chat_history *h, const char *sql) {
    int64_t number = -1;
    const pith_chat_history_query query = {.sql = sql};
    return h->db && pith_chat_history_ask(h, &query, &number, NULL) == 1 ? number : -1;
}

/* The index follows what this SQLite can. */
static pith_status fit_index(pith_chat_history *h, pith_error *error) {
    h->has_index = sqlite3_exec(h->db, index_probe, NULL, NULL, NULL) == SQLITE_OK;
    if (!h->has_index) return run(h, index_left, error);
    if (number_of(h, index_is_kept) == 1) return PITH_OK;
    return h->db ? run(h, index_schema, error) : PITH_ERROR_IO;
}

static pith_status fit_schema(pith_chat_history *h, pith_error *error) {
    int64_t mark = number_of(h, "PRAGMA application_id");
    int64_t version = number_of(h, "PRAGMA user_version");
    int64_t n_tables = number_of(h, "SELECT count(*) FROM sqlite_master");
    if (!h->db)
        return pith_fail(error, PITH_ERROR_IO,
                         "the history file: it is damaged, or no database; move it away and a new "
                         "one is made. Chats go on, but are not kept");
    if (mark == MARK && version > VERSION)
        return pith_fail(error, PITH_ERROR_IO, "the history file is of a newer pith (version %d)",
                         (int)version);
    if (n_tables != 0 && mark != MARK)
        return pith_fail(error, PITH_ERROR_IO,
                         "the history file is a database of another program: --history needs a "
                         "file of its own");
    pith_status status = run(h, settings, error);
    if (status == PITH_OK && n_tables == 0) status = run(h, schema, error);
    return status == PITH_OK ? fit_index(h, error) : status;
}

/* Makes folder and file, for this user alone, before SQLite does it for everybody. */
static pith_status make_file(pith_chat_history *h, pith_error *error) {
    struct stat info;
    char *folder = pith_copy_text(h->path, strlen(h->path));
    if (!folder) return pith_fail_memory(error, "a path", strlen(h->path));
    char *slash = strrchr(folder, '/');
    pith_status status = PITH_OK;
    pith_error why = {0};
    if (slash && slash != folder) {
        *slash = 0;
        if (pith_folder_make(folder, &why) != PITH_OK)
            status = pith_fail(error, PITH_ERROR_IO,
                               "the history file cannot be written: %.150s. Chats go on, but are "
                               "not kept",
                               why.text);
    }
    pith_free(folder);
    if (status != PITH_OK) return status;
    int fd = open(h->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0 || fstat(fd, &info) != 0) {
        status = pith_fail(error, PITH_ERROR_IO,
                           "the history file cannot be written: %s. Chats go on, but are not kept",
                           strerror(errno));
    } else if (!S_ISREG(info.st_mode)) {
        status = pith_fail(error, PITH_ERROR_IO, "--history names something that is no file");
    } else {
        h->device = (uint64_t)info.st_dev;
        h->inode = (uint64_t)info.st_ino;
    }
    if (fd >= 0) close(fd);
    return status;
}

static pith_status open_database(pith_chat_history *h, pith_error *error) {
    pith_status status = make_file(h, error);
    if (status != PITH_OK) return status;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(h->path, &h->db, flags, NULL) != SQLITE_OK)
        return pith_chat_history_fail(h, error);
    (void)sqlite3_busy_timeout(h->db, WAIT_MS);
    status = fit_schema(h, error);
    if (status != PITH_OK && h->db) close_database(h);
    return status;
}

/* Whether the path still names the file that is open. */
static bool is_same_file(const pith_chat_history *h) {
    struct stat info;
    return stat(h->path, &info) == 0 && (uint64_t)info.st_dev == h->device &&
           (uint64_t)info.st_ino == h->inode;
}

pith_status pith_chat_history_enter(pith_chat_history *h, pith_error *error) {
    pith_error own = {0};
    if (!h->path)
        return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                         "conversations are not kept: the server was started with --history off");
    pthread_mutex_lock(&h->lock);
    if (h->db && !is_same_file(h)) close_database(h);
    pith_status status = h->db ? PITH_OK : open_database(h, error ? error : &own);
    if (status != PITH_OK) pthread_mutex_unlock(&h->lock);
    return status;
}

void pith_chat_history_leave(pith_chat_history *h) {
    pthread_mutex_unlock(&h->lock);
}

pith_status pith_chat_history_check(pith_chat_history *h, pith_error *error) {
    pith_status status = pith_chat_history_enter(h, error);
    if (status == PITH_OK) pith_chat_history_leave(h);
    return status;
}

pith_chat_history *pith_chat_history_new(const char *path) {
    pith_chat_history *h = pith_alloc_zero(1, sizeof *h);
    pith_buffer whole = {0};
    if (!h) return NULL;
    pthread_mutex_init(&h->lock, NULL);
    /* ":memory:" and the like mean something to SQLite; with a folder they are names */
    if (path) pith_buffer_append_format(&whole, "%s%s", strchr(path, '/') ? "" : "./", path);
    if (path && !whole.failed) h->path = pith_copy_text(whole.data, whole.size);
    pith_buffer_deinit(&whole);
    if (!path || h->path) return h;
    pith_chat_history_free(h);
    return NULL;
}

void pith_chat_history_free(pith_chat_history *h) {
    if (!h) return;
    if (h->db) close_database(h);
    pthread_mutex_destroy(&h->lock);
    pith_free(h->path);
    pith_free(h);
}
