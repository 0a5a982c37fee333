/* SPDX-License-Identifier: Apache-2.0
 * Input of /v1/responses: a text, or items, turned into what chat templates read. Reasoning, an
 * assistant's message and calls that follow one another are one message of the assistant; the
 * output of a call is one of the tool. Invariant: what an earlier answer held can be sent back as
 * it was. */
#include "server/responses.h"

#include <stdio.h>
#include <string.h>

typedef struct conversion {
    pith_fields *fields;
    json_t *list;    /* messages so far */
    json_t *current; /* the assistant's, not in the list yet; NULL: none */
    json_t *names;   /* of functions by call_id */
} conversion;

static void flush(conversion *c) {
    if (c->current) pith_fields_append(c->fields, c->list, c->current);
    c->current = NULL;
}

static json_t *assistant(conversion *c) {
    if (!c->current) c->current = json_pack("{s:s, s:s}", "role", "assistant", "content", "");
    if (!c->current) pith_fields_short(c->fields);
    return c->current;
}

/* The text of a string or of parts of the types in `types`, appended. */
static void read_parts(pith_fields *in, const char *key, const char *const *types,
                       pith_buffer *out) {
    json_t *content = pith_fields_any(in, key), *part;
    size_t i;
    if (json_is_string(content))
        pith_buffer_append(out, json_string_value(content), json_string_length(content));
    else if (content && !json_is_array(content))
        pith_fields_wrong(in, key, "invalid_type", "must be a string or an array of parts");
    json_array_foreach(json_is_array(content) ? content : NULL, i, part) {
        char path[PITH_FIELDS_PATH];
        const char *type = "", *text = "";
        pith_fields at;
        snprintf(path, sizeof path, "%.50s.%.10s[%zu]", in->path, key, i);
        if (!pith_fields_enter(in, part, path, &at)) return;
        if (pith_fields_require(&at, "type")) pith_fields_text(&at, "type", &type);
        size_t k = 0;
        while (types[k] && strcmp(types[k], type) != 0) k++;
        if (type[0] && !types[k])
            pith_fields_wrong(&at, "type", "unsupported", "must be text: '%.40s' is not supported",
                              type);
        else if (pith_fields_require(&at, "text"))
            pith_fields_text(&at, "text", &text);
        pith_fields_harmless(&at, "annotations");
        pith_fields_harmless(&at, "logprobs");
        pith_fields_close(&at);
        if (!pith_fields_leave(in, &at)) return;
        pith_buffer_append_text(out, text);
    }
}

static void read_message(conversion *c, pith_fields *in) {
    static const char *const types[] = {"input_text", "output_text", "text", NULL};
    static const char *const roles[] = {"user", "assistant", "system", "developer", NULL};
    const char *role = "";
    pith_buffer text = {0};
    if (pith_fields_require(in, "role")) pith_fields_choice(in, "role", roles, &role);
    if (pith_fields_require(in, "content")) read_parts(in, "content", types, &text);
    pith_fields_harmless(in, "phase");
    json_t *content = pith_fields_take(in, &text);
    bool is_taken = c->current && (json_object_get(c->current, "tool_calls") ||
                                   json_string_length(json_object_get(c->current, "content")) > 0);
    bool is_assistant = strcmp(role, "assistant") == 0;
    if (!is_assistant || is_taken) flush(c);
    if (is_assistant)
        pith_fields_set(in, assistant(c), "content", content);
    else
        pith_fields_append(in, c->list,
                           json_pack("{s:s, s:o}", "role",
                                     strcmp(role, "user") == 0 ? "user" : "system", "content",
                                     content));
}

