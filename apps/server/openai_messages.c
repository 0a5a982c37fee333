/* SPDX-License-Identifier: Apache-2.0
 * Messages and tools of OpenAI's API: checked by the path, then turned into what chat templates
 * read.
 * Invariant: text of a message stays a value of the template's context: whatever it spells, it
 * becomes plain tokens (pith_prompt). Parts that are no text are refused. */
#include "server/openai.h"

#include <stdio.h>
#include <string.h>

/* The text of content that is a list of parts; NULL with the fields' error. */
static json_t *join_parts(pith_fields *message, json_t *parts) {
    pith_buffer text = {0};
    json_t *part;
    size_t i;
    json_array_foreach(parts, i, part) {
        char path[PITH_FIELDS_PATH];
        const char *type = "", *value = "";
        pith_fields in;
        snprintf(path, sizeof path, "%.60s.content[%zu]", message->path, i);
        if (!pith_fields_enter(message, part, path, &in)) break;
        if (pith_fields_require(&in, "type")) pith_fields_text(&in, "type", &type);
        if (type[0] && strcmp(type, "text") != 0)
            pith_fields_wrong(&in, "type", "unsupported", "must be text: '%.40s' is not supported",
                              type);
        else if (pith_fields_require(&in, "text"))
            pith_fields_text(&in, "text", &value);
        pith_fields_harmless(&in, "cache_control");
        pith_fields_close(&in);
        if (!pith_fields_leave(message, &in)) break;
        pith_buffer_append_text(&text, value);
    }
    json_t *joined = message->failed ? NULL : json_stringn(text.data ? text.data : "", text.size);
    pith_buffer_deinit(&text);
    return joined;
}

static void convert_content(pith_fields *in, json_t *out, bool may_lack) {
    json_t *content = pith_fields_any(in, "content"), *joined;
    if (json_is_string(content)) {
        json_object_set(out, "content", content);
    } else if (json_is_array(content)) {
        if ((joined = join_parts(in, content))) json_object_set_new(out, "content", joined);
    } else if (content) {
        pith_fields_wrong(in, "content", "invalid_type", "must be a string or an array of parts");
    } else if (may_lack) {
        json_object_set_new(out, "content", json_string(""));
    } else {
        pith_fields_wrong(in, "content", "missing", "is required");
    }
}

/* {"id", "type", "function": {"name", "arguments"}}: templates read arguments as an object. */
static void convert_call(pith_fields *message, json_t *call, size_t at, json_t *calls) {
    char path[PITH_FIELDS_PATH];
    const char *id = "", *type = "function", *name = "", *arguments = "{}";
    json_t *function = NULL;
    pith_fields in, inner;
    snprintf(path, sizeof path, "%.50s.tool_calls[%zu]", message->path, at);
    if (!pith_fields_enter(message, call, path, &in)) return;
    pith_fields_text(&in, "id", &id);
    pith_fields_text(&in, "type", &type);
    pith_fields_harmless(&in, "index");
    if (strcmp(type, "function") != 0)
        pith_fields_wrong(&in, "type", "unsupported", "must be function");
    if (pith_fields_require(&in, "function") && pith_fields_object(&in, "function", &function)) {
        pith_fields_init(&inner, function, "");
        snprintf(inner.path, sizeof inner.path, "%.70s.function", path);
        if (pith_fields_require(&inner, "name")) pith_fields_text(&inner, "name", &name);
        pith_fields_text(&inner, "arguments", &arguments);
        pith_fields_close(&inner);
        pith_fields_leave(&in, &inner);
    }
    pith_fields_close(&in);
    if (!pith_fields_leave(message, &in)) return;
    json_t *object = json_loads(arguments, 0, NULL);
    if (!json_is_object(object)) {
        json_decref(object);
        object = json_string(arguments);
    }
    json_array_append_new(calls, json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id, "type", "function",
                                           "function", "name", name, "arguments", object));
}

static void copy_text(pith_fields *in, const char *key, json_t *out) {
    const char *text = NULL;
    if (pith_fields_text(in, key, &text)) json_object_set_new(out, key, json_string(text));
}

