/* SPDX-License-Identifier: Apache-2.0
 * Grammars in GBNF, the notation of llama.cpp's grammar files.
 *
 *   root  ::= "[" ws (item ("," ws item)*)? "]"     # rules; the first to match is `root`
 *   item  ::= [0-9]{1,3} | "\"" [^"\x00-\x1F]* "\""
 *   ws    ::= [ \t\n]*
 *
 * A line break ends a rule, except within parentheses and right after ::= and |. Literals and
 * classes are code points; the escapes are \xHH \uHHHH \UHHHHHHHH \t \r \n \\ \" \[ \]. Terminals
 * <[1234]> and <think> are one token as a whole, !<think> is any other token.
 *
 * Stricter than llama.cpp where it guesses: a rule defined twice, an empty class, a reversed range
 * are refused. Groups are kept on an explicit stack. Read next: grammar_builder.h. */
#include "sample/grammar_builder.h"

#include "base/map.h"
#include "base/memory.h"

#include <string.h>

enum { MAX_NAME = 200, MAX_CLASS = 1 << 16 };

/* A group that is open: where its alternatives and its last sequence begin. */
typedef struct group {
    uint32_t alternatives, nodes;
    const char *at; /* its parenthesis */
} group;

typedef struct parser {
    const char *text, *at, *end;
    pith_grammar_builder *builder;
    const pith_grammar_tokens *tokens;
    pith_map names;   /* to rules; keys lie in the text */
    uint8_t *defined; /* [n] of the rule */
    uint32_t defined_capacity;
    group groups[PITH_GRAMMAR_MAX_NESTING];
    uint32_t n_groups;
    pith_grammar_node *nodes; /* sequences that are open */
    uint32_t n_nodes, nodes_capacity;
    pith_grammar_node *alternatives; /* of groups that are open */
    uint32_t n_alternatives, alternatives_capacity;
    pith_code_range *ranges;
    uint32_t n_ranges, ranges_capacity;
    pith_buffer literal;
    const char *counted; /* a place in the text; its line and column */
    uint32_t line, column;
    pith_error *error;
    pith_status status;
} parser;

/* ---- errors ---- */

/* Goes on from the place asked last, so that asking in the order of the text costs one pass. */
static void place_of(parser *p, const char *at, uint32_t *line, uint32_t *column) {
    if (p->counted == NULL || at < p->counted) {
        p->counted = p->text;
        p->line = p->column = 1;
    }
    for (; p->counted < at; p->counted++) {
        bool breaks = *p->counted == '\n';
        p->line += breaks;
        p->column = breaks ? 1 : p->column + (((uint8_t)*p->counted & 0xC0) != 0x80);
    }
    *line = p->line;
    *column = p->column; /* characters */
}

static bool fail_as(parser *p, pith_status status, const char *at, const char *what) {
    uint32_t line, column;
    if (p->status != PITH_OK) return false;
    place_of(p, at, &line, &column);
    p->status = pith_fail(p->error, status, "grammar: line %u, column %u: %s", line, column, what);
    return false;
}

static bool fail(parser *p, const char *at, const char *what) {
    return fail_as(p, PITH_ERROR_FORMAT, at, what);
}

static bool fail_memory(parser *p) {
    if (p->status == PITH_OK)
        p->status = pith_fail_memory(p->error, "a grammar", (uint64_t)(p->end - p->text));
    return false;
}

/* ---- characters ---- */

static bool is_at(const parser *p, char c) {
    return p->at < p->end && *p->at == c;
}

static bool is_break(const parser *p) {
    return is_at(p, '\n') || is_at(p, '\r');
}

