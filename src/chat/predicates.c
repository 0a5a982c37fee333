/* SPDX-License-Identifier: Apache-2.0
 *
 * The tests of `is`: what a value is, and comparisons by name (for select and its kin).
 *
 * `sequence` and `iterable` follow what Python objects can do, so dicts and strings are both. An
 * undefined value can be asked anything.
 */
#include "chat/native.h"
#include "chat/unicode_case.h"

#include <math.h>

/* Tests without argument. */
static bool answer(pith_render *render, const pith_call *call, bool result, pith_value *out) {
    *out = pith_bool(result);
    return pith_call_bind_nothing(render, call);
}

static bool test_defined(pith_render *render, const pith_call *call, pith_value *out) {
    return answer(render, call, call->self.kind != PITH_KIND_UNDEFINED, out);
}

static bool test_undefined(pith_render *render, const pith_call *call, pith_value *out) {
    return answer(render, call, call->self.kind == PITH_KIND_UNDEFINED, out);
}

static bool test_none(pith_render *render, const pith_call *call, pith_value *out) {
    return answer(render, call, call->self.kind == PITH_KIND_NONE, out);
}

static bool test_boolean(pith_render *render, const pith_call *call, pith_value *out) {
    return answer(render, call, call->self.kind == PITH_KIND_BOOL, out);
}

static bool test_true(pith_render *render, const pith_call *call, pith_value *out) {
    return answer(render, call, call->self.kind == PITH_KIND_BOOL && call->self.as.boolean, out);
}

static bool test_false(pith_render *render, const pith_call *call, pith_value *out) {
    return answer(render, call, call->self.kind == PITH_KIND_BOOL && !call->self.as.boolean, out);
}

static bool test_integer(pith_render *render, const pith_call *call, pith_value *out) {
    return answer(render, call, call->self.kind == PITH_KIND_INT, out);
}

static bool test_float(pith_render *render, const pith_call *call, pith_value *out) {
    return answer(render, call, call->self.kind == PITH_KIND_FLOAT, out);
}

static bool test_number(pith_render *render, const pith_call *call, pith_value *out) {
    return answer(render, call, pith_value_is_number(call->self), out);
}

static bool test_string(pith_render *render, const pith_call *call, pith_value *out) {
    return answer(render, call, call->self.kind == PITH_KIND_STRING, out);
}

static bool test_mapping(pith_render *render, const pith_call *call, pith_value *out) {
    return answer(render, call, call->self.kind == PITH_KIND_DICT, out);
}

static bool test_sequence(pith_render *render, const pith_call *call, pith_value *out) {
    pith_kind kind = call->self.kind;
    bool result = kind == PITH_KIND_STRING || kind == PITH_KIND_LIST || kind == PITH_KIND_TUPLE ||
                  kind == PITH_KIND_DICT || kind == PITH_KIND_RANGE || kind == PITH_KIND_UNDEFINED;
    return answer(render, call, result, out);
}

static bool test_iterable(pith_render *render, const pith_call *call, pith_value *out) {
    pith_items items;
    return answer(render, call,
                  pith_items_begin(&items, call->self) || call->self.kind == PITH_KIND_LOOP, out);
}

static bool test_callable(pith_render *render, const pith_call *call, pith_value *out) {
    pith_kind kind = call->self.kind;
    bool result = kind == PITH_KIND_MACRO || kind == PITH_KIND_FUNCTION ||
                  kind == PITH_KIND_METHOD || kind == PITH_KIND_LOOP || kind == PITH_KIND_JOINER ||
                  kind == PITH_KIND_UNDEFINED;
    return answer(render, call, result, out);
}

static bool test_escaped(pith_render *render, const pith_call *call, pith_value *out) {
    return answer(render, call,
                  call->self.kind == PITH_KIND_STRING && call->self.as.string->is_safe, out);
}

/* str.islower and str.isupper: a cased letter, and none of the other cases. */
static bool test_case(pith_render *render, const pith_call *call, uint32_t wanted,
                      pith_value *out) {
    const pith_string *text = pith_call_text(render, call);
    bool found = false, spoiled = false;
    if (text == NULL || !pith_heap_charge(&render->heap, text->size / 4)) return false;
    for (pith_walk walk = pith_walk_begin(text); !spoiled && pith_walk_next(&walk);) {
        uint32_t flags = pith_unicode_flags(walk.code) & PITH_UNICODE_CASED;
        spoiled = (flags & ~wanted) != 0;
        found = found || (flags & wanted) != 0;
    }
    return answer(render, call, found && !spoiled, out);
}

static bool test_lower(pith_render *render, const pith_call *call, pith_value *out) {
    return test_case(render, call, PITH_UNICODE_LOWER, out);
}

static bool test_upper(pith_render *render, const pith_call *call, pith_value *out) {
    return test_case(render, call, PITH_UNICODE_UPPER, out);
}

/* ---- numbers ---- */