static bool is_role(const char *role) {
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (strcmp(role, roles[i]) == 0) return true;
    return false;
}

static void convert_message(pith_fields *f, json_t *message, const char *path, json_t *list) {
    const char *role = "";
    json_t *calls = NULL, *call, *out;
    size_t i;
    pith_fields in;
    if (!pith_fields_enter(f, message, path, &in)) return;
    if (pith_fields_require(&in, "role")) pith_fields_text(&in, "role", &role);
    if (role[0] && !is_role(role))
        pith_fields_wrong(&in, "role", "invalid_value",
                          "must be system, developer, user, assistant or tool, not '%.40s'", role);
    bool is_assistant = strcmp(role, "assistant") == 0;
    out = json_pack("{s:s}", "role", strcmp(role, "developer") == 0 ? "system" : role);
    if (is_assistant) pith_fields_array(&in, "tool_calls", &calls);
    convert_content(&in, out, calls != NULL);
    copy_text(&in, "name", out);
    if (strcmp(role, "tool") == 0) copy_text(&in, "tool_call_id", out);
    if (is_assistant) copy_text(&in, "reasoning_content", out);
    if (is_assistant) /* clients send back what they got */
        for (const char *const *key =
                 (const char *const[]){"refusal", "annotations", "audio", "function_call", NULL};
             *key; key++)
            if (json_is_null(json_object_get(message, *key)) ||
                json_array_size(json_object_get(message, *key)) == 0)
                if (!json_is_object(json_object_get(message, *key)) &&
                    !json_is_string(json_object_get(message, *key)))
                    pith_fields_harmless(&in, *key);
    json_t *converted = calls ? json_array() : NULL;
    json_array_foreach(calls, i, call) {
        convert_call(&in, call, i, converted);
    }
    if (converted) json_object_set_new(out, "tool_calls", converted);
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
    json_array_append_new(list, out);
}

json_t *pith_openai_convert_messages(pith_fields *f, json_t *messages, const char *path) {
    json_t *list = json_array(), *message;
    size_t i;
    if (json_array_size(messages) == 0)
        pith_fields_wrong(f, path, "invalid_value", "must hold at least one message");
    json_array_foreach(messages, i, message) {
        char at[PITH_FIELDS_PATH];
        snprintf(at, sizeof at, "%.40s[%zu]", path, i);
        if (!f->failed) convert_message(f, message, at, list);
    }
    if (!f->failed) return list;
    json_decref(list);
    return NULL;
}

/* ---- Tools ---- */

static void check_tool(pith_fields *f, json_t *tool, size_t at) {
    char path[PITH_FIELDS_PATH];
    const char *type = "", *name = "", *description = NULL;
    json_t *function = NULL, *parameters = NULL;
    bool strict = false;
    pith_fields in, inner;
    snprintf(path, sizeof path, "tools[%zu]", at);
    if (!pith_fields_enter(f, tool, path, &in)) return;
    if (pith_fields_require(&in, "type")) pith_fields_text(&in, "type", &type);
    if (type[0] && strcmp(type, "function") != 0)
        pith_fields_wrong(&in, "type", "unsupported", "must be function, not '%.40s'", type);
    if (pith_fields_require(&in, "function") && pith_fields_object(&in, "function", &function)) {
        snprintf(path, sizeof path, "tools[%zu].function", at);
        pith_fields_init(&inner, function, path);
        if (pith_fields_require(&inner, "name")) pith_fields_text(&inner, "name", &name);
        pith_fields_text(&inner, "description", &description);
        pith_fields_object(&inner, "parameters", &parameters);
        pith_fields_flag(&inner, "strict", &strict); /* enforced: job.c */
        pith_fields_close(&inner);
        pith_fields_leave(&in, &inner);
    }
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
}

