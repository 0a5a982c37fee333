/* SPDX-License-Identifier: Apache-2.0
 * The routes of the history, for the page and whoever wants to use them:
 *
 *   GET    /pith/status                         what there is: page, history, an upstream
 *   GET    /pith/conversations                  the list
 *   GET    /pith/conversations/ID               one, whole
 *   PUT    /pith/conversations/ID               {"title", "leaf", "settings"}
 *   DELETE /pith/conversations/ID
 *   PUT    /pith/conversations/ID/messages/ID   {"parent", "role", "text", "more", "created"}
 *   POST   /pith/search                         {"query"}
 *   GET    /pith/export, POST /pith/import      all of it, as JSON
 *
 * Invariant: nothing of a request names a file; ids are letters, digits, '-' and '_'.
 * Read next: chat_history.h, which says what comes back. */
#include "server/chat_history.h"
#include "server/fields.h"
#include "server/page_file.h"
#include "server/route.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

static pith_chat_history *history_of(const pith_exchange *exchange) {
    return pith_exchange_server(exchange)->history;
}

static void refuse(pith_exchange *exchange, const pith_error *error) {
    pith_http_error what = pith_http_error_of(error);
    if (error->status == PITH_ERROR_IO || error->status == PITH_ERROR_UNSUPPORTED) {
        what.status = error->status == PITH_ERROR_IO ? 503 : 501;
        what.type = "server_error";
        what.code = error->status == PITH_ERROR_IO ? "history_unavailable" : "history_off";
    }
    pith_exchange_fail(exchange, &what);
}

/* Answers with the JSON, which is taken over, or the error. */
static void answer(pith_exchange *exchange, pith_status status, json_t *body,
                   const pith_error *error) {
    if (status == PITH_OK)
        pith_exchange_reply(exchange, 200, body);
    else
        refuse(exchange, error);
}

static void answer_done(pith_exchange *exchange, pith_status status, const pith_error *error) {
    answer(exchange, status, status == PITH_OK ? json_pack("{s:b}", "ok", 1) : NULL, error);
}

void pith_handle_status(pith_exchange *exchange) {
    pith_error error = {0};
    pith_status status = pith_chat_history_check(history_of(exchange), &error);
    json_t *note = status == PITH_OK ? json_null() : pith_json_text(error.text, strlen(error.text));
    const char *why = pith_page.absence;
    const pith_server_upstream *o = &pith_exchange_server(exchange)->options->upstream;
    int may_leave = o->url && o->policy != PITH_ROUTE_LOCAL_ONLY;
    pith_exchange_reply(exchange, 200,
                        json_pack("{s:s, s:{s:b, s:o}, s:{s:b, s:s?}, s:b}", "version",
                                  pith_version(), "history", "kept", status == PITH_OK, "note",
                                  note, "page", "built", why == NULL, "note", why, "upstream",
                                  may_leave));
}

/* ---- Ids in paths ---- */

static bool is_id(const char *text, size_t size) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_";
    if (size == 0 || size > PITH_CHAT_HISTORY_ID) return false;
    for (size_t i = 0; i < size; i++)
        if (!memchr(letters, text[i], sizeof letters - 1)) return false;
    return true;
}

typedef struct path_ids {
    char conversation[PITH_CHAT_HISTORY_ID + 1],
        message[PITH_CHAT_HISTORY_ID + 1]; /* "": not named */
} path_ids;

/* false: the exchange was answered. */
static bool read_path(pith_exchange *exchange, path_ids *out) {
    static const char middle[] = "/messages/";
    const char *first = pith_exchange_path(exchange) + sizeof "/pith/conversations/" - 1;
    const char *end = strstr(first, middle);
    const char *second = end ? end + sizeof middle - 1 : "";
    size_t size = end ? (size_t)(end - first) : strlen(first);
    *out = (path_ids){"", ""};
    if (!is_id(first, size) || (end && !is_id(second, strlen(second)))) {
        const pith_http_error what = {404, "invalid_request_error", "not_found", NULL,
                                      "an id is 1 to 64 letters, digits, '-' and '_'"};
        pith_exchange_fail(exchange, &what);
        return false;
    }
    memcpy(out->conversation, first, size);
    memcpy(out->message, second, strlen(second));
    return true;
}

/* ---- One conversation ---- */

void pith_handle_conversations(pith_exchange *exchange) {
    pith_error error = {0};
    json_t *body = NULL;
    pith_status status = pith_chat_history_list(history_of(exchange), &body, &error);
    answer(exchange, status, body, &error);
}

static bool has_no_message(pith_exchange *exchange, const path_ids *ids) {
    const pith_http_error what = {404, "invalid_request_error", "not_found", NULL,
                                  "a message is read with its conversation"};
    if (ids->message[0]) pith_exchange_fail(exchange, &what);
    return !ids->message[0];
}

