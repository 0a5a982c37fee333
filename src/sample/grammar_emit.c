/* SPDX-License-Identifier: Apache-2.0
 * States for what reads bytes: literals, classes of characters, texts up to a mark.
 *
 *   class [a-zé]:  start --61..7A--> next       start --C3--> s --A9--> next
 *
 * A class reads well-formed UTF-8 alone: its ranges have no surrogates, and each code point has one
 * form, the shortest. A text up to a mark is the automaton of Knuth, Morris and Pratt: a state is
 * how much of the mark has just been read; the text may stop where the mark can be read without
 * appearing earlier. Read next: grammar_literals.c. */
#include "sample/grammar_compile.h"

#include "base/memory.h"

#include <string.h>

bool pith_emit_fail_memory(pith_emitter *emitter) {
    if (emitter->status == PITH_OK)
        emitter->status = pith_fail_memory(
            emitter->error, "a grammar", (uint64_t)emitter->grammar->n_states * sizeof(pith_state));
    return false;
}

static bool fail_limit(pith_emitter *e, const char *what, uint32_t limit) {
    if (e->status == PITH_OK)
        e->status = pith_fail(e->error, PITH_ERROR_LIMIT,
                              "grammar: it takes more than %u %s; make it smaller", limit, what);
    return false;
}

uint32_t pith_emit_state(pith_emitter *emitter) {
    pith_grammar *g = emitter->grammar;
    if (emitter->status != PITH_OK) return 0;
    if (g->n_states >= PITH_GRAMMAR_MAX_STATES)
        return fail_limit(emitter, "states", PITH_GRAMMAR_MAX_STATES);
    void *grown =
        pith_grammar_grow(g->states, &emitter->states_capacity, sizeof *g->states, g->n_states + 1);
    if (grown == NULL) return pith_emit_fail_memory(emitter);
    g->states = grown;
    g->states[g->n_states] = (pith_state){.kind = PITH_STATE_SPLIT};
    return g->n_states++;
}

void pith_emit_edges(pith_emitter *emitter, uint32_t state, const pith_edge *edges, uint32_t n) {
    pith_grammar *g = emitter->grammar;
    if (emitter->status != PITH_OK) return;
    if (n > PITH_GRAMMAR_MAX_EDGES - g->n_edges) {
        fail_limit(emitter, "edges", PITH_GRAMMAR_MAX_EDGES);
        return;
    }
    void *grown =
        pith_grammar_grow(g->edges, &emitter->edges_capacity, sizeof *g->edges, g->n_edges + n);
    if (grown == NULL) {
        pith_emit_fail_memory(emitter);
        return;
    }
    g->edges = grown;
    uint32_t n_bytes = 0;
    for (uint32_t i = 0; i < n; i++) n_bytes += (uint32_t)(edges[i].last - edges[i].first) + 1;
    memcpy(g->edges + g->n_edges, edges, n * sizeof *edges);
    g->states[state] = (pith_state){.kind = PITH_STATE_EDGES,
                                    .n_bytes = (uint8_t)(n_bytes < 255 ? n_bytes : 255),
                                    .a = g->n_edges,
                                    .b = n};
    g->n_edges += n;
}

void pith_emit_split(pith_emitter *emitter, uint32_t state, const uint32_t *targets, uint32_t n) {
    pith_grammar *g = emitter->grammar;
    if (emitter->status != PITH_OK) return;
    if (n > PITH_GRAMMAR_MAX_EDGES - g->n_targets) {
        fail_limit(emitter, "alternatives", PITH_GRAMMAR_MAX_EDGES);
        return;
    }
    void *grown = pith_grammar_grow(g->targets, &emitter->targets_capacity, sizeof *g->targets,
                                    g->n_targets + n);
    if (grown == NULL) {
        pith_emit_fail_memory(emitter);
        return;
    }
    g->targets = grown;
    memcpy(g->targets + g->n_targets, targets, n * sizeof *targets);
    g->states[state] = (pith_state){.kind = PITH_STATE_SPLIT, .a = g->n_targets, .b = n};
    g->n_targets += n;
}

uint32_t pith_emit_loop(pith_emitter *emitter, pith_grammar_loop loop) {
    pith_grammar *g = emitter->grammar;
    if (emitter->status != PITH_OK) return 0;
    void *grown =
        pith_grammar_grow(g->loops, &emitter->loops_capacity, sizeof *g->loops, g->n_loops + 1);
    if (grown == NULL) return pith_emit_fail_memory(emitter);
    g->loops = grown;
    g->loops[g->n_loops] = loop;
    return g->n_loops++;
}

void pith_emit_bytes(pith_emitter *emitter, uint32_t start, uint32_t next, const char *bytes,
                     uint32_t n) {
    if (n == 0) pith_emit_split(emitter, start, &next, 1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t target = i + 1 < n ? pith_emit_state(emitter) : next;
        uint8_t byte = (uint8_t)bytes[i];
        pith_emit_edges(emitter, start, &(pith_edge){byte, byte, target}, 1);
        start = target;
    }
}

/* ---- classes ---- */

typedef struct class_emitter {
    pith_emitter *emitter;
    const pith_code_range *ranges; /* sorted, apart */
    uint32_t n_ranges;
    uint32_t rest[4]; /* states that k more bytes of any kind lead from to next; rest[0] is next */
} class_emitter;

static uint32_t rest_state(class_emitter *e, unsigned k) {
    for (unsigned i = 1; i <= k; i++) {
        if (e->rest[i] != 0) continue;
        e->rest[i] = pith_emit_state(e->emitter);
        pith_emit_edges(e->emitter, e->rest[i], &(pith_edge){0x80, 0xBF, e->rest[i - 1]}, 1);
    }
    return e->rest[k];
}

