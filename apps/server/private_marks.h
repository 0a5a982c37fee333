/* SPDX-License-Identifier: Apache-2.0
 * What marks a request as private: words and expressions of a file. A file has one mark a line:
 *
 *     # a comment
 *     project heron            every text that holds these characters
 *     re:\<K-[0-9]{6}\>        a regular expression (mark_expression.h)
 *
 * Texts are compared in folded form (folded_text.h). What cannot be searched counts as marked. */
#ifndef PITH_APPS_SERVER_PRIVATE_MARKS_H
#define PITH_APPS_SERVER_PRIVATE_MARKS_H

#include "base/text.h"

#include <jansson.h>

enum { PITH_MARKS_MAX = 1024, PITH_MARKS_UNSEARCHED = -1 };

typedef struct pith_marks pith_marks;
/* text NULL: no words. NULL: a line is wrong, which the error names with `name`. */
pith_marks *pith_marks_new(const char *text, const char *name, pith_error *error);
void pith_marks_free(pith_marks *marks);
bool pith_marks_has_words(const pith_marks *marks);
/* The line of a mark that any text of the request holds, in whatever field, system prompts, calls
 * and results of tools included; 0: none; PITH_MARKS_UNSEARCHED: memory was short, it would take
 * too long, or something is no text. */
int pith_marks_find(const pith_marks *marks, json_t *request);

#endif
