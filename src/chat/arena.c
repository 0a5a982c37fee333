/* SPDX-License-Identifier: Apache-2.0
 *
 * Chunked memory with a budget, and the count of steps.
 *
 * Owns the chunks. Invariants: `used` is the sum of the chunks' sizes and never exceeds `limit`;
 * the free bytes of an arena are [next, next + left) of its newest chunk; nothing is freed before
 * the whole. Chunks grow with what is in use (a quarter of it, between 4 KiB and 1 MiB), so that a
 * small template costs little and a large one few calls.
 *
 *   chunk: | next chunk, size | piece | piece | ... | free |
 *
 * It does not run destructors: what lives here owns nothing else.
 */
#include "chat/arena.h"

#include "base/memory.h"

struct pith_arena_chunk {
    pith_arena_chunk *older;
    size_t size; /* of the payload */
};

enum { ALIGNMENT = 16, SMALLEST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20 };

void pith_heap_init(pith_heap *heap, size_t limit, uint64_t step_limit) {
    *heap = (pith_heap){.limit = limit, .step_limit = step_limit};
}

void pith_heap_fail(pith_heap *heap, pith_fault fault) {
    if (heap->fault == PITH_FAULT_NONE) heap->fault = fault;
}

bool pith_heap_charge(pith_heap *heap, uint64_t steps) {
    heap->steps += steps; /* callers charge sizes of memory that exists: no overflow */
    if (heap->steps > heap->step_limit) pith_heap_fail(heap, PITH_FAULT_OVER_STEPS);
    return heap->fault == PITH_FAULT_NONE;
}

static void release(pith_arena *arena) {
    while (arena->chunks != NULL) {
        pith_arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->older;
        pith_free(chunk);
    }
    *arena = (pith_arena){0};
}

void pith_heap_deinit(pith_heap *heap) {
    release(&heap->objects);
    release(&heap->text);
    *heap = (pith_heap){0};
}

static bool add_chunk(pith_heap *heap, pith_arena *arena, size_t need) {
    size_t size = heap->used / 4,
           header = (sizeof(pith_arena_chunk) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (size > LARGEST_CHUNK) size = LARGEST_CHUNK;
    if (size < SMALLEST_CHUNK) size = SMALLEST_CHUNK;
    if (size < need) size = need;
    if (heap->fault != PITH_FAULT_NONE) return false;
    if (size > heap->limit - heap->used) size = need;
    if (size > heap->limit - heap->used) {
        pith_heap_fail(heap, PITH_FAULT_OVER_MEMORY);
        return false;
    }
    pith_arena_chunk *chunk = pith_alloc(header + size); /* limit is far from overflow */
    if (chunk == NULL) {
        pith_heap_fail(heap, PITH_FAULT_MEMORY);
        return false;
    }
    *chunk = (pith_arena_chunk){arena->chunks, size};
    heap->used += size;
    arena->chunks = chunk;
    arena->next = (char *)chunk + header;
    arena->left = size;
    return true;
}

static void *take(pith_heap *heap, pith_arena *arena, size_t size) {
    if (size > arena->left && !add_chunk(heap, arena, size)) return NULL;
    void *piece = arena->next;
    arena->next += size;
    arena->left -= size;
    return piece;
}

void *pith_heap_object(pith_heap *heap, size_t size) {
    if (size > heap->limit)
        size = heap->limit + 1; /* refused below; no overflow on the way there */
    if (size == 0) size = 1;
    return take(heap, &heap->objects, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

void *pith_heap_array(pith_heap *heap, size_t n, size_t size) {
    size_t bytes;
    if (!pith_size_mul(n, size, &bytes)) bytes = heap->limit + 1;
    return pith_heap_object(heap, bytes);
}

char *pith_heap_text(pith_heap *heap, size_t size) {
    if (heap->text.chunks == NULL && !add_chunk(heap, &heap->text, size)) return NULL;
    return take(heap, &heap->text, size);
}

bool pith_heap_text_extend(pith_heap *heap, const char *end, size_t more) {
    if (end != heap->text.next || end == NULL || more > heap->text.left) return false;
    heap->text.next += more;
    heap->text.left -= more;
    return true;
}

void pith_heap_text_return(pith_heap *heap, const char *end, size_t size) {
    if (end != heap->text.next || end == NULL) return;
    heap->text.next -= size;
    heap->text.left += size;
}
