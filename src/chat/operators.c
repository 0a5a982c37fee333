/* SPDX-License-Identifier: Apache-2.0
 *
 * What + - * / // % ** ~ == < in ... mean for which kinds of values, as in Python.
 *
 * Integers have 64 bits: a result beyond them is an error, never a wrong number. `+` with a string
 * that is marked safe escapes the other side. `~` joins the texts of both sides.
 *
 * Read next: compare.c (equality and order), format_percent.c ('%s' % x).
 */
#include "chat/format.h"
#include "chat/native.h"
#include "chat/search.h"

#include <math.h>

static const char *const symbols[] = {
    [PITH_BINARY_ADD] = "+",           [PITH_BINARY_SUBTRACT] = "-", [PITH_BINARY_MULTIPLY] = "*",
    [PITH_BINARY_DIVIDE] = "/",        [PITH_BINARY_MODULO] = "%",   [PITH_BINARY_POWER] = "**",
    [PITH_BINARY_FLOOR_DIVIDE] = "//", [PITH_BINARY_CONCAT] = "~",
};

static bool fail_kinds(pith_render *render, const char *symbol, pith_value a, pith_value b) {
    if (a.kind == PITH_KIND_UNDEFINED) return pith_render_fail_undefined(render, a);
    if (b.kind == PITH_KIND_UNDEFINED) return pith_render_fail_undefined(render, b);
    return pith_render_fail(render, "'%s' does not work between %s and %s", symbol,
                            pith_kind_name(a.kind), pith_kind_name(b.kind));
}

static bool fail_overflow(pith_render *render) {
    return pith_render_fail(render, "an integer result does not fit into 64 bits");
}

static bool fail_zero(pith_render *render) {
    return pith_render_fail(render, "division by zero");
}

/* ---- integers ---- */

static bool add_ints(int64_t a, int64_t b, int64_t *out) {
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return false;
    *out = a + b;
    return true;
}

static uint64_t magnitude(int64_t a) {
    return a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
}

static bool multiply_ints(int64_t a, int64_t b, int64_t *out) {
    uint64_t x = magnitude(a), y = magnitude(b);
    bool negative = (a < 0) != (b < 0);
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    if (y != 0 && x > limit / y) return false;
    *out = negative ? (int64_t)(0 - x * y) : (int64_t)(x * y);
    return true;
}

/* Quotient rounded down and the remainder with the sign of b; b is not 0. */
static bool divide_ints(int64_t a, int64_t b, int64_t *quotient, int64_t *remainder) {
    if (a == INT64_MIN && b == -1) {
        *remainder = 0;
        return false;
    }
    *quotient = a / b;
    *remainder = a % b;
    if (*remainder != 0 && (*remainder < 0) != (b < 0)) {
        *remainder += b;
        --*quotient;
    }
    return true;
}

/* a / b, correctly rounded: beyond 2^53 a plain division would round three times. The quotient is
 * made bit by bit until it has 62 bits; what is left over becomes its last bit. */
static double divide_exactly(int64_t a, int64_t b) {
    enum { WHOLE = 53, BITS = 62 };
    uint64_t x = magnitude(a), y = magnitude(b), quotient = x / y, rest = x % y;
    if (x >> WHOLE == 0 && y >> WHOLE == 0) return (double)a / (double)b;
    int exponent = 0;
    for (; rest != 0 && quotient >> (BITS - 1) == 0; exponent--) {
        bool fits = rest >= y - rest; /* 2 * rest >= y, without overflow */
        rest = fits ? rest - (y - rest) : rest + rest;
        quotient = quotient << 1 | fits;
    }
    double value = ldexp((double)(quotient | (rest != 0)), exponent);
    return (a < 0) != (b < 0) ? -value : value;
}

static bool power_ints(pith_render *render, int64_t base, int64_t exponent, pith_value *out) {
    int64_t result = 1;
    if (exponent < 0) {
        if (base == 0) return fail_zero(render);
        *out = pith_float(pow((double)base, (double)exponent));
        return true;
    }
    while (exponent > 0) {
        if ((exponent & 1) != 0 && !multiply_ints(result, base, &result))
            return fail_overflow(render);
        exponent >>= 1;
        if (exponent > 0 && !multiply_ints(base, base, &base)) return fail_overflow(render);
    }
    *out = pith_int(result);
    return true;
}

