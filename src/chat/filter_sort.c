/* SPDX-License-Identifier: Apache-2.0
 *
 * sort, dictsort, groupby, unique, min, max.
 *
 * Each first makes one key per item (an attribute, in lower case unless case counts), then works on
 * the keys. Strings are compared without regard to case by default, as Jinja does.
 */
#include "chat/filters.h"
#include "chat/sorting.h"
#include "chat/unicode_case.h"

/* What is compared in place of an item. */
typedef struct key_rule {
    pith_value attribute; /* ABSENT or NONE: the item itself */
    pith_value fallback;  /* where the attribute is missing; ABSENT: undefined stays */
    bool has_case;        /* case counts */
    bool allows_several;  /* "a,b" are two attributes */
} key_rule;

static bool is_given(pith_value value) {
    return value.kind != PITH_KIND_ABSENT && value.kind != PITH_KIND_NONE;
}

static bool fold_case(pith_render *render, const key_rule *rule, pith_value *key) {
    if (rule->has_case || key->kind != PITH_KIND_STRING) return true;
    return pith_render_give(
        pith_value_string(pith_unicode_change(&render->heap, key->as.string, PITH_CASE_LOWER)),
        key);
}

static bool key_of_attribute(pith_render *render, const key_rule *rule, pith_value item,
                             pith_value attribute, bool folds, pith_value *key) {
    if (!pith_attribute_path(render, item, attribute, key)) return false;
    if (key->kind == PITH_KIND_UNDEFINED && is_given(rule->fallback)) *key = rule->fallback;
    return !folds || fold_case(render, rule, key);
}

/* "a,b.c": a list of the keys. */
static bool keys_of_attributes(pith_render *render, const key_rule *rule, pith_value item,
                               pith_value *key) {
    const pith_string *names = rule->attribute.as.string;
    pith_list *keys = pith_list_new(&render->heap, 2);
    for (size_t from = 0; keys != NULL && from <= names->size;) {
        size_t to = from;
        while (to < names->size && names->data[to] != ',') to++;
        pith_value part = {.kind = PITH_KIND_ABSENT};
        pith_value name =
            pith_value_string(pith_string_slice(&render->heap, names, from, to - from));
        if (name.kind == PITH_KIND_ABSENT ||
            !key_of_attribute(render, rule, item, name, true, &part) ||
            !pith_list_append(&render->heap, keys, part)) {
            return false;
        }
        from = to + 1;
    }
    return pith_render_give(pith_value_list(keys), key);
}

static bool make_key(pith_render *render, const key_rule *rule, pith_value item, pith_value *key) {
    if (!is_given(rule->attribute)) {
        *key = item;
        return fold_case(render, rule, key);
    }
    if (rule->allows_several && rule->attribute.kind == PITH_KIND_STRING) {
        return keys_of_attributes(render, rule, item, key);
    }
    return key_of_attribute(render, rule, item, rule->attribute, true, key);
}

static pith_value *make_keys(pith_render *render, const key_rule *rule, const pith_list *list) {
    pith_value *keys = pith_heap_array(&render->heap, list->n, sizeof *keys);
    for (size_t i = 0; keys != NULL && i < list->n; i++) {
        if (!make_key(render, rule, list->items[i], &keys[i])) return NULL;
    }
    return keys;
}

/* list in the order of its keys. */
static pith_list *sort_list(pith_render *render, const pith_list *list, const pith_value *keys,
                            bool is_reversed) {
    size_t *order = pith_heap_array(&render->heap, list->n, sizeof *order);
    pith_list *sorted = pith_list_new(&render->heap, list->n);
    if (keys == NULL || order == NULL || sorted == NULL) return NULL;
    if (!pith_sort_keys(render, keys, list->n, is_reversed, order)) return NULL;
    for (size_t i = 0; i < list->n; i++) sorted->items[i] = list->items[order[i]];
    sorted->n = list->n;
    return sorted;
}

static bool is_true(pith_value argument) {
    return argument.kind != PITH_KIND_ABSENT && pith_value_truth(argument);
}

bool pith_filter_sort(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"reverse", "case_sensitive", "attribute"};
    pith_value arguments[3];
    if (!pith_call_bind(render, call, names, 3, 0, arguments)) return false;
    pith_list *list = pith_call_items(render, call);
    if (list == NULL) return false;
    key_rule rule = {
        .attribute = arguments[2], .has_case = is_true(arguments[1]), .allows_several = true};
    pith_value *keys = make_keys(render, &rule, list);
    return pith_render_give(pith_value_list(sort_list(render, list, keys, is_true(arguments[0]))),
                            out);
}

