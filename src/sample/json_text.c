/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings and whole values in the form of json_text.h, as grammar nodes.
 *
 * A string is written code point by code point. A code point has one spelling, except those beyond
 * ASCII, which may also be written \uXXXX; so a count of code points is a count of repetitions and
 * a key that may not occur is left out in every spelling. Sets that occur again give the node that
 * was made for them.
 * Read next: json_automaton.c, json_number.c.
 */
#include "sample/json_text.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

pith_grammar_node pith_json_fail(pith_json_text *text) {
    text->failed = true;
    return 0;
}

static pith_grammar_node class_of(pith_json_text *text, const pith_code_range *ranges, size_t n) {
    return pith_grammar_class(text->builder, ranges, n, false);
}

pith_grammar_node pith_json_write(pith_json_text *text, const char *literal) {
    return pith_grammar_bytes(text->builder, literal, strlen(literal));
}

pith_grammar_node pith_json_write_two(pith_json_text *text, pith_grammar_node a,
                                      pith_grammar_node b) {
    return pith_grammar_sequence(text->builder, (pith_grammar_node[]){a, b}, 2);
}

pith_grammar_node pith_json_write_either(pith_json_text *text, pith_grammar_node a,
                                         pith_grammar_node b) {
    return pith_grammar_choice(text->builder, (pith_grammar_node[]){a, b}, 2);
}

static pith_grammar_node as_rule(pith_json_text *text, const char *name, pith_grammar_node node) {
    pith_grammar_rule rule = pith_grammar_declare(text->builder, name);
    pith_grammar_define(text->builder, rule, node);
    return pith_grammar_refer(text->builder, rule);
}

/* ---- one code point ---- */

/* n digits of any case, behind the prefix's literal text and one digit of the ranges. */
static pith_grammar_node hex(pith_json_text *text, const char *prefix,
                             const pith_code_range *ranges, size_t n_ranges, uint32_t n) {
    static const pith_code_range digits[] = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
    pith_grammar_node parts[3] = {
        pith_json_write(text, prefix), class_of(text, ranges, n_ranges),
        pith_grammar_repeat(text->builder, class_of(text, digits, 3), n, n)};
    return pith_grammar_sequence(text->builder, parts, 3);
}

/* What follows \u for code points from 80 on. */
static pith_grammar_node make_wide(pith_json_text *text) {
    static const pith_code_range from_8[] = {{'8', '9'}, {'A', 'F'}, {'a', 'f'}},
                                 from_1[] = {{'1', '9'}, {'A', 'F'}, {'a', 'f'}},
                                 not_d[] = {{'1', '9'},
                                            {'A', 'C'},
                                            {'E', 'F'},
                                            {'a', 'c'},
                                            {'e', 'f'}},
                                 to_7[] = {{'0', '7'}}, d[] = {{'D', 'D'}, {'d', 'd'}},
                                 high[] = {{'8', '9'}, {'A', 'B'}, {'a', 'b'}},
                                 low[] = {{'C', 'F'}, {'c', 'f'}};
    pith_grammar_node letter = class_of(text, d, 2);
    pith_grammar_node pair[5] = {letter, hex(text, "", high, 3, 2), pith_json_write(text, "\\u"),
                                 letter, hex(text, "", low, 2, 2)};
    pith_grammar_node choices[5] = {hex(text, "00", from_8, 3, 1), hex(text, "0", from_1, 3, 2),
                                    hex(text, "", not_d, 5, 3),
                                    pith_json_write_two(text, letter, hex(text, "", to_7, 1, 2)),
                                    pith_grammar_sequence(text->builder, pair, 5)};
    return as_rule(text, "escape", pith_grammar_choice(text->builder, choices, 5));
}

/* What follows the backslash for ASCII, or 0 bytes where the code point is written as it is. */
static void spell_escape(uint32_t code, char out[8]) {
    static const char letters[] = "btn\0fr"; /* of 8..13 */
    if (code == '"' || code == '\\') {
        (void)snprintf(out, 8, "%c", (int)code);
    } else if (code >= 8 && code <= 13 && code != 11) {
        (void)snprintf(out, 8, "%c", letters[code - 8]);
    } else if (code < 0x20) {
        (void)snprintf(out, 8, "u%04x", (unsigned)code);
    } else {
        out[0] = 0;
    }
}

/* The set without what is written with a backslash. */
static pith_grammar_node make_plain(pith_json_text *text, const pith_code_set *set) {
    static const pith_code_range plain[] = {
        {0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, PITH_CODE_LAST}};
    pith_code_set rest = {0};
    for (size_t i = 0; i < set->n; i++) {
        for (size_t k = 0; k < 3; k++) {
            uint32_t first = set->ranges[i].first, last = set->ranges[i].last;
            if (first < plain[k].first) first = plain[k].first;
            if (last > plain[k].last) last = plain[k].last;
            if (first <= last) pith_code_set_add(&rest, first, last);
        }
    }
    pith_grammar_node node =
        rest.failed ? pith_json_fail(text) : class_of(text, rest.ranges, rest.n);
    pith_code_set_deinit(&rest);
    return node;
}

