/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters about numbers: abs, int, float, round, filesizeformat.
 *
 * `int` and `float` never fail on text that is no number: they give their default. A number that an
 * integer of 64 bits cannot hold does fail, because a default would be a wrong answer.
 */
#include "chat/filters.h"
#include "chat/number_text.h"

#include <math.h>
#include <stdio.h>

static bool fail_number(pith_render *render, const pith_call *call) {
    if (call->self.kind == PITH_KIND_UNDEFINED)
        return pith_render_fail_undefined(render, call->self);
    return pith_render_fail(render, "%s needs a number, not %s", call->name,
                            pith_kind_name(call->self.kind));
}

/* Reading a number costs by the length of its text. */
static bool charge_text(pith_render *render, const pith_call *call) {
    if (call->self.kind != PITH_KIND_STRING) return true;
    return pith_heap_charge(&render->heap, call->self.as.string->size / 8);
}

bool pith_filter_abs(pith_render *render, const pith_call *call, pith_value *out) {
    if (!pith_call_bind_nothing(render, call)) return false;
    if (!pith_value_is_number(call->self)) return fail_number(render, call);
    if (call->self.kind == PITH_KIND_FLOAT) {
        *out = pith_float(fabs(call->self.as.real));
        return true;
    }
    int64_t value = pith_value_integer(call->self);
    if (value == INT64_MIN)
        return pith_render_fail(render, "an integer result does not fit into 64 bits");
    *out = pith_int(value < 0 ? -value : value);
    return true;
}

/* *out = the integer part; *fits is false for NaN, infinities and what is too large. */
static void truncate_real(double real, bool *fits, pith_value *out) {
    double whole = trunc(real);
    *fits = whole >= -9223372036854775808.0 && whole < 9223372036854775808.0;
    if (*fits) *out = pith_int((int64_t)whole);
}

bool pith_filter_int(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"default", "base"};
    pith_value arguments[2], subject = call->self;
    int64_t base, integer;
    double real = (double)NAN;
    bool fits;
    if (!pith_call_bind(render, call, names, 2, 0, arguments) ||
        !pith_argument_int(render, call, "base", arguments[1], 10, &base)) {
        return false;
    }
    if (base != 0 && (base < 2 || base > 36))
        return pith_render_fail(render, "int's base must be 0 or 2 to 36");
    if (subject.kind == PITH_KIND_UNDEFINED) return pith_render_fail_undefined(render, subject);
    *out = arguments[0].kind != PITH_KIND_ABSENT ? arguments[0] : pith_int(0);
    if (pith_value_is_integer(subject)) {
        *out = pith_int(pith_value_integer(subject));
        return true;
    }
    if (subject.kind == PITH_KIND_STRING) {
        if (!charge_text(render, call)) return false;
        if (pith_int_parse(pith_string_span(subject.as.string), (int)base, &integer)) {
            *out = pith_int(integer);
            return true;
        }
        if (!pith_float_parse(pith_string_span(subject.as.string), &real)) return true;
    } else if (subject.kind == PITH_KIND_FLOAT) {
        real = subject.as.real;
    }
    truncate_real(real, &fits, out);
    if (!fits && isfinite(real))
        return pith_render_fail(render, "a number does not fit into an integer of 64 bits");
    return true;
}

bool pith_filter_float(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"default"};
    pith_value fallback;
    double real;
    if (!pith_call_bind(render, call, names, 1, 0, &fallback)) return false;
    if (call->self.kind == PITH_KIND_UNDEFINED)
        return pith_render_fail_undefined(render, call->self);
    *out = fallback.kind != PITH_KIND_ABSENT ? fallback : pith_float(0.0);
    if (!charge_text(render, call)) return false;
    if (pith_value_is_number(call->self)) {
        *out = pith_float(pith_value_real(call->self));
    } else if (call->self.kind == PITH_KIND_STRING &&
               pith_float_parse(pith_string_span(call->self.as.string), &real)) {
        *out = pith_float(real);
    }
    return true;
}

