/* SPDX-License-Identifier: Apache-2.0
 * Messages and tools of OpenAI's API: checked by the path, then turned into what chat templates
 * read.
 * Invariant: text of a message stays a value of the template's context: whatever it spells, it
 * becomes plain tokens (pith_prompt). Parts that are no text are refused. */
#include "server/chat_context.h"
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
    return pith_fields_take(message, &text);
}

static void convert_content(pith_fields *in, json_t *out, bool may_lack) {
    json_t *content = pith_fields_any(in, "content");
    if (json_is_string(content)) {
        pith_fields_set(in, out, "content", json_incref(content));
    } else if (json_is_array(content)) {
        pith_fields_set(in, out, "content", join_parts(in, content));
    } else if (content) {
        pith_fields_wrong(in, "content", "invalid_type", "must be a string or an array of parts");
    } else if (may_lack) {
        pith_fields_set(in, out, "content", json_string(""));
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
    pith_chat_add_call(message, calls, id, name, pith_chat_arguments(arguments));
}

/* What clients send back as they got it. Only what says nothing is taken: the rest were lost. */
static void read_sent_back(pith_fields *in) {
    const char *refusal = "";
    json_t *notes = NULL;
    if (pith_fields_text(in, "refusal", &refusal) && refusal[0])
        pith_fields_wrong(in, "refusal", "unsupported",
                          "is not read by any template: send content");
    if (pith_fields_array(in, "annotations", &notes) && json_array_size(notes) > 0)
        pith_fields_wrong(in, "annotations", "unsupported", "must be empty");
}

static void convert_message(pith_fields *f, json_t *message, const char *path, json_t *list) {
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool", NULL};
    const char *role = "";
    json_t *calls = NULL, *out;
    pith_fields in;
    if (!pith_fields_enter(f, message, path, &in)) return;
    if (pith_fields_require(&in, "role")) pith_fields_choice(&in, "role", roles, &role);
    bool is_assistant = strcmp(role, "assistant") == 0;
    out = json_pack("{s:s}", "role", strcmp(role, "developer") == 0 ? "system" : role);
    if (is_assistant) pith_fields_array(&in, "tool_calls", &calls);
    convert_content(&in, out, calls != NULL);
    pith_chat_copy_text(&in, "name", "name", out);
    if (strcmp(role, "tool") == 0) pith_chat_copy_text(&in, "tool_call_id", "tool_call_id", out);
    if (is_assistant) pith_chat_copy_text(&in, "reasoning_content", "reasoning_content", out);
    if (is_assistant) read_sent_back(&in);
    pith_chat_convert_calls(&in, calls, convert_call, out);
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
    pith_fields_append(f, list, out);
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

json_t *pith_openai_read_tools(pith_fields *f) {
    json_t *tools = NULL, *tool;
    size_t i;
    if (!pith_fields_array(f, "tools", &tools)) return NULL;
    json_array_foreach(tools, i, tool) {
        check_tool(f, tool, i);
    }
    return tools;
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

void pith_openai_read_choice(pith_fields *f, json_t *tools, pith_job_request *request) {
    request->reads_calls = wants_tools(f, json_array_size(tools) > 0, request);
    if (request->reads_calls) request->tools = tools;
}

/* ---- The context of the template ---- */

/* A copy of what the template gets beside the messages, or NULL; the request's own keys are
 * refused. */
static json_t *read_kwargs(pith_fields *f) {
    static const char *const own[] = {"messages", "tools", "add_generation_prompt"};
    json_t *more = NULL, *copy;
    pith_fields in;
    if (!pith_fields_object(f, "chat_template_kwargs", &more)) return NULL;
    pith_fields_init(&in, more, "chat_template_kwargs");
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (json_object_get(more, own[i]))
            pith_fields_wrong(&in, own[i], "unsupported", "is the request's own: leave it out");
    if (!pith_fields_leave(f, &in)) return NULL;
    if (!(copy = json_copy(more))) pith_fields_short(f);
    return copy;
}

json_t *pith_openai_read_messages(pith_fields *f, pith_job_request *request) {
    json_t *messages = NULL, *list = NULL;
    bool parallel = true;
    if (pith_fields_require(f, "messages") && pith_fields_array(f, "messages", &messages))
        list = pith_openai_convert_messages(f, messages, "messages");
    json_t *tools = pith_openai_read_tools(f);
    pith_openai_read_choice(f, tools, request);
    pith_fields_flag(f, "parallel_tool_calls", &parallel);
    request->single_call = !parallel;
    json_t *more = read_kwargs(f);
    pith_chat_read_effort(f, "reasoning_effort", "reasoning_effort", &more, request);
    pith_openai_read_verbosity(f, &more);
    json_t *context = NULL;
    if (list && !f->failed)
        context = pith_chat_context(f, list, request->reads_calls ? tools : NULL, more);
    else
        json_decref(list);
    json_decref(more);
    return context;
}