/* {"type": "function", "function": {"name"}} */
static void read_named_choice(pith_fields *f, json_t *choice, pith_job_request *request) {
    const char *type = "";
    json_t *function = NULL;
    pith_fields in, inner;
    pith_fields_init(&in, choice, "tool_choice");
    if (pith_fields_require(&in, "type")) pith_fields_text(&in, "type", &type);
    if (strcmp(type, "function") != 0)
        pith_fields_wrong(&in, "type", "unsupported", "must be function");
    if (pith_fields_require(&in, "function") && pith_fields_object(&in, "function", &function)) {
        pith_fields_init(&inner, function, "tool_choice.function");
        if (pith_fields_require(&inner, "name"))
            pith_fields_text(&inner, "name", &request->only_tool);
        pith_fields_close(&inner);
        pith_fields_leave(&in, &inner);
    }
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
    request->tool_choice = PITH_TOOLS_REQUIRED;
}

static bool wants_tools(pith_fields *f, bool has_tools, pith_job_request *request) {
    json_t *choice = pith_fields_any(f, "tool_choice");
    const char *text = json_string_value(choice);
    if (!choice) return has_tools;
    if (!has_tools && !(text && strcmp(text, "none") == 0))
        return pith_fields_wrong(f, "tool_choice", "invalid_value", "needs tools");
    if (json_is_object(choice))
        read_named_choice(f, choice, request);
    else if (text && strcmp(text, "required") == 0)
        request->tool_choice = PITH_TOOLS_REQUIRED;
    else if (!text || (strcmp(text, "none") != 0 && strcmp(text, "auto") != 0))
        pith_fields_wrong(f, "tool_choice", "unsupported",
                          "must be none, auto, required or name a function");
    return !text || strcmp(text, "none") != 0;
}

/* ---- The context of the template ---- */

json_t *pith_openai_read_messages(pith_fields *f, pith_job_request *request) {
    json_t *messages = NULL, *list = NULL, *tools = NULL, *tool, *more = NULL;
    bool parallel = true;
    size_t i;
    if (pith_fields_require(f, "messages") && pith_fields_array(f, "messages", &messages))
        list = pith_openai_convert_messages(f, messages, "messages");
    if (pith_fields_array(f, "tools", &tools)) {
        json_array_foreach(tools, i, tool) {
            check_tool(f, tool, i);
        }
    }
    request->reads_calls = wants_tools(f, json_array_size(tools) > 0, request);
    if (request->reads_calls) request->tools = tools;
    pith_fields_flag(f, "parallel_tool_calls", &parallel);
    request->single_call = !parallel;
    pith_fields_object(f, "chat_template_kwargs", &more);
    if (!list || f->failed) {
        json_decref(list);
        return NULL;
    }
    json_t *context = more ? json_deep_copy(more) : json_object();
    json_object_set_new(context, "messages", list);
    json_object_set_new(context, "add_generation_prompt", json_true());
    if (request->reads_calls) json_object_set(context, "tools", tools);
    return context;
}

void pith_openai_read_harmless(pith_fields *f) {
    static const char *const names[] = {"user", "metadata", "safety_identifier",
                                        "prompt_cache_key"};
    bool store = false, is_private;
    pith_route_wish wish;
    const char *tier = "auto";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) pith_fields_harmless(f, names[i]);
    pith_routing_read_field(f, &wish, &is_private); /* heeded before: routing.c */
    if (pith_fields_flag(f, "store", &store) && store)
        pith_fields_wrong(f, "store", "unsupported", "true is not supported: nothing is kept");
    if (pith_fields_text(f, "service_tier", &tier) && strcmp(tier, "auto") != 0 &&
        strcmp(tier, "default") != 0)
        pith_fields_wrong(f, "service_tier", "unsupported", "must be auto or default");
}

const char *pith_openai_finish(pith_job_finish finish) {
    static const char *const names[] = {"stop", "length", "tool_calls"};
    return names[finish];
}

void pith_openai_end_failed(pith_exchange *exchange, bool has_begun, const pith_error *error) {
    pith_http_error what = pith_http_error_of(error);
    if (!has_begun) {
        pith_exchange_fail(exchange, &what);
        return;
    }
    pith_exchange_stream_event(exchange, NULL, pith_exchange_error_body(exchange, &what));
    pith_exchange_stream_end(exchange);
}
