/* SPDX-License-Identifier: Apache-2.0
 * Keeping the best candidates without sorting them.
 *
 * Owns the prefix cuts of the sampler. The order is: larger logit first, then lower id. A cut by
 * count or by summed weight is a radix selection over the 32-bit pattern of the logit, made
 * monotonic: a histogram over its upper 11 bits tells in which bucket the prefix ends, then one
 * over the next 11 bits of that bucket, then over the last 10. What remains are candidates with the
 * very same logit, which are taken in id order. Three passes at most, linear for any input, no
 * allocation.
 *
 * A small top-k, the common case, is one pass with a heap of the best k so far, whose root is the
 * limit to beat.
 *
 * Invariant: lists come in and go out in id order.
 *
 * Does not: know what a logit or a weight stands for (choice.c, stage.c). */
#include "sample/candidate.h"

#include <string.h>

/* A float's bits such that a < b as floats exactly when key(a) < key(b). -0 is made +0 first. */
static uint32_t key_of(float logit) {
    float value = logit + 0.0f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

float pith_candidate_max(const pith_candidate *list, size_t n) {
    float max = list[0].logit;
    for (size_t i = 1; i < n; i++) {
        if (list[i].logit > max) max = list[i].logit;
    }
    return max;
}

size_t pith_candidate_find(const pith_candidate *list, size_t n, int32_t id) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && list[low].id == id ? low : n;
}

/* Where a prefix ends: everything with a key above `key` is in, and the first n_ties candidates
 * with that key. */
typedef struct prefix_end {
    uint32_t key;
    size_t n_ties;
} prefix_end;

/* One level: the histogram of `bits` bits from `shift` on, over the keys whose bits above them are
 * `upper`. */
typedef struct level {
    int shift, bits;
    uint64_t upper;
} level;

static void count_level(pith_selector *selector, const pith_candidate *list, const double *weights,
                        size_t n, level at) {
    uint32_t mask = (1u << at.bits) - 1u;
    memset(selector->count, 0, sizeof selector->count);
    memset(selector->weight, 0, sizeof selector->weight);
    for (size_t i = 0; i < n; i++) {
        uint32_t key = key_of(list[i].logit);
        if (((uint64_t)key >> (at.shift + at.bits)) != at.upper) continue;
        uint32_t bucket = (key >> at.shift) & mask;
        selector->count[bucket]++;
        if (weights != NULL) selector->weight[bucket] += weights[i];
    }
}

/* Finds the shortest prefix whose count (weights NULL) or weight reaches `target`; all candidates
 * when rounding keeps their sum below it. */
static prefix_end find_end(pith_selector *selector, const pith_candidate *list,
                           const double *weights, size_t n, double target) {
    level at[3] = {{21, 11, 0}, {10, 11, 0}, {0, 10, 0}};
    double reached = 0;
    uint64_t upper = 0;
    uint32_t chosen = 0;
    for (int i = 0; i < 3; i++) {
        at[i].upper = upper;
        count_level(selector, list, weights, n, at[i]);
        double amount = 0; /* of the chosen bucket, which the next level cuts: not yet reached */
        for (uint32_t b = 1u << at[i].bits; b-- > 0;) {
            if (selector->count[b] == 0) continue;
            reached += amount;
            chosen = b;
            amount = weights != NULL ? selector->weight[b] : (double)selector->count[b];
            if (reached + amount >= target) break;
        }
        upper = (upper << at[i].bits) | chosen;
    }
    size_t n_ties = 0;
    if (selector->count[chosen] == 1) return (prefix_end){(uint32_t)upper, 1};
    for (size_t i = 0; i < n && (n_ties == 0 || reached < target); i++) {
        if (key_of(list[i].logit) != (uint32_t)upper) continue;
        reached += weights != NULL ? weights[i] : 1.0;
        n_ties++;
    }
    return (prefix_end){(uint32_t)upper, n_ties};
}

static size_t keep_prefix(pith_candidate *list, size_t n, prefix_end end) {
    size_t kept = 0, ties = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t key = key_of(list[i].logit);
        if (key < end.key || (key == end.key && ties == end.n_ties)) continue;
        ties += key == end.key;
        list[kept++] = list[i];
    }
    return kept;
}

/* Whether a stands behind b in the order. */
static bool is_worse(pith_candidate a, pith_candidate b) {
    return a.logit < b.logit || (a.logit == b.logit && a.id > b.id);
}

/* Restores the heap below its root; the worst candidate is the root. */
static void sift_down(pith_candidate *heap, size_t n, size_t hole) {
    pith_candidate moved = heap[hole];
    for (size_t child; (child = 2 * hole + 1) < n; hole = child) {
        if (child + 1 < n && is_worse(heap[child + 1], heap[child])) child++;
        if (!is_worse(heap[child], moved)) break;
        heap[hole] = heap[child];
    }
    heap[hole] = moved;
}

/* The best k stay in list[0, k), first as a heap, then put back into id order by insertion. */
static void keep_heap(pith_candidate *list, size_t n, size_t k) {
    for (size_t i = k / 2; i-- > 0;) sift_down(list, k, i);
    for (size_t i = k; i < n; i++) {
        if (list[i].logit <= list[0].logit) continue; /* a later id loses a tie */
        list[0] = list[i];
        sift_down(list, k, 0);
    }
    for (size_t i = 1; i < k; i++) {
        pith_candidate moved = list[i];
        size_t hole = i;
        for (; hole > 0 && list[hole - 1].id > moved.id; hole--) list[hole] = list[hole - 1];
        list[hole] = moved;
    }
}

size_t pith_select_top_k(pith_selector *selector, pith_candidate *list, size_t n, size_t k) {
    if (k == 0 || k >= n) return n;
    if (k > PITH_SELECT_HEAP)
        return keep_prefix(list, n, find_end(selector, list, NULL, n, (double)k));
    keep_heap(list, n, k);
    return k;
}

size_t pith_select_weight(pith_selector *selector, pith_candidate *list, const double *weights,
                          size_t n, double target) {
    return n <= 1 ? n : keep_prefix(list, n, find_end(selector, list, weights, n, target));
}
