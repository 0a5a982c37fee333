/* SPDX-License-Identifier: Apache-2.0
 * Conversations that are kept: `pith chat --resume NAME` writes NAME.json after each reply and goes
 * on from it at the next start, with the same ids, so that what is cached of them is found again.
 *
 *   {"model": content key, "messages": [{"role", "content"}], "text", "ids": [...],
 *    "marks": [[bytes, ids, messages], ...]}
 *
 * The file is replaced as a whole: what ends the program costs the reply being made at most. With
 * another model only the messages hold. Text, ids and marks come from a file, so they are checked
 * before they are believed: marks rise and stay within text and ids. Read next: chat_turn.c. */
#include "base/folder.h"
#include "base/memory.h"
#include "base/output.h"
#include "pith/chat_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { CONVERSATION_LIMIT = 64 << 20, NAME_LIMIT = 64 };

/* ---- Where ---- */

/* Kept conversations are the user's, no cache: "$PITH_HOME/chats", else pith/chats in the user's
 * data folder. Where it is missing it is made for this user alone. */
static bool chats_folder(pith_buffer *folder) {
    static const struct {
        const char *variable, *below;
    } places[] = {{"PITH_HOME", "/chats"},
                  {"XDG_DATA_HOME", "/pith/chats"},
                  {"HOME", "/.local/share/pith/chats"},
                  {"LOCALAPPDATA", "/pith/chats"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char *value = pith_cli_variable(places[i].variable);
        if (!value) continue;
        pith_buffer_append_format(folder, "%s%s", value, places[i].below);
        pith_free(value);
        return !folder->failed;
    }
    return false;
}

static bool is_name(const char *name) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t size = strlen(name);
    return size > 0 && size <= NAME_LIMIT && name[0] != '.' && strspn(name, allowed) == size;
}

pith_status pith_chat_session_path(const char *name, bool make, pith_buffer *path,
                                   pith_error *error) {
    pith_buffer folder = {0};
    if (!is_name(name)) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "a conversation's name has 1 to %d letters, digits, '-', '_' and '.', and "
                         "does not begin with '.'",
                         NAME_LIMIT);
    }
    bool ok = chats_folder(&folder);
    pith_status status = ok && make ? pith_folder_make(folder.data, error) : PITH_OK;
    if (ok) pith_buffer_append_format(path, "%s/%s.json", folder.data, name);
    if (!ok || path->failed) status = pith_fail_memory(error, "a path", 0);
    pith_buffer_deinit(&folder);
    return status;
}

/* ---- Writing ---- */

static json_t *mark_list(const pith_chat *chat) {
    json_t *list = json_array();
    for (size_t i = 0; i < chat->n_marks; i++) {
        const pith_chat_mark *m = &chat->marks[i];
        json_array_append_new(list, json_pack("[I, I, I]", (json_int_t)m->bytes,
                                              (json_int_t)m->n_ids, (json_int_t)m->n_messages));
    }
    return list;
}

static json_t *conversation(const pith_chat *chat) {
    char key[20];
    size_t n = chat->n_marks ? chat->marks[chat->n_marks - 1].n_ids : 0;
    size_t bytes = chat->n_marks ? chat->marks[chat->n_marks - 1].bytes : 0;
    snprintf(key, sizeof key, "%016" PRIx64, pith_model_describe(chat->model).content_key);
    return json_pack("{s:s, s:O, s:o, s:o, s:o}", "model", key, "messages", chat->messages, "text",
                     pith_cli_json_text(chat->text.data ? chat->text.data : "", bytes), "ids",
                     pith_cli_json_ids(chat->ids, n), "marks", mark_list(chat));
}

pith_status pith_chat_write_json(const json_t *json, const char *path, pith_error *error) {
    char *text = json ? json_dumps(json, JSON_INDENT(1)) : NULL;
    if (pith_cli_json_failed() || !text) {
        pith_free(text);
        return pith_fail_memory(error, "the conversation", 0);
    }
    pith_output *output = NULL;
    pith_status status = pith_output_open(path, &output, error);
    if (status == PITH_OK) status = pith_output_write(output, text, strlen(text), error);
    if (status == PITH_OK) status = pith_output_write(output, "\n", 1, error);
    if (status == PITH_OK) status = pith_output_commit(output, error);
    pith_output_close(output);
    pith_free(text);
    return status;
}

/* Of a kept file's bytes; 0: there is none that can be read. */
static uint64_t hash_of_file(const char *path) {
    pith_buffer text = {0};
    uint64_t hash = 0;
    if (pith_cli_try_read(path) == 0 && !pith_cli_is_device(path) &&
        pith_cli_read_file(path, CONVERSATION_LIMIT, &text, NULL))
        hash = pith_hash(text.data, text.size, 0);
    pith_buffer_deinit(&text);
    return hash;
}

/* Whoever kept something under the name since then keeps it: nothing is overwritten unseen. */
pith_status pith_chat_session_save(pith_chat *chat, const char *name, pith_error *error) {
    pith_buffer path = {0};
    pith_status status = pith_chat_session_path(name, true, &path, error);
    uint64_t there = status == PITH_OK ? hash_of_file(path.data) : 0;
    if (there && there != chat->kept)
        status = pith_fail(error, PITH_ERROR_ARGUMENT,
                           "'%s' holds another conversation, or another pith went on with it: it "
                           "is not overwritten. /fork NAME keeps this one under a name of its own",
                           name);
    if (status == PITH_OK) {
        json_t *json = conversation(chat);
        status = pith_chat_write_json(json, path.data, error);
        json_decref(json);
        if (status == PITH_OK) chat->kept = hash_of_file(path.data);
    }
    pith_buffer_deinit(&path);
    return status;
}

