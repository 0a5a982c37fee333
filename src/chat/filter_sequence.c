/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters about what has items: length, first, last, join, list, reverse, batch, slice, sum, items;
 * and default, attr.
 *
 * An iterator (what map or select give) has no length and is used up by being read, as in Python.
 */
#include "chat/filters.h"

static bool give_empty(pith_render *render, const char *text, pith_value *out) {
    pith_value sentence = pith_value_text(&render->heap, text);
    return pith_render_give(
        pith_value_undefined(&render->heap, PITH_ABSENCE_TEXT, sentence, PITH_KIND_ABSENT), out);
}

bool pith_filter_length(pith_render *render, const pith_call *call, pith_value *out) {
    size_t n;
    if (!pith_call_bind_nothing(render, call)) return false;
    if (!pith_value_length(call->self, &n)) {
        return pith_render_fail(render, "a %s has no length", pith_kind_name(call->self.kind));
    }
    *out = pith_int((int64_t)n);
    return true;
}

bool pith_filter_first(pith_render *render, const pith_call *call, pith_value *out) {
    pith_items items;
    if (!pith_call_bind_nothing(render, call)) return false;
    if (!pith_items_begin(&items, call->self)) {
        return pith_render_fail(render, "first needs something with items, not %s",
                                pith_kind_name(call->self.kind));
    }
    if (pith_items_next(&items, &render->heap, out)) return true;
    return give_empty(render, "there is no first item: the sequence is empty", out);
}

bool pith_filter_last(pith_render *render, const pith_call *call, pith_value *out) {
    if (!pith_call_bind_nothing(render, call)) return false;
    pith_list *list = pith_call_items(render, call);
    if (list == NULL) return false;
    if (list->n == 0)
        return give_empty(render, "there is no last item: the sequence is empty", out);
    *out = list->items[list->n - 1];
    return true;
}

bool pith_filter_list(pith_render *render, const pith_call *call, pith_value *out) {
    if (!pith_call_bind_nothing(render, call)) return false;
    return pith_render_give(pith_value_list(pith_call_items(render, call)), out);
}

bool pith_filter_items(pith_render *render, const pith_call *call, pith_value *out) {
    pith_value source = call->self;
    pith_view *view = pith_heap_object(&render->heap, sizeof *view);
    if (view == NULL || !pith_call_bind_nothing(render, call)) return false;
    if (source.kind == PITH_KIND_DICT) {
        *view = (pith_view){source.as.dict, PITH_VIEW_ITEMS};
        source = (pith_value){PITH_KIND_VIEW, {.view = view}};
    } else if (source.kind != PITH_KIND_UNDEFINED) {
        return pith_render_fail(render, "items needs a dict, not %s", pith_kind_name(source.kind));
    }
    pith_list *list = pith_value_to_list(&render->heap, source);
    return pith_render_give(pith_value_iterator(&render->heap, list), out);
}

bool pith_filter_join(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"d", "attribute"};
    pith_value arguments[2], item;
    pith_items items;
    pith_builder builder;
    const pith_string *between = NULL;
    if (!pith_call_bind(render, call, names, 2, 0, arguments)) return false;
    if (arguments[0].kind != PITH_KIND_ABSENT &&
        (between = pith_value_str(render, arguments[0])) == NULL)
        return false;
    if (!pith_items_begin(&items, call->self)) {
        return pith_render_fail(render, "join needs something with items, not %s",
                                pith_kind_name(call->self.kind));
    }
    bool by_attribute =
        arguments[1].kind != PITH_KIND_ABSENT && arguments[1].kind != PITH_KIND_NONE;
    pith_builder_init(&builder, &render->heap);
    for (bool is_first = true; pith_items_next(&items, &render->heap, &item); is_first = false) {
        if (by_attribute && !pith_attribute_path(render, item, arguments[1], &item)) return false;
        const pith_string *text = pith_value_str(render, item);
        if (text == NULL) return false;
        if (!is_first && between != NULL) pith_builder_string(&builder, between);
        pith_builder_string(&builder, text);
    }
    return pith_render_give(pith_value_string(pith_builder_finish(&builder)), out);
}

static pith_string *reverse_string(pith_heap *heap, const pith_string *string) {
    pith_builder builder;
    pith_builder_init(&builder, heap);
    pith_list *chars = pith_value_to_list(heap, pith_value_string(string));
    for (size_t i = chars != NULL ? chars->n : 0; i-- > 0;)
        pith_builder_string(&builder, chars->items[i].as.string);
    pith_string *reversed = chars != NULL ? pith_builder_finish(&builder) : NULL;
    if (reversed != NULL) reversed->is_safe = string->is_safe;
    return reversed;
}

bool pith_filter_reverse(pith_render *render, const pith_call *call, pith_value *out) {
    if (!pith_call_bind_nothing(render, call)) return false;
    if (call->self.kind == PITH_KIND_STRING) {
        return pith_render_give(
            pith_value_string(reverse_string(&render->heap, call->self.as.string)), out);
    }
    pith_list *list = pith_call_items(render, call);
    pith_list *reversed = list != NULL ? pith_list_new(&render->heap, list->n) : NULL;
    if (reversed == NULL || !pith_heap_charge(&render->heap, list->n)) return false;
    for (size_t i = 0; i < list->n; i++) reversed->items[i] = list->items[list->n - 1 - i];
    reversed->n = list->n;
    return pith_render_give(pith_value_iterator(&render->heap, reversed), out);
}

/* ---- batch and slice ---- */

