/* SPDX-License-Identifier: Apache-2.0
 * The index of stored prefixes in SQLite (its tables are in prefix_index.h).
 *
 * Invariant: whatever is killed at any moment, a row that can be found names a whole file: the row
 * comes first as not ready, the file next, then `ready` and the rows of `blocks` in one
 * transaction. The journal is a WAL that is not synced at each commit: a power cut may lose the
 * last entries, never the index's consistency, and their files are left-overs.
 *
 * `used` is a counter that grows with each use; least is removed first, and of the parts of one
 * prompt, which are used together, the last part. A writer that died is known by its row's age.
 *
 * Read next: prefix_file.h for the files, prefix_record.c for the one who writes. */
#if PITH_WITH_SQLITE

#include "engine/prefix_index.h"

#include "base/calendar.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/source.h"
#include "base/text.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum {
    VERSION = 1,
    WAIT_MS = 250,  /* for another process that writes the index */
    WRITER_S = 120, /* a row that is not ready for so long has lost its writer */
    EVICTED_MOST = 256
};

/* A name of its own: a folder that is given by mistake may hold a database of somebody else. */
static const char database_name[] = "pith-prompts.db";

struct pith_prefix_index {
    sqlite3 *db;
    sqlite3_stmt *find, *find_other;
    char *folder;
    bool may_write, is_broken;
};

static const char schema[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS entries(id INTEGER PRIMARY KEY AUTOINCREMENT, key INTEGER, "
    "first INTEGER, n INTEGER, ids_hash INTEGER, bytes INTEGER, ready INTEGER, used INTEGER, "
    "changed INTEGER, model TEXT, settings TEXT, UNIQUE(key, ids_hash, first, n));"
    "CREATE INDEX IF NOT EXISTS entries_used ON entries(used);"
    "CREATE TABLE IF NOT EXISTS blocks(hash INTEGER, entry INTEGER, PRIMARY KEY(hash, entry)) "
    "WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS blocks_entry ON blocks(entry);"
    "PRAGMA user_version = 1;"
    "COMMIT;";

static const char find_text[] =
    "SELECT e.id, e.first, e.n FROM blocks b JOIN entries e ON e.id = b.entry "
    "WHERE b.hash = ?1 AND e.key = ?2 ORDER BY e.first, e.n DESC LIMIT ?3";
static const char find_other_text[] = "SELECT 1 FROM blocks b JOIN entries e ON e.id = b.entry "
                                      "WHERE b.hash = ?1 AND e.key <> ?2 LIMIT 1";

const char *pith_prefix_index_library(void) {
    return sqlite3_libversion();
}

bool pith_prefix_index_may_write(const pith_prefix_index *index) {
    return index->may_write;
}

/* ---- Names ---- */

/* folder/name; NULL without memory. */
static char *path_of(const char *folder, const char *name) {
    pith_buffer path = {0};
    pith_buffer_append_text(&path, folder);
    pith_buffer_append_text(&path, "/");
    pith_buffer_append_text(&path, name);
    if (path.failed) pith_buffer_deinit(&path);
    return path.data; /* from the same heap as pith_alloc */
}

char *pith_prefix_index_path(const pith_prefix_index *index, int64_t id) {
    char name[40];
    snprintf(name, sizeof name, "e%" PRId64 ".kv1", id);
    return path_of(index->folder, name);
}

static void remove_named(const char *folder, const char *name) {
    char *path = path_of(folder, name);
    if (path) pith_file_remove(path);
    pith_free(path);
}

static void remove_file(const pith_prefix_index *index, int64_t id) {
    char *path = pith_prefix_index_path(index, id);
    if (path) pith_file_remove(path);
    pith_free(path);
}

/* The id in a name that is an entry's file or its unfinished one; 0: neither. */
static int64_t id_of_name(const char *name, bool *unfinished) {
    int64_t id = 0;
    const char *at = name + 1;
    if (name[0] != 'e') return 0;
    for (; *at >= '0' && *at <= '9' && at - name < 18; at++) id = id * 10 + (*at - '0');
    if (strncmp(at, ".kv1", 4) != 0) return 0;
    size_t size = strlen(at);
    *unfinished = size > 9 && strcmp(at + size - 5, ".part") == 0;
    return at[4] == '\0' || *unfinished ? id : 0;
}

/* ---- Statements ---- */

/* Keeps in mind that the database is damaged: it is made anew by the next open. */
static int heed(pith_prefix_index *index, int code) {
    int kind = code & 0xFF;
    if (kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB) index->is_broken = true;
    return code;
}

static bool run(pith_prefix_index *index, const char *text) {
    return heed(index, sqlite3_exec(index->db, text, NULL, NULL, NULL)) == SQLITE_OK;
}

/* NULL when it cannot be prepared. Binds the n numbers to ?1, ?2, ... */
static sqlite3_stmt *prepare(pith_prefix_index *index, const char *text, const int64_t *numbers,
                             int n) {
    sqlite3_stmt *statement = NULL;
    int code = heed(index, sqlite3_prepare_v2(index->db, text, -1, &statement, NULL));
    for (int i = 0; i < n && code == SQLITE_OK; i++) {
        code = sqlite3_bind_int64(statement, i + 1, numbers[i]);
    }
    if (code == SQLITE_OK) return statement;
    sqlite3_finalize(statement);
    return NULL;
}

/* Runs a statement that gives no rows. */
static bool change(pith_prefix_index *index, const char *text, const int64_t *numbers, int n) {
    sqlite3_stmt *statement = prepare(index, text, numbers, n);
    bool done = statement && heed(index, sqlite3_step(statement)) == SQLITE_DONE;
    sqlite3_finalize(statement);
    return done;
}

/* The first row's two first columns. 1: a row, 0: none, -1: failed. */
static int ask(pith_prefix_index *index, const char *text, const int64_t *numbers, int n,
               int64_t out[2]) {
    sqlite3_stmt *statement = prepare(index, text, numbers, n);
    int code = statement ? heed(index, sqlite3_step(statement)) : SQLITE_ERROR;
    out[0] = out[1] = 0;
    if (code == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(statement) && i < 2; i++)
            out[i] = sqlite3_column_int64(statement, i);
    }
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : -1;
}

/* ---- Opening ---- */

static void close_database(pith_prefix_index *index) {
    sqlite3_finalize(index->find);
    sqlite3_finalize(index->find_other);
    sqlite3_close(index->db);
    index->db = NULL;
    index->find = index->find_other = NULL;
}

static void remove_database(const char *folder) {
    static const char *const endings[] = {"", "-wal", "-shm"};
    char name[40];
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(name, sizeof name, "%s%s", database_name, endings[i]);
        remove_named(folder, name);
    }
}

