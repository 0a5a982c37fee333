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
 * A thought that the prompt has begun goes on; else one may come. What of the format's strings is
 * one token of the vocabulary is written as that token, the only way in which models were taught
 * it; text may spell it in no way. Arguments obey the tool's own schema, whose # is its own root.
 * It is one grammar: nothing is triggered. Text in front of which a thought could stand does not
 * begin as one does, so that no call hides in a thought. Read next: tool_format.c, schema_part.h,
 * json_schema.h. */
#include "base/memory.h"
#include "sample/grammar_builder.h"
#include "sample/schema_part.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 64, MAX_TOOLS = 4096, MOST_TOKENS = 16 /* of one mark */, MOST_MARK = 256 };

/* ---- one tool ---- */

typedef struct tool_writer {
    pith_json_text text;
    pith_tool_format format; /* no string is NULL but `arguments` */
    const pith_tool_rules *rules;
    pith_grammar_node *calls; /* [n_calls] one of each tool that may be called */
    size_t n_calls;
    bool found;    /* rules->only is among them */
    json_t *names; /* {name: index} of the tools so far */
    pith_error *error;
    pith_status status;
} tool_writer;

static bool fail(tool_writer *w, pith_status status, size_t index, const char *what) {
    if (w->status == PITH_OK)
        w->status = pith_fail(w->error, status, "tools[%zu]: %s", index, what);
    return false;
}

/* The id of the longest token that the text begins with; -1: none. */
static int32_t token_at(const tool_writer *w, const char *text, size_t size, size_t *taken) {
    const pith_grammar_tokens *tokens = w->rules->tokens;
    for (*taken = size; tokens != NULL && *taken > 0; --*taken) {
        int32_t id = tokens->find(tokens->user, text, *taken);
        if (id >= 0) return id;
    }
    return -1;
}

