/* SPDX-License-Identifier: Apache-2.0
 *
 * Merge sort, bottom up: runs of 1, 2, 4, ... are merged from one array of numbers into another and
 * back. Stable, no recursion, n log n comparisons for any input; each comparison costs steps in
 * pith_value_compare.
 */
#include "chat/sorting.h"

#include <string.h>

/* *result: b must come before a. */
static bool comes_before(pith_render *render, pith_value b, pith_value a, bool is_reversed,
                         bool *result) {
    pith_comparison op = is_reversed ? PITH_COMPARISON_GREATER : PITH_COMPARISON_LESS;
    return pith_operator_compare(render, op, b, a, result);
}

static bool merge(pith_render *render, const pith_value *keys, bool is_reversed, const size_t *from,
                  size_t n_left, size_t n, size_t *to) {
    size_t left = 0, right = n_left;
    for (size_t i = 0; i < n; i++) {
        bool takes_right = left == n_left;
        if (left < n_left && right < n &&
            !comes_before(render, keys[from[right]], keys[from[left]], is_reversed, &takes_right)) {
            return false;
        }
        to[i] = takes_right ? from[right++] : from[left++];
    }
    return true;
}

bool pith_sort_keys(pith_render *render, const pith_value *keys, size_t n, bool is_reversed,
                    size_t *order) {
    size_t *from = order, *to = pith_heap_array(&render->heap, n, sizeof *to);
    if (to == NULL) return false;
    for (size_t i = 0; i < n; i++) order[i] = i;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t at = 0; at < n; at += 2 * width) {
            size_t left = n - at < width ? n - at : width,
                   both = n - at < 2 * width ? n - at : 2 * width;
            if (!merge(render, keys, is_reversed, from + at, left, both, to + at)) return false;
        }
        size_t *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != order && n > 0) memcpy(order, from, n * sizeof *order);
    return true;
}
