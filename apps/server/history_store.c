/* SPDX-License-Identifier: Apache-2.0
 * Conversations and messages: listing, reading, writing, removing.
 * Invariant: `bytes` and `n` of a conversation are those of its messages, since they change in the
 * same transaction; a parent is there before its children, so rows in their order are a tree from
 * the root on. Read next: history_search.c. */
#include "server/fields.h"
#include "server/history_parts.h"

#include "base/calendar.h"

#include <string.h>

/* Shorter to write where a query is made. */
#define STRING(value) pith_chat_history_string(value)
#define NUMBER(value) pith_chat_history_number(value)

static const char *column(sqlite3_stmt *statement, int at) {
    const unsigned char *text = sqlite3_column_text(statement, at);
    return text ? (const char *)text : "";
}

/* A text of ours as the JSON that it was. */
static json_t *object_of(const char *text) {
    json_t *json = json_loads(text, 0, NULL);
    if (json_is_object(json)) return json;
    json_decref(json);
    return json_object();
}

static json_t *text_or_null(sqlite3_stmt *statement, int at) {
    if (sqlite3_column_type(statement, at) == SQLITE_NULL) return json_null();
    const char *text = column(statement, at);
    return pith_json_text(text, strlen(text));
}

static json_t *text_at(sqlite3_stmt *statement, int at) {
    const char *text = column(statement, at);
    return pith_json_text(text, strlen(text));
}

/* Takes the JSON; a failed one becomes an error. */
static pith_status give(json_t *json, pith_status status, json_t **out, pith_error *error) {
    if (status != PITH_OK) {
        json_decref(json);
        return status;
    }
    *out = json;
    return json ? PITH_OK : pith_fail_memory(error, "the history", 0);
}

/* ---- Reading ---- */

static json_t *describe_entry(sqlite3_stmt *s) {
    return json_pack("{s:o, s:o, s:I, s:I, s:I}", "id", text_at(s, 0), "title", text_at(s, 1),
                     "created", (json_int_t)sqlite3_column_int64(s, 2), "changed",
                     (json_int_t)sqlite3_column_int64(s, 3), "n",
                     (json_int_t)sqlite3_column_int64(s, 4));
}

static json_t *describe_message(sqlite3_stmt *s) {
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I}", "id", text_at(s, 0), "parent",
                     text_or_null(s, 1), "role", text_at(s, 2), "text", text_at(s, 3), "more",
                     object_of(column(s, 4)), "created", (json_int_t)sqlite3_column_int64(s, 5));
}

/* A list of what describe makes of the rows; NULL with the error. */
static json_t *collect(pith_chat_history *h, const pith_chat_history_query *query,
                       json_t *(*describe)(sqlite3_stmt *statement), pith_error *error) {
    json_t *list = json_array();
    sqlite3_stmt *statement = pith_chat_history_prepare(h, query, error);
    int more = statement ? 1 : -1;
    while (more == 1 && (more = pith_chat_history_step(h, statement, error)) == 1)
        if (json_array_append_new(list, describe(statement)) != 0)
            more = -1, pith_fail_memory(error, "the history", 0);
    sqlite3_finalize(statement);
    if (more == 0) return list;
    json_decref(list);
    return NULL;
}

pith_status pith_chat_history_list(pith_chat_history *h, json_t **out, pith_error *error) {
    const pith_chat_history_query query = {
        "SELECT id, title, created, changed, n FROM conversations ORDER BY changed DESC, row DESC "
        "LIMIT ?1",
        {NUMBER(PITH_CHAT_HISTORY_LISTED)},
        1};
    const pith_chat_history_query count = {.sql = "SELECT count(*) FROM conversations"};
    int64_t n = 0;
    *out = NULL;
    pith_status status = pith_chat_history_enter(h, error);
    if (status != PITH_OK) return status;
    json_t *list = collect(h, &query, describe_entry, error);
    if (!list || pith_chat_history_ask(h, &count, &n, error) < 0) status = PITH_ERROR_IO;
    pith_chat_history_leave(h);
    int64_t more = n - (int64_t)json_array_size(list);
    return give(list ? json_pack("{s:o, s:I}", "conversations", list, "more", (json_int_t)more)
                     : NULL,
                status, out, error);
}