static bool has_all_wide(const pith_code_set *set) {
    static const uint32_t last_below = 0xD7FF, first_above = 0xE000;
    bool below = false, above = false;
    for (size_t i = 0; i < set->n; i++) {
        below = below || (set->ranges[i].first <= 0x80 && set->ranges[i].last >= last_below);
        above =
            above || (set->ranges[i].first <= first_above && set->ranges[i].last == PITH_CODE_LAST);
    }
    return below && above;
}

static pith_grammar_node make_set(pith_json_text *text, const pith_code_set *set) {
    pith_grammar_node choices[0x20 + 4];
    size_t n = 0;
    choices[n++] = make_plain(text, set);
    for (uint32_t code = 0; code <= '\\'; code++) {
        char escape[8];
        spell_escape(code, escape);
        if (escape[0] == 0 || !pith_code_set_has(set, code)) continue;
        choices[n++] = pith_json_write(text, escape);
    }
    if (has_all_wide(set)) {
        choices[n++] = pith_json_write_two(text, pith_json_write(text, "u"), text->wide);
    }
    if (n == 1) return choices[0];
    pith_grammar_node escapes = pith_grammar_choice(text->builder, choices + 1, n - 1);
    escapes = pith_json_write_two(text, pith_json_write(text, "\\"), escapes);
    if (n > 4) escapes = as_rule(text, "escapes", escapes);
    return pith_json_write_either(text, choices[0], escapes);
}

pith_grammar_node pith_json_write_set(pith_json_text *text, const pith_code_set *set) {
    bool is_new;
    uint32_t number = pith_tuple_intern(&text->sets, (const uint32_t *)set->ranges,
                                        (uint32_t)set->n * 2, &is_new);
    if (number == PITH_TUPLE_NONE) return pith_json_fail(text);
    if (!is_new) return text->set_nodes[number];
    if (number >= text->set_capacity) {
        uint32_t capacity = text->set_capacity ? text->set_capacity * 2 : 16;
        pith_grammar_node *nodes = pith_realloc(text->set_nodes, capacity * sizeof *nodes);
        if (nodes == NULL) {
            pith_tuple_table_deinit(&text->sets);
            return pith_json_fail(text);
        }
        text->set_nodes = nodes;
        text->set_capacity = capacity;
    }
    text->set_nodes[number] = make_set(text, set);
    return text->set_nodes[number];
}

/* ---- strings ---- */

pith_grammar_node pith_json_quote(pith_json_text *text, pith_grammar_node content) {
    pith_grammar_node parts[3] = {text->quote, content, text->quote};
    return pith_grammar_sequence(text->builder, parts, 3);
}

pith_grammar_node pith_json_write_string(pith_json_text *text, const char *data, size_t size) {
    pith_buffer buffer = {0};
    pith_buffer_append(&buffer, "\"", 1);
    for (size_t i = 0; i < size; i++) {
        char escape[8];
        spell_escape((uint8_t)data[i], escape);
        if (escape[0] == 0) {
            pith_buffer_append(&buffer, data + i, 1);
        } else {
            pith_buffer_append_format(&buffer, "\\%s", escape);
        }
    }
    pith_buffer_append(&buffer, "\"", 1);
    pith_grammar_node node = buffer.failed
                                 ? pith_json_fail(text)
                                 : pith_grammar_bytes(text->builder, buffer.data, buffer.size);
    pith_buffer_deinit(&buffer);
    return node;
}

pith_grammar_node pith_json_write_lengths(pith_json_text *text, uint32_t min, uint32_t max) {
    return pith_json_quote(text, pith_grammar_repeat(text->builder, text->any_char, min, max));
}

/* ---- values ---- */

static pith_grammar_node write_number(pith_json_text *text, const json_t *value) {
    char number[64];
    bool good = pith_json_number_text(value, number, sizeof number);
    return good ? pith_json_write(text, number) : pith_json_fail(text);
}

/* Lists and objects: brackets round the parts that `parts` holds. */
static pith_grammar_node enclose(pith_json_text *text, const char *brackets,
                                 const pith_grammar_node *parts, size_t n) {
    char open[2] = {brackets[0], 0}, close[2] = {brackets[1], 0};
    if (n == 0) return pith_json_write(text, brackets);
    pith_grammar_node all[5] = {pith_json_write(text, open), text->space,
                                pith_grammar_sequence(text->builder, parts, n), text->space,
                                pith_json_write(text, close)};
    return pith_grammar_sequence(text->builder, all, 5);
}

/* A list or an object whose parts are being written. */
typedef struct open_value {
    json_t *value;
    void *at; /* the next member of an object */
    size_t i, size;
    size_t from; /* its first node in value_writer */
} open_value;

/* Nodes of what is open, from the whole value to the innermost list or object. */
typedef struct value_writer {
    pith_json_text *text;
    open_value open[PITH_JSON_MAX_OPEN]; /* [n_open] */
    size_t n_open;
    pith_grammar_node *nodes; /* [n_nodes] */
    size_t n_nodes, capacity;
} value_writer;

