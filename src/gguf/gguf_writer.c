/* SPDX-License-Identifier: Apache-2.0
 * Writing GGUF files: keys and tensors are declared, the first data sends the header out, then come
 * the tensors' bytes.
 *
 *     declare ... declare | header, padding | tensor 0, padding | ... finish: sync, rename
 *                         ^ first write_data (or finish)
 *
 * Invariant: what is written passes our own reader: the same limits, names and types are checked
 * when they are declared, and offsets are the running sum of padded sizes, which ggml's reader
 * demands. A writer that was not finished leaves no file (base/output.h).
 * Not here: splitting into shards, and which keys a model needs. */
#include "base/float16.h"
#include "base/memory.h"
#include "base/output.h"
#include "gguf/gguf_internal.h"

#include <inttypes.h>
#include <string.h>

#define KEY_ALIGNMENT "general.alignment"

struct pith_gguf_writer {
    pith_output *output;
    uint32_t version, alignment;
    pith_buffer values; /* records as they will be written */
    size_t n_values;
    pith_gguf_tensor *tensors; /* offset relative to the data */
    size_t n_tensors, capacity;
    uint64_t data_bytes; /* of all declared tensors with padding */
    pith_map keys, names;
    pith_gguf_arena arena; /* keys and names */
    bool broken;           /* a record was begun and could not be ended */
    bool header_written;
    size_t tensor;      /* whose bytes come next */
    uint64_t n_written; /* of that tensor */
};

static bool is_power_of_two(uint32_t n) {
    return n != 0 && (n & (n - 1)) == 0;
}

pith_status pith_gguf_writer_new(const char *path, uint32_t version, uint32_t alignment,
                                 pith_gguf_writer **out, pith_error *error) {
    *out = NULL;
    if (version != 2 && version != 3)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "GGUF version %" PRIu32 " cannot be written, 2 and 3 can", version);
    if (!is_power_of_two(alignment) || alignment > PITH_GGUF_MAX_ALIGNMENT)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "alignment %" PRIu32 " is not allowed: a power of two up to %d is",
                         alignment, PITH_GGUF_MAX_ALIGNMENT);
    pith_gguf_writer *writer = pith_alloc_zero(1, sizeof *writer);
    if (!writer) return pith_fail_memory(error, "a GGUF writer", sizeof *writer);
    writer->version = version;
    writer->alignment = alignment;
    pith_status status = pith_output_open(path, &writer->output, error);
    if (status == PITH_OK)
        *out = writer;
    else
        pith_gguf_writer_free(writer);
    return status;
}

void pith_gguf_writer_free(pith_gguf_writer *writer) {
    if (!writer) return;
    pith_output_close(writer->output);
    pith_buffer_deinit(&writer->values);
    pith_free(writer->tensors);
    pith_map_deinit(&writer->keys);
    pith_map_deinit(&writer->names);
    pith_gguf_arena_deinit(&writer->arena);
    pith_free(writer);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static void put_number(pith_buffer *buffer, uint64_t value, size_t n_bytes) {
    uint8_t bytes[8];
    for (size_t i = 0; i < n_bytes; i++) bytes[i] = (uint8_t)(value >> 8 * i);
    pith_buffer_append(buffer, bytes, n_bytes);
}

static void put_string(pith_buffer *buffer, pith_span text) {
    put_number(buffer, text.size, 8);
    pith_buffer_append(buffer, text.data, text.size);
}

static uint64_t padding_after(const pith_gguf_writer *writer, uint64_t size) {
    return (0 - size) & (writer->alignment - 1);
}

/* ---- Declaring ------------------------------------------------------------------------------- */

/* Checks a new key or tensor name and keeps a copy of it. */
static pith_status note_name(pith_gguf_writer *writer, bool is_key, const char *text,
                             pith_span *kept, pith_error *error) {
    const char *what = is_key ? "key" : "tensor";
    size_t limit = is_key ? PITH_GGUF_MAX_KEY_BYTES : PITH_GGUF_MAX_NAME_BYTES;
    size_t count = is_key ? writer->n_values : writer->n_tensors;
    size_t most = is_key ? PITH_GGUF_MAX_KEYS : PITH_GGUF_MAX_TENSORS;
    pith_span name = pith_span_of(text);
    pith_gguf_shown shown = pith_gguf_show(name);
    if (writer->header_written)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "%s \"%s\" came after the first data", what,
                         shown.text);
    if (name.size == 0 || name.size > limit)
        return pith_fail(error, PITH_ERROR_LIMIT, "%s \"%s\" has %zu bytes, 1 to %zu are allowed",
                         what, shown.text, name.size, limit);
    const char *fault = pith_gguf_name_fault(name);
    if (fault)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "%s \"%s\" %s", what, shown.text, fault);
    if (count >= most)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "%s \"%s\" would be number %zu, at most %zu are allowed", what, shown.text,
                         count + 1, most);
    *kept = pith_gguf_arena_copy(&writer->arena, name);
    pith_map *map = is_key ? &writer->keys : &writer->names;
    int inserted = kept->data ? pith_map_insert(map, *kept, (int32_t)count, NULL) : -1;
    if (inserted < 0) return pith_fail_memory(error, what, name.size);
    if (inserted == 0)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "%s \"%s\" is written twice", what,
                         shown.text);
    return PITH_OK;
}

