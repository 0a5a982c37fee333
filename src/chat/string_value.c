/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading strings, and the ways to make one without copying.
 *
 * Owns characters against bytes: the engine counts characters as Python does, storage is UTF-8.
 * Strings whose characters are all one byte (n_chars == size) take the short way everywhere.
 *
 * Invariant: strings are never changed after they were made; pith_string_join writes only behind
 * the end of a string, where no other string can be.
 *
 * It does not build from parts (string_builder.c) and knows no Unicode properties (unicode_case.c).
 */
#include "chat/string_value.h"

#include <string.h>

pith_span pith_string_span(const pith_string *string) {
    return (pith_span){string->data, string->size};
}

bool pith_string_is(const pith_string *string, const char *text) {
    return pith_span_is(pith_string_span(string), text);
}

int pith_string_compare(const pith_string *a, const pith_string *b) {
    size_t shared = a->size < b->size ? a->size : b->size;
    int order = shared == 0 ? 0 : memcmp(a->data, b->data, shared);
    if (order != 0) return order;
    return a->size < b->size ? -1 : a->size > b->size;
}

/* The piece that holds the byte at `offset`, by halving. */
static size_t find_piece(const pith_string *string, size_t offset) {
    size_t low = 0, high = string->n_pieces - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (string->pieces[middle].end <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool pith_string_user_at(const pith_string *string, size_t offset) {
    if (string->pieces == NULL) return string->is_user;
    return string->pieces[find_piece(string, offset)].is_user;
}

size_t pith_string_count_chars(const char *data, size_t size) {
    size_t n = 0, at = 0;
    while (at < size) {
        uint32_t code;
        at += (unsigned char)data[at] < 0x80 ? 1 : pith_utf8_decode(data + at, size - at, &code);
        n++;
    }
    return n;
}

size_t pith_string_offset(const pith_string *string, size_t index) {
    if (string->n_chars == string->size || index == 0) return index;
    if (index >= string->n_chars) return string->size;
    size_t at = 0;
    for (size_t i = 0; i < index && at < string->size; i++) {
        uint32_t code;
        at += pith_utf8_decode(string->data + at, string->size - at, &code);
    }
    return at;
}

size_t pith_string_index(const pith_string *string, size_t offset) {
    if (string->n_chars == string->size) return offset;
    return pith_string_count_chars(string->data, offset);
}

pith_string *pith_string_borrow(pith_heap *heap, const char *data, size_t size, bool is_user) {
    pith_string *string = pith_heap_object(heap, sizeof *string);
    if (string == NULL) return NULL;
    *string = (pith_string){.data = data,
                            .size = size,
                            .n_chars = pith_string_count_chars(data, size),
                            .is_user = is_user};
    return string;
}

pith_string *pith_string_copy(pith_heap *heap, const char *data, size_t size, bool is_user) {
    char *copy = pith_heap_text(heap, size);
    if (copy == NULL) return NULL;
    if (size > 0) memcpy(copy, data, size);
    return pith_string_borrow(heap, copy, size, is_user);
}

pith_string *pith_string_mark_safe(pith_heap *heap, const pith_string *string, bool is_safe) {
    pith_string *marked = pith_heap_object(heap, sizeof *marked);
    if (marked == NULL) return NULL;
    *marked = *string;
    marked->is_safe = is_safe;
    return marked;
}

/* The pieces of `string` from `from` on that make up a slice of `size` bytes. */
static bool slice_pieces(pith_heap *heap, const pith_string *string, size_t from,
                         pith_string *slice) {
    size_t first = find_piece(string, from), last = find_piece(string, from + slice->size - 1);
    if (first == last) {
        slice->is_user = string->pieces[first].is_user;
        return true;
    }
    pith_piece *pieces = pith_heap_array(heap, last - first + 1, sizeof *pieces);
    if (pieces == NULL) return false;
    for (size_t i = first; i <= last; i++) {
        pieces[i - first] = (pith_piece){string->pieces[i].end - from, string->pieces[i].is_user};
    }
    pieces[last - first].end = slice->size;
    slice->pieces = pieces;
    slice->n_pieces = last - first + 1;
    return true;
}

pith_string *pith_string_slice(pith_heap *heap, const pith_string *string, size_t from,
                               size_t size) {
    pith_string *slice = pith_heap_object(heap, sizeof *slice);
    if (slice == NULL) return NULL;
    bool is_narrow = string->n_chars == string->size;
    if (!is_narrow && !pith_heap_charge(heap, size / 4)) return NULL;
    *slice = (pith_string){
        .data = string->data + from,
        .size = size,
        .n_chars = is_narrow ? size : pith_string_count_chars(string->data + from, size),
        .is_user = string->is_user,
        .is_safe = string->is_safe};
    if (string->pieces != NULL && size > 0 && !slice_pieces(heap, string, from, slice)) return NULL;
    return slice;
}

/* One author wrote both, or one of the two is empty: no pieces are needed. */
static bool is_plain_pair(const pith_string *a, const pith_string *b) {
    if (a->pieces != NULL || b->pieces != NULL) return false;
    return a->size == 0 || b->size == 0 || a->is_user == b->is_user;
}

pith_string *pith_string_join(pith_heap *heap, const pith_string *a, const pith_string *b) {
    if (is_plain_pair(a, b) && a->size > 0 && b->size > 0 &&
        pith_heap_text_extend(heap, a->data + a->size, b->size)) {
        pith_string *joined = pith_heap_object(heap, sizeof *joined);
        if (joined == NULL) return NULL;
        memcpy((char *)(uintptr_t)(a->data + a->size), b->data, b->size);
        *joined = *a;
        joined->size += b->size;
        joined->n_chars += b->n_chars;
        joined->is_safe = false;
        return joined;
    }
    pith_builder builder;
    pith_builder_init(&builder, heap);
    pith_builder_string(&builder, a);
    pith_builder_string(&builder, b);
    return pith_builder_finish(&builder);
}

pith_walk pith_walk_begin(const pith_string *string) {
    return (pith_walk){.string = string, .is_user = string->is_user};
}

bool pith_walk_next(pith_walk *walk) {
    const pith_string *string = walk->string;
    walk->at += walk->size;
    if (walk->at >= string->size) return false;
    walk->size = pith_utf8_decode(string->data + walk->at, string->size - walk->at, &walk->code);
    if (string->pieces != NULL) {
        while (string->pieces[walk->piece].end <= walk->at) walk->piece++;
        walk->is_user = string->pieces[walk->piece].is_user;
    }
    return true;
}