/* ---- Reading ---- */

bool pith_chat_is_conversation(const json_t *json) {
    if (!json_is_array(json)) return false;
    for (size_t i = 0; i < json_array_size(json); i++) {
        const json_t *message = json_array_get(json, i);
        if (!json_is_string(json_object_get(message, "role")) ||
            !json_is_string(json_object_get(message, "content")))
            return false;
    }
    return true;
}

static bool read_ids(pith_chat *chat, const json_t *list) {
    size_t n = json_array_size(list);
    int32_t n_vocab = pith_model_describe(chat->model).n_vocab;
    if (!json_is_array(list) || n > chat->capacity) return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= n_vocab)
            return false;
        chat->ids[i] = (int32_t)json_integer_value(id);
    }
    chat->n_ids = n;
    return true;
}

/* Each after the one before, within text, ids and messages. */
static bool read_marks(pith_chat *chat, const json_t *list) {
    pith_chat_mark last = {0};
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > chat->capacity + 2) return false;
    for (size_t i = 0; i < n; i++) {
        json_int_t bytes = -1, n_ids = -1, n_messages = -1;
        if (json_unpack(json_array_get(list, i), "[I, I, I!]", &bytes, &n_ids, &n_messages) != 0)
            return false;
        if (bytes < 0 || n_ids < 0 || n_messages < 0) return false;
        pith_chat_mark m = {(size_t)bytes, (size_t)n_ids, (size_t)n_messages};
        if (m.bytes < last.bytes || m.n_ids < last.n_ids || m.n_messages < last.n_messages ||
            m.bytes > chat->text.size || m.n_ids > chat->n_ids ||
            m.n_messages > json_array_size(chat->messages))
            return false;
        chat->marks[i] = last = m;
    }
    chat->n_marks = n;
    return true;
}

/* The ids of the conversation as they were made, where they are those of this model. */
static void take_ids(pith_chat *chat, const json_t *json) {
    char key[20];
    const char *model = json_string_value(json_object_get(json, "model"));
    const json_t *text = json_object_get(json, "text");
    snprintf(key, sizeof key, "%016" PRIx64, pith_model_describe(chat->model).content_key);
    chat->n_marks = chat->n_ids = 0;
    pith_buffer_reset(&chat->text);
    if (!model || strcmp(model, key) != 0 || !json_is_string(text)) return;
    pith_buffer_append(&chat->text, json_string_value(text), json_string_length(text));
    if (!chat->text.failed && read_ids(chat, json_object_get(json, "ids")) &&
        read_marks(chat, json_object_get(json, "marks")))
        return;
    chat->n_marks = chat->n_ids = 0;
}

static pith_status take_conversation(pith_chat *chat, const pith_buffer *text, const char *name,
                                     pith_error *error) {
    json_error_t fault = {0};
    /* A reply may hold a zero byte, and then its text does. */
    json_t *json = json_loadb(text->data ? text->data : "", text->size, JSON_ALLOW_NUL, &fault);
    json_t *messages = json_object_get(json, "messages");
    pith_status status = PITH_OK;
    if (!json)
        status = pith_fail(error, PITH_ERROR_FORMAT,
                           "the kept conversation '%s' is broken in line %d: %s", name, fault.line,
                           fault.text);
    else if (!pith_chat_is_conversation(messages))
        status = pith_fail(error, PITH_ERROR_FORMAT,
                           "the kept conversation '%s' has no list of messages with texts \"role\" "
                           "and \"content\"",
                           name);
    else if (!pith_chat_load(chat, messages))
        status = pith_fail_memory(error, "the conversation", text->size);
    else
        take_ids(chat, json);
    json_decref(json);
    return status;
}

pith_status pith_chat_session_load(pith_chat *chat, const char *name, pith_error *error) {
    pith_buffer path = {0}, text = {0};
    pith_status status = pith_chat_session_path(name, false, &path, error);
    int code = status == PITH_OK ? pith_cli_try_read(path.data) : 0;
    if (status == PITH_OK && code == ENOENT)
        status = pith_fail(error, PITH_ERROR_NOT_FOUND, "there is no conversation '%s'", name);
    else if (status == PITH_OK && (code || pith_cli_is_device(path.data)))
        status = pith_fail(error, PITH_ERROR_IO, "%s could not be opened: %s", path.data,
                           code ? strerror(code) : "it is no file");
    else if (status == PITH_OK && !pith_cli_read_file(path.data, CONVERSATION_LIMIT, &text, error))
        status = error->status;
    if (status == PITH_OK) status = take_conversation(chat, &text, name, error);
    if (status == PITH_OK) chat->kept = pith_hash(text.data, text.size, 0);
    pith_buffer_deinit(&text);
    pith_buffer_deinit(&path);
    return status;
}

/* ---- Listing ---- */

/* Of a file that could be resumed; others that lie there may have names that steer a terminal. */
static bool print_name(void *user, const char *name) {
    char known[NAME_LIMIT + 1];
    size_t size = strlen(name), n = size > 5 ? size - 5 : 0;
    (void)user;
    if (n == 0 || n > NAME_LIMIT || strcmp(name + n, ".json") != 0) return true;
    memcpy(known, name, n);
    known[n] = '\0';
    if (is_name(known)) printf("%s\n", known);
    return true;
}

int pith_chat_session_list(void) {
    pith_buffer folder = {0};
    if (!chats_folder(&folder)) return pith_cli_fail_text("there is no folder for conversations");
    int code = pith_cli_each_name(folder.data, print_name, NULL);
    if (code && code != ENOENT)
        code = pith_cli_fail_text("%s could not be read: %s", folder.data, strerror(code));
    else
        code = pith_cli_finish();
    pith_buffer_deinit(&folder);
    return code;
}