bool pith_filter_dictsort(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"case_sensitive", "by", "reverse"};
    pith_value arguments[3];
    const pith_string *by = NULL;
    if (!pith_call_bind(render, call, names, 3, 0, arguments)) return false;
    if (arguments[1].kind != PITH_KIND_ABSENT &&
        !pith_argument_string(render, call, "by", arguments[1], &by))
        return false;
    if (by != NULL && !pith_string_is(by, "key") && !pith_string_is(by, "value")) {
        return pith_render_fail(render, "dictsort sorts by 'key' or by 'value'");
    }
    if (call->self.kind == PITH_KIND_UNDEFINED)
        return pith_render_fail_undefined(render, call->self);
    if (call->self.kind != PITH_KIND_DICT) {
        return pith_render_fail(render, "dictsort needs a dict, not %s",
                                pith_kind_name(call->self.kind));
    }
    pith_view view = {call->self.as.dict, PITH_VIEW_ITEMS};
    pith_list *list =
        pith_value_to_list(&render->heap, (pith_value){PITH_KIND_VIEW, {.view = &view}});
    if (list == NULL) return false;
    bool by_value = by != NULL && pith_string_is(by, "value");
    key_rule rule = {.attribute = pith_int(by_value), .has_case = is_true(arguments[0])};
    pith_value *keys = make_keys(render, &rule, list);
    return pith_render_give(pith_value_list(sort_list(render, list, keys, is_true(arguments[2]))),
                            out);
}

/* ---- groupby ---- */

static bool add_group(pith_render *render, pith_list *groups, pith_value grouper,
                      pith_list *members) {
    pith_list *group = pith_list_new(&render->heap, 2);
    if (group == NULL) return false;
    group->items[0] = grouper;
    group->items[1] = pith_value_list(members);
    group->n = 2;
    group->is_group = true;
    return pith_list_append(&render->heap, groups, pith_value_tuple(group));
}

bool pith_filter_groupby(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"attribute", "default", "case_sensitive"};
    pith_value arguments[3];
    if (!pith_call_bind(render, call, names, 3, 1, arguments)) return false;
    pith_list *list = pith_call_items(render, call), *groups = pith_list_new(&render->heap, 4),
              *members = NULL;
    if (list == NULL || groups == NULL) return false;
    key_rule rule = {
        .attribute = arguments[0], .fallback = arguments[1], .has_case = is_true(arguments[2])};
    pith_value *keys = make_keys(render, &rule, list);
    size_t *order = pith_heap_array(&render->heap, list->n, sizeof *order);
    if (keys == NULL || order == NULL || !pith_sort_keys(render, keys, list->n, false, order))
        return false;
    for (size_t i = 0; i < list->n; i++) {
        pith_value item = list->items[order[i]], grouper;
        if (i == 0 || !pith_value_equal(&render->heap, keys[order[i]], keys[order[i - 1]])) {
            members = pith_list_new(&render->heap, 4);
            if (members == NULL ||
                !key_of_attribute(render, &rule, item, rule.attribute, false, &grouper) ||
                !add_group(render, groups, grouper, members)) {
                return false;
            }
        }
        if (!pith_list_append(&render->heap, members, item)) return false;
    }
    return pith_render_give(pith_value_list(groups), out);
}

/* ---- unique, min, max ---- */

bool pith_filter_unique(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"case_sensitive", "attribute"};
    pith_value arguments[2];
    if (!pith_call_bind(render, call, names, 2, 0, arguments)) return false;
    pith_list *list = pith_call_items(render, call), *kept = pith_list_new(&render->heap, 4);
    pith_dict *seen = pith_dict_new(&render->heap, 4);
    if (list == NULL || kept == NULL || seen == NULL) return false;
    key_rule rule = {.attribute = arguments[1], .has_case = is_true(arguments[0])};
    for (size_t i = 0; i < list->n; i++) {
        pith_value key = {.kind = PITH_KIND_ABSENT};
        size_t before = seen->n;
        if (!make_key(render, &rule, list->items[i], &key)) return false;
        if (!pith_dict_set(&render->heap, seen, key, pith_none())) {
            if (render->heap.fault != PITH_FAULT_NONE) return false;
            return pith_render_fail(render, "unique cannot tell values of kind %s apart",
                                    pith_kind_name(key.kind));
        }
        if (seen->n > before && !pith_list_append(&render->heap, kept, list->items[i]))
            return false;
    }
    return pith_render_give(pith_value_iterator(&render->heap, kept), out);
}

static bool pick_extreme(pith_render *render, const pith_call *call, pith_comparison op,
                         pith_value *out) {
    static const char *const names[] = {"case_sensitive", "attribute"};
    pith_value arguments[2];
    if (!pith_call_bind(render, call, names, 2, 0, arguments)) return false;
    pith_list *list = pith_call_items(render, call);
    if (list == NULL) return false;
    if (list->n == 0) {
        pith_value text = pith_value_text(
            &render->heap, "there is no smallest or largest item: the sequence is empty");
        return pith_render_give(
            pith_value_undefined(&render->heap, PITH_ABSENCE_TEXT, text, PITH_KIND_ABSENT), out);
    }
    key_rule rule = {.attribute = arguments[1], .has_case = is_true(arguments[0])};
    pith_value *keys = make_keys(render, &rule, list);
    size_t best = 0;
    for (size_t i = 1; keys != NULL && i < list->n; i++) {
        bool is_better;
        if (!pith_operator_compare(render, op, keys[i], keys[best], &is_better)) return false;
        if (is_better) best = i;
    }
    *out = list->items[best];
    return keys != NULL;
}

bool pith_filter_min(pith_render *render, const pith_call *call, pith_value *out) {
    return pick_extreme(render, call, PITH_COMPARISON_LESS, out);
}

bool pith_filter_max(pith_render *render, const pith_call *call, pith_value *out) {
    return pick_extreme(render, call, PITH_COMPARISON_GREATER, out);
}