static pith_status begin_value(pith_gguf_writer *writer, const char *key, pith_gguf_kind kind,
                               pith_error *error) {
    pith_span kept = {NULL, 0};
    pith_status status = note_name(writer, true, key, &kept, error);
    if (status) return status;
    put_string(&writer->values, kept);
    put_number(&writer->values, (uint64_t)kind, 4);
    return PITH_OK;
}

static pith_status end_value(pith_gguf_writer *writer, pith_error *error) {
    writer->n_values++;
    writer->broken = writer->values.failed || writer->values.size > PITH_GGUF_MAX_HEADER_BYTES;
    if (writer->values.failed) return pith_fail_memory(error, "the keys", writer->values.size);
    if (!writer->broken) return PITH_OK;
    return pith_fail(error, PITH_ERROR_LIMIT,
                     "the keys take %zu bytes, at most %" PRIu64 " are allowed",
                     writer->values.size, PITH_GGUF_MAX_HEADER_BYTES);
}

static pith_status check_string(const char *key, size_t size, pith_error *error) {
    if (size <= PITH_GGUF_MAX_STRING_BYTES) return PITH_OK;
    return pith_fail(error, PITH_ERROR_LIMIT,
                     "key \"%s\" has a string of %zu bytes, at most %" PRIu64 " are allowed",
                     pith_gguf_show(pith_span_of(key)).text, size, PITH_GGUF_MAX_STRING_BYTES);
}

/* general.alignment decides where data lies, so it must say what the writer does. */
static pith_status check_alignment(const pith_gguf_writer *writer, const char *key,
                                   pith_gguf_kind kind, const void *bytes, pith_error *error) {
    if (strcmp(key, KEY_ALIGNMENT) != 0) return PITH_OK;
    pith_cursor cursor = pith_cursor_over(bytes, 4);
    uint32_t alignment = kind == PITH_GGUF_U32 ? pith_cursor_read_u32(&cursor) : 0;
    if (alignment == writer->alignment) return PITH_OK;
    return pith_fail(error, PITH_ERROR_ARGUMENT,
                     "key \"%s\" must be a u32 of %" PRIu32 ", what the writer was made with",
                     KEY_ALIGNMENT, writer->alignment);
}

pith_status pith_gguf_write_value(pith_gguf_writer *writer, const char *key, pith_gguf_kind kind,
                                  const void *bytes, size_t size, pith_error *error) {
    pith_gguf_shown shown = pith_gguf_show(pith_span_of(key));
    size_t needed = pith_gguf_kind_bytes((uint32_t)kind);
    if (needed == 0 && kind != PITH_GGUF_STRING)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "key \"%s\": value type %d is no scalar",
                         shown.text, (int)kind);
    if (needed != 0 && size != needed)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "key \"%s\": %zu bytes were given, its type has %zu", shown.text, size,
                         needed);
    pith_status status = check_string(key, size, error);
    if (status == PITH_OK) status = check_alignment(writer, key, kind, bytes, error);
    if (status == PITH_OK) status = begin_value(writer, key, kind, error);
    if (status) return status;
    if (kind == PITH_GGUF_STRING)
        put_string(&writer->values, (pith_span){bytes, size});
    else
        pith_buffer_append(&writer->values, bytes, size);
    return end_value(writer, error);
}

