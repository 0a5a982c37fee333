/* SPDX-License-Identifier: Apache-2.0
 *
 * Tools -> the grammar of a reply that may call them.
 *
 *   auto       [thought] text [calls]      text: anything without the marker that begins calls
 *   required   [thought] calls
 *   none       [thought] text
 *
 *   calls      begin call (between call)* end
 *   call       open {"name": "f", "arguments": {...}} close      keys as the format has them
 *         or   open f middle {...} close                         formats without an object round it
 *
 * How models write calls is one table; a model's format is known by its chat template (whoever
 * calls decides). Markers are matched as text: a vocabulary in which they are control tokens must
 * give those tokens their text. Arguments obey the tool's own schema, whose # is its own root.
 * Read next: schema_part.h, json_schema.h.
 */
#include "base/memory.h"
#include "sample/schema_part.h"

#include <stdio.h>
#include <string.h>

typedef struct tool_format {
    const char *name;
    const char *marker; /* begins calls, and never occurs in text; "": calls begin with { */
    const char *begin, *open, *close, *between, *end;
    const char *arguments; /* key of the arguments; NULL: the name stands before them */
    const char *middle;    /* then what stands between the two */
    bool single;           /* never more than one call */
} tool_format;

static const tool_format formats[] = {
    {.name = "hermes", /* Hermes 2 and 3, Qwen 2.5 and 3, SmolLM3, Granite 4 */
     .marker = "<tool_call>",
     .begin = "",
     .open = "<tool_call>\n",
     .close = "\n</tool_call>",
     .between = "\n",
     .end = "",
     .arguments = "arguments"},
    {.name = "llama3", /* Llama 3.x with JSON calls */
     .marker = "",
     .begin = "",
     .open = "",
     .close = "",
     .between = "",
     .end = "",
     .arguments = "parameters",
     .single = true},
    {.name = "mistral", /* v3: Nemo, 7B v0.3 */
     .marker = "[TOOL_CALLS]",
     .begin = "[TOOL_CALLS][",
     .open = "",
     .close = "",
     .between = ", ",
     .end = "]",
     .arguments = "arguments"},
    {.name = "granite3",
     .marker = "<|tool_call|>",
     .begin = "<|tool_call|>[",
     .open = "",
     .close = "",
     .between = ", ",
     .end = "]",
     .arguments = "arguments"},
    {.name = "phi4-mini",
     .marker = "<|tool_call|>",
     .begin = "",
     .open = "<|tool_call|>",
     .close = "<|/tool_call|>",
     .between = "",
     .end = "",
     .arguments = "arguments"},
    {.name = "deepseek3",
     .marker = "<｜tool▁calls▁begin｜>",
     .begin = "<｜tool▁calls▁begin｜>",
     .open = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
     .middle = "\n```json\n",
     .close = "\n```<｜tool▁call▁end｜>",
     .between = "\n",
     .end = "<｜tool▁calls▁end｜>"},
    {.name = "deepseek3.1",
     .marker = "<｜tool▁calls▁begin｜>",
     .begin = "<｜tool▁calls▁begin｜>",
     .open = "<｜tool▁call▁begin｜>",
     .middle = "<｜tool▁sep｜>",
     .close = "<｜tool▁call▁end｜>",
     .between = "",
     .end = "<｜tool▁calls▁end｜>"},
};

enum { N_FORMATS = sizeof formats / sizeof *formats, NAME_BYTES = 64, MAX_TOOLS = 4096 };

const char *pith_tool_format_name(size_t index) {
    return index < N_FORMATS ? formats[index].name : NULL;
}

static const tool_format *find_format(const char *name) {
    for (size_t i = 0; name != NULL && i < N_FORMATS; i++) {
        if (strcmp(name, formats[i].name) == 0) return &formats[i];
    }
    return NULL;
}

/* ---- one tool ---- */

typedef struct tool_writer {
    pith_json_text text;
    const tool_format *format;
    const pith_tool_rules *rules;
    pith_grammar_node *calls; /* [n_calls] one of each tool that may be called */
    size_t n_calls;
    bool found; /* rules->only is among them */
    pith_error *error;
    pith_status status;
} tool_writer;