bool pith_prefix_index_exists(const char *folder) {
    pith_source *source = NULL;
    char *path = path_of(folder, database_name);
    if (!path) return true; /* opening it tells why not */
    pith_status status = pith_source_open_path(path, &source, NULL);
    pith_source_close(source);
    pith_free(path);
    return status != PITH_ERROR_NOT_FOUND;
}

/* "file:PATH?immutable=1" with the characters escaped that mean something in it. */
static char *immutable_name(const char *path) {
    pith_buffer name = {0};
    pith_buffer_append_text(&name, "file:");
    for (const char *at = path; *at; at++) {
        if (strchr("?#%", *at))
            pith_buffer_append_format(&name, "%%%02x", (unsigned)(uint8_t)*at);
        else
            pith_buffer_append(&name, at, 1);
    }
    pith_buffer_append_text(&name, "?immutable=1");
    if (name.failed) pith_buffer_deinit(&name);
    return name.data;
}

/* The version that the database says; -1 when it cannot be read. */
static int64_t version_of(pith_prefix_index *index) {
    int64_t numbers[2];
    return ask(index, "PRAGMA user_version", NULL, 0, numbers) == 1 ? numbers[0] : -1;
}

static bool prepare_finds(pith_prefix_index *index) {
    index->find = prepare(index, find_text, NULL, 0);
    index->find_other = prepare(index, find_other_text, NULL, 0);
    return index->find && index->find_other;
}

/* For reading and writing. SQLITE_OK, or why not; SQLITE_NOTADB for another version. */
static int open_writable(pith_prefix_index *index, const char *path) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int code = sqlite3_open_v2(path, &index->db, flags, NULL);
    if (code != SQLITE_OK) return code;
    if (sqlite3_db_readonly(index->db, "main") == 1) return SQLITE_READONLY;
    (void)sqlite3_busy_timeout(index->db, WAIT_MS);
    if (!run(index, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                    "PRAGMA cache_size = -256;"))
        return sqlite3_errcode(index->db);
    int64_t version = version_of(index);
    if (version < 0) return sqlite3_errcode(index->db);
    if (version != 0 && version != VERSION) return SQLITE_NOTADB;
    if (version == 0 && !run(index, schema)) return sqlite3_errcode(index->db);
    return prepare_finds(index) ? SQLITE_OK : SQLITE_CORRUPT;
}

