/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading `(a, b, key=c, *more, **keys)`.
 *
 * On the machine's stack: the values in order, then for each keyword its name and its value, then
 * *more, then **keys. So keywords must stand before the starred ones here; Python would also take
 * them between.
 */
#include "chat/parse_arguments.h"

/* Which kinds of argument have been seen: they must come in this order. */
typedef enum stage { POSITIONAL, KEYWORDS, STAR, DOUBLE_STAR } stage;

static bool parse_starred(pith_parser *parser, pith_arguments *arguments, stage *at, stage kind) {
    if (*at >= kind)
        return pith_parser_fail(parser, "the arguments of a call are in the wrong order");
    *at = kind;
    arguments->flags |= kind == STAR ? PITH_CALL_STAR : PITH_CALL_DOUBLE_STAR;
    parser->token++;
    return pith_parse_expression(parser);
}

static bool parse_keyword(pith_parser *parser, pith_arguments *arguments, stage *at) {
    pith_span name;
    if (*at > KEYWORDS)
        return pith_parser_fail(parser, "keyword arguments must come before * and **");
    *at = KEYWORDS;
    arguments->n_keywords++;
    if (!pith_parser_take_name(parser, &name) || !pith_parser_emit_string(parser, name))
        return false;
    parser->token++; /* the = */
    return pith_parse_expression(parser);
}

static bool parse_argument(pith_parser *parser, pith_arguments *arguments, stage *at) {
    if (pith_parser_is(parser, PITH_TOKEN_MULTIPLY))
        return parse_starred(parser, arguments, at, STAR);
    if (pith_parser_is(parser, PITH_TOKEN_POWER))
        return parse_starred(parser, arguments, at, DOUBLE_STAR);
    if (pith_parser_is(parser, PITH_TOKEN_NAME) && parser->token[1].kind == PITH_TOKEN_ASSIGN) {
        return parse_keyword(parser, arguments, at);
    }
    if (*at != POSITIONAL)
        return pith_parser_fail(parser, "an argument without a name follows one with a name");
    arguments->n++;
    return pith_parse_expression(parser);
}

bool pith_parse_arguments(pith_parser *parser, pith_arguments *arguments) {
    stage at = POSITIONAL;
    bool is_first = true;
    *arguments = (pith_arguments){0};
    if (!pith_parser_expect(parser, PITH_TOKEN_PAREN_OPEN)) return false;
    for (; !pith_parser_skip(parser, PITH_TOKEN_PAREN_CLOSE); is_first = false) {
        if (!is_first) {
            if (!pith_parser_expect(parser, PITH_TOKEN_COMMA)) return false;
            if (pith_parser_skip(parser, PITH_TOKEN_PAREN_CLOSE)) break;
        }
        if (!parse_argument(parser, arguments, &at)) return false;
    }
    return true;
}

bool pith_parse_call_on_stack(pith_parser *parser) {
    pith_arguments arguments;
    if (!pith_parse_arguments(parser, &arguments)) return false;
    if (!pith_parser_emit(parser, PITH_OP_CALL, arguments.n, arguments.n_keywords)) return false;
    parser->call_at = pith_parser_here(parser) - 1;
    parser->program->code[parser->call_at].flags = arguments.flags;
    return true;
}
