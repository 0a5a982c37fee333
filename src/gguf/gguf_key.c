/* SPDX-License-Identifier: Apache-2.0
 * The one typed reader for GGUF keys: absent, wrong type and out of range are three different
 * answers.
 *
 * Invariant: *out is written only when the key is there and right, so a caller puts its default in
 * first. Writers differ in the integer types they choose, so integers of any width and sign are
 * taken where the value fits; nothing else is converted: no float to integer, no integer to float,
 * no text to number.
 * Not here: which keys exist and what follows from them (src/model). */
#include "gguf/gguf_internal.h"

#include <inttypes.h>
#include <math.h>

typedef struct integer {
    uint64_t magnitude;
    bool negative;
} integer;

static const char *const kind_names[] = {"u8",   "i8",  "u16", "i16", "u32", "i32", "f32",
                                         "bool", "str", "arr", "u64", "i64", "f64"};
static const char *const array_names[] = {
    "arr[u8]",   "arr[i8]",  "arr[u16]", "arr[i16]", "arr[u32]", "arr[i32]", "arr[f32]",
    "arr[bool]", "arr[str]", "arr[arr]", "arr[u64]", "arr[i64]", "arr[f64]"};

const char *pith_gguf_kind_text(const pith_gguf_value *value) {
    return value->kind == PITH_GGUF_ARRAY ? array_names[value->item_kind] : kind_names[value->kind];
}

static pith_gguf_kind scalar_kind(const pith_gguf_value *value) {
    return value->kind == PITH_GGUF_ARRAY ? value->item_kind : value->kind;
}

static uint64_t stored_bits(const pith_gguf_value *value, uint64_t index) {
    size_t bytes = pith_gguf_kind_bytes((uint32_t)scalar_kind(value));
    const uint8_t *at = value->bytes + index * bytes;
    uint64_t bits = 0;
    for (size_t i = 0; i < bytes; i++) bits |= (uint64_t)at[i] << 8 * i;
    return bits;
}

static bool is_signed(pith_gguf_kind kind) {
    return kind == PITH_GGUF_I8 || kind == PITH_GGUF_I16 || kind == PITH_GGUF_I32 ||
           kind == PITH_GGUF_I64;
}

static bool is_unsigned(pith_gguf_kind kind) {
    return kind == PITH_GGUF_U8 || kind == PITH_GGUF_U16 || kind == PITH_GGUF_U32 ||
           kind == PITH_GGUF_U64;
}

static integer stored_integer(const pith_gguf_value *value, uint64_t index) {
    pith_gguf_kind kind = scalar_kind(value);
    integer found = {stored_bits(value, index), false};
    if (kind == PITH_GGUF_BOOL) found.magnitude = found.magnitude != 0;
    if (!is_signed(kind)) return found;
    unsigned n_bits = 8 * (unsigned)pith_gguf_kind_bytes((uint32_t)kind);
    found.negative = found.magnitude >> (n_bits - 1) & 1;
    if (!found.negative) return found;
    uint64_t mask = n_bits == 64 ? UINT64_MAX : (UINT64_C(1) << n_bits) - 1;
    found.magnitude = (0 - found.magnitude) & mask;
    return found;
}

static double stored_float(const pith_gguf_value *value, uint64_t index) {
    size_t bytes = pith_gguf_kind_bytes((uint32_t)scalar_kind(value));
    pith_cursor cursor = pith_cursor_over(value->bytes + index * bytes, bytes);
    return bytes == 4 ? (double)pith_cursor_read_f32(&cursor) : pith_cursor_read_f64(&cursor);
}

double pith_gguf_item_number(const pith_gguf_value *value, uint64_t index) {
    pith_gguf_kind kind = scalar_kind(value);
    if (index >= value->n_items || pith_gguf_kind_bytes((uint32_t)kind) == 0) return 0.0;
    if (kind == PITH_GGUF_F32 || kind == PITH_GGUF_F64) return stored_float(value, index);
    integer found = stored_integer(value, index);
    return found.negative ? -(double)found.magnitude : (double)found.magnitude;
}

/* ---- Typed reading --------------------------------------------------------------------------- */

/* The value of a key; sets *found (which may be NULL). */
static const pith_gguf_value *look_up(const pith_gguf *gguf, const char *key, bool *found) {
    const pith_gguf_value *value = pith_gguf_value_find(gguf, key);
    if (found) *found = value != NULL;
    return value;
}

