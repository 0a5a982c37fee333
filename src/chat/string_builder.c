/* SPDX-License-Identifier: Apache-2.0
 *
 * Making a string from parts, each with its author.
 *
 * The bytes grow in the heap's text arena: in place while they are the last text, else they move to
 * twice the room. The list of pieces grows alike among the objects. Neighbouring parts of one
 * author become one piece.
 *
 * Invariants: ends ascend, neighbours differ, the last end is `size`; n_chars counts every appended
 * character. A part never splits a character: callers append whole characters, and a byte that
 * stands for itself cannot become part of one, because the decoder that cut it off saw what
 * followed. (Two such bytes from different strings may meet and form a character; then n_chars is
 * one too high, which shifts counting in that broken string and nothing else.)
 */
#include "chat/string_value.h"

#include <string.h>

void pith_builder_init(pith_builder *builder, pith_heap *heap) {
    *builder = (pith_builder){.heap = heap};
}

bool pith_builder_reserve(pith_builder *builder, size_t more) {
    if (builder->failed) return false;
    if (more <= builder->capacity - builder->size) return true;
    size_t lacking = more - (builder->capacity - builder->size);
    if (builder->data != NULL &&
        pith_heap_text_extend(builder->heap, builder->data + builder->capacity, lacking)) {
        builder->capacity += lacking;
        return true;
    }
    size_t capacity = builder->size + more;
    if (capacity < more || capacity > builder->heap->limit) capacity = builder->heap->limit + 1;
    if (builder->data != NULL)
        capacity *= 2; /* it has outgrown its place once and may do so again */
    char *data = pith_heap_text(builder->heap, capacity);
    if (data == NULL) {
        builder->failed = true;
        return false;
    }
    if (builder->size > 0) memcpy(data, builder->data, builder->size);
    builder->data = data;
    builder->capacity = capacity;
    return true;
}

static bool reserve_piece(pith_builder *builder) {
    if (builder->n_pieces < builder->piece_capacity) return true;
    size_t capacity = builder->piece_capacity == 0 ? 4 : builder->piece_capacity * 2;
    pith_piece *pieces = pith_heap_array(builder->heap, capacity, sizeof *pieces);
    if (pieces == NULL) {
        builder->failed = true;
        return false;
    }
    if (builder->n_pieces > 0) memcpy(pieces, builder->pieces, builder->n_pieces * sizeof *pieces);
    builder->pieces = pieces;
    builder->piece_capacity = capacity;
    return true;
}

/* The `size` bytes just appended are of this author. */
static void note_author(pith_builder *builder, size_t size, bool is_user) {
    builder->size += size;
    if (builder->n_pieces > 0 && builder->pieces[builder->n_pieces - 1].is_user == is_user) {
        builder->pieces[builder->n_pieces - 1].end = builder->size;
    } else if (reserve_piece(builder)) {
        builder->pieces[builder->n_pieces++] = (pith_piece){builder->size, is_user};
    }
}

void pith_builder_bytes(pith_builder *builder, const char *data, size_t size, bool is_user) {
    if (size == 0 || !pith_builder_reserve(builder, size)) return;
    memcpy(builder->data + builder->size, data, size);
    builder->n_chars += pith_string_count_chars(data, size);
    note_author(builder, size, is_user);
}

void pith_builder_text(pith_builder *builder, const char *text) {
    pith_builder_bytes(builder, text, strlen(text), false);
}

void pith_builder_char(pith_builder *builder, uint32_t code, bool is_user) {
    char bytes[4];
    size_t size = pith_utf8_encode(code, bytes);
    if (size == 0) size = pith_utf8_encode(0xFFFD, bytes);
    pith_builder_bytes(builder, bytes, size, is_user);
}

/* The part of `string` from `from` on, piece by piece. */
static void append_pieces(pith_builder *builder, const pith_string *string, size_t from,
                          size_t size) {
    size_t at = from, end = from + size;
    for (size_t i = 0; i < string->n_pieces && at < end; i++) {
        size_t stop = string->pieces[i].end < end ? string->pieces[i].end : end;
        if (stop <= at) continue;
        pith_builder_bytes(builder, string->data + at, stop - at, string->pieces[i].is_user);
        at = stop;
    }
}

void pith_builder_slice(pith_builder *builder, const pith_string *string, size_t from,
                        size_t size) {
    if (size == 0 || !pith_builder_reserve(builder, size)) return;
    if (string->pieces != NULL) {
        append_pieces(builder, string, from, size);
        return;
    }
    memcpy(builder->data + builder->size, string->data + from, size);
    bool is_whole = size == string->size, is_narrow = string->n_chars == string->size;
    builder->n_chars += is_whole    ? string->n_chars
                        : is_narrow ? size
                                    : pith_string_count_chars(string->data + from, size);
    note_author(builder, size, string->is_user);
}

void pith_builder_string(pith_builder *builder, const pith_string *string) {
    pith_builder_slice(builder, string, 0, string->size);
}

void pith_builder_repeat(pith_builder *builder, const pith_string *string, size_t n) {
    if (string->size == 0 || n == 0) return;
    if (n > builder->heap->limit / string->size) n = builder->heap->limit / string->size + 1;
    if (!pith_builder_reserve(builder, string->size * n)) return;
    if (string->pieces != NULL) {
        for (size_t i = 0; i < n && !builder->failed; i++) pith_builder_string(builder, string);
        return;
    }
    char *to = builder->data + builder->size;
    size_t total = string->size * n, done = string->size;
    memcpy(to, string->data, done);
    for (; done < total; done += done)
        memcpy(to + done, to, done < total - done ? done : total - done);
    builder->n_chars += string->n_chars * n;
    note_author(builder, total, string->is_user);
}

pith_string *pith_builder_finish(pith_builder *builder) {
    if (builder->failed) return NULL;
    pith_string *string = pith_heap_object(builder->heap, sizeof *string);
    if (string == NULL) return NULL;
    *string = (pith_string){.data = "", .size = builder->size, .n_chars = builder->n_chars};
    if (builder->data != NULL) {
        size_t unused = builder->capacity - builder->size;
        pith_heap_text_return(builder->heap, builder->data + builder->capacity, unused);
        string->data = builder->data;
    }
    if (builder->n_pieces >= 2) {
        string->pieces = builder->pieces;
        string->n_pieces = builder->n_pieces;
    } else if (builder->n_pieces == 1) {
        string->is_user = builder->pieces[0].is_user;
    }
    pith_builder_init(builder, builder->heap);
    return string;
}