/* NULL with the error, which is NOT_FOUND where there is none. */
static json_t *read_locked(pith_chat_history *h, const char *id, pith_error *error) {
    const pith_chat_history_query head = {
        "SELECT id, title, created, changed, n, leaf, settings FROM conversations WHERE id = ?1",
        {STRING(id)},
        1};
    const pith_chat_history_query messages = {
        "SELECT m.id, m.parent, m.role, m.text, m.more, m.created FROM messages m JOIN "
        "conversations c ON m.conversation = c.row WHERE c.id = ?1 ORDER BY m.row",
        {STRING(id)},
        1};
    sqlite3_stmt *statement = pith_chat_history_prepare(h, &head, error);
    int there = statement ? pith_chat_history_step(h, statement, error) : -1;
    json_t *json = NULL;
    if (there == 1) {
        json = describe_entry(statement);
        json_object_set_new(json, "leaf", text_or_null(statement, 5));
        json_object_set_new(json, "settings", object_of(column(statement, 6)));
    } else if (there == 0) {
        pith_fail(error, PITH_ERROR_NOT_FOUND, "there is no conversation %.64s", id);
    }
    sqlite3_finalize(statement);
    json_t *list = json ? collect(h, &messages, describe_message, error) : NULL;
    if (list && json_object_set_new(json, "messages", list) == 0) return json;
    json_decref(json);
    return NULL;
}

pith_status pith_chat_history_read(pith_chat_history *h, const char *id, json_t **out,
                                   pith_error *error) {
    pith_error own = {0};
    if (!error) error = &own;
    *out = NULL;
    pith_status status = pith_chat_history_enter(h, error);
    if (status != PITH_OK) return status;
    *out = read_locked(h, id, error);
    pith_chat_history_leave(h);
    return *out ? PITH_OK : error->status;
}

pith_status pith_chat_history_export(pith_chat_history *h, json_t **out, pith_error *error) {
    const pith_chat_history_query sum = {.sql = "SELECT total(bytes) FROM conversations"};
    const pith_chat_history_query ids = {
        .sql = "SELECT id, title, created, changed, n FROM conversations ORDER BY row"};
    int64_t bytes = 0;
    json_t *entry, *json, *whole = json_array();
    size_t i;
    *out = NULL;
    pith_status status = pith_chat_history_enter(h, error);
    if (status != PITH_OK) return json_decref(whole), status;
    json_t *list = NULL;
    if (pith_chat_history_ask(h, &sum, &bytes, error) < 0)
        status = PITH_ERROR_IO;
    else if (bytes > PITH_CHAT_HISTORY_EXPORT)
        status = pith_fail(error, PITH_ERROR_LIMIT,
                           "the history has %lld MiB, an export at most %d: read conversations one "
                           "by one (GET /pith/conversations/ID)",
                           (long long)(bytes >> 20), PITH_CHAT_HISTORY_EXPORT >> 20);
    else if (!(list = collect(h, &ids, describe_entry, error)))
        status = PITH_ERROR_IO;
    json_array_foreach(list, i, entry) {
        if (status != PITH_OK) break;
        json = read_locked(h, json_string_value(json_object_get(entry, "id")), error);
        if (!json || json_array_append_new(whole, json) != 0) status = PITH_ERROR_IO;
    }
    json_decref(list);
    pith_chat_history_leave(h);
    return give(json_pack("{s:s, s:i, s:o}", "format", "pith-conversations", "version", 1,
                          "conversations", whole),
                status, out, error);
}

/* ---- Writing ---- */

/* A conversation inside of a transaction. */
typedef struct open_conversation {
    int64_t row, bytes, n;
} open_conversation;

static pith_status find_conversation(pith_chat_history *h, const char *id, open_conversation *c,
                                     pith_error *error) {
    const pith_chat_history_query query = {
        "SELECT row, bytes, n FROM conversations WHERE id = ?1", {STRING(id)}, 1};
    sqlite3_stmt *statement = pith_chat_history_prepare(h, &query, error);
    int there = statement ? pith_chat_history_step(h, statement, error) : -1;
    if (there == 1)
        *c = (open_conversation){sqlite3_column_int64(statement, 0),
                                 sqlite3_column_int64(statement, 1),
                                 sqlite3_column_int64(statement, 2)};
    sqlite3_finalize(statement);
    if (there == 0)
        return pith_fail(error, PITH_ERROR_NOT_FOUND, "there is no conversation %.64s", id);
    return there == 1 ? PITH_OK : PITH_ERROR_IO;
}

