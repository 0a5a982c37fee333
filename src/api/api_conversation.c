/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Conversations that outgrow the context". */
#include "api/api_argument.h"
#include "api/api_text.h"
#include "base/memory.h"
#include "engine/engine.h"

struct pith_conversation {
    pith_buffer json; /* NUL-terminated, the NUL not counted */
    pith_conversation_info info;
};

static pith_status check_options(const pith_session *session,
                                 const pith_conversation_options *options, pith_error *error) {
    if (options->max_tokens < 0)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "max_tokens %d is negative",
                         options->max_tokens);
    if (options->n_keep < 0)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "n_keep %d is negative", options->n_keep);
    if (options->draft > PITH_DRAFT_NGRAM)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "draft %d is no source of guesses",
                         (int)options->draft);
    if (options->template_text || session->engine->model->chat_template) return PITH_OK;
    return pith_fail(error, PITH_ERROR_NOT_FOUND,
                     "the model has no chat template: give one, or shorten the text yourself");
}

/* An object whose messages are objects, one at least. */
static pith_status check_context(const json_t *context, pith_error *error) {
    const json_t *messages = json_object_get(context, "messages");
    if (!json_is_object(context))
        return pith_fail(error, PITH_ERROR_ARGUMENT, "context_json is not an object");
    if (json_array_size(messages) == 0)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "context_json has no messages");
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (!json_is_object(json_array_get(messages, i)))
            return pith_fail(error, PITH_ERROR_ARGUMENT,
                             "context_json: messages[%zu] is not an object", i);
    return PITH_OK;
}

static int append_json(const char *text, size_t size, void *user) {
    pith_buffer_append(user, text, size);
    return 0;
}

static pith_status write_json(pith_conversation *conversation, const json_t *context,
                              pith_error *error) {
    pith_buffer *json = &conversation->json;
    int failed = json_dump_callback(context, append_json, json, JSON_COMPACT);
    pith_buffer_append(json, "", 1);
    if (failed || json->failed) return pith_fail_memory(error, "the conversation", json->size);
    json->size--;
    return PITH_OK;
}

pith_status pith_conversation_fit(pith_session *session, const char *context_json,
                                  const pith_conversation_options *options, pith_conversation **out,
                                  pith_error *error) {
    pith_conversation_options full;
    json_t *context = NULL;
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    if (!session) return pith_fail_null(error, "session");
    if (!context_json) return pith_fail_null(error, "context_json");
    pith_status status =
        pith_copy_options(&full, sizeof full, options, "pith_conversation_options", error);
    if (status == PITH_OK) status = pith_check_vocabulary(session->engine->model, error);
    if (status == PITH_OK) status = check_options(session, &full, error);
    if (status != PITH_OK) return status;
    if (session->reply)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the session is making a reply: free that first");
    pith_conversation *made = pith_alloc_zero(1, sizeof *made);
    if (!made) return pith_fail_memory(error, "a conversation", sizeof *made);
    status = pith_json_parse(pith_span_of(context_json), &context, error);
    if (status == PITH_OK) status = check_context(context, error);
    if (status == PITH_OK)
        status = pith_conversation_shorten(session, context, &full, &made->info, error);
    if (status == PITH_OK) status = write_json(made, context, error);
    json_decref(context);
    if (status == PITH_OK)
        *out = made;
    else
        pith_conversation_free(made);
    return status;
}

void pith_conversation_free(pith_conversation *conversation) {
    if (!conversation) return;
    pith_buffer_deinit(&conversation->json);
    pith_free(conversation);
}

const char *pith_conversation_json(const pith_conversation *conversation, size_t *size) {
    if (size) *size = conversation ? conversation->json.size : 0;
    return conversation ? conversation->json.data : "";
}

pith_conversation_info pith_conversation_describe(const pith_conversation *conversation) {
    return conversation ? conversation->info : (pith_conversation_info){0};
}
