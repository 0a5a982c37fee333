/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of code points as sorted ranges.
 *
 * Invariant after settle: ranges[i].last + 1 < ranges[i + 1].first, none holds a surrogate
 * (D800..DFFF) and none goes beyond 10FFFF. So equal sets have equal ranges.
 *
 * The classes are those of ECMA-262 with the flag u: \d and \w are ASCII, \s is its white space and
 * its line ends. Read next: regex_parse.c, unicode_property.c.
 */
#include "sample/code_set.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { SURROGATE_FIRST = 0xD800, SURROGATE_LAST = 0xDFFF };

void pith_code_set_deinit(pith_code_set *set) {
    pith_free(set->ranges);
    *set = (pith_code_set){0};
}

static void append(pith_code_set *set, uint32_t first, uint32_t last) {
    if (set->failed || first > last) return;
    if (set->n == set->capacity) {
        size_t capacity = set->capacity ? set->capacity * 2 : 4;
        pith_code_range *ranges = pith_realloc(set->ranges, capacity * sizeof *ranges);
        if (ranges == NULL) {
            set->failed = true;
            return;
        }
        set->ranges = ranges;
        set->capacity = capacity;
    }
    set->ranges[set->n++] = (pith_code_range){first, last};
}

void pith_code_set_add(pith_code_set *set, uint32_t first, uint32_t last) {
    if (last > PITH_CODE_LAST) last = PITH_CODE_LAST;
    if (last < SURROGATE_FIRST || first > SURROGATE_LAST) {
        append(set, first, last);
        return;
    }
    if (first < SURROGATE_FIRST) append(set, first, SURROGATE_FIRST - 1);
    if (last > SURROGATE_LAST) append(set, SURROGATE_LAST + 1, last);
}

void pith_code_set_add_all(pith_code_set *set, const pith_code_set *other) {
    for (size_t i = 0; i < other->n; i++) {
        append(set, other->ranges[i].first, other->ranges[i].last);
    }
    if (other->failed) set->failed = true;
}

static int by_first(const void *a, const void *b) {
    const pith_code_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

void pith_code_set_settle(pith_code_set *set) {
    bool sorted = true;
    size_t n = 0;
    for (size_t i = 1; i < set->n && sorted; i++) {
        sorted = set->ranges[i - 1].first <= set->ranges[i].first;
    }
    if (!sorted) qsort(set->ranges, set->n, sizeof *set->ranges, by_first);
    for (size_t i = 0; i < set->n; i++) {
        pith_code_range range = set->ranges[i];
        if (n > 0 && range.first <= set->ranges[n - 1].last + 1) {
            if (range.last > set->ranges[n - 1].last) set->ranges[n - 1].last = range.last;
        } else {
            set->ranges[n++] = range;
        }
    }
    set->n = n;
}

void pith_code_set_negate(pith_code_set *set) {
    pith_code_set result = {0};
    uint32_t next = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (set->ranges[i].first > next) {
            pith_code_set_add(&result, next, set->ranges[i].first - 1);
        }
        next = set->ranges[i].last + 1;
    }
    if (next <= PITH_CODE_LAST) pith_code_set_add(&result, next, PITH_CODE_LAST);
    if (set->failed) result.failed = true;
    pith_code_set_deinit(set);
    *set = result;
}

bool pith_code_set_has(const pith_code_set *set, uint32_t code) {
    size_t low = 0, high = set->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (code > set->ranges[middle].last) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < set->n && code >= set->ranges[low].first;
}

bool pith_code_set_equal(const pith_code_set *a, const pith_code_set *b) {
    return a->n == b->n &&
           (a->n == 0 || memcmp(a->ranges, b->ranges, a->n * sizeof *a->ranges) == 0);
}

/* ---- classes ---- */

static const pith_code_range digits[] = {{'0', '9'}};
static const pith_code_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const pith_code_range spaces[] = {
    {0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
    {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
static const pith_code_range line_ends[] = {{0x0A, 0x0A}, {0x0D, 0x0D}, {0x2028, 0x2029}};

bool pith_code_set_add_class(pith_code_set *set, char letter) {
    pith_code_set class = {0};
    const pith_code_range *ranges;
    size_t n;
    switch (letter | 0x20) {
    case 'd': ranges = digits, n = sizeof digits / sizeof *digits; break;
    case 'w': ranges = words, n = sizeof words / sizeof *words; break;
    case 's': ranges = spaces, n = sizeof spaces / sizeof *spaces; break;
    default:
        if (letter != '.') return false;
        ranges = line_ends, n = sizeof line_ends / sizeof *line_ends;
    }
    for (size_t i = 0; i < n; i++) append(&class, ranges[i].first, ranges[i].last);
    if (letter < 'a') pith_code_set_negate(&class); /* \D \W \S and the dot */
    pith_code_set_add_all(set, &class);
    pith_code_set_deinit(&class);
    return true;
}
