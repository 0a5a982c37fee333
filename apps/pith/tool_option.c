/* SPDX-License-Identifier: Apache-2.0
 * `--tools FILE`, `--tool-choice auto|required|none|NAME`, `--parallel-tools`: which tools a reply
 * may call, and the reply taken apart. One call by default: small models seldom stop by themselves.
 * The list is that of an OpenAI request; an object that holds one as "tools" is taken too. How
 * calls are written is the model's own form (pith.h, "Tools"). */
#include "base/memory.h"
#include "pith/reply_option.h"

#include <string.h>

enum { TOOLS_LIMIT = 1 << 20 };

void pith_cli_tool_options(pith_cli_tools *values, pith_cli_option out[PITH_CLI_TOOL_OPTIONS]) {
    const pith_cli_option options[PITH_CLI_TOOL_OPTIONS] = {
        {"tools", 0, PITH_CLI_TEXT, &values->file, "FILE",
         "tools the reply may call, as JSON of an OpenAI request", 0, 0},
        {"tool-choice", 0, PITH_CLI_TEXT, &values->choice, "C",
         "auto, required, none or a tool's name (default: auto)", 0, 0},
        {"parallel-tools", 0, PITH_CLI_FLAG, &values->parallel, "",
         "several calls in one reply (default: one)", 0, 0},
    };
    memcpy(out, options, sizeof options);
}

static void take_choice(pith_cli_tools *values) {
    static const char *const words[] = {"auto", "required", "none"};
    pith_tool_options *o = &values->options;
    o->choice = PITH_TOOLS_REQUIRED;
    o->only = values->choice;
    for (int i = 0; i < 3; i++) {
        if (values->choice && strcmp(values->choice, words[i]) != 0) continue;
        o->choice = (pith_tool_choice)i;
        o->only = NULL;
        return;
    }
}

int pith_cli_read_tools(const pith_cli_command *command, pith_cli_tools *values) {
    pith_buffer text = {0};
    pith_error error = {0};
    json_error_t reason;
    if (!values->file) {
        bool is_alone = values->choice || values->parallel;
        return is_alone ? pith_cli_usage(command, "%s needs --tools",
                                         values->choice ? "--tool-choice" : "--parallel-tools")
                        : -1;
    }
    values->options =
        (pith_tool_options){.size = sizeof values->options, .parallel = values->parallel};
    take_choice(values);
    if (!pith_cli_read_text(values->file, TOOLS_LIMIT, &text, &error)) {
        pith_buffer_deinit(&text);
        return pith_cli_fail_text("--tools: %s", error.text);
    }
    json_t *json = json_loadb(text.data ? text.data : "", text.size, JSON_ALLOW_NUL, &reason);
    pith_buffer_deinit(&text);
    if (!json)
        return pith_cli_fail_text("--tools: %s is no JSON: line %d, column %d: %s", values->file,
                                  reason.line, reason.column, reason.text);
    json_t *list = json_is_object(json) ? json_object_get(json, "tools") : json;
    values->list = json_incref(list);
    json_decref(json);
    if (json_is_array(values->list)) return -1;
    return pith_cli_fail_text("--tools: %s holds no list of tools, such as [{\"type\": "
                              "\"function\", \"function\": {\"name\": \"f\", \"parameters\": "
                              "{\"type\": \"object\"}}}]",
                              values->file);
}

/* Does the prompt end where a thought has begun? */
static bool ends_in_thought(const pith_prompt *prompt, const char *begin) {
    size_t size = 0, n = begin ? strlen(begin) : 0;
    const char *text = pith_prompt_text(prompt, &size);
    while (size > 0 && strchr(" \n", text[size - 1])) size--;
    return n > 0 && size >= n && memcmp(text + size - n, begin, n) == 0;
}

int pith_cli_open_tools(pith_cli_tools *values, const pith_model *model, const pith_prompt *prompt,
                        pith_grammar **grammar) {
    pith_error error = {0};
    if (!values->list) return -1;
    char *text = json_dumps(values->list, JSON_COMPACT);
    pith_status status = text ? pith_model_tool_format(model, &values->format, &error)
                              : pith_fail_memory(&error, "the tools", 0);
    if (status == PITH_OK) {
        values->options.format = &values->format;
        values->options.in_thought = ends_in_thought(prompt, values->format.thought_begin);
        status =
            pith_grammar_new_tools(model, text, strlen(text), &values->options, grammar, &error);
    }
    if (status == PITH_OK) {
        values->options.tools_json = text;
        values->options.tools_json_size = strlen(text);
        status = pith_message_new(model, &values->options, &values->message, &error);
    }
    values->options.tools_json = NULL; /* the text ends here */
    if (text) pith_cli_release_json(text);
    return status == PITH_OK ? -1 : pith_cli_fail(&error);
}

json_t *pith_cli_tool_calls(const pith_message *message) {
    json_t *list = json_array();
    pith_tool_call call;
    for (size_t i = 0; pith_message_call_at(message, i, &call); i++)
        json_array_append_new(list, json_pack("{s:s, s:{s:o, s:o}}", "type", "function", "function",
                                              "name", pith_cli_json_string(call.name), "arguments",
                                              pith_cli_json_string(call.arguments)));
    return list;
}

void pith_cli_print_calls(const pith_message *message) {
    json_t *list = pith_cli_tool_calls(message);
    size_t size = 0;
    const char *content = pith_message_content(message, &size);
    if (size > 0 && content[size - 1] != '\n') fputc('\n', stdout);
    for (size_t i = 0; i < json_array_size(list); i++) {
        char *line = json_dumps(json_object_get(json_array_get(list, i), "function"), 0);
        if (line) puts(line);
        if (line) pith_cli_release_json(line);
    }
    json_decref(list);
}

void pith_cli_close_tools(pith_cli_tools *values) {
    pith_message_free(values->message);
    json_decref(values->list);
}
