/* SPDX-License-Identifier: Apache-2.0
 * Regular expressions of private_marks.h: PCRE2's over folded texts (folded_text.h), and \< and \>
 * for a word's edges. Their time is bounded: what takes more counts as found. */
#ifndef PITH_APPS_SERVER_MARK_EXPRESSION_H
#define PITH_APPS_SERVER_MARK_EXPRESSION_H

#include "base/text.h"

typedef struct pith_mark_expression pith_mark_expression;

enum { PITH_MARK_EXPRESSION_REASON = 120 };
/* NULL: it is wrong, or memory is short; `reason` says which. */
pith_mark_expression *pith_mark_expression_new(const char *text,
                                               char reason[PITH_MARK_EXPRESSION_REASON]);
void pith_mark_expression_free(pith_mark_expression *expression);

typedef enum pith_mark_found {
    PITH_MARK_NOT_FOUND,
    PITH_MARK_FOUND,
    PITH_MARK_TOO_LONG /* *steps are used up, or memory is short */
} pith_mark_found;
/* Looks in a folded text. steps: what the search may still take, of one item of an expression each;
 * less by what it took. */
pith_mark_found pith_mark_expression_find(const pith_mark_expression *expression, pith_span text,
                                          uint64_t *steps);

#endif
