/* SPDX-License-Identifier: Apache-2.0
 * The conversation of `pith chat`, never read twice.
 *
 * Invariant: `ids` stand for `text`, and at each mark both can be cut. The next prompt keeps the
 * ids up to the last mark within what its text shares with `text` and tokenizes only the rest:
 * so a template that trims a reply costs the trimmed tokens, /undo costs the last exchange, and a
 * reply that was stopped goes on behind its last whole token. (A template that rewrites old turns
 * costs what follows the first change.) A mark holds only while the messages before it are the
 * same, since the same text may be the template's or the user's.
 *
 * Does not print but for the reply's text. Read next: src/engine/reply.c. */
#include "base/memory.h"
#include "pith/chat_parts.h"

#include <string.h>

bool pith_chat_init(pith_chat *chat, const pith_model *model, pith_session *session, size_t n_ctx,
                    pith_error *error) {
    *chat = (pith_chat){
        .model = model, .session = session, .capacity = n_ctx, .messages = json_array()};
    chat->ids = pith_alloc_array(n_ctx, sizeof *chat->ids);
    chat->marks = pith_alloc_array(n_ctx + 2, sizeof *chat->marks);
    if (chat->ids && chat->marks && chat->messages) return true;
    pith_fail_memory(error, "the conversation", n_ctx * (sizeof *chat->ids + sizeof *chat->marks));
    return false;
}

void pith_chat_deinit(pith_chat *chat) {
    json_decref(chat->messages);
    json_decref(chat->logprobs);
    pith_buffer_deinit(&chat->text);
    pith_free(chat->ids);
    pith_free(chat->marks);
    *chat = (pith_chat){0};
}

pith_span pith_chat_last_text(const pith_chat *chat) {
    if (chat->reply_size == 0) return (pith_span){"", 0};
    return (pith_span){chat->text.data + chat->reply_from, chat->reply_size};
}

size_t pith_chat_n_tokens(const pith_chat *chat) {
    return chat->n_marks ? chat->marks[chat->n_marks - 1].n_ids : 0;
}

/* ---- Messages ---- */

/* Keeps the first n messages and the marks that hold with them. */
static void keep_messages(pith_chat *chat, size_t n) {
    while (json_array_size(chat->messages) > n)
        json_array_remove(chat->messages, json_array_size(chat->messages) - 1);
    while (chat->n_marks && chat->marks[chat->n_marks - 1].n_messages > n) chat->n_marks--;
}

bool pith_chat_clear(pith_chat *chat, const char *system) {
    keep_messages(chat, 0);
    return !system || !system[0] ||
           pith_cli_add_message(chat->messages, "system", pith_span_of(system));
}

bool pith_chat_load(pith_chat *chat, json_t *messages) {
    keep_messages(chat, 0);
    return json_array_extend(chat->messages, messages) == 0;
}

/* "" where there is no such message. */
static const char *role_of(const pith_chat *chat, size_t from_end) {
    size_t n = json_array_size(chat->messages);
    if (from_end >= n) return "";
    const char *role = json_string_value(
        json_object_get(json_array_get(chat->messages, n - 1 - from_end), "role"));
    return role ? role : "";
}

/* ---- Ids ---- */

static void add_mark(pith_chat *chat) {
    if (chat->n_marks == chat->capacity + 2) return;
    chat->marks[chat->n_marks++] =
        (pith_chat_mark){chat->text.size, chat->n_ids, json_array_size(chat->messages)};
}

static size_t common_bytes(const char *a, size_t a_size, const char *b, size_t b_size) {
    size_t n = 0, most = a_size < b_size ? a_size : b_size;
    while (n < most && a[n] == b[n]) n++;
    return n;
}

const char *pith_chat_overflow_hint(const pith_chat *chat) {
    bool is_error = chat->overflow == PITH_CHAT_OVERFLOW_ERROR;
    return is_error ? ", --overflow summarise makes room" : "";
}

/* The last mark within the text that both share; the start when there is none. Drops later ones. */
static pith_chat_mark last_common_mark(pith_chat *chat, const char *text, size_t size) {
    size_t same = common_bytes(chat->text.data, chat->text.size, text, size);
    while (chat->n_marks && chat->marks[chat->n_marks - 1].bytes > same) chat->n_marks--;
    return chat->n_marks ? chat->marks[chat->n_marks - 1] : (pith_chat_mark){0};
}

