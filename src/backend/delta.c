/* SPDX-License-Identifier: Apache-2.0
 *
 * Filling a delta: dense rows become panels of 16 rows, in which the float products read them.
 *
 *   rows   A [rank][k]    ->  panels [k][16], the last one padded with zero rows
 *          B [rows][rank] ->  panels [rank][16]
 *
 * F32 values that fit F16 or BF16 exactly, as those of most trained adapters do, are kept so: half
 * the bytes to read for each token and the same bits, because products widen them first.
 *
 * Invariant: every matrix starts at a multiple of 64 bytes and holds finite numbers; base weights
 * are neither copied nor changed. What a step does with a delta: cpu/adapt.c.
 */
#include "backend/delta_store.h"

#include "backend/cpu/pack.h"
#include "kernel/kernel.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    CHECK_BLOCK = 4096,
    VECTOR_UNIT = 16,
    MAX_LAYERS = 1 << 16,
    ALIGNMENT = 64,
    SMALLEST_BLOCK = 64 << 10,
    LARGEST_BLOCK = 1 << 30,
    HUGE_FROM = 2 << 20 /* smaller blocks would take a huge page for nothing */
};

pith_status pith_delta_new(uint32_t features, pith_delta **out, pith_error *error) {
    *out = pith_alloc_zero(1, sizeof **out);
    if (!*out) return pith_fail_memory(error, "an adapter", sizeof **out);
    (*out)->features = features;
    return PITH_OK;
}

void pith_delta_free(pith_delta *delta) {
    if (!delta) return;
    for (size_t i = 0; i < delta->n_block; i++) pith_region_close(&delta->blocks[i].region);
    pith_free(delta->blocks);
    for (size_t i = 0; i < delta->n_layer; i++) pith_free_aligned(delta->vectors[i]);
    pith_free(delta->vectors);
    pith_free(delta->pairs);
    pith_free(delta->linear);
    pith_free(delta->lookup);
    pith_free(delta);
}

void pith_delta_expect(pith_delta *delta, uint64_t bytes) {
    delta->expected = bytes;
}

/* ---- Blocks ---- */

/* A block with room for so many bytes: as large as what is expected, within limits. */
static pith_delta_block *open_block(pith_delta *delta, size_t bytes) {
    size_t size = delta->expected < LARGEST_BLOCK ? (size_t)delta->expected : LARGEST_BLOCK, list;
    if (size < SMALLEST_BLOCK) size = SMALLEST_BLOCK;
    if (size < bytes) size = bytes;
    if (!pith_size_mul(delta->n_block + 1, sizeof *delta->blocks, &list)) return NULL;
    pith_delta_block *grown = pith_realloc(delta->blocks, list);
    if (!grown) return NULL;
    delta->blocks = grown;
    pith_delta_block *block = &grown[delta->n_block];
    *block = (pith_delta_block){.used = 0};
    if (!pith_region_open(&block->region, size, size >= HUGE_FROM)) return NULL;
    delta->n_block++;
    delta->expected -= delta->expected < size ? delta->expected : size;
    return block;
}