/* First range that does not end before the code. */
static const pith_code_range *range_at(const class_emitter *e, uint32_t code) {
    uint32_t low = 0, high = e->n_ranges;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (e->ranges[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < e->n_ranges ? &e->ranges[low] : NULL;
}

/* Edges for the codes of [from, to], all of which have `k` more bytes behind this one and differ
 * in it by their bits from 6 * k on. mark: the byte's upper bits. Depth: at most 3. */
static uint32_t code_edges(class_emitter *e, unsigned k, const uint32_t span[2], uint8_t mark,
                           pith_edge *out) {
    const unsigned shift = 6 * k;
    const uint32_t mask = mark == 0x80 ? 0x3F : 0xFF, to = span[1];
    uint32_t n = 0;
    for (uint32_t code = span[0]; code <= to;) {
        const pith_code_range *range = range_at(e, code);
        if (range == NULL || range->first > to) break;
        uint32_t first = range->first > code ? range->first : code;
        uint32_t last = range->last < to ? range->last : to;
        uint32_t block = first >> shift, block_last = (block << shift) + (1u << shift) - 1;
        pith_edge edge = {.first = (uint8_t)(mark | (block & mask))};
        edge.last = edge.first;
        if (first == block << shift && last >= block_last) { /* whole blocks */
            uint32_t last_block = ((last + 1) >> shift) - 1;
            edge.last = (uint8_t)(mark | (last_block & mask));
            edge.target = rest_state(e, k);
            code = (last_block + 1) << shift;
        } else { /* a part of one; k > 0 */
            pith_edge inside[64];
            const uint32_t part[2] = {first, block_last < to ? block_last : to};
            edge.target = pith_emit_state(e->emitter);
            pith_emit_edges(e->emitter, edge.target, inside,
                            code_edges(e, k - 1, part, 0x80, inside));
            code = block_last + 1;
        }
        out[n++] = edge;
    }
    return n;
}

void pith_emit_class(pith_emitter *emitter, uint32_t start, uint32_t next,
                     const pith_code_range *ranges, uint32_t n) {
    static const struct {
        uint32_t span[2];
        uint8_t mark;
    } forms[4] = {{{0, 0x7F}, 0},
                  {{0x80, 0x7FF}, 0xC0},
                  {{0x800, 0xFFFF}, 0xE0},
                  {{0x10000, 0x10FFFF}, 0xF0}};
    class_emitter e = {.emitter = emitter, .ranges = ranges, .n_ranges = n, .rest = {next}};
    pith_edge edges[256];
    uint32_t n_edges = 0;
    for (unsigned k = 0; k < 4; k++)
        n_edges += code_edges(&e, k, forms[k].span, forms[k].mark, edges + n_edges);
    pith_emit_edges(emitter, start, edges, n_edges);
}

/* ---- texts up to a mark ---- */

/* row[byte]: how much of the mark has been read after it. back: the state after the longest
 * shorter end of what has been read. */
typedef struct mark_row {
    uint16_t to[256];
} mark_row;

static mark_row *mark_rows(const uint8_t *end, uint32_t n) {
    mark_row *rows = pith_alloc_zero((size_t)n + 1, sizeof *rows);
    if (rows == NULL) return NULL;
    uint32_t back = 0;
    for (uint32_t q = 0; q < n; q++) {
        if (q > 0) rows[q] = rows[back];
        if (q > 0) back = rows[back].to[end[q]];
        rows[q].to[end[q]] = (uint16_t)(q + 1);
    }
    return rows;
}

/* May the text stop after q bytes of the mark: does the mark, read from there, appear at its end
 * first? */
static bool may_stop(const mark_row *rows, const uint8_t *end, uint32_t n, uint32_t q) {
    for (uint32_t i = 0; i + 1 < n; i++) {
        q = rows[q].to[end[i]];
        if (q == n) return false;
    }
    return true;
}

static uint32_t row_edges(const mark_row *row, const uint32_t *states, uint32_t n, pith_edge *out) {
    uint32_t n_edges = 0;
    for (uint32_t byte = 0; byte < 256;) {
        uint32_t last = byte, q = row->to[byte];
        while (last < 255 && row->to[last + 1] == q) last++;
        if (q < n) out[n_edges++] = (pith_edge){(uint8_t)byte, (uint8_t)last, states[q]};
        byte = last + 1;
    }
    return n_edges;
}

void pith_emit_until(pith_emitter *emitter, uint32_t start, uint32_t next, const char *end,
                     uint32_t n) {
    const uint8_t *mark = (const uint8_t *)end;
    mark_row *rows = mark_rows(mark, n);
    uint32_t *states = pith_alloc_array(n, sizeof *states);
    if (rows == NULL || states == NULL) {
        pith_emit_fail_memory(emitter);
    } else {
        for (uint32_t q = 0; q < n; q++) states[q] = q == 0 ? start : pith_emit_state(emitter);
        for (uint32_t q = 0; q < n && emitter->status == PITH_OK; q++) {
            pith_edge edges[256];
            uint32_t n_edges = row_edges(&rows[q], states, n, edges);
            uint32_t reads = may_stop(rows, mark, n, q) ? pith_emit_state(emitter) : states[q];
            pith_emit_edges(emitter, reads, edges, n_edges);
            if (reads != states[q])
                pith_emit_split(emitter, states[q], (const uint32_t[2]){reads, next}, 2);
        }
    }
    pith_free(rows);
    pith_free(states);
}
