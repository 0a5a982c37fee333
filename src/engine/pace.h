/* SPDX-License-Identifier: Apache-2.0
 * How long steps take by their number of rows, learnt while running (private to the engine room).
 * Used where rows are a choice: how many guesses to check, how much of a prompt to read beside
 * replies. */
#ifndef PITH_ENGINE_PACE_H
#define PITH_ENGINE_PACE_H

#include <stdint.h>

enum { PITH_PACE_ROWS = 16 };

typedef struct pith_pace {
    double ns[PITH_PACE_ROWS + 1]; /* of steps of generated rows; 0: not seen */
    double row_ns;                 /* more for a row of a prompt; 0: not seen */
} pith_pace;

/* A step of n_made generated rows and n_read prompt rows took ns. */
void pith_pace_add(pith_pace *pace, uint32_t n_made, uint32_t n_read, double ns);
/* Expected time of n generated rows; 0 when nothing is known. */
double pith_pace_ns(const pith_pace *pace, uint32_t n);
/* Prompt rows that make a step of n_made rows take at most twice its time; at least `least`. */
uint32_t pith_pace_rows(const pith_pace *pace, uint32_t n_made, uint32_t least);

#endif
