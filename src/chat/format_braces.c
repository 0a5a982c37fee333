/* SPDX-License-Identifier: Apache-2.0
 *
 * '{} {name[key]:>5}'.format(...): Python's format strings.
 *
 *   { name or number  (.attribute | [key])*  !conversion  :specification }
 *
 * A specification may itself contain fields, one level deep. Attributes go through the same rules
 * as in the rest of the template. A format that is marked safe escapes what it takes in.
 */
#include "chat/format.h"

#include "chat/number_text.h"

#include <string.h>

typedef struct braces {
    pith_render *render;
    const pith_string *format;
    const pith_call *call;
    int64_t n_auto; /* fields numbered so far */
    bool has_manual;
} braces;

static bool find_keyword(const braces *state, pith_span name, pith_value *out) {
    for (size_t i = 0; i < state->call->n_keywords; i++) {
        if (!pith_span_equal(pith_string_span(state->call->keywords[2 * i].as.string), name))
            continue;
        *out = state->call->keywords[2 * i + 1];
        return true;
    }
    return pith_render_fail(state->render, "format() lacks the argument '%.*s'",
                            (int)(name.size < 60 ? name.size : 60), name.data);
}

/* The argument that the field's first part names. */
static bool find_argument(braces *state, pith_span name, pith_value *out) {
    int64_t index;
    bool is_number = name.size > 0 && name.data[0] >= '0' && name.data[0] <= '9';
    if (name.size > 0 && !is_number) return find_keyword(state, name, out);
    if (is_number) {
        state->has_manual = true;
        if (!pith_int_parse(name, 10, &index))
            return pith_render_fail(state->render, "a field's number is not valid");
    } else {
        index = state->n_auto++;
    }
    if (state->has_manual && state->n_auto > 0) {
        return pith_render_fail(state->render, "a format cannot have both numbered fields and {}");
    }
    if ((uint64_t)index >= state->call->n_args) {
        return pith_render_fail(state->render, "format() lacks argument %lld", (long long)index);
    }
    *out = state->call->args[index];
    return true;
}

static pith_span part(const pith_string *format, size_t from, size_t to) {
    return (pith_span){format->data + from, to - from};
}

/* .name and [key] from `at` on, up to `end`. */
static bool follow_path(braces *state, size_t at, size_t end, pith_value *value) {
    const pith_string *format = state->format;
    while (at < end) {
        bool is_item = format->data[at] == '[';
        size_t from = ++at;
        while (at < end && (is_item ? format->data[at] != ']'
                                    : format->data[at] != '.' && format->data[at] != '['))
            at++;
        if (at == from || (is_item && at == end))
            return pith_render_fail(state->render, "a field of a format is not valid");
        pith_string *name = pith_string_slice(&state->render->heap, format, from, at - from);
        int64_t index;
        if (name == NULL) return false;
        if (!is_item) {
            if (!pith_access_attribute(state->render, *value, name, value)) return false;
            continue;
        }
        bool is_index = pith_int_parse(part(format, from, at), 10, &index);
        if (!pith_access_item(state->render, *value,
                              is_index ? pith_int(index) : pith_value_string(name), value)) {
            return false;
        }
        at++;
    }
    return true;
}

static bool append_field(braces *state, pith_builder *builder, pith_value value, pith_span text) {
    pith_format_spec spec;
    pith_render *render = state->render;
    pith_builder own;
    bool is_safe = false;
    pith_builder_init(&own, &render->heap);
    if (!pith_format_spec_read(render, text, &spec)) return false;
    if (text.size > 0 && pith_value_is_number(value)) {
        if (spec.precision >= 0 && value.kind != PITH_KIND_FLOAT && spec.type != 0 &&
            strchr("dnboxX", spec.type)) {
            return pith_render_fail(render, "an integer's format has no precision");
        }
        if (!pith_format_number(render, &own, value, &spec)) return false;
    } else {
        const pith_string *string = pith_value_str(render, value);
        if (string == NULL) return false;
        bool is_text = value.kind == PITH_KIND_STRING && (spec.type == 0 || spec.type == 's');
        if (text.size > 0 && !is_text) {
            return pith_render_fail(render, "this format specification does not work for a %s",
                                    pith_kind_name(value.kind));
        }
        pith_format_text(&own, string, &spec);
        is_safe = string->is_safe;
    }
    const pith_string *shown = pith_builder_finish(&own);
    if (shown != NULL && state->format->is_safe && !is_safe) {
        shown = pith_value_escape(render, pith_value_string(shown));
    }
    if (shown == NULL) return false;
    pith_builder_string(builder, shown);
    return true;
}

