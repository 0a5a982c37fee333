/* SPDX-License-Identifier: Apache-2.0
 * What marks a request as private: words and expressions of a file, and talks that were marked
 * before. A file has one mark a line:
 *
 *     # a comment
 *     project heron            every text that holds these characters
 *     re:\<K-[0-9]{6}\>        a POSIX extended regular expression
 *
 * Upper and lower case are the same (Latin, Greek, Cyrillic), any white space is one space,
 * invisible characters are none, full-width letters are plain ones. What cannot be searched counts
 * as marked. */
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
 * and results of tools included; 0: none; PITH_MARKS_UNSEARCHED: memory was short. */
int pith_marks_find(const pith_marks *marks, json_t *request);

/* ---- Talks that were marked (from any thread) ---- */
/* Remembers the messages of a request that is private. The oldest of some thousand are forgotten.
 */
void pith_marks_remember(pith_marks *marks, json_t *messages);
/* Whether a request goes on with a talk that was marked, or holds one of its longer messages. */
bool pith_marks_knows(pith_marks *marks, json_t *messages);

#endif
