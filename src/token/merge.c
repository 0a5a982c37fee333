/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte pair merging of one piece: the pair of neighbours with the lowest rank merges, the leftmost
 * of equals, until no pair merges. Three orders (pith_merge_order) share the two ways to do it:
 *
 *   few symbols   arrays; every merge looks at all ranks   n^2, but n <= FEW, no allocation
 *   many symbols  a linked list and a heap of candidates   n log n
 *
 *   symbols   [h] [e] [ll] [o]      before/after links; a merged symbol keeps its place, its
 *                                   right neighbour gets size 0
 *   heap      (rank, left index)    stale candidates stay in it and are known by the size of
 *                                   the two together
 *
 * Invariant: symbols cover the piece without gaps, in order. What no token covers is given as
 * bytes, so that nothing of the text is lost where the vocabulary has byte tokens. Read next:
 * piece_encode.c, which asks for merges only when it must.
 */
#include "token/token_internal.h"

#include "base/memory.h"

#include <string.h>

enum { FEW = 48 };

/* Rank of left and right, which together are `size` bytes at `data`, and the piece they make;
 * PITH_PIECE_NONE: they don't merge. */
static inline uint32_t rank_of(const pith_tokenizer *t, pith_merge_order order, uint32_t left,
                               uint32_t right, const char *data, size_t size, uint32_t *joined) {
    if (order == PITH_ORDER_RULES) {
        const pith_merge_rule *rule = pith_merge_find(&t->merges, left, right);
        if (!rule) return PITH_PIECE_NONE;
        *joined = rule->joined;
        return rule->rank;
    }
    if (size > t->pieces.longest) return PITH_PIECE_NONE;
    uint32_t piece = pith_piece_table_find(&t->pieces, data, size);
    if (piece == PITH_PIECE_NONE) return PITH_PIECE_NONE;
    unsigned char whole = atomic_load_explicit(&t->whole[piece], memory_order_relaxed);
    if (whole == PITH_WHOLE_BARRED) return PITH_PIECE_NONE;
    *joined = piece;
    return order == PITH_ORDER_IDS ? piece : t->ranks[piece];
}

/* Bytes of the symbol at data, and its piece. */
static inline size_t first_symbol(const pith_tokenizer *t, const char *data, size_t size,
                                  uint32_t *piece) {
    unsigned char byte = (unsigned char)*data;
    if (t->form == PITH_FORM_MAPPED) {
        *piece = t->byte_pieces[byte];
        return 1;
    }
    size_t bytes = 1;
    uint32_t code;
    if (byte < 128) {
        *piece = t->ascii_pieces[byte];
    } else {
        bytes = pith_utf8_decode(data, size, &code);
        *piece = code == PITH_UTF8_INVALID ? PITH_PIECE_NONE
                                           : pith_piece_table_find(&t->pieces, data, bytes);
    }
    if (*piece != PITH_PIECE_NONE &&
        atomic_load_explicit(&t->whole[*piece], memory_order_relaxed) == PITH_WHOLE_BARRED)
        *piece = PITH_PIECE_NONE;
    return bytes;
}

static void append_symbol(pith_encode_run *run, uint32_t piece, const char *data, size_t size);

/* ---- few symbols ---- */

struct few {
    uint32_t piece[FEW], rank[FEW], joined[FEW]; /* [n]; rank, joined: with the next symbol */
    uint32_t start[FEW + 1];                     /* [n + 1] */
    uint8_t next[FEW + 1], before[FEW + 1];      /* symbols that are left; next is n at the end */
    unsigned n, left;                            /* symbols at first, and now */
};

static inline void rank_pair(const pith_tokenizer *t, pith_merge_order order, struct few *few,
                             unsigned i, const char *data) {
    unsigned next = few->next[i];
    few->rank[i] = PITH_PIECE_NONE;
    if (next == few->n) return;
    few->rank[i] = rank_of(t, order, few->piece[i], few->piece[next], data + few->start[i],
                           few->start[few->next[next]] - few->start[i], &few->joined[i]);
}

/* rank_pair for all symbols while they are single bytes. */
static inline void rank_bytes(const pith_tokenizer *t, struct few *few, const char *data) {
    const unsigned char *bytes = (const unsigned char *)data;
    for (unsigned i = 0; i + 1 < few->n; i++) {
        const pith_byte_pair *pair = &t->byte_pairs[(size_t)bytes[i] << 8 | bytes[i + 1]];
        few->rank[i] = pair->rank;
        few->joined[i] = pair->joined;
    }
    few->rank[few->n - 1] = PITH_PIECE_NONE;
}

