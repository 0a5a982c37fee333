/* SPDX-License-Identifier: Apache-2.0
 * A choice of literals as a tree of bytes: of a thousand alternatives one state is followed, not a
 * thousand.
 *
 *   "red" "reed" "blue"   start --r--> . --e--> . --d--> .      (then: where "red" goes on)
 *                               |                  --e--> . --d--> .
 *                               --b--> ...
 *
 * Owns: the tree. It is made range by range of the sorted list, with an explicit stack. Does not:
 * know what follows a literal. Read next: grammar_compile.c. */
#include "sample/grammar_compile.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Literals [first, last) of the list share their first `depth` bytes, which lead to `state`. */
typedef struct branch {
    uint32_t first, last, depth, state;
} branch;

typedef struct branch_stack {
    branch *list;
    uint32_t n, capacity;
} branch_stack;

static bool push(branch_stack *stack, branch added) {
    void *grown =
        pith_grammar_grow(stack->list, &stack->capacity, sizeof *stack->list, stack->n + 1);
    if (grown == NULL) return false;
    stack->list = grown;
    stack->list[stack->n++] = added;
    return true;
}

static int by_bytes(const void *a, const void *b) {
    const pith_literal *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, x->n < y->n ? x->n : y->n);
    if (order != 0) return order;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return x->then < y->then ? -1 : x->then > y->then;
}

/* The state after the bytes: goes on in the tree, or behind the literals that end here. */
static uint32_t end_state(pith_emitter *emitter, const pith_literal *list, const branch *at,
                          uint32_t n_ended) {
    if (n_ended == 0) return at->state;
    uint32_t *targets = pith_alloc_array((size_t)n_ended + 1, sizeof *targets);
    if (targets == NULL) return pith_emit_fail_memory(emitter);
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_ended; i++) targets[n++] = list[at->first + i].then;
    uint32_t more = 0;
    if (at->first + n_ended < at->last) targets[n++] = more = pith_emit_state(emitter);
    pith_emit_split(emitter, at->state, targets, n);
    pith_free(targets);
    return more;
}

static bool emit_branch(pith_emitter *emitter, const pith_literal *list, branch at,
                        branch_stack *stack) {
    uint32_t i = at.first, n = 0;
    pith_edge edges[256];
    while (i < at.last && list[i].n == at.depth) i++;
    uint32_t state = end_state(emitter, list, &at, i - at.first);
    while (i < at.last) {
        uint32_t first = i;
        uint8_t byte = (uint8_t)list[i].bytes[at.depth];
        while (i < at.last && (uint8_t)list[i].bytes[at.depth] == byte) i++;
        bool ends_alone = i == first + 1 && list[first].n == at.depth + 1;
        uint32_t target = ends_alone ? list[first].then : pith_emit_state(emitter);
        edges[n++] = (pith_edge){byte, byte, target};
        if (!ends_alone && !push(stack, (branch){first, i, at.depth + 1, target})) return false;
    }
    if (n > 0) pith_emit_edges(emitter, state, edges, n);
    return emitter->status == PITH_OK;
}

void pith_emit_literals(pith_emitter *emitter, uint32_t start, pith_literal *list, uint32_t n) {
    branch_stack stack = {0};
    qsort(list, n, sizeof *list, by_bytes);
    bool good = push(&stack, (branch){0, n, 0, start});
    while (good && stack.n > 0) good = emit_branch(emitter, list, stack.list[--stack.n], &stack);
    if (!good && emitter->status == PITH_OK) pith_emit_fail_memory(emitter);
    pith_free(stack.list);
}
