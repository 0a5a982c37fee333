/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions made of operators.
 *
 * Precedence from loose to tight (Jinja's, which differs from Python's: `~` binds tighter than `+`,
 * `**` is left associative and a sign binds tighter than it):
 *   if else | or | and | not | == != < <= > >= in, not in | + - | ~ | * / // % | ** | sign |
 *   filters, tests, postfix
 *
 * Operands are compiled as they are read. An operator waits on the parser's stack of pending ones
 * until an operator that binds no tighter, or the end of the expression, shows that its right side
 * is complete.
 *
 *   a or b and c < d < e      a  OR->1  b  AND->2  c  d  CHAIN->3  e  COMPARE  3: 2: 1:
 *
 * `a if b else c` runs b first: the code of a is moved behind that of b.
 */
#include "chat/parser.h"

#include "base/memory.h"
#include "chat/chat.h"

#include <string.h>

enum { OR = 1, AND, NOT, COMPARISON, SUM, CONCAT, PRODUCT, POWER };

static const struct infix {
    uint8_t kind, precedence, op;
} infixes[] = {
    {PITH_TOKEN_EQUAL, COMPARISON, PITH_COMPARISON_EQUAL},
    {PITH_TOKEN_UNEQUAL, COMPARISON, PITH_COMPARISON_UNEQUAL},
    {PITH_TOKEN_LESS, COMPARISON, PITH_COMPARISON_LESS},
    {PITH_TOKEN_LESS_EQUAL, COMPARISON, PITH_COMPARISON_LESS_EQUAL},
    {PITH_TOKEN_GREATER, COMPARISON, PITH_COMPARISON_GREATER},
    {PITH_TOKEN_GREATER_EQUAL, COMPARISON, PITH_COMPARISON_GREATER_EQUAL},
    {PITH_TOKEN_ADD, SUM, PITH_BINARY_ADD},
    {PITH_TOKEN_SUBTRACT, SUM, PITH_BINARY_SUBTRACT},
    {PITH_TOKEN_TILDE, CONCAT, PITH_BINARY_CONCAT},
    {PITH_TOKEN_MULTIPLY, PRODUCT, PITH_BINARY_MULTIPLY},
    {PITH_TOKEN_DIVIDE, PRODUCT, PITH_BINARY_DIVIDE},
    {PITH_TOKEN_FLOOR_DIVIDE, PRODUCT, PITH_BINARY_FLOOR_DIVIDE},
    {PITH_TOKEN_MODULO, PRODUCT, PITH_BINARY_MODULO},
    {PITH_TOKEN_POWER, POWER, PITH_BINARY_POWER},
};

/* The operator at the current token, which is skipped; false when there is none. */
static bool take_infix(pith_parser *parser, pith_pending *op) {
    *op = (pith_pending){.jump = -1, .line = parser->token->line};
    if (parser->token->kind == PITH_TOKEN_NAME) {
        bool negated = pith_parser_is_name(parser, "not") &&
                       parser->token[1].kind == PITH_TOKEN_NAME &&
                       pith_span_is(parser->token[1].text, "in");
        if (pith_parser_is_name(parser, "or")) {
            op->precedence = OR;
        } else if (pith_parser_is_name(parser, "and")) {
            op->precedence = AND;
        } else if (negated || pith_parser_is_name(parser, "in")) {
            op->precedence = COMPARISON;
            op->op = negated ? PITH_COMPARISON_NOT_IN : PITH_COMPARISON_IN;
        } else {
            return false;
        }
        parser->token += negated ? 2 : 1;
        return true;
    }
    for (size_t i = 0; i < sizeof infixes / sizeof *infixes; i++) {
        if (parser->token->kind != infixes[i].kind) continue;
        op->precedence = infixes[i].precedence;
        op->op = infixes[i].op;
        parser->token++;
        return true;
    }
    return false;
}

static bool push_pending(pith_parser *parser, pith_pending op) {
    if (parser->n_pending == parser->pending_capacity) {
        size_t capacity = parser->pending_capacity == 0 ? 16 : parser->pending_capacity * 2;
        pith_pending *pending = pith_realloc(parser->pending, capacity * sizeof *pending);
        if (pending == NULL) return pith_parser_no_memory(parser);
        parser->pending = pending;
        parser->pending_capacity = capacity;
    }
    parser->pending[parser->n_pending++] = op;
    return true;
}

/* The last pending operator has its right side: emits its code. */
static bool finish_pending(pith_parser *parser) {
    pith_pending op = parser->pending[--parser->n_pending];
    bool ok = true;
    switch (op.precedence) {
    case OR:
    case AND: pith_parser_patch(parser, op.jump); return true;
    case NOT: ok = pith_parser_emit(parser, PITH_OPCODE_UNARY, PITH_UNARY_NOT, 0); break;
    case COMPARISON:
        ok = pith_parser_emit(parser, PITH_OPCODE_COMPARE, op.op, 0);
        pith_parser_patch_chain(parser, op.jump);
        break;
    default: ok = pith_parser_emit(parser, PITH_OPCODE_BINARY, op.op, 0); break;
    }
    if (ok) parser->program->code[pith_parser_here(parser) - 1].line = op.line;
    return ok;
}

