/* SPDX-License-Identifier: Apache-2.0
 * Tokens -> program, in one pass: each construct emits its code while it is read.
 *
 * Where the language puts things in another order than they run, the parser moves finished code (a
 * if b else c) or jumps around it (filter blocks). Expressions are read with a stack of pending
 * operators, not by recursion through the levels of precedence; recursion follows only real nesting
 * (brackets, tags) and ends at PITH_TEMPLATE_MAX_DEPTH. */
#ifndef PITH_CHAT_PARSER_H
#define PITH_CHAT_PARSER_H

#include "chat/lexer.h"
#include "chat/program.h"

typedef struct pith_pending { /* an operator whose right side is being read */
    uint8_t precedence;
    uint8_t op;   /* pith_binary or pith_comparison */
    int32_t jump; /* `and`, `or`: the instruction to patch; comparison: a chain of them; else -1 */
    uint32_t line;
} pith_pending;

typedef struct pith_parser_loop pith_parser_loop;
struct pith_parser_loop { /* what break and continue refer to */
    int32_t next;         /* code position of LOOP_NEXT */
    int32_t breaks;       /* chain of jumps to patch */
};

typedef struct pith_parser_macro pith_parser_macro;
struct pith_parser_macro { /* the macro or call block that is being read */
    pith_parser_macro *outer;
    bool uses_caller, uses_varargs, uses_kwargs;
};

typedef struct pith_parser {
    pith_program *program;
    const pith_token *token; /* the current one; the last is END */
    size_t depth;
    size_t n_soft; /* inside of `if`: a missing filter matters only when it is reached */
    pith_parser_loop *loop;
    pith_parser_macro *macro;
    int32_t call_at;       /* the CALL that ended the last operand; -1: it ended otherwise */
    pith_pending *pending; /* [n_pending] */
    size_t n_pending, pending_capacity;
    pith_instruction *targets; /* [n_targets] code of targets that were read before their value */
    size_t n_targets, target_capacity;
    pith_error *error;
    pith_status status;
} pith_parser;

/* Compiles tokens into an initialised program. */
pith_status pith_parser_run(const pith_tokens *tokens, pith_program *program, pith_error *error);

/* ---- parser.c: moving on, emitting, failing --------------------------------------------------
 * All return false after a failure, which is recorded. */

bool pith_parser_fail(pith_parser *parser, const char *format, ...) PITH_PRINTF(2, 3);
bool pith_parser_no_memory(pith_parser *parser);
/* "expected X, got Y". */
bool pith_parser_fail_expected(pith_parser *parser, const char *expected);
bool pith_parser_enter(pith_parser *parser); /* one level deeper; undo with depth-- */
bool pith_parser_is(const pith_parser *parser, pith_token_kind kind);
bool pith_parser_is_name(const pith_parser *parser, const char *name);
bool pith_parser_skip(pith_parser *parser,
                      pith_token_kind kind); /* true when it was there and was skipped */
bool pith_parser_skip_name(pith_parser *parser, const char *name);
bool pith_parser_expect(pith_parser *parser, pith_token_kind kind);
/* A name's text, which is skipped. */
bool pith_parser_take_name(pith_parser *parser, pith_span *name);

int32_t pith_parser_here(const pith_parser *parser);
bool pith_parser_emit(pith_parser *parser, pith_opcode op, int32_t a, int32_t b);
bool pith_parser_emit_const(pith_parser *parser, pith_value value);
bool pith_parser_emit_string(pith_parser *parser, pith_span text);
bool pith_parser_constant(pith_parser *parser, pith_span text, int32_t *number);
bool pith_parser_symbol(pith_parser *parser, pith_span name, int32_t *symbol);
/* Makes the jump at `from` (field a) go to here. */
void pith_parser_patch(pith_parser *parser, int32_t from);
/* A chain of jumps to one place: each a holds the one before, -1 ends. */
bool pith_parser_emit_chained(pith_parser *parser, pith_opcode op, int32_t *chain);
void pith_parser_patch_chain(pith_parser *parser, int32_t chain);
bool pith_parser_emit_back(pith_parser *parser, int32_t target); /* JUMP to an earlier place */

/* ---- parse_operators.c, parse_expression.c ---- */

/* Swaps the code [from, middle) with [middle, here). Jumps are relative and stay inside of their
 * piece. */
bool pith_parser_swap(pith_parser *parser, int32_t from, int32_t middle);

enum pith_tuple_flag {
    PITH_TUPLE_PLAIN = 0,
    PITH_TUPLE_NO_CONDITION = 1 /* elements without `if ... else` (the head of a for tag) */
};
bool pith_parse_expression(pith_parser *parser);
bool pith_parse_operators(pith_parser *parser); /* an expression without `if ... else` */
bool pith_parse_operand(pith_parser *parser);
/* One expression, or several with commas, which make a tuple. */
bool pith_parse_tuple(pith_parser *parser, int flags);
/* name(args) filters, the value being on the stack. with_pipe: the first one follows a `|` too. */
bool pith_parse_filters(pith_parser *parser, bool with_pipe);

/* ---- parse_target.c ---- */

/* Reads `a`, `a, (b, c)`, `ns.x`; its code is kept behind parser->n_targets. */
bool pith_parse_target(pith_parser *parser, bool allows_field);
/* Emits the code from target `from` on and forgets it. */
bool pith_parser_emit_targets(pith_parser *parser, size_t from);

/* ---- parse_statement.c, parse_block.c, parse_loop.c ---- */

typedef bool pith_statement(pith_parser *parser);
/* Text and tags up to a tag whose name is one of `ends` (NULL: the end of the template), which is
 * the current token afterwards. */
bool pith_parse_body(pith_parser *parser, const char *const *ends);
bool pith_parse_end_tag(pith_parser *parser, const char *name); /* name and %} */
pith_statement pith_parse_for, pith_parse_break, pith_parse_continue;
pith_statement pith_parse_macro, pith_parse_call, pith_parse_filter_block, pith_parse_set,
    pith_parse_with;
pith_statement pith_parse_generation, pith_parse_named_block, pith_parse_autoescape;

#endif
