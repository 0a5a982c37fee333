/* SPDX-License-Identifier: Apache-2.0
 *
 * value.name, value[key], value[a:b:c].
 *
 * A dot asks for a method first and for a key then, brackets the other way round: d.items is the
 * method even when d has the key "items". What is not there is an undefined value that knows what
 * was asked of what; what would change an object (list.append), and names such as __class__, are
 * undefined values that no use is allowed of.
 */
#include "chat/native.h"

/* ---- missing ---- */

static bool give_missing(pith_render *render, pith_absence absence, pith_value owner,
                         pith_value name, pith_value *out) {
    return pith_render_give(pith_value_undefined(&render->heap, absence, name, owner.kind), out);
}

static bool is_dunder(const pith_string *name) {
    return name->size > 4 && name->data[0] == '_' && name->data[1] == '_' &&
           name->data[name->size - 1] == '_' && name->data[name->size - 2] == '_';
}

bool pith_render_fail_undefined(pith_render *render, pith_value value) {
    const pith_undefined *undefined = value.as.undefined;
    const pith_string *name = pith_value_str(render, undefined->name);
    if (name == NULL) return false;
    int size = name->size < 80 ? (int)name->size : 80;
    switch (undefined->absence) {
    case PITH_ABSENCE_NAME:
        return pith_render_fail(render, "'%.*s' is undefined", size, name->data);
    case PITH_ABSENCE_ATTRIBUTE:
        return pith_render_fail(render, "a %s has no '%.*s'", pith_kind_name(undefined->owner),
                                size, name->data);
    case PITH_ABSENCE_UNSAFE:
        return pith_render_fail(render, "templates may not use '%.*s' of a %s", size, name->data,
                                pith_kind_name(undefined->owner));
    default: return pith_render_fail(render, "%.*s", size, name->data);
    }
}

/* ---- attributes ---- */

static bool give_method(pith_render *render, pith_value self, const pith_function *function,
                        pith_value *out) {
    pith_method *method = pith_heap_object(&render->heap, sizeof *method);
    if (method == NULL) return false;
    *method = (pith_method){self, function};
    *out = (pith_value){PITH_KIND_METHOD, {.method = method}};
    return true;
}

/* Attributes that are not methods; *out is ABSENT when there is none. */
static bool own_attribute(pith_render *render, pith_value value, const pith_string *name,
                          pith_value *out) {
    *out = (pith_value){.kind = PITH_KIND_ABSENT};
    if (value.kind == PITH_KIND_LOOP) return pith_loop_attribute(render, value.as.loop, name, out);
    if (value.kind == PITH_KIND_NAMESPACE) {
        const pith_value *found =
            pith_dict_find(&render->heap, value.as.dict, pith_value_string(name));
        if (found != NULL) *out = *found;
    } else if (value.kind == PITH_KIND_TUPLE && value.as.list->is_group) {
        if (pith_string_is(name, "grouper")) *out = value.as.list->items[0];
        if (pith_string_is(name, "list")) *out = value.as.list->items[1];
    } else if (value.kind == PITH_KIND_MACRO && pith_string_is(name, "name")) {
        *out = pith_value_string(value.as.macro->code->name);
    } else if (value.kind == PITH_KIND_CYCLER && pith_string_is(name, "current")) {
        *out =
            value.as.cycler->values->items[value.as.cycler->position % value.as.cycler->values->n];
    }
    return true;
}

bool pith_access_attribute(pith_render *render, pith_value value, const pith_string *name,
                           pith_value *out) {
    bool is_unsafe = false;
    pith_value key = pith_value_string(name), found;
    if (value.kind == PITH_KIND_UNDEFINED) return pith_render_fail_undefined(render, value);
    if (!own_attribute(render, value, name, &found)) return false;
    if (found.kind == PITH_KIND_ABSENT) {
        const pith_function *function =
            pith_methods_find(value.kind, pith_string_span(name), &is_unsafe);
        if (function != NULL) return give_method(render, value, function, out);
    }
    if (found.kind == PITH_KIND_ABSENT && !is_unsafe && value.kind == PITH_KIND_DICT) {
        const pith_value *entry = pith_dict_find(&render->heap, value.as.dict, key);
        if (entry != NULL) found = *entry;
    }
    if (found.kind != PITH_KIND_ABSENT) {
        *out = found;
        return true;
    }
    is_unsafe = is_unsafe || is_dunder(name);
    return give_missing(render, is_unsafe ? PITH_ABSENCE_UNSAFE : PITH_ABSENCE_ATTRIBUTE, value,
                        key, out);
}

