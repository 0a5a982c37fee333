/* SPDX-License-Identifier: Apache-2.0
 * Inside of the reader of regular expressions: where it stands, and the parts that regex_class.c
 * reads. Functions that return false have set the status and the message. */
#ifndef PITH_SAMPLE_REGEX_PARSER_H
#define PITH_SAMPLE_REGEX_PARSER_H

#include "base/map.h"
#include "sample/regex.h"

typedef struct pith_regex_parser {
    pith_span text;
    size_t at; /* byte */
    pith_regex *regex;
    pith_map sets; /* ranges of a set -> its index in the tree */
    pith_error *error;
    pith_status status;
} pith_regex_parser;

/* Returns false. */
bool pith_regex_fail(pith_regex_parser *parser, pith_status status, size_t offset,
                     const char *what);
/* The character at parser->at, which is below the size. */
bool pith_regex_read_code(pith_regex_parser *parser, uint32_t *code);
/* A [class]; the set is not settled. */
bool pith_regex_read_class(pith_regex_parser *parser, pith_code_set *set);
/* A backslash and what follows: a code point, or members added to the set. */
bool pith_regex_read_escape(pith_regex_parser *parser, bool in_class, pith_code_set *set,
                            uint32_t *code, bool *is_code);

#endif
