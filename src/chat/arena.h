/* SPDX-License-Identifier: Apache-2.0
 * What one template or one rendering may use: memory, taken piece by piece and given back as a
 * whole, and steps of work. The first thing that goes wrong is remembered as `fault`; from then on
 * every request is refused, so that code may go on for a while and whoever runs it (machine.c)
 * finds the fault.
 *
 * A heap is two arenas, objects and text. Text is apart so that a string just made can grow in
 * place: `a + b` costs only b when a is the last text, which makes loops that append to a string
 * linear. */
#ifndef PITH_CHAT_ARENA_H
#define PITH_CHAT_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pith_arena_chunk pith_arena_chunk;

typedef struct pith_arena {
    pith_arena_chunk *chunks; /* the newest first */
    char *next;               /* free bytes of the newest chunk */
    size_t left;
} pith_arena;

typedef enum pith_fault {
    PITH_FAULT_NONE,
    PITH_FAULT_MEMORY,      /* the system has none left */
    PITH_FAULT_OVER_MEMORY, /* the limit was reached */
    PITH_FAULT_OVER_STEPS,
    PITH_FAULT_OVER_DEPTH /* a value is nested too deeply to be walked through */
} pith_fault;

typedef struct pith_heap {
    pith_arena objects; /* 16-byte aligned pieces */
    pith_arena text;    /* bytes */
    size_t used, limit; /* bytes of all chunks */
    uint64_t steps, step_limit;
    pith_fault fault;
} pith_heap;

void pith_heap_init(pith_heap *heap, size_t limit, uint64_t step_limit); /* takes no memory yet */
void pith_heap_deinit(pith_heap *heap);
/* Counts work; false when there was too much or another fault is pending. */
bool pith_heap_charge(pith_heap *heap, uint64_t steps);
void pith_heap_fail(pith_heap *heap, pith_fault fault); /* the first one stays */

/* NULL without memory. Not zeroed; size 0 is allowed. */
void *pith_heap_object(pith_heap *heap, size_t size);
void *pith_heap_array(pith_heap *heap, size_t n, size_t size); /* n * size checked */
char *pith_heap_text(pith_heap *heap, size_t size);

/* More bytes right behind `end`, when `end` is where the last text ends and the chunk has room. */
bool pith_heap_text_extend(pith_heap *heap, const char *end, size_t more);
/* Gives back the last `size` bytes before `end`, when `end` is where the last text ends. */
void pith_heap_text_return(pith_heap *heap, const char *end, size_t size);

#endif