/* ---- items ---- */

/* index < 0 counts from the end; false: outside. */
static bool resolve_index(int64_t index, size_t n, size_t *at) {
    if (index < 0) index += (int64_t)n;
    if (index < 0 || (uint64_t)index >= n) return false;
    *at = (size_t)index;
    return true;
}

static bool char_at(pith_render *render, const pith_string *string, size_t index, pith_value *out) {
    uint32_t code;
    size_t at = pith_string_offset(string, index);
    if (string->n_chars != string->size && !pith_heap_charge(&render->heap, at / 8)) return false;
    if (at >= string->size) return pith_render_give(pith_value_text(&render->heap, ""), out);
    size_t size = pith_utf8_decode(string->data + at, string->size - at, &code);
    return pith_render_give(pith_value_string(pith_string_slice(&render->heap, string, at, size)),
                            out);
}

/* The item at an integer; *found tells whether there is one. */
static bool item_at(pith_render *render, pith_value value, int64_t index, bool *found,
                    pith_value *out) {
    size_t at;
    *found = true;
    switch (value.kind) {
    case PITH_KIND_LIST:
    case PITH_KIND_TUPLE:
        if (!resolve_index(index, value.as.list->n, &at)) break;
        *out = value.as.list->items[at];
        return true;
    case PITH_KIND_RANGE:
        if (!resolve_index(index, value.as.range->n, &at)) break;
        *out = pith_int(pith_range_at(value.as.range, at));
        return true;
    case PITH_KIND_STRING:
        if (!resolve_index(index, value.as.string->n_chars, &at)) break;
        return char_at(render, value.as.string, at, out);
    default: break;
    }
    *found = false;
    return true;
}

bool pith_access_item(pith_render *render, pith_value value, pith_value key, pith_value *out) {
    if (value.kind == PITH_KIND_UNDEFINED) return pith_render_fail_undefined(render, value);
    if (value.kind == PITH_KIND_DICT) {
        const pith_value *entry = pith_dict_find(&render->heap, value.as.dict, key);
        if (entry != NULL) {
            *out = *entry;
            return true;
        }
    } else if (pith_value_is_integer(key)) {
        bool found;
        if (!item_at(render, value, pith_value_integer(key), &found, out) || found) {
            return render->heap.fault == PITH_FAULT_NONE && render->status == PITH_OK;
        }
    }
    if (key.kind == PITH_KIND_STRING)
        return pith_access_attribute(render, value, key.as.string, out);
    return give_missing(render, PITH_ABSENCE_ATTRIBUTE, value, key, out);
}

/* ---- slices ---- */

typedef struct slice_range {
    int64_t start, step;
    size_t n;
} slice_range;

/* Python's rules for the bounds of a slice of something with n items; step is not 0. */
static slice_range resolve_slice(const pith_value parts[3], size_t n, int64_t step) {
    int64_t length = (int64_t)n, low = step < 0 ? -1 : 0, high = step < 0 ? length - 1 : length,
            bounds[2];
    bounds[0] = step < 0 ? high : low;
    bounds[1] = step < 0 ? low : high;
    for (int i = 0; i < 2; i++) {
        if (!pith_value_is_integer(parts[i])) continue;
        int64_t bound = pith_value_integer(parts[i]);
        if (bound < 0) bound = bound < -length ? low : bound + length;
        bounds[i] = bound < low ? low : bound > high ? high : bound;
    }
    uint64_t distance = 0, stride = step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
    if (step > 0 && bounds[0] < bounds[1]) distance = (uint64_t)(bounds[1] - bounds[0]);
    if (step < 0 && bounds[0] > bounds[1]) distance = (uint64_t)(bounds[0] - bounds[1]);
    return (slice_range){bounds[0], step,
                         distance == 0 ? 0 : (size_t)((distance - 1) / stride + 1)};
}

static bool slice_list(pith_render *render, pith_value value, slice_range range, pith_value *out) {
    pith_list *list = pith_list_new(&render->heap, range.n);
    if (list == NULL || !pith_heap_charge(&render->heap, range.n)) return false;
    for (size_t i = 0; i < range.n; i++) {
        list->items[i] = value.as.list->items[(size_t)(range.start + (int64_t)i * range.step)];
    }
    list->n = range.n;
    *out = (pith_value){value.kind, {.list = list}};
    return true;
}

