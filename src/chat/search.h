/* SPDX-License-Identifier: Apache-2.0
 * Finding bytes in bytes. */
#ifndef PITH_CHAT_SEARCH_H
#define PITH_CHAT_SEARCH_H

#include "chat/string_value.h"

/* Offset of the first `needle` at `from` or later, or of the last one that ends at `end` or before;
 * SIZE_MAX: none. Comparing costs steps of the heap; after a fault the answer is SIZE_MAX. An empty
 * needle is found at once. */
size_t pith_search_first(pith_heap *heap, pith_span text, pith_span needle, size_t from);
size_t pith_search_last(pith_heap *heap, pith_span text, pith_span needle, size_t end);

#endif
