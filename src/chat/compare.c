/* SPDX-License-Identifier: Apache-2.0
 *
 * Equality, order and hashes, as Python defines them: 1 == 1.0 == True, a list is never equal to a
 * tuple, dicts are equal whatever their order, sequences are ordered by their first difference, an
 * undefined value equals another.
 *
 * Invariants: values that are equal have the same hash. The walk through nested values is recursive
 * but at most PITH_TEMPLATE_MAX_DEPTH deep, and each visited value costs a step, so that shared
 * substructure (which can describe exponentially many values in little memory) ends in a fault, not
 * in a hang.
 */
#include "chat/chat.h"
#include "chat/value.h"

#include <math.h>
#include <string.h>

/* ---- numbers ---- */

/* An integer against a float without rounding the integer. */
static pith_order compare_mixed(int64_t integer, double real) {
    if (real != real) return PITH_ORDER_NONE;
    if (real >= 9223372036854775808.0) return PITH_ORDER_LESS;
    if (real < -9223372036854775808.0) return PITH_ORDER_GREATER;
    double whole = floor(real);
    int64_t floored = (int64_t)whole;
    if (integer != floored) return integer < floored ? PITH_ORDER_LESS : PITH_ORDER_GREATER;
    return real > whole ? PITH_ORDER_LESS : PITH_ORDER_EQUAL;
}

static pith_order reversed(pith_order order) {
    if (order == PITH_ORDER_LESS) return PITH_ORDER_GREATER;
    return order == PITH_ORDER_GREATER ? PITH_ORDER_LESS : order;
}

static pith_order compare_numbers(pith_value a, pith_value b) {
    if (a.kind != PITH_KIND_FLOAT && b.kind != PITH_KIND_FLOAT) {
        int64_t x = pith_value_integer(a), y = pith_value_integer(b);
        return x < y ? PITH_ORDER_LESS : x > y ? PITH_ORDER_GREATER : PITH_ORDER_EQUAL;
    }
    if (a.kind != PITH_KIND_FLOAT) return compare_mixed(pith_value_integer(a), b.as.real);
    if (b.kind != PITH_KIND_FLOAT) return reversed(compare_mixed(pith_value_integer(b), a.as.real));
    if (a.as.real < b.as.real) return PITH_ORDER_LESS;
    if (a.as.real > b.as.real) return PITH_ORDER_GREATER;
    return a.as.real != a.as.real || b.as.real != b.as.real ? PITH_ORDER_NONE : PITH_ORDER_EQUAL;
}

/* Long strings cost steps by what is looked at. */
static pith_order compare_strings(pith_heap *heap, const pith_string *a, const pith_string *b) {
    size_t shared = a->size < b->size ? a->size : b->size;
    if (!pith_heap_charge(heap, shared / 64)) return PITH_ORDER_NONE;
    int order = pith_string_compare(a, b);
    return order < 0 ? PITH_ORDER_LESS : order > 0 ? PITH_ORDER_GREATER : PITH_ORDER_EQUAL;
}

static bool strings_equal(pith_heap *heap, const pith_string *a, const pith_string *b) {
    if (a->size != b->size || !pith_heap_charge(heap, a->size / 64)) return false;
    return pith_span_equal(pith_string_span(a), pith_string_span(b));
}

/* ---- equality ---- */

static bool equal_at(pith_heap *heap, pith_value a, pith_value b, int depth);

static bool lists_equal(pith_heap *heap, const pith_list *a, const pith_list *b, int depth) {
    if (a == b) return true;
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++) {
        if (!equal_at(heap, a->items[i], b->items[i], depth)) return false;
    }
    return true;
}

static bool dicts_equal(pith_heap *heap, const pith_dict *a, const pith_dict *b, int depth) {
    if (a == b) return true;
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++) {
        const pith_value *other = pith_dict_find(heap, b, a->entries[i].key);
        if (other == NULL || !equal_at(heap, a->entries[i].value, *other, depth)) return false;
    }
    return true;
}

static bool ranges_equal(const pith_range *a, const pith_range *b) {
    return a->n == b->n &&
           (a->n == 0 || (a->start == b->start && (a->n == 1 || a->step == b->step)));
}

static bool methods_equal(const pith_method *a, const pith_method *b) {
    return a == b || (a->function == b->function && a->self.kind == b->self.kind &&
                      a->self.as.string == b->self.as.string);
}

