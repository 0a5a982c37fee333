/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands: literals, names, brackets, and what follows them (attributes, subscripts, calls,
 * filters, tests).
 *
 *   -x.y[0](a, k=b) | f(c) is t d
 *   sign, primary, postfix ..., then the sign is applied, then filters and tests
 *
 * Invariant: each function leaves exactly one value on the machine's stack.
 *
 * Read next: parse_arguments.c (calls), literal.c (strings and numbers).
 */
#include "chat/literal.h"
#include "chat/native.h"
#include "chat/parse_arguments.h"
#include "chat/parser.h"

#include <string.h>

/* ---- brackets ---- */

/* Elements up to `close`, which is skipped; *n is their number. */
static bool parse_elements(pith_parser *parser, pith_token_kind close, int32_t *n) {
    *n = 0;
    while (!pith_parser_skip(parser, close)) {
        if (*n > 0) {
            if (!pith_parser_expect(parser, PITH_TOKEN_COMMA)) return false;
            if (pith_parser_skip(parser, close)) break;
        }
        if (!pith_parse_expression(parser)) return false;
        ++*n;
    }
    return true;
}

static bool parse_list(pith_parser *parser) {
    int32_t n;
    return parse_elements(parser, PITH_TOKEN_BRACKET_CLOSE, &n) &&
           pith_parser_emit(parser, PITH_OPCODE_LIST, n, 0);
}

static bool parse_dict(pith_parser *parser) {
    int32_t n = 0;
    while (!pith_parser_skip(parser, PITH_TOKEN_BRACE_CLOSE)) {
        if (n > 0) {
            if (!pith_parser_expect(parser, PITH_TOKEN_COMMA)) return false;
            if (pith_parser_skip(parser, PITH_TOKEN_BRACE_CLOSE)) break;
        }
        if (!pith_parse_expression(parser) || !pith_parser_expect(parser, PITH_TOKEN_COLON))
            return false;
        if (!pith_parse_expression(parser)) return false;
        n++;
    }
    return pith_parser_emit(parser, PITH_OPCODE_DICT, n, 0);
}

static bool parse_parens(pith_parser *parser) {
    if (pith_parser_skip(parser, PITH_TOKEN_PAREN_CLOSE))
        return pith_parser_emit(parser, PITH_OPCODE_TUPLE, 0, 0);
    return pith_parse_tuple(parser, PITH_TUPLE_PLAIN) &&
           pith_parser_expect(parser, PITH_TOKEN_PAREN_CLOSE);
}

static bool ends_tuple(const pith_parser *parser) {
    switch (parser->token->kind) {
    case PITH_TOKEN_PAREN_CLOSE:
    case PITH_TOKEN_PRINT_END:
    case PITH_TOKEN_BLOCK_END:
    case PITH_TOKEN_ASSIGN:
    case PITH_TOKEN_END: return true;
    case PITH_TOKEN_NAME:
        return pith_parser_is_name(parser, "recursive") || pith_parser_is_name(parser, "if");
    default: return false;
    }
}

bool pith_parse_tuple(pith_parser *parser, int flags) {
    int32_t n = 0;
    bool is_tuple = false;
    do {
        if (n > 0 && ends_tuple(parser)) break;
        bool ok = (flags & PITH_TUPLE_NO_CONDITION) != 0 ? pith_parse_operators(parser)
                                                         : pith_parse_expression(parser);
        if (!ok) return false;
        n++;
        is_tuple = is_tuple || pith_parser_is(parser, PITH_TOKEN_COMMA);
    } while (pith_parser_skip(parser, PITH_TOKEN_COMMA));
    return !is_tuple || pith_parser_emit(parser, PITH_OPCODE_TUPLE, n, 0);
}

/* ---- primaries ---- */

/* A macro that mentions caller, varargs or kwargs accepts them. */
static void note_name(pith_parser *parser, int32_t symbol) {
    for (pith_parser_macro *macro = parser->macro; macro != NULL; macro = macro->outer) {
        macro->uses_caller = macro->uses_caller || symbol == PITH_SYMBOL_CALLER;
        macro->uses_varargs = macro->uses_varargs || symbol == PITH_SYMBOL_VARARGS;
        macro->uses_kwargs = macro->uses_kwargs || symbol == PITH_SYMBOL_KWARGS;
    }
}

