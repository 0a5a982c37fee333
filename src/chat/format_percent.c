/* SPDX-License-Identifier: Apache-2.0
 *
 * format % values, as printf-style formatting of Python's strings.
 *
 * %(key)s takes from a dict; otherwise values are taken in order from a tuple, or there is one
 * value. A format that is marked safe escapes the texts it takes in, and gives a safe string.
 */
#include "chat/format.h"

#include <math.h>
#include <string.h>

typedef struct percent {
    pith_render *render;
    const pith_string *format;
    size_t at; /* in the format */
    pith_value value;
    size_t n_used; /* values taken in order */
    pith_builder builder;
} percent;

static bool next_value(percent *state, pith_value *out) {
    if (state->value.kind == PITH_KIND_TUPLE) {
        if (state->n_used < state->value.as.list->n) {
            *out = state->value.as.list->items[state->n_used++];
            return true;
        }
    } else if (state->n_used++ == 0) {
        *out = state->value;
        return true;
    }
    return pith_render_fail(state->render, "there are fewer values than the format asks for");
}

static char peek(const percent *state) {
    return state->at < state->format->size ? state->format->data[state->at] : 0;
}

/* %(key): the value of that key. */
static bool read_key(percent *state, pith_value *out) {
    const char *from = state->format->data + state->at;
    const char *close = memchr(from, ')', state->format->size - state->at);
    if (close == NULL)
        return pith_render_fail(state->render, "a format's key is not closed by ')'");
    if (state->value.kind != PITH_KIND_DICT)
        return pith_render_fail(state->render, "a format with a key needs a dict");
    size_t size = (size_t)(close - from);
    pith_string *key = pith_string_slice(&state->render->heap, state->format, state->at, size);
    if (key == NULL) return false;
    const pith_value *found =
        pith_dict_find(&state->render->heap, state->value.as.dict, pith_value_string(key));
    if (found == NULL) {
        return pith_render_fail(state->render, "the dict lacks the format's key '%.*s'",
                                (int)(size < 60 ? size : 60), from);
    }
    *out = *found;
    state->at += size + 1;
    return true;
}

/* A number in the format, or `*`. */
static bool read_count(percent *state, int64_t *out) {
    *out = 0;
    if (peek(state) == '*') {
        pith_value value;
        state->at++;
        if (!next_value(state, &value)) return false;
        if (!pith_value_is_integer(value))
            return pith_render_fail(state->render, "'*' in a format needs an integer");
        *out = pith_value_integer(value);
    }
    while (peek(state) >= '0' && peek(state) <= '9') {
        if (*out <= PITH_FORMAT_MAX_WIDTH) *out = *out * 10 + (peek(state) - '0');
        state->at++;
    }
    if (*out > PITH_FORMAT_MAX_WIDTH || *out < -PITH_FORMAT_MAX_WIDTH) {
        return pith_render_fail(state->render, "a width or precision is too large");
    }
    return true;
}

/* Flags, width, precision, type. */
static bool read_spec(percent *state, pith_format_spec *spec) {
    bool left = false, zero = false;
    *spec = (pith_format_spec){.fill = ' ', .sign = '-', .precision = -1};
    for (; peek(state) != 0 && strchr("-+ #0", peek(state)) != NULL; state->at++) {
        char flag = peek(state);
        left = left || flag == '-';
        zero = zero || flag == '0';
        spec->is_alternate = spec->is_alternate || flag == '#';
        if (flag == '+' || (flag == ' ' && spec->sign != '+')) spec->sign = flag;
    }
    if (!read_count(state, &spec->width)) return false;
    if (spec->width < 0) {
        left = true;
        spec->width = -spec->width;
    }
    if (peek(state) == '.') {
        state->at++;
        if (!read_count(state, &spec->precision)) return false;
        if (spec->precision < 0) spec->precision = 0;
    }
    if (peek(state) != 0 && strchr("hlL", peek(state)) != NULL) state->at++;
    spec->type = peek(state);
    if (spec->type == 0) return pith_render_fail(state->render, "a format ends behind '%%'");
    state->at++;
    spec->align = left ? '<' : '>';
    if (zero && !left && strchr("diouxXeEfFgG", spec->type) != NULL) {
        spec->align = '=';
        spec->fill = '0';
    }
    return true;
}

