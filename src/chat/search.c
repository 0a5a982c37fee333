/* SPDX-License-Identifier: Apache-2.0
 *
 * Substring search.
 *
 * memchr for the first byte, then one comparison. That is fast on real text and quadratic on text
 * made to be hard; each comparison is charged by its length, so that the latter ends at the
 * rendering's limit of steps.
 */
#include "chat/search.h"

#include <string.h>

static bool matches(pith_heap *heap, const char *at, pith_span needle) {
    if (at[needle.size - 1] != needle.data[needle.size - 1]) return false;
    return pith_heap_charge(heap, 1 + needle.size / 64) &&
           memcmp(at, needle.data, needle.size) == 0;
}

size_t pith_search_first(pith_heap *heap, pith_span text, pith_span needle, size_t from) {
    if (needle.size == 0) return from <= text.size ? from : SIZE_MAX;
    if (!pith_heap_charge(heap, 1)) return SIZE_MAX;
    while (from < text.size && text.size - from >= needle.size) {
        size_t n_places = text.size - from - needle.size + 1;
        const char *at = memchr(text.data + from, needle.data[0], n_places);
        if (!pith_heap_charge(heap, (at != NULL ? (size_t)(at - text.data) - from : n_places) / 64))
            break;
        if (at == NULL) break;
        if (matches(heap, at, needle)) return (size_t)(at - text.data);
        from = (size_t)(at - text.data) + 1;
    }
    return SIZE_MAX;
}

size_t pith_search_last(pith_heap *heap, pith_span text, pith_span needle, size_t end) {
    if (end > text.size) end = text.size;
    if (needle.size == 0) return end;
    if (needle.size > end || !pith_heap_charge(heap, end / 64)) return SIZE_MAX;
    for (size_t at = end - needle.size + 1; at-- > 0 && heap->fault == PITH_FAULT_NONE;) {
        if (text.data[at] == needle.data[0] && matches(heap, text.data + at, needle)) return at;
    }
    return SIZE_MAX;
}
