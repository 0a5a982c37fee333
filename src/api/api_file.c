/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Reading files without loading them": an open GGUF file, its keys as text and its list
 * of tensors. The strings that are handed out lie in the file's header and live as long as the
 * pith_file. */
#include "api/api_file.h"
#include "api/api_argument.h"
#include "base/cursor.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* open: pith_gguf_open_path or pith_gguf_open_header. */
static pith_status open_file(const char *path,
                             pith_status (*open)(const char *, pith_gguf **, pith_error *),
                             pith_file **out, pith_error *error) {
    pith_file *file = pith_alloc_zero(1, sizeof *file);
    if (!file) return pith_fail_memory(error, "file", sizeof *file);
    pith_status status = open(path, &file->gguf, error);
    if (status != PITH_OK) {
        pith_free(file);
        return status;
    }
    pith_span text = {"", 0};
    bool found = false;
    status = pith_gguf_get_string(file->gguf, "general.architecture", &text, &found, NULL);
    file->architecture = status == PITH_OK && found ? text.data : "";
    *out = file;
    return PITH_OK;
}

pith_status pith_file_open(const char *path, pith_file **out, pith_error *error) {
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    return path ? open_file(path, pith_gguf_open_path, out, error) : pith_fail_null(error, "path");
}

pith_status pith_file_open_header(const char *path, pith_file **out, pith_error *error) {
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    return path ? open_file(path, pith_gguf_open_header, out, error)
                : pith_fail_null(error, "path");
}

void pith_file_close(pith_file *file) {
    if (!file) return;
    pith_gguf_close(file->gguf);
    pith_free(file);
}

pith_file_summary pith_file_summarize(const pith_file *file) {
    pith_file_summary summary = {.architecture = ""};
    if (!file) return summary;
    summary = (pith_file_summary){.version = pith_gguf_version(file->gguf),
                                  .alignment = pith_gguf_alignment(file->gguf),
                                  .n_shards = pith_gguf_n_shards(file->gguf),
                                  .n_metadata = pith_gguf_n_values(file->gguf),
                                  .n_tensors = pith_gguf_n_tensors(file->gguf),
                                  .architecture = file->architecture};
    summary.total_bytes = pith_gguf_total_bytes(file->gguf);
    for (size_t i = 0; i < summary.n_tensors; i++) {
        const pith_gguf_tensor *tensor = pith_gguf_tensor_at(file->gguf, i);
        summary.tensor_bytes += tensor->bytes;
        summary.n_parameters += tensor->ne[0] * tensor->ne[1] * tensor->ne[2] * tensor->ne[3];
    }
    return summary;
}

static const pith_gguf_value *value_at(const pith_file *file, uint64_t index) {
    if (!file || index >= pith_gguf_n_values(file->gguf)) return NULL;
    return pith_gguf_value_at(file->gguf, (size_t)index);
}

const char *pith_file_key(const pith_file *file, uint64_t index) {
    const pith_gguf_value *value = value_at(file, index);
    return value ? value->key.data : NULL;
}

const char *pith_file_value_type(const pith_file *file, uint64_t index) {
    const pith_gguf_value *value = value_at(file, index);
    return value ? pith_gguf_kind_text(value) : NULL;
}

/* ---- Values as text ---- */

/* Text that is cut at the caller's capacity but counted whole. */
typedef struct text_sink {
    char *buffer;
    size_t capacity, size;
} text_sink;

static void put(text_sink *sink, const char *text, size_t size) {
    if (sink->size < sink->capacity) {
        size_t room = sink->capacity - sink->size;
        memcpy(sink->buffer + sink->size, text, size < room ? size : room);
    }
    sink->size += size;
}

static void put_text(text_sink *sink, const char *text) {
    put(sink, text, strlen(text));
}

