/* SPDX-License-Identifier: Apache-2.0
 * A built grammar: states of a pushdown automaton over bytes (private to the sample room).
 *
 *   EDGES   bytes lead to other states        SPLIT  to several states without a byte
 *   CALL    pushes where to go on, goes to a part of the grammar that is used in several places
 *   RETURN  pops it                           DONE   the whole text is complete
 *   ENTER   pushes a counter of 0             AGAIN  one round more: counts, then repeats or leaves
 *
 * The stack holds return addresses and counters: nothing else is known about the text before. Every
 * state can be completed to a whole text (what cannot is left out when it is built), so that a text
 * is the start of an allowed one exactly when a state is left. Immutable, shared by an atomic
 * count of owners. Written by grammar_compile.c; read next: matcher_internal.h. */
#ifndef PITH_SAMPLE_GRAMMAR_PROGRAM_H
#define PITH_SAMPLE_GRAMMAR_PROGRAM_H

#include "sample/grammar.h"

#include <stdatomic.h>

enum {
    PITH_GRAMMAR_MAX_STATES = 1 << 21,
    PITH_GRAMMAR_MAX_EDGES = 1 << 22,
    PITH_GRAMMAR_MAX_UNTIL = 1024 /* bytes of the end of a pith_grammar_until */
};

typedef enum pith_state_kind {
    PITH_STATE_DONE, /* state 0 alone */
    PITH_STATE_EDGES,
    PITH_STATE_TOKEN, /* one whole token: id `a`, or with `negated` any other */
    PITH_STATE_SPLIT,
    PITH_STATE_CALL,
    PITH_STATE_RETURN,
    PITH_STATE_ENTER,
    PITH_STATE_AGAIN
} pith_state_kind;

typedef struct pith_state {
    uint8_t kind;    /* pith_state_kind */
    uint8_t n_bytes; /* EDGES: bytes that lead on, 255 for more */
    uint8_t negated; /* TOKEN */
    uint8_t unused;
    uint32_t a; /* EDGES, SPLIT: first of edges, of targets; CALL: where to; ENTER, AGAIN: loop */
    uint32_t b; /* EDGES, SPLIT: how many; CALL, TOKEN: the state after it */
} pith_state;

/* Edges of a state are sorted and do not overlap. */
typedef struct pith_edge {
    uint8_t first, last; /* bytes, both included */
    uint32_t target;
} pith_edge;

typedef struct pith_grammar_loop {
    uint32_t min, max;  /* rounds; max may be PITH_GRAMMAR_UNBOUNDED */
    uint32_t body, out; /* states: start of a round, after the last */
} pith_grammar_loop;

struct pith_grammar {
    _Atomic uint32_t n_owners;
    uint32_t start;
    uint32_t n_states, n_edges, n_targets, n_loops;
    pith_state *states;
    pith_edge *edges;
    uint32_t *targets;
    pith_grammar_loop *loops;
    bool has_tokens; /* some state is a TOKEN */
    /* Bytes that no edge tells apart are one class. */
    uint32_t n_classes;       /* 1..256 */
    uint8_t class_of[256];    /* byte -> class */
    uint8_t byte_of[256];     /* class -> its first byte */
    uint16_t class_size[256]; /* bytes of the class */
};

/* Where the byte leads from an EDGES state; PITH_GRAMMAR_NOWHERE: it does not. */
#define PITH_GRAMMAR_NOWHERE UINT32_MAX
uint32_t pith_grammar_target(const pith_grammar *grammar, const pith_state *state, uint8_t byte);

#endif
