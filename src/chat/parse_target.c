/* SPDX-License-Identifier: Apache-2.0
 *
 * Targets of set, for and with: `a`, `a, b`, `(a, (b, c))`, `ns.field`.
 *
 * A target is read before its value, but runs after it. So its code (UNPACK, STORE, STORE_FIELD) is
 * collected behind the targets that wait already, and emitted when the value is on the machine's
 * stack.
 */
#include "chat/parser.h"

#include "base/memory.h"

#include <string.h>

static bool append(pith_parser *parser, pith_opcode op, int32_t a, int32_t b) {
    if (parser->n_targets == parser->target_capacity) {
        size_t capacity = parser->target_capacity == 0 ? 16 : parser->target_capacity * 2;
        pith_instruction *targets = pith_realloc(parser->targets, capacity * sizeof *targets);
        if (targets == NULL) return pith_parser_no_memory(parser);
        parser->targets = targets;
        parser->target_capacity = capacity;
    }
    parser->targets[parser->n_targets++] =
        (pith_instruction){.op = (uint8_t)op, .a = a, .b = b, .line = parser->token->line};
    return true;
}

static bool parse_one(pith_parser *parser, bool allows_field);

/* Targets with commas up to `)` or what ends a list of targets; at least one was read when is_tuple
 * is set. */
static bool parse_list(pith_parser *parser, bool allows_field, bool in_parens) {
    size_t unpack = parser->n_targets;
    int32_t n = 0;
    bool is_tuple = false;
    if (!append(parser, PITH_OPCODE_UNPACK, 0, 0)) return false;
    parser->targets[unpack].flags = !in_parens; /* where a whole target begins, for parse_with */
    do {
        bool ends =
            pith_parser_is(parser, in_parens ? PITH_TOKEN_PAREN_CLOSE : PITH_TOKEN_ASSIGN) ||
            pith_parser_is_name(parser, "in");
        if (ends && n > 0) break;
        if (!parse_one(parser, allows_field)) return false;
        n++;
        is_tuple = is_tuple || pith_parser_is(parser, PITH_TOKEN_COMMA);
    } while (pith_parser_skip(parser, PITH_TOKEN_COMMA));
    parser->targets[unpack].a = is_tuple ? n : -1; /* -1: only one, nothing to unpack */
    return true;
}

static bool parse_name(pith_parser *parser, bool allows_field) {
    pith_span name, field;
    int32_t symbol, number;
    static const char *const reserved[] = {"true", "false", "none", "True", "False", "None"};
    if (!pith_parser_take_name(parser, &name)) return false;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        if (pith_span_is(name, reserved[i]))
            return pith_parser_fail(parser, "cannot assign to '%s'", reserved[i]);
    }
    if (!pith_parser_symbol(parser, name, &symbol)) return false;
    if (!allows_field || !pith_parser_skip(parser, PITH_TOKEN_DOT))
        return append(parser, PITH_OPCODE_STORE, symbol, 0);
    if (!pith_parser_take_name(parser, &field) || !pith_parser_constant(parser, field, &number))
        return false;
    return append(parser, PITH_OPCODE_STORE_FIELD, symbol, number);
}

static bool parse_one(pith_parser *parser, bool allows_field) {
    if (!pith_parser_skip(parser, PITH_TOKEN_PAREN_OPEN)) return parse_name(parser, allows_field);
    if (!pith_parser_enter(parser) || !parse_list(parser, allows_field, true)) return false;
    parser->depth--;
    return pith_parser_expect(parser, PITH_TOKEN_PAREN_CLOSE);
}

bool pith_parse_target(pith_parser *parser, bool allows_field) {
    return parse_list(parser, allows_field, false);
}

bool pith_parser_emit_targets(pith_parser *parser, size_t from) {
    for (size_t i = from; i < parser->n_targets; i++) {
        pith_instruction in = parser->targets[i];
        if (in.op == PITH_OPCODE_UNPACK && in.a < 0) continue;
        if (!pith_parser_emit(parser, (pith_opcode)in.op, in.a, in.b)) return false;
    }
    parser->n_targets = from;
    return true;
}
