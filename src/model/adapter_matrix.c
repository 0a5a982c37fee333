/* SPDX-License-Identifier: Apache-2.0
 * Matrices of an adapter, from a file to the model's delta.
 *
 *   file's tensor  --(F32, F16, BF16 as they are; others decoded to F32)-->  dense rows  -->  delta
 *
 * Invariant: a pair that reaches the delta has the shapes of a weight of this model. The sentences
 * name the tensor and both shapes. Memory for rows is kept from one pair to the next. Does not know
 * which file it is: adapter_gguf.c and adapter_peft.c do. */
#include "base/memory.h"
#include "model/adapter.h"

#include <inttypes.h>
#include <string.h>

void pith_adapter_loader_deinit(pith_adapter_loader *loader) {
    pith_free(loader->a.memory);
    pith_free(loader->b.memory);
    pith_free(loader->raw);
}

/* ---- Which weight ---- */

pith_status pith_adapter_find(const pith_adapter_loader *loader, const char *name,
                              const char *tensor, pith_adapter_target *out) {
    const pith_model *model = loader->model;
    *out = (pith_adapter_target){NULL, false};
    if (strcmp(name, "token_embd.weight") == 0)
        *out = (pith_adapter_target){model->token_embd, true};
    else if (strcmp(name, "output.weight") == 0)
        out->weight = model->output; /* also where it is the embedding table: only the product */
    else
        out->weight = pith_weights_find(model->weights, pith_span_of(name));
    if (out->weight && (out->weight->roles & (PITH_WEIGHT_LINEAR | PITH_WEIGHT_ROWS)))
        return PITH_OK;
    return pith_fail(loader->error, PITH_ERROR_FORMAT,
                     "tensor %.100s matches nothing: the model has no matrix %.63s; the adapter is "
                     "for another one",
                     tensor, name);
}

static pith_status fail_shapes(const pith_adapter_loader *loader, const pith_adapter_target *target,
                               const pith_adapter_matrix *a, const pith_adapter_matrix *b) {
    const uint64_t *ne = target->weight->ne;
    return pith_fail(loader->error, PITH_ERROR_FORMAT,
                     "%.80s: A is %" PRIu64 " x %" PRIu64 " x %" PRIu64 ", B %" PRIu64 " x %" PRIu64
                     " x %" PRIu64 ", which does not fit the model's %" PRIu64 " x %" PRIu64
                     " x %" PRIu64 "; the adapter is for another one",
                     a->name, a->ne[0], a->ne[1], a->ne[2], b->ne[0], b->ne[1], b->ne[2], ne[0],
                     ne[1], ne[2]);
}

pith_status pith_adapter_check_pair(const pith_adapter_loader *loader,
                                    const pith_adapter_target *target, const pith_adapter_matrix *a,
                                    const pith_adapter_matrix *b) {
    const uint64_t *ne = target->weight->ne;
    bool look = target->is_lookup;
    uint64_t rank = b->ne[0];
    bool fits = look ? a->ne[0] == rank && a->ne[1] == ne[1] && b->ne[1] == ne[0]
                     : a->ne[1] == rank && a->ne[0] == ne[0] && b->ne[1] == ne[1];
    if (!fits || a->ne[2] != ne[2] || b->ne[2] != ne[2] || rank == 0)
        return fail_shapes(loader, target, a, b);
    if (rank <= PITH_DELTA_MAX_RANK) return PITH_OK;
    return pith_fail(loader->error, PITH_ERROR_LIMIT, "%.120s: rank %" PRIu64 "; the limit is %d",
                     b->name, rank, PITH_DELTA_MAX_RANK);
}

/* ---- Rows ---- */

static size_t element_bytes(pith_type type) {
    return type == PITH_TYPE_F32 ? sizeof(float) : sizeof(uint16_t);
}

void pith_adapter_expect(uint64_t *bytes, pith_type type, uint64_t k, uint64_t n_row) {
    bool is_half = type == PITH_TYPE_F16 || type == PITH_TYPE_BF16;
    uint64_t size, rows = (n_row + PITH_DELTA_RANK_UNIT - 1) / PITH_DELTA_RANK_UNIT;
    if (pith_u64_mul(k * (is_half ? 2 : 4), rows * PITH_DELTA_RANK_UNIT, &size) &&
        pith_u64_add(*bytes, size, &size))
        *bytes = size;
}