static bool convert(braces *state, char conversion, pith_value *value) {
    pith_builder builder;
    if (conversion == 's') {
        *value = pith_value_string(pith_value_str(state->render, *value));
        return value->kind != PITH_KIND_ABSENT;
    }
    if (conversion != 'r' && conversion != 'a') {
        return pith_render_fail(state->render, "a field's conversion must be !r, !s or !a");
    }
    pith_builder_init(&builder, &state->render->heap);
    if (!pith_value_repr(state->render, &builder, *value)) return false;
    *value = pith_value_string(pith_builder_finish(&builder));
    return value->kind != PITH_KIND_ABSENT;
}

/* The end of the field that starts at `at` (behind its brace): the matching brace; `end` when there
 * is none. */
static size_t find_close(const pith_string *format, size_t at, size_t end) {
    int nesting = 0;
    for (; at < end; at++) {
        if (format->data[at] == '{') nesting++;
        if (format->data[at] == '}' && nesting-- == 0) return at;
    }
    return end;
}

/* The value of the field [at, close) and where its specification begins (close: none). */
static bool read_field(braces *state, size_t at, size_t close, pith_value *value, size_t *spec) {
    const char *data = state->format->data;
    size_t stop = at, path;
    for (bool inside = false; stop < close && (inside || (data[stop] != '!' && data[stop] != ':'));
         stop++) {
        if (data[stop] == '[') inside = true;
        if (data[stop] == ']') inside = false;
    }
    for (path = at; path < stop && data[path] != '.' && data[path] != '['; path++) {}
    if (!find_argument(state, part(state->format, at, path), value)) return false;
    if (!follow_path(state, path, stop, value)) return false;
    if (stop < close && data[stop] == '!') {
        if (stop + 1 >= close || !convert(state, data[stop + 1], value)) {
            return pith_render_fail(state->render, "a field's conversion is not valid");
        }
        stop += 2;
        if (stop < close && data[stop] != ':')
            return pith_render_fail(state->render, "':' is missing in a field");
    }
    *spec = stop < close ? stop + 1 : close;
    return true;
}

/* A specification with its own fields replaced. */
static bool expand_spec(braces *state, size_t from, size_t close, pith_string **out) {
    pith_builder builder;
    pith_value value;
    size_t nested;
    pith_builder_init(&builder, &state->render->heap);
    for (size_t at = from; at < close; at++) {
        if (state->format->data[at] != '{') {
            pith_builder_slice(&builder, state->format, at, 1);
            continue;
        }
        size_t end = find_close(state->format, at + 1, close);
        if (end == close)
            return pith_render_fail(state->render, "a field of a format is not closed by '}'");
        if (!read_field(state, at + 1, end, &value, &nested)) return false;
        if (!append_field(state, &builder, value, part(state->format, nested, end))) return false;
        at = end;
    }
    *out = pith_builder_finish(&builder);
    return *out != NULL;
}

static bool format_field(braces *state, pith_builder *builder, size_t at, size_t close) {
    pith_value value;
    size_t spec;
    pith_string *expanded = NULL;
    return read_field(state, at, close, &value, &spec) &&
           expand_spec(state, spec, close, &expanded) &&
           append_field(state, builder, value, pith_string_span(expanded));
}

bool pith_format_braces(pith_render *render, const pith_string *format, const pith_call *call,
                        pith_value *out) {
    braces state = {.render = render, .format = format, .call = call};
    pith_builder builder;
    pith_builder_init(&builder, &render->heap);
    for (size_t at = 0; at < format->size; at++) {
        char c = format->data[at];
        bool is_double = at + 1 < format->size && format->data[at + 1] == c;
        size_t from = at;
        if (!pith_heap_charge(&render->heap, 1)) return false;
        if ((c == '{' || c == '}') && is_double) {
            pith_builder_slice(&builder, format, ++at, 1);
        } else if (c == '{') {
            at = find_close(format, at + 1, format->size);
            if (at == format->size)
                return pith_render_fail(render, "a field of a format is not closed by '}'");
            if (!format_field(&state, &builder, from + 1, at)) return false;
        } else if (c == '}') {
            return pith_render_fail(render, "a '}' in a format stands alone");
        } else {
            while (at + 1 < format->size && format->data[at + 1] != '{' &&
                   format->data[at + 1] != '}')
                at++;
            pith_builder_slice(&builder, format, from, at - from + 1);
        }
    }
    pith_string *string = pith_builder_finish(&builder);
    if (string == NULL) return false;
    string->is_safe = format->is_safe;
    *out = pith_value_string(string);
    return true;
}