void pith_handle_conversation(pith_exchange *exchange) {
    path_ids ids;
    pith_error error = {0};
    json_t *body = NULL;
    if (!read_path(exchange, &ids) || !has_no_message(exchange, &ids)) return;
    pith_status status =
        pith_chat_history_read(history_of(exchange), ids.conversation, &body, &error);
    answer(exchange, status, body, &error);
}

void pith_handle_conversation_delete(pith_exchange *exchange) {
    path_ids ids;
    pith_error error = {0};
    if (!read_path(exchange, &ids) || !has_no_message(exchange, &ids)) return;
    pith_status status = pith_chat_history_remove(history_of(exchange), ids.conversation, &error);
    answer_done(exchange, status, &error);
}

static void read_title(pith_fields *f, const char **title) {
    if (pith_fields_text(f, "title", title) && strlen(*title) > PITH_CHAT_HISTORY_TITLE)
        pith_fields_wrong(f, "title", "too_long", "must have at most %d bytes",
                          PITH_CHAT_HISTORY_TITLE);
}

static void read_id(pith_fields *f, const char *key, const char **id) {
    if (pith_fields_text(f, key, id) && !is_id(*id, strlen(*id)))
        pith_fields_wrong(f, key, "invalid_value",
                          "must be an id: 1 to %d letters, digits, '-' and '_'",
                          PITH_CHAT_HISTORY_ID);
}

static void read_seconds(pith_fields *f, const char *key, int64_t *out) {
    pith_fields_int(f, key, 0, (int64_t)1 << 40, out);
}

/* settings and more count with the texts, which are limited. */
static void read_object(pith_fields *f, const char *key, const json_t **out) {
    json_t *object = NULL;
    if (pith_fields_object(f, key, &object)) *out = object;
}

static void read_head(pith_fields *f, pith_chat_history_head *head) {
    enum { SETTINGS = 256 << 10 };
    read_title(f, &head->title);
    read_id(f, "leaf", &head->leaf);
    read_object(f, "settings", &head->settings);
    char *text = head->settings ? pith_json_dump(head->settings) : NULL;
    if (text && strlen(text) > SETTINGS)
        pith_fields_wrong(f, "settings", "too_long", "must have at most %d KiB", SETTINGS >> 10);
    pith_json_release(text);
}

static void read_message(pith_fields *f, pith_chat_history_message *m) {
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    bool known = false;
    read_id(f, "parent", &m->parent);
    if (pith_fields_require(f, "role")) pith_fields_text(f, "role", &m->role);
    for (size_t i = 0; m->role && i < sizeof roles / sizeof roles[0]; i++)
        known = known || strcmp(m->role, roles[i]) == 0;
    if (m->role && !known)
        pith_fields_wrong(f, "role", "invalid_value", "must be system, user, assistant or tool");
    if (pith_fields_require(f, "text") && pith_fields_text(f, "text", &m->text) &&
        strlen(m->text) > PITH_CHAT_HISTORY_TEXT)
        pith_fields_wrong(f, "text", "too_long", "must have at most %d MiB",
                          PITH_CHAT_HISTORY_TEXT >> 20);
    read_object(f, "more", &m->more);
    read_seconds(f, "created", &m->created);
}

static void put_message(pith_exchange *exchange, pith_fields *f, const path_ids *ids) {
    pith_chat_history_message message = {.id = ids->message};
    pith_error error = {0};
    read_message(f, &message);
    if (!pith_fields_close(f)) {
        pith_fields_refuse(f, exchange);
        return;
    }
    pith_status status =
        pith_chat_history_write_message(history_of(exchange), ids->conversation, &message, &error);
    answer_done(exchange, status, &error);
}

static void put_head(pith_exchange *exchange, pith_fields *f, const path_ids *ids) {
    pith_chat_history_head head = {.title = NULL};
    pith_error error = {0};
    read_head(f, &head);
    if (!pith_fields_close(f)) {
        pith_fields_refuse(f, exchange);
        return;
    }
    pith_status status =
        pith_chat_history_write(history_of(exchange), ids->conversation, &head, &error);
    answer_done(exchange, status, &error);
}

void pith_handle_conversation_put(pith_exchange *exchange) {
    path_ids ids;
    if (!read_path(exchange, &ids)) return;
    json_t *body = pith_body_object(exchange);
    if (!body) return;
    pith_fields f;
    pith_fields_init(&f, body, "");
    if (ids.message[0])
        put_message(exchange, &f, &ids);
    else
        put_head(exchange, &f, &ids);
    json_decref(body);
}

/* ---- Search, export, import ---- */

void pith_handle_search(pith_exchange *exchange) {
    enum { QUERY = 1024 };
    json_t *body = pith_body_object(exchange), *hits = NULL;
    const char *query = "";
    pith_error error = {0};
    if (!body) return;
    pith_fields f;
    pith_fields_init(&f, body, "");
    if (pith_fields_require(&f, "query") && pith_fields_text(&f, "query", &query) &&
        strlen(query) > QUERY)
        pith_fields_wrong(&f, "query", "too_long", "must have at most %d bytes", QUERY);
    if (pith_fields_close(&f)) {
        pith_status status = pith_chat_history_search(history_of(exchange), query, &hits, &error);
        answer(exchange, status, hits, &error);
    } else {
        pith_fields_refuse(&f, exchange);
    }
    json_decref(body);
}