/* Without locks, for which a folder that may only be read has no place. Somebody else may write it
 * meanwhile; a row that comes out wrong is found out by the file that it names. */
static int open_immutable(pith_prefix_index *index, const char *path) {
    char *name = immutable_name(path);
    if (!name) return SQLITE_NOMEM;
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
    int code = sqlite3_open_v2(name, &index->db, flags, NULL);
    pith_free(name);
    if (code != SQLITE_OK) return code;
    return version_of(index) == VERSION && prepare_finds(index) ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int open_either(pith_prefix_index *index, const char *path) {
    int code = open_writable(index, path) & 0xFF;
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR) {
        close_database(index);
        remove_database(index->folder);
        code = open_writable(index, path) & 0xFF;
    }
    index->may_write = code == SQLITE_OK;
    index->is_broken = false;
    if (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED) return code;
    close_database(index);
    return open_immutable(index, path) == SQLITE_OK ? SQLITE_OK : code;
}

static pith_status open_index(pith_prefix_index *index, const char *folder, pith_error *error) {
    pith_status status = pith_folder_make(folder, error);
    if (status != PITH_OK) return status;
    index->folder = pith_copy_text(folder, strlen(folder));
    char *path = index->folder ? path_of(folder, database_name) : NULL;
    if (!path) return pith_fail_memory(error, "the index of stored prefixes", strlen(folder));
    int code = open_either(index, path);
    if (code != SQLITE_OK) {
        status = pith_fail(error, PITH_ERROR_IO, "%.140s: %s", path, sqlite3_errstr(code));
    }
    pith_free(path);
    return status;
}

pith_status pith_prefix_index_open(const char *folder, pith_prefix_index **out, pith_error *error) {
    *out = NULL;
    if (!sqlite3_threadsafe()) {
        return pith_fail(error, PITH_ERROR_UNSUPPORTED, "the system's SQLite is for one thread");
    }
    pith_prefix_index *index = pith_alloc_zero(1, sizeof *index);
    if (!index) return pith_fail_memory(error, "the index of stored prefixes", sizeof *index);
    pith_status status = open_index(index, folder, error);
    if (status == PITH_OK)
        *out = index;
    else
        pith_prefix_index_close(index);
    return status;
}

void pith_prefix_index_close(pith_prefix_index *index) {
    if (!index) return;
    bool remove = index->is_broken && index->may_write;
    close_database(index);
    if (remove) remove_database(index->folder);
    pith_free(index->folder);
    pith_free(index);
}

/* ---- Finding ---- */

size_t pith_prefix_index_find(pith_prefix_index *index, uint64_t key, uint64_t hash,
                              pith_prefix_row *rows, size_t capacity) {
    sqlite3_stmt *find = index->find;
    size_t n = 0;
    (void)sqlite3_bind_int64(find, 1, (int64_t)hash);
    (void)sqlite3_bind_int64(find, 2, (int64_t)key);
    (void)sqlite3_bind_int64(find, 3, (int64_t)capacity);
    while (n < capacity && heed(index, sqlite3_step(find)) == SQLITE_ROW) {
        int64_t first = sqlite3_column_int64(find, 1), end = sqlite3_column_int64(find, 2);
        if (first < 0 || end <= first || end > UINT32_MAX) continue;
        rows[n++] =
            (pith_prefix_row){sqlite3_column_int64(find, 0), (uint32_t)first, (uint32_t)end};
    }
    (void)sqlite3_reset(find);
    return n;
}

bool pith_prefix_index_find_other(pith_prefix_index *index, uint64_t key, uint64_t hash) {
    (void)sqlite3_bind_int64(index->find_other, 1, (int64_t)hash);
    (void)sqlite3_bind_int64(index->find_other, 2, (int64_t)key);
    bool found = heed(index, sqlite3_step(index->find_other)) == SQLITE_ROW;
    (void)sqlite3_reset(index->find_other);
    return found;
}

/* ---- Writing ---- */

static bool forget(pith_prefix_index *index, int64_t id) {
    return change(index, "DELETE FROM blocks WHERE entry = ?1", &id, 1) &&
           change(index, "DELETE FROM entries WHERE id = ?1", &id, 1);
}