static bool reach(uint8_t **memory, size_t *capacity, size_t wanted) {
    if (wanted <= *capacity) return true;
    pith_free(*memory); /* what it held is done with */
    *memory = pith_alloc(wanted);
    *capacity = *memory ? wanted : 0;
    return *memory != NULL;
}

/* Bytes of a slice as dense rows; 0: beyond what can be counted. */
static size_t slice_bytes(const pith_adapter_rows *rows) {
    size_t n = 0;
    if (!pith_size_mul(rows->rows.k, rows->rows.n_row, &n) ||
        !pith_size_mul(n, element_bytes(rows->rows.type), &n))
        return 0;
    return n;
}

pith_status pith_adapter_begin(const pith_adapter_loader *loader, pith_adapter_rows *rows,
                               const pith_adapter_matrix *matrix, uint32_t n_slice, bool clear) {
    bool is_dense = matrix->type == PITH_TYPE_F32 || matrix->type == PITH_TYPE_F16 ||
                    matrix->type == PITH_TYPE_BF16;
    size_t bytes = 0;
    rows->rows = (pith_delta_rows){.type = is_dense ? matrix->type : PITH_TYPE_F32,
                                   .k = (uint32_t)matrix->ne[0],
                                   .n_row = (uint32_t)matrix->ne[1],
                                   .n_slice = n_slice};
    size_t slice = slice_bytes(rows);
    if (!slice || !pith_size_mul(slice, n_slice, &bytes) ||
        !reach(&rows->memory, &rows->capacity, bytes))
        return pith_fail_memory(loader->error, matrix->name, bytes);
    if (clear) memset(rows->memory, 0, bytes);
    rows->rows.data = rows->memory;
    return PITH_OK;
}

static pith_status read_decoded(pith_adapter_loader *loader, const pith_adapter_matrix *matrix,
                                uint8_t *to) {
    const pith_type_info *type = pith_type_get((uint32_t)matrix->type);
    size_t n = (size_t)(matrix->ne[0] * matrix->ne[1] * matrix->ne[2]);
    if (!type || !type->decode || (!type->is_weight && matrix->type != PITH_TYPE_F64))
        return pith_fail(loader->error, PITH_ERROR_UNSUPPORTED,
                         "tensor %.100s has type %s, which is none for weights", matrix->name,
                         type ? type->name : "unknown");
    if (!reach(&loader->raw, &loader->raw_capacity, (size_t)matrix->bytes))
        return pith_fail_memory(loader->error, matrix->name, matrix->bytes);
    pith_status status = pith_source_read(matrix->source, matrix->offset, loader->raw,
                                          (size_t)matrix->bytes, loader->error);
    if (status == PITH_OK) type->decode(loader->raw, (float *)(void *)to, n);
    return status;
}

pith_status pith_adapter_read(pith_adapter_loader *loader, pith_adapter_rows *rows,
                              const pith_adapter_matrix *matrix, uint32_t slice) {
    uint8_t *to = rows->memory + slice * slice_bytes(rows);
    bool is_dense = rows->rows.type != PITH_TYPE_F32;
    if (is_dense && matrix->type != rows->rows.type)
        return pith_fail(loader->error, PITH_ERROR_FORMAT,
                         "tensor %.100s has another type than the other experts'", matrix->name);
    if (matrix->type != rows->rows.type) return read_decoded(loader, matrix, to);
    return pith_source_read(matrix->source, matrix->offset, to, (size_t)matrix->bytes,
                            loader->error);
}

/* ---- Orders ---- */

/* Columns of src [n_row][k] become the rows of dst. */
static void turn(const uint8_t *src, uint8_t *dst, const pith_delta_rows *rows) {
    size_t n_row = rows->n_row, k = rows->k;
    if (element_bytes(rows->type) == sizeof(uint32_t)) {
        for (size_t i = 0; i < n_row; i++)
            for (size_t j = 0; j < k; j++)
                ((uint32_t *)(void *)dst)[j * n_row + i] =
                    ((const uint32_t *)(const void *)src)[i * k + j];
        return;
    }
    for (size_t i = 0; i < n_row; i++)
        for (size_t j = 0; j < k; j++)
            ((uint16_t *)(void *)dst)[j * n_row + i] =
                ((const uint16_t *)(const void *)src)[i * k + j];
}

