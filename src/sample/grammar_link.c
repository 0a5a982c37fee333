/* SPDX-License-Identifier: Apache-2.0
 * The finished states of a grammar: jumps are followed, calls at the end of a rule become jumps,
 * alternatives that begin with different bytes become one state, and bytes that no edge tells apart
 * become one class. Also owns the grammar's life: sharing and dropping.
 *
 * Invariant: none of it changes which texts are allowed. Read next: matcher_step.c, which runs the
 * states. */
#include "sample/grammar_compile.h"

#include "base/memory.h"

#include <stdlib.h>

uint32_t pith_grammar_target(const pith_grammar *grammar, const pith_state *state, uint8_t byte) {
    const pith_edge *edges = grammar->edges + state->a;
    uint32_t low = 0, high = state->b;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (edges[middle].last < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low < state->b && edges[low].first <= byte ? edges[low].target : PITH_GRAMMAR_NOWHERE;
}

/* Where a chain of jumps ends; the chain is shortened, so that long ones are gone through once. No
 * chain is a circle: a repetition has a way out. */
static uint32_t follow(const pith_grammar *g, uint32_t state) {
    uint32_t end = state;
    while (g->states[end].kind == PITH_STATE_SPLIT && g->states[end].b == 1)
        end = g->targets[g->states[end].a];
    while (state != end) {
        uint32_t *target = &g->targets[g->states[state].a];
        state = *target;
        *target = end;
    }
    return end;
}

static void follow_jumps(pith_grammar *g) {
    g->start = follow(g, g->start);
    for (uint32_t i = 0; i < g->n_targets; i++) g->targets[i] = follow(g, g->targets[i]);
    for (uint32_t i = 0; i < g->n_edges; i++) g->edges[i].target = follow(g, g->edges[i].target);
    for (uint32_t i = 0; i < g->n_loops; i++) {
        g->loops[i].body = follow(g, g->loops[i].body);
        g->loops[i].out = follow(g, g->loops[i].out);
    }
    for (uint32_t i = 0; i < g->n_states; i++) {
        pith_state *state = &g->states[i];
        if (state->kind == PITH_STATE_CALL) state->a = follow(g, state->a);
        if (state->kind == PITH_STATE_CALL || state->kind == PITH_STATE_TOKEN)
            state->b = follow(g, state->b);
    }
}

static void cut_last_calls(pith_emitter *e) {
    pith_grammar *g = e->grammar;
    for (uint32_t i = 0; i < g->n_states; i++) {
        const pith_state state = g->states[i];
        if (state.kind == PITH_STATE_CALL && g->states[state.b].kind == PITH_STATE_RETURN)
            pith_emit_split(e, i, &state.a, 1);
    }
}

static int by_first(const void *a, const void *b) {
    const pith_edge *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Edges of all EDGES among the targets, when no byte has two. */
static uint32_t joined_edges(const pith_grammar *g, const pith_state *split, pith_edge *out) {
    uint32_t n = 0, n_states = 0;
    for (uint32_t i = 0; i < split->b; i++) {
        const pith_state *state = &g->states[g->targets[split->a + i]];
        if (state->kind != PITH_STATE_EDGES) continue;
        if (n + state->b > 256) return 0;
        for (uint32_t k = 0; k < state->b; k++) out[n++] = g->edges[state->a + k];
        n_states++;
    }
    if (n_states < 2) return 0;
    qsort(out, n, sizeof *out, by_first);
    for (uint32_t i = 1; i < n; i++)
        if (out[i].first <= out[i - 1].last) return 0;
    return n;
}

static void join_alternatives(pith_emitter *e) {
    pith_grammar *g = e->grammar;
    for (uint32_t i = g->n_states; i-- > 0;) {
        const pith_state split = g->states[i];
        pith_edge edges[256];
        if (split.kind != PITH_STATE_SPLIT) continue;
        uint32_t n = joined_edges(g, &split, edges);
        if (n == 0) continue;
        uint32_t n_others = 0;
        for (uint32_t k = 0; k < split.b; k++) {
            uint32_t target = g->targets[split.a + k];
            if (g->states[target].kind != PITH_STATE_EDGES)
                g->targets[split.a + n_others++] = target;
        }
        if (n_others == 0) {
            pith_emit_edges(e, i, edges, n);
            continue;
        }
        uint32_t joined = pith_emit_state(e);
        pith_emit_edges(e, joined, edges, n);
        if (e->status != PITH_OK) return;
        g->targets[split.a + n_others++] = joined;
        g->states[i].b = n_others;
    }
}

static void find_classes(pith_grammar *g) {
    bool begins[257] = {true};
    for (uint32_t i = 0; i < g->n_edges; i++) {
        begins[g->edges[i].first] = true;
        begins[g->edges[i].last + 1] = true;
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        if (begins[byte]) g->byte_of[g->n_classes++] = (uint8_t)byte;
        g->class_of[byte] = (uint8_t)(g->n_classes - 1);
        g->class_size[g->n_classes - 1]++;
    }
}

void pith_grammar_link(pith_emitter *emitter) {
    follow_jumps(emitter->grammar);
    cut_last_calls(emitter);
    if (emitter->status == PITH_OK) follow_jumps(emitter->grammar);
    if (emitter->status == PITH_OK) join_alternatives(emitter);
    if (emitter->status == PITH_OK) find_classes(emitter->grammar);
}

pith_grammar *pith_grammar_share(const pith_grammar *grammar) {
    pith_grammar *shared = (pith_grammar *)(uintptr_t)grammar; /* the count alone changes */
    atomic_fetch_add_explicit(&shared->n_owners, 1, memory_order_relaxed);
    return shared;
}

void pith_grammar_drop(pith_grammar *grammar) {
    if (grammar == NULL) return;
    if (atomic_fetch_sub_explicit(&grammar->n_owners, 1, memory_order_acq_rel) > 1) return;
    pith_free(grammar->states);
    pith_free(grammar->edges);
    pith_free(grammar->targets);
    pith_free(grammar->loops);
    pith_free(grammar);
}
