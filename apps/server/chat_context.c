/* SPDX-License-Identifier: Apache-2.0
 * What chat templates read. Invariant: a client's text stays a value, never a part of the template.
 */
#include "server/chat_context.h"

#include <string.h>

json_t *pith_chat_context(json_t *messages, json_t *tools, const json_t *more) {
    json_t *context = more ? json_deep_copy(more) : json_object();
    json_object_set_new(context, "messages", messages);
    json_object_set_new(context, "add_generation_prompt", json_true());
    if (tools) json_object_set(context, "tools", tools);
    return context;
}

void pith_chat_add_tool(json_t *tools, const char *name, const char *description,
                        json_t *parameters, bool strict) {
    json_t *function = json_pack("{s:s}", "name", name);
    if (description) json_object_set_new(function, "description", json_string(description));
    if (parameters) json_object_set(function, "parameters", parameters);
    if (strict) json_object_set_new(function, "strict", json_true());
    json_array_append_new(tools, json_pack("{s:s, s:o}", "type", "function", "function", function));
}

void pith_chat_add_call(json_t *calls, const char *id, const char *name, json_t *arguments) {
    json_array_append_new(calls, json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id, "type", "function",
                                           "function", "name", name, "arguments", arguments));
}

json_t *pith_chat_arguments(const char *text) {
    json_t *object = json_loads(text, 0, NULL);
    if (json_is_object(object)) return object;
    json_decref(object);
    return json_string(text);
}

void pith_chat_add_text(json_t *messages, const char *role, const pith_buffer *text) {
    if (text->size == 0) return;
    json_array_append_new(messages, json_pack("{s:s, s:o}", "role", role, "content",
                                              json_stringn(text->data, text->size)));
}
