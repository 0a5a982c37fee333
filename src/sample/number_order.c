/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of JSON as values: their order, whether they are integers, their shortest text.
 *
 * jansson keeps integers of 64 bits and doubles apart. Here 1 and 1.0 are the same number, and an
 * integer is compared with a double exactly, without becoming one.
 */
#include "sample/json_text.h"

#include <math.h>
#include <string.h>

static const double two_63 = 9223372036854775808.0;

static int order_of(double a, double b) {
    return a < b ? -1 : a > b;
}

/* An integer and a double. */
static int compare_mixed(int64_t a, double b) {
    if (b >= two_63) return -1;
    if (b < -two_63) return 1;
    int64_t whole = (int64_t)b;
    if (a != whole) return a < whole ? -1 : 1;
    return order_of((double)whole, b);
}

int pith_json_compare_numbers(const json_t *a, const json_t *b) {
    if (json_is_integer(a) && json_is_integer(b)) {
        int64_t x = json_integer_value(a), y = json_integer_value(b);
        return x < y ? -1 : x > y;
    }
    if (json_is_integer(a)) return compare_mixed(json_integer_value(a), json_real_value(b));
    if (json_is_integer(b)) return -compare_mixed(json_integer_value(b), json_real_value(a));
    return order_of(json_real_value(a), json_real_value(b));
}

bool pith_json_is_integer(const json_t *value) {
    if (!json_is_real(value)) return json_is_integer(value);
    double number = json_real_value(value);
    return floor(number) == number;
}

static bool is_multiple(const json_t *value, int64_t multiple) {
    if (json_is_integer(value)) return json_integer_value(value) % multiple == 0;
    return fmod(json_real_value(value), (double)multiple) == 0;
}

bool pith_json_bounds_hold(const pith_json_bounds *bounds, const json_t *value) {
    if (bounds->min != NULL) {
        int order = pith_json_compare_numbers(value, bounds->min);
        if (order < 0 || (order == 0 && bounds->min_excluded)) return false;
    }
    if (bounds->max != NULL) {
        int order = pith_json_compare_numbers(value, bounds->max);
        if (order > 0 || (order == 0 && bounds->max_excluded)) return false;
    }
    if (bounds->integer && !pith_json_is_integer(value)) return false;
    return bounds->multiple <= 1 || is_multiple(value, bounds->multiple);
}

bool pith_json_number_text(const json_t *value, char *out, size_t capacity) {
    for (size_t precision = 15; precision <= 17; precision++) {
        size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(precision);
        size_t size = json_dumpb(value, out, capacity - 1, flags);
        if (size == 0 || size >= capacity) return false;
        out[size] = 0;
        if (!json_is_real(value)) return true;
        json_t *back = json_loadb(out, size, JSON_DECODE_ANY, NULL);
        bool same = back != NULL && pith_json_compare_numbers(back, value) == 0;
        json_decref(back);
        if (same) return true;
    }
    return false;
}