/* self % divisor == rest */
static bool has_remainder(pith_render *render, const pith_call *call, pith_value divisor,
                          int64_t rest, pith_value *out) {
    pith_value remainder;
    if (!pith_operator_binary(render, PITH_BINARY_MODULO, call->self, divisor, &remainder))
        return false;
    *out = pith_bool(pith_value_equal(&render->heap, remainder, pith_int(rest)));
    return true;
}

static bool test_odd(pith_render *render, const pith_call *call, pith_value *out) {
    return pith_call_bind_nothing(render, call) && has_remainder(render, call, pith_int(2), 1, out);
}

static bool test_even(pith_render *render, const pith_call *call, pith_value *out) {
    return pith_call_bind_nothing(render, call) && has_remainder(render, call, pith_int(2), 0, out);
}

static bool test_divisibleby(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"num"};
    pith_value divisor;
    return pith_call_bind(render, call, names, 1, 1, &divisor) &&
           has_remainder(render, call, divisor, 0, out);
}

/* ---- comparisons ---- */

static bool compare(pith_render *render, const pith_call *call, pith_comparison op,
                    pith_value *out) {
    static const char *const names[] = {"other"};
    pith_value other;
    bool result;
    if (!pith_call_bind(render, call, names, 1, 1, &other)) return false;
    if (!pith_operator_compare(render, op, call->self, other, &result)) return false;
    *out = pith_bool(result);
    return true;
}

static bool test_eq(pith_render *render, const pith_call *call, pith_value *out) {
    return compare(render, call, PITH_COMPARISON_EQUAL, out);
}

static bool test_ne(pith_render *render, const pith_call *call, pith_value *out) {
    return compare(render, call, PITH_COMPARISON_UNEQUAL, out);
}

static bool test_lt(pith_render *render, const pith_call *call, pith_value *out) {
    return compare(render, call, PITH_COMPARISON_LESS, out);
}

static bool test_le(pith_render *render, const pith_call *call, pith_value *out) {
    return compare(render, call, PITH_COMPARISON_LESS_EQUAL, out);
}

static bool test_gt(pith_render *render, const pith_call *call, pith_value *out) {
    return compare(render, call, PITH_COMPARISON_GREATER, out);
}

static bool test_ge(pith_render *render, const pith_call *call, pith_value *out) {
    return compare(render, call, PITH_COMPARISON_GREATER_EQUAL, out);
}

static bool test_in(pith_render *render, const pith_call *call, pith_value *out) {
    return compare(render, call, PITH_COMPARISON_IN, out);
}

/* The same object: equal and of one kind for what has no identity of its own, the same memory for
 * the rest. */
static bool test_sameas(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"other"};
    pith_value a = call->self, b;
    if (!pith_call_bind(render, call, names, 1, 1, &b)) return false;
    bool result = a.kind == b.kind;
    switch (a.kind) {
    case PITH_KIND_NONE:
    case PITH_KIND_BOOL:
    case PITH_KIND_INT:
    case PITH_KIND_FLOAT:
    case PITH_KIND_STRING: result = result && pith_value_equal(&render->heap, a, b); break;
    default:
        result = result && a.as.list == b.as.list;
        break; /* all members of the union are pointers here */
    }
    *out = pith_bool(result);
    return true;
}

/* ---- names ---- */

static bool is_listed(pith_render *render, const pith_call *call, const pith_function *list,
                      pith_value *out) {
    const pith_string *text = pith_call_text(render, call);
    if (text == NULL) return false;
    return answer(render, call, pith_function_find(list, pith_string_span(text)) != NULL, out);
}

static bool test_filter(pith_render *render, const pith_call *call, pith_value *out) {
    return is_listed(render, call, pith_filters, out);
}

static bool test_test(pith_render *render, const pith_call *call, pith_value *out) {
    return is_listed(render, call, pith_tests, out);
}

const pith_function pith_tests[] = {
    {"!=", test_ne},
    {"<", test_lt},
    {"<=", test_le},
    {"==", test_eq},
    {">", test_gt},
    {">=", test_ge},
    {"boolean", test_boolean},
    {"callable", test_callable},
    {"defined", test_defined},
    {"divisibleby", test_divisibleby},
    {"eq", test_eq},
    {"equalto", test_eq},
    {"escaped", test_escaped},
    {"even", test_even},
    {"false", test_false},
    {"filter", test_filter},
    {"float", test_float},
    {"ge", test_ge},
    {"greaterthan", test_gt},
    {"gt", test_gt},
    {"in", test_in},
    {"integer", test_integer},
    {"iterable", test_iterable},
    {"le", test_le},
    {"lessthan", test_lt},
    {"lower", test_lower},
    {"lt", test_lt},
    {"mapping", test_mapping},
    {"ne", test_ne},
    {"none", test_none},
    {"number", test_number},
    {"odd", test_odd},
    {"sameas", test_sameas},
    {"sequence", test_sequence},
    {"string", test_string},
    {"test", test_test},
    {"true", test_true},
    {"undefined", test_undefined},
    {"upper", test_upper},
    {NULL, NULL},
};