static pith_status fail_kind(const pith_gguf_value *value, const char *needed, pith_error *error) {
    return pith_fail(error, PITH_ERROR_FORMAT, "key \"%s\" holds %s, %s is needed",
                     pith_gguf_show(value->key).text, pith_gguf_kind_text(value), needed);
}

static pith_status read_u32(const pith_gguf_value *value, uint64_t index, uint32_t min,
                            uint32_t max, uint32_t *out, pith_error *error) {
    integer found = stored_integer(value, index);
    if (!found.negative && found.magnitude >= min && found.magnitude <= max) {
        *out = (uint32_t)found.magnitude;
        return PITH_OK;
    }
    return pith_fail(error, PITH_ERROR_FORMAT,
                     "key \"%s\" holds %s%" PRIu64 " (item %" PRIu64 "), allowed are %" PRIu32
                     " to %" PRIu32,
                     pith_gguf_show(value->key).text, found.negative ? "-" : "", found.magnitude,
                     index, min, max);
}

pith_status pith_gguf_get_u32(const pith_gguf *gguf, const char *key, uint32_t min, uint32_t max,
                              uint32_t *out, bool *found, pith_error *error) {
    const pith_gguf_value *value = look_up(gguf, key, found);
    if (!value) return PITH_OK;
    if (!is_signed(value->kind) && !is_unsigned(value->kind))
        return fail_kind(value, "an integer", error);
    return read_u32(value, 0, min, max, out, error);
}

pith_status pith_gguf_get_f32(const pith_gguf *gguf, const char *key, float *out, bool *found,
                              pith_error *error) {
    const pith_gguf_value *value = look_up(gguf, key, found);
    if (!value) return PITH_OK;
    if (value->kind != PITH_GGUF_F32 && value->kind != PITH_GGUF_F64)
        return fail_kind(value, "a float", error);
    double number = stored_float(value, 0);
    float narrow = fabs(number) <= 0x1.fffffep127 ? (float)number : INFINITY;
    if (!isfinite(narrow))
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "key \"%s\" holds %g, a finite 32-bit float is needed",
                         pith_gguf_show(value->key).text, number);
    *out = narrow;
    return PITH_OK;
}

pith_status pith_gguf_get_bool(const pith_gguf *gguf, const char *key, bool *out, bool *found,
                               pith_error *error) {
    const pith_gguf_value *value = look_up(gguf, key, found);
    if (!value) return PITH_OK;
    if (value->kind != PITH_GGUF_BOOL) return fail_kind(value, "a bool", error);
    *out = value->bytes[0] != 0;
    return PITH_OK;
}

pith_status pith_gguf_get_string(const pith_gguf *gguf, const char *key, pith_span *out,
                                 bool *found, pith_error *error) {
    const pith_gguf_value *value = look_up(gguf, key, found);
    if (!value) return PITH_OK;
    if (value->kind != PITH_GGUF_STRING) return fail_kind(value, "a string", error);
    out->data = (const char *)value->bytes; /* the reader's own copy, with a NUL */
    out->size = (size_t)value->size;
    return PITH_OK;
}

pith_status pith_gguf_get_u32_each(const pith_gguf *gguf, const char *key, uint32_t min,
                                   uint32_t max, uint32_t *out, size_t n, bool *found,
                                   pith_error *error) {
    const pith_gguf_value *value = look_up(gguf, key, found);
    if (!value) return PITH_OK;
    pith_gguf_kind kind = scalar_kind(value);
    if (!is_signed(kind) && !is_unsigned(kind) && kind != PITH_GGUF_BOOL)
        return fail_kind(value, "an integer or an array of integers", error);
    bool one_for_all = value->kind != PITH_GGUF_ARRAY;
    if (!one_for_all && value->n_items != n)
        return pith_fail(error, PITH_ERROR_FORMAT,
                         "key \"%s\" has %" PRIu64 " items, %zu are needed",
                         pith_gguf_show(value->key).text, value->n_items, n);
    uint64_t n_read = one_for_all ? 1 : n;
    uint32_t item = 0;
    for (uint64_t i = 0; i < n_read; i++) { /* all are checked before *out is touched */
        pith_status status = read_u32(value, i, min, max, &item, error);
        if (status) return status;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = one_for_all ? item : (uint32_t)stored_integer(value, i).magnitude;
    return PITH_OK;
}
