/* SPDX-License-Identifier: Apache-2.0
 *
 * Making values and asking about them.
 *
 * Owns the constructors, Python's notion of truth and of type names, and lists. A constructor
 * passes a failed allocation on as ABSENT, so that chains of calls are checked once at their end.
 *
 * It does not compare (compare.c), keep dicts (dict.c), go through items (items.c) or print
 * (repr.c).
 */
#include "chat/value.h"

#include <string.h>

pith_value pith_value_string(const pith_string *string) {
    if (string == NULL) return (pith_value){.kind = PITH_KIND_ABSENT};
    return (pith_value){PITH_KIND_STRING, {.string = string}};
}

pith_value pith_value_list(pith_list *list) {
    if (list == NULL) return (pith_value){.kind = PITH_KIND_ABSENT};
    return (pith_value){PITH_KIND_LIST, {.list = list}};
}

pith_value pith_value_tuple(pith_list *list) {
    if (list == NULL) return (pith_value){.kind = PITH_KIND_ABSENT};
    return (pith_value){PITH_KIND_TUPLE, {.list = list}};
}

pith_value pith_value_dict(pith_dict *dict) {
    if (dict == NULL) return (pith_value){.kind = PITH_KIND_ABSENT};
    return (pith_value){PITH_KIND_DICT, {.dict = dict}};
}

pith_value pith_value_iterator(pith_heap *heap, const pith_list *list) {
    pith_iterator *iterator = list != NULL ? pith_heap_object(heap, sizeof *iterator) : NULL;
    if (iterator == NULL) return (pith_value){.kind = PITH_KIND_ABSENT};
    *iterator = (pith_iterator){.list = list};
    return (pith_value){PITH_KIND_ITERATOR, {.iterator = iterator}};
}

pith_value pith_value_undefined(pith_heap *heap, pith_absence absence, pith_value name,
                                pith_kind owner) {
    pith_undefined *undefined = pith_heap_object(heap, sizeof *undefined);
    if (undefined == NULL) return (pith_value){.kind = PITH_KIND_ABSENT};
    *undefined = (pith_undefined){.absence = absence, .name = name, .owner = owner};
    return (pith_value){PITH_KIND_UNDEFINED, {.undefined = undefined}};
}

pith_value pith_value_text(pith_heap *heap, const char *text) {
    return pith_value_string(pith_string_copy(heap, text, strlen(text), false));
}

pith_list *pith_list_new(pith_heap *heap, size_t capacity) {
    pith_list *list = pith_heap_object(heap, sizeof *list);
    if (list == NULL) return NULL;
    *list = (pith_list){.capacity = capacity};
    list->items = pith_heap_array(heap, capacity, sizeof *list->items);
    return list->items != NULL ? list : NULL;
}

bool pith_list_append(pith_heap *heap, pith_list *list, pith_value value) {
    if (list->n == list->capacity) {
        size_t capacity = list->capacity < 4 ? 8 : list->capacity * 2;
        pith_value *items = pith_heap_array(heap, capacity, sizeof *items);
        if (items == NULL) return false;
        if (list->n > 0) memcpy(items, list->items, list->n * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->n++] = value;
    return true;
}

const char *pith_kind_name(pith_kind kind) {
    static const char *const names[] = {
        [PITH_KIND_ABSENT] = "nothing",
        [PITH_KIND_UNDEFINED] = "Undefined",
        [PITH_KIND_NONE] = "NoneType",
        [PITH_KIND_BOOL] = "bool",
        [PITH_KIND_INT] = "int",
        [PITH_KIND_FLOAT] = "float",
        [PITH_KIND_STRING] = "str",
        [PITH_KIND_LIST] = "list",
        [PITH_KIND_TUPLE] = "tuple",
        [PITH_KIND_DICT] = "dict",
        [PITH_KIND_RANGE] = "range",
        [PITH_KIND_VIEW] = "dict view",
        [PITH_KIND_ITERATOR] = "generator",
        [PITH_KIND_NAMESPACE] = "Namespace",
        [PITH_KIND_MACRO] = "Macro",
        [PITH_KIND_FUNCTION] = "function",
        [PITH_KIND_METHOD] = "method",
        [PITH_KIND_LOOP] = "LoopContext",
        [PITH_KIND_JOINER] = "Joiner",
        [PITH_KIND_CYCLER] = "Cycler",
    };
    return names[kind];
}

bool pith_value_truth(pith_value value) {
    switch (value.kind) {
    case PITH_KIND_ABSENT:
    case PITH_KIND_UNDEFINED:
    case PITH_KIND_NONE: return false;
    case PITH_KIND_BOOL: return value.as.boolean;
    case PITH_KIND_INT: return value.as.integer != 0;
    case PITH_KIND_FLOAT:
        return value.as.real < 0.0 || value.as.real > 0.0 || value.as.real != value.as.real;
    case PITH_KIND_STRING: return value.as.string->size > 0;
    case PITH_KIND_LIST:
    case PITH_KIND_TUPLE: return value.as.list->n > 0;
    case PITH_KIND_DICT: return value.as.dict->n > 0;
    case PITH_KIND_RANGE: return value.as.range->n > 0;
    case PITH_KIND_VIEW: return value.as.view->dict->n > 0;
    default: return true; /* as Python has it: an iterator too, even when it has nothing to give */
    }
}

bool pith_value_is_integer(pith_value value) {
    return value.kind == PITH_KIND_INT || value.kind == PITH_KIND_BOOL;
}

bool pith_value_is_number(pith_value value) {
    return value.kind == PITH_KIND_FLOAT || pith_value_is_integer(value);
}

int64_t pith_value_integer(pith_value value) {
    return value.kind == PITH_KIND_BOOL ? (int64_t)value.as.boolean : value.as.integer;
}

double pith_value_real(pith_value value) {
    return value.kind == PITH_KIND_FLOAT ? value.as.real : (double)pith_value_integer(value);
}
