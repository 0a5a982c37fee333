/* SPDX-License-Identifier: Apache-2.0
 * The header of a safetensors file, read and checked (layout: safetensors.h).
 *
 * Invariant: in a file that was opened every tensor's bytes are those of its shape and type, lie
 * inside the source, and belong to no other tensor; together they are all of the data. Sub-byte
 * types are known by their size and read by nobody. */
#include "model/safetensors.h"

#include "base/cursor.h"
#include "base/memory.h"
#include "model/peft_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8 };

struct pith_safetensors {
    pith_source *source;
    json_t *header; /* owns the names */
    pith_safetensor *tensors;
    size_t n;
};

void pith_safetensors_close(pith_safetensors *file) {
    if (!file) return;
    pith_source_close(file->source);
    json_decref(file->header);
    pith_free(file->tensors);
    pith_free(file);
}

static const struct {
    const char *name;
    uint32_t bits;
} dtypes[] = {{"F32", 32},        {"F16", 16},        {"BF16", 16},   {"F64", 64},
              {"BOOL", 8},        {"U8", 8},          {"I8", 8},      {"U16", 16},
              {"I16", 16},        {"U32", 32},        {"I32", 32},    {"U64", 64},
              {"I64", 64},        {"F8_E5M2", 8},     {"F8_E4M3", 8}, {"F8_E8M0", 8},
              {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8}, {"C64", 64},    {"F4", 4},
              {"F6_E2M3", 6},     {"F6_E3M2", 6}};

/* 0: unknown. */
static uint32_t bits_of(const char *dtype) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtype, dtypes[i].name) == 0) return dtypes[i].bits;
    return 0;
}

bool pith_safetensors_type(const char *dtype, pith_type *out) {
    static const pith_type types[] = {PITH_TYPE_F32, PITH_TYPE_F16, PITH_TYPE_BF16, PITH_TYPE_F64};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        *out = types[i];
        if (strcmp(dtype, dtypes[i].name) == 0) return true;
    }
    return false;
}

/* ---- One tensor ---- */

static bool read_integer(const json_t *json, uint64_t *out) {
    json_int_t value = json_integer_value(json);
    *out = (uint64_t)value;
    return json_is_integer(json) && value >= 0;
}

static pith_status fail_tensor(const pith_safetensor *tensor, const char *what, pith_error *error) {
    return pith_fail(error, PITH_ERROR_FORMAT, "tensor %.80s: %s", tensor->name, what);
}

static pith_status read_shape(pith_safetensor *tensor, const json_t *shape, uint64_t *bytes,
                              pith_error *error) {
    uint64_t bits = bits_of(tensor->dtype);
    if (!bits)
        return pith_fail(error, PITH_ERROR_UNSUPPORTED, "tensor %.80s: dtype %.20s is not known",
                         tensor->name, tensor->dtype);
    if (!json_is_array(shape) || json_array_size(shape) > PITH_SAFETENSORS_MAX_DIMS)
        return fail_tensor(tensor, "its shape is no list of at most 8 numbers", error);
    tensor->n_dims = (uint32_t)json_array_size(shape);
    for (uint32_t i = 0; i < tensor->n_dims; i++)
        if (!read_integer(json_array_get(shape, i), &tensor->shape[i]) ||
            !pith_u64_mul(bits, tensor->shape[i], &bits))
            return fail_tensor(tensor, "its shape is not possible", error);
    if (bits % 8) return fail_tensor(tensor, "it does not end at a byte", error);
    *bytes = bits / 8;
    return PITH_OK;
}

/* data_bytes: of the whole data; offset counts from it. */
static pith_status read_tensor(pith_safetensor *tensor, const json_t *json, uint64_t data_bytes,
                               pith_error *error) {
    uint64_t begin, end, bytes = 0;
    const json_t *offsets = json_object_get(json, "data_offsets");
    tensor->dtype = json_string_value(json_object_get(json, "dtype"));
    if (strlen(tensor->name) > PITH_SAFETENSORS_MAX_NAME)
        return fail_tensor(tensor, "its name has more than 512 bytes", error);
    if (!tensor->dtype) return fail_tensor(tensor, "it has no dtype", error);
    pith_status status = read_shape(tensor, json_object_get(json, "shape"), &bytes, error);
    if (status != PITH_OK) return status;
    if (json_array_size(offsets) != 2 || !read_integer(json_array_get(offsets, 0), &begin) ||
        !read_integer(json_array_get(offsets, 1), &end) || begin > end)
        return fail_tensor(tensor, "its data_offsets are no two numbers in order", error);
    if (end > data_bytes)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "tensor %.80s ends at byte %" PRIu64 " of the data, which has %" PRIu64
                         ": the file was cut short",
                         tensor->name, end, data_bytes);
    if (end - begin != bytes)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "tensor %.80s: its shape needs %" PRIu64
                         " bytes, its offsets give %" PRIu64,
                         tensor->name, bytes, end - begin);
    tensor->offset = begin;
    tensor->bytes = bytes;
    return PITH_OK;
}

/* ---- The whole ---- */