static bool equal_at(pith_heap *heap, pith_value a, pith_value b, int depth) {
    if (!pith_heap_charge(heap, 1)) return false;
    if (pith_value_is_number(a) && pith_value_is_number(b))
        return compare_numbers(a, b) == PITH_ORDER_EQUAL;
    if (a.kind != b.kind) return false;
    if (depth > PITH_TEMPLATE_MAX_DEPTH) {
        pith_heap_fail(heap, PITH_FAULT_OVER_DEPTH);
        return false;
    }
    switch (a.kind) {
    case PITH_KIND_ABSENT:
    case PITH_KIND_UNDEFINED:
    case PITH_KIND_NONE: return true;
    case PITH_KIND_STRING: return strings_equal(heap, a.as.string, b.as.string);
    case PITH_KIND_LIST:
    case PITH_KIND_TUPLE: return lists_equal(heap, a.as.list, b.as.list, depth + 1);
    case PITH_KIND_DICT: return dicts_equal(heap, a.as.dict, b.as.dict, depth + 1);
    case PITH_KIND_RANGE: return ranges_equal(a.as.range, b.as.range);
    case PITH_KIND_METHOD: return methods_equal(a.as.method, b.as.method);
    default:
        return a.as.list ==
               b.as.list; /* the same object; all members of the union are pointers here */
    }
}

bool pith_value_equal(pith_heap *heap, pith_value a, pith_value b) {
    return equal_at(heap, a, b, 0);
}

/* ---- order ---- */

/* The first pair that differs decides; then the length. Nested sequences are compared in a loop,
 * not by recursion: once a pair differs, only that pair matters, so the walk goes down and never
 * comes back. */
pith_order pith_value_compare(pith_heap *heap, pith_value a, pith_value b) {
    for (int depth = 0; depth <= PITH_TEMPLATE_MAX_DEPTH; depth++) {
        if (!pith_heap_charge(heap, 1)) return PITH_ORDER_NONE;
        if (pith_value_is_number(a) && pith_value_is_number(b)) return compare_numbers(a, b);
        if (a.kind != b.kind) return PITH_ORDER_NONE;
        if (a.kind == PITH_KIND_STRING) return compare_strings(heap, a.as.string, b.as.string);
        if (a.kind != PITH_KIND_LIST && a.kind != PITH_KIND_TUPLE) return PITH_ORDER_NONE;
        const pith_list *x = a.as.list, *y = b.as.list;
        size_t i = 0;
        while (i < x->n && i < y->n && pith_value_equal(heap, x->items[i], y->items[i])) i++;
        if (i == x->n || i == y->n) {
            return x->n < y->n   ? PITH_ORDER_LESS
                   : x->n > y->n ? PITH_ORDER_GREATER
                                 : PITH_ORDER_EQUAL;
        }
        a = x->items[i];
        b = y->items[i];
    }
    pith_heap_fail(heap, PITH_FAULT_OVER_DEPTH);
    return PITH_ORDER_NONE;
}

/* ---- hashes ---- */

static uint64_t hash_real(double real) {
    if (real >= -9223372036854775808.0 && real < 9223372036854775808.0 && floor(real) == real) {
        int64_t integer = (int64_t)real;
        return pith_hash(&integer, sizeof integer, 1);
    }
    return pith_hash(&real, sizeof real, 2);
}

static bool hash_at(pith_heap *heap, pith_value value, int depth, uint64_t *hash) {
    if (!pith_heap_charge(heap, 1)) return false;
    switch (value.kind) {
    case PITH_KIND_LIST:
    case PITH_KIND_DICT:
    case PITH_KIND_VIEW: return false;
    case PITH_KIND_STRING:
        if (!pith_heap_charge(heap, value.as.string->size / 16)) return false;
        *hash = pith_hash(value.as.string->data, value.as.string->size, 3);
        return true;
    case PITH_KIND_BOOL:
    case PITH_KIND_INT:
    case PITH_KIND_FLOAT:
        if (value.kind == PITH_KIND_FLOAT) {
            *hash = hash_real(value.as.real);
        } else {
            int64_t integer = pith_value_integer(value);
            *hash = pith_hash(&integer, sizeof integer, 1);
        }
        return true;
    case PITH_KIND_TUPLE: break;
    default: *hash = (uint64_t)value.kind; return true;
    }
    if (depth > PITH_TEMPLATE_MAX_DEPTH) {
        pith_heap_fail(heap, PITH_FAULT_OVER_DEPTH);
        return false;
    }
    uint64_t mixed = 4;
    for (size_t i = 0; i < value.as.list->n; i++) {
        uint64_t part;
        if (!hash_at(heap, value.as.list->items[i], depth + 1, &part)) return false;
        mixed = pith_hash(&part, sizeof part, mixed);
    }
    *hash = mixed;
    return true;
}

bool pith_value_hash(pith_heap *heap, pith_value value, uint64_t *hash) {
    return hash_at(heap, value, 0, hash);
}