/* least: symbols at which to stop. Returns the scanning done. */
static inline uint64_t merge_few(const pith_tokenizer *t, pith_merge_order order, struct few *few,
                                 const char *data, unsigned least) {
    const unsigned n = few->n;
    uint64_t steps = 0;
    if (order == PITH_ORDER_RULES && t->byte_pairs)
        rank_bytes(t, few, data);
    else
        for (unsigned i = 0; i < n; i++) rank_pair(t, order, few, i, data);
    while (few->left > least) {
        uint32_t best = PITH_PIECE_NONE;
        unsigned at = 0;
        steps += n;
        for (unsigned i = 0; i < n; i++)
            if (few->rank[i] < best) {
                best = few->rank[i];
                at = i;
            }
        if (best == PITH_PIECE_NONE) break;
        unsigned gone = few->next[at], after = few->next[gone];
        few->piece[at] = few->joined[at];
        unsigned before = at > 0 ? few->before[at] : at;
        if (order == PITH_ORDER_RULES) { /* both neighbours' rules come side by side */
            uint32_t right = few->piece[after < few->n ? after : at];
            (void)pith_merge_expect(&t->merges, few->piece[at], right);
            (void)pith_merge_expect(&t->merges, few->piece[before], few->piece[at]);
        }
        few->rank[gone] = PITH_PIECE_NONE;
        few->next[at] = (uint8_t)after;
        few->before[after] = (uint8_t)at;
        few->left--;
        rank_pair(t, order, few, at, data);
        if (before < at) rank_pair(t, order, few, before, data);
    }
    return steps;
}

/* False: more than FEW symbols. */
static bool read_few(const pith_tokenizer *t, struct few *few, const char *data, size_t size) {
    unsigned n = 0;
    few->start[0] = 0;
    for (size_t at = 0; at < size;) {
        if (n == FEW) return false;
        at += first_symbol(t, data + at, size - at, &few->piece[n]);
        few->before[n + 1] = (uint8_t)n;
        few->next[n] = (uint8_t)(n + 1);
        few->start[++n] = (uint32_t)at;
    }
    few->n = few->left = n;
    return true;
}

static uint64_t merge_few_by_order(const pith_tokenizer *t, struct few *few, const char *data,
                                   unsigned least) {
    switch (t->order) { /* one copy of the loop each */
    case PITH_ORDER_RULES: return merge_few(t, PITH_ORDER_RULES, few, data, least);
    case PITH_ORDER_IDS: return merge_few(t, PITH_ORDER_IDS, few, data, least);
    case PITH_ORDER_SCORES: break;
    }
    return merge_few(t, PITH_ORDER_SCORES, few, data, least);
}

/* ---- many symbols ---- */

static void heap_push(pith_encode_run *run, pith_merge_candidate candidate) {
    if (run->heap_size == run->heap_room) {
        size_t room = run->heap_room + run->heap_room / 2 + 256;
        pith_merge_candidate *heap = pith_realloc(run->heap, room * sizeof *heap);
        if (!heap) {
            run->failed = true;
            return;
        }
        run->heap = heap;
        run->heap_room = room;
    }
    size_t i = run->heap_size++;
    while (i > 0 && run->heap[(i - 1) / 2].order > candidate.order) {
        run->heap[i] = run->heap[(i - 1) / 2];
        i = (i - 1) / 2;
        run->steps++;
    }
    run->heap[i] = candidate;
}

static pith_merge_candidate heap_pop(pith_encode_run *run) {
    pith_merge_candidate *heap = run->heap, top = heap[0], last = heap[--run->heap_size];
    size_t n = run->heap_size, i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n) break;
        if (child + 1 < n && heap[child + 1].order < heap[child].order) child++;
        if (heap[child].order >= last.order) break;
        heap[i] = heap[child];
        i = child;
        run->steps++;
    }
    heap[i] = last;
    return top;
}

static void push_pair(pith_encode_run *run, const char *data, uint32_t left) {
    const pith_tokenizer *t = run->tokenizer;
    const pith_merge_symbol *a = &run->symbols[left];
    if (a->after == PITH_PIECE_NONE) return;
    const pith_merge_symbol *b = &run->symbols[a->after];
    uint32_t joined = PITH_PIECE_NONE;
    uint32_t rank =
        rank_of(t, t->order, a->piece, b->piece, data + a->start, a->size + b->size, &joined);
    run->steps++;
    if (rank == PITH_PIECE_NONE) return;
    heap_push(run, (pith_merge_candidate){(uint64_t)rank << 32 | left, a->size + b->size, joined});
}

