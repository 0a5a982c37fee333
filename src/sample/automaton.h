/* SPDX-License-Identifier: Apache-2.0
 * Deterministic automata over code points: what JSON schema needs where one expression is not
 * enough (several patterns at once, a pattern with lengths, every key but these, not that).
 *
 *   trees --alphabet--> classes of code points that all of them treat alike
 *   tree, alphabet --automaton_make.c--> automaton --combine, bound--> automaton --json_text.c-->
 *   grammar
 *
 * Automata over the same alphabet can be combined. State 0 is the dead one; every other state can
 * still reach an accepting one. Limits hold on states, cells and work. */
#ifndef PITH_SAMPLE_AUTOMATON_H
#define PITH_SAMPLE_AUTOMATON_H

#include "sample/regex.h"

enum {
    PITH_AUTOMATON_MAX_STATES = 1 << 14,
    PITH_AUTOMATON_MAX_CELLS = 1 << 22,
    PITH_AUTOMATON_MAX_STEPS = 1 << 23 /* of making one */
};

/* Zero-initialised may be deinitialised. */
typedef struct pith_alphabet {
    pith_code_range *ranges; /* [n_ranges] all code points but surrogates, in order */
    uint32_t *class_of;      /* [n_ranges] */
    size_t n_ranges;
    uint32_t n_classes;
} pith_alphabet;

typedef struct pith_automaton {
    uint32_t n_states, n_classes;
    uint32_t start; /* 0: nothing is accepted */
    uint32_t *next; /* [n_states, n_classes] */
    bool *accepts;  /* [n_states] */
    uint64_t steps; /* that making it took */
} pith_automaton;

typedef enum pith_automaton_rule {
    PITH_AUTOMATON_BOTH,    /* what a and b accept */
    PITH_AUTOMATON_EITHER,  /* what a or b accepts */
    PITH_AUTOMATON_WITHOUT, /* what a accepts and b does not */
} pith_automaton_rule;

pith_status pith_alphabet_of(const pith_regex *const *regexes, size_t n, pith_alphabet *out,
                             pith_error *error);
void pith_alphabet_deinit(pith_alphabet *alphabet);
uint32_t pith_alphabet_class(const pith_alphabet *alphabet, uint32_t code);

/* search: the texts that contain a match (^ and $ may stand anywhere), else those that match as a
 * whole. PITH_ERROR_LIMIT when it would become too large. The alphabet was made from the tree, with
 * others or alone. */
pith_status pith_automaton_of(const pith_regex *regex, const pith_alphabet *alphabet, bool search,
                              pith_automaton *out, pith_error *error);
/* Of every text. */
pith_status pith_automaton_of_all(const pith_alphabet *alphabet, pith_automaton *out,
                                  pith_error *error);
void pith_automaton_deinit(pith_automaton *automaton);
pith_status pith_automaton_combine(const pith_automaton *a, const pith_automaton *b,
                                   pith_automaton_rule rule, pith_automaton *out,
                                   pith_error *error);
/* Texts of min to max code points only; max PITH_GRAMMAR_UNBOUNDED. */
pith_status pith_automaton_bound(const pith_automaton *automaton, uint32_t min, uint32_t max,
                                 pith_automaton *out, pith_error *error);
/* Well-formed UTF-8. */
bool pith_automaton_accepts(const pith_automaton *automaton, const pith_alphabet *alphabet,
                            pith_span text);
/* Drops states that are not reached or reach nothing. For those who fill the cells themselves. */
pith_status pith_automaton_trim(pith_automaton *automaton, pith_error *error);

#endif
