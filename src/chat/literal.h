/* SPDX-License-Identifier: Apache-2.0
 * Strings and numbers written in a template. */
#ifndef PITH_CHAT_LITERAL_H
#define PITH_CHAT_LITERAL_H

#include "chat/parser.h"

bool pith_literal_string(pith_parser *parser); /* 'a' "b" stand for one string */
bool pith_literal_number(pith_parser *parser);

#endif