static bool parse_name(pith_parser *parser) {
    static const struct {
        const char *name;
        pith_value value;
    } constants[] = {
        {"true", {PITH_KIND_BOOL, {.boolean = true}}},
        {"True", {PITH_KIND_BOOL, {.boolean = true}}},
        {"false", {PITH_KIND_BOOL, {.boolean = false}}},
        {"False", {PITH_KIND_BOOL, {.boolean = false}}},
        {"none", {.kind = PITH_KIND_NONE}},
        {"None", {.kind = PITH_KIND_NONE}},
    };
    pith_span name;
    int32_t symbol;
    if (!pith_parser_take_name(parser, &name)) return false;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        if (pith_span_is(name, constants[i].name))
            return pith_parser_emit_const(parser, constants[i].value);
    }
    if (!pith_parser_symbol(parser, name, &symbol)) return false;
    note_name(parser, symbol);
    return pith_parser_emit(parser, PITH_OPCODE_LOAD, symbol, 0);
}

static bool parse_bracketed(pith_parser *parser) {
    pith_token_kind kind = parser->token->kind;
    parser->token++;
    bool ok = kind == PITH_TOKEN_PAREN_OPEN     ? parse_parens(parser)
              : kind == PITH_TOKEN_BRACKET_OPEN ? parse_list(parser)
                                                : parse_dict(parser);
    parser->call_at = -1; /* a call inside of brackets may be jumped over */
    return ok;
}

static bool parse_primary(pith_parser *parser) {
    switch (parser->token->kind) {
    case PITH_TOKEN_NAME: return parse_name(parser);
    case PITH_TOKEN_STRING: return pith_literal_string(parser);
    case PITH_TOKEN_INT:
    case PITH_TOKEN_FLOAT: return pith_literal_number(parser);
    case PITH_TOKEN_PAREN_OPEN:
    case PITH_TOKEN_BRACKET_OPEN:
    case PITH_TOKEN_BRACE_OPEN: return parse_bracketed(parser);
    default: return pith_parser_fail_expected(parser, "an expression");
    }
}

/* ---- postfix ---- */

static bool emit_absent(pith_parser *parser) {
    return pith_parser_emit_const(parser, (pith_value){.kind = PITH_KIND_ABSENT});
}

/* One part of a slice, or nothing. */
static bool parse_slice_part(pith_parser *parser) {
    if (pith_parser_is(parser, PITH_TOKEN_COLON) ||
        pith_parser_is(parser, PITH_TOKEN_BRACKET_CLOSE)) {
        return emit_absent(parser);
    }
    return pith_parse_expression(parser);
}

/* Behind the first colon, the start being on the stack. */
static bool parse_slice(pith_parser *parser) {
    if (!parse_slice_part(parser)) return false;
    bool has_step = pith_parser_skip(parser, PITH_TOKEN_COLON);
    if (has_step ? !parse_slice_part(parser) : !emit_absent(parser)) return false;
    return pith_parser_expect(parser, PITH_TOKEN_BRACKET_CLOSE) &&
           pith_parser_emit(parser, PITH_OPCODE_SLICE, 0, 0);
}

static bool parse_subscript(pith_parser *parser) {
    if (pith_parser_skip(parser, PITH_TOKEN_COLON))
        return emit_absent(parser) && parse_slice(parser);
    int32_t n = 1;
    if (!pith_parse_expression(parser)) return false;
    if (pith_parser_skip(parser, PITH_TOKEN_COLON)) return parse_slice(parser);
    for (; pith_parser_skip(parser, PITH_TOKEN_COMMA); n++) {
        if (!pith_parse_expression(parser)) return false;
    }
    if (n > 1 && !pith_parser_emit(parser, PITH_OPCODE_TUPLE, n, 0)) return false;
    return pith_parser_expect(parser, PITH_TOKEN_BRACKET_CLOSE) &&
           pith_parser_emit(parser, PITH_OPCODE_ITEM, 0, 0);
}

static bool parse_attribute(pith_parser *parser) {
    pith_span name = parser->token->text;
    int32_t number;
    if (pith_parser_is(parser, PITH_TOKEN_INT)) {
        return pith_literal_number(parser) && pith_parser_emit(parser, PITH_OPCODE_ITEM, 0, 0);
    }
    if (!pith_parser_expect(parser, PITH_TOKEN_NAME) ||
        !pith_parser_constant(parser, name, &number))
        return false;
    return pith_parser_emit(parser, PITH_OPCODE_ATTRIBUTE, number, 0);
}

static bool parse_postfix(pith_parser *parser) {
    for (;;) {
        bool ok;
        if (pith_parser_skip(parser, PITH_TOKEN_DOT)) {
            ok = parse_attribute(parser);
        } else if (pith_parser_skip(parser, PITH_TOKEN_BRACKET_OPEN)) {
            ok = parse_subscript(parser);
        } else if (pith_parser_is(parser, PITH_TOKEN_PAREN_OPEN)) {
            ok = pith_parse_call_on_stack(parser);
        } else {
            return true;
        }
        if (!ok) return false;
    }
}

/* ---- filters and tests ---- */