static int64_t or_now(int64_t seconds) {
    return seconds > 0 ? seconds : pith_calendar_now();
}

static pith_status check_room(pith_chat_history *h, pith_error *error) {
    /* rows are numbered upwards: below the limit none need be counted, which takes its time */
    const pith_chat_history_query last = {.sql = "SELECT max(row) FROM conversations"};
    const pith_chat_history_query count = {.sql = "SELECT count(*) FROM conversations"};
    int64_t n = 0;
    if (pith_chat_history_ask(h, &last, &n, error) < 0) return PITH_ERROR_IO;
    if (n < PITH_CHAT_HISTORY_CONVERSATIONS) return PITH_OK;
    if (pith_chat_history_ask(h, &count, &n, error) < 0) return PITH_ERROR_IO;
    if (n < PITH_CHAT_HISTORY_CONVERSATIONS) return PITH_OK;
    return pith_fail(error, PITH_ERROR_LIMIT, "there are %d conversations: delete some",
                     PITH_CHAT_HISTORY_CONVERSATIONS);
}

/* A new one. settings is JSON text. */
static pith_status insert_head(pith_chat_history *h, const char *id,
                               const pith_chat_history_head *head, const char *settings,
                               pith_error *error) {
    int64_t created = or_now(head->created);
    const pith_chat_history_query query = {
        "INSERT INTO conversations(id, title, leaf, settings, created, changed, bytes, n) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, 0, 0)",
        {STRING(id), STRING(head->title ? head->title : ""), STRING(head->leaf), STRING(settings),
         NUMBER(created), NUMBER(head->changed > 0 ? head->changed : created)},
        6};
    pith_status status = check_room(h, error);
    return status == PITH_OK ? pith_chat_history_change(h, &query, error) : status;
}

static pith_status write_locked(pith_chat_history *h, const char *id,
                                const pith_chat_history_head *head, const char *settings,
                                pith_error *error) {
    const pith_chat_history_query update = {
        "UPDATE conversations SET title = coalesce(?2, title), leaf = coalesce(?3, leaf), "
        "settings = coalesce(?4, settings) WHERE id = ?1",
        {STRING(id), STRING(head->title), STRING(head->leaf), STRING(settings)},
        4};
    open_conversation c;
    pith_error own = {0};
    pith_status status = find_conversation(h, id, &c, &own);
    if (status == PITH_ERROR_NOT_FOUND)
        return insert_head(h, id, head, settings ? settings : "{}", error);
    if (status != PITH_OK) return pith_fail(error, status, "%s", own.text);
    return pith_chat_history_change(h, &update, error);
}

pith_status pith_chat_history_write(pith_chat_history *h, const char *id,
                                    const pith_chat_history_head *head, pith_error *error) {
    char *settings = head->settings ? pith_json_dump(head->settings) : NULL;
    if (head->settings && !settings) return pith_fail_memory(error, "the history", 0);
    pith_status status = pith_chat_history_enter(h, error);
    if (status == PITH_OK) {
        status = pith_chat_history_begin(h, error);
        if (status == PITH_OK)
            status = pith_chat_history_end(h, write_locked(h, id, head, settings, error), error);
        pith_chat_history_leave(h);
    }
    pith_json_release(settings);
    return status;
}

/* A message that is there: its bytes, or -1 when there is none. */
static pith_status find_message(pith_chat_history *h, const open_conversation *c,
                                const pith_chat_history_message *m, int64_t *bytes,
                                pith_error *error) {
    const pith_chat_history_query query = {
        "SELECT parent IS ?3 AND role = ?4, length(CAST(text AS BLOB)) + "
        "length(CAST(more AS BLOB)) FROM messages WHERE conversation = ?1 AND id = ?2",
        {NUMBER(c->row), STRING(m->id), STRING(m->parent), STRING(m->role)},
        4};
    sqlite3_stmt *statement = pith_chat_history_prepare(h, &query, error);
    int there = statement ? pith_chat_history_step(h, statement, error) : -1;
    bool same = there == 1 && sqlite3_column_int(statement, 0) == 1;
    *bytes = there == 1 ? sqlite3_column_int64(statement, 1) : -1;
    sqlite3_finalize(statement);
    if (there < 0) return PITH_ERROR_IO;
    if (there == 0 || same) return PITH_OK;
    return pith_fail(error, PITH_ERROR_ARGUMENT,
                     "message %.64s is there with another parent or role, which never change",
                     m->id);
}