static bool operate_ints(pith_render *render, pith_binary op, int64_t a, int64_t b,
                         pith_value *out) {
    int64_t result = 0, other = 0;
    bool fits = true;
    switch (op) {
    case PITH_BINARY_ADD: fits = add_ints(a, b, &result); break;
    case PITH_BINARY_SUBTRACT:
        fits = b < 0 ? a <= INT64_MAX + b : a >= INT64_MIN + b;
        if (fits) result = a - b;
        break;
    case PITH_BINARY_MULTIPLY: fits = multiply_ints(a, b, &result); break;
    case PITH_BINARY_DIVIDE:
        if (b == 0) return fail_zero(render);
        *out = pith_float(divide_exactly(a, b));
        return true;
    case PITH_BINARY_FLOOR_DIVIDE:
        if (b == 0) return fail_zero(render);
        fits = divide_ints(a, b, &result, &other);
        break;
    case PITH_BINARY_MODULO:
        if (b == 0) return fail_zero(render);
        (void)divide_ints(a, b, &other, &result); /* the remainder always fits */
        break;
    default: return power_ints(render, a, b, out);
    }
    *out = pith_int(result);
    return fits || fail_overflow(render);
}

/* ---- floats ---- */

static double modulo_floats(double a, double b, double *quotient) {
    double remainder = fmod(a, b), division = (a - remainder) / b;
    if (remainder != 0.0) {
        if ((b < 0) != (remainder < 0)) {
            remainder += b;
            division -= 1.0;
        }
    } else {
        remainder = copysign(0.0, b);
    }
    double whole = floor(division);
    if (division - whole > 0.5) whole += 1.0;
    *quotient = division != 0.0 ? whole : copysign(0.0, a / b);
    return remainder;
}

static bool power_floats(pith_render *render, double a, double b, pith_value *out) {
    if (a == 0.0 && b < 0.0) return fail_zero(render);
    double result = pow(a, b);
    if (result != result && a == a && b == b) {
        return pith_render_fail(render, "a negative number has no real power of that exponent");
    }
    if (isinf(result) && isfinite(a) && isfinite(b))
        return pith_render_fail(render, "a power is too large");
    *out = pith_float(result);
    return true;
}

static bool operate_floats(pith_render *render, pith_binary op, double a, double b,
                           pith_value *out) {
    double quotient, remainder;
    switch (op) {
    case PITH_BINARY_ADD: *out = pith_float(a + b); return true;
    case PITH_BINARY_SUBTRACT: *out = pith_float(a - b); return true;
    case PITH_BINARY_MULTIPLY: *out = pith_float(a * b); return true;
    case PITH_BINARY_POWER: return power_floats(render, a, b, out);
    default: break;
    }
    if (b == 0.0) return fail_zero(render);
    remainder = modulo_floats(a, b, &quotient);
    *out = pith_float(op == PITH_BINARY_DIVIDE   ? a / b
                      : op == PITH_BINARY_MODULO ? remainder
                                                 : quotient);
    return true;
}

/* ---- strings and lists ---- */

static bool add_strings(pith_render *render, pith_value a, pith_value b, pith_value *out) {
    bool is_safe = a.as.string->is_safe || b.as.string->is_safe;
    const pith_string *left = a.as.string, *right = b.as.string;
    if (is_safe) {
        left = pith_value_escape(render, a);
        right = pith_value_escape(render, b);
        if (left == NULL || right == NULL) return false;
    }
    pith_string *joined = pith_string_join(&render->heap, left, right);
    if (joined == NULL || !pith_heap_charge(&render->heap, right->size / 64)) return false;
    joined->is_safe = is_safe;
    *out = pith_value_string(joined);
    return true;
}

static bool add_lists(pith_render *render, pith_value a, pith_value b, pith_value *out) {
    const pith_list *x = a.as.list, *y = b.as.list;
    pith_list *sum = pith_list_new(&render->heap, x->n + y->n);
    if (sum == NULL || !pith_heap_charge(&render->heap, x->n + y->n)) return false;
    for (size_t i = 0; i < x->n; i++) sum->items[i] = x->items[i];
    for (size_t i = 0; i < y->n; i++) sum->items[x->n + i] = y->items[i];
    sum->n = x->n + y->n;
    *out = (pith_value){a.kind, {.list = sum}};
    return true;
}