/* The rows move to loader->raw's memory, which they change places with. */
static pith_status begin_move(pith_adapter_loader *loader, const pith_adapter_rows *rows) {
    size_t bytes = slice_bytes(rows);
    if (reach(&loader->raw, &loader->raw_capacity, bytes)) return PITH_OK;
    return pith_fail_memory(loader->error, "an adapter's matrix", bytes);
}

static void end_move(pith_adapter_loader *loader, pith_adapter_rows *rows) {
    uint8_t *memory = rows->memory;
    size_t capacity = rows->capacity;
    rows->memory = loader->raw;
    rows->capacity = loader->raw_capacity;
    rows->rows.data = rows->memory;
    loader->raw = memory;
    loader->raw_capacity = capacity;
}

pith_status pith_adapter_turn(pith_adapter_loader *loader, pith_adapter_rows *rows) {
    pith_status status = begin_move(loader, rows);
    if (status != PITH_OK) return status;
    turn(rows->memory, loader->raw, &rows->rows);
    end_move(loader, rows);
    uint32_t k = rows->rows.k;
    rows->rows.k = rows->rows.n_row;
    rows->rows.n_row = k;
    return PITH_OK;
}

pith_status pith_adapter_permute(pith_adapter_loader *loader, pith_adapter_rows *rows,
                                 uint32_t head_dim) {
    size_t row_bytes = rows->rows.k * element_bytes(rows->rows.type);
    uint32_t half = head_dim / 2;
    pith_status status = begin_move(loader, rows);
    if (status != PITH_OK) return status;
    for (uint32_t row = 0; row < rows->rows.n_row; row++) {
        uint32_t head = row / head_dim, in_head = row % head_dim;
        uint32_t from = head * head_dim + in_head % 2 * half + in_head / 2;
        memcpy(loader->raw + row * row_bytes, rows->memory + from * row_bytes, row_bytes);
    }
    end_move(loader, rows);
    return PITH_OK;
}

/* ---- Adding ---- */

static uint64_t hash_rows(const pith_adapter_rows *rows, uint64_t key) {
    const pith_delta_rows *r = &rows->rows;
    const uint32_t shape[] = {(uint32_t)r->type, r->k, r->n_row, r->n_slice};
    key = pith_hash(shape, sizeof shape, key);
    return pith_hash(rows->memory, slice_bytes(rows) * r->n_slice, key);
}

pith_status pith_adapter_add(pith_adapter_loader *loader, const pith_adapter_target *target,
                             float scale) {
    pith_adapter *adapter = loader->adapter;
    const char *name = target->weight->name;
    pith_delta_source source = {.weight = target->weight,
                                .is_lookup = target->is_lookup,
                                .scale = scale,
                                .a = loader->a.rows,
                                .b = loader->b.rows};
    uint64_t limit = loader->options->memory_limit;
    pith_error inner = {0};
    pith_status status = pith_delta_add_pair(adapter->delta, &source, &inner);
    if (status == PITH_ERROR_FORMAT)
        return pith_fail(loader->error, status,
                         "the adapter's part for %.80s holds inf or NaN: the file is damaged",
                         name);
    if (status != PITH_OK) return pith_fail(loader->error, status, "%s", inner.text);
    if (limit && pith_delta_bytes(adapter->delta) > limit)
        return pith_fail(loader->error, PITH_ERROR_MEMORY,
                         "the adapter needs more than the %" PRIu64
                         " bytes that are allowed: give more memory",
                         limit);
    uint64_t key = pith_hash(name, strlen(name), adapter->content_key + target->is_lookup);
    key = pith_hash(&scale, sizeof scale, key);
    adapter->content_key = hash_rows(&loader->b, hash_rows(&loader->a, key));
    return PITH_OK;
}
