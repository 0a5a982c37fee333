/* SPDX-License-Identifier: Apache-2.0
 *
 * Stripping, replacing, cutting into lines, padding.
 *
 * Invariant: bytes that stay keep their author; what a replacement brings in has the author of the
 * replacement; padding is the template's.
 */
#include "chat/string_edit.h"

#include "chat/search.h"
#include "chat/unicode_case.h"

#include <string.h>

/* ---- strip ---- */

static bool is_among(pith_heap *heap, const pith_string *chars, const char *at, size_t size) {
    if (chars == NULL) {
        uint32_t code;
        pith_utf8_decode(at, size, &code);
        return (pith_unicode_flags(code) & PITH_UNICODE_SPACE) != 0;
    }
    pith_span needle = {at, size};
    size_t found = 0;
    while ((found = pith_search_first(heap, pith_string_span(chars), needle, found)) != SIZE_MAX) {
        uint32_t code; /* a byte that stands for itself may also be part of a longer one */
        if (pith_utf8_decode(chars->data + found, chars->size - found, &code) == size) return true;
        found++;
    }
    return false;
}

/* The size of the character that ends at `end`. */
static size_t char_before(const pith_string *string, size_t from, size_t end) {
    uint32_t code;
    size_t size = 1;
    while (size < 4 && end - size > from &&
           ((unsigned char)string->data[end - size] & 0xC0) == 0x80)
        size++;
    return pith_utf8_decode(string->data + end - size, size, &code) == size ? size : 1;
}

const pith_string *pith_string_strip(pith_heap *heap, const pith_string *string,
                                     const pith_string *chars, int sides) {
    size_t from = 0, to = string->size;
    uint32_t code;
    while ((sides & PITH_STRIP_LEFT) != 0 && from < to) {
        size_t size = pith_utf8_decode(string->data + from, to - from, &code);
        if (!is_among(heap, chars, string->data + from, size)) break;
        from += size;
    }
    while ((sides & PITH_STRIP_RIGHT) != 0 && from < to) {
        size_t size = char_before(string, from, to);
        if (!is_among(heap, chars, string->data + to - size, size)) break;
        to -= size;
    }
    if (!pith_heap_charge(heap, 1 + (string->size - (to - from)) / 4)) return NULL;
    if (to - from == string->size) return string;
    return pith_string_slice(heap, string, from, to - from);
}

/* ---- replace ---- */

/* An empty `old` stands between all characters and at both ends. */
static void replace_empty(pith_builder *builder, const pith_string *string, const pith_string *with,
                          uint64_t limit) {
    uint64_t n = 0;
    size_t rest = 0;
    for (pith_walk walk = pith_walk_begin(string);
         n < limit && pith_walk_next(&walk) && !builder->failed; n++) {
        pith_builder_string(builder, with);
        pith_builder_slice(builder, string, walk.at, walk.size);
        rest = walk.at + walk.size;
    }
    if (n < limit) pith_builder_string(builder, with);
    pith_builder_slice(builder, string, rest, string->size - rest);
}

const pith_string *pith_string_replace(pith_heap *heap, const pith_string *string,
                                       const pith_string *old, const pith_string *with,
                                       int64_t limit) {
    uint64_t left = limit < 0 ? UINT64_MAX : (uint64_t)limit;
    size_t at = 0, found;
    pith_builder builder;
    pith_builder_init(&builder, heap);
    if (old->size == 0) {
        replace_empty(&builder, string, with, left);
    } else {
        for (; left > 0 && !builder.failed; left--) {
            found = pith_search_first(heap, pith_string_span(string), pith_string_span(old), at);
            if (found == SIZE_MAX) break;
            pith_builder_slice(&builder, string, at, found - at);
            pith_builder_string(&builder, with);
            at = found + old->size;
        }
        if (heap->fault != PITH_FAULT_NONE) return NULL;
        if (at == 0) return string;
        pith_builder_slice(&builder, string, at, string->size - at);
    }
    pith_string *replaced = pith_builder_finish(&builder);
    if (replaced != NULL) replaced->is_safe = string->is_safe;
    return replaced;
}

/* ---- lines ---- */

size_t pith_string_line_end(const pith_string *string, size_t at) {
    unsigned char c = (unsigned char)string->data[at];
    uint32_t code;
    if (c == '\r') return at + 1 < string->size && string->data[at + 1] == '\n' ? 2 : 1;
    if ((c >= 0x0A && c <= 0x0C) || (c >= 0x1C && c <= 0x1E)) return 1;
    if (c != 0xC2 && c != 0xE2) return 0;
    size_t size = pith_utf8_decode(string->data + at, string->size - at, &code);
    return code == 0x85 || code == 0x2028 || code == 0x2029 ? size : 0;
}

pith_list *pith_string_lines(pith_heap *heap, const pith_string *string, bool keeps_ends) {
    pith_list *lines = pith_list_new(heap, 4);
    size_t from = 0, at = 0;
    if (!pith_heap_charge(heap, string->size / 4)) return NULL;
    while (lines != NULL && from < string->size) {
        size_t end = at < string->size ? pith_string_line_end(string, at) : 0;
        if (end == 0 && at < string->size) {
            at++;
            continue;
        }
        pith_string *line =
            pith_string_slice(heap, string, from, at - from + (keeps_ends ? end : 0));
        if (line == NULL || !pith_list_append(heap, lines, pith_value_string(line))) return NULL;
        from = at = at + end;
    }
    return lines;
}

/* ---- padding ---- */

const pith_string *pith_string_pad(pith_heap *heap, const pith_string *string, size_t before,
                                   size_t behind, uint32_t fill) {
    pith_builder builder;
    if (before == 0 && behind == 0) return string;
    pith_builder_init(&builder, heap);
    if (!pith_heap_charge(heap, (before + behind) / 4)) return NULL;
    for (size_t i = 0; i < before && !builder.failed; i++) pith_builder_char(&builder, fill, false);
    pith_builder_string(&builder, string);
    for (size_t i = 0; i < behind && !builder.failed; i++) pith_builder_char(&builder, fill, false);
    pith_string *padded = pith_builder_finish(&builder);
    if (padded != NULL) padded->is_safe = string->is_safe;
    return padded;
}

const pith_string *pith_string_center(pith_heap *heap, const pith_string *string, size_t width,
                                      uint32_t fill) {
    size_t pad = width > string->n_chars ? width - string->n_chars : 0,
           left = pad / 2 + (pad & width & 1);
    return pith_string_pad(heap, string, left, pad - left, fill);
}
