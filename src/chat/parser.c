/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser's ground: the current token, failures, emitting and patching code.
 *
 * Invariants: the first failure stays and every function passes false on; `token` never moves past
 * END; an instruction carries the line of the token that is current when it is emitted.
 *
 * Read next: parse_statement.c (tags), parse_expression.c, parse_operators.c.
 */
#include "chat/parser.h"

#include "base/memory.h"
#include "chat/chat.h"

#include <stdarg.h>
#include <stdio.h>

bool pith_parser_fail(pith_parser *parser, const char *format, ...) {
    char text[160];
    va_list args;
    if (parser->status != PITH_OK) return false;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    parser->status =
        pith_fail(parser->error, PITH_ERROR_TEMPLATE, "line %u: %s", parser->token->line, text);
    return false;
}

bool pith_parser_no_memory(pith_parser *parser) {
    if (parser->status == PITH_OK) {
        parser->status = pith_fail_memory(parser->error, "a template",
                                          parser->program->n_code * sizeof(pith_instruction));
    }
    return false;
}

static const char *token_name(pith_token_kind kind) {
    static const char *const names[] = {
        [PITH_TOKEN_END] = "the end of the template",
        [PITH_TOKEN_DATA] = "text",
        [PITH_TOKEN_PRINT_BEGIN] = "'{{'",
        [PITH_TOKEN_PRINT_END] = "'}}'",
        [PITH_TOKEN_BLOCK_BEGIN] = "'{%'",
        [PITH_TOKEN_BLOCK_END] = "'%}'",
        [PITH_TOKEN_NAME] = "a name",
        [PITH_TOKEN_STRING] = "a string",
        [PITH_TOKEN_INT] = "an integer",
        [PITH_TOKEN_FLOAT] = "a number",
        [PITH_TOKEN_ASSIGN] = "'='",
        [PITH_TOKEN_COLON] = "':'",
        [PITH_TOKEN_PAREN_OPEN] = "'('",
        [PITH_TOKEN_PAREN_CLOSE] = "')'",
        [PITH_TOKEN_BRACKET_CLOSE] = "']'",
        [PITH_TOKEN_BRACE_CLOSE] = "'}'",
        [PITH_TOKEN_COMMA] = "','",
        [PITH_TOKEN_BRACE_OPEN] = "'{'",
    };
    return names[kind] != NULL ? names[kind] : "an operator";
}

bool pith_parser_fail_expected(pith_parser *parser, const char *expected) {
    const pith_token *token = parser->token;
    bool has_text = token->kind == PITH_TOKEN_NAME || token->kind >= PITH_TOKEN_INT;
    if (!has_text)
        return pith_parser_fail(parser, "expected %s, got %s", expected, token_name(token->kind));
    int size = token->text.size < 40 ? (int)token->text.size : 40;
    return pith_parser_fail(parser, "expected %s, got '%.*s'", expected, size, token->text.data);
}

bool pith_parser_enter(pith_parser *parser) {
    if (++parser->depth <= PITH_TEMPLATE_MAX_DEPTH) return true;
    return pith_parser_fail(parser, "more than %d levels of nesting", PITH_TEMPLATE_MAX_DEPTH);
}

/* ---- tokens ---- */

bool pith_parser_is(const pith_parser *parser, pith_token_kind kind) {
    return parser->token->kind == kind;
}

bool pith_parser_is_name(const pith_parser *parser, const char *name) {
    return parser->token->kind == PITH_TOKEN_NAME && pith_span_is(parser->token->text, name);
}

bool pith_parser_skip(pith_parser *parser, pith_token_kind kind) {
    if (parser->token->kind != kind) return false;
    if (kind != PITH_TOKEN_END) parser->token++;
    return true;
}

bool pith_parser_skip_name(pith_parser *parser, const char *name) {
    return pith_parser_is_name(parser, name) && pith_parser_skip(parser, PITH_TOKEN_NAME);
}

bool pith_parser_expect(pith_parser *parser, pith_token_kind kind) {
    return pith_parser_skip(parser, kind) || pith_parser_fail_expected(parser, token_name(kind));
}

bool pith_parser_take_name(pith_parser *parser, pith_span *name) {
    *name = parser->token->text;
    return pith_parser_expect(parser, PITH_TOKEN_NAME);
}

/* ---- code ---- */

int32_t pith_parser_here(const pith_parser *parser) {
    return (int32_t)parser->program->n_code;
}

bool pith_parser_emit(pith_parser *parser, pith_opcode op, int32_t a, int32_t b) {
    pith_instruction instruction = {.op = (uint8_t)op, .a = a, .b = b, .line = parser->token->line};
    return pith_program_emit(parser->program, instruction) >= 0 || pith_parser_no_memory(parser);
}

bool pith_parser_emit_const(pith_parser *parser, pith_value value) {
    int32_t number = pith_program_constant(parser->program, value);
    if (number < 0) return pith_parser_no_memory(parser);
    return pith_parser_emit(parser, PITH_OPCODE_CONST, number, 0);
}

bool pith_parser_constant(pith_parser *parser, pith_span text, int32_t *number) {
    pith_string *string = pith_string_borrow(&parser->program->heap, text.data, text.size, false);
    if (string == NULL) return pith_parser_no_memory(parser);
    *number = pith_program_constant(parser->program, pith_value_string(string));
    return *number >= 0 || pith_parser_no_memory(parser);
}

bool pith_parser_emit_string(pith_parser *parser, pith_span text) {
    int32_t number;
    return pith_parser_constant(parser, text, &number) &&
           pith_parser_emit(parser, PITH_OPCODE_CONST, number, 0);
}

bool pith_parser_symbol(pith_parser *parser, pith_span name, int32_t *symbol) {
    *symbol = pith_program_symbol(parser->program, name);
    return *symbol >= 0 || pith_parser_no_memory(parser);
}

void pith_parser_patch(pith_parser *parser, int32_t from) {
    parser->program->code[from].a = pith_parser_here(parser) - from - 1;
}

bool pith_parser_emit_chained(pith_parser *parser, pith_opcode op, int32_t *chain) {
    if (!pith_parser_emit(parser, op, *chain, 0)) return false;
    *chain = pith_parser_here(parser) - 1;
    return true;
}

void pith_parser_patch_chain(pith_parser *parser, int32_t chain) {
    while (chain >= 0) {
        int32_t before = parser->program->code[chain].a;
        pith_parser_patch(parser, chain);
        chain = before;
    }
}

bool pith_parser_emit_back(pith_parser *parser, int32_t target) {
    return pith_parser_emit(parser, PITH_OPCODE_JUMP, target - pith_parser_here(parser) - 1, 0);
}

pith_status pith_parser_run(const pith_tokens *tokens, pith_program *program, pith_error *error) {
    pith_parser parser = {
        .program = program, .token = tokens->items, .call_at = -1, .error = error};
    if (pith_parse_body(&parser, NULL)) pith_parser_emit(&parser, PITH_OPCODE_HALT, 0, 0);
    pith_free(parser.pending);
    pith_free(parser.targets);
    return parser.status;
}