static bool fail(tool_writer *w, pith_status status, size_t index, const char *what) {
    if (w->status == PITH_OK)
        w->status = pith_fail(w->error, status, "tools[%zu]: %s", index, what);
    return false;
}

static pith_grammar_node write_arguments(tool_writer *w, json_t *parameters, const char *name) {
    char place[NAME_BYTES + 8];
    pith_error reason = {0};
    if (parameters == NULL || json_is_null(parameters)) return pith_json_write(&w->text, "{}");
    (void)snprintf(place, sizeof place, "tool %.*s, ", NAME_BYTES, name);
    pith_grammar_node node =
        pith_schema_part(&w->text, json_incref(parameters), true, place, &reason);
    if (reason.status != PITH_OK && w->status == PITH_OK) {
        w->status = pith_fail(w->error, reason.status, "%s", reason.text);
    }
    return node;
}

/* {"name": "f", "arguments": {...}} or f middle {...}, between open and close. */
static pith_grammar_node write_call(tool_writer *w, const char *name, pith_grammar_node arguments) {
    pith_json_text *text = &w->text;
    const tool_format *f = w->format;
    pith_grammar_node parts[12];
    size_t n = 0;
    parts[n++] = pith_json_write(text, f->open);
    if (f->arguments == NULL) {
        parts[n++] = pith_json_write(text, name);
        parts[n++] = pith_json_write(text, f->middle);
        parts[n++] = arguments;
    } else {
        parts[n++] = pith_json_write(text, "{\"name\"");
        parts[n++] = text->colon;
        parts[n++] = pith_json_write_string(text, name, strlen(name));
        parts[n++] = text->comma;
        parts[n++] = pith_json_write_string(text, f->arguments, strlen(f->arguments));
        parts[n++] = text->colon;
        parts[n++] = arguments;
        parts[n++] = pith_json_write(text, "}");
    }
    parts[n++] = pith_json_write(text, f->close);
    return pith_grammar_sequence(text->builder, parts, n);
}

static bool add_tool(tool_writer *w, const json_t *tool, size_t index) {
    const json_t *type = json_object_get(tool, "type");
    const json_t *function = json_object_get(tool, "function");
    if (!json_is_object(tool)) return fail(w, PITH_ERROR_FORMAT, index, "a tool is an object");
    if (type != NULL &&
        (!json_is_string(type) || strcmp(json_string_value(type), "function") != 0)) {
        return fail(w, PITH_ERROR_UNSUPPORTED, index, "only tools of type \"function\" are known");
    }
    if (function == NULL) function = tool;
    const json_t *name = json_object_get(function, "name");
    if (!json_is_string(name) || json_string_length(name) == 0) {
        return fail(w, PITH_ERROR_FORMAT, index, "a function needs a name");
    }
    const char *text = json_string_value(name);
    if (strlen(text) != json_string_length(name) || strpbrk(text, "\n<") != NULL) {
        return fail(w, PITH_ERROR_FORMAT, index, "the name has signs that a call cannot have");
    }
    if (w->rules->only != NULL && strcmp(text, w->rules->only) != 0) return true;
    w->found = true;
    pith_grammar_node arguments = write_arguments(w, json_object_get(function, "parameters"), text);
    w->calls[w->n_calls++] = write_call(w, text, arguments);
    return w->status == PITH_OK;
}

static bool add_tools(tool_writer *w, const json_t *tools) {
    size_t n = json_array_size(tools);
    if (!json_is_array(tools) || n == 0 || n > MAX_TOOLS) {
        w->status = pith_fail(w->error, PITH_ERROR_FORMAT,
                              "tools: a list of 1 to %d tools is needed", MAX_TOOLS);
        return false;
    }
    w->calls = pith_alloc_array(n, sizeof *w->calls);
    if (w->calls == NULL) {
        w->status = pith_fail_memory(w->error, "a list of tools", n);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!add_tool(w, json_array_get(tools, i), i)) return false;
    }
    if (w->found) return true;
    w->status = pith_fail(w->error, PITH_ERROR_NOT_FOUND, "no tool is called %.*s", NAME_BYTES,
                          w->rules->only);
    return false;
}

