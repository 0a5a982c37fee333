/* SPDX-License-Identifier: Apache-2.0
 * DRY: tokens that would go on with a verbatim repetition lose logits, the more the longer it is.
 *
 *   text     a b c X a b Y a b c | a b ?      the end of the text: "a b"
 *   reach    . 2 . . . 2 . . 2 .   . .        repeated where "a b" ends
 *   found        c       Y     c              what followed there: c (longest 2, ..), Y
 *
 * reach[i], how long a suffix of the text also ends i tokens before the last, is the Z function of
 * the text read backwards, which costs a constant time for each token of the window whatever they
 * are. A repetition ends at the last sequence breaker: tokens before it do not count.
 *
 * Formula, for the longest repetition L >= allowed that a token goes on with:
 *   l <- l - multiplier * base^(L - allowed),   the power at most e^88.72
 * Tokens that hold a breaker whole are exempt.
 *
 * Does not: find breakers (breaker.c) or change logits (stage.c). */
#include "sample/history.h"

#include "base/memory.h"

#include <float.h>
#include <math.h>

bool pith_dry_init(pith_dry *dry, int32_t n_vocab, int32_t window) {
    dry->window = window;
    dry->text = pith_alloc_array((size_t)window, sizeof *dry->text);
    dry->reach = pith_alloc_array((size_t)window, sizeof *dry->reach);
    dry->found = pith_alloc_array((size_t)window, sizeof *dry->found);
    dry->longest = pith_alloc_zero((size_t)n_vocab, sizeof *dry->longest);
    return dry->text && dry->reach && dry->found && dry->longest;
}

void pith_dry_deinit(pith_dry *dry) {
    pith_free(dry->text);
    pith_free(dry->reach);
    pith_free(dry->found);
    pith_free(dry->longest);
    pith_breakers_deinit(&dry->breakers);
    *dry = (pith_dry){0};
}

/* reach[1 .. n-1] of the n tokens of text (Gusfield 1997: Z boxes). [left, right) is the box that
 * ends furthest: there the text equals its own beginning. */
static void find_reach(int32_t *reach, const int32_t *text, int32_t n) {
    int32_t left = 0, right = 0;
    for (int32_t i = 1; i < n; i++) {
        int32_t z = 0;
        if (i < right) z = reach[i - left] < right - i ? reach[i - left] : right - i;
        while (i + z < n && text[z] == text[i + z]) z++;
        reach[i] = z;
        if (i + z > right) left = i, right = i + z;
    }
}

size_t pith_dry_find(pith_dry *dry, const pith_history *history) {
    size_t window = (size_t)dry->window, n_found = 0;
    int32_t n = (int32_t)(history->n_total < window ? history->n_total : window);
    int32_t most = (int32_t)pith_history_since_break(history, (size_t)n);
    if (most < dry->allowed) return 0;
    for (int32_t i = 0; i < n; i++) dry->text[i] = pith_history_at(history, (uint64_t)i);
    find_reach(dry->reach, dry->text, n);
    for (int32_t i = 1; i < n; i++) {
        int32_t length = dry->reach[i] < most ? dry->reach[i] : most;
        if (length < dry->allowed) continue;
        int32_t id = dry->text[i - 1];
        if (pith_breakers_is_whole(&dry->breakers, id)) continue;
        if (dry->longest[id] == 0) dry->found[n_found++] = id;
        if (dry->longest[id] < length) dry->longest[id] = length;
    }
    return n_found;
}

double pith_dry_penalty(const pith_dry *dry, int32_t length) {
    double power = (double)(length - dry->allowed) * log(dry->base);
    return dry->multiplier * exp(power < 88.7228391 ? power : 88.7228391);
}