static bool format_text(percent *state, pith_value value, const pith_format_spec *spec) {
    pith_render *render = state->render;
    const pith_string *text;
    if (spec->type == 's' || spec->type == 'c') {
        text = pith_value_str(render, value);
    } else {
        pith_builder builder;
        pith_builder_init(&builder, &render->heap);
        text = pith_value_repr(render, &builder, value) ? pith_builder_finish(&builder) : NULL;
    }
    if (text != NULL && state->format->is_safe)
        text = pith_value_escape(render, pith_value_string(text));
    if (text == NULL) return false;
    pith_format_text(&state->builder, text, spec);
    return true;
}

static bool format_integer(percent *state, pith_value value, pith_format_spec *spec) {
    if (value.kind == PITH_KIND_FLOAT &&
        (spec->type == 'd' || spec->type == 'i' || spec->type == 'u')) {
        double real = trunc(value.as.real);
        if (!(real >= -9223372036854775808.0 && real < 9223372036854775808.0)) {
            return pith_render_fail(state->render,
                                    "a float does not fit into an integer of 64 bits");
        }
        value = pith_int((int64_t)real);
    }
    if (!pith_value_is_integer(value)) {
        return pith_render_fail(state->render, "the format '%c' needs a number, not %s", spec->type,
                                pith_kind_name(value.kind));
    }
    if (spec->type == 'i' || spec->type == 'u') spec->type = 'd';
    return pith_format_number(state->render, &state->builder, value, spec);
}

static bool format_value(percent *state, pith_value value, pith_format_spec *spec) {
    pith_render *render = state->render;
    if (value.kind == PITH_KIND_UNDEFINED && spec->type != 's' && spec->type != 'r') {
        return pith_render_fail_undefined(render, value);
    }
    switch (spec->type) {
    case 's':
    case 'r':
    case 'a': return format_text(state, value, spec);
    case 'c':
        if (value.kind == PITH_KIND_STRING && value.as.string->n_chars == 1)
            return format_text(state, value, spec);
        if (pith_value_is_integer(value))
            return pith_format_number(render, &state->builder, value, spec);
        return pith_render_fail(render, "the format 'c' needs a character or its number");
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X': return format_integer(state, value, spec);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        if (!pith_value_is_number(value)) {
            return pith_render_fail(render, "the format '%c' needs a number, not %s", spec->type,
                                    pith_kind_name(value.kind));
        }
        return pith_format_number(render, &state->builder, value, spec);
    default: return pith_render_fail(render, "there is no format '%%%c'", spec->type);
    }
}

/* Behind a `%`. */
static bool format_one(percent *state) {
    pith_format_spec spec;
    pith_value value = {.kind = PITH_KIND_ABSENT};
    if (peek(state) == '%') {
        state->at++;
        pith_builder_text(&state->builder, "%");
        return true;
    }
    if (peek(state) == '(') {
        state->at++;
        if (!read_key(state, &value)) return false;
    }
    if (!read_spec(state, &spec)) return false;
    if (value.kind == PITH_KIND_ABSENT && !next_value(state, &value)) return false;
    return format_value(state, value, &spec);
}

/* Values that the format did not take are an error, except in what could be asked by key. */
static bool all_used(const percent *state) {
    switch (state->value.kind) {
    case PITH_KIND_TUPLE: return state->n_used == state->value.as.list->n;
    case PITH_KIND_NONE:
    case PITH_KIND_BOOL:
    case PITH_KIND_INT:
    case PITH_KIND_FLOAT:
    case PITH_KIND_STRING: return state->n_used > 0;
    default: return true;
    }
}

bool pith_format_percent(pith_render *render, const pith_string *format, pith_value value,
                         pith_value *out) {
    percent state = {.render = render, .format = format, .value = value};
    pith_builder_init(&state.builder, &render->heap);
    while (state.at < format->size) {
        const char *from = format->data + state.at;
        const char *sign = memchr(from, '%', format->size - state.at);
        size_t size = sign != NULL ? (size_t)(sign - from) : format->size - state.at;
        pith_builder_slice(&state.builder, format, state.at, size);
        state.at += size;
        if (sign == NULL) break;
        state.at++;
        if (!pith_heap_charge(&render->heap, 1) || !format_one(&state)) return false;
    }
    if (!all_used(&state))
        return pith_render_fail(render, "there are more values than the format asks for");
    pith_string *string = pith_builder_finish(&state.builder);
    if (string == NULL) return false;
    string->is_safe = format->is_safe;
    *out = pith_value_string(string);
    return true;
}
