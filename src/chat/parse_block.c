/* SPDX-License-Identifier: Apache-2.0
 *
 * Tags whose body is captured or run later: macro, call, filter, set.
 *
 *   macro m(a, b=1)   MACRO->o  IF_BOUND b->i  1  STORE b  i: body  RETURN  o: STORE m
 *   call(x) m(1)      m  1  MACRO->o  body  RETURN  o: CALL, with its caller  PRINT
 *   filter f | g      JUMP->b  f: f g  JUMP->o  b: CAPTURE body CAPTURE_END JUMP->f  o: PRINT
 *   set x | f         the same with STORE x at the end; without a filter nothing is jumped around
 *
 * A macro's body is a function of its own: break and continue do not reach the loop around it.
 */
#include "chat/parser.h"

#include "chat/parse_arguments.h"

/* A macro that is being read, and what the parser was in before. */
typedef struct macro_reading {
    pith_parser_macro names;
    pith_parser_loop *loop;
    int32_t number, begin;
} macro_reading;

static bool add_parameter(pith_parser *parser, int32_t number, pith_parameter parameter) {
    enum { MAX_PARAMETERS = 200 };
    pith_macro_code *macro = &parser->program->macros[number];
    if (macro->n_parameters == MAX_PARAMETERS) {
        return pith_parser_fail(parser, "a macro has more than %d parameters", MAX_PARAMETERS);
    }
    for (size_t i = 0; i < macro->n_parameters; i++) {
        if (macro->parameters[i].symbol == parameter.symbol) {
            return pith_parser_fail(parser, "a macro has two parameters of the same name");
        }
    }
    size_t n = macro->n_parameters;
    if ((n & (n - 1)) == 0) { /* full at 0, 1, 2, 4, ...: the heap has no realloc */
        pith_parameter *grown =
            pith_heap_array(&parser->program->heap, n == 0 ? 1 : n * 2, sizeof *grown);
        if (grown == NULL) return pith_parser_no_memory(parser);
        for (size_t i = 0; i < n; i++) grown[i] = macro->parameters[i];
        macro->parameters = grown;
    }
    macro->parameters[macro->n_parameters++] = parameter;
    return true;
}

/* The value that parameter `symbol` has when the call does not give it; behind the =. */
static bool parse_default(pith_parser *parser, int32_t symbol) {
    int32_t test = pith_parser_here(parser);
    if (!pith_parser_emit(parser, PITH_OPCODE_IF_BOUND, symbol, 0) ||
        !pith_parse_expression(parser) || !pith_parser_emit(parser, PITH_OPCODE_STORE, symbol, 0)) {
        return false;
    }
    parser->program->code[test].b = pith_parser_here(parser) - test - 1;
    return true;
}

/* Behind the opening bracket. */
static bool parse_parameters(pith_parser *parser, int32_t number) {
    bool is_first = true, had_default = false;
    for (; !pith_parser_skip(parser, PITH_TOKEN_PAREN_CLOSE); is_first = false) {
        pith_span name;
        pith_parameter parameter;
        if (!is_first) {
            if (!pith_parser_expect(parser, PITH_TOKEN_COMMA)) return false;
            if (pith_parser_skip(parser, PITH_TOKEN_PAREN_CLOSE)) break;
        }
        if (!pith_parser_take_name(parser, &name) ||
            !pith_parser_symbol(parser, name, &parameter.symbol))
            return false;
        parameter.has_default = pith_parser_skip(parser, PITH_TOKEN_ASSIGN);
        if (had_default && !parameter.has_default) {
            return pith_parser_fail(parser,
                                    "a parameter without a default follows one with a default");
        }
        had_default = parameter.has_default;
        if (!add_parameter(parser, number, parameter)) return false;
        if (parameter.has_default && !parse_default(parser, parameter.symbol)) return false;
    }
    return true;
}

static bool begin_macro(pith_parser *parser, pith_span name, macro_reading *reading) {
    pith_program *program = parser->program;
    const pith_string *string = pith_string_borrow(&program->heap, name.data, name.size, false);
    if (string == NULL) return pith_parser_no_memory(parser);
    *reading = (macro_reading){.names = {.outer = parser->macro}, .loop = parser->loop};
    reading->number = pith_program_macro(program, (pith_macro_code){.name = string});
    if (reading->number < 0) return pith_parser_no_memory(parser);
    reading->begin = pith_parser_here(parser);
    parser->macro = &reading->names;
    parser->loop = NULL;
    return pith_parser_emit(parser, PITH_OPCODE_MACRO, reading->number, 0);
}

static bool end_macro(pith_parser *parser, const macro_reading *reading) {
    if (!pith_parser_emit(parser, PITH_OPCODE_RETURN, 0, 0)) return false;
    pith_macro_code *macro = &parser->program->macros[reading->number];
    macro->uses_caller = reading->names.uses_caller;
    macro->uses_varargs = reading->names.uses_varargs;
    macro->uses_kwargs = reading->names.uses_kwargs;
    parser->program->code[reading->begin].b = pith_parser_here(parser) - reading->begin - 1;
    parser->macro = reading->names.outer;
    parser->loop = reading->loop;
    return true;
}

