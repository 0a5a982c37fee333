/* SPDX-License-Identifier: Apache-2.0
 * Edits that filters and string methods share. Each gives a new string (or the same one when
 * nothing changes), which keeps the authors and the safe mark; NULL after a fault of the heap. */
#ifndef PITH_CHAT_STRING_EDIT_H
#define PITH_CHAT_STRING_EDIT_H

#include "chat/value.h"

enum pith_strip_side { PITH_STRIP_LEFT = 1, PITH_STRIP_RIGHT = 2, PITH_STRIP_BOTH = 3 };
/* chars: the characters to take away; NULL: white space. */
const pith_string *pith_string_strip(pith_heap *heap, const pith_string *string,
                                     const pith_string *chars, int sides);
/* At most `limit` replacements from the left; negative: all. */
const pith_string *pith_string_replace(pith_heap *heap, const pith_string *string,
                                       const pith_string *old, const pith_string *with,
                                       int64_t limit);
/* Lines as str.splitlines() cuts them; the line ends are left out unless keeps_ends. */
pith_list *pith_string_lines(pith_heap *heap, const pith_string *string, bool keeps_ends);
/* The length of the line end at `at`; 0: there is none. */
size_t pith_string_line_end(const pith_string *string, size_t at);
/* n characters `fill` before, or behind. */
const pith_string *pith_string_pad(pith_heap *heap, const pith_string *string, size_t before,
                                   size_t behind, uint32_t fill);
/* str.center's split of the fill for a width in characters. */
const pith_string *pith_string_center(pith_heap *heap, const pith_string *string, size_t width,
                                      uint32_t fill);

#endif