void pith_handle_export(pith_exchange *exchange) {
    pith_error error = {0};
    json_t *body = NULL;
    pith_status status = pith_chat_history_export(history_of(exchange), &body, &error);
    if (status == PITH_OK)
        pith_exchange_add_header(exchange, "Content-Disposition",
                                 "attachment; filename=\"pith-conversations.json\"");
    answer(exchange, status, body, &error);
}

/* What an import holds, borrowed from its JSON. */
typedef struct import_lists {
    pith_chat_history_import *items;
    pith_chat_history_message *messages; /* of all items, one after the other */
    size_t n_items, n_messages, capacity;
} import_lists;

static void read_import_message(pith_fields *f, json_t *value, const char *path,
                                import_lists *lists) {
    pith_fields in;
    pith_chat_history_message *m = &lists->messages[lists->n_messages];
    if (!pith_fields_enter(f, value, path, &in)) return;
    if (pith_fields_require(&in, "id")) read_id(&in, "id", &m->id);
    read_message(&in, m);
    pith_fields_close(&in);
    if (pith_fields_leave(f, &in)) lists->n_messages++;
}

static void read_import_item(pith_fields *f, json_t *value, size_t at, import_lists *lists) {
    char path[PITH_FIELDS_PATH];
    json_t *messages = NULL, *message;
    size_t i, before = lists->n_messages;
    pith_chat_history_import *item = &lists->items[lists->n_items];
    pith_fields in;
    snprintf(path, sizeof path, "conversations[%zu]", at);
    if (!pith_fields_enter(f, value, path, &in)) return;
    if (pith_fields_require(&in, "id")) read_id(&in, "id", &item->id);
    read_head(&in, &item->head);
    read_seconds(&in, "created", &item->head.created);
    read_seconds(&in, "changed", &item->head.changed);
    pith_fields_harmless(&in, "n");
    if (pith_fields_require(&in, "messages")) pith_fields_array(&in, "messages", &messages);
    json_array_foreach(messages, i, message) {
        snprintf(path, sizeof path, "conversations[%zu].messages[%zu]", at, i);
        if (!in.failed) read_import_message(&in, message, path, lists);
    }
    pith_fields_close(&in);
    item->messages = lists->messages + before;
    item->n_messages = lists->n_messages - before;
    if (pith_fields_leave(f, &in)) lists->n_items++;
}

static bool make_lists(json_t *conversations, import_lists *lists) {
    json_t *item;
    size_t i, n = 0;
    json_array_foreach(conversations, i, item) {
        n += json_array_size(json_object_get(item, "messages"));
    }
    lists->items = pith_alloc_zero(json_array_size(conversations) + 1, sizeof *lists->items);
    lists->messages = pith_alloc_zero(n + 1, sizeof *lists->messages);
    return lists->items && lists->messages;
}

static void read_import(pith_fields *f, json_t *conversations, import_lists *lists) {
    json_t *item;
    size_t i;
    json_array_foreach(conversations, i, item) {
        if (!f->failed) read_import_item(f, item, i, lists);
    }
}

static void add_lists(pith_exchange *exchange, const import_lists *lists) {
    pith_error error = {0};
    size_t n_added = 0;
    pith_status status =
        pith_chat_history_add(history_of(exchange), lists->items, lists->n_items, &n_added, &error);
    answer(exchange, status,
           status == PITH_OK ? json_pack("{s:I, s:I}", "conversations", (json_int_t)lists->n_items,
                                         "added", (json_int_t)n_added)
                             : NULL,
           &error);
}

void pith_handle_import(pith_exchange *exchange) {
    json_t *body = pith_body_object(exchange), *conversations = NULL;
    import_lists lists = {0};
    const char *format = "";
    int64_t version = 0;
    if (!body) return;
    pith_fields f;
    pith_fields_init(&f, body, "");
    if (pith_fields_require(&f, "format")) pith_fields_text(&f, "format", &format);
    if (strcmp(format, "pith-conversations") != 0)
        pith_fields_wrong(&f, "format", "invalid_value", "must be pith-conversations");
    if (pith_fields_require(&f, "version")) pith_fields_int(&f, "version", 1, 1, &version);
    if (pith_fields_require(&f, "conversations"))
        pith_fields_array(&f, "conversations", &conversations);
    bool has_memory = make_lists(conversations, &lists);
    if (has_memory) read_import(&f, conversations, &lists);
    if (!has_memory)
        pith_exchange_reply(exchange, 500, NULL);
    else if (pith_fields_close(&f))
        add_lists(exchange, &lists);
    else
        pith_fields_refuse(&f, exchange);
    pith_free(lists.items);
    pith_free(lists.messages);
    json_decref(body);
}
