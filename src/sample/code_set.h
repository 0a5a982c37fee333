/* SPDX-License-Identifier: Apache-2.0
 * Sets of code points: sorted ranges that neither overlap nor touch. Surrogates are never members.
 * Like pith_buffer a set remembers a failed allocation, to be checked once.
 * Read next: code_set.c; unicode_property.c fills sets with \p{...}. */
#ifndef PITH_SAMPLE_CODE_SET_H
#define PITH_SAMPLE_CODE_SET_H

#include "sample/grammar.h"

enum { PITH_CODE_LAST = 0x10FFFF };

/* Zero-initialised is empty. */
typedef struct pith_code_set {
    pith_code_range *ranges; /* [n] */
    size_t n, capacity;
    bool failed; /* an allocation failed: later changes do nothing */
} pith_code_set;

void pith_code_set_deinit(pith_code_set *set);
/* Appends, in any order; pith_code_set_settle brings the ranges into their sorted form. */
void pith_code_set_add(pith_code_set *set, uint32_t first, uint32_t last);
void pith_code_set_add_all(pith_code_set *set, const pith_code_set *other);
void pith_code_set_settle(pith_code_set *set);
/* What is not in the (settled) set; the result is settled. */
void pith_code_set_negate(pith_code_set *set);
bool pith_code_set_has(const pith_code_set *set, uint32_t code); /* settled */
bool pith_code_set_equal(const pith_code_set *a, const pith_code_set *b);

/* The classes that ECMA-262 writes \d \w \s (and their negations \D \W \S) and the dot; added to
 * the set. false: there is no class of that letter. */
bool pith_code_set_add_class(pith_code_set *set, char letter);
/* \p{name}, name without braces: general categories in short or long form, Script=Name, a few
 * binary properties, ASCII. PITH_ERROR_UNSUPPORTED where there is no such property. Not settled. */
pith_status pith_code_set_add_property(pith_code_set *set, pith_span name, pith_error *error);

#endif
