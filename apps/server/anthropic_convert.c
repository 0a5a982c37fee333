/* SPDX-License-Identifier: Apache-2.0
 * Messages and tools of Anthropic's API: blocks of content, checked by their paths, then turned
 * into what chat templates read: tool_use becomes a call of the assistant's message, tool_result a
 * message of its own before the user's text, thinking the message's reasoning.
 * Invariant: text of a block stays a value of the template's context. */
#include "server/anthropic.h"

#include <stdio.h>
#include <string.h>

typedef struct conversion {
    pith_fields *fields;
    json_t *list;  /* messages so far */
    json_t *names; /* of tools by the id of their calls */
    json_t *calls; /* of the message at hand, or NULL */
    pith_buffer text, thinking;
    const char *role; /* of the message at hand, or the last one */
    bool is_assistant;
} conversion;

/* ---- Blocks ---- */

/* The text of a string or of text blocks at `path`, appended. */
static void read_text_blocks(pith_fields *f, const char *key, const char *path, pith_buffer *out) {
    json_t *content = pith_fields_any(f, key), *block;
    size_t i;
    if (json_is_string(content)) {
        pith_buffer_append(out, json_string_value(content), json_string_length(content));
        return;
    }
    if (content && !json_is_array(content))
        pith_fields_wrong(f, key, "invalid_type", "must be a string or an array of blocks");
    json_array_foreach(content, i, block) {
        char at[PITH_FIELDS_PATH];
        const char *type = "", *text = "";
        pith_fields in;
        snprintf(at, sizeof at, "%.70s[%zu]", path, i);
        if (!pith_fields_enter(f, block, at, &in)) return;
        if (pith_fields_require(&in, "type")) pith_fields_text(&in, "type", &type);
        if (type[0] && strcmp(type, "text") != 0)
            pith_fields_wrong(&in, "type", "unsupported", "must be text: '%.40s' is not supported",
                              type);
        else if (pith_fields_require(&in, "text"))
            pith_fields_text(&in, "text", &text);
        pith_fields_harmless(&in, "cache_control");
        pith_fields_harmless(&in, "citations");
        pith_fields_close(&in);
        if (!pith_fields_leave(f, &in)) return;
        if (out->size > 0 && i > 0) pith_buffer_append_text(out, "\n");
        pith_buffer_append_text(out, text);
    }
}

static void read_tool_use(conversion *c, pith_fields *in) {
    const char *id = "", *name = "";
    json_t *input = NULL;
    if (!c->is_assistant)
        pith_fields_wrong(in, "type", "invalid_value", "tool_use belongs to the assistant");
    if (pith_fields_require(in, "id")) pith_fields_text(in, "id", &id);
    if (pith_fields_require(in, "name")) pith_fields_text(in, "name", &name);
    if (pith_fields_require(in, "input")) pith_fields_object(in, "input", &input);
    pith_fields_harmless(in, "caller");
    if (in->failed) return;
    if (!c->calls) c->calls = json_array();
    pith_chat_add_call(in, c->calls, id, name, json_incref(input));
    pith_fields_set(in, c->names, id, json_string(name));
}

static void read_tool_result(conversion *c, pith_fields *in) {
    const char *id = "";
    bool is_error = false;
    char path[PITH_FIELDS_PATH];
    pith_buffer text = {0};
    if (strcmp(c->role, "user") != 0)
        pith_fields_wrong(in, "type", "invalid_value", "tool_result belongs to the user");
    if (pith_fields_require(in, "tool_use_id")) pith_fields_text(in, "tool_use_id", &id);
    pith_fields_flag(in, "is_error", &is_error);
    if (is_error) pith_buffer_append_text(&text, "Error: ");
    snprintf(path, sizeof path, "%.70s.content", in->path);
    read_text_blocks(in, "content", path, &text);
    json_t *message = json_pack("{s:s, s:s, s:o}", "role", "tool", "tool_call_id", id, "content",
                                pith_fields_take(in, &text));
    json_t *name = json_object_get(c->names, id);
    if (name) pith_fields_set(in, message, "name", json_incref(name));
    pith_fields_append(in, c->list, message);
}

static void read_plain(pith_fields *in, const char *key, pith_buffer *out) {
    const char *text = "";
    if (pith_fields_require(in, key)) pith_fields_text(in, key, &text);
    if (out->size > 0) pith_buffer_append_text(out, "\n");
    pith_buffer_append_text(out, text);
}

static void read_block(conversion *c, json_t *block, const char *path) {
    const char *type = "";
    pith_fields in;
    if (!pith_fields_enter(c->fields, block, path, &in)) return;
    if (pith_fields_require(&in, "type")) pith_fields_text(&in, "type", &type);
    pith_fields_harmless(&in, "cache_control");
    if (strcmp(type, "text") == 0) {
        read_plain(&in, "text", &c->text);
        pith_fields_harmless(&in, "citations");
    } else if (strcmp(type, "tool_use") == 0) {
        read_tool_use(c, &in);
    } else if (strcmp(type, "tool_result") == 0) {
        read_tool_result(c, &in);
    } else if (strcmp(type, "thinking") == 0 && c->is_assistant) {
        read_plain(&in, "thinking", &c->thinking);
        pith_fields_harmless(&in, "signature");
    } else if (type[0]) {
        pith_fields_wrong(&in, "type", "unsupported",
                          "must be text, tool_use, tool_result or an assistant's thinking: "
                          "'%.40s' is not supported",
                          type);
    }
    pith_fields_close(&in);
    pith_fields_leave(c->fields, &in);
}