static bool repeat_string(pith_render *render, const pith_string *string, int64_t times,
                          pith_value *out) {
    pith_builder builder;
    pith_builder_init(&builder, &render->heap);
    if (times > 0 && string->size > 0) {
        if (times > PITH_TEMPLATE_MAX_MEMORY) {
            pith_heap_fail(&render->heap, PITH_FAULT_OVER_MEMORY);
            return false;
        }
        uint64_t bytes = (uint64_t)times * string->size; /* both below 2^29 */
        if (!pith_heap_charge(&render->heap, bytes / 64)) return false;
        pith_builder_reserve(&builder, string->size * (size_t)times);
        pith_builder_repeat(&builder, string, (size_t)times);
    }
    pith_string *repeated = pith_builder_finish(&builder);
    if (repeated == NULL) return false;
    repeated->is_safe = string->is_safe;
    *out = pith_value_string(repeated);
    return true;
}

static bool repeat_list(pith_render *render, pith_value value, int64_t times, pith_value *out) {
    size_t n = value.as.list->n, count = times > 0 ? (size_t)times : 0;
    if (n == 0) count = 0;
    if (count > PITH_TEMPLATE_MAX_MEMORY) {
        pith_heap_fail(&render->heap, PITH_FAULT_OVER_MEMORY);
        return false;
    }
    if (!pith_heap_charge(&render->heap, (uint64_t)n * count)) return false;
    pith_list *list = pith_list_new(&render->heap, n * count);
    if (list == NULL) return false;
    for (size_t i = 0; i < n * count; i++) list->items[i] = value.as.list->items[i % n];
    list->n = n * count;
    *out = (pith_value){value.kind, {.list = list}};
    return true;
}

/* Strings and lists times an integer; *done tells whether a and b are such a pair. */
static bool repeat(pith_render *render, pith_value a, pith_value b, bool *done, pith_value *out) {
    pith_value subject = pith_value_is_integer(b) ? a : b, times = pith_value_is_integer(b) ? b : a;
    *done = pith_value_is_integer(times) &&
            (subject.kind == PITH_KIND_STRING || subject.kind == PITH_KIND_LIST ||
             subject.kind == PITH_KIND_TUPLE);
    if (!*done) return true;
    int64_t n = pith_value_integer(times);
    if (subject.kind == PITH_KIND_STRING) return repeat_string(render, subject.as.string, n, out);
    return repeat_list(render, subject, n, out);
}

static bool concat(pith_render *render, pith_value a, pith_value b, pith_value *out) {
    const pith_string *left = pith_value_str(render, a), *right = pith_value_str(render, b);
    if (left == NULL || right == NULL || !pith_heap_charge(&render->heap, right->size / 64))
        return false;
    return pith_render_give(pith_value_string(pith_string_join(&render->heap, left, right)), out);
}

bool pith_operator_binary(pith_render *render, pith_binary op, pith_value a, pith_value b,
                          pith_value *out) {
    bool done = false;
    if (op == PITH_BINARY_CONCAT) return concat(render, a, b, out);
    if (pith_value_is_integer(a) && pith_value_is_integer(b)) {
        return operate_ints(render, op, pith_value_integer(a), pith_value_integer(b), out);
    }
    if (pith_value_is_number(a) && pith_value_is_number(b)) {
        return operate_floats(render, op, pith_value_real(a), pith_value_real(b), out);
    }
    if (op == PITH_BINARY_ADD && a.kind == b.kind) {
        if (a.kind == PITH_KIND_STRING) return add_strings(render, a, b, out);
        if (a.kind == PITH_KIND_LIST || a.kind == PITH_KIND_TUPLE)
            return add_lists(render, a, b, out);
    }
    if (op == PITH_BINARY_MULTIPLY) {
        if (!repeat(render, a, b, &done, out)) return false;
        if (done) return true;
    }
    if (op == PITH_BINARY_MODULO && a.kind == PITH_KIND_STRING) {
        return pith_format_percent(render, a.as.string, b, out);
    }
    return fail_kinds(render, symbols[op], a, b);
}