static pith_status check_parent(pith_chat_history *h, const open_conversation *c,
                                const pith_chat_history_message *m, pith_error *error) {
    const pith_chat_history_query query = {
        "SELECT 1 FROM messages WHERE conversation = ?1 AND id = ?2",
        {NUMBER(c->row), STRING(m->parent)},
        2};
    int64_t one;
    int there = m->parent ? pith_chat_history_ask(h, &query, &one, error) : 1;
    if (there == 0)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "message %.64s names the parent %.64s, which is not there before it",
                         m->id, m->parent);
    return there == 1 ? PITH_OK : PITH_ERROR_IO;
}

static pith_status check_limits(const open_conversation *c, int64_t n, int64_t bytes,
                                pith_error *error) {
    if (n > PITH_CHAT_HISTORY_MESSAGES)
        return pith_fail(error, PITH_ERROR_LIMIT, "a conversation has at most %d messages",
                         PITH_CHAT_HISTORY_MESSAGES);
    if (bytes > PITH_CHAT_HISTORY_BYTES && bytes > c->bytes)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "the conversation would have %.1f MiB, at most %d are kept: begin a new "
                         "one",
                         (double)bytes / (1 << 20), PITH_CHAT_HISTORY_BYTES >> 20);
    return PITH_OK;
}

/* Inserts or updates, and counts it in c. had: the bytes of the one that is there, or -1. */
static pith_status put_message(pith_chat_history *h, open_conversation *c,
                               const pith_chat_history_message *m, int64_t had, pith_error *error) {
    char *more = m->more ? pith_json_dump(m->more) : NULL;
    if (m->more && !more) return pith_fail_memory(error, "the history", 0);
    const char *kept = more ? more : "{}";
    int64_t bytes = c->bytes + (int64_t)(strlen(m->text) + strlen(kept)) - (had > 0 ? had : 0);
    int64_t n = c->n + (had < 0);
    const pith_chat_history_query query = {
        "INSERT INTO messages(conversation, id, parent, role, text, more, created) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(conversation, id) "
        "DO UPDATE SET text = excluded.text, more = excluded.more",
        {NUMBER(c->row), STRING(m->id), STRING(m->parent), STRING(m->role), STRING(m->text),
         STRING(kept), NUMBER(or_now(m->created))},
        7};
    pith_status status = check_limits(c, n, bytes, error);
    if (status == PITH_OK) status = pith_chat_history_change(h, &query, error);
    c->bytes = bytes;
    c->n = n;
    pith_json_release(more);
    return status;
}

static pith_status close_conversation(pith_chat_history *h, const open_conversation *c,
                                      const char *leaf, int64_t changed, pith_error *error) {
    const pith_chat_history_query query = {
        "UPDATE conversations SET bytes = ?2, n = ?3, leaf = coalesce(?4, leaf), changed = ?5 "
        "WHERE row = ?1",
        {NUMBER(c->row), NUMBER(c->bytes), NUMBER(c->n), STRING(leaf), NUMBER(changed)},
        5};
    return pith_chat_history_change(h, &query, error);
}

static pith_status write_message_locked(pith_chat_history *h, const char *conversation,
                                        const pith_chat_history_message *m, pith_error *error) {
    open_conversation c;
    int64_t had = -1;
    pith_status status = find_conversation(h, conversation, &c, error);
    if (status == PITH_OK) status = find_message(h, &c, m, &had, error);
    if (status == PITH_OK && had < 0) status = check_parent(h, &c, m, error);
    if (status == PITH_OK) status = put_message(h, &c, m, had, error);
    if (status == PITH_OK) status = close_conversation(h, &c, m->id, pith_calendar_now(), error);
    return status;
}