/* Ids whose files go when the transaction has ended well. */
typedef struct evicted_ids {
    int64_t ids[EVICTED_MOST];
    size_t n;
} evicted_ids;

/* Takes rows away until those that are left are within the quota; false: it has not come to that,
 * also because one transaction takes at most EVICTED_MOST. */
static bool make_room(pith_prefix_index *index, uint64_t quota, evicted_ids *evicted) {
    int64_t sum[2], victim[2];
    evicted->n = 0;
    if (ask(index, "SELECT ifnull(sum(bytes), 0) FROM entries", NULL, 0, sum) != 1) return false;
    while (sum[0] < 0 || (uint64_t)sum[0] > quota) {
        if (evicted->n == EVICTED_MOST) return false;
        if (ask(index,
                "SELECT id, bytes FROM entries WHERE ready = 1 ORDER BY used, first DESC LIMIT 1",
                NULL, 0, victim) != 1)
            return false;
        if (!forget(index, victim[0])) return false;
        evicted->ids[evicted->n++] = victim[0];
        sum[0] -= victim[1];
    }
    return true;
}

/* The new row's id; 0: it is there already, or it failed. */
static int64_t insert(pith_prefix_index *index, const pith_prefix_entry *entry) {
    const int64_t numbers[] = {
        (int64_t)entry->key,      entry->first,          entry->n,
        (int64_t)entry->ids_hash, (int64_t)entry->bytes, pith_calendar_now()};
    sqlite3_stmt *statement = prepare(
        index,
        "INSERT OR IGNORE INTO entries(key, first, n, ids_hash, bytes, ready, used, changed, "
        "model, settings) VALUES(?1, ?2, ?3, ?4, ?5, 0, (SELECT ifnull(max(used), 0) + 1 FROM "
        "entries), ?6, ?7, ?8)",
        numbers, 6);
    if (!statement) return 0;
    (void)sqlite3_bind_text(statement, 7, entry->model, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(statement, 8, entry->settings, -1, SQLITE_STATIC);
    bool inserted =
        heed(index, sqlite3_step(statement)) == SQLITE_DONE && sqlite3_changes(index->db) == 1;
    sqlite3_finalize(statement);
    return inserted ? sqlite3_last_insert_rowid(index->db) : 0;
}

/* End of a transaction. */
static bool end(pith_prefix_index *index, bool good) {
    if (good && run(index, "COMMIT")) return true;
    (void)run(index, "ROLLBACK");
    return false;
}

int64_t pith_prefix_index_reserve(pith_prefix_index *index, const pith_prefix_entry *entry,
                                  uint64_t quota) {
    evicted_ids evicted;
    int64_t id = 0;
    bool again = index->may_write && entry->bytes <= quota;
    while (again) { /* each round but the last takes EVICTED_MOST entries away */
        if (!run(index, "BEGIN IMMEDIATE")) return 0;
        evicted.n = 0;
        id = insert(index, entry);
        bool good = id != 0 && make_room(index, quota, &evicted);
        again = id != 0 && !good && evicted.n == EVICTED_MOST && forget(index, id);
        if (!end(index, good || again)) return 0;
        for (size_t i = 0; i < evicted.n; i++) remove_file(index, evicted.ids[i]);
    }
    return id;
}

/* All entries with KV of these tokens count as used now. */
static bool touch(pith_prefix_index *index, uint64_t key, const uint64_t *hashes, size_t n) {
    int64_t stamp[2];
    if (ask(index, "SELECT ifnull(max(used), 0) + 1 FROM entries", NULL, 0, stamp) != 1)
        return false;
    bool good = true;
    for (size_t i = 0; i < n && good; i++) {
        const int64_t numbers[] = {stamp[0], pith_calendar_now(), (int64_t)key, (int64_t)hashes[i]};
        good = change(index,
                      "UPDATE entries SET used = ?1, changed = ?2 WHERE key = ?3 AND used <> ?1 "
                      "AND id IN (SELECT entry FROM blocks WHERE hash = ?4)",
                      numbers, 4);
    }
    return good;
}

bool pith_prefix_index_publish(pith_prefix_index *index, int64_t id, uint64_t key,
                               const pith_prefix_places *places) {
    const int64_t numbers[] = {id, pith_calendar_now()};
    if (!run(index, "BEGIN IMMEDIATE")) return false;
    bool good =
        change(index, "UPDATE entries SET ready = 1, changed = ?2 WHERE id = ?1", numbers, 2) &&
        sqlite3_changes(index->db) == 1;
    for (size_t i = places->own; i < places->n && good; i++) {
        const int64_t row[] = {(int64_t)places->hashes[i], id};
        good = change(index, "INSERT OR IGNORE INTO blocks(hash, entry) VALUES(?1, ?2)", row, 2);
    }
    return end(index, good && touch(index, key, places->hashes, places->n));
}

void pith_prefix_index_touch(pith_prefix_index *index, uint64_t key, const uint64_t *hashes,
                             size_t n) {
    if (!index->may_write || !run(index, "BEGIN IMMEDIATE")) return;
    (void)end(index, touch(index, key, hashes, n));
}

void pith_prefix_index_remove(pith_prefix_index *index, int64_t id) {
    if (!index->may_write || !run(index, "BEGIN IMMEDIATE")) return;
    if (end(index, forget(index, id))) remove_file(index, id);
}

/* ---- Left-overs ---- */

/* pith_folder_each: a file that no row speaks for goes. */
static bool sweep_name(void *user, const char *name) {
    pith_prefix_index *index = user;
    int64_t row[2];
    bool unfinished = false;
    int64_t id = id_of_name(name, &unfinished);
    if (id == 0) return true;
    int there = ask(index, "SELECT id, ready FROM entries WHERE id = ?1", &id, 1, row);
    if (there == 0 || (there == 1 && unfinished && row[1] == 1)) remove_named(index->folder, name);
    return there >= 0;
}

void pith_prefix_index_sweep(pith_prefix_index *index) {
    const int64_t now = pith_calendar_now(), ages[] = {now - WRITER_S, now + WRITER_S};
    if (!index->may_write) return;
    (void)change(index, "DELETE FROM entries WHERE ready = 0 AND (changed < ?1 OR changed > ?2)",
                 ages, 2);
    (void)pith_folder_each(index->folder, sweep_name, index, NULL);
}

/* ---- For people ---- */

pith_status pith_prefix_index_each(pith_prefix_index *index, pith_prefix_index_visit visit,
                                   void *user, pith_error *error) {
    sqlite3_stmt *statement =
        prepare(index,
                "SELECT key, first, n, bytes, changed, ifnull(model, ''), ifnull(settings, '') "
                "FROM entries WHERE ready = 1 ORDER BY used DESC, first",
                NULL, 0);
    int code = statement ? SQLITE_ROW : SQLITE_ERROR;
    while (code == SQLITE_ROW && (code = heed(index, sqlite3_step(statement))) == SQLITE_ROW) {
        const pith_cache_entry entry = {
            .key = (uint64_t)sqlite3_column_int64(statement, 0),
            .first = (size_t)sqlite3_column_int64(statement, 1),
            .n = (size_t)sqlite3_column_int64(statement, 2),
            .bytes = (uint64_t)sqlite3_column_int64(statement, 3),
            .used = sqlite3_column_int64(statement, 4),
            .model = (const char *)sqlite3_column_text(statement, 5),
            .settings = (const char *)sqlite3_column_text(statement, 6),
        };
        if (!entry.model || !entry.settings) code = SQLITE_NOMEM;
        if (code == SQLITE_ROW && !visit(user, &entry)) code = SQLITE_DONE;
    }
    sqlite3_finalize(statement);
    if (code == SQLITE_DONE) return PITH_OK;
    return pith_fail(error, PITH_ERROR_IO, "%.140s: %s", index->folder, sqlite3_errmsg(index->db));
}

pith_status pith_prefix_index_clear(pith_prefix_index *index, size_t *n_removed,
                                    pith_error *error) {
    int64_t count[2];
    *n_removed = 0;
    if (!index->may_write)
        return pith_fail(error, PITH_ERROR_IO, "%.140s may only be read", index->folder);
    bool good = run(index, "BEGIN IMMEDIATE") &&
                ask(index, "SELECT count(*) FROM entries", NULL, 0, count) == 1 &&
                change(index, "DELETE FROM blocks", NULL, 0) &&
                change(index, "DELETE FROM entries", NULL, 0) && run(index, "COMMIT");
    if (!good) {
        pith_fail(error, PITH_ERROR_IO, "%.140s: %s", index->folder, sqlite3_errmsg(index->db));
        (void)run(index, "ROLLBACK");
        return PITH_ERROR_IO;
    }
    pith_prefix_index_sweep(index);
    *n_removed = (size_t)count[0];
    return PITH_OK;
}

#else
typedef int pith_prefix_index_is_left_out;
#endif