bool pith_operator_unary(pith_render *render, pith_unary op, pith_value a, pith_value *out) {
    if (op == PITH_UNARY_NOT) {
        *out = pith_bool(!pith_value_truth(a));
        return true;
    }
    if (a.kind == PITH_KIND_FLOAT) {
        *out = pith_float(op == PITH_UNARY_MINUS ? -a.as.real : a.as.real);
        return true;
    }
    if (pith_value_is_integer(a)) {
        int64_t integer = pith_value_integer(a);
        if (op == PITH_UNARY_MINUS && integer == INT64_MIN) return fail_overflow(render);
        *out = pith_int(op == PITH_UNARY_MINUS ? -integer : integer);
        return true;
    }
    if (a.kind == PITH_KIND_UNDEFINED) return pith_render_fail_undefined(render, a);
    return pith_render_fail(render, "a %s has no sign", pith_kind_name(a.kind));
}

/* ---- comparisons ---- */

static bool is_in_items(pith_render *render, pith_value container, pith_value item, bool *result) {
    pith_items items;
    pith_value other;
    *result = false;
    if (!pith_items_begin(&items, container)) {
        return pith_render_fail(render, "nothing can be 'in' a %s", pith_kind_name(container.kind));
    }
    while (!*result && pith_items_next(&items, &render->heap, &other)) {
        *result = pith_value_equal(&render->heap, other, item);
    }
    return true;
}

static bool is_in(pith_render *render, pith_value item, pith_value container, bool *result) {
    bool by_key = container.kind == PITH_KIND_DICT ||
                  (container.kind == PITH_KIND_VIEW && container.as.view->part == PITH_VIEW_KEYS);
    if (container.kind == PITH_KIND_STRING) {
        if (item.kind == PITH_KIND_UNDEFINED) return pith_render_fail_undefined(render, item);
        if (item.kind != PITH_KIND_STRING) {
            return pith_render_fail(render, "'in' a string needs a string, not %s",
                                    pith_kind_name(item.kind));
        }
        pith_span text = pith_string_span(container.as.string),
                  needle = pith_string_span(item.as.string);
        *result = pith_search_first(&render->heap, text, needle, 0) != SIZE_MAX;
        return true;
    }
    if (by_key) {
        const pith_dict *dict =
            container.kind == PITH_KIND_DICT ? container.as.dict : container.as.view->dict;
        uint64_t hash;
        if (!pith_value_hash(&render->heap, item, &hash)) {
            return pith_render_fail(render, "a %s cannot be a key of a dict",
                                    pith_kind_name(item.kind));
        }
        *result = pith_dict_find(&render->heap, dict, item) != NULL;
        return true;
    }
    return is_in_items(render, container, item, result);
}

static bool is_ordered(pith_render *render, pith_comparison op, pith_value a, pith_value b,
                       bool *result) {
    static const char *const names[] = {[PITH_COMPARISON_LESS] = "<",
                                        [PITH_COMPARISON_LESS_EQUAL] = "<=",
                                        [PITH_COMPARISON_GREATER] = ">",
                                        [PITH_COMPARISON_GREATER_EQUAL] = ">="};
    pith_order order = pith_value_compare(&render->heap, a, b);
    if (order == PITH_ORDER_NONE && !(pith_value_is_number(a) && pith_value_is_number(b))) {
        return fail_kinds(render, names[op], a, b);
    }
    bool less = order == PITH_ORDER_LESS, greater = order == PITH_ORDER_GREATER,
         equal = order == PITH_ORDER_EQUAL;
    *result = op == PITH_COMPARISON_LESS         ? less
              : op == PITH_COMPARISON_LESS_EQUAL ? less || equal
              : op == PITH_COMPARISON_GREATER    ? greater
                                                 : greater || equal;
    return true;
}

bool pith_operator_compare(pith_render *render, pith_comparison op, pith_value a, pith_value b,
                           bool *out) {
    switch (op) {
    case PITH_COMPARISON_EQUAL: *out = pith_value_equal(&render->heap, a, b); return true;
    case PITH_COMPARISON_UNEQUAL: *out = !pith_value_equal(&render->heap, a, b); return true;
    case PITH_COMPARISON_IN: return is_in(render, a, b, out);
    case PITH_COMPARISON_NOT_IN:
        if (!is_in(render, a, b, out)) return false;
        *out = !*out;
        return true;
    default: return is_ordered(render, op, a, b, out);
    }
}