static pith_status begin_array(pith_gguf_writer *writer, const char *key, pith_gguf_kind item,
                               uint64_t n_items, pith_error *error) {
    if (n_items > PITH_GGUF_MAX_ARRAY)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "key \"%s\" has %" PRIu64 " items, at most %d are allowed",
                         pith_gguf_show(pith_span_of(key)).text, n_items, PITH_GGUF_MAX_ARRAY);
    if (strcmp(key, KEY_ALIGNMENT) == 0)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "key \"%s\" cannot be an array",
                         KEY_ALIGNMENT);
    pith_status status = begin_value(writer, key, PITH_GGUF_ARRAY, error);
    if (status) return status;
    put_number(&writer->values, (uint64_t)item, 4);
    put_number(&writer->values, n_items, 8);
    return PITH_OK;
}

pith_status pith_gguf_write_array(pith_gguf_writer *writer, const char *key, pith_gguf_kind item,
                                  const void *bytes, uint64_t n_items, pith_error *error) {
    size_t item_bytes = pith_gguf_kind_bytes((uint32_t)item);
    if (item_bytes == 0)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "key \"%s\": an array of value type %d cannot be written from bytes",
                         pith_gguf_show(pith_span_of(key)).text, (int)item);
    pith_status status = begin_array(writer, key, item, n_items, error);
    if (status) return status;
    pith_buffer_append(&writer->values, bytes, (size_t)n_items * item_bytes); /* at most 2^29 */
    return end_value(writer, error);
}

pith_status pith_gguf_write_strings(pith_gguf_writer *writer, const char *key,
                                    const pith_span *items, uint64_t n_items, pith_error *error) {
    pith_status status = PITH_OK;
    for (uint64_t i = 0; i < n_items && i <= PITH_GGUF_MAX_ARRAY && status == PITH_OK; i++)
        status = check_string(key, items[i].size, error);
    if (status == PITH_OK) status = begin_array(writer, key, PITH_GGUF_STRING, n_items, error);
    if (status) return status;
    for (uint64_t i = 0; i < n_items; i++) {
        put_string(&writer->values, items[i]);
        if (writer->values.failed || writer->values.size > PITH_GGUF_MAX_HEADER_BYTES) break;
    }
    return end_value(writer, error);
}

pith_status pith_gguf_write_string(pith_gguf_writer *writer, const char *key, const char *text,
                                   pith_error *error) {
    return pith_gguf_write_value(writer, key, PITH_GGUF_STRING, text, strlen(text), error);
}

pith_status pith_gguf_write_u32(pith_gguf_writer *writer, const char *key, uint32_t value,
                                pith_error *error) {
    uint8_t bytes[4];
    for (size_t i = 0; i < 4; i++) bytes[i] = (uint8_t)(value >> 8 * i);
    return pith_gguf_write_value(writer, key, PITH_GGUF_U32, bytes, sizeof bytes, error);
}

pith_status pith_gguf_write_f32(pith_gguf_writer *writer, const char *key, float value,
                                pith_error *error) {
    uint32_t bits = pith_bits_of_f32(value);
    uint8_t bytes[4];
    for (size_t i = 0; i < 4; i++) bytes[i] = (uint8_t)(bits >> 8 * i);
    return pith_gguf_write_value(writer, key, PITH_GGUF_F32, bytes, sizeof bytes, error);
}

pith_status pith_gguf_write_bool(pith_gguf_writer *writer, const char *key, bool value,
                                 pith_error *error) {
    uint8_t byte = value;
    return pith_gguf_write_value(writer, key, PITH_GGUF_BOOL, &byte, 1, error);
}