/* ---- Messages ---- */

static void end_message(conversion *c) {
    pith_fields *f = c->fields;
    bool has_text = c->text.size > 0 || c->text.failed, has_thought = c->thinking.size > 0;
    json_t *message =
        json_pack("{s:s, s:o}", "role", c->role, "content", pith_fields_take(f, &c->text));
    if (c->thinking.failed) pith_fields_short(f);
    if (has_thought)
        pith_fields_set(f, message, "reasoning_content", pith_fields_take(f, &c->thinking));
    if (c->calls) pith_fields_set(f, message, "tool_calls", json_incref(c->calls));
    /* a user's message of results alone has been told */
    if (c->is_assistant || has_text)
        pith_fields_append(f, c->list, message);
    else
        json_decref(message);
    json_decref(c->calls);
    c->calls = NULL;
}

static void read_message(conversion *c, json_t *message, size_t at) {
    static const char *const roles[] = {"user", "assistant", "system", NULL};
    char path[PITH_FIELDS_PATH];
    json_t *block;
    size_t i;
    pith_fields in;
    snprintf(path, sizeof path, "messages[%zu]", at);
    if (!pith_fields_enter(c->fields, message, path, &in)) return;
    c->role = "user";
    if (pith_fields_require(&in, "role")) pith_fields_choice(&in, "role", roles, &c->role);
    c->is_assistant = strcmp(c->role, "assistant") == 0;
    if (pith_fields_require(&in, "content")) (void)pith_fields_any(&in, "content");
    json_t *content = json_object_get(message, "content");
    if (json_is_string(content))
        pith_buffer_append(&c->text, json_string_value(content), json_string_length(content));
    else if (!json_is_array(content))
        pith_fields_wrong(&in, "content", "invalid_type", "must be a string or an array of blocks");
    pith_fields_close(&in);
    if (!pith_fields_leave(c->fields, &in)) return;
    size_t n_before = json_array_size(c->list);
    json_array_foreach(json_is_array(content) ? content : NULL, i, block) {
        snprintf(path, sizeof path, "messages[%zu].content[%zu]", at, i);
        if (!c->fields->failed) read_block(c, block, path);
    }
    if (!c->fields->failed && !c->is_assistant && c->text.size == 0 &&
        json_array_size(c->list) == n_before)
        pith_fields_wrong(c->fields, "messages", "invalid_value", "must not be empty: message %zu",
                          at);
    end_message(c);
}

static void read_system(conversion *c) {
    pith_fields *f = c->fields;
    read_text_blocks(f, "system", "system", &c->text);
    bool has_text = c->text.size > 0 || c->text.failed;
    json_t *text = pith_fields_take(f, &c->text);
    if (has_text)
        pith_fields_append(f, c->list, json_pack("{s:s, s:o}", "role", "system", "content", text));
    else
        json_decref(text);
}

static void read_messages(conversion *c) {
    json_t *messages = NULL, *message;
    size_t i, n;
    read_system(c);
    if (!pith_fields_require(c->fields, "messages") ||
        !pith_fields_array(c->fields, "messages", &messages))
        return;
    n = json_array_size(messages);
    if (n == 0)
        pith_fields_wrong(c->fields, "messages", "invalid_value", "must hold at least one message");
    json_array_foreach(messages, i, message) {
        if (!c->fields->failed) read_message(c, message, i);
    }
    if (c->is_assistant)
        pith_fields_wrong(c->fields, "messages", "unsupported",
                          "must end with the user's: an answer that is begun cannot be gone on "
                          "with");
}

/* ---- Tools ---- */

static void read_tool(pith_fields *f, json_t *tool, size_t at, json_t *tools) {
    char path[PITH_FIELDS_PATH];
    const char *type = "custom", *name = "", *description = NULL;
    json_t *schema = NULL;
    bool strict = false, is_deferred = false;
    pith_fields in;
    snprintf(path, sizeof path, "tools[%zu]", at);
    if (!pith_fields_enter(f, tool, path, &in)) return;
    pith_fields_text(&in, "type", &type);
    if (strcmp(type, "custom") != 0)
        pith_fields_wrong(&in, "type", "unsupported",
                          "must be custom: '%.40s' would run at the server", type);
    if (pith_fields_require(&in, "name")) pith_fields_text(&in, "name", &name);
    pith_fields_text(&in, "description", &description);
    if (pith_fields_require(&in, "input_schema")) pith_fields_object(&in, "input_schema", &schema);
    pith_fields_flag(&in, "strict", &strict);
    pith_fields_harmless(&in, "cache_control");
    pith_fields_harmless(&in, "eager_input_streaming"); /* inputs come whole */
    if (pith_fields_flag(&in, "defer_loading", &is_deferred) && is_deferred)
        pith_fields_wrong(&in, "defer_loading", "unsupported", "true is not supported");
    pith_fields_close(&in);
    if (pith_fields_leave(f, &in))
        pith_chat_add_tool(
            f, tools,
            &(pith_chat_tool){
                .name = name, .description = description, .parameters = schema, .strict = strict});
}