/* 64-byte aligned; lives as long as the delta. */
static uint8_t *take_memory(pith_delta *delta, uint64_t wanted) {
    size_t bytes;
    if (wanted > SIZE_MAX / 2) return NULL;
    bytes = ((size_t)wanted + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    pith_delta_block *block = delta->n_block ? &delta->blocks[delta->n_block - 1] : NULL;
    if (!block || bytes > block->region.size - block->used) block = open_block(delta, bytes);
    if (!block) return NULL;
    uint8_t *memory = block->region.data + block->used;
    block->used += bytes;
    return memory;
}

/* ---- Values ---- */

/* Whether all are finite: no exponent of all ones. Whole blocks, so that the loop needs no exit. */
static bool is_finite16(const uint16_t *x, size_t n, uint16_t exponent) {
    for (size_t i = 0; i < n; i += CHECK_BLOCK) {
        size_t end = n - i < CHECK_BLOCK ? n : i + CHECK_BLOCK;
        uint16_t bad = 0;
        for (size_t j = i; j < end; j++) bad |= (uint16_t)((x[j] & exponent) == exponent);
        if (bad) return false;
    }
    return true;
}

/* What a matrix of f32 is kept as. */
typedef struct f32_kind {
    bool is_finite, fits_f16, fits_bf16;
} f32_kind;

static f32_kind kind_of(const uint32_t *x, size_t n) {
    const uint32_t exponent = 0x7F800000u, least = 0x38800000u, most = 0x477FE000u;
    uint32_t low = 0, bad = 0, out = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = x[i] & 0x7FFFFFFFu;
        low |= x[i] & 0xFFFFu;
        bad |= (uint32_t)((x[i] & exponent) == exponent);
        /* beyond the normal numbers of f16, zero apart */
        out |= (uint32_t)(magnitude - least > most - least) & (uint32_t)(magnitude != 0);
    }
    return (f32_kind){!bad, (low & 0x1FFFu) == 0 && !out, low == 0};
}

/* Exact by kind_of: what is cut off is zero. */
static void narrow(const uint32_t *x, size_t n, pith_type type, uint16_t *out) {
    if (type == PITH_TYPE_BF16) {
        for (size_t i = 0; i < n; i++) out[i] = (uint16_t)(x[i] >> 16);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = x[i] & 0x7FFFFFFFu, sign = x[i] >> 16 & 0x8000u;
        uint32_t value = magnitude ? (magnitude - 0x38000000u) >> 13 : 0;
        out[i] = (uint16_t)(sign | value);
    }
}

/* ---- Matrices ---- */

static size_t n_values(const pith_delta_rows *rows) {
    return (size_t)rows->k * rows->n_row * rows->n_slice;
}

/* Panels, or rows as they are. */
static void fill(const pith_kernels *kernels, const pith_weight *matrix,
                 const pith_delta_rows *rows, uint8_t *memory) {
    const uint8_t *from = rows->data;
    if (matrix->layout == PITH_LAYOUT_ROWS) {
        memcpy(memory, from, (size_t)rows->n_slice * matrix->expert_bytes);
        return;
    }
    for (uint32_t slice = 0; slice < rows->n_slice; slice++)
        for (uint32_t row = 0; row < rows->n_row; row += PITH_PANEL_ROWS) {
            uint32_t left = rows->n_row - row;
            size_t at = (size_t)slice * rows->n_row + row;
            kernels->pack[matrix->type](memory + slice * matrix->expert_bytes +
                                            row / PITH_PANEL_ROWS * matrix->panel_bytes,
                                        from + at * matrix->row_bytes, matrix->row_bytes,
                                        left < PITH_PANEL_ROWS ? left : PITH_PANEL_ROWS, rows->k);
        }
}

static pith_status place(pith_delta *delta, const pith_delta_rows *rows, pith_weight *matrix,
                         pith_error *error) {
    pith_kernels kernels;
    pith_kernels_init(&kernels, delta->features);
    matrix->type = rows->type;
    uint64_t bytes = pith_pack_layout(matrix, true, delta->features);
    uint8_t *memory = take_memory(delta, bytes);
    if (!memory) return pith_fail_memory(error, "an adapter's matrix", bytes);
    fill(&kernels, matrix, rows, memory);
    matrix->data = memory;
    matrix->bytes = bytes;
    delta->bytes += bytes;
    return PITH_OK;
}