/* Bytes of the tensor, or why it cannot be. */
static pith_status measure_tensor(pith_gguf_tensor *tensor, pith_error *error) {
    const char *name = tensor->name.data;
    const pith_type_info *info = pith_type_get((uint32_t)tensor->type);
    if (!info)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "tensor \"%s\": type %d is unknown", name,
                         (int)tensor->type);
    if (tensor->ne[0] % info->block_elems != 0)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "tensor \"%s\" has rows of %" PRIu64
                         " elements, %s needs a multiple of %" PRIu32,
                         name, tensor->ne[0], info->name, info->block_elems);
    uint64_t elements = 1;
    bool fits = pith_type_row_bytes(tensor->type, tensor->ne[0], &tensor->bytes);
    for (int i = 0; i < 4; i++) {
        fits = fits && pith_u64_mul(elements, tensor->ne[i] ? tensor->ne[i] : 1, &elements);
        if (i > 0) fits = fits && pith_u64_mul(tensor->bytes, tensor->ne[i], &tensor->bytes);
    }
    if (fits && elements <= INT64_MAX && tensor->bytes <= INT64_MAX - PITH_GGUF_MAX_ALIGNMENT)
        return PITH_OK;
    return pith_fail(error, PITH_ERROR_ARGUMENT,
                     "tensor \"%s\" with rows of %" PRIu64
                     " elements is too large: 2^63 - 1 is the most",
                     name, tensor->ne[0]);
}

static pith_status room_for_tensor(pith_gguf_writer *writer, pith_error *error) {
    if (writer->n_tensors < writer->capacity) return PITH_OK;
    size_t capacity = writer->capacity ? writer->capacity * 2 : 64;
    pith_gguf_tensor *tensors = pith_realloc(writer->tensors, capacity * sizeof *tensors);
    if (!tensors) return pith_fail_memory(error, "the list of tensors", capacity * sizeof *tensors);
    writer->tensors = tensors;
    writer->capacity = capacity;
    return PITH_OK;
}

pith_status pith_gguf_write_tensor(pith_gguf_writer *writer, const char *name, pith_type type,
                                   uint32_t n_dims, const uint64_t *ne, pith_error *error) {
    pith_gguf_shown shown = pith_gguf_show(pith_span_of(name));
    if (n_dims < 1 || n_dims > 4)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "tensor \"%s\" has %" PRIu32 " dimensions, 1 to 4 are allowed", shown.text,
                         n_dims);
    pith_gguf_tensor tensor = {.name = pith_span_of(shown.text), .type = type, .n_dims = n_dims};
    for (uint32_t i = 0; i < 4; i++) tensor.ne[i] = i < n_dims ? ne[i] : 1;
    pith_status status = measure_tensor(&tensor, error);
    if (status == PITH_OK) status = room_for_tensor(writer, error);
    uint64_t end;
    tensor.offset = writer->data_bytes;
    if (status == PITH_OK &&
        !pith_u64_add(tensor.offset, tensor.bytes + padding_after(writer, tensor.bytes), &end))
        status = pith_fail(error, PITH_ERROR_ARGUMENT,
                           "tensor \"%s\" of %" PRIu64 " bytes makes the file larger than 2^64",
                           shown.text, tensor.bytes);
    if (status == PITH_OK) status = note_name(writer, false, name, &tensor.name, error);
    if (status) return status;
    writer->tensors[writer->n_tensors++] = tensor;
    writer->data_bytes = end;
    return PITH_OK;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_tensors(const pith_gguf_writer *writer, pith_buffer *header) {
    for (size_t i = 0; i < writer->n_tensors; i++) {
        const pith_gguf_tensor *tensor = &writer->tensors[i];
        put_string(header, tensor->name);
        put_number(header, tensor->n_dims, 4);
        for (uint32_t d = 0; d < tensor->n_dims; d++) put_number(header, tensor->ne[d], 8);
        put_number(header, (uint64_t)tensor->type, 4);
        put_number(header, tensor->offset, 8);
    }
}

