/* SPDX-License-Identifier: Apache-2.0
 * The first part of a GGUF file: preamble, keys and values.
 *
 *     0  magic "GGUF"   4  u32 version   8  u64 n_tensors   16  u64 n_kv
 *    24  n_kv x { u64 length, key } { u32 kind } { value }
 *     .  n_tensors x tensor record                             gguf_tensor.c
 *     .  padding to the alignment, then the tensors' bytes
 *
 * Invariant: nothing is read before pith_gguf_scan_need has seen that it is there, and nothing is
 * allocated for a count before the bytes that the count stands for are there. So the memory of an
 * open file is bounded by its own header. Where the source can be mapped the header is parsed in
 * place. Where it cannot, a window over its first bytes grows and the walk starts again; spans
 * point into the window, so it stays until close.
 * Not here: what keys mean (gguf_key.c reads them typed, src/model knows their names). */
#include "base/memory.h"
#include "gguf/gguf_internal.h"

#include <inttypes.h>
#include <string.h>

#define FIRST_WINDOW (UINT64_C(1) << 18)

static const uint8_t kind_bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

size_t pith_gguf_kind_bytes(uint32_t kind) {
    return kind < sizeof kind_bytes ? kind_bytes[kind] : 0;
}

const char *pith_gguf_name_fault(pith_span text) {
    for (size_t at = 0; at < text.size;) {
        uint32_t code;
        at += pith_utf8_decode(text.data + at, text.size - at, &code);
        if (code == PITH_UTF8_INVALID) return "is not UTF-8";
        if (code == 0) return "holds a NUL byte";
    }
    return NULL;
}

/* ---- Reading with bounds --------------------------------------------------------------------- */

static pith_status fail_truncated(pith_gguf_scan *scan, uint64_t size, const char *what,
                                  pith_span name) {
    uint64_t left = scan->file_bytes - scan->cursor.position;
    const char *before = name.size ? " of \"" : "", *after = name.size ? "\"" : "";
    return pith_fail(scan->error, PITH_ERROR_FORMAT,
                     "%s: %s%s%s%s at byte %zu needs %" PRIu64 " bytes, %" PRIu64
                     " are left: the file is cut short or broken",
                     scan->label.text, what, before, pith_gguf_show(name).text, after,
                     scan->cursor.position, size, left);
}

pith_status pith_gguf_scan_need(pith_gguf_scan *scan, uint64_t size, const char *what,
                                pith_span name) {
    if (size <= pith_cursor_remaining(&scan->cursor)) return PITH_OK;
    if (size > scan->file_bytes - scan->cursor.position)
        return fail_truncated(scan, size, what, name);
    uint64_t end = scan->cursor.position + size;
    if (end > PITH_GGUF_MAX_HEADER_BYTES)
        return pith_fail(scan->error, PITH_ERROR_LIMIT,
                         "%s: the header goes on to byte %" PRIu64 ", at most %" PRIu64
                         " are allowed",
                         scan->label.text, end, PITH_GGUF_MAX_HEADER_BYTES);
    scan->wanted = end;
    return PITH_ERROR_FORMAT; /* the window grows and the walk starts again */
}