/* A string of the format: what is one token as that token, the rest as text. */
static pith_grammar_node write_mark(tool_writer *w, const char *mark) {
    pith_grammar_builder *builder = w->text.builder;
    pith_grammar_node parts[2 * MOST_TOKENS + 1];
    size_t n = 0, size = strlen(mark), from = 0, taken = 0;
    for (size_t at = 0; at < size && n + 3 < sizeof parts / sizeof *parts;) {
        int32_t id = token_at(w, mark + at, size - at, &taken);
        if (id < 0) {
            at++;
            continue;
        }
        if (at > from) parts[n++] = pith_grammar_bytes(builder, mark + from, at - from);
        parts[n++] = pith_grammar_token(builder, (uint32_t)id, false);
        from = at += taken;
    }
    if (size > from) parts[n++] = pith_grammar_bytes(builder, mark + from, size - from);
    return pith_grammar_sequence(builder, parts, n);
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
    const pith_tool_format *f = &w->format;
    pith_grammar_node parts[12];
    size_t n = 0;
    parts[n++] = write_mark(w, f->open);
    if (f->arguments == NULL) {
        parts[n++] = pith_json_write(text, name);
        parts[n++] = write_mark(w, f->middle);
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
    parts[n++] = write_mark(w, f->close);
    return pith_grammar_sequence(text->builder, parts, n);
}

/* A call says by its name which tool is meant, so each has its own. */
static bool take_name(tool_writer *w, const char *name, size_t index) {
    const json_t *other = json_object_get(w->names, name);
    if (other != NULL) {
        w->status = pith_fail(w->error, PITH_ERROR_FORMAT,
                              "tools[%zu]: the name %.*s is taken by tools[%d]", index, NAME_BYTES,
                              name, (int)json_integer_value(other));
        return false;
    }
    if (json_object_set_new(w->names, name, json_integer((json_int_t)index)) == 0) return true;
    w->status = pith_fail_memory(w->error, "the names of tools", 0);
    return false;
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
    if (!take_name(w, text, index)) return false;
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
    w->names = json_object();
    if (w->calls == NULL || w->names == NULL) {
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
    const pith_tool_format *f = &w->format;
    pith_grammar_node call = pith_grammar_choice(text->builder, w->calls, w->n_calls);
    pith_grammar_node more = pith_json_write_two(text, write_mark(w, f->between), call);
    uint32_t n_more = w->rules->parallel && !f->single ? PITH_TOOL_MAX_CALLS - 1 : 0;
    pith_grammar_node parts[4] = {write_mark(w, f->begin), call,
                                  pith_grammar_repeat(text->builder, more, 0, n_more),
                                  write_mark(w, f->end)};
    return pith_grammar_sequence(text->builder, parts, 4);
}

/* Text in which no call begins. Without a marker: what does not begin with a brace. */
static pith_grammar_node write_text(tool_writer *w) {
    pith_json_text *text = &w->text;
    static const pith_code_range not_first[] = {{'\t', '\r'}, {' ', ' '}, {'{', '{'}};
    if (w->format.marker[0] != 0) {
        return pith_grammar_until(text->builder, w->format.marker, strlen(w->format.marker));
    }
    pith_grammar_node first = pith_grammar_class(text->builder, not_first, 3, true);
    pith_grammar_node rest = pith_grammar_until(text->builder, "", 0);
    return pith_grammar_repeat(text->builder, pith_json_write_two(text, first, rest), 0, 1);
}

/* `mark` as a regular expression. */
static void quote_mark(pith_buffer *out, const char *mark) {
    for (; *mark; mark++) {
        if (strchr("^$\\.*+?()[]{}|/", *mark) != NULL) pith_buffer_append_text(out, "\\");
        pith_buffer_append(out, mark, 1);
    }
}

/* made: less the texts in which the expression is found. The expression lives in *regex. */
static bool take_away(tool_writer *w, const pith_alphabet *alphabet, const pith_regex *regex,
                      pith_automaton *made) {
    pith_automaton found = {0}, rest = {0};
    w->status = pith_automaton_of(regex, alphabet, true, &found, w->error);
    if (w->status == PITH_OK)
        w->status = pith_automaton_combine(made, &found, PITH_AUTOMATON_WITHOUT, &rest, w->error);
    pith_automaton_deinit(&found);
    if (w->status != PITH_OK) return false;
    pith_automaton_deinit(made);
    *made = rest;
    return true;
}

/* Texts in which neither expression is found. */
static pith_grammar_node write_without(tool_writer *w, const pith_regex regexes[2]) {
    const pith_regex *trees[2] = {&regexes[0], &regexes[1]};
    pith_alphabet alphabet = {0};
    pith_automaton made = {0};
    pith_grammar_node node = 0;
    w->status = pith_alphabet_of(trees, 2, &alphabet, w->error);
    if (w->status == PITH_OK) w->status = pith_automaton_of_all(&alphabet, &made, w->error);
    if (w->status == PITH_OK && take_away(w, &alphabet, trees[0], &made) &&
        take_away(w, &alphabet, trees[1], &made))
        w->status = pith_json_write_automaton(&w->text, &made, &alphabet, true, &node, w->error);
    pith_automaton_deinit(&made);
    pith_alphabet_deinit(&alphabet);
    return node;
}

/* Text in which no call begins, and that does not begin as a thought does. */
static pith_grammar_node write_text_without_thought(tool_writer *w) {
    static const char *const space = "^[\\t-\\r ]*";
    pith_regex regexes[2] = {0};
    pith_buffer sources[2] = {0};
    pith_grammar_node node = 0;
    if (w->format.marker[0] == 0) pith_buffer_append_text(&sources[0], space);
    quote_mark(&sources[0], w->format.marker[0] ? w->format.marker : "{");
    pith_buffer_append_text(&sources[1], space);
    quote_mark(&sources[1], w->format.thought_begin);
    for (size_t i = 0; i < 2 && w->status == PITH_OK; i++) {
        pith_span source = {sources[i].data, sources[i].size};
        w->status = sources[i].failed ? pith_fail_memory(w->error, "a grammar of tools", 0)
                                      : pith_regex_parse(source, &regexes[i], w->error);
    }
    if (w->status == PITH_OK) node = write_without(w, regexes);
    for (size_t i = 0; i < 2; i++) {
        pith_regex_deinit(&regexes[i]);
        pith_buffer_deinit(&sources[i]);
    }
    return node;
}

/* What is no call, when it has to be JSON of a schema. A marker cannot begin a call in there, for
 * strings escape the quotes that a call needs. */
static pith_grammar_node write_content(tool_writer *w) {
    json_t *schema = NULL;
    pith_error reason = {0};
    pith_status status =
        pith_schema_read(w->rules->content_schema, "the answer's schema", &schema, &reason);
    pith_grammar_node node = 0;
    if (status == PITH_OK)
        node = pith_schema_part(&w->text, schema, false, "the answer's schema, ", &reason);
    if (reason.status != PITH_OK && w->status == PITH_OK)
        w->status = pith_fail(w->error, reason.status, "%s", reason.text);
    return node;
}

/* Text and calls as the choice has them. */
static pith_grammar_node write_body(tool_writer *w, pith_grammar_node text_node,
                                    pith_grammar_node calls) {
    pith_json_text *text = &w->text;
    bool is_json = w->rules->content_schema.data != NULL;
    if (w->rules->choice == PITH_TOOLS_REQUIRED) return calls;
    if (is_json) text_node = write_content(w);
    if (w->rules->choice == PITH_TOOLS_NONE) return text_node;
    if (is_json || w->format.marker[0] == 0) return pith_json_write_either(text, text_node, calls);
    return pith_json_write_two(text, text_node, pith_grammar_repeat(text->builder, calls, 0, 1));
}

static pith_grammar_node write_reply(tool_writer *w) {
    pith_grammar_builder *builder = w->text.builder;
    const char *begin = w->format.thought_begin, *end = w->format.thought_end;
    pith_grammar_node calls = write_calls(w), body = write_body(w, write_text(w), calls);
    if (end[0] == 0) return body;
    pith_grammar_node line = pith_json_write(&w->text, "\n");
    pith_grammar_node parts[4] = {pith_grammar_until(builder, end, strlen(end)), write_mark(w, end),
                                  pith_grammar_repeat(builder, line, 0, 2), body};
    pith_grammar_node thoughtful = pith_grammar_sequence(builder, parts, 4);
    if (w->rules->in_thought || begin[0] == 0) return thoughtful;
    thoughtful = pith_json_write_two(&w->text, write_mark(w, begin), thoughtful);
    body = write_body(w, write_text_without_thought(w), calls);
    return pith_json_write_either(&w->text, thoughtful, body);
}

static pith_status build(tool_writer *w, const json_t *tools, pith_grammar **out) {
    pith_grammar_builder *builder;
    pith_status status = pith_grammar_builder_new(&builder, w->error);
    if (status != PITH_OK) return status;
    w->status = pith_json_text_init(&w->text, builder, w->error);
    if (w->status == PITH_OK && add_tools(w, tools)) {
        pith_grammar_node reply = write_reply(w);
        if (w->status == PITH_OK)
            w->status = w->text.failed ? pith_fail_memory(w->error, "a grammar of tools", 0)
                                       : pith_grammar_build(builder, reply, out, w->error);
    }
    pith_json_text_deinit(&w->text);
    pith_grammar_builder_free(builder);
    pith_free(w->calls);
    json_decref(w->names);
    return w->status;
}

/* Fills the format; every mark is a string of sensible length. */
static pith_status take_format(tool_writer *w, const pith_tool_format *given, pith_error *error) {
    w->format = *given;
    pith_tool_format *f = &w->format;
    const char **const marks[] = {&f->name,          &f->marker,     &f->begin, &f->open,
                                  &f->close,         &f->between,    &f->end,   &f->middle,
                                  &f->thought_begin, &f->thought_end};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (*marks[i] == NULL) *marks[i] = "";
        if (strlen(*marks[i]) > MOST_MARK)
            return pith_fail(error, PITH_ERROR_LIMIT,
                             "tools: a string of the format has %zu bytes, at most %d are allowed",
                             strlen(*marks[i]), MOST_MARK);
    }
    if (f->marker[0] == 0 && w->rules->content_schema.data != NULL &&
        w->rules->choice == PITH_TOOLS_AUTO)
        return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                         "the answer's schema: calls of format %s are JSON too, and could not be "
                         "told from the answer",
                         f->name);
    if (f->arguments == NULL && f->middle[0] == 0)
        return pith_fail(
            error, PITH_ERROR_ARGUMENT,
            "tools: a format without a key for arguments needs a string in the middle");
    return PITH_OK;
}

pith_status pith_grammar_from_tools(const char *json, size_t size, const pith_tool_rules *rules,
                                    pith_grammar **out, pith_error *error) {
    json_t *tools;
    tool_writer w = {.rules = rules, .error = error};
    *out = NULL;
    if (rules->choice < PITH_TOOLS_AUTO || rules->choice > PITH_TOOLS_NONE)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "tools: %d is no choice", (int)rules->choice);
    pith_status status = take_format(&w, rules->format, error);
    if (status != PITH_OK) return status;
    status = pith_schema_read((pith_span){json, size}, "tools", &tools, error);
    if (status != PITH_OK) return status;
    status = build(&w, tools, out);
    json_decref(tools);
    return status;
}