static pith_status write_padding(pith_gguf_writer *writer, uint64_t after, pith_error *error) {
    static const uint8_t zeros[256];
    uint64_t left = padding_after(writer, after);
    pith_status status = PITH_OK;
    while (left > 0 && status == PITH_OK) {
        size_t size = left < sizeof zeros ? (size_t)left : sizeof zeros;
        status = pith_output_write(writer->output, zeros, size, error);
        left -= size;
    }
    return status;
}

static pith_status write_header(pith_gguf_writer *writer, pith_error *error) {
    if (writer->alignment != PITH_GGUF_DEFAULT_ALIGNMENT &&
        !pith_map_find(&writer->keys, pith_span_of(KEY_ALIGNMENT), NULL)) {
        pith_status status = pith_gguf_write_u32(writer, KEY_ALIGNMENT, writer->alignment, error);
        if (status) return status;
    }
    writer->header_written = true;
    pith_buffer head = {0}, tail = {0};
    pith_buffer_append(&head, "GGUF", 4);
    put_number(&head, writer->version, 4);
    put_number(&head, writer->n_tensors, 8);
    put_number(&head, writer->n_values, 8);
    put_tensors(writer, &tail);
    uint64_t size = (uint64_t)head.size + writer->values.size + tail.size;
    pith_status status = PITH_OK;
    if (head.failed || tail.failed)
        status = pith_fail_memory(error, "the header", size);
    else if (size > PITH_GGUF_MAX_HEADER_BYTES)
        status = pith_fail(error, PITH_ERROR_LIMIT,
                           "the header takes %" PRIu64 " bytes, at most %" PRIu64 " are allowed",
                           size, PITH_GGUF_MAX_HEADER_BYTES);
    if (status == PITH_OK) status = pith_output_write(writer->output, head.data, head.size, error);
    if (status == PITH_OK)
        status = pith_output_write(writer->output, writer->values.data, writer->values.size, error);
    if (status == PITH_OK) status = pith_output_write(writer->output, tail.data, tail.size, error);
    if (status == PITH_OK && writer->n_tensors > 0) status = write_padding(writer, size, error);
    pith_buffer_deinit(&head);
    pith_buffer_deinit(&tail);
    return status;
}

/* Ends the tensors that have all their bytes, also those that have none. */
static pith_status end_full_tensors(pith_gguf_writer *writer, pith_error *error) {
    pith_status status = PITH_OK;
    while (status == PITH_OK && writer->tensor < writer->n_tensors &&
           writer->n_written == writer->tensors[writer->tensor].bytes) {
        status = write_padding(writer, writer->n_written, error);
        writer->tensor++;
        writer->n_written = 0;
    }
    return status;
}

static pith_status prepare_data(pith_gguf_writer *writer, pith_error *error) {
    if (writer->broken)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "a key could not be written before");
    pith_status status = writer->header_written ? PITH_OK : write_header(writer, error);
    return status ? status : end_full_tensors(writer, error);
}

pith_status pith_gguf_write_data(pith_gguf_writer *writer, const void *bytes, size_t size,
                                 pith_error *error) {
    const uint8_t *at = bytes;
    pith_status status = prepare_data(writer, error);
    while (status == PITH_OK && size > 0) {
        if (writer->tensor == writer->n_tensors)
            return pith_fail(error, PITH_ERROR_ARGUMENT,
                             "%zu bytes came after the last of %zu tensors was full", size,
                             writer->n_tensors);
        uint64_t left = writer->tensors[writer->tensor].bytes - writer->n_written;
        size_t part = size < left ? size : (size_t)left;
        status = pith_output_write(writer->output, at, part, error);
        if (status) return status;
        writer->n_written += part;
        at += part;
        size -= part;
        status = end_full_tensors(writer, error);
    }
    return status;
}

pith_status pith_gguf_writer_finish(pith_gguf_writer *writer, pith_error *error) {
    pith_status status = prepare_data(writer, error);
    if (status) return status;
    if (writer->tensor < writer->n_tensors)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "tensor \"%s\" has %" PRIu64 " of its %" PRIu64 " bytes",
                         pith_gguf_show(writer->tensors[writer->tensor].name).text,
                         writer->n_written, writer->tensors[writer->tensor].bytes);
    return pith_output_commit(writer->output, error);
}