static size_t read_many(pith_encode_run *run, const char *data, size_t size) {
    if (size > run->n_symbols) {
        pith_free(run->symbols);
        run->n_symbols = size;
        run->symbols = pith_alloc_array(size, sizeof *run->symbols);
        if (!run->symbols) {
            run->n_symbols = 0;
            run->failed = true;
            return 0;
        }
    }
    size_t n = 0;
    for (size_t at = 0; at < size; n++) {
        pith_merge_symbol *symbol = &run->symbols[n];
        symbol->start = (uint32_t)at;
        symbol->size = (uint32_t)first_symbol(run->tokenizer, data + at, size - at, &symbol->piece);
        symbol->before = n ? (uint32_t)n - 1 : PITH_PIECE_NONE;
        symbol->after = (uint32_t)n + 1;
        at += symbol->size;
    }
    run->symbols[n - 1].after = PITH_PIECE_NONE;
    return n;
}

static void merge_many(pith_encode_run *run, const char *data, size_t size) {
    size_t n = read_many(run, data, size);
    run->heap_size = 0;
    for (size_t i = 0; i + 1 < n; i++) push_pair(run, data, (uint32_t)i);
    while (run->heap_size && !run->failed) {
        pith_merge_candidate best = heap_pop(run);
        uint32_t at = (uint32_t)best.order;
        pith_merge_symbol *left = &run->symbols[at];
        if (!left->size || left->after == PITH_PIECE_NONE) continue;
        pith_merge_symbol *right = &run->symbols[left->after];
        if (left->size + right->size != best.size) continue;
        left->piece = best.joined;
        left->size = best.size;
        left->after = right->after;
        right->size = 0;
        if (left->after != PITH_PIECE_NONE) {
            run->symbols[left->after].before = at;
            push_pair(run, data, at);
        }
        if (left->before != PITH_PIECE_NONE) push_pair(run, data, left->before);
    }
    for (uint32_t i = 0; n && !run->failed && i != PITH_PIECE_NONE; i = run->symbols[i].after) {
        const pith_merge_symbol *symbol = &run->symbols[i];
        append_symbol(run, symbol->piece, data + symbol->start, symbol->size);
    }
}

/* ---- results ---- */

/* An unused SentencePiece token is only a step on the way: it goes back into the two symbols it
 * was merged from, and they too if need be. The merges inside a symbol are those of its text
 * alone, so they can be done again. */
static void append_unused(pith_encode_run *run, const char *data, size_t size) {
    const pith_tokenizer *t = run->tokenizer;
    pith_span *stack = pith_alloc_array(size + 1, sizeof *stack);
    size_t depth = 0;
    if (!stack) {
        run->failed = true;
        return;
    }
    stack[depth++] = (pith_span){data, size};
    while (depth) {
        struct few few;
        pith_span part = stack[--depth];
        uint32_t whole = pith_piece_table_find(&t->pieces, part.data, part.size);
        bool known = whole < t->n_tokens && t->whole[whole] != PITH_WHOLE_BARRED;
        bool parted = known && t->types[whole] == PITH_TOKEN_UNUSED &&
                      read_few(t, &few, part.data, part.size) && few.n > 1;
        if (parted) run->steps += merge_few_by_order(t, &few, part.data, 2);
        if (parted && few.left == 2) {
            uint32_t border = few.start[few.next[0]];
            stack[depth++] = (pith_span){part.data + border, part.size - border};
            stack[depth++] = (pith_span){part.data, border};
        } else if (known) {
            pith_encode_append(run, (int32_t)whole);
        } else {
            pith_encode_bytes(run, part.data, part.size);
        }
    }
    pith_free(stack);
}

static void append_symbol(pith_encode_run *run, uint32_t piece, const char *data, size_t size) {
    const pith_tokenizer *t = run->tokenizer;
    bool unused = piece < t->n_tokens && t->types[piece] == PITH_TOKEN_UNUSED;
    if (unused && t->order == PITH_ORDER_SCORES)
        append_unused(run, data, size);
    else if (unused || piece >= t->n_tokens)
        pith_encode_bytes(run, data, size);
    else
        pith_encode_append(run, (int32_t)piece);
}

void pith_merge_piece(pith_encode_run *run, const char *data, size_t size) {
    struct few few;
    if (!read_few(run->tokenizer, &few, data, size)) {
        merge_many(run, data, size);
        return;
    }
    run->steps += merge_few_by_order(run->tokenizer, &few, data, 1);
    for (unsigned i = 0; i < few.n && !run->failed; i = few.next[i])
        append_symbol(run, few.piece[i], data + few.start[i],
                      few.start[few.next[i]] - few.start[i]);
}