/* Brings ids and text up to the prompt. */
static pith_status take_prompt(pith_chat *chat, const pith_prompt *prompt, pith_error *error) {
    size_t size = 0, n = 0;
    const char *text = pith_prompt_text(prompt, &size);
    pith_chat_mark from = last_common_mark(chat, text, size);
    pith_status status =
        pith_prompt_tokenize_from(chat->model, prompt, from.bytes, chat->ids + from.n_ids,
                                  chat->capacity - from.n_ids, &n, error);
    pith_buffer_reset(&chat->text);
    pith_buffer_append(&chat->text, text, size);
    if (chat->text.failed) {
        chat->n_marks = 0;
        pith_buffer_deinit(&chat->text);
        return pith_fail_memory(error, "the conversation", size);
    }
    if (status == PITH_ERROR_LIMIT)
        return pith_fail(error, status,
                         "the conversation needs %zu tokens and the context holds %zu; /clear "
                         "starts anew, --ctx makes it longer%s",
                         from.n_ids + n, chat->capacity, pith_chat_overflow_hint(chat));
    if (status != PITH_OK) return status;
    chat->n_ids = from.n_ids + n;
    add_mark(chat);
    return PITH_OK;
}

/* ---- Replies ---- */

/* Whether text may be cut behind this token: it completed a character and began no other. */
static bool ends_character(const pith_chat *chat, int32_t id, size_t told) {
    size_t size = 0;
    const char *bytes = pith_token_text(chat->model, id, &size);
    return told > 0 && bytes && pith_utf8_incomplete(bytes, size) == 0;
}

/* Keeps each id with the place of its text. */
static int on_text(void *user, int32_t id, const char *text, size_t size) {
    pith_chat *chat = user;
    pith_cli_progress_end(&chat->progress);
    pith_buffer_append(&chat->text, text, size);
    if (id >= 0 && chat->n_ids < chat->capacity) {
        chat->ids[chat->n_ids++] = id;
        if (ends_character(chat, id, size)) add_mark(chat);
    }
    if (chat->quiet) return 0;
    return fwrite(text, 1, size, stdout) != size || fflush(stdout) != 0;
}

static void on_logprobs(void *user, int32_t id, double logprob, const pith_logprob *top,
                        size_t n_top) {
    pith_chat *chat = user;
    pith_cli_add_logprobs(chat->logprobs, chat->model, (pith_logprob){id, logprob}, top, n_top);
}

/* The end token stands for what the template writes behind a reply, if it writes that. */
static void add_end_token(pith_chat *chat) {
    int32_t last = chat->ids[chat->n_ids - 1];
    const char *piece = pith_token_piece(chat->model, last);
    if (!piece || !pith_token_is_end(chat->model, last)) return;
    chat->n_ids--;
    add_mark(chat); /* the whole reply, without it */
    chat->n_ids++;
    pith_buffer_append_text(&chat->text, piece);
    add_mark(chat);
}

static pith_status generate(pith_chat *chat, pith_error *error) {
    size_t shared = pith_cli_shared_ids(chat->model, chat->messages, chat->ids, chat->n_ids);
    chat->progress = pith_cli_progress_start("reading the conversation");
    pith_generate_options options = {.size = sizeof options,
                                     .max_tokens = chat->max_tokens,
                                     .on_text = on_text,
                                     .user = chat,
                                     .on_prompt = pith_cli_progress_step,
                                     .prompt_user = &chat->progress,
                                     .draft = chat->draft->mode,
                                     .draft_session = chat->draft->session,
                                     .grammar = chat->grammar,
                                     .cache_at = &shared,
                                     .n_cache_at = shared > 0 ? 1 : 0,
                                     .banned = chat->banned->items,
                                     .n_banned = chat->banned->n};
    if (chat->n_logprobs >= 0) {
        options.on_logprobs = on_logprobs;
        options.logprobs_user = chat;
        options.n_logprobs = chat->n_logprobs;
        chat->logprobs = json_array();
    }
    size_t n_prompt = chat->n_ids;
    chat->reply_from = chat->text.size;
    pith_cli_interrupt_watch(chat->session);
    pith_status status = pith_generate(chat->session, chat->sampler, chat->ids, n_prompt, &options,
                                       &chat->last, error);
    pith_cli_interrupt_watch(NULL);
    pith_cli_progress_end(&chat->progress);
    if (status == PITH_OK && chat->last.n_predicted == 0)
        status = chat->last.stop == PITH_STOP_CANCELLED
                     ? pith_fail(error, PITH_ERROR_CANCELLED, "stopped before the first token")
                     : pith_fail(error, PITH_ERROR_LIMIT,
                                 "the conversation fills the context of %zu tokens; /clear starts "
                                 "anew, --ctx makes it longer%s",
                                 chat->capacity, pith_chat_overflow_hint(chat));
    if (status == PITH_OK && chat->text.failed)
        status = pith_fail_memory(error, "the reply", chat->text.size);
    if (status == PITH_OK) {
        chat->reply_size = chat->text.size - chat->reply_from;
        add_end_token(chat);
    }
    return status;
}

