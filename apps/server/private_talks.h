/* SPDX-License-Identifier: Apache-2.0
 * Talks that were marked private: known again without their mark, and without keeping their texts.
 */
#ifndef PITH_APPS_SERVER_PRIVATE_TALKS_H
#define PITH_APPS_SERVER_PRIVATE_TALKS_H

#include <jansson.h>
#include <stdbool.h>

/* At least so many digests of what was marked last are known. */
enum { PITH_TALKS_REMEMBERED = 8192 };

typedef struct pith_talks pith_talks;
pith_talks *pith_talks_new(void); /* NULL: memory is short */
void pith_talks_free(pith_talks *talks);

/* From any thread. What a request says, its messages or its prompt, is remembered as digests. */
void pith_talks_remember(pith_talks *talks, const json_t *request);
/* Whether a request goes on with a talk that was marked, or holds one of its longer messages; also
 * where memory is short. How a message is wrapped, in parts or not, in which case and with which
 * white space, does not matter. */
bool pith_talks_knows(pith_talks *talks, const json_t *request);

#endif
