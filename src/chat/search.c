/* SPDX-License-Identifier: Apache-2.0
 *
 * Substring search.
 *
 * memchr for the first byte, then the last byte, then one comparison. That is fast on real text and
 * quadratic on text made to be hard. Work is counted (places tried, bytes compared) and charged as
 * it grows, so that the latter ends at the rendering's limit of steps.
 */
#include "chat/search.h"

#include <string.h>

/* Charges the work of a search once it is worth a step. */
static bool charge(pith_heap *heap, size_t *work) {
    if (*work < 64) return true;
    size_t steps = *work / 64;
    *work %= 64;
    return pith_heap_charge(heap, steps);
}

static bool matches(const char *at, pith_span needle, size_t *work) {
    *work += 16;
    if (at[needle.size - 1] != needle.data[needle.size - 1]) return false;
    *work += needle.size;
    return memcmp(at, needle.data, needle.size) == 0;
}

size_t pith_search_first(pith_heap *heap, pith_span text, pith_span needle, size_t from) {
    size_t work = 64;
    if (needle.size == 0) return from <= text.size ? from : SIZE_MAX;
    while (charge(heap, &work) && from < text.size && text.size - from >= needle.size) {
        size_t n_places = text.size - from - needle.size + 1;
        const char *at = memchr(text.data + from, needle.data[0], n_places);
        work += at != NULL ? (size_t)(at - text.data) - from : n_places;
        if (at == NULL) break;
        if (matches(at, needle, &work)) return (size_t)(at - text.data);
        from = (size_t)(at - text.data) + 1;
    }
    (void)charge(heap, &work);
    return SIZE_MAX;
}

size_t pith_search_last(pith_heap *heap, pith_span text, pith_span needle, size_t end) {
    size_t work = 64;
    if (end > text.size) end = text.size;
    if (needle.size == 0) return end;
    if (needle.size > end) return SIZE_MAX;
    for (size_t at = end - needle.size + 1; at-- > 0 && charge(heap, &work);) {
        work++;
        if (text.data[at] != needle.data[0]) continue;
        if (matches(text.data + at, needle, &work)) return at;
    }
    return SIZE_MAX;
}