pith_status pith_gguf_scan_name(pith_gguf_scan *scan, const char *what, uint64_t index,
                                uint64_t limit, pith_span *out) {
    const pith_span none = {NULL, 0};
    size_t at = scan->cursor.position;
    pith_status status = pith_gguf_scan_need(scan, 8, what, none);
    if (status) return status;
    uint64_t size = pith_cursor_read_u64(&scan->cursor);
    if (size == 0 || size > limit)
        return pith_fail(scan->error, size ? PITH_ERROR_LIMIT : PITH_ERROR_FORMAT,
                         "%s: %s %" PRIu64 " at byte %zu has %" PRIu64 " bytes, 1 to %" PRIu64
                         " are allowed",
                         scan->label.text, what, index, at, size, limit);
    status = pith_gguf_scan_need(scan, size, what, none);
    if (status) return status;
    pith_span text = pith_cursor_read_bytes(&scan->cursor, size);
    const char *fault = pith_gguf_name_fault(text);
    if (fault)
        return pith_fail(scan->error, PITH_ERROR_FORMAT,
                         "%s: %s %" PRIu64 " at byte %zu (\"%s\") %s", scan->label.text, what,
                         index, at, pith_gguf_show(text).text, fault);
    *out = pith_gguf_arena_copy(&scan->gguf->arena, text);
    return out->data ? PITH_OK : pith_fail_memory(scan->error, what, size);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static pith_status fail_kind(pith_gguf_scan *scan, pith_span key, uint32_t kind) {
    return pith_fail(scan->error, PITH_ERROR_FORMAT,
                     "%s: key \"%s\" at byte %zu has value type %" PRIu32 ", 0 to 12 are known",
                     scan->label.text, pith_gguf_show(key).text, scan->cursor.position - 4, kind);
}

static pith_status fail_string(pith_gguf_scan *scan, pith_span key, uint64_t size) {
    return pith_fail(scan->error, PITH_ERROR_LIMIT,
                     "%s: key \"%s\" has a string of %" PRIu64
                     " bytes at byte %zu, at most %" PRIu64 " are allowed",
                     scan->label.text, pith_gguf_show(key).text, size, scan->cursor.position - 8,
                     PITH_GGUF_MAX_STRING_BYTES);
}

/* The string at the cursor, in place. */
static pith_status read_string(pith_gguf_scan *scan, pith_span key, pith_span *out) {
    pith_status status = pith_gguf_scan_need(scan, 8, "the string", key);
    if (status) return status;
    uint64_t size = pith_cursor_read_u64(&scan->cursor);
    if (size > PITH_GGUF_MAX_STRING_BYTES && size <= scan->file_bytes - scan->cursor.position)
        return fail_string(scan, key, size);
    status = pith_gguf_scan_need(scan, size, "the string", key);
    if (status) return status;
    *out = pith_cursor_read_bytes(&scan->cursor, size);
    return PITH_OK;
}

static pith_status read_string_items(pith_gguf_scan *scan, pith_gguf_value *value) {
    pith_status status = pith_gguf_scan_need(scan, value->n_items * 8, "the array", value->key);
    if (status) return status;
    size_t bytes;
    if (!pith_size_mul((size_t)value->n_items, sizeof(pith_span), &bytes)) bytes = SIZE_MAX;
    pith_span *items = pith_gguf_arena_alloc(&scan->gguf->arena, bytes);
    if (!items) return pith_fail_memory(scan->error, "a list of strings", bytes);
    for (uint64_t i = 0; i < value->n_items; i++) {
        status = read_string(scan, value->key, &items[i]);
        if (status) return status;
    }
    value->strings = items;
    return PITH_OK;
}

static pith_status read_array(pith_gguf_scan *scan, pith_gguf_value *value) {
    pith_status status = pith_gguf_scan_need(scan, 12, "the array", value->key);
    if (status) return status;
    uint32_t item = pith_cursor_read_u32(&scan->cursor);
    if (item == PITH_GGUF_ARRAY)
        return pith_fail(
            scan->error, PITH_ERROR_UNSUPPORTED,
            "%s: key \"%s\" at byte %zu is an array of arrays, which pith does not read",
            scan->label.text, pith_gguf_show(value->key).text, scan->cursor.position - 4);
    if (item > PITH_GGUF_F64) return fail_kind(scan, value->key, item);
    value->item_kind = (pith_gguf_kind)item;
    value->n_items = pith_cursor_read_u64(&scan->cursor);
    if (value->n_items > PITH_GGUF_MAX_ARRAY)
        return pith_fail(scan->error, PITH_ERROR_LIMIT,
                         "%s: key \"%s\" at byte %zu has %" PRIu64 " items, at most %d are allowed",
                         scan->label.text, pith_gguf_show(value->key).text,
                         scan->cursor.position - 8, value->n_items, PITH_GGUF_MAX_ARRAY);
    size_t start = scan->cursor.position;
    if (item == PITH_GGUF_STRING) {
        status = read_string_items(scan, value);
    } else {
        uint64_t bytes = value->n_items * kind_bytes[item];
        status = pith_gguf_scan_need(scan, bytes, "the array", value->key);
        if (status == PITH_OK) pith_cursor_skip(&scan->cursor, bytes);
    }
    value->bytes = scan->cursor.data + start;
    value->size = scan->cursor.position - start;
    return status;
}

static pith_status read_scalar(pith_gguf_scan *scan, pith_gguf_value *value) {
    if (value->kind == PITH_GGUF_STRING) {
        pith_span text = {NULL, 0};
        pith_status status = read_string(scan, value->key, &text);
        if (status) return status;
        text = pith_gguf_arena_copy(&scan->gguf->arena, text); /* NUL-terminated for get_string */
        if (!text.data) return pith_fail_memory(scan->error, "a string", text.size);
        value->bytes = (const uint8_t *)text.data;
        value->size = text.size;
        return PITH_OK;
    }
    size_t bytes = kind_bytes[value->kind];
    pith_status status = pith_gguf_scan_need(scan, bytes, "the value", value->key);
    if (status) return status;
    value->bytes = scan->cursor.data + scan->cursor.position;
    value->size = bytes;
    pith_cursor_skip(&scan->cursor, bytes);
    return PITH_OK;
}

static pith_status read_value(pith_gguf_scan *scan, uint64_t index, pith_gguf_value *value) {
    pith_status status =
        pith_gguf_scan_name(scan, "key", index, PITH_GGUF_MAX_KEY_BYTES, &value->key);
    if (status) return status;
    status = pith_gguf_scan_need(scan, 4, "the value type", value->key);
    if (status) return status;
    uint32_t kind = pith_cursor_read_u32(&scan->cursor);
    if (kind > PITH_GGUF_F64) return fail_kind(scan, value->key, kind);
    value->kind = (pith_gguf_kind)kind;
    value->n_items = 1;
    return kind == PITH_GGUF_ARRAY ? read_array(scan, value) : read_scalar(scan, value);
}

static pith_status read_values(pith_gguf_scan *scan, uint64_t n_values) {
    const pith_span none = {NULL, 0};
    pith_gguf *gguf = scan->gguf;
    if (n_values > PITH_GGUF_MAX_KEYS)
        return pith_fail(scan->error, PITH_ERROR_LIMIT,
                         "%s: the header claims %" PRIu64 " keys, at most %d are allowed",
                         scan->label.text, n_values, PITH_GGUF_MAX_KEYS);
    pith_status status =
        pith_gguf_scan_need(scan, n_values * PITH_GGUF_MIN_KEY_RECORD, "the list of keys", none);
    if (status) return status;
    size_t count = (size_t)n_values;
    gguf->values = pith_alloc_zero(count, sizeof *gguf->values);
    if (!gguf->values || !pith_map_reserve(&gguf->keys, count))
        return pith_fail_memory(scan->error, "the list of keys", count * sizeof *gguf->values);
    for (size_t i = 0; i < count; i++) {
        pith_gguf_value *value = &gguf->values[i];
        status = read_value(scan, i, value);
        if (status) return status;
        gguf->n_values = i + 1;
        int32_t first;
        int inserted = pith_map_insert(&gguf->keys, value->key, (int32_t)i, &first);
        if (inserted < 0) return pith_fail_memory(scan->error, "the index of keys", count);
        if (inserted == 0)
            return pith_fail(scan->error, PITH_ERROR_FORMAT,
                             "%s: key \"%s\" is there twice, as keys %" PRId32 " and %zu",
                             scan->label.text, pith_gguf_show(value->key).text, first, i);
    }
    return PITH_OK;
}

/* ---- The whole header ------------------------------------------------------------------------ */

static pith_status fail_magic(pith_gguf_scan *scan, pith_span magic) {
    const uint8_t *b = (const uint8_t *)magic.data;
    if (memcmp(b, "vers", 4) == 0)
        return pith_fail(scan->error, PITH_ERROR_FORMAT,
                         "%s is not a GGUF file but looks like a text file in its place (a Git LFS "
                         "pointer?): fetch the file itself",
                         scan->label.text);
    return pith_fail(
        scan->error, PITH_ERROR_FORMAT,
        "%s is not a GGUF file: it starts with bytes %02x %02x %02x %02x, not 47 47 55 46",
        scan->label.text, b[0], b[1], b[2], b[3]);
}

static pith_status check_version(pith_gguf_scan *scan, uint32_t version) {
    const char *label = scan->label.text;
    if (version == 2 || version == 3) return PITH_OK;
    if (version != 0 && (version & 0xFFFFu) == 0)
        return pith_fail(scan->error, PITH_ERROR_UNSUPPORTED,
                         "%s is a big-endian GGUF file (version bytes %08" PRIx32
                         "), pith reads little-endian files: convert it",
                         label, version);
    if (version == 1)
        return pith_fail(scan->error, PITH_ERROR_UNSUPPORTED,
                         "%s has GGUF version 1, pith reads 2 and 3: convert the model again",
                         label);
    return pith_fail(scan->error, PITH_ERROR_UNSUPPORTED,
                     "%s has GGUF version %" PRIu32 ", pith reads 2 and 3", label, version);
}

static pith_status read_alignment(pith_gguf_scan *scan) {
    uint32_t alignment = PITH_GGUF_DEFAULT_ALIGNMENT;
    bool found;
    pith_status status =
        pith_gguf_get_u32(scan->gguf, "general.alignment", 1, PITH_GGUF_MAX_ALIGNMENT, &alignment,
                          &found, scan->error);
    if (status) return status;
    if ((alignment & (alignment - 1)) != 0)
        return pith_fail(scan->error, PITH_ERROR_FORMAT,
                         "%s: key \"general.alignment\" holds %" PRIu32
                         ", which is no power of two",
                         scan->label.text, alignment);
    scan->gguf->alignment = alignment;
    return PITH_OK;
}

static pith_status walk(pith_gguf_scan *scan) {
    const pith_span none = {NULL, 0};
    pith_status status = pith_gguf_scan_need(scan, 4, "the magic number", none);
    if (status) return status;
    pith_span magic = pith_cursor_read_bytes(&scan->cursor, 4);
    if (memcmp(magic.data, "GGUF", 4) != 0) return fail_magic(scan, magic);
    status = pith_gguf_scan_need(scan, 4, "the version", none);
    if (status) return status;
    scan->gguf->version = pith_cursor_read_u32(&scan->cursor);
    status = check_version(scan, scan->gguf->version);
    if (status == PITH_OK) status = pith_gguf_scan_need(scan, 16, "the header", none);
    if (status) return status;
    uint64_t n_tensors = pith_cursor_read_u64(&scan->cursor);
    uint64_t n_values = pith_cursor_read_u64(&scan->cursor);
    if (n_tensors > PITH_GGUF_MAX_TENSORS)
        return pith_fail(scan->error, PITH_ERROR_LIMIT,
                         "%s: the header claims %" PRIu64 " tensors, at most %d are allowed",
                         scan->label.text, n_tensors, PITH_GGUF_MAX_TENSORS);
    status = read_values(scan, n_values);
    if (status == PITH_OK) status = read_alignment(scan);
    if (status == PITH_OK) status = pith_gguf_tensors_read(scan, n_tensors);
    return status;
}

void pith_gguf_header_reset(pith_gguf *gguf) {
    pith_free(gguf->values);
    pith_free(gguf->tensors);
    gguf->values = NULL;
    gguf->tensors = NULL;
    gguf->n_values = gguf->n_tensors = 0;
    pith_map_deinit(&gguf->keys);
    pith_map_deinit(&gguf->names);
    pith_gguf_arena_deinit(&gguf->arena);
}

/* Makes the first `size` bytes of the source available; `have` of them already are. */
static pith_status grow_window(pith_gguf *gguf, size_t have, size_t size, pith_error *error) {
    uint8_t *window = pith_realloc(gguf->window, size ? size : 1);
    if (!window) return pith_fail_memory(error, "the file's header", size);
    gguf->window = window;
    return pith_source_read(gguf->sources[0], have, window + have, size - have, error);
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static pith_status read_windowed(pith_gguf_scan *scan, pith_error *error) {
    pith_gguf *gguf = scan->gguf;
    uint64_t limit = smaller(scan->file_bytes, PITH_GGUF_MAX_HEADER_BYTES);
    size_t have = 0, size = (size_t)smaller(limit, FIRST_WINDOW);
    for (;;) { /* `size` at least doubles each time, up to limit */
        pith_status status = grow_window(gguf, have, size, error);
        if (status) return status;
        have = size;
        scan->cursor = pith_cursor_over(gguf->window, size);
        scan->wanted = 0;
        status = walk(scan);
        if (status == PITH_OK || scan->wanted == 0) return status;
        uint64_t doubled = (uint64_t)size * 2;
        size = (size_t)smaller(limit, scan->wanted > doubled ? scan->wanted : doubled);
        pith_gguf_header_reset(gguf);
    }
}

pith_status pith_gguf_header_read(pith_gguf *gguf, pith_error *error) {
    pith_source *source = gguf->sources[0];
    pith_gguf_scan scan = {.gguf = gguf, .error = error};
    scan.label = pith_gguf_label(source);
    scan.file_bytes = pith_source_size(source);
    const uint8_t *mapped = pith_source_map(source);
    if (!mapped) return read_windowed(&scan, error);
    size_t at_hand = (size_t)smaller(scan.file_bytes, PITH_GGUF_MAX_HEADER_BYTES);
    scan.cursor = pith_cursor_over(mapped, at_hand);
    return walk(&scan);
}
