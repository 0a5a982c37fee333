/* SPDX-License-Identifier: Apache-2.0
 * What chat templates read. Invariant: a client's text stays a value, never a part of the template.
 */
#include "server/chat_context.h"

#include <string.h>

json_t *pith_chat_context(pith_fields *f, json_t *messages, json_t *tools, const json_t *more) {
    json_t *context = more ? json_deep_copy(more) : json_object();
    bool ok = pith_fields_set(f, context, "messages", messages);
    ok = pith_fields_set(f, context, "add_generation_prompt", json_true()) && ok;
    if (tools) ok = pith_fields_set(f, context, "tools", json_incref(tools)) && ok;
    if (ok) return context;
    json_decref(context);
    return NULL;
}

void pith_chat_add_tool(pith_fields *f, json_t *tools, const pith_chat_tool *tool) {
    json_t *function = json_pack("{s:s}", "name", tool->name);
    if (tool->description)
        pith_fields_set(f, function, "description", json_string(tool->description));
    if (tool->parameters) pith_fields_set(f, function, "parameters", json_incref(tool->parameters));
    if (tool->strict) pith_fields_set(f, function, "strict", json_true());
    pith_fields_append(f, tools, json_pack("{s:s, s:o}", "type", "function", "function", function));
}

void pith_chat_add_call(pith_fields *f, json_t *calls, const char *id, const char *name,
                        json_t *arguments) {
    pith_fields_append(f, calls,
                       json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id, "type", "function",
                                 "function", "name", name, "arguments", arguments));
}

json_t *pith_chat_arguments(const char *text) {
    enum { AROUND = 8 }; /* levels of the context that they become a part of */
    size_t n_values = 0, depth = pith_json_depth(text, strlen(text), &n_values);
    json_t *object = NULL;
    if (depth <= PITH_JSON_MAX_DEPTH - AROUND && n_values <= PITH_JSON_MAX_VALUES)
        object = json_loads(text, 0, NULL);
    if (json_is_object(object)) return object;
    json_decref(object);
    return json_string(text);
}

void pith_chat_copy_text(pith_fields *f, const char *key, const char *as, json_t *out) {
    const char *text = NULL;
    if (pith_fields_text(f, key, &text)) pith_fields_set(f, out, as, json_string(text));
}

void pith_chat_convert_calls(pith_fields *message, json_t *calls, pith_chat_convert_call *convert,
                             json_t *out) {
    json_t *converted, *call;
    size_t i;
    if (!calls) return;
    converted = json_array();
    json_array_foreach(calls, i, call) {
        convert(message, call, i, converted);
    }
    pith_fields_set(message, out, "tool_calls", converted);
}

void pith_chat_read_effort(pith_fields *f, const char *key, const char *path, json_t **more,
                           pith_job_request *job) {
    static const char *const efforts[] = {"none", "minimal", "low", "medium",
                                          "high", "xhigh",   "max", NULL};
    const char *effort = NULL;
    if (!pith_fields_choice(f, key, efforts, &effort)) return;
    bool wanted = effort != NULL && strcmp(effort, "none") != 0 && strcmp(effort, "minimal") != 0;
    job->thinking = wanted ? PITH_THINKING_WANTED : PITH_THINKING_UNWANTED;
    job->thinking_path = path;
    if (!*more && !(*more = json_object())) pith_fields_short(f);
    pith_fields_set(f, *more, "enable_thinking", json_boolean(wanted));
    pith_fields_set(f, *more, "reasoning_effort", json_string(effort));
}