/* The same rows in the smallest type that holds them; *memory is the caller's to free. */
static pith_status choose_type(const pith_delta_rows *rows, pith_delta_rows *chosen,
                               uint16_t **memory, bool *finite) {
    size_t n = n_values(rows);
    *chosen = *rows;
    *memory = NULL;
    if (rows->type != PITH_TYPE_F32) {
        *finite = is_finite16(rows->data, n, rows->type == PITH_TYPE_F16 ? 0x7C00u : 0x7F80u);
        return PITH_OK;
    }
    f32_kind kind = kind_of(rows->data, n);
    *finite = kind.is_finite;
    if (!kind.is_finite || (!kind.fits_f16 && !kind.fits_bf16)) return PITH_OK;
    chosen->type = kind.fits_bf16 ? PITH_TYPE_BF16 : PITH_TYPE_F16;
    *memory = pith_alloc_array(n, sizeof **memory);
    if (!*memory) return PITH_ERROR_MEMORY;
    narrow(rows->data, n, chosen->type, *memory);
    chosen->data = *memory;
    return PITH_OK;
}

/* roles: PITH_WEIGHT_LINEAR for panels, PITH_WEIGHT_ROWS for rows. */
static pith_status add_matrix(pith_delta *delta, const pith_delta_rows *rows, unsigned roles,
                              pith_weight *matrix, pith_error *error) {
    pith_delta_rows chosen;
    uint16_t *memory = NULL;
    bool finite = true;
    *matrix =
        (pith_weight){.n_dims = 3, .ne = {rows->k, rows->n_row, rows->n_slice, 1}, .roles = roles};
    pith_status status = choose_type(rows, &chosen, &memory, &finite);
    if (status != PITH_OK) {
        pith_fail_memory(error, "an adapter's matrix", n_values(rows));
    } else if (!finite) {
        status = pith_fail(error, PITH_ERROR_FORMAT, "a matrix holds inf or NaN");
    } else {
        status = place(delta, &chosen, matrix, error);
    }
    pith_free(memory);
    return status;
}

/* ---- Pairs ---- */

static pith_status check_pair(const pith_delta_source *source, pith_error *error) {
    const pith_delta_rows *a = &source->a, *b = &source->b;
    const uint64_t *ne = source->weight->ne;
    uint32_t rank = b->k;
    bool is_shaped = source->is_lookup ? a->k == rank && a->n_row == ne[1] && b->n_row == ne[0]
                                       : a->n_row == rank && a->k == ne[0] && b->n_row == ne[1];
    bool has_slices = a->n_slice == ne[2] * ne[3] && b->n_slice == a->n_slice;
    if (is_shaped && has_slices && rank >= 1 && rank <= PITH_DELTA_MAX_RANK &&
        isfinite(source->scale))
        return PITH_OK;
    return pith_fail(error, PITH_ERROR_INTERNAL, "%s: a pair of %u x %u and %u x %u does not fit",
                     source->weight->name, a->k, a->n_row, b->k, b->n_row);
}

/* Room in both lists of indices. */
static bool reach_index(pith_delta *delta, uint32_t index) {
    uint32_t **lists[] = {&delta->linear, &delta->lookup};
    if (index < delta->n_index) return true;
    size_t n = (size_t)index + 1 + index / 2, bytes;
    for (int i = 0; i < 2; i++) {
        if (!pith_size_mul(n, sizeof(uint32_t), &bytes)) return false;
        uint32_t *grown = pith_realloc(*lists[i], bytes);
        if (!grown) return false;
        memset(grown + delta->n_index, 0, (n - delta->n_index) * sizeof *grown);
        *lists[i] = grown;
    }
    delta->n_index = n;
    return true;
}

static pith_delta_pair *append_pair(pith_delta *delta) {
    if (delta->n_pair == delta->pair_capacity) {
        size_t capacity = delta->pair_capacity ? delta->pair_capacity * 2 : 64, bytes;
        pith_delta_pair *grown = pith_size_mul(capacity, sizeof *grown, &bytes)
                                     ? pith_realloc(delta->pairs, bytes)
                                     : NULL;
        if (!grown) return NULL;
        delta->pairs = grown;
        delta->pair_capacity = capacity;
    }
    pith_delta_pair *pair = &delta->pairs[delta->n_pair++];
    *pair = (pith_delta_pair){0};
    return pair;
}

