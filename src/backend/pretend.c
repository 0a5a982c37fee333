/* SPDX-License-Identifier: Apache-2.0
 * Weights with made-up values: the same types, shapes and places as loaded ones, so that a plan
 * takes the time it will take, before anything was read.
 *
 * Invariant: every scale field is a normal number of either sign (no NaN, no denormal, both of
 * which cost time that real weights do not), codes are arbitrary, rows differ from each other so
 * that a router spreads tokens over experts. What the plan computes means nothing. Vectors are all
 * ones. Read next: weight.c for real weights. */
#include "backend/plan.h"
#include "backend/rehearse.h"
#include "backend/weight_store.h"
#include "base/clock.h"
#include "base/pool.h"

enum { TENSOR_ALIGNMENT = 64, PIECE_BYTES = 1 << 20 };

/* ---- Which weights a plan uses ---- */

/* Weights of one operation; returns how many. */
static size_t weights_of(const pith_op *op, const pith_weight *list[8]) {
    size_t n = 0;
    if (op->kind == PITH_OP_EMBED) {
        list[n++] = op->embed.table;
    } else if (op->kind == PITH_OP_NORM) {
        list[n++] = op->norm.weight;
        list[n++] = op->norm.bias;
    } else if (op->kind == PITH_OP_LINEAR) {
        for (uint32_t i = 0; i < op->linear.n; i++) {
            list[n++] = op->linear.weight[i];
            list[n++] = op->linear.bias[i];
        }
    } else if (op->kind == PITH_OP_MOE) {
        list[n++] = op->moe.router;
        list[n++] = op->moe.gate;
        list[n++] = op->moe.up;
        list[n++] = op->moe.down;
    }
    return n;
}

static bool uses(const pith_plan *plan, uint32_t n_op, const pith_weight *weight) {
    for (uint32_t i = 0; i < n_op; i++) {
        const pith_weight *list[8];
        size_t n = weights_of(&plan->ops[i], list);
        for (size_t j = 0; j < n; j++)
            if (list[j] == weight) return true;
    }
    return false;
}

uint64_t pith_plan_weight_bytes(const pith_plan *plan) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->n_op; i++) {
        const pith_weight *list[8];
        size_t n = weights_of(&plan->ops[i], list);
        for (size_t j = 0; j < n; j++)
            if (list[j] && !uses(plan, i, list[j])) bytes += list[j]->bytes;
    }
    return bytes;
}

void pith_weights_shorten(pith_weights *weights, const pith_weight *weight, int dimension,
                          uint64_t n) {
    for (size_t i = 0; i < weights->n; i++) {
        pith_weight *own = &weights->entries[i]->weight;
        if (own != weight || own->ne[dimension] <= n || n == 0) continue;
        own->bytes = own->bytes / own->ne[dimension] * n;
        own->ne[dimension] = n;
    }
}

/* ---- Values ---- */

/* Eight bytes of a tensor are (random & keep) | set. */
typedef struct byte_form {
    uint64_t keep, set;
} byte_form;

static byte_form form_of(pith_type type) {
    switch (type) {
    case PITH_TYPE_F32: return (byte_form){0x80FFFFFF80FFFFFFu, 0x3C0000003C000000u};
    case PITH_TYPE_BF16: return (byte_form){0x80FF80FF80FF80FFu, 0x3C003C003C003C00u};
    case PITH_TYPE_F64: return (byte_form){0x800FFFFFFFFFFFFFu, 0x3F80000000000000u};
    case PITH_TYPE_MXFP4: /* a byte of exponent before each 16 bytes of codes */
        return (byte_form){0x0F0F0F0F0F0F0F0Fu, 0x7070707070707070u};
    default: /* half-precision scales at even offsets: 2^-7 .. 2^-6 */
        return (byte_form){0x83FF83FF83FF83FFu, 0x2000200020002000u};
    }
}

typedef struct piece {
    uint8_t *data; /* 64-byte aligned */
    size_t size;
    byte_form form;
} piece;

typedef struct filling {
    piece *pieces;
    uint32_t n;
    pith_pool *pool;
} filling;

