/* SPDX-License-Identifier: Apache-2.0
 * Regular expressions as trees. The subset of ECMA-262 (flag u, with the leniency of its annex B)
 * that describes regular languages: what looks around, back or at word borders is refused.
 *
 *   text --regex_parse.c--> tree --regex.c-------> grammar nodes (counters stay counters)
 *                            |
 *                            +--automaton_make.c--> automaton (automaton.h: products, differences)
 *
 * A tree is an array in which children stand before their parents and the nodes below one node are
 * neighbours, so every walk is one loop and no recursion:
 *
 *   a(b|c)+     [a] [b] [c] [choice 1 2] [repeat 3, 1..] [sequence 0 4]
 */
#ifndef PITH_SAMPLE_REGEX_H
#define PITH_SAMPLE_REGEX_H

#include "sample/code_set.h"

typedef enum pith_regex_kind {
    PITH_REGEX_SET,      /* one code point of sets[set] */
    PITH_REGEX_SEQUENCE, /* the children one after another; without children: the empty text */
    PITH_REGEX_CHOICE,   /* one of the children, at least one */
    PITH_REGEX_REPEAT,   /* the one child, min to max times */
    PITH_REGEX_START,    /* ^ */
    PITH_REGEX_END       /* $ */
} pith_regex_kind;

enum { PITH_REGEX_NONE = UINT32_MAX };

typedef struct pith_regex_node {
    pith_regex_kind kind;
    uint32_t child;    /* the first one, or PITH_REGEX_NONE */
    uint32_t next;     /* the next child of the same parent, or PITH_REGEX_NONE */
    uint32_t min, max; /* max PITH_GRAMMAR_UNBOUNDED: any number */
    uint32_t set;
    uint32_t offset; /* byte of the source text, for messages */
} pith_regex_node;

/* Zero-initialised may be deinitialised. */
typedef struct pith_regex {
    pith_regex_node *nodes; /* [n]; the last one is the root */
    uint32_t n, capacity;
    pith_code_set *sets; /* [n_sets], settled, each once */
    uint32_t n_sets, set_capacity;
} pith_regex;

/* Errors name the offset. On failure the tree is empty. */
pith_status pith_regex_parse(pith_span text, pith_regex *out, pith_error *error);
void pith_regex_deinit(pith_regex *regex);
/* The tree of one literal of the texts (each of code points); false without memory. */
pith_status pith_regex_of_literals(const pith_span *texts, size_t n, pith_regex *out,
                                   pith_error *error);

/* What a code point is written as. */
typedef struct pith_regex_writer {
    pith_grammar_node (*set)(void *user, const pith_code_set *set);
    void *user;
} pith_regex_writer;

/* The nodes of the texts that match as a whole; ^ and $ may stand at their ends only.
 * PITH_ERROR_UNSUPPORTED where they stand elsewhere. *out is 0 when the builder failed. */
pith_status pith_regex_emit(const pith_regex *regex, pith_grammar_builder *builder,
                            const pith_regex_writer *writer, pith_grammar_node *out,
                            pith_error *error);
/* Is it written as ^...$, or as a choice of such? Then searching is matching as a whole. */
bool pith_regex_is_anchored(const pith_regex *regex);

#endif
