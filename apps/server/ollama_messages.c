/* SPDX-License-Identifier: Apache-2.0
 * Messages of Ollama's API: {role, content, thinking, images, tool_calls, tool_name}. Images are
 * refused: no model here sees. */
#include "server/ollama.h"

#include <stdio.h>
#include <string.h>

/* {"id", "type", "function": {"name", "description", "arguments": {...}, "index"}} */
static void convert_call(pith_fields *message, json_t *call, size_t at, json_t *calls) {
    char path[PITH_FIELDS_PATH];
    const char *name = "", *id = "";
    json_t *function = NULL, *arguments = NULL;
    pith_fields in, inner;
    snprintf(path, sizeof path, "%.50s.tool_calls[%zu]", message->path, at);
    if (!pith_fields_enter(message, call, path, &in)) return;
    pith_fields_text(&in, "id", &id);
    pith_fields_harmless(&in, "type");
    if (pith_fields_require(&in, "function") && pith_fields_object(&in, "function", &function)) {
        pith_fields_init(&inner, function, "");
        snprintf(inner.path, sizeof inner.path, "%.70s.function", path);
        if (pith_fields_require(&inner, "name")) pith_fields_text(&inner, "name", &name);
        pith_fields_object(&inner, "arguments", &arguments);
        pith_fields_harmless(&inner, "index");
        pith_fields_harmless(&inner, "description");
        pith_fields_close(&inner);
        pith_fields_leave(&in, &inner);
    }
    pith_fields_close(&in);
    if (pith_fields_leave(message, &in))
        pith_chat_add_call(message, calls, id, name,
                           arguments ? json_incref(arguments) : json_object());
}

static void convert_message(pith_fields *f, json_t *message, size_t at, json_t *list) {
    static const char *const roles[] = {"system", "user", "assistant", "tool", NULL};
    char path[PITH_FIELDS_PATH];
    const char *role = "", *content = "";
    json_t *calls = NULL, *images = NULL;
    pith_fields in;
    snprintf(path, sizeof path, "messages[%zu]", at);
    if (!pith_fields_enter(f, message, path, &in)) return;
    if (pith_fields_require(&in, "role")) pith_fields_choice(&in, "role", roles, &role);
    pith_fields_array(&in, "tool_calls", &calls);
    if (!pith_fields_text(&in, "content", &content) && !calls) pith_fields_require(&in, "content");
    if (pith_fields_array(&in, "images", &images) && json_array_size(images) > 0)
        pith_fields_wrong(&in, "images", "unsupported", "are not supported: no model here sees");
    json_t *out = json_pack("{s:s, s:s}", "role", role, "content", content);
    pith_chat_copy_text(&in, "thinking", "reasoning_content", out);
    pith_chat_copy_text(&in, "tool_name", "name", out);
    pith_chat_copy_text(&in, "tool_call_id", "tool_call_id", out);
    pith_chat_convert_calls(&in, calls, convert_call, out);
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
    pith_fields_append(f, list, out);
}

json_t *pith_ollama_convert_messages(pith_fields *f, json_t *messages) {
    json_t *list = json_array(), *message;
    size_t i;
    json_array_foreach(messages, i, message) {
        if (!f->failed) convert_message(f, message, i, list);
    }
    if (!f->failed) return list;
    json_decref(list);
    return NULL;
}