pith_status pith_chat_history_write_message(pith_chat_history *h, const char *conversation,
                                            const pith_chat_history_message *message,
                                            pith_error *error) {
    pith_status status = pith_chat_history_enter(h, error);
    if (status != PITH_OK) return status;
    status = pith_chat_history_begin(h, error);
    if (status == PITH_OK)
        status =
            pith_chat_history_end(h, write_message_locked(h, conversation, message, error), error);
    pith_chat_history_leave(h);
    return status;
}

/* ---- Import ---- */

/* The conversation, made where there is none; *is_new says which. */
static pith_status open_imported(pith_chat_history *h, const pith_chat_history_import *item,
                                 open_conversation *c, bool *is_new, pith_error *error) {
    pith_error own = {0};
    pith_status status = find_conversation(h, item->id, c, &own);
    *is_new = status == PITH_ERROR_NOT_FOUND;
    if (status != PITH_OK && !*is_new) return pith_fail(error, status, "%s", own.text);
    if (!*is_new) return PITH_OK;
    char *settings = item->head.settings ? pith_json_dump(item->head.settings) : NULL;
    status = insert_head(h, item->id, &item->head, settings ? settings : "{}", error);
    pith_json_release(settings);
    return status == PITH_OK ? find_conversation(h, item->id, c, error) : status;
}

static pith_status add_one(pith_chat_history *h, const pith_chat_history_import *item,
                           size_t *n_added, pith_error *error) {
    open_conversation c;
    bool is_new = false;
    size_t before = *n_added;
    pith_status status = open_imported(h, item, &c, &is_new, error);
    for (size_t i = 0; i < item->n_messages && status == PITH_OK; i++) {
        const pith_chat_history_message *m = &item->messages[i];
        int64_t had = -1;
        status = find_message(h, &c, m, &had, error);
        if (status != PITH_OK || had >= 0) continue;
        status = check_parent(h, &c, m, error);
        if (status == PITH_OK) status = put_message(h, &c, m, -1, error);
        ++*n_added;
    }
    if (status != PITH_OK || *n_added == before) return status;
    int64_t changed = is_new ? or_now(item->head.changed) : pith_calendar_now();
    return close_conversation(h, &c, NULL, changed, error);
}

pith_status pith_chat_history_add(pith_chat_history *h, const pith_chat_history_import *items,
                                  size_t n, size_t *n_added, pith_error *error) {
    *n_added = 0;
    pith_status status = pith_chat_history_enter(h, error);
    if (status != PITH_OK) return status;
    status = pith_chat_history_begin(h, error);
    if (status == PITH_OK) {
        for (size_t i = 0; i < n && status == PITH_OK; i++)
            status = add_one(h, &items[i], n_added, error);
        status = pith_chat_history_end(h, status, error);
    }
    pith_chat_history_leave(h);
    return status;
}

/* ---- Removing ---- */

/* The index keeps what is removed, in pieces of three characters, until its parts are merged, and
 * the journal keeps it until it is emptied; neither is needed for the removal itself. Merging
 * rewrites the whole index, a second for 64 MiB; of a larger file it is left to later writes. */
static void wipe(pith_chat_history *h) {
    enum { MOST_PAGES = 16384 };
    const pith_chat_history_query pages = {.sql = "PRAGMA page_count"};
    int64_t n = INT64_MAX;
    (void)pith_chat_history_ask(h, &pages, &n, NULL);
    if (!h->db) return;
    if (h->has_index && n <= MOST_PAGES)
        (void)sqlite3_exec(h->db, "INSERT INTO found(found) VALUES('optimize')", NULL, NULL, NULL);
    (void)sqlite3_wal_checkpoint_v2(h->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

pith_status pith_chat_history_remove(pith_chat_history *h, const char *id, pith_error *error) {
    const pith_chat_history_query query = {
        "DELETE FROM conversations WHERE id = ?1", {STRING(id)}, 1};
    open_conversation c;
    pith_status status = pith_chat_history_enter(h, error);
    if (status != PITH_OK) return status;
    status = find_conversation(h, id, &c, error);
    if (status == PITH_OK) status = pith_chat_history_change(h, &query, error);
    if (status == PITH_OK) wipe(h);
    pith_chat_history_leave(h);
    return status;
}
