/* SPDX-License-Identifier: Apache-2.0
 * Parts of a grammar: which states run with the same top of the stack, and where it goes on after
 * each part. Tables (matcher_table.c) know only the top: which bytes may follow a part in any
 * surroundings keeps them small.
 *
 * One walk from the root over all states, with a list of what is still to be seen. A state that two
 * parts come to (a call at the end of a rule became a jump) belongs to the first; the second's
 * surroundings are then added to the first's, which is more than there is, never less. Read next:
 * matcher_table.c. */
#include "sample/grammar_compile.h"

#include "base/memory.h"

#include <string.h>

typedef struct entry {
    uint32_t part; /* whose site it is */
    pith_grammar_site site;
} entry;

typedef struct part_finder {
    pith_emitter *emitter;
    pith_grammar *g;
    uint32_t *todo; /* [n_states] */
    uint32_t n_todo;
    entry *entries;
    uint32_t n_entries, capacity;
} part_finder;

static void add_site(part_finder *f, uint32_t part, pith_grammar_site site) {
    void *grown = pith_grammar_grow(f->entries, &f->capacity, sizeof *f->entries, f->n_entries + 1);
    if (grown == NULL) {
        pith_emit_fail_memory(f->emitter);
        return;
    }
    f->entries = grown;
    f->entries[f->n_entries++] = (entry){part, site};
}

static void own(part_finder *f, uint32_t state, uint32_t part) {
    f->g->states[state].part = part;
    f->todo[f->n_todo++] = state;
}

/* The part goes on at the state. */
static void flow(part_finder *f, uint32_t state, uint32_t part) {
    uint32_t other = f->g->states[state].part;
    if (state == 0) return; /* DONE belongs to none */
    if (other == PITH_GRAMMAR_NOWHERE)
        own(f, state, part);
    else if (other != part)
        add_site(f, other, (pith_grammar_site){PITH_GRAMMAR_NOWHERE, part, false});
}

/* The part uses the one that begins at `start`, and then goes on at `next`. */
static void use_part(part_finder *f, uint32_t start, uint32_t next, uint32_t part) {
    if (f->g->states[start].part == PITH_GRAMMAR_NOWHERE) own(f, start, f->g->n_parts++);
    add_site(f, f->g->states[start].part, (pith_grammar_site){next, part, false});
    flow(f, next, part);
}

static void see(part_finder *f, uint32_t number) {
    const pith_grammar *g = f->g;
    const pith_state state = g->states[number];
    switch ((pith_state_kind)state.kind) {
    case PITH_STATE_EDGES:
        for (uint32_t i = 0; i < state.b; i++) flow(f, g->edges[state.a + i].target, state.part);
        break;
    case PITH_STATE_SPLIT:
        for (uint32_t i = 0; i < state.b; i++) flow(f, g->targets[state.a + i], state.part);
        break;
    case PITH_STATE_TOKEN: flow(f, state.b, state.part); break;
    case PITH_STATE_CALL: use_part(f, state.a, state.b, state.part); break;
    case PITH_STATE_ENTER:
        use_part(f, g->bodies[g->loops[state.a].body].start, g->loops[state.a].out, state.part);
        break;
    case PITH_STATE_DONE:
    case PITH_STATE_RETURN:
    case PITH_STATE_AGAIN: break;
    }
}

static bool keep_sites(part_finder *f) {
    pith_grammar *g = f->g;
    g->n_sites = f->n_entries;
    g->sites = pith_alloc_array(f->n_entries, sizeof *g->sites);
    g->part_sites = pith_alloc_zero((size_t)g->n_parts + 2, sizeof *g->part_sites);
    if (g->sites == NULL || g->part_sites == NULL) return false;
    uint32_t *at = g->part_sites; /* counts lie two places on: filling moves them into place */
    for (uint32_t i = 0; i < f->n_entries; i++) at[f->entries[i].part + 2]++;
    for (uint32_t i = 0; i < g->n_parts; i++) at[i + 1] += at[i];
    for (uint32_t i = 0; i < f->n_entries; i++)
        g->sites[at[f->entries[i].part + 1]++] = f->entries[i].site;
    return true;
}

void pith_grammar_find_parts(pith_emitter *emitter) {
    pith_grammar *g = emitter->grammar;
    part_finder f = {.emitter = emitter, .g = g};
    for (uint32_t i = 0; i < g->n_states; i++) g->states[i].part = PITH_GRAMMAR_NOWHERE;
    f.todo = pith_alloc_array(g->n_states, sizeof *f.todo);
    if (f.todo == NULL) {
        pith_emit_fail_memory(emitter);
        return;
    }
    flow(&f, g->start, g->n_parts++);
    while (f.n_todo > 0 && emitter->status == PITH_OK) see(&f, f.todo[--f.n_todo]);
    for (uint32_t i = 0; i < g->n_bodies; i++) {
        uint32_t start = g->bodies[i].start, part = g->states[start].part;
        if (part != PITH_GRAMMAR_NOWHERE)
            add_site(&f, part, (pith_grammar_site){start, part, true});
    }
    if (emitter->status == PITH_OK && !keep_sites(&f)) pith_emit_fail_memory(emitter);
    pith_free(f.todo);
    pith_free(f.entries);
}
