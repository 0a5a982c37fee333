/* SPDX-License-Identifier: Apache-2.0
 * The arguments of calls, filters and tests. */
#ifndef PITH_CHAT_PARSE_ARGUMENTS_H
#define PITH_CHAT_PARSE_ARGUMENTS_H

#include "chat/parser.h"

typedef struct pith_arguments { /* what lies on the stack */
    int32_t n, n_keywords;
    uint8_t flags; /* enum pith_call_flag */
} pith_arguments;

/* From `(` to behind `)`. */
bool pith_parse_arguments(pith_parser *parser, pith_arguments *arguments);
/* Arguments and the call of what lies below them. */
bool pith_parse_call_on_stack(pith_parser *parser);

#endif