/* Adds list->items[from, from + n) and, when fill is given, n_fill times fill as one list. */
static bool add_part(pith_heap *heap, pith_list *parts, const pith_list *list, size_t from,
                     size_t n, size_t n_fill, pith_value fill) {
    pith_list *part = pith_list_new(heap, n + n_fill);
    if (part == NULL || !pith_heap_charge(heap, n + n_fill + 1)) return false;
    for (size_t i = 0; i < n; i++) part->items[i] = list->items[from + i];
    for (size_t i = 0; i < n_fill; i++) part->items[n + i] = fill;
    part->n = n + n_fill;
    return pith_list_append(heap, parts, pith_value_list(part));
}

/* The arguments that batch and slice share; fill is ABSENT when none was given. */
static bool take_parts(pith_render *render, const pith_call *call, const char *count_name,
                       int64_t *count, pith_value *fill, pith_list **list) {
    const char *const names[] = {count_name, "fill_with"};
    pith_value arguments[2];
    if (!pith_call_bind(render, call, names, 2, 1, arguments) ||
        !pith_argument_int(render, call, count_name, arguments[0], 0, count)) {
        return false;
    }
    if (*count < 1) return pith_render_fail(render, "%s needs a number of at least 1", call->name);
    *fill = arguments[1];
    if (fill->kind == PITH_KIND_NONE) fill->kind = PITH_KIND_ABSENT;
    *list = pith_call_items(render, call);
    return *list != NULL;
}

bool pith_filter_batch(pith_render *render, const pith_call *call, pith_value *out) {
    pith_value fill;
    pith_list *list, *parts = pith_list_new(&render->heap, 4);
    int64_t count;
    if (parts == NULL || !take_parts(render, call, "linecount", &count, &fill, &list)) return false;
    for (size_t at = 0; at < list->n;) {
        size_t n = list->n - at < (uint64_t)count ? list->n - at : (size_t)count;
        size_t n_fill = fill.kind == PITH_KIND_ABSENT ? 0 : (size_t)count - n;
        if (!add_part(&render->heap, parts, list, at, n, n_fill, fill)) return false;
        at += n;
    }
    return pith_render_give(pith_value_iterator(&render->heap, parts), out);
}

bool pith_filter_slice(pith_render *render, const pith_call *call, pith_value *out) {
    pith_value fill;
    pith_list *list, *parts = pith_list_new(&render->heap, 4);
    int64_t count;
    if (parts == NULL || !take_parts(render, call, "slices", &count, &fill, &list)) return false;
    if (count > PITH_TEMPLATE_MAX_MEMORY)
        return pith_render_fail(render, "slice's number is too large");
    size_t n = (size_t)count, each = list->n / n, n_longer = list->n % n, at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t size = each + (i < n_longer);
        size_t n_fill = fill.kind != PITH_KIND_ABSENT && i >= n_longer ? 1 : 0;
        if (!add_part(&render->heap, parts, list, at, size, n_fill, fill)) return false;
        at += size;
    }
    return pith_render_give(pith_value_iterator(&render->heap, parts), out);
}

/* ---- the rest ---- */

bool pith_filter_sum(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"attribute", "start"};
    pith_value arguments[2], item;
    pith_items items;
    if (!pith_call_bind(render, call, names, 2, 0, arguments)) return false;
    if (!pith_items_begin(&items, call->self)) {
        return pith_render_fail(render, "sum needs something with items, not %s",
                                pith_kind_name(call->self.kind));
    }
    bool by_attribute =
        arguments[0].kind != PITH_KIND_ABSENT && arguments[0].kind != PITH_KIND_NONE;
    *out = arguments[1].kind != PITH_KIND_ABSENT ? arguments[1] : pith_int(0);
    if (out->kind == PITH_KIND_STRING)
        return pith_render_fail(render, "sum cannot add strings: use join");
    while (pith_items_next(&items, &render->heap, &item)) {
        if (by_attribute && !pith_attribute_path(render, item, arguments[0], &item)) return false;
        if (!pith_operator_binary(render, PITH_BINARY_ADD, *out, item, out)) return false;
    }
    return true;
}

bool pith_filter_default(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"default_value", "boolean"};
    pith_value arguments[2];
    if (!pith_call_bind(render, call, names, 2, 0, arguments)) return false;
    bool asks_truth = arguments[1].kind != PITH_KIND_ABSENT && pith_value_truth(arguments[1]);
    bool is_missing =
        call->self.kind == PITH_KIND_UNDEFINED || (asks_truth && !pith_value_truth(call->self));
    *out = call->self;
    if (!is_missing) return true;
    *out = arguments[0];
    if (out->kind == PITH_KIND_ABSENT)
        return pith_render_give(pith_value_text(&render->heap, ""), out);
    return true;
}

/* Attributes only, not the keys of a dict. */
bool pith_filter_attr(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"name"};
    pith_value name;
    bool is_unsafe = false;
    if (!pith_call_bind(render, call, names, 1, 1, &name)) return false;
    const pith_string *text = pith_value_str(render, name);
    if (text == NULL) return false;
    if (call->self.kind == PITH_KIND_DICT &&
        pith_methods_find(PITH_KIND_DICT, pith_string_span(text), &is_unsafe) == NULL &&
        !is_unsafe) {
        pith_value key = pith_value_string(text);
        return pith_render_give(
            pith_value_undefined(&render->heap, PITH_ABSENCE_ATTRIBUTE, key, PITH_KIND_DICT), out);
    }
    return pith_access_attribute(render, call->self, text, out);
}
