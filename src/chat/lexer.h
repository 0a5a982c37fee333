/* SPDX-License-Identifier: Apache-2.0
 * Template text -> tokens, with Jinja's rules for white space around tags (trim_blocks,
 * lstrip_blocks, - and + signs). */
#ifndef PITH_CHAT_LEXER_H
#define PITH_CHAT_LEXER_H

#include "base/text.h"

typedef enum pith_token_kind {
    PITH_TOKEN_END, /* of the template */
    PITH_TOKEN_DATA,
    PITH_TOKEN_PRINT_BEGIN,
    PITH_TOKEN_PRINT_END,
    PITH_TOKEN_BLOCK_BEGIN,
    PITH_TOKEN_BLOCK_END,
    PITH_TOKEN_NAME,
    PITH_TOKEN_STRING, /* the span is between the quotes, escapes as written */
    PITH_TOKEN_INT,
    PITH_TOKEN_FLOAT,
    PITH_TOKEN_ADD,
    PITH_TOKEN_SUBTRACT,
    PITH_TOKEN_MULTIPLY,
    PITH_TOKEN_POWER,
    PITH_TOKEN_DIVIDE,
    PITH_TOKEN_FLOOR_DIVIDE,
    PITH_TOKEN_MODULO,
    PITH_TOKEN_TILDE,
    PITH_TOKEN_EQUAL,
    PITH_TOKEN_UNEQUAL,
    PITH_TOKEN_LESS,
    PITH_TOKEN_LESS_EQUAL,
    PITH_TOKEN_GREATER,
    PITH_TOKEN_GREATER_EQUAL,
    PITH_TOKEN_ASSIGN,
    PITH_TOKEN_DOT,
    PITH_TOKEN_COLON,
    PITH_TOKEN_PIPE,
    PITH_TOKEN_COMMA,
    PITH_TOKEN_SEMICOLON,
    PITH_TOKEN_PAREN_OPEN,
    PITH_TOKEN_PAREN_CLOSE,
    PITH_TOKEN_BRACKET_OPEN,
    PITH_TOKEN_BRACKET_CLOSE,
    PITH_TOKEN_BRACE_OPEN,
    PITH_TOKEN_BRACE_CLOSE
} pith_token_kind;

typedef struct pith_token {
    pith_token_kind kind;
    uint32_t line;
    pith_span text; /* into the source */
} pith_token;

typedef struct pith_tokens {
    pith_token *items; /* [n], the last one is END */
    size_t n, capacity;
} pith_tokens;

/* Newlines become \n and the last one is dropped: out holds at least source.size bytes; returns the
 * new size. */
size_t pith_lexer_normalize(pith_span source, char *out);
/* source is normalized and must outlive the tokens. */
pith_status pith_lexer_run(pith_span source, pith_tokens *out, pith_error *error);
void pith_tokens_deinit(pith_tokens *tokens);

#endif