/* A number or truth value from its stored bytes. */
static void put_number(text_sink *sink, pith_gguf_kind kind, pith_cursor *cursor) {
    char text[48] = "";
    switch (kind) {
    case PITH_GGUF_U8: snprintf(text, sizeof text, "%u", pith_cursor_read_u8(cursor)); break;
    case PITH_GGUF_I8:
        snprintf(text, sizeof text, "%d", (int8_t)pith_cursor_read_u8(cursor));
        break;
    case PITH_GGUF_U16: snprintf(text, sizeof text, "%u", pith_cursor_read_u16(cursor)); break;
    case PITH_GGUF_I16:
        snprintf(text, sizeof text, "%d", (int16_t)pith_cursor_read_u16(cursor));
        break;
    case PITH_GGUF_U32:
        snprintf(text, sizeof text, "%" PRIu32, pith_cursor_read_u32(cursor));
        break;
    case PITH_GGUF_I32:
        snprintf(text, sizeof text, "%" PRId32, (int32_t)pith_cursor_read_u32(cursor));
        break;
    case PITH_GGUF_U64:
        snprintf(text, sizeof text, "%" PRIu64, pith_cursor_read_u64(cursor));
        break;
    case PITH_GGUF_I64:
        snprintf(text, sizeof text, "%" PRId64, (int64_t)pith_cursor_read_u64(cursor));
        break;
    case PITH_GGUF_F32:
        snprintf(text, sizeof text, "%.9g", (double)pith_cursor_read_f32(cursor));
        break;
    case PITH_GGUF_F64: snprintf(text, sizeof text, "%.17g", pith_cursor_read_f64(cursor)); break;
    case PITH_GGUF_BOOL:
        put_text(sink, pith_cursor_read_u8(cursor) != 0 ? "true" : "false");
        return;
    case PITH_GGUF_STRING:
    case PITH_GGUF_ARRAY: break;
    }
    put_text(sink, text);
}

/* A string inside an array, as JSON writes it, so that borders between items can be seen. */
static void put_quoted(text_sink *sink, pith_span text) {
    put_text(sink, "\"");
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        char escape[8];
        if (c == '"' || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", c);
        else if (c < 0x20)
            snprintf(escape, sizeof escape, "\\u%04x", c);
        else
            snprintf(escape, sizeof escape, "%c", c);
        put_text(sink, escape);
    }
    put_text(sink, "\"");
}

static void put_array(text_sink *sink, const pith_gguf_value *value, size_t max_items) {
    pith_cursor cursor = pith_cursor_over(value->bytes, (size_t)value->size);
    put_text(sink, "[");
    for (uint64_t i = 0; i < value->n_items && i < max_items; i++) {
        if (i > 0) put_text(sink, ", ");
        if (value->strings)
            put_quoted(sink, value->strings[i]);
        else
            put_number(sink, value->item_kind, &cursor);
    }
    put_text(sink, "]");
    if (value->n_items > max_items) {
        char text[40];
        snprintf(text, sizeof text, ", ... (%" PRIu64 ")", value->n_items);
        put_text(sink, text);
    }
}

size_t pith_file_value_text(const pith_file *file, uint64_t index, size_t max_items, char *buffer,
                            size_t capacity) {
    const pith_gguf_value *value = value_at(file, index);
    text_sink sink = {.buffer = buffer, .capacity = buffer && capacity > 0 ? capacity - 1 : 0};
    if (value && value->kind == PITH_GGUF_STRING) {
        put(&sink, (const char *)value->bytes, (size_t)value->size);
    } else if (value && value->kind == PITH_GGUF_ARRAY) {
        put_array(&sink, value, max_items);
    } else if (value) {
        pith_cursor cursor = pith_cursor_over(value->bytes, (size_t)value->size);
        put_number(&sink, value->kind, &cursor);
    }
    if (buffer && capacity > 0)
        buffer[sink.size < sink.capacity ? sink.size : sink.capacity] = '\0';
    return sink.size;
}

bool pith_file_tensor_at(const pith_file *file, uint64_t index, pith_file_tensor *out) {
    if (!file || !out || index >= pith_gguf_n_tensors(file->gguf)) return false;
    const pith_gguf_tensor *tensor = pith_gguf_tensor_at(file->gguf, (size_t)index);
    const pith_type_info *info = pith_type_get(tensor->type);
    *out = (pith_file_tensor){.name = tensor->name.data,
                              .type = info && info->name ? info->name : "?",
                              .n_dims = tensor->n_dims,
                              .offset = tensor->offset,
                              .bytes = tensor->bytes,
                              .shard = tensor->shard};
    for (int i = 0; i < 4; i++) out->shape[i] = tensor->ne[i];
    return true;
}

pith_status pith_file_check(const pith_file *file, pith_error *error) {
    if (!file) return pith_fail_null(error, "file");
    return pith_model_check(file->gguf, error);
}