/* {"type": auto | any | tool | none, "name", "disable_parallel_tool_use"}; false: no calls. */
static bool read_choice(pith_fields *f, bool has_tools, pith_job_request *job) {
    json_t *choice = NULL;
    const char *type = "auto";
    pith_fields in;
    if (!pith_fields_object(f, "tool_choice", &choice)) return has_tools;
    pith_fields_init(&in, choice, "tool_choice");
    if (pith_fields_require(&in, "type")) pith_fields_text(&in, "type", &type);
    bool is_tool = strcmp(type, "tool") == 0, is_none = strcmp(type, "none") == 0;
    if (is_tool && pith_fields_require(&in, "name")) pith_fields_text(&in, "name", &job->only_tool);
    if (is_tool || strcmp(type, "any") == 0)
        job->tool_choice = PITH_TOOLS_REQUIRED;
    else if (!is_none && strcmp(type, "auto") != 0)
        pith_fields_wrong(&in, "type", "invalid_value", "must be auto, any, tool or none");
    pith_fields_flag(&in, "disable_parallel_tool_use", &job->single_call);
    if (!has_tools && !is_none) pith_fields_wrong(&in, "type", "invalid_value", "needs tools");
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
    return !is_none;
}

/* A budget below max_tokens would have to be enforced, and is not. */
static void read_budget(pith_fields *f, pith_fields *in) {
    int64_t budget = 0;
    json_int_t most = json_integer_value(json_object_get(f->object, "max_tokens"));
    if (pith_fields_int(in, "budget_tokens", 1, 1 << 24, &budget) && budget < most)
        pith_fields_wrong(in, "budget_tokens", "unsupported",
                          "below max_tokens is not supported: thoughts have no limit of their own, "
                          "ask for thinking.type adaptive");
}

/* What the template is told goes to `more`. */
static void read_thinking(pith_fields *f, pith_job_request *job, json_t **more) {
    json_t *thinking = NULL;
    const char *type = "", *display = "summarized";
    pith_fields in;
    if (!pith_fields_object(f, "thinking", &thinking)) return;
    pith_fields_init(&in, thinking, "thinking");
    if (pith_fields_require(&in, "type")) pith_fields_text(&in, "type", &type);
    bool is_adaptive = strcmp(type, "adaptive") == 0;
    bool is_on = strcmp(type, "enabled") == 0 || is_adaptive;
    if (!is_on && strcmp(type, "disabled") != 0)
        pith_fields_wrong(&in, "type", "invalid_value", "must be enabled, adaptive or disabled");
    if (pith_fields_text(&in, "display", &display) && strcmp(display, "summarized") != 0)
        pith_fields_wrong(&in, "display", "unsupported", "must be summarized: thoughts are told");
    read_budget(f, &in);
    pith_fields_close(&in);
    pith_fields_leave(f, &in);
    job->thinking_path = "thinking";
    if (!is_adaptive) job->thinking = is_on ? PITH_THINKING_WANTED : PITH_THINKING_UNWANTED;
    if (!(*more = json_pack("{s:b}", "enable_thinking", (int)is_on))) pith_fields_short(f);
}

/* output_config.effort; its format is anthropic_messages.c's. high is the API's own. */
static void read_effort(pith_fields *f, pith_job_request *job, json_t **more) {
    json_t *config = NULL;
    pith_fields in;
    if (!pith_fields_object(f, "output_config", &config)) return;
    pith_fields_init(&in, config, "output_config");
    const char *effort = json_string_value(json_object_get(config, "effort"));
    if (effort && strcmp(effort, "high") == 0) return;
    pith_chat_read_effort(&in, "effort", "output_config.effort", more, job);
    pith_fields_leave(f, &in);
}

bool pith_anthropic_read_messages(pith_fields *f, pith_answer_request *out) {
    conversion c = {.fields = f, .list = json_array(), .names = json_object()};
    json_t *tools = NULL, *tool, *list = json_array(), *more = NULL;
    size_t i;
    read_messages(&c);
    pith_fields_array(f, "tools", &tools);
    json_array_foreach(tools, i, tool) {
        read_tool(f, tool, i, list);
    }
    read_thinking(f, &out->job, &more);
    read_effort(f, &out->job, &more);
    bool has_tools = json_array_size(list) > 0;
    out->job.reads_calls = read_choice(f, has_tools, &out->job) && has_tools;
    out->context = pith_chat_context(f, c.list, out->job.reads_calls ? list : NULL, more);
    out->job.context = out->context;
    out->job.tools = json_object_get(out->context, "tools"); /* the context's */
    json_decref(list);
    json_decref(more);
    json_decref(c.names);
    json_decref(c.calls);
    pith_buffer_deinit(&c.text);
    pith_buffer_deinit(&c.thinking);
    return !f->failed;
}
