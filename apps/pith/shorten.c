/* SPDX-License-Identifier: Apache-2.0
 * Conversations of the program that outgrow the context: shown, interrupted, and told. */
#include "pith/shorten.h"

#include "pith/cli.h"

#include <stdio.h>

/* Without memory the messages are as they were. */
static bool replace(json_t *messages, const char *json, size_t size) {
    json_t *context = json_loadb(json, size, JSON_ALLOW_NUL, NULL);
    json_t *list = json_object_get(context, "messages");
    size_t n = json_array_size(messages);
    bool ok = list && json_array_extend(messages, list) == 0;
    json_decref(context);
    for (; ok && n > 0; n--) json_array_remove(messages, 0);
    return ok;
}

pith_status pith_cli_shorten(const pith_cli_talk *talk, const pith_conversation_options *options,
                             pith_conversation_info *out, pith_error *error) {
    pith_conversation *shorter = NULL;
    pith_conversation_options shown = *options;
    size_t size = 0;
    *out = (pith_conversation_info){0};
    char *json = pith_cli_context_json(talk->messages, talk->tools, error);
    if (!json) return error->status;
    pith_cli_progress progress = pith_cli_progress_start("reading what is summarised");
    shown.on_prompt = pith_cli_progress_step;
    shown.user = &progress;
    pith_cli_interrupt_watch(talk->session);
    pith_status status = pith_conversation_fit(talk->session, json, &shown, &shorter, error);
    pith_cli_interrupt_watch(NULL);
    pith_cli_progress_end(&progress);
    pith_cli_release_json(json);
    if (status != PITH_OK) return status;
    pith_conversation_info info = pith_conversation_describe(shorter);
    const char *made = pith_conversation_json(shorter, &size);
    if (info.n_dropped > 0 && !replace(talk->messages, made, size))
        status = pith_fail_memory(error, "the conversation", size);
    if (status == PITH_OK) *out = info;
    pith_conversation_free(shorter);
    return status;
}

void pith_cli_shorten_describe(const pith_conversation_info *info, char *text, size_t capacity) {
    text[0] = 0;
    if (info->n_dropped == 0) return;
    if (info->n_summary == 0)
        snprintf(text, capacity, "%zu older messages were left out, %zu tokens", info->n_messages,
                 info->n_dropped);
    else if (info->n_messages == 0)
        snprintf(text, capacity,
                 "%zu tokens at the start of the message were replaced by a summary of %zu",
                 info->n_dropped, info->n_summary);
    else
        snprintf(text, capacity,
                 "%zu older messages, %zu tokens, were replaced by a summary of %zu tokens",
                 info->n_messages, info->n_dropped, info->n_summary);
}