pith_status pith_delta_add_pair(pith_delta *delta, const pith_delta_source *source,
                                pith_error *error) {
    const pith_weight *weight = source->weight;
    pith_status status = check_pair(source, error);
    if (status != PITH_OK) return status;
    if (pith_delta_find(delta, weight, source->is_lookup))
        return pith_fail(error, PITH_ERROR_INTERNAL, "%s has two pairs", weight->name);
    if (!reach_index(delta, weight->index)) return pith_fail_memory(error, "an adapter", 0);
    pith_delta_pair *pair = append_pair(delta); /* what fails below is freed with the delta */
    if (!pair) return pith_fail_memory(error, "an adapter", sizeof *pair);
    pair->weight = weight;
    pair->rank = source->b.k;
    pair->scale = source->scale;
    unsigned a_roles = source->is_lookup ? PITH_WEIGHT_ROWS : PITH_WEIGHT_LINEAR;
    status = add_matrix(delta, &source->a, a_roles, &pair->a, error);
    if (status == PITH_OK)
        status = add_matrix(delta, &source->b, PITH_WEIGHT_LINEAR, &pair->b, error);
    if (status != PITH_OK) return status;
    (source->is_lookup ? delta->lookup : delta->linear)[weight->index] = (uint32_t)delta->n_pair;
    if (pair->rank > delta->rank) delta->rank = pair->rank;
    return PITH_OK;
}

/* ---- Vectors ---- */

static bool reach_layer(pith_delta *delta, uint32_t layer) {
    if (layer < delta->n_layer) return true;
    size_t n = (size_t)layer + 1, bytes;
    float **grown =
        pith_size_mul(n, sizeof *grown, &bytes) ? pith_realloc(delta->vectors, bytes) : NULL;
    if (!grown) return false;
    for (size_t i = delta->n_layer; i < n; i++) grown[i] = NULL;
    delta->vectors = grown;
    delta->n_layer = n;
    return true;
}

pith_status pith_delta_add_vector(pith_delta *delta, uint32_t layer, const float *values,
                                  uint32_t n, pith_error *error) {
    size_t padded = (size_t)(n + VECTOR_UNIT - 1) / VECTOR_UNIT * VECTOR_UNIT;
    bool is_new = layer >= delta->n_layer || !delta->vectors[layer];
    if (!is_new || layer >= MAX_LAYERS || n == 0 || (delta->n_vector && n != delta->width))
        return pith_fail(error, PITH_ERROR_INTERNAL, "layer %u: a vector of %u does not fit", layer,
                         n);
    for (uint32_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return pith_fail(error, PITH_ERROR_FORMAT, "the vector holds inf or NaN");
    float *copy = reach_layer(delta, layer) ? pith_alloc_aligned(padded * sizeof *copy) : NULL;
    if (!copy) return pith_fail_memory(error, "a control vector", padded * sizeof *copy);
    memcpy(copy, values, n * sizeof *copy);
    memset(copy + n, 0, (padded - n) * sizeof *copy);
    delta->vectors[layer] = copy;
    delta->width = n;
    delta->n_vector++;
    delta->bytes += padded * sizeof *copy;
    return PITH_OK;
}

/* ---- What it is ---- */

uint64_t pith_delta_bytes(const pith_delta *delta) {
    return delta->bytes;
}

uint32_t pith_delta_rank(const pith_delta *delta) {
    return delta->rank;
}

uint32_t pith_delta_rank_room(const pith_delta *delta) {
    return pith_delta_round_rank(delta->rank);
}

size_t pith_delta_n_pairs(const pith_delta *delta) {
    return delta->n_pair;
}

size_t pith_delta_n_vectors(const pith_delta *delta) {
    return delta->n_vector;
}
