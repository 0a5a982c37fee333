/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of dicts, lists, tuples and cyclers. None changes its object but a cycler's, whose
 * purpose that is.
 */
#include "chat/methods.h"

bool pith_method_dict_get(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"key", "default"};
    pith_value arguments[2];
    uint64_t hash;
    if (!pith_call_bind(render, call, names, 2, 1, arguments)) return false;
    if (!pith_value_hash(&render->heap, arguments[0], &hash)) {
        return pith_render_fail(render, "a %s cannot be a key of a dict",
                                pith_kind_name(arguments[0].kind));
    }
    const pith_value *found = pith_dict_find(&render->heap, call->self.as.dict, arguments[0]);
    *out = found != NULL                           ? *found
           : arguments[1].kind != PITH_KIND_ABSENT ? arguments[1]
                                                   : pith_none();
    return true;
}

static bool give_view(pith_render *render, const pith_call *call, pith_view_part part,
                      pith_value *out) {
    pith_view *view = pith_heap_object(&render->heap, sizeof *view);
    if (view == NULL || !pith_call_bind_nothing(render, call)) return false;
    *view = (pith_view){call->self.as.dict, part};
    *out = (pith_value){PITH_KIND_VIEW, {.view = view}};
    return true;
}

bool pith_method_dict_items(pith_render *render, const pith_call *call, pith_value *out) {
    return give_view(render, call, PITH_VIEW_ITEMS, out);
}

bool pith_method_dict_keys(pith_render *render, const pith_call *call, pith_value *out) {
    return give_view(render, call, PITH_VIEW_KEYS, out);
}

bool pith_method_dict_values(pith_render *render, const pith_call *call, pith_value *out) {
    return give_view(render, call, PITH_VIEW_VALUES, out);
}

/* A copy of what cannot change is the thing itself. */
static bool give_self(pith_render *render, const pith_call *call, pith_value *out) {
    *out = call->self;
    return pith_call_bind_nothing(render, call);
}

bool pith_method_dict_copy(pith_render *render, const pith_call *call, pith_value *out) {
    return give_self(render, call, out);
}

bool pith_method_list_copy(pith_render *render, const pith_call *call, pith_value *out) {
    return give_self(render, call, out);
}

bool pith_method_list_count(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"value"};
    const pith_list *list = pith_value_to_list(&render->heap, call->self);
    pith_value wanted;
    int64_t n = 0;
    if (list == NULL || !pith_call_bind(render, call, names, 1, 1, &wanted)) return false;
    for (size_t i = 0; i < list->n; i++)
        n += pith_value_equal(&render->heap, list->items[i], wanted);
    *out = pith_int(n);
    return true;
}

bool pith_method_list_index(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"value"};
    const pith_list *list = pith_value_to_list(&render->heap, call->self);
    pith_value wanted;
    if (list == NULL || !pith_call_bind(render, call, names, 1, 1, &wanted)) return false;
    for (size_t i = 0; i < list->n; i++) {
        if (!pith_value_equal(&render->heap, list->items[i], wanted)) continue;
        *out = pith_int((int64_t)i);
        return true;
    }
    return pith_render_fail(render, "index: the value is not in the %s",
                            pith_kind_name(call->self.kind));
}

bool pith_method_cycler_next(pith_render *render, const pith_call *call, pith_value *out) {
    pith_cycler *cycler = call->self.as.cycler;
    *out = cycler->values->items[cycler->position];
    cycler->position = (cycler->position + 1) % cycler->values->n;
    return pith_call_bind_nothing(render, call);
}

bool pith_method_cycler_reset(pith_render *render, const pith_call *call, pith_value *out) {
    call->self.as.cycler->position = 0;
    *out = pith_none();
    return pith_call_bind_nothing(render, call);
}