static void read_call(conversion *c, pith_fields *in) {
    const char *id = "", *name = "", *arguments = "{}";
    if (pith_fields_require(in, "call_id")) pith_fields_text(in, "call_id", &id);
    if (pith_fields_require(in, "name")) pith_fields_text(in, "name", &name);
    pith_fields_text(in, "arguments", &arguments);
    json_t *calls = json_object_get(assistant(c), "tool_calls");
    if (!calls) {
        calls = json_array();
        pith_fields_set(in, c->current, "tool_calls", calls);
    }
    if (in->failed) return;
    pith_chat_add_call(in, calls, id, name, pith_chat_arguments(arguments));
    pith_fields_set(in, c->names, id, json_string(name));
}

static void read_output(conversion *c, pith_fields *in) {
    static const char *const types[] = {"input_text", "output_text", "text", NULL};
    const char *id = "";
    pith_buffer text = {0};
    if (pith_fields_require(in, "call_id")) pith_fields_text(in, "call_id", &id);
    if (pith_fields_require(in, "output")) read_parts(in, "output", types, &text);
    flush(c);
    json_t *message = json_pack("{s:s, s:s, s:o}", "role", "tool", "tool_call_id", id, "content",
                                pith_fields_take(in, &text));
    json_t *name = json_object_get(c->names, id);
    if (name) pith_fields_set(in, message, "name", json_incref(name));
    pith_fields_append(in, c->list, message);
}

static void read_reasoning(conversion *c, pith_fields *in) {
    static const char *const types[] = {"reasoning_text", "text", NULL};
    pith_buffer text = {0};
    read_parts(in, "content", types, &text);
    pith_fields_harmless(in, "summary");
    pith_fields_harmless(in, "encrypted_content");
    flush(c);
    bool has_text = text.size > 0 || text.failed;
    json_t *thought = pith_fields_take(in, &text);
    if (has_text)
        pith_fields_set(in, assistant(c), "reasoning_content", thought);
    else
        json_decref(thought);
}

static void read_item(conversion *c, json_t *item, size_t at) {
    char path[PITH_FIELDS_PATH];
    const char *type = "message";
    pith_fields in;
    snprintf(path, sizeof path, "input[%zu]", at);
    if (!pith_fields_enter(c->fields, item, path, &in)) return;
    pith_fields_text(&in, "type", &type);
    pith_fields_harmless(&in, "id");
    pith_fields_harmless(&in, "status");
    if (strcmp(type, "message") == 0)
        read_message(c, &in);
    else if (strcmp(type, "function_call") == 0)
        read_call(c, &in);
    else if (strcmp(type, "function_call_output") == 0)
        read_output(c, &in);
    else if (strcmp(type, "reasoning") == 0)
        read_reasoning(c, &in);
    else
        pith_fields_wrong(&in, "type", "unsupported",
                          "must be message, function_call, function_call_output or reasoning: "
                          "'%.40s' is not supported",
                          type);
    pith_fields_close(&in);
    pith_fields_leave(c->fields, &in);
}

json_t *pith_responses_read_input(pith_fields *f, const char *instructions) {
    conversion c = {.fields = f, .list = json_array(), .names = json_object()};
    json_t *input, *item;
    size_t i;
    if (instructions)
        pith_fields_append(f, c.list,
                           json_pack("{s:s, s:s}", "role", "system", "content", instructions));
    pith_fields_require(f, "input");
    input = pith_fields_any(f, "input");
    if (json_is_string(input))
        pith_fields_append(f, c.list, json_pack("{s:s, s:O}", "role", "user", "content", input));
    else if (input && (!json_is_array(input) || json_array_size(input) == 0))
        pith_fields_wrong(f, "input", "invalid_type", "must be a string or an array of items");
    json_array_foreach(json_is_array(input) ? input : NULL, i, item) {
        if (!f->failed) read_item(&c, item, i);
    }
    flush(&c);
    json_decref(c.names);
    return c.list;
}

/* ---- Tools ---- */

