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
    pith_grammar_node node = rest.failed ? 0 : class_of(text, rest.ranges, rest.n);
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
    if (number == PITH_TUPLE_NONE) return 0;
    if (!is_new) return text->set_nodes[number];
    if (number >= text->set_capacity) {
        uint32_t capacity = text->set_capacity ? text->set_capacity * 2 : 16;
        pith_grammar_node *nodes = pith_realloc(text->set_nodes, capacity * sizeof *nodes);
        if (nodes == NULL) {
            pith_tuple_table_deinit(&text->sets);
            return 0;
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
    pith_grammar_node node =
        buffer.failed ? 0 : pith_grammar_bytes(text->builder, buffer.data, buffer.size);
    pith_buffer_deinit(&buffer);
    return node;
}

pith_grammar_node pith_json_write_lengths(pith_json_text *text, uint32_t min, uint32_t max) {
    return pith_json_quote(text, pith_grammar_repeat(text->builder, text->any_char, min, max));
}

/* ---- values ---- */

static pith_grammar_node write_number(pith_json_text *text, const json_t *value) {
    char number[64];
    return pith_json_number_text(value, number, sizeof number) ? pith_json_write(text, number) : 0;
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

static pith_grammar_node write_members(pith_json_text *text, const json_t *value) {
    json_t *object = (json_t *)(uintptr_t)value; /* its iterators want no const */
    bool is_object = json_is_object(value);
    size_t size = is_object ? json_object_size(value) : json_array_size(value), n = 0;
    pith_grammar_node *parts = pith_alloc_array(size + 1, 4 * sizeof *parts);
    if (parts == NULL) return 0;
    void *at = is_object ? json_object_iter(object) : NULL;
    for (size_t i = 0; i < size; i++) {
        const json_t *member = is_object ? json_object_iter_value(at) : json_array_get(value, i);
        if (i > 0) parts[n++] = text->comma;
        if (is_object) {
            const char *key = json_object_iter_key(at);
            parts[n++] = pith_json_write_string(text, key, strlen(key));
            parts[n++] = text->colon;
            at = json_object_iter_next(object, at);
        }
        parts[n++] = pith_json_write_value(text, member);
    }
    pith_grammar_node node = enclose(text, is_object ? "{}" : "[]", parts, n);
    pith_free(parts);
    return node;
}

/* Recursive, at most as deep as the reader of JSON allows values to be. */
pith_grammar_node pith_json_write_value(pith_json_text *text, const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_NULL: return pith_json_write(text, "null");
    case JSON_TRUE: return pith_json_write(text, "true");
    case JSON_FALSE: return pith_json_write(text, "false");
    case JSON_STRING:
        return pith_json_write_string(text, json_string_value(value), json_string_length(value));
    case JSON_OBJECT:
    case JSON_ARRAY: return write_members(text, value);
    default: return write_number(text, value);
    }
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
    return PITH_OK;
}

void pith_json_text_deinit(pith_json_text *text) {
    pith_tuple_table_deinit(&text->sets);
    pith_free(text->set_nodes);
    *text = (pith_json_text){0};
}