/* a < b < c: with `a < b` pending and b on the stack, c is compared only when a < b holds. */
static bool chain_comparison(pith_parser *parser, pith_pending next) {
    pith_pending *top = &parser->pending[parser->n_pending - 1];
    int32_t chain = top->jump;
    if (!pith_parser_emit_chained(parser, PITH_OPCODE_CHAIN, &chain)) return false;
    parser->program->code[chain].b = top->op;
    top->jump = chain;
    top->op = next.op;
    return true;
}

static bool add_infix(pith_parser *parser, pith_pending op, size_t base) {
    while (parser->n_pending > base) {
        uint8_t waiting = parser->pending[parser->n_pending - 1].precedence;
        if (waiting == COMPARISON && op.precedence == COMPARISON)
            return chain_comparison(parser, op);
        if (waiting < op.precedence) break;
        if (!finish_pending(parser)) return false;
    }
    if (op.precedence == OR || op.precedence == AND) {
        op.jump = pith_parser_here(parser);
        if (!pith_parser_emit(parser, op.precedence == OR ? PITH_OPCODE_OR : PITH_OPCODE_AND, 0, 0))
            return false;
    }
    return push_pending(parser, op);
}

bool pith_parse_operators(pith_parser *parser) {
    size_t base = parser->n_pending;
    for (;;) {
        while (pith_parser_is_name(parser, "not")) {
            if (parser->n_pending > base &&
                parser->pending[parser->n_pending - 1].precedence > NOT) {
                return pith_parser_fail_expected(parser, "an expression");
            }
            pith_pending op = {.precedence = NOT, .jump = -1, .line = parser->token->line};
            parser->token++;
            if (!push_pending(parser, op)) return false;
        }
        pith_pending op;
        if (!pith_parse_operand(parser)) return false;
        if (!take_infix(parser, &op)) break;
        if (!add_infix(parser, op, base)) return false;
    }
    while (parser->n_pending > base) {
        if (!finish_pending(parser)) return false;
    }
    return true;
}

bool pith_parser_swap(pith_parser *parser, int32_t from, int32_t middle) {
    pith_instruction *code = parser->program->code;
    size_t n_first = (size_t)(middle - from),
           n_second = (size_t)(pith_parser_here(parser) - middle);
    size_t n_saved = n_first < n_second ? n_first : n_second;
    pith_instruction *saved = pith_alloc_array(n_saved, sizeof *saved);
    if (saved == NULL) return pith_parser_no_memory(parser);
    if (n_first <= n_second) {
        memcpy(saved, code + from, n_saved * sizeof *saved);
        memmove(code + from, code + middle, n_second * sizeof *code);
        memcpy(code + from + n_second, saved, n_saved * sizeof *saved);
    } else {
        memcpy(saved, code + middle, n_saved * sizeof *saved);
        memmove(code + from + n_second, code + from, n_first * sizeof *code);
        memcpy(code + from, saved, n_saved * sizeof *saved);
    }
    pith_free(saved);
    return true;
}

/* The value of an `if` without `else` whose condition is false. */
static bool emit_no_else(pith_parser *parser) {
    int32_t number;
    pith_span text = pith_span_of("the condition of an inline 'if' is false and it has no 'else'");
    if (!pith_parser_constant(parser, text, &number)) return false;
    return pith_parser_emit(parser, PITH_OPCODE_UNDEFINED, number, 0);
}

/* Behind the value at [start, here) and the word `if`. Leaves the jump over the other value in
 * *ends. */
static bool parse_condition(pith_parser *parser, int32_t start, int32_t *ends) {
    int32_t middle = pith_parser_here(parser), size = middle - start;
    parser->n_soft++;
    if (!pith_parse_operators(parser) ||
        !pith_parser_emit(parser, PITH_OPCODE_JUMP_IF_FALSE, size + 1, 0))
        return false;
    parser->n_soft--;
    return pith_parser_swap(parser, start, middle) &&
           pith_parser_emit_chained(parser, PITH_OPCODE_JUMP, ends);
}

bool pith_parse_expression(pith_parser *parser) {
    int32_t start = pith_parser_here(parser), ends = -1;
    size_t soft = parser->n_soft;
    int n_conditions = 0;
    if (!pith_parser_enter(parser) || !pith_parse_operators(parser)) return false;
    while (pith_parser_skip_name(parser, "if")) {
        if (++n_conditions > PITH_TEMPLATE_MAX_DEPTH) {
            return pith_parser_fail(parser, "more than %d conditions in one expression",
                                    PITH_TEMPLATE_MAX_DEPTH);
        }
        int32_t end = -1;
        if (!parse_condition(parser, start, &end)) return false;
        if (pith_parser_skip_name(parser, "else")) {
            parser->program->code[end].a = ends; /* to the end of the whole */
            ends = end;
            parser->n_soft++;
            start = pith_parser_here(parser);
            if (!pith_parse_operators(parser)) return false;
        } else {
            if (!emit_no_else(parser)) return false;
            pith_parser_patch(parser, end);
        }
    }
    pith_parser_patch_chain(parser, ends);
    parser->n_soft = soft;
    parser->depth--;
    return true;
}