bool pith_responses_leaves_out(const json_t *tool) {
    static const char *const types[] = {"apply_patch",
                                        "code_interpreter",
                                        "computer_use_preview",
                                        "custom",
                                        "file_search",
                                        "image_generation",
                                        "local_shell",
                                        "mcp",
                                        "namespace",
                                        "shell",
                                        "tool_search"};
    const char *type = json_string_value(json_object_get(tool, "type"));
    if (!type) return false;
    if (strncmp(type, "web_search", strlen("web_search")) == 0) return true; /* versions of it */
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(type, types[i]) == 0) return true;
    return false;
}

static void read_tool(pith_fields *f, json_t *tool, size_t at, json_t *tools) {
    char path[PITH_FIELDS_PATH];
    const char *type = "", *name = "", *description = NULL;
    json_t *parameters = NULL;
    bool strict = false;
    pith_fields in;
    snprintf(path, sizeof path, "tools[%zu]", at);
    if (pith_responses_leaves_out(tool) || !pith_fields_enter(f, tool, path, &in)) return;
    if (pith_fields_require(&in, "type")) pith_fields_text(&in, "type", &type);
    if (type[0] && strcmp(type, "function") != 0)
        pith_fields_wrong(&in, "type", "unsupported", "must be function, not '%.40s'", type);
    if (pith_fields_require(&in, "name")) pith_fields_text(&in, "name", &name);
    pith_fields_text(&in, "description", &description);
    pith_fields_object(&in, "parameters", &parameters);
    pith_fields_flag(&in, "strict", &strict);
    pith_fields_close(&in);
    if (pith_fields_leave(f, &in))
        pith_chat_add_tool(f, tools,
                           &(pith_chat_tool){.name = name,
                                             .description = description,
                                             .parameters = parameters,
                                             .strict = strict});
}

/* none, auto, required or {"type": "function", "name"}; false: no calls. */
static bool read_choice(pith_fields *f, bool has_tools, pith_job_request *job) {
    json_t *choice = pith_fields_any(f, "tool_choice");
    const char *text = json_string_value(choice), *type = "";
    bool is_none = text && strcmp(text, "none") == 0, is_auto = text && strcmp(text, "auto") == 0;
    pith_fields in;
    if (!choice) return has_tools;
    if (json_is_object(choice)) {
        pith_fields_init(&in, choice, "tool_choice");
        if (pith_fields_require(&in, "type")) pith_fields_text(&in, "type", &type);
        if (strcmp(type, "function") != 0)
            pith_fields_wrong(&in, "type", "unsupported", "must be function");
        if (pith_fields_require(&in, "name")) pith_fields_text(&in, "name", &job->only_tool);
        pith_fields_close(&in);
        pith_fields_leave(f, &in);
        job->tool_choice = PITH_TOOLS_REQUIRED;
    } else if (text && strcmp(text, "required") == 0) {
        job->tool_choice = PITH_TOOLS_REQUIRED;
    } else if (!is_none && !is_auto) {
        pith_fields_wrong(f, "tool_choice", "unsupported",
                          "must be none, auto, required or name a function");
    }
    if (!has_tools && job->tool_choice == PITH_TOOLS_REQUIRED)
        pith_fields_wrong(f, "tool_choice", "invalid_value", "needs tools");
    return !is_none;
}

json_t *pith_responses_read_tools(pith_fields *f, pith_job_request *job) {
    json_t *tools = NULL, *tool, *list = json_array();
    bool parallel = true;
    size_t i;
    pith_fields_array(f, "tools", &tools);
    json_array_foreach(tools, i, tool) {
        read_tool(f, tool, i, list);
    }
    bool has_tools = json_array_size(list) > 0;
    if (!has_tools && json_array_size(tools) > 0)
        pith_fields_wrong(f, "tools[0].type", "unsupported",
                          "must be function: '%.40s' is not supported",
                          json_string_value(json_object_get(json_array_get(tools, 0), "type")));
    job->reads_calls = read_choice(f, has_tools, job) && has_tools;
    pith_fields_flag(f, "parallel_tool_calls", &parallel);
    job->single_call = !parallel;
    return list;
}