static uint64_t mix(uint64_t x) { /* splitmix64, Steele et al. 2014 */
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Whole words: what lies behind the tensor up to the alignment is filled too. */
static void fill_piece(void *user, uint32_t index, int thread) {
    const filling *f = user;
    const piece *p = &f->pieces[index];
    uint64_t *word = (uint64_t *)(void *)p->data, seed = (uint64_t)index << 32;
    (void)thread;
    for (size_t i = 0; i < (p->size + 7) / 8; i++)
        word[i] = (mix(seed + i) & p->form.keep) | p->form.set;
}

static void fill_region(void *user, int thread, int n_threads) {
    filling *f = user;
    (void)n_threads;
    pith_pool_for(f->pool, 0, f->n, fill_piece, f, thread);
}

static uint64_t round_up(uint64_t n) {
    return (n + TENSOR_ALIGNMENT - 1) / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT;
}

/* Bytes of a tensor in its layout. */
static uint64_t laid_bytes(const pith_weight *weight) {
    return weight->expert_bytes * weight->ne[2] * weight->ne[3];
}

/* Marks what the plan uses with its place in the region; the others have none. */
static uint64_t place_all(pith_weights *weights, const pith_plan *plan, bool *used,
                          uint64_t *n_piece) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < weights->n; i++) {
        pith_weight_entry *entry = weights->entries[i];
        used[i] = uses(plan, plan->n_op, &entry->weight);
        if (!used[i] || !pith_weight_is_tensor(entry)) continue;
        entry->memory_offset = bytes;
        bytes += round_up(laid_bytes(&entry->weight));
        *n_piece += laid_bytes(&entry->weight) / PIECE_BYTES + 1;
    }
    return bytes;
}

static void cut_pieces(pith_weights *weights, const bool *used, filling *f) {
    for (size_t i = 0; i < weights->n; i++) {
        pith_weight_entry *entry = weights->entries[i];
        if (!used[i] || !pith_weight_is_tensor(entry)) continue;
        uint8_t *data = weights->region.data + entry->memory_offset;
        entry->weight.data = data;
        uint64_t bytes = laid_bytes(&entry->weight);
        for (uint64_t at = 0; at < bytes; at += PIECE_BYTES)
            f->pieces[f->n++] =
                (piece){data + at, (size_t)(bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES),
                        form_of(entry->weight.type)};
    }
}

static pith_status fill_vectors(pith_weights *weights, const bool *used, pith_error *error) {
    for (size_t i = 0; i < weights->n; i++) {
        pith_weight_entry *entry = weights->entries[i];
        if (!used[i] || !pith_weight_is_vector(entry)) continue;
        uint64_t bytes = pith_weight_values_bytes(entry);
        entry->values = pith_alloc_aligned((size_t)bytes);
        if (!entry->values) return pith_fail_memory(error, entry->name, bytes);
        for (uint64_t j = 0; j < bytes / sizeof(float); j++) entry->values[j] = 1.0f;
        entry->weight.values = entry->values;
    }
    return PITH_OK;
}

static pith_status fill_tensors(pith_weights *weights, const pith_plan *plan, bool *used,
                                int32_t n_threads, pith_error *error) {
    uint64_t n_piece = 0, bytes = place_all(weights, plan, used, &n_piece);
    filling f = {.pieces = pith_alloc_array((size_t)n_piece, sizeof *f.pieces)};
    bool made = f.pieces && n_piece <= UINT32_MAX && bytes <= SIZE_MAX / 2 &&
                pith_region_open(&weights->region, (size_t)bytes + TENSOR_ALIGNMENT,
                                 weights->mode == PITH_LOAD_PACK);
    pith_status status = made ? pith_pool_new(n_threads, &f.pool, error)
                              : pith_fail_memory(error, "a rehearsal", bytes);
    if (status == PITH_OK) {
        cut_pieces(weights, used, &f);
        pith_pool_run(f.pool, fill_region, &f);
    }
    pith_pool_free(f.pool);
    pith_free(f.pieces);
    return status;
}

pith_status pith_weights_pretend(pith_weights *weights, const pith_plan *plan, int32_t n_threads,
                                 double *fill_rate, pith_error *error) {
    if (weights->is_loaded)
        return pith_fail(error, PITH_ERROR_INTERNAL, "the weights are loaded already");
    bool *used = pith_alloc_zero(weights->n + 1, sizeof *used);
    if (!used) return pith_fail_memory(error, "a rehearsal", weights->n);
    weights->is_loaded = true; /* nothing can be declared or loaded any more */
    uint64_t begun = pith_clock_ns();
    pith_status status = fill_tensors(weights, plan, used, n_threads, error);
    double ns = (double)(pith_clock_ns() - begun) + 1;
    if (status == PITH_OK && fill_rate) *fill_rate = (double)weights->region.size / ns * 1e9;
    if (status == PITH_OK) status = fill_vectors(weights, used, error);
    pith_free(used);
    return status;
}
