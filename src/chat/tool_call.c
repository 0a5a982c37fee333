/* SPDX-License-Identifier: Apache-2.0
 * Pieces of a tool call: marks, objects that arrive piece by piece, name and arguments in one.
 *
 * Objects are found by their brackets and strings alone, then parsed as a whole (json_read.c), so
 * nothing that is not JSON becomes a call. Arguments are handed on as the model wrote them. Space
 * between the signs of marks does not count: a model that is held to no grammar varies it. Read
 * next: message.c. */
#include "chat/tool_call.h"

#include "base/memory.h"
#include "chat/chat.h"

#include <string.h>

static size_t skip_space(pith_span text, size_t at) {
    while (at < text.size && pith_is_json_space(text.data[at])) at++;
    return at;
}

pith_match pith_match_mark(pith_span text, const char *mark, size_t *at) {
    const char *first = mark + strspn(mark, " \n\r\t");
    size_t here = *at;
    for (;;) {
        while (pith_is_json_space(*mark)) mark++;
        if (*mark == 0) break;
        here = skip_space(text, here);
        if (mark == first) *at = here; /* space is not looked at again */
        if (here == text.size) return PITH_MATCH_WAIT;
        if (text.data[here++] != *mark++) return PITH_MATCH_NO;
    }
    *at = here;
    return PITH_MATCH_YES;
}

/* One sign of the object; true: the last one. */
static bool step(pith_object_scan *scan, char c) {
    if (scan->is_escaped) {
        scan->is_escaped = false;
    } else if (scan->in_string) {
        scan->is_escaped = c == '\\';
        scan->in_string = c != '"';
    } else if (c == '"') {
        scan->in_string = true;
    } else if (c == '{' || c == '[') {
        scan->depth++;
    } else if (c == '}' || c == ']') {
        scan->depth--;
        return scan->depth == 0;
    }
    return false;
}

pith_match pith_scan_object(pith_span text, pith_object_scan *scan) {
    if (scan->depth == 0) {
        scan->begin = scan->at = skip_space(text, scan->at);
        if (scan->at == text.size) return PITH_MATCH_WAIT;
        if (text.data[scan->at] != '{') return PITH_MATCH_NO;
    }
    while (scan->at < text.size) {
        if (step(scan, text.data[scan->at++])) return PITH_MATCH_YES;
    }
    return PITH_MATCH_WAIT;
}

pith_status pith_object_check(pith_span text) {
    json_t *value = NULL;
    pith_status status = pith_json_parse(text, &value, NULL);
    if (status == PITH_OK && !json_is_object(value)) status = PITH_ERROR_FORMAT;
    json_decref(value);
    return status;
}

/* Behind the value that begins at `at`, of a well-formed object: at its comma or last brace. */
static size_t value_end(pith_span text, size_t at) {
    pith_object_scan scan = {.depth = 1};
    for (; at < text.size; at++) {
        char c = text.data[at];
        if (scan.depth == 1 && !scan.in_string && c == ',') break;
        if (step(&scan, c)) break;
    }
    return at;
}

/* The sign of a JSON string at text[*at], which goes behind it; -1: one that is not ASCII. */
static int next_sign(pith_span text, size_t *at) {
    static const char digits[] = "0123456789abcdef";
    int code = 0;
    if (text.data[*at] != '\\') return (int8_t)text.data[(*at)++];
    if (*at + 6 > text.size || text.data[*at + 1] != 'u') {
        *at += 2;
        return -1; /* escapes of other signs than letters */
    }
    for (size_t i = *at + 2; i < *at + 6; i++) {
        const char *digit = strchr(digits, text.data[i] | 0x20);
        code = code * 16 + (digit ? (int)(digit - digits) : 0);
    }
    *at += 6;
    return code < 0x80 ? code : -1;
}

/* The text of a string between its quotes is `key`, of letters, whatever of it is escaped. */
static bool is_key(pith_span text, const char *key) {
    size_t at = 0;
    for (; *key && at < text.size; key++)
        if (next_sign(text, &at) != *key) return false;
    return *key == 0 && at == text.size;
}

pith_span pith_object_member(pith_span object, const char *key) {
    const pith_span text = object;
    pith_span found = {"", 0};
    size_t at = 1;
    while (at < text.size) {
        at = skip_space(text, at);
        size_t name = at + 1;
        if (at >= text.size || text.data[at] != '"') break;
        for (at++; at < text.size && text.data[at] != '"'; at++) at += text.data[at] == '\\';
        bool is_it = is_key((pith_span){text.data + name, at - name}, key);
        at = skip_space(text, at + 1);
        size_t value = skip_space(text, at + 1); /* behind the colon */
        at = value_end(text, value);
        size_t end = at;
        while (end > value && pith_is_json_space(text.data[end - 1])) end--;
        if (is_it) found = (pith_span){text.data + value, end - value};
        at++;
    }
    return found;
}

pith_span pith_object_undoubled(pith_span object) {
    size_t first = 1, end = object.size - 1;
    while (first < end && pith_is_json_space(object.data[first])) first++;
    while (end > first && pith_is_json_space(object.data[end - 1])) end--;
    if (end <= first || object.data[first] != '{' || object.data[end - 1] != '}') return object;
    return (pith_span){object.data + first, end - first};
}

pith_status pith_tool_call_read(pith_span object, const char *key, char **name,
                                pith_span *arguments) {
    json_t *call = NULL;
    object = pith_object_undoubled(object);
    pith_status status = pith_json_parse(object, &call, NULL);
    if (status != PITH_OK) return status;
    const json_t *function = json_object_get(call, "name");
    *arguments = pith_object_member(object, key);
    if (arguments->size == 0) /* models mix up the two */
        *arguments =
            pith_object_member(object, strcmp(key, "arguments") == 0 ? "parameters" : "arguments");
    if (arguments->size == 0) *arguments = pith_span_of("{}");
    bool good = json_is_string(function) && json_string_length(function) > 0 &&
                strlen(json_string_value(function)) == json_string_length(function) &&
                arguments->data[0] == '{';
    status = good ? PITH_OK : PITH_ERROR_FORMAT;
    if (good) {
        *name = pith_copy_text(json_string_value(function), json_string_length(function));
        if (*name == NULL) status = PITH_ERROR_MEMORY;
    }
    json_decref(call);
    return status;
}
