/* SPDX-License-Identifier: Apache-2.0
 * Calls that a model writes without the marks of its format.
 *
 *   {"name": "f", "arguments": {...}}         alone, or several, or a list [ , ] of them
 *   ```json  <the same>  ```                  in a fence
 *   <tools>  <the same>  </tools>             in tags
 *
 * Some models were shown one form by their chat template and taught another: Qwen2.5-Coder answers
 * so at every size. What counts begins a line, has these two keys alone with the name in front, and
 * fills its line to the end; the name is one that was offered; the arguments are an object that has
 * every required key and, where the schema lists all keys, no other, and that is valid by the
 * schema (pith_call_check); {} where there is none. Of a schema by which values cannot be checked
 * the keys have to do: a tool that gets a wrong value can say so, a call left in the text ends the
 * talk. A "strict" tool promises values as well, and is then not called so. What closes a fence or
 * tag may be missing, or be another tag.
 *
 * A look stops at the first sign that decides, so text that is no call is held back for as long as
 * its head is open, and what begins as a call until its object ends. Read next: message.c. */
#include "chat/unmarked_call.h"

#include <string.h>

enum { MOST_SPACE = 256 /* signs in a row */ };

/* Words of the tags that models were seen to write. */
static const char *const tag_words[] = {"tools",    "tool",          "tool_call",
                                        "function", "function_call", "function-call"};
enum { N_TAG_WORDS = sizeof tag_words / sizeof *tag_words };

/* ---- what was offered ---- */

static pith_status add_tool(json_t *offered, json_t *tool, const char *only) {
    json_t *function = json_object_get(tool, "function");
    json_t *source = function ? function : tool;
    const char *name = json_string_value(json_object_get(source, "name"));
    if (name == NULL || *name == 0 || (only != NULL && strcmp(only, name) != 0)) return PITH_OK;
    return json_object_set(offered, name, source) == 0 ? PITH_OK : PITH_ERROR_MEMORY;
}

pith_status pith_offered_tools(pith_span tools_json, const char *only, json_t **out,
                               pith_error *error) {
    json_t *tools = NULL;
    pith_status status = pith_json_parse(tools_json, &tools, error);
    *out = NULL;
    if (status != PITH_OK) return status;
    json_t *offered = json_object();
    if (!json_is_array(tools))
        status = pith_fail(error, PITH_ERROR_FORMAT, "tools: a list of tools is needed");
    else if (offered == NULL)
        status = PITH_ERROR_MEMORY;
    for (size_t i = 0; status == PITH_OK && i < json_array_size(tools); i++)
        status = add_tool(offered, json_array_get(tools, i), only);
    if (status == PITH_ERROR_MEMORY)
        (void)pith_fail_memory(error, "the tools offered", tools_json.size);
    json_decref(tools);
    if (status == PITH_OK)
        *out = offered;
    else
        json_decref(offered);
    return status;
}

