/* SPDX-License-Identifier: Apache-2.0
 * Strings of the template engine: immutable bytes (UTF-8; a byte that is not well-formed stands for
 * itself as one character) that know who wrote each of them.
 *
 *   data:    <|user|>Hello <|end|>\n
 *   pieces:  T.......U......T.......       {end, is_user}, ends ascending, neighbours differ
 *
 * A string of one author has no pieces, only `is_user`. Everything that makes a string from others
 * goes through a builder, which carries the authors along; nothing else writes bytes. */
#ifndef PITH_CHAT_STRING_VALUE_H
#define PITH_CHAT_STRING_VALUE_H

#include "base/text.h"
#include "chat/arena.h"

typedef struct pith_piece {
    size_t end; /* byte offset; the piece begins where the one before ends */
    bool is_user;
} pith_piece;

typedef struct pith_string {
    const char *data;
    size_t size;              /* bytes */
    size_t n_chars;           /* characters; equal to size: every character is one byte */
    const pith_piece *pieces; /* [n_pieces], n_pieces >= 2; NULL when one author wrote all */
    size_t n_pieces;          /* 0 when pieces is NULL */
    bool is_user;             /* the author when pieces is NULL */
    bool is_safe;             /* marked as HTML by `safe` or `escape` (Python's Markup) */
} pith_string;

typedef struct pith_builder {
    pith_heap *heap;
    char *data; /* text of the heap */
    size_t size, capacity;
    size_t n_chars;
    pith_piece *pieces; /* object of the heap */
    size_t n_pieces, piece_capacity;
    bool failed; /* out of memory; appends do nothing from then on */
} pith_builder;

/* ---- making ---- */

void pith_builder_init(pith_builder *builder, pith_heap *heap);
bool pith_builder_reserve(pith_builder *builder, size_t more);
void pith_builder_bytes(pith_builder *builder, const char *data, size_t size, bool is_user);
void pith_builder_text(pith_builder *builder, const char *text); /* the template's */
void pith_builder_char(pith_builder *builder, uint32_t code, bool is_user);
void pith_builder_string(pith_builder *builder, const pith_string *string);
void pith_builder_slice(pith_builder *builder, const pith_string *string, size_t from, size_t size);
void pith_builder_repeat(pith_builder *builder, const pith_string *string, size_t n);
/* The string; the builder is empty afterwards. NULL when an append failed. */
pith_string *pith_builder_finish(pith_builder *builder);

/* data is borrowed and must outlive the heap's strings. */
pith_string *pith_string_borrow(pith_heap *heap, const char *data, size_t size, bool is_user);
pith_string *pith_string_copy(pith_heap *heap, const char *data, size_t size, bool is_user);
/* Shares the bytes. */
pith_string *pith_string_slice(pith_heap *heap, const pith_string *string, size_t from,
                               size_t size);
/* The same string with another mark. */
pith_string *pith_string_mark_safe(pith_heap *heap, const pith_string *string, bool is_safe);
/* a followed by b; grows a in place where its bytes are the last of the heap. Not marked safe. */
pith_string *pith_string_join(pith_heap *heap, const pith_string *a, const pith_string *b);

/* ---- reading ---- */

pith_span pith_string_span(const pith_string *string);
bool pith_string_is(const pith_string *string, const char *text);
int pith_string_compare(const pith_string *a, const pith_string *b); /* by code point: <0, 0, >0 */
bool pith_string_user_at(const pith_string *string, size_t offset);
size_t pith_string_count_chars(const char *data, size_t size);
/* Byte offset of character `index` (<= n_chars). */
size_t pith_string_offset(const pith_string *string, size_t index);
/* Characters in the first `offset` bytes; offset lies on a character boundary. */
size_t pith_string_index(const pith_string *string, size_t offset);

/* Walks characters with their author:
 *   for (pith_walk w = pith_walk_begin(s); pith_walk_next(&w);) use w.code, w.at, w.size, w.is_user
 *   */
typedef struct pith_walk {
    const pith_string *string;
    size_t at, size; /* the current character's bytes */
    size_t piece;
    uint32_t code; /* PITH_UTF8_INVALID for a byte that stands for itself */
    bool is_user;
} pith_walk;
pith_walk pith_walk_begin(const pith_string *string);
bool pith_walk_next(pith_walk *walk);

#endif