/* An integer rounded to tens, hundreds, ...; halves to even. */
static bool round_integer(pith_render *render, int64_t value, int64_t precision, pith_value *out) {
    uint64_t unit = 1, size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    *out = pith_int(value);
    if (precision >= 0) return true;
    if (precision < -19) {
        *out = pith_int(0);
        return true;
    }
    for (int64_t i = precision; i < 0; i++) unit *= 10; /* up to 10^19, which fits */
    uint64_t rest = size % unit, rounded = size - rest;
    bool up = rest > unit - rest || (rest == unit - rest && (size / unit) % 2 == 1);
    if (up && unit > (uint64_t)INT64_MAX - rounded) {
        return pith_render_fail(render, "an integer result does not fit into 64 bits");
    }
    if (up) rounded += unit;
    *out = pith_int(value < 0 ? (int64_t)(0 - rounded) : (int64_t)rounded);
    return true;
}

bool pith_filter_round(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"precision", "method"};
    pith_value arguments[2];
    int64_t precision;
    const pith_string *method = NULL;
    if (!pith_call_bind(render, call, names, 2, 0, arguments) ||
        !pith_argument_int(render, call, "precision", arguments[0], 0, &precision)) {
        return false;
    }
    if (arguments[1].kind != PITH_KIND_ABSENT &&
        !pith_argument_string(render, call, "method", arguments[1], &method)) {
        return false;
    }
    if (precision > 400 || precision < -400)
        return pith_render_fail(render, "round's precision is too large");
    if (!pith_value_is_number(call->self)) return fail_number(render, call);
    if (method == NULL || pith_string_is(method, "common")) {
        if (call->self.kind != PITH_KIND_FLOAT) {
            return round_integer(render, pith_value_integer(call->self), precision, out);
        }
        bool is_long = precision > 17 || precision < -17 || fabs(call->self.as.real) > 1e17;
        if (!pith_heap_charge(&render->heap,
                              is_long ? 10 * PITH_FLOAT_STEPS : PITH_FLOAT_STEPS / 2)) {
            return false;
        }
        *out = pith_float(pith_float_round(call->self.as.real, (int)precision));
        return true;
    }
    bool is_ceil = pith_string_is(method, "ceil");
    if (!is_ceil && !pith_string_is(method, "floor")) {
        return pith_render_fail(render, "round's method must be 'common', 'ceil' or 'floor'");
    }
    double unit = pow(10.0, (double)precision), scaled = pith_value_real(call->self) * unit;
    *out = pith_float((is_ceil ? ceil(scaled) : floor(scaled)) / unit);
    return true;
}

bool pith_filter_filesizeformat(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"binary"};
    static const char *const decimal[] = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
    static const char *const binary[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
    pith_value argument;
    double bytes;
    char digits[PITH_FLOAT_TEXT_MAX], text[PITH_FLOAT_TEXT_MAX + 16];
    if (!pith_call_bind(render, call, names, 1, 0, &argument)) return false;
    if (!charge_text(render, call)) return false;
    if (pith_value_is_number(call->self)) {
        bytes = pith_value_real(call->self);
    } else if (call->self.kind != PITH_KIND_STRING ||
               !pith_float_parse(pith_string_span(call->self.as.string), &bytes)) {
        return fail_number(render, call);
    }
    bool is_binary = argument.kind != PITH_KIND_ABSENT && pith_value_truth(argument);
    double base = is_binary ? 1024 : 1000, unit = base;
    if (bytes >= 1.0 && bytes <= 1.0)
        return pith_render_give(pith_value_text(&render->heap, "1 Byte"), out);
    if (!(bytes >= base)) {
        size_t n = pith_float_text(trunc(bytes), 'f', 0, digits);
        snprintf(text, sizeof text, "%s%.*s Bytes", bytes <= -1.0 ? "-" : "", (int)n, digits);
        return pith_render_give(pith_value_text(&render->heap, text), out);
    }
    size_t i = 0;
    while (i < 7 && bytes >= unit * base) {
        unit *= base;
        i++;
    }
    size_t n = pith_float_text(bytes / unit, 'f', 1, digits);
    snprintf(text, sizeof text, "%.*s %s", (int)n, digits, is_binary ? binary[i] : decimal[i]);
    return pith_render_give(pith_value_text(&render->heap, text), out);
}