bool pith_parse_macro(pith_parser *parser) {
    static const char *const stops[] = {"endmacro", NULL};
    macro_reading reading;
    pith_span name;
    int32_t symbol;
    if (!pith_parser_take_name(parser, &name) || !pith_parser_symbol(parser, name, &symbol))
        return false;
    if (!begin_macro(parser, name, &reading) || !pith_parser_expect(parser, PITH_TOKEN_PAREN_OPEN))
        return false;
    if (!parse_parameters(parser, reading.number) ||
        !pith_parser_expect(parser, PITH_TOKEN_BLOCK_END))
        return false;
    if (!pith_parse_body(parser, stops) || !end_macro(parser, &reading)) return false;
    return pith_parser_emit(parser, PITH_OPCODE_STORE, symbol, 0) &&
           pith_parse_end_tag(parser, "endmacro");
}

/* The parameters of a call block, in brackets, stand before the call; they are read again behind
 * it. */
static const pith_token *skip_parameters(pith_parser *parser) {
    if (!pith_parser_is(parser, PITH_TOKEN_PAREN_OPEN)) return NULL;
    const pith_token *start = parser->token;
    int nesting = 0;
    do {
        nesting += pith_parser_is(parser, PITH_TOKEN_PAREN_OPEN);
        nesting -= pith_parser_is(parser, PITH_TOKEN_PAREN_CLOSE);
        if (pith_parser_is(parser, PITH_TOKEN_END))
            break; /* the lexer has balanced brackets: not reached */
        parser->token++;
    } while (nesting > 0);
    return start;
}

/* The macro that is the body of a call block. */
static bool parse_call_body(pith_parser *parser, const pith_token *parameters) {
    static const char *const stops[] = {"endcall", NULL};
    macro_reading reading;
    const pith_token *body = parser->token;
    if (!begin_macro(parser, pith_span_of("caller"), &reading)) return false;
    if (parameters != NULL) {
        parser->token = parameters + 1;
        if (!parse_parameters(parser, reading.number)) return false;
        parser->token = body;
    }
    return pith_parser_expect(parser, PITH_TOKEN_BLOCK_END) && pith_parse_body(parser, stops) &&
           end_macro(parser, &reading);
}

bool pith_parse_call(pith_parser *parser) {
    const pith_token *parameters = skip_parameters(parser);
    pith_program *program = parser->program;
    parser->call_at = -1;
    if (!pith_parse_operand(parser)) return false;
    if (parser->call_at < 0 || parser->call_at != pith_parser_here(parser) - 1) {
        return pith_parser_fail(parser, "a call block needs a call, as in {%% call m() %%}");
    }
    pith_instruction call = program->code[parser->call_at];
    program->n_code--; /* comes back behind the body */
    if (!parse_call_body(parser, parameters) ||
        !pith_parser_emit(parser, PITH_OPCODE_CALL, call.a, call.b))
        return false;
    program->code[program->n_code - 1].flags = call.flags | PITH_CALL_CALLER;
    program->code[program->n_code - 1].line = call.line;
    return pith_parser_emit(parser, PITH_OPCODE_PRINT, 0, 0) &&
           pith_parse_end_tag(parser, "endcall");
}

/* From the current token, which begins a filter (with_pipe: a `|` before one), up to the end tag.
 * Leaves the string. */
static bool parse_captured(pith_parser *parser, bool has_filter, bool with_pipe, const char *end) {
    const char *const stops[] = {end, NULL};
    int32_t to_body = pith_parser_here(parser), filters = 0, to_end = 0;
    if (has_filter) {
        if (!pith_parser_emit(parser, PITH_OPCODE_JUMP, 0, 0)) return false;
        filters = pith_parser_here(parser);
        if (!pith_parse_filters(parser, with_pipe)) return false;
        to_end = pith_parser_here(parser);
        if (!pith_parser_emit(parser, PITH_OPCODE_JUMP, 0, 0)) return false;
        pith_parser_patch(parser, to_body);
    }
    if (!pith_parser_expect(parser, PITH_TOKEN_BLOCK_END) ||
        !pith_parser_emit(parser, PITH_OPCODE_CAPTURE, 0, 0) || !pith_parse_body(parser, stops) ||
        !pith_parser_emit(parser, PITH_OPCODE_CAPTURE_END, 0, 0)) {
        return false;
    }
    if (has_filter) {
        if (!pith_parser_emit_back(parser, filters)) return false;
        pith_parser_patch(parser, to_end);
    }
    return pith_parser_skip_name(parser, end);
}

bool pith_parse_filter_block(pith_parser *parser) {
    return parse_captured(parser, true, false, "endfilter") &&
           pith_parser_emit(parser, PITH_OPCODE_PRINT, 0, 0) &&
           pith_parser_expect(parser, PITH_TOKEN_BLOCK_END);
}

bool pith_parse_set(pith_parser *parser) {
    size_t targets = parser->n_targets;
    if (!pith_parse_target(parser, true)) return false;
    if (pith_parser_skip(parser, PITH_TOKEN_ASSIGN)) {
        if (!pith_parse_tuple(parser, PITH_TUPLE_PLAIN)) return false;
    } else {
        bool has_filter = pith_parser_is(parser, PITH_TOKEN_PIPE);
        if (!parse_captured(parser, has_filter, true, "endset")) return false;
    }
    return pith_parser_emit_targets(parser, targets) &&
           pith_parser_expect(parser, PITH_TOKEN_BLOCK_END);
}
