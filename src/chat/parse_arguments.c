/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading `(a, b, key=c, *more, key=d, **keys)`.
 *
 * On the machine's stack: the values in order, then for each keyword its name and its value, then
 * *more, then **keys. The code of a keyword that stands behind *more is moved before it.
 */
#include "chat/parse_arguments.h"

/* Which kinds of argument have been seen: they must come in this order, but for keywords behind *.
 */
typedef enum argument_stage { POSITIONAL, KEYWORDS, STAR, DOUBLE_STAR } argument_stage;

typedef struct argument_reading {
    pith_arguments *arguments;
    argument_stage at;
    int32_t star; /* where the code of *more begins */
} argument_reading;

static bool parse_starred(pith_parser *parser, argument_reading *reading, argument_stage kind) {
    if (reading->at >= kind) {
        return pith_parser_fail(parser, "the arguments of a call are in the wrong order");
    }
    reading->at = kind;
    reading->arguments->flags |= kind == STAR ? PITH_CALL_STAR : PITH_CALL_DOUBLE_STAR;
    if (kind == STAR) reading->star = pith_parser_here(parser);
    parser->token++;
    return pith_parse_expression(parser);
}

static bool parse_keyword(pith_parser *parser, argument_reading *reading) {
    pith_span name;
    int32_t from = pith_parser_here(parser);
    if (reading->at == DOUBLE_STAR) {
        return pith_parser_fail(parser, "keyword arguments must come before **");
    }
    reading->arguments->n_keywords++;
    if (!pith_parser_take_name(parser, &name) || !pith_parser_emit_string(parser, name)) {
        return false;
    }
    parser->token++; /* the = */
    if (!pith_parse_expression(parser)) return false;
    if (reading->at == STAR) {
        int32_t size = pith_parser_here(parser) - from;
        if (!pith_parser_swap(parser, reading->star, from)) return false;
        reading->star += size;
    } else {
        reading->at = KEYWORDS;
    }
    return true;
}

static bool parse_argument(pith_parser *parser, argument_reading *reading) {
    if (pith_parser_is(parser, PITH_TOKEN_MULTIPLY)) return parse_starred(parser, reading, STAR);
    if (pith_parser_is(parser, PITH_TOKEN_POWER)) {
        return parse_starred(parser, reading, DOUBLE_STAR);
    }
    if (pith_parser_is(parser, PITH_TOKEN_NAME) && parser->token[1].kind == PITH_TOKEN_ASSIGN) {
        return parse_keyword(parser, reading);
    }
    if (reading->at != POSITIONAL) {
        return pith_parser_fail(parser, "an argument without a name follows one with a name");
    }
    reading->arguments->n++;
    return pith_parse_expression(parser);
}

bool pith_parse_arguments(pith_parser *parser, pith_arguments *arguments) {
    argument_reading reading = {.arguments = arguments};
    bool is_first = true;
    *arguments = (pith_arguments){0};
    if (!pith_parser_expect(parser, PITH_TOKEN_PAREN_OPEN)) return false;
    for (; !pith_parser_skip(parser, PITH_TOKEN_PAREN_CLOSE); is_first = false) {
        if (!is_first) {
            if (!pith_parser_expect(parser, PITH_TOKEN_COMMA)) return false;
            if (pith_parser_skip(parser, PITH_TOKEN_PAREN_CLOSE)) break;
        }
        if (!parse_argument(parser, &reading)) return false;
    }
    return true;
}

bool pith_parse_call_on_stack(pith_parser *parser) {
    pith_arguments arguments;
    if (!pith_parse_arguments(parser, &arguments)) return false;
    if (!pith_parser_emit(parser, PITH_OPCODE_CALL, arguments.n, arguments.n_keywords))
        return false;
    parser->call_at = pith_parser_here(parser) - 1;
    parser->program->code[parser->call_at].flags = arguments.flags;
    return true;
}
