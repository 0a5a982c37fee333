/* SPDX-License-Identifier: Apache-2.0
 *
 * map, select, reject, selectattr, rejectattr.
 *
 * Nothing comes of a subject that is false, whatever it is (None too). All items are gone through
 * at once; what is given back is an iterator all the same, because templates can tell: it is true
 * even when it is empty, it has no length, and it can be read only once.
 */
#include "chat/filters.h"

/* The value of keyword `name`; ABSENT when it is not there. */
static pith_value find_keyword(const pith_call *call, const char *name) {
    for (size_t i = 0; i < call->n_keywords; i++) {
        if (pith_string_is(call->keywords[2 * i].as.string, name)) return call->keywords[2 * i + 1];
    }
    return (pith_value){.kind = PITH_KIND_ABSENT};
}

/* item at "a.b", where each missing step becomes the default, when there is one. */
static bool follow(pith_render *render, pith_value item, pith_value path, pith_value fallback,
                   pith_value *out) {
    bool has_default = fallback.kind != PITH_KIND_ABSENT && fallback.kind != PITH_KIND_NONE;
    if (path.kind != PITH_KIND_STRING || !has_default) {
        if (!pith_attribute_path(render, item, path, out)) return false;
        if (has_default && out->kind == PITH_KIND_UNDEFINED) *out = fallback;
        return true;
    }
    const pith_string *text = path.as.string;
    *out = item;
    for (size_t from = 0; from <= text->size;) {
        size_t to = from;
        while (to < text->size && text->data[to] != '.') to++;
        pith_value step =
            pith_value_string(pith_string_slice(&render->heap, text, from, to - from));
        if (step.kind == PITH_KIND_ABSENT || !pith_attribute_path(render, *out, step, out))
            return false;
        if (out->kind == PITH_KIND_UNDEFINED) *out = fallback;
        from = to + 1;
    }
    return true;
}

/* map(attribute=..., default=...) takes no other arguments. */
static bool check_attribute_arguments(pith_render *render, const pith_call *call) {
    for (size_t i = 0; i < call->n_keywords; i++) {
        const pith_string *name = call->keywords[2 * i].as.string;
        if (pith_string_is(name, "attribute") || pith_string_is(name, "default")) continue;
        return pith_render_fail(render, "map takes no argument '%.*s'",
                                (int)(name->size < 60 ? name->size : 60), name->data);
    }
    return true;
}

bool pith_filter_map(pith_render *render, const pith_call *call, pith_value *out) {
    pith_items items;
    pith_value item, path = find_keyword(call, "attribute"),
                     fallback = find_keyword(call, "default");
    pith_list *mapped = pith_list_new(&render->heap, 4);
    bool by_attribute = call->n_args == 0 && path.kind != PITH_KIND_ABSENT;
    if (mapped == NULL) return false;
    if (!pith_value_truth(call->self)) {
        return pith_render_give(pith_value_iterator(&render->heap, mapped), out);
    }
    if (by_attribute && !check_attribute_arguments(render, call)) return false;
    if (!by_attribute && call->n_args == 0)
        return pith_render_fail(render, "map needs the name of a filter");
    if (!pith_items_begin(&items, call->self)) {
        return pith_render_fail(render, "map needs something with items, not %s",
                                pith_kind_name(call->self.kind));
    }
    while (pith_items_next(&items, &render->heap, &item)) {
        pith_value result = {.kind = PITH_KIND_ABSENT};
        bool ok = by_attribute ? follow(render, item, path, fallback, &result)
                               : pith_call_filter(render, call, 0, item, &result);
        if (!ok || !pith_list_append(&render->heap, mapped, result)) return false;
    }
    return pith_render_give(pith_value_iterator(&render->heap, mapped), out);
}

/* Keeps the items for which the test (or truth, when none is named) is `wanted`; by_attribute: of
 * their attribute. */
static bool choose(pith_render *render, const pith_call *call, bool by_attribute, bool wanted,
                   pith_value *out) {
    size_t first = by_attribute ? 1 : 0;
    pith_items items;
    pith_value item;
    pith_list *chosen = pith_list_new(&render->heap, 4);
    if (chosen == NULL) return false;
    if (!pith_value_truth(call->self)) {
        return pith_render_give(pith_value_iterator(&render->heap, chosen), out);
    }
    if (by_attribute && call->n_args == 0)
        return pith_render_fail(render, "%s needs an attribute", call->name);
    if (!pith_items_begin(&items, call->self)) {
        return pith_render_fail(render, "%s needs something with items, not %s", call->name,
                                pith_kind_name(call->self.kind));
    }
    while (pith_items_next(&items, &render->heap, &item)) {
        pith_value subject = item;
        bool holds;
        if (by_attribute && !pith_attribute_path(render, item, call->args[0], &subject))
            return false;
        if (call->n_args > first) {
            if (!pith_call_test(render, call, first, subject, &holds)) return false;
        } else {
            holds = pith_value_truth(subject);
        }
        if (holds == wanted && !pith_list_append(&render->heap, chosen, item)) return false;
    }
    return pith_render_give(pith_value_iterator(&render->heap, chosen), out);
}

bool pith_filter_select(pith_render *render, const pith_call *call, pith_value *out) {
    return choose(render, call, false, true, out);
}

bool pith_filter_reject(pith_render *render, const pith_call *call, pith_value *out) {
    return choose(render, call, false, false, out);
}

bool pith_filter_selectattr(pith_render *render, const pith_call *call, pith_value *out) {
    return choose(render, call, true, true, out);
}

bool pith_filter_rejectattr(pith_render *render, const pith_call *call, pith_value *out) {
    return choose(render, call, true, false, out);
}
