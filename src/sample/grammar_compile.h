/* SPDX-License-Identifier: Apache-2.0
 * What compiling a grammar shares between its files (private to the sample room): the program that
 * grows, and the parts that need more than a state or two.
 *
 * Every part is written between two states that exist already: `start`, which it fills in, and
 * `next`, where its texts lead. Failures are kept in the emitter, so that callers check once.
 * Read next: grammar_compile.c (which part becomes what), grammar_emit.c, grammar_literals.c. */
#ifndef PITH_SAMPLE_GRAMMAR_COMPILE_H
#define PITH_SAMPLE_GRAMMAR_COMPILE_H

#include "sample/grammar_builder.h"

typedef struct pith_emitter {
    pith_grammar *grammar;
    uint32_t states_capacity, edges_capacity, targets_capacity, loops_capacity;
    pith_status status;
    pith_error *error; /* the caller's */
} pith_emitter;

/* A new state without meaning; 0 after a failure. */
uint32_t pith_emit_state(pith_emitter *emitter);
/* edges: sorted, apart. */
void pith_emit_edges(pith_emitter *emitter, uint32_t state, const pith_edge *edges, uint32_t n);
void pith_emit_split(pith_emitter *emitter, uint32_t state, const uint32_t *targets, uint32_t n);
uint32_t pith_emit_loop(pith_emitter *emitter, pith_grammar_loop loop);
/* false and the status for a failed allocation. */
bool pith_emit_fail_memory(pith_emitter *emitter);

void pith_emit_bytes(pith_emitter *emitter, uint32_t start, uint32_t next, const char *bytes,
                     uint32_t n);
void pith_emit_class(pith_emitter *emitter, uint32_t start, uint32_t next,
                     const pith_code_range *ranges, uint32_t n);
/* end: n bytes, n > 0. */
void pith_emit_until(pith_emitter *emitter, uint32_t start, uint32_t next, const char *end,
                     uint32_t n);

/* One alternative that begins with bytes: where it goes on behind them. */
typedef struct pith_literal {
    const char *bytes;
    uint32_t n; /* > 0 */
    uint32_t then;
} pith_literal;
/* All of them as one tree of bytes. list is sorted here. */
void pith_emit_literals(pith_emitter *emitter, uint32_t start, pith_literal *list, uint32_t n);

/* The last passes over the states. */
void pith_grammar_link(pith_emitter *emitter);

#endif
