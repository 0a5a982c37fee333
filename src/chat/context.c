/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking over the context.
 *
 * Owns the decision who wrote a string: the template's are those below a trusted key and the role
 * of a message when it is a known word; every other one, keys of objects included, is the user's.
 *
 * Invariant: bytes are borrowed, not copied: the context outlives the rendering. The walk is
 * recursive but at most PITH_TEMPLATE_MAX_DEPTH deep.
 */
#include "chat/context.h"

#include <string.h>

/* Where in the context a value stands, as far as it matters for its author. */
typedef enum context_place { PLACE_ELSEWHERE, PLACE_MESSAGES, PLACE_MESSAGE } context_place;

static bool is_role(const char *text, size_t size) {
    static const char *const roles[] = {"system", "developer", "user",  "assistant",
                                        "tool",   "function",  "model", "ipython"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (strlen(roles[i]) == size && memcmp(text, roles[i], size) == 0) return true;
    }
    return false;
}

static pith_value convert(pith_heap *heap, const json_t *json, bool is_user, context_place place,
                          int depth);

static pith_value convert_array(pith_heap *heap, const json_t *json, bool is_user,
                                context_place place, int depth) {
    size_t n = json_array_size(json);
    pith_list *list = pith_list_new(heap, n);
    context_place inside = place == PLACE_MESSAGES ? PLACE_MESSAGE : PLACE_ELSEWHERE;
    if (list == NULL) return pith_value_list(NULL);
    for (; list->n < n; list->n++) {
        pith_value item = convert(heap, json_array_get(json, list->n), is_user, inside, depth + 1);
        if (item.kind == PITH_KIND_ABSENT) return item;
        list->items[list->n] = item;
    }
    return pith_value_list(list);
}

static pith_value convert_object(pith_heap *heap, const json_t *json, bool is_user,
                                 context_place place, int depth) {
    json_t *object =
        (json_t *)(uintptr_t)json; /* jansson's iterators want no const; nothing is changed */
    pith_dict *dict = pith_dict_new(heap, json_object_size(json));
    if (dict == NULL) return pith_value_dict(NULL);
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        const char *name = json_object_iter_key(at);
        const json_t *member = json_object_iter_value(at);
        bool is_role_key =
            place == PLACE_MESSAGE && strcmp(name, "role") == 0 && json_is_string(member);
        bool is_known =
            is_role_key && is_role(json_string_value(member), json_string_length(member));
        pith_value key = pith_value_string(pith_string_borrow(heap, name, strlen(name), is_user));
        pith_value value = convert(heap, member, is_user && !is_known, PLACE_ELSEWHERE, depth + 1);
        if (key.kind == PITH_KIND_ABSENT || value.kind == PITH_KIND_ABSENT)
            return pith_value_dict(NULL);
        if (!pith_dict_set(heap, dict, key, value)) return pith_value_dict(NULL);
    }
    return pith_value_dict(dict);
}

static pith_value convert(pith_heap *heap, const json_t *json, bool is_user, context_place place,
                          int depth) {
    if (depth > PITH_TEMPLATE_MAX_DEPTH) pith_heap_fail(heap, PITH_FAULT_OVER_DEPTH);
    if (!pith_heap_charge(heap, 1)) return (pith_value){.kind = PITH_KIND_ABSENT};
    switch (json_typeof(json)) {
    case JSON_OBJECT: return convert_object(heap, json, is_user, place, depth);
    case JSON_ARRAY: return convert_array(heap, json, is_user, place, depth);
    case JSON_STRING:
        return pith_value_string(
            pith_string_borrow(heap, json_string_value(json), json_string_length(json), is_user));
    case JSON_INTEGER: return pith_int(json_integer_value(json));
    case JSON_REAL: return pith_float(json_real_value(json));
    case JSON_TRUE: return pith_bool(true);
    case JSON_FALSE: return pith_bool(false);
    default: return pith_none();
    }
}

static bool is_listed(const char *name, const char *const *list) {
    for (; list != NULL && *list != NULL; list++) {
        if (strcmp(name, *list) == 0) return true;
    }
    return false;
}

bool pith_context_load(pith_render *render, const json_t *context, const char *const *trusted) {
    json_t *object = (json_t *)(uintptr_t)context; /* see convert_object */
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        const char *name = json_object_iter_key(at);
        int32_t symbol = pith_program_find_symbol(render->program, pith_span_of(name));
        if (symbol < 0) continue;
        context_place place = strcmp(name, "messages") == 0 ? PLACE_MESSAGES : PLACE_ELSEWHERE;
        pith_value value =
            convert(&render->heap, json_object_iter_value(at), !is_listed(name, trusted), place, 1);
        if (value.kind == PITH_KIND_ABSENT) return false;
        render->root[symbol] = value;
    }
    return true;
}