/* ---- the reply ---- */

static pith_grammar_node write_calls(tool_writer *w) {
    pith_json_text *text = &w->text;
    const tool_format *f = w->format;
    pith_grammar_node call = pith_grammar_choice(text->builder, w->calls, w->n_calls);
    pith_grammar_node more = pith_json_write_two(text, pith_json_write(text, f->between), call);
    uint32_t n_more = w->rules->parallel && !f->single ? PITH_TOOL_MAX_CALLS - 1 : 0;
    pith_grammar_node parts[4] = {pith_json_write(text, f->begin), call,
                                  pith_grammar_repeat(text->builder, more, 0, n_more),
                                  pith_json_write(text, f->end)};
    return pith_grammar_sequence(text->builder, parts, 4);
}

/* Text in which no call begins. Without a marker: what does not begin with a brace. */
static pith_grammar_node write_text(tool_writer *w) {
    pith_json_text *text = &w->text;
    static const pith_code_range not_first[] = {{'\t', '\r'}, {' ', ' '}, {'{', '{'}};
    if (w->format->marker[0] != 0) {
        return pith_grammar_until(text->builder, w->format->marker, strlen(w->format->marker));
    }
    pith_grammar_node first = pith_grammar_class(text->builder, not_first, 3, true);
    pith_grammar_node rest = pith_grammar_until(text->builder, "", 0);
    return pith_grammar_repeat(text->builder, pith_json_write_two(text, first, rest), 0, 1);
}

static pith_grammar_node write_reply(tool_writer *w) {
    pith_json_text *text = &w->text;
    pith_grammar_builder *builder = text->builder;
    pith_grammar_node reply;
    if (w->rules->choice == PITH_TOOLS_NONE) {
        reply = write_text(w);
    } else if (w->rules->choice == PITH_TOOLS_REQUIRED) {
        reply = write_calls(w);
    } else if (w->format->marker[0] != 0) {
        reply = pith_json_write_two(text, write_text(w),
                                    pith_grammar_repeat(builder, write_calls(w), 0, 1));
    } else {
        reply = pith_json_write_either(text, write_text(w), write_calls(w));
    }
    const char *end = w->rules->thought_end;
    if (end == NULL || end[0] == 0) return reply;
    pith_grammar_node line = pith_json_write(text, "\n");
    pith_grammar_node parts[4] = {pith_grammar_until(builder, end, strlen(end)),
                                  pith_json_write(text, end),
                                  pith_grammar_repeat(builder, line, 0, 2), reply};
    return pith_grammar_sequence(builder, parts, 4);
}

static pith_status build(tool_writer *w, const json_t *tools, pith_grammar **out) {
    pith_grammar_builder *builder;
    pith_status status = pith_grammar_builder_new(&builder, w->error);
    if (status != PITH_OK) return status;
    w->status = pith_json_text_init(&w->text, builder, w->error);
    if (w->status == PITH_OK && add_tools(w, tools)) {
        w->status = pith_grammar_build(builder, write_reply(w), out, w->error);
    }
    pith_json_text_deinit(&w->text);
    pith_grammar_builder_free(builder);
    pith_free(w->calls);
    return w->status;
}

pith_status pith_grammar_from_tools(const char *json, size_t size, const pith_tool_rules *rules,
                                    pith_grammar **out, pith_error *error) {
    json_t *tools;
    tool_writer w = {.format = find_format(rules->format), .rules = rules, .error = error};
    *out = NULL;
    if (w.format == NULL) {
        return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                         "tools: the format \"%.40s\" of calls is not known",
                         rules->format ? rules->format : "");
    }
    pith_status status = pith_schema_read((pith_span){json, size}, "tools", &tools, error);
    if (status != PITH_OK) return status;
    status = build(&w, tools, out);
    json_decref(tools);
    return status;
}