/* Older messages give way, where that is wanted and the reply needs it. No mark holds then. */
static pith_status make_room(pith_chat *chat, pith_error *error) {
    chat->shorter = (pith_conversation_info){0};
    if (chat->overflow == PITH_CHAT_OVERFLOW_ERROR) return PITH_OK;
    pith_cli_talk talk = {chat->session, chat->messages, NULL};
    pith_conversation_options options = {.size = sizeof options,
                                         .max_tokens = chat->max_tokens,
                                         .n_keep = chat->n_keep,
                                         .drop = chat->overflow == PITH_CHAT_OVERFLOW_SHIFT,
                                         .draft = chat->draft->mode,
                                         .draft_session = chat->draft->session};
    pith_status status = pith_cli_shorten(&talk, &options, &chat->shorter, error);
    if (chat->shorter.n_dropped > 0) chat->n_marks = 0;
    return status;
}

/* Reply to the messages as they stand. */
static pith_status reply(pith_chat *chat, pith_error *error) {
    chat->last = (pith_generation){0};
    chat->reply_size = 0;
    json_decref(chat->logprobs);
    chat->logprobs = NULL;
    if (make_room(chat, error) != PITH_OK) return error->status;
    pith_prompt *prompt = pith_cli_render_chat(chat->model, chat->messages, error);
    if (!prompt) return error->status;
    pith_status status = take_prompt(chat, prompt, error);
    pith_prompt_free(prompt);
    if (status == PITH_OK) status = generate(chat, error);
    if (status != PITH_OK) return status;
    bool added = pith_cli_add_message(chat->messages, "assistant", pith_chat_last_text(chat));
    return added ? PITH_OK : pith_fail_memory(error, "the reply", chat->text.size);
}

pith_status pith_chat_say(pith_chat *chat, const char *text, pith_error *error) {
    if (!pith_cli_add_message(chat->messages, "user", pith_span_of(text)))
        return pith_fail_memory(error, "the message", strlen(text));
    pith_status status = reply(chat, error);
    if (status != PITH_OK) keep_messages(chat, json_array_size(chat->messages) - 1);
    return status;
}

pith_status pith_chat_retry(pith_chat *chat, pith_error *error) {
    size_t n = json_array_size(chat->messages);
    if (strcmp(role_of(chat, 0), "assistant") != 0)
        return pith_fail(error, PITH_ERROR_NOT_FOUND, "there is no reply to make again");
    json_t *old = json_incref(json_array_get(chat->messages, n - 1));
    keep_messages(chat, n - 1);
    pith_status status = reply(chat, error);
    if (status != PITH_OK) json_array_append(chat->messages, old);
    json_decref(old);
    return status;
}

char *pith_chat_undo(pith_chat *chat) {
    size_t n = json_array_size(chat->messages);
    if (strcmp(role_of(chat, 0), "assistant") == 0) n--;
    if (n == 0 || strcmp(role_of(chat, json_array_size(chat->messages) - n), "user") != 0)
        return NULL;
    json_t *content = json_object_get(json_array_get(chat->messages, n - 1), "content");
    char *text = pith_copy_text(json_string_value(content), json_string_length(content));
    if (text) keep_messages(chat, n - 1);
    return text;
}