static void skip_space(parser *p, bool breaks) {
    while (p->at < p->end) {
        if (*p->at == '#')
            while (p->at < p->end && !is_break(p)) p->at++;
        else if (*p->at == ' ' || *p->at == '\t' || (breaks && is_break(p)))
            p->at++;
        else
            return;
    }
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static pith_span read_word(parser *p) {
    pith_span word = {p->at, 0};
    while (p->at < p->end && is_word(*p->at)) p->at++;
    word.size = (size_t)(p->at - word.data);
    return word;
}

static bool read_hex(parser *p, unsigned n_digits, uint32_t *code) {
    const char *start = p->at - 2;
    *code = 0;
    for (unsigned i = 0; i < n_digits; i++) {
        char c = p->at < p->end ? *p->at : 0;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
                                                : 16;
        if (digit == 16) return fail(p, start, "\\x, \\u and \\U take 2, 4 and 8 hex digits");
        *code = *code << 4 | digit;
        p->at++;
    }
    if (*code <= 0x10FFFF && (*code < 0xD800 || *code > 0xDFFF)) return true;
    return fail(p, start, "this is no code point: above 10FFFF, or a surrogate");
}

static bool read_escape(parser *p, uint32_t *code) {
    static const char names[] = "trn\\\"[]", codes[] = "\t\r\n\\\"[]";
    const char *start = p->at++;
    if (p->at >= p->end) return fail(p, start, "the text ends within an escape");
    char c = *p->at++;
    if (c == 'x') return read_hex(p, 2, code);
    if (c == 'u') return read_hex(p, 4, code);
    if (c == 'U') return read_hex(p, 8, code);
    const char *found = c != 0 ? strchr(names, c) : NULL;
    if (found == NULL)
        return fail(p, start,
                    "unknown escape; there are \\x \\u \\U \\t \\r \\n \\\\ \\\" \\[ \\]");
    *code = (uint8_t)codes[found - names];
    return true;
}

/* One code point of a literal or class. */
static bool read_code(parser *p, uint32_t *code) {
    if (is_at(p, '\\')) return read_escape(p, code);
    const char *start = p->at;
    p->at += pith_utf8_decode(p->at, (size_t)(p->end - p->at), code);
    return *code != PITH_UTF8_INVALID || fail(p, start, "this is no UTF-8");
}

/* ---- lists that are open ---- */

static bool add_node(parser *p, pith_grammar_node node) {
    if (node == 0) return false; /* the builder knows why */
    void *grown = pith_grammar_grow(p->nodes, &p->nodes_capacity, sizeof *p->nodes, p->n_nodes + 1);
    if (grown == NULL) return fail_memory(p);
    p->nodes = grown;
    p->nodes[p->n_nodes++] = node;
    return true;
}

static bool add_range(parser *p, uint32_t first, uint32_t last) {
    void *grown =
        pith_grammar_grow(p->ranges, &p->ranges_capacity, sizeof *p->ranges, p->n_ranges + 1);
    if (grown == NULL) return fail_memory(p);
    p->ranges = grown;
    p->ranges[p->n_ranges++] = (pith_code_range){first, last};
    return true;
}

static bool open_group(parser *p) {
    if (p->n_groups == PITH_GRAMMAR_MAX_NESTING)
        return fail(p, p->at, "groups are nested deeper than 1024");
    p->groups[p->n_groups++] = (group){p->n_alternatives, p->n_nodes, p->at};
    return true;
}

/* The last sequence of the group becomes an alternative. */
static bool end_alternative(parser *p) {
    const group *g = &p->groups[p->n_groups - 1];
    const uint32_t n = p->n_nodes - g->nodes; /* 0: `nodes` may not have been allocated yet */
    pith_grammar_node node =
        pith_grammar_sequence(p->builder, n > 0 ? p->nodes + g->nodes : NULL, n);
    p->n_nodes = g->nodes;
    if (node == 0) return false;
    void *grown = pith_grammar_grow(p->alternatives, &p->alternatives_capacity,
                                    sizeof *p->alternatives, p->n_alternatives + 1);
    if (grown == NULL) return fail_memory(p);
    p->alternatives = grown;
    p->alternatives[p->n_alternatives++] = node;
    return true;
}

static pith_grammar_node close_group(parser *p) {
    if (!end_alternative(p)) return 0;
    const group *g = &p->groups[--p->n_groups];
    pith_grammar_node node = pith_grammar_choice(p->builder, p->alternatives + g->alternatives,
                                                 p->n_alternatives - g->alternatives);
    p->n_alternatives = g->alternatives;
    return node;
}

/* ---- terminals ---- */

static bool parse_literal(parser *p) {
    const char *start = p->at++;
    pith_buffer_reset(&p->literal);
    while (!is_at(p, '"')) {
        uint32_t code;
        char bytes[4];
        if (p->at >= p->end) return fail(p, start, "the literal does not end: \" is missing");
        if (!read_code(p, &code)) return false;
        pith_buffer_append(&p->literal, bytes, pith_utf8_encode(code, bytes));
    }
    p->at++;
    if (p->literal.failed) return fail_memory(p);
    return add_node(p, pith_grammar_bytes(p->builder, p->literal.data, p->literal.size));
}

static bool parse_class(parser *p) {
    const char *start = p->at++;
    bool negated = is_at(p, '^');
    p->at += negated;
    p->n_ranges = 0;
    while (!is_at(p, ']')) {
        uint32_t first, last;
        const char *at = p->at;
        if (p->at >= p->end) return fail(p, start, "the class does not end: ] is missing");
        if (!read_code(p, &first)) return false;
        last = first;
        if (is_at(p, '-') && p->at + 1 < p->end && p->at[1] != ']') {
            p->at++;
            if (!read_code(p, &last)) return false;
        }
        if (last < first) return fail(p, at, "the range is reversed");
        if (!add_range(p, first, last)) return false;
    }
    p->at++;
    if (p->n_ranges == 0) return fail(p, start, "the class is empty");
    return add_node(p, pith_grammar_class(p->builder, p->ranges, p->n_ranges, negated));
}

static bool read_number(parser *p, uint32_t most, uint32_t *number) {
    const char *start = p->at;
    uint64_t value = 0;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
        if (value <= most) value = value * 10 + (uint64_t)(*p->at - '0');
    if (p->at == start) return fail(p, start, "a number is expected");
    if (value > most) return fail(p, start, "the number is too large");
    *number = (uint32_t)value;
    return true;
}

/* <[1234]> or <text>, where the text with its brackets is a token. */
static bool parse_token(parser *p) {
    const char *start = p->at;
    const bool negated = is_at(p, '!');
    p->at += negated;
    if (!is_at(p, '<')) return fail(p, start, "a token is expected after !, as in !<think>");
    const char *text = p->at++;
    uint32_t id;
    if (is_at(p, '[')) {
        p->at++;
        if (!read_number(p, INT32_MAX, &id)) return false;
        if (p->end - p->at < 2 || p->at[0] != ']' || p->at[1] != '>')
            return fail(p, p->at, "]> is expected after a token's id");
        p->at += 2;
        return add_node(p, pith_grammar_token(p->builder, id, negated));
    }
    while (p->at < p->end && *p->at != '>' && !is_break(p)) p->at++;
    if (!is_at(p, '>')) return fail(p, start, "the token does not end: > is missing");
    p->at++;
    if (p->tokens == NULL)
        return fail_as(p, PITH_ERROR_NOT_FOUND, start,
                       "a token is named, but no model is given that has it");
    int32_t found = p->tokens->find(p->tokens->user, text, (size_t)(p->at - text));
    if (found < 0)
        return fail(p, start, "this is not one token of the vocabulary; <[1234]> names one by id");
    return add_node(p, pith_grammar_token(p->builder, (uint32_t)found, negated));
}

/* ---- rules ---- */

static bool find_rule(parser *p, pith_span name, pith_grammar_rule *rule) {
    int32_t known;
    char copy[MAX_NAME + 1];
    if (pith_map_find(&p->names, name, &known)) {
        *rule = (uint32_t)known;
        return true;
    }
    if (name.size > MAX_NAME) return fail(p, name.data, "the name is longer than 200 characters");
    memcpy(copy, name.data, name.size);
    copy[name.size] = 0;
    *rule = pith_grammar_declare(p->builder, copy);
    if (p->builder->error.status != PITH_OK) return false;
    void *grown = pith_grammar_grow(p->defined, &p->defined_capacity, 1, *rule + 1);
    if (grown == NULL) return fail_memory(p);
    p->defined = grown;
    p->defined[*rule] = 0;
    uint32_t line, column;
    place_of(p, name.data, &line, &column);
    pith_grammar_place(p->builder, *rule, line, column);
    return pith_map_insert(&p->names, name, (int32_t)*rule, &known) > 0 || fail_memory(p);
}

static bool parse_reference(parser *p) {
    pith_grammar_rule rule;
    if (!find_rule(p, read_word(p), &rule)) return false;
    return add_node(p, pith_grammar_refer(p->builder, rule));
}

static bool parse_counts(parser *p, uint32_t *min, uint32_t *max) {
    const bool breaks = p->n_groups > 1;
    const char *start = p->at++;
    skip_space(p, breaks);
    if (!read_number(p, PITH_GRAMMAR_MAX_COUNT, min)) return false;
    skip_space(p, breaks);
    *max = *min;
    if (is_at(p, ',')) {
        p->at++;
        skip_space(p, breaks);
        *max = PITH_GRAMMAR_UNBOUNDED;
        if (!is_at(p, '}') && !read_number(p, PITH_GRAMMAR_MAX_COUNT, max)) return false;
        skip_space(p, breaks);
    }
    if (!is_at(p, '}')) return fail(p, p->at, "} is expected: {3}, {3,} and {3,5} are counts");
    p->at++;
    return *min <= *max || fail(p, start, "the least count is above the most");
}

static bool parse_repetition(parser *p) {
    uint32_t min = *p->at == '+', max = *p->at == '?' ? 1 : PITH_GRAMMAR_UNBOUNDED;
    if (p->n_nodes == p->groups[p->n_groups - 1].nodes)
        return fail(p, p->at, "there is nothing before it that could be repeated");
    if (*p->at != '{')
        p->at++;
    else if (!parse_counts(p, &min, &max))
        return false;
    pith_grammar_node node = pith_grammar_repeat(p->builder, p->nodes[--p->n_nodes], min, max);
    return add_node(p, node);
}

static bool parse_any(parser *p) {
    p->at++;
    return add_node(p, pith_grammar_class(p->builder, NULL, 0, true));
}

static bool parse_group_end(parser *p) {
    if (p->n_groups == 1) return fail(p, p->at, "there is no group that could end here");
    p->at++;
    return add_node(p, close_group(p));
}

/* One item of a sequence, or what separates sequences. *ends: the rule is over. */
static bool parse_item(parser *p, bool *ends) {
    char c = p->at < p->end ? *p->at : 0;
    switch (c) {
    case '"': return parse_literal(p);
    case '[': return parse_class(p);
    case '.': return parse_any(p);
    case '<':
    case '!': return parse_token(p);
    case '*':
    case '+':
    case '?':
    case '{': return parse_repetition(p);
    case ')': return parse_group_end(p);
    case '(':
        if (!open_group(p)) return false;
        p->at++;
        return true;
    case '|':
        if (!end_alternative(p)) return false;
        p->at++;
        skip_space(p, true);
        return true;
    default: break;
    }
    if (is_word(c)) return parse_reference(p);
    *ends = true;
    return true;
}

static bool parse_body(parser *p, pith_grammar_node *body) {
    bool ends = false;
    p->n_groups = p->n_nodes = p->n_alternatives = 0;
    if (!open_group(p)) return false;
    while (!ends) {
        if (!parse_item(p, &ends)) return false;
        if (!ends) skip_space(p, p->n_groups > 1);
    }
    if (p->n_groups > 1)
        return fail(p, p->groups[p->n_groups - 1].at, "the group does not end: ) is missing");
    if (p->at < p->end && !is_break(p)) return fail(p, p->at, "this character begins nothing");
    *body = close_group(p);
    return *body != 0;
}

static bool parse_rule(parser *p) {
    pith_grammar_rule rule;
    pith_grammar_node body = 0;
    uint32_t line, column;
    pith_span name = read_word(p);
    if (name.size == 0) return fail(p, p->at, "the name of a rule is expected");
    if (!find_rule(p, name, &rule)) return false;
    if (p->defined[rule]) return fail(p, name.data, "the rule is defined twice");
    p->defined[rule] = 1;
    place_of(p, name.data, &line, &column);
    pith_grammar_place(p->builder, rule, line, column);
    skip_space(p, false);
    if (p->end - p->at < 3 || memcmp(p->at, "::=", 3) != 0)
        return fail(p, p->at, "::= is expected after the name of a rule");
    p->at += 3;
    skip_space(p, true);
    if (!parse_body(p, &body)) return false;
    pith_grammar_define(p->builder, rule, body);
    return true;
}

static bool parse_rules(parser *p, pith_grammar_node *root) {
    int32_t rule;
    skip_space(p, true);
    while (p->at < p->end) {
        if (!parse_rule(p)) return false;
        skip_space(p, true);
    }
    if (!pith_map_find(&p->names, pith_span_of("root"), &rule))
        return fail(p, p->end, "there is no rule named root, where a text begins");
    *root = pith_grammar_refer(p->builder, (uint32_t)rule);
    return *root != 0;
}

static void deinit(parser *p) {
    pith_map_deinit(&p->names);
    pith_buffer_deinit(&p->literal);
    pith_free(p->defined);
    pith_free(p->nodes);
    pith_free(p->alternatives);
    pith_free(p->ranges);
    pith_grammar_builder_free(p->builder);
    pith_free(p);
}

pith_status pith_grammar_from_gbnf(const char *text, size_t size, const pith_grammar_tokens *tokens,
                                   pith_grammar **out, pith_error *error) {
    *out = NULL;
    if (size > PITH_GRAMMAR_MAX_TEXT)
        return pith_fail(error, PITH_ERROR_LIMIT, "grammar: %zu bytes; at most %d are read", size,
                         PITH_GRAMMAR_MAX_TEXT);
    parser *p = pith_alloc_zero(1, sizeof *p);
    if (p == NULL) return pith_fail_memory(error, "a grammar", sizeof *p);
    p->text = p->at = text;
    p->end = text + size;
    p->tokens = tokens;
    p->error = error;
    pith_grammar_node root = 0;
    p->status = pith_grammar_builder_new(&p->builder, error);
    bool parsed = p->status == PITH_OK && parse_rules(p, &root);
    pith_status status = p->status;
    /* where the parser has no fault to tell, the builder has one, or none */
    if (status == PITH_OK) status = pith_grammar_build(p->builder, parsed ? root : 0, out, error);
    deinit(p);
    return status;
}