static void add_node(value_writer *w, pith_grammar_node node) {
    if (w->n_nodes == w->capacity) {
        size_t capacity = w->capacity ? w->capacity * 2 : 64;
        pith_grammar_node *nodes = pith_realloc(w->nodes, capacity * sizeof *nodes);
        if (nodes == NULL) {
            pith_json_fail(w->text);
            return;
        }
        w->nodes = nodes;
        w->capacity = capacity;
    }
    w->nodes[w->n_nodes++] = node;
}

/* Writes a value that has no parts, or opens one that may have. */
static void begin_value(value_writer *w, json_t *value) {
    pith_json_text *text = w->text;
    switch (json_typeof(value)) {
    case JSON_NULL: add_node(w, pith_json_write(text, "null")); return;
    case JSON_TRUE: add_node(w, pith_json_write(text, "true")); return;
    case JSON_FALSE: add_node(w, pith_json_write(text, "false")); return;
    case JSON_STRING:
        add_node(w,
                 pith_json_write_string(text, json_string_value(value), json_string_length(value)));
        return;
    case JSON_OBJECT:
    case JSON_ARRAY: break;
    default: add_node(w, write_number(text, value)); return;
    }
    if (w->n_open == PITH_JSON_MAX_OPEN) {
        pith_json_fail(text);
        return;
    }
    bool is_object = json_is_object(value);
    w->open[w->n_open++] =
        (open_value){.value = value,
                     .at = is_object ? json_object_iter(value) : NULL,
                     .size = is_object ? json_object_size(value) : json_array_size(value),
                     .from = w->n_nodes};
}

/* The next part of the innermost value, with what stands in front of it; NULL: it has no more. */
static json_t *next_part(value_writer *w) {
    open_value *open = &w->open[w->n_open - 1];
    if (open->i == open->size) return NULL;
    if (open->i > 0) add_node(w, w->text->comma);
    size_t i = open->i++;
    if (!json_is_object(open->value)) return json_array_get(open->value, i);
    const char *key = json_object_iter_key(open->at);
    json_t *part = json_object_iter_value(open->at);
    add_node(w, pith_json_write_string(w->text, key, strlen(key)));
    add_node(w, w->text->colon);
    open->at = json_object_iter_next(open->value, open->at);
    return part;
}

/* The innermost value becomes one node. */
static void end_value(value_writer *w) {
    const open_value *open = &w->open[--w->n_open];
    const char *brackets = json_is_object(open->value) ? "{}" : "[]";
    pith_grammar_node node =
        enclose(w->text, brackets, w->nodes + open->from, w->n_nodes - open->from);
    w->n_nodes = open->from;
    add_node(w, node);
}

pith_grammar_node pith_json_write_value(pith_json_text *text, const json_t *value) {
    value_writer w = {.text = text};
    begin_value(&w, (json_t *)(uintptr_t)value); /* its iterators want no const */
    while (w.n_open > 0 && !text->failed) {
        json_t *part = next_part(&w);
        if (part != NULL)
            begin_value(&w, part);
        else
            end_value(&w);
    }
    pith_grammar_node node = text->failed || w.n_nodes == 0 ? pith_json_fail(text) : w.nodes[0];
    pith_free(w.nodes);
    return node;
}

/* ---- the fixed parts ---- */

pith_status pith_json_text_init(pith_json_text *text, pith_grammar_builder *builder,
                                pith_error *error) {
    pith_code_set all = {0};
    *text = (pith_json_text){.builder = builder};
    pith_code_set_add(&all, 0, PITH_CODE_LAST);
    if (all.failed) return pith_fail_memory(error, "a set of characters", 0);
    pith_grammar_node blank = pith_json_write(text, " ");
    pith_grammar_node line =
        pith_json_write_two(text, pith_json_write(text, "\n"),
                            pith_grammar_repeat(builder, blank, 0, PITH_JSON_MAX_INDENT));
    text->space = pith_grammar_repeat(builder, line, 0, 1);
    text->colon = pith_json_write_two(text, pith_json_write(text, ":"),
                                      pith_grammar_repeat(builder, blank, 0, 1));
    text->comma = pith_json_write_two(
        text, pith_json_write(text, ","),
        pith_grammar_repeat(builder, pith_json_write_either(text, blank, line), 0, 1));
    text->quote = pith_json_write(text, "\"");
    text->wide = make_wide(text);
    text->any_char = pith_json_write_set(text, &all);
    text->any_string =
        as_rule(text, "string", pith_json_write_lengths(text, 0, PITH_GRAMMAR_UNBOUNDED));
    pith_code_set_deinit(&all);
    return text->failed ? pith_fail_memory(error, "a grammar of JSON", 0) : PITH_OK;
}

void pith_json_text_deinit(pith_json_text *text) {
    pith_tuple_table_deinit(&text->sets);
    pith_free(text->set_nodes);
    *text = (pith_json_text){0};
}
