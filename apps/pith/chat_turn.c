/* SPDX-License-Identifier: Apache-2.0
 * The conversation of `pith chat`. Invariant: while ids_match, `ids` are exactly the ids of prompt
 * + reply, and the session holds (a prefix of)
 * them; the next prompt must begin with that text to be continued, else it is tokenized whole (a
 * template may rewrite old turns; then the
 * session keeps what is common). */
#include "base/memory.h"
#include "pith/chat.h"

#include <string.h>

bool pith_chat_init(pith_chat *chat, const pith_model *model, pith_session *session, size_t n_ctx,
                    pith_error *error) {
    *chat = (pith_chat){
        .model = model, .session = session, .capacity = n_ctx, .messages = json_array()};
    chat->ids = pith_alloc_array(n_ctx, sizeof *chat->ids);
    if (chat->ids && chat->messages) return true;
    pith_fail_memory(error, "the conversation", n_ctx * sizeof *chat->ids);
    return false;
}

void pith_chat_deinit(pith_chat *chat) {
    json_decref(chat->messages);
    pith_buffer_deinit(&chat->prompt);
    pith_buffer_deinit(&chat->reply);
    pith_free(chat->ids);
    *chat = (pith_chat){0};
}

static void add_message(pith_chat *chat, const char *role, const char *text, size_t size) {
    json_array_append_new(chat->messages, json_pack("{s:s, s:o}", "role", role, "content",
                                                    pith_cli_json_text(text, size)));
}

static void drop_last_message(pith_chat *chat) {
    size_t n = json_array_size(chat->messages);
    if (n) json_array_remove(chat->messages, n - 1);
}

void pith_chat_clear(pith_chat *chat, const char *system) {
    json_array_clear(chat->messages);
    if (system && system[0]) add_message(chat, "system", system, strlen(system));
    chat->n_ids = 0;
    chat->ids_match = false;
}

static pith_prompt *render(const pith_chat *chat, pith_error *error) {
    json_t *context =
        json_pack("{s:O, s:b}", "messages", chat->messages, "add_generation_prompt", 1);
    char *json = context ? json_dumps(context, JSON_COMPACT) : NULL;
    json_decref(context);
    pith_prompt *prompt = NULL;
    if (!json)
        pith_fail_memory(error, "the conversation", 0);
    else
        pith_prompt_render(chat->model, NULL, json, &prompt, error);
    json_free_t release;
    json_get_alloc_funcs(NULL, &release);
    if (json) release(json);
    return prompt;
}

/* Where in the new prompt's text the ids that we hold end; 0 when they cannot be continued. */
static size_t held_bytes(const pith_chat *chat, const char *text, size_t size) {
    size_t before = chat->prompt.size, reply = chat->reply.size;
    if (!chat->ids_match || before + reply > size || memcmp(text, chat->prompt.data, before) != 0)
        return 0;
    if (reply && memcmp(text + before, chat->reply.data, reply) != 0) return 0;
    size_t at = before + reply;
    int32_t last = chat->n_ids ? chat->ids[chat->n_ids - 1] : -1;
    if (last < 0 || !pith_token_is_end(chat->model, last)) return at;
    const char *piece = pith_token_piece(chat->model, last);
    size_t n = piece ? strlen(piece) : 0;
    return n <= size - at && memcmp(text + at, piece, n) == 0 ? at + n : 0;
}

/* Brings ids up to the prompt; false with a message when it does not fit into the context. */
static bool take_prompt(pith_chat *chat, const pith_prompt *prompt, pith_error *error) {
    size_t size = 0, n = 0;
    const char *text = pith_prompt_text(prompt, &size);
    size_t from = held_bytes(chat, text, size);
    size_t kept = from ? chat->n_ids : 0;
    pith_status status = pith_prompt_tokenize_from(chat->model, prompt, from, chat->ids + kept,
                                                   chat->capacity - kept, &n, error);
    if (status == PITH_ERROR_LIMIT)
        pith_fail(error, status,
                  "the conversation needs %zu tokens and the context holds %zu; /clear starts "
                  "anew, --ctx makes it longer",
                  kept + n, chat->capacity);
    chat->ids_match = false;
    if (status != PITH_OK) return false;
    chat->n_ids = kept + n;
    pith_buffer_reset(&chat->prompt);
    pith_buffer_append(&chat->prompt, text, size);
    return !chat->prompt.failed;
}