/* The name of a filter or test: names with dots. */
static bool take_dotted_name(pith_parser *parser, pith_span *name) {
    if (!pith_parser_take_name(parser, name)) return false;
    while (pith_parser_skip(parser, PITH_TOKEN_DOT)) {
        pith_span more;
        if (!pith_parser_take_name(parser, &more)) return false;
        name->size = (size_t)(more.data + more.size - name->data); /* with what stands between */
    }
    return true;
}

/* The instruction for filter or test `name`, its arguments being on the stack. */
static bool emit_native(pith_parser *parser, pith_span name, bool is_test,
                        pith_arguments arguments) {
    const pith_function *list = is_test ? pith_tests : pith_filters;
    const pith_function *function = pith_function_find(list, name);
    if (function == NULL) {
        int32_t number;
        if (parser->n_soft == 0) {
            return pith_parser_fail(parser, "there is no %s named '%.*s'",
                                    is_test ? "test" : "filter",
                                    (int)(name.size < 60 ? name.size : 60), name.data);
        }
        return pith_parser_constant(parser, name, &number) &&
               pith_parser_emit(parser, is_test ? PITH_OPCODE_NO_TEST : PITH_OPCODE_NO_FILTER,
                                number, 0);
    }
    if (!pith_parser_emit(parser, is_test ? PITH_OPCODE_TEST : PITH_OPCODE_FILTER, arguments.n,
                          arguments.n_keywords)) {
        return false;
    }
    pith_instruction *in = &parser->program->code[pith_parser_here(parser) - 1];
    in->flags = arguments.flags;
    in->extra = (uint16_t)(function - list);
    return true;
}

static bool parse_filter(pith_parser *parser) {
    pith_span name;
    pith_arguments arguments = {0};
    if (!take_dotted_name(parser, &name)) return false;
    if (pith_parser_is(parser, PITH_TOKEN_PAREN_OPEN) && !pith_parse_arguments(parser, &arguments))
        return false;
    return emit_native(parser, name, false, arguments);
}

/* Whether the current token can start the one argument that a test may have without brackets. */
static bool starts_argument(const pith_parser *parser) {
    switch (parser->token->kind) {
    case PITH_TOKEN_STRING:
    case PITH_TOKEN_INT:
    case PITH_TOKEN_FLOAT:
    case PITH_TOKEN_BRACKET_OPEN:
    case PITH_TOKEN_BRACE_OPEN: return true;
    case PITH_TOKEN_NAME: break;
    default: return false;
    }
    static const char *const words[] = {"else", "or", "and", "if", "in", "not", "recursive"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (pith_parser_is_name(parser, words[i])) return false;
    }
    return true;
}

/* Behind `is`. */
static bool parse_test(pith_parser *parser) {
    bool negated = pith_parser_skip_name(parser, "not");
    pith_span name;
    pith_arguments arguments = {0};
    if (!take_dotted_name(parser, &name)) return false;
    if (pith_parser_is(parser, PITH_TOKEN_PAREN_OPEN)) {
        if (!pith_parse_arguments(parser, &arguments)) return false;
    } else if (pith_parser_is_name(parser, "is")) {
        return pith_parser_fail(parser, "tests cannot be chained with 'is'");
    } else if (starts_argument(parser)) {
        if (!parse_primary(parser) || !parse_postfix(parser)) return false;
        arguments.n = 1;
    }
    if (!emit_native(parser, name, true, arguments)) return false;
    return !negated || pith_parser_emit(parser, PITH_OPCODE_UNARY, PITH_UNARY_NOT, 0);
}

bool pith_parse_filters(pith_parser *parser, bool with_pipe) {
    if (!with_pipe && !parse_filter(parser)) return false;
    for (;;) {
        bool ok;
        if (pith_parser_skip(parser, PITH_TOKEN_PIPE)) {
            ok = parse_filter(parser);
        } else if (pith_parser_skip_name(parser, "is")) {
            ok = parse_test(parser);
        } else if (pith_parser_is(parser, PITH_TOKEN_PAREN_OPEN)) {
            ok = pith_parse_call_on_stack(parser);
        } else {
            return true;
        }
        if (!ok) return false;
    }
}

bool pith_parse_operand(pith_parser *parser) {
    const pith_token *signs = parser->token;
    while (pith_parser_is(parser, PITH_TOKEN_SUBTRACT) || pith_parser_is(parser, PITH_TOKEN_ADD))
        parser->token++;
    const pith_token *last = parser->token;
    if (!parse_primary(parser) || !parse_postfix(parser)) return false;
    while (last > signs) {
        last--;
        pith_unary op = last->kind == PITH_TOKEN_SUBTRACT ? PITH_UNARY_MINUS : PITH_UNARY_PLUS;
        if (!pith_parser_emit(parser, PITH_OPCODE_UNARY, (int32_t)op, 0)) return false;
    }
    return pith_parse_filters(parser, true);
}