/* Characters one by one; `offsets` holds where each starts, or is NULL when each is one byte. */
static bool pick_chars(pith_render *render, const pith_string *string, slice_range range,
                       const size_t *offsets, pith_value *out) {
    pith_builder builder;
    pith_builder_init(&builder, &render->heap);
    for (size_t i = 0; i < range.n; i++) {
        size_t index = (size_t)(range.start + (int64_t)i * range.step);
        size_t from = offsets != NULL ? offsets[index] : index;
        size_t to = offsets != NULL ? offsets[index + 1] : index + 1;
        if (to > from) pith_builder_slice(&builder, string, from, to - from);
    }
    pith_string *picked = pith_builder_finish(&builder);
    if (picked == NULL || !pith_heap_charge(&render->heap, range.n)) return false;
    picked->is_safe = string->is_safe;
    *out = pith_value_string(picked);
    return true;
}

static bool slice_string(pith_render *render, const pith_string *string, slice_range range,
                         pith_value *out) {
    if (!pith_heap_charge(&render->heap, string->size / 4)) return false;
    if (range.step == 1 || range.n <= 1) {
        size_t from = range.n > 0 ? pith_string_offset(string, (size_t)range.start) : 0;
        size_t to = range.n > 0 ? pith_string_offset(string, (size_t)range.start + range.n) : 0;
        return pith_render_give(
            pith_value_string(pith_string_slice(&render->heap, string, from, to - from)), out);
    }
    if (string->n_chars == string->size) return pick_chars(render, string, range, NULL, out);
    size_t *offsets = pith_heap_array(&render->heap, string->n_chars + 1, sizeof *offsets);
    if (offsets == NULL) return false;
    size_t n = 0;
    for (pith_walk walk = pith_walk_begin(string); n < string->n_chars && pith_walk_next(&walk);)
        offsets[n++] = walk.at;
    while (n <= string->n_chars) offsets[n++] = string->size;
    return pick_chars(render, string, range, offsets, out);
}

static bool slice_range_value(pith_render *render, const pith_range *source, slice_range range,
                              pith_value *out) {
    pith_range *sliced = pith_heap_object(&render->heap, sizeof *sliced);
    if (sliced == NULL) return false;
    uint64_t start = (uint64_t)source->start, step = (uint64_t)source->step;
    start += (uint64_t)range.start * step; /* numbers outside of the range wrap, and are not used */
    step *= (uint64_t)range.step;
    *sliced = (pith_range){.start = (int64_t)start,
                           .stop = (int64_t)(start + step * range.n),
                           .step = step == 0 ? 1 : (int64_t)step,
                           .n = range.n};
    *out = (pith_value){PITH_KIND_RANGE, {.range = sliced}};
    return true;
}

/* Slices, unlike subscripts, are an error where they do not fit. */
static bool check_bounds(pith_render *render, const pith_value parts[3]) {
    for (int i = 0; i < 3; i++) {
        if (parts[i].kind == PITH_KIND_UNDEFINED) {
            return pith_render_fail_undefined(render, parts[i]);
        }
        bool is_absent = parts[i].kind == PITH_KIND_ABSENT || parts[i].kind == PITH_KIND_NONE;
        if (is_absent || pith_value_is_integer(parts[i])) continue;
        return pith_render_fail(render, "the bounds of a slice are integers, not %s",
                                pith_kind_name(parts[i].kind));
    }
    return true;
}

bool pith_access_slice(pith_render *render, pith_value value, const pith_value parts[3],
                       pith_value *out) {
    size_t n;
    int64_t step = 1;
    if (value.kind == PITH_KIND_UNDEFINED) return pith_render_fail_undefined(render, value);
    if (!check_bounds(render, parts)) return false;
    bool is_sequence = value.kind == PITH_KIND_STRING || value.kind == PITH_KIND_LIST ||
                       value.kind == PITH_KIND_TUPLE || value.kind == PITH_KIND_RANGE;
    if (!is_sequence || !pith_value_length(value, &n)) {
        return pith_render_fail(render, "a %s cannot be sliced", pith_kind_name(value.kind));
    }
    if (pith_value_is_integer(parts[2])) step = pith_value_integer(parts[2]);
    if (step == 0) return pith_render_fail(render, "the step of a slice is 0");
    slice_range range = resolve_slice(parts, n, step);
    if (value.kind == PITH_KIND_STRING) {
        return slice_string(render, value.as.string, range, out);
    }
    if (value.kind == PITH_KIND_RANGE) {
        return slice_range_value(render, value.as.range, range, out);
    }
    return slice_list(render, value, range, out);
}
