/* SPDX-License-Identifier: Apache-2.0
 *
 * What native functions share: finding them by name, taking their arguments, and the ways in which
 * filters call other filters and tests (map, select) or look into items (attribute=).
 *
 * Invariant: a filter that is called by a filter costs a level of depth, so that map('map', 'map',
 * ...) ends.
 */
#include "chat/native.h"

#include "chat/number_text.h"

#include <string.h>

const pith_function *pith_function_find(const pith_function *list, pith_span name) {
    if (name.size == 0) return NULL;
    for (; list->name != NULL; list++) {
        if (list->name[0] == name.data[0] && pith_span_is(name, list->name)) return list;
    }
    return NULL;
}

/* ---- arguments ---- */

bool pith_call_bind(pith_render *render, const pith_call *call, const char *const *names, size_t n,
                    size_t n_required, pith_value *values) {
    if (call->n_args > n) {
        return pith_render_fail(render, "%s takes at most %zu arguments, not %zu", call->name, n,
                                call->n_args);
    }
    for (size_t i = 0; i < n; i++) {
        values[i] = i < call->n_args ? call->args[i] : (pith_value){.kind = PITH_KIND_ABSENT};
    }
    for (size_t i = 0; i < call->n_keywords; i++) {
        const pith_string *name = call->keywords[2 * i].as.string;
        size_t number = 0;
        while (number < n && !pith_string_is(name, names[number])) number++;
        int size = name->size < 60 ? (int)name->size : 60;
        if (number == n)
            return pith_render_fail(render, "%s takes no argument '%.*s'", call->name, size,
                                    name->data);
        if (values[number].kind != PITH_KIND_ABSENT) {
            return pith_render_fail(render, "%s is given '%.*s' twice", call->name, size,
                                    name->data);
        }
        values[number] = call->keywords[2 * i + 1];
    }
    for (size_t i = 0; i < n_required; i++) {
        if (values[i].kind != PITH_KIND_ABSENT) continue;
        return pith_render_fail(render, "%s needs the argument '%s'", call->name, names[i]);
    }
    return true;
}

bool pith_call_bind_nothing(pith_render *render, const pith_call *call) {
    if (call->n_args == 0 && call->n_keywords == 0) return true;
    return pith_render_fail(render, "%s takes no arguments", call->name);
}

static bool fail_kind(pith_render *render, const pith_call *call, const char *name,
                      const char *wanted, pith_value value) {
    if (value.kind == PITH_KIND_UNDEFINED) return pith_render_fail_undefined(render, value);
    return pith_render_fail(render, "%s needs %s for '%s', not %s", call->name, wanted, name,
                            pith_kind_name(value.kind));
}

bool pith_argument_int(pith_render *render, const pith_call *call, const char *name,
                       pith_value value, int64_t absent, int64_t *out) {
    *out = absent;
    if (value.kind == PITH_KIND_ABSENT) return true;
    if (!pith_value_is_integer(value)) return fail_kind(render, call, name, "an integer", value);
    *out = pith_value_integer(value);
    return true;
}

bool pith_argument_string(pith_render *render, const pith_call *call, const char *name,
                          pith_value value, const pith_string **out) {
    if (value.kind != PITH_KIND_STRING) return fail_kind(render, call, name, "a string", value);
    *out = value.as.string;
    return true;
}

const pith_string *pith_call_text(pith_render *render, const pith_call *call) {
    return pith_value_str(render, call->self);
}

pith_list *pith_call_items(pith_render *render, const pith_call *call) {
    pith_items items;
    if (pith_items_begin(&items, call->self)) return pith_value_to_list(&render->heap, call->self);
    pith_render_fail(render, "%s needs something with items, not %s", call->name,
                     pith_kind_name(call->self.kind));
    return NULL;
}

/* ---- filters that call others ---- */

static bool call_named(pith_render *render, const pith_call *call, size_t first,
                       const pith_function *list, const char *what, pith_value subject,
                       pith_value *out) {
    pith_value name = call->args[first];
    if (name.kind != PITH_KIND_STRING)
        return pith_render_fail(render, "%s needs the name of a %s", call->name, what);
    const pith_function *function = pith_function_find(list, pith_string_span(name.as.string));
    if (function == NULL) {
        int size = name.as.string->size < 60 ? (int)name.as.string->size : 60;
        return pith_render_fail(render, "there is no %s named '%.*s'", what, size,
                                name.as.string->data);
    }
    pith_call inner = {.name = function->name,
                       .self = subject,
                       .args = call->args + first + 1,
                       .n_args = call->n_args - first - 1,
                       .keywords = call->keywords,
                       .n_keywords = call->n_keywords};
    enum { MAX_NESTING = 16 };
    if (!pith_heap_charge(&render->heap, 2)) return false;
    if (render->n_native == MAX_NESTING)
        return pith_render_fail(render, "filters call each other too deeply");
    render->n_native++;
    bool ok = function->native(render, &inner, out);
    render->n_native--;
    return ok;
}

bool pith_call_filter(pith_render *render, const pith_call *call, size_t first, pith_value subject,
                      pith_value *out) {
    return call_named(render, call, first, pith_filters, "filter", subject, out);
}

bool pith_call_test(pith_render *render, const pith_call *call, size_t first, pith_value subject,
                    bool *out) {
    pith_value result;
    if (!call_named(render, call, first, pith_tests, "test", subject, &result)) return false;
    *out = pith_value_truth(result);
    return true;
}

/* One step of a path: a name, or an index where all are digits. */
static bool path_step(pith_render *render, pith_value value, const pith_string *path, size_t from,
                      size_t size, pith_value *out) {
    pith_string *name = pith_string_slice(&render->heap, path, from, size);
    int64_t index;
    if (name == NULL) return false;
    size_t n_digits = 0;
    while (n_digits < size && name->data[n_digits] >= '0' && name->data[n_digits] <= '9')
        n_digits++;
    bool is_index =
        size > 0 && n_digits == size && pith_int_parse(pith_string_span(name), 10, &index);
    return pith_access_item(render, value, is_index ? pith_int(index) : pith_value_string(name),
                            out);
}

bool pith_attribute_path(pith_render *render, pith_value value, pith_value path, pith_value *out) {
    if (path.kind != PITH_KIND_STRING) return pith_access_item(render, value, path, out);
    const pith_string *text = path.as.string;
    size_t from = 0;
    *out = value;
    while (from <= text->size) {
        const char *dot =
            from < text->size ? memchr(text->data + from, '.', text->size - from) : NULL;
        size_t size = dot != NULL ? (size_t)(dot - text->data) - from : text->size - from;
        if (!path_step(render, *out, text, from, size, out)) return false;
        from += size + 1;
    }
    return true;
}