static int on_text(void *user, int32_t id, const char *text, size_t size) {
    pith_chat *chat = user;
    (void)id;
    pith_buffer_append(&chat->reply, text, size);
    return fwrite(text, 1, size, stdout) != size || fflush(stdout) != 0;
}

static pith_status generate(pith_chat *chat, pith_error *error) {
    pith_cli_progress progress = pith_cli_progress_start("reading", false);
    pith_generate_options options = {.size = sizeof options,
                                     .max_tokens = chat->max_tokens,
                                     .on_text = on_text,
                                     .user = chat,
                                     .on_prompt = pith_cli_progress_step,
                                     .prompt_user = &progress};
    pith_buffer_reset(&chat->reply);
    pith_cli_interrupt_watch(chat->session);
    pith_status status = pith_generate(chat->session, chat->sampler, chat->ids, chat->n_ids,
                                       &options, &chat->last, error);
    pith_cli_interrupt_watch(NULL);
    pith_cli_progress_end(&progress);
    if (status != PITH_OK) return status;
    size_t length = pith_session_length(chat->session);
    memcpy(chat->ids, pith_session_ids(chat->session), length * sizeof *chat->ids);
    chat->n_ids = length;
    chat->ids_match = !chat->reply.failed;
    return PITH_OK;
}

/* Reply to the messages as they stand. */
static pith_status reply(pith_chat *chat, pith_error *error) {
    pith_prompt *prompt = render(chat, error);
    if (!prompt) return error->status;
    bool ok = take_prompt(chat, prompt, error);
    pith_prompt_free(prompt);
    pith_status status = ok ? generate(chat, error) : error->status;
    if (status == PITH_OK)
        add_message(chat, "assistant", chat->reply.data ? chat->reply.data : "", chat->reply.size);
    return status;
}

pith_status pith_chat_say(pith_chat *chat, const char *text, pith_error *error) {
    add_message(chat, "user", text, strlen(text));
    pith_status status = reply(chat, error);
    if (status != PITH_OK) drop_last_message(chat);
    return status;
}

static const char *role_of(const pith_chat *chat, size_t from_end) {
    size_t n = json_array_size(chat->messages);
    if (from_end >= n) return "";
    const char *role = json_string_value(
        json_object_get(json_array_get(chat->messages, n - 1 - from_end), "role"));
    return role ? role : "";
}

pith_status pith_chat_retry(pith_chat *chat, pith_error *error) {
    if (strcmp(role_of(chat, 0), "assistant") != 0)
        return pith_fail(error, PITH_ERROR_NOT_FOUND, "there is no reply to make again");
    json_t *old = json_incref(json_array_get(chat->messages, json_array_size(chat->messages) - 1));
    drop_last_message(chat);
    chat->ids_match = false;
    pith_status status = reply(chat, error);
    if (status != PITH_OK) json_array_append(chat->messages, old);
    json_decref(old);
    return status;
}

char *pith_chat_undo(pith_chat *chat) {
    if (strcmp(role_of(chat, 0), "assistant") == 0) drop_last_message(chat);
    if (strcmp(role_of(chat, 0), "user") != 0) return NULL;
    json_t *content = json_object_get(
        json_array_get(chat->messages, json_array_size(chat->messages) - 1), "content");
    char *text = pith_copy_text(json_string_value(content), json_string_length(content));
    drop_last_message(chat);
    chat->ids_match = false;
    return text;
}