static int by_offset(const void *a, const void *b) {
    const pith_safetensor *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* No holes, no overlaps; offsets become absolute. */
static pith_status check_tiling(pith_safetensors *file, uint64_t data_start, uint64_t data_bytes,
                                pith_error *error) {
    uint64_t end = 0;
    qsort(file->tensors, file->n, sizeof *file->tensors, by_offset);
    for (size_t i = 0; i < file->n; i++) {
        pith_safetensor *tensor = &file->tensors[i];
        if (tensor->offset != end)
            return pith_fail(error, PITH_ERROR_FORMAT,
                             "tensor %.80s begins at byte %" PRIu64
                             " of the data, expected %" PRIu64,
                             tensor->name, tensor->offset, end);
        end += tensor->bytes;
        tensor->offset += data_start;
    }
    if (end == data_bytes) return PITH_OK;
    return pith_fail(error, PITH_ERROR_FORMAT,
                     "the tensors of %.80s take %" PRIu64 " bytes, its data has %" PRIu64,
                     pith_source_name(file->source), end, data_bytes);
}

static pith_status check_metadata(json_t *metadata, pith_error *error) {
    const char *key;
    json_t *value;
    bool is_right = json_is_object(metadata);
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value)) is_right = false;
    }
    if (is_right) return PITH_OK;
    return pith_fail(error, PITH_ERROR_FORMAT, "__metadata__ must hold strings only");
}

static pith_status read_tensors(pith_safetensors *file, uint64_t data_start, pith_error *error) {
    uint64_t data_bytes = pith_source_size(file->source) - data_start;
    size_t n = json_object_size(file->header);
    const char *name;
    json_t *value;
    if (n > PITH_SAFETENSORS_MAX_TENSORS)
        return pith_fail(error, PITH_ERROR_LIMIT, "%zu tensors; at most %d are read", n,
                         PITH_SAFETENSORS_MAX_TENSORS);
    file->tensors = pith_alloc_zero(n ? n : 1, sizeof *file->tensors);
    if (!file->tensors) return pith_fail_memory(error, "tensors", n * sizeof *file->tensors);
    json_object_foreach(file->header, name, value) {
        pith_status status;
        if (strcmp(name, "__metadata__") == 0) {
            status = check_metadata(value, error);
        } else {
            pith_safetensor *tensor = &file->tensors[file->n++];
            tensor->name = name;
            status = read_tensor(tensor, value, data_bytes, error);
        }
        if (status != PITH_OK) return status;
    }
    return check_tiling(file, data_start, data_bytes, error);
}

/* The size of the JSON, held against the file's and the limit. */
static pith_status read_length(const pith_source *source, uint64_t *length, pith_error *error) {
    uint8_t bytes[LENGTH_BYTES];
    uint64_t size = pith_source_size(source);
    if (size < LENGTH_BYTES)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "%.80s is no safetensors file: it has only %" PRIu64 " bytes",
                         pith_source_name(source), size);
    pith_status status = pith_source_read(source, 0, bytes, sizeof bytes, error);
    if (status != PITH_OK) return status;
    pith_cursor cursor = pith_cursor_over(bytes, sizeof bytes);
    *length = pith_cursor_read_u64(&cursor);
    if (*length > PITH_SAFETENSORS_MAX_HEADER)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "%.80s: a header of %" PRIu64 " bytes; at most %d are read, or it is no "
                         "safetensors file",
                         pith_source_name(source), *length, PITH_SAFETENSORS_MAX_HEADER);
    if (*length > size - LENGTH_BYTES)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "%.80s: a header of %" PRIu64 " bytes, but %" PRIu64
                         " follow: the file was cut short",
                         pith_source_name(source), *length, size - LENGTH_BYTES);
    return PITH_OK;
}

static pith_status read_header(pith_safetensors *file, pith_error *error) {
    uint64_t length = 0;
    pith_status status = read_length(file->source, &length, error);
    if (status != PITH_OK) return status;
    char *text = pith_alloc((size_t)length);
    if (!text) return pith_fail_memory(error, "a header", length);
    status = pith_source_read(file->source, LENGTH_BYTES, text, (size_t)length, error);
    if (status == PITH_OK && (length == 0 || text[0] != '{'))
        status = pith_fail(error, PITH_ERROR_FORMAT, "%.80s: the header is no JSON object",
                           pith_source_name(file->source));
    if (status == PITH_OK)
        status = pith_json_text_parse((pith_span){text, (size_t)length},
                                      pith_source_name(file->source), &file->header, error);
    pith_free(text);
    return status == PITH_OK ? read_tensors(file, LENGTH_BYTES + length, error) : status;
}

pith_status pith_safetensors_open(pith_source *source, pith_safetensors **out, pith_error *error) {
    *out = NULL;
    pith_safetensors *file = pith_alloc_zero(1, sizeof *file);
    if (!file) {
        pith_source_close(source);
        return pith_fail_memory(error, "a file", sizeof *file);
    }
    file->source = source;
    pith_status status = read_header(file, error);
    if (status != PITH_OK) {
        pith_safetensors_close(file);
        return status;
    }
    *out = file;
    return PITH_OK;
}

size_t pith_safetensors_count(const pith_safetensors *file) {
    return file->n;
}

const pith_safetensor *pith_safetensors_at(const pith_safetensors *file, size_t index) {
    return &file->tensors[index];
}

const pith_source *pith_safetensors_source(const pith_safetensors *file) {
    return file->source;
}