/* Does the schema say which keys there may be? */
static bool lists_all_keys(const json_t *schema) {
    static const char *const others[] = {
        "patternProperties", "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "not"};
    const json_t *more = json_object_get(schema, "additionalProperties");
    if (!json_is_object(json_object_get(schema, "properties"))) return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (json_object_get(schema, others[i]) != NULL) return false;
    return more == NULL || json_is_false(more);
}

static bool has_its_keys(const json_t *schema, json_t *arguments) {
    const json_t *required = json_object_get(schema, "required");
    const json_t *properties = json_object_get(schema, "properties");
    const char *key;
    json_t *value;
    for (size_t i = 0; i < json_array_size(required); i++) {
        const json_t *name = json_array_get(required, i);
        if (json_is_string(name) && json_object_get(arguments, json_string_value(name)) == NULL)
            return false;
    }
    if (!lists_all_keys(schema)) return true;
    json_object_foreach(arguments, key, value) {
        if (json_object_get(properties, key) == NULL) return false;
    }
    return true;
}

/* PITH_OK, PITH_ERROR_FORMAT or PITH_ERROR_MEMORY. text: of the arguments. */
static pith_status fits(const pith_offer *offer, const char *name, json_t *arguments,
                        pith_span text) {
    const json_t *tool = json_object_get(offer->tools, name);
    json_t *schema = json_object_get(tool, "parameters");
    pith_status status = PITH_ERROR_UNSUPPORTED;
    if (schema == NULL || json_is_null(schema))
        return json_object_size(arguments) == 0 ? PITH_OK : PITH_ERROR_FORMAT;
    if (!has_its_keys(schema, arguments)) return PITH_ERROR_FORMAT;
    if (offer->check.ask != NULL) status = offer->check.ask(offer->check.user, schema, text);
    if (status != PITH_ERROR_UNSUPPORTED) return status;
    return json_is_true(json_object_get(tool, "strict")) ? PITH_ERROR_FORMAT : PITH_OK;
}

/* ---- pieces ---- */

/* `word` at text[*at]; *at goes behind it. */
static pith_match match_word(pith_span text, const char *word, size_t *at) {
    size_t here = *at;
    for (; *word; word++, here++) {
        if (here >= text.size) return PITH_MATCH_WAIT;
        if (text.data[here] != *word) return PITH_MATCH_NO;
    }
    *at = here;
    return PITH_MATCH_YES;
}

/* One of the words between `before` and `behind`; WAIT while it may become one. */
static pith_match match_one(pith_span text, const char *before, const char *const *words, size_t n,
                            const char *behind, size_t *at) {
    pith_match match = PITH_MATCH_NO;
    for (size_t i = 0; i < n; i++) {
        const char *const parts[] = {before, words[i], behind};
        size_t here = *at;
        pith_match one = PITH_MATCH_YES;
        for (size_t k = 0; k < 3 && one == PITH_MATCH_YES; k++)
            one = match_word(text, parts[k], &here);
        if (one == PITH_MATCH_YES) *at = here;
        if (one == PITH_MATCH_YES) return one;
        if (one == PITH_MATCH_WAIT) match = one;
    }
    return match;
}

/* Passes space, at most MOST_SPACE signs of it. WAIT: the text ends there. */
static pith_match pass_space(pith_span text, size_t *at) {
    const size_t from = *at;
    while (*at < text.size && pith_is_json_space(text.data[*at])) {
        if (*at - from == MOST_SPACE) return PITH_MATCH_NO;
        ++*at;
    }
    return *at < text.size ? PITH_MATCH_YES : PITH_MATCH_WAIT;
}

static pith_match match_opening(pith_unmarked_scan *s, pith_span text) {
    static const char *const languages[] = {"json\n", "\n", "json\r\n", "\r\n", "tool_call\n"};
    if (s->at >= text.size) return PITH_MATCH_WAIT;
    if (text.data[s->at] == '`') {
        s->wrap = PITH_UNMARKED_FENCE;
        return match_one(text, "```", languages, sizeof languages / sizeof *languages, "", &s->at);
    }
    if (text.data[s->at] == '<') {
        s->wrap = PITH_UNMARKED_TAG;
        return match_one(text, "<", tag_words, N_TAG_WORDS, ">", &s->at);
    }
    return PITH_MATCH_YES;
}

/* The quoted name of an offered tool at text[*at]. */
static pith_match match_name(pith_span text, json_t *offered, size_t *at, const char **name) {
    pith_match match = PITH_MATCH_NO;
    const char *key;
    json_t *schema;
    if (*at >= text.size) return PITH_MATCH_WAIT;
    if (text.data[*at] != '"') return PITH_MATCH_NO;
    json_object_foreach(offered, key, schema) {
        size_t here = *at + 1;
        pith_match one = match_word(text, key, &here);
        if (one == PITH_MATCH_YES) one = match_word(text, "\"", &here);
        if (one == PITH_MATCH_WAIT) match = one;
        if (one != PITH_MATCH_YES) continue;
        *name = key;
        *at = here;
        return one;
    }
    return match;
}

/* { "name" : "f" , with any space between, the brace once or twice. */
static pith_match match_head(pith_span text, json_t *offered, size_t at, const char **name) {
    static const char *const before[] = {"{", "\"name\"", ":"};
    pith_match match = pass_space(text, &at);
    for (size_t i = 0; i < 3 && match == PITH_MATCH_YES; i++) {
        match = match_word(text, before[i], &at);
        if (match == PITH_MATCH_YES) match = pass_space(text, &at);
        bool is_twice = match == PITH_MATCH_YES && i == 0 && at < text.size && text.data[at] == '{';
        if (!is_twice) continue; /* pith_object_undoubled */
        at++;
        match = pass_space(text, &at);
    }
    if (match == PITH_MATCH_YES) match = match_name(text, offered, &at, name);
    if (match == PITH_MATCH_YES) match = pass_space(text, &at);
    return match == PITH_MATCH_YES ? match_word(text, ",", &at) : match;
}

/* The object that has been found; PITH_ERROR_FORMAT: it is no call that fits. */
static pith_status read_object(pith_unmarked_scan *s, pith_span text, const pith_offer *offer) {
    const pith_span object = pith_object_undoubled(
        (pith_span){text.data + s->object.begin, s->object.at - s->object.begin});
    json_t *call = NULL;
    pith_status status = pith_json_parse(object, &call, NULL);
    if (status != PITH_OK) return status;
    const char *name = json_string_value(json_object_get(call, "name")); /* if twice: the last */
    const char *key = json_object_get(call, "arguments") ? "arguments" : "parameters";
    json_t *arguments = json_object_get(call, key);
    status = PITH_ERROR_FORMAT;
    if (json_object_size(call) == 2 && json_is_object(arguments) && name != NULL &&
        strcmp(name, s->name) == 0) {
        s->arguments = pith_object_member(object, key);
        status = fits(offer, s->name, arguments, s->arguments);
    }
    json_decref(call);
    return status;
}

/* Nothing but what closes a wrap or a list, or goes on in one, stands behind an object. */
static pith_match match_line_end(const pith_unmarked_scan *s, pith_span text, bool at_end) {
    const char *allowed = s->in_list ? "\n,]" : s->wrap == PITH_UNMARKED_BARE ? "\n" : "\n`<";
    size_t at = s->object.at, most = at + MOST_SPACE;
    while (at < text.size && at < most && pith_is_json_space(text.data[at]) &&
           text.data[at] != '\n')
        at++;
    if (at == text.size) return at_end ? PITH_MATCH_YES : PITH_MATCH_WAIT;
    bool is_allowed = text.data[at] != 0 && strchr(allowed, text.data[at]) != NULL;
    return is_allowed ? PITH_MATCH_YES : PITH_MATCH_NO;
}

/* Behind a call: does another one follow? It decides where the scan goes on. */
static pith_match pass_behind(pith_unmarked_scan *s, pith_span text) {
    while (s->at < text.size && pith_is_json_space(text.data[s->at])) s->at++;
    if (s->at == text.size) return PITH_MATCH_WAIT;
    char c = text.data[s->at];
    s->part = PITH_UNMARKED_CLOSING;
    if (s->in_list && (c == ',' || c == ']')) {
        s->in_list = c == ',';
        s->at++;
    }
    if (s->in_list || c == '{') s->part = PITH_UNMARKED_HEAD;
    return PITH_MATCH_YES;
}

/* "</tools>", its last sign may be missing. */
static pith_match match_end_tag(pith_span text, size_t *at) {
    pith_match match = match_one(text, "</", tag_words, N_TAG_WORDS, ">", at);
    return match == PITH_MATCH_NO ? match_one(text, "</", tag_words, N_TAG_WORDS, "\n", at) : match;
}

/* What closes the wrap, where it is there. */
static pith_match match_closing(pith_unmarked_scan *s, pith_span text) {
    if (s->wrap == PITH_UNMARKED_BARE) return PITH_MATCH_NO;
    while (s->at < text.size && pith_is_json_space(text.data[s->at])) s->at++;
    pith_match match = s->wrap == PITH_UNMARKED_FENCE ? match_word(text, "```", &s->at)
                                                      : match_end_tag(text, &s->at);
    s->is_closed = match == PITH_MATCH_YES;
    return match;
}

/* ---- one look ---- */

/* Without the sign that was awaited: none, or behind the calls so far. */
static pith_unmarked_found give_up(const pith_unmarked_scan *s) {
    return s->n_calls > 0 ? PITH_UNMARKED_OVER : PITH_UNMARKED_NONE;
}

static pith_match pass_list(pith_unmarked_scan *s, pith_span text) {
    pith_match match = pass_space(text, &s->at);
    if (match != PITH_MATCH_YES) return match;
    s->in_list = text.data[s->at] == '[';
    s->at += s->in_list;
    s->part = PITH_UNMARKED_HEAD;
    return match;
}

static pith_match pass_head(pith_unmarked_scan *s, pith_span text, json_t *tools) {
    pith_match match = match_head(text, tools, s->at, &s->name);
    if (match == PITH_MATCH_YES) {
        s->object = (pith_object_scan){.begin = s->at, .at = s->at};
        s->part = PITH_UNMARKED_OBJECT;
    }
    return match;
}

static pith_match pass_object(pith_unmarked_scan *s, pith_span text) {
    pith_match match = pith_scan_object(text, &s->object);
    if (match == PITH_MATCH_YES) s->part = PITH_UNMARKED_LINE_END;
    return match;
}

/* The object is whole: a call, where it fits and its line ends. */
static pith_unmarked_found take_object(pith_unmarked_scan *s, pith_span text, bool at_end,
                                       const pith_offer *offer) {
    pith_match match = match_line_end(s, text, at_end);
    if (match == PITH_MATCH_WAIT) return PITH_UNMARKED_WAIT;
    if (match == PITH_MATCH_NO || s->n_calls >= s->most_calls) return give_up(s);
    pith_status status = read_object(s, text, offer);
    if (status != PITH_OK) return status == PITH_ERROR_MEMORY ? PITH_UNMARKED_MEMORY : give_up(s);
    s->at = s->object.at;
    s->n_calls++;
    s->part = PITH_UNMARKED_BEHIND;
    return PITH_UNMARKED_CALL;
}

pith_unmarked_found pith_unmarked_next(pith_unmarked_scan *scan, pith_span text, bool at_end,
                                       const pith_offer *offer) {
    for (;;) {
        pith_match match = PITH_MATCH_YES;
        switch (scan->part) {
        case PITH_UNMARKED_OPENING:
            match = match_opening(scan, text);
            if (match == PITH_MATCH_YES) scan->part = PITH_UNMARKED_LIST;
            break;
        case PITH_UNMARKED_LIST: match = pass_list(scan, text); break;
        case PITH_UNMARKED_HEAD: match = pass_head(scan, text, offer->tools); break;
        case PITH_UNMARKED_OBJECT: match = pass_object(scan, text); break;
        case PITH_UNMARKED_LINE_END: return take_object(scan, text, at_end, offer);
        case PITH_UNMARKED_BEHIND: match = pass_behind(scan, text); break;
        case PITH_UNMARKED_CLOSING:
            match = match_closing(scan, text);
            if (match == PITH_MATCH_YES) return PITH_UNMARKED_OVER;
            break;
        }
        if (match == PITH_MATCH_WAIT && !at_end) return PITH_UNMARKED_WAIT;
        if (match != PITH_MATCH_YES) return give_up(scan);
    }
}
