/* SPDX-License-Identifier: Apache-2.0
 * Which of several names was likely meant by one that is none of them: offer all, then ask best.
 *
 *     pith_cli_near near;
 *     pith_cli_near_init(&near, word, strlen(word));
 *     for each name: pith_cli_near_offer(&near, name);
 *     if (near.best) ...
 */
#ifndef PITH_APPS_PITH_NEAR_WORD_H
#define PITH_APPS_PITH_NEAR_WORD_H

#include "pith/cli.h"

#include <string.h>

enum { PITH_CLI_NEAR_LETTERS = 64 }; /* longer words are near to none */

typedef struct pith_cli_near {
    char letters[PITH_CLI_NEAR_LETTERS]; /* [n] of the word */
    size_t n;
    const char *best; /* of the names offered, as it was given; NULL: none is near */
    size_t best_cost;
} pith_cli_near;

void pith_cli_near_init(pith_cli_near *near, const char *word, size_t size);
void pith_cli_near_offer(pith_cli_near *near, const char *name);

#endif
