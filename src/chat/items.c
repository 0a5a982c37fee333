/* SPDX-License-Identifier: Apache-2.0
 *
 * Going through what can be gone through: lists, tuples, dicts (their keys), strings (their
 * characters), ranges, dict views, iterators, and undefined values (which have no items).
 *
 * Invariant: pith_items_next visits each item once, in order, and advances or ends. An iterator's
 * items are used up as they are given, also when the reader stops early, as Python's generators do.
 */
#include "chat/value.h"

bool pith_items_begin(pith_items *items, pith_value source) {
    *items = (pith_items){.source = source};
    switch (source.kind) {
    case PITH_KIND_UNDEFINED:
    case PITH_KIND_STRING:
    case PITH_KIND_LIST:
    case PITH_KIND_TUPLE:
    case PITH_KIND_DICT:
    case PITH_KIND_RANGE:
    case PITH_KIND_VIEW:
    case PITH_KIND_ITERATOR: return true;
    default: return false;
    }
}

static bool next_of_list(const pith_list *list, size_t *position, pith_value *item) {
    if (*position >= list->n) return false;
    *item = list->items[(*position)++];
    return true;
}

static pith_value pair_of(pith_heap *heap, const pith_entry *entry) {
    pith_list *pair = pith_list_new(heap, 2);
    if (pair == NULL) return (pith_value){.kind = PITH_KIND_ABSENT};
    pair->items[0] = entry->key;
    pair->items[1] = entry->value;
    pair->n = 2;
    return pith_value_tuple(pair);
}

static bool next_of_dict(pith_items *items, pith_heap *heap, const pith_dict *dict,
                         pith_view_part part, pith_value *item) {
    if (items->position >= dict->n) return false;
    const pith_entry *entry = &dict->entries[items->position++];
    if (part == PITH_VIEW_ITEMS) {
        *item = pair_of(heap, entry);
    } else {
        *item = part == PITH_VIEW_KEYS ? entry->key : entry->value;
    }
    return true;
}

static bool next_of_string(pith_items *items, pith_heap *heap, pith_value *item) {
    const pith_string *string = items->source.as.string;
    uint32_t code;
    if (items->position >= string->size) return false;
    size_t size =
        pith_utf8_decode(string->data + items->position, string->size - items->position, &code);
    pith_string *character = pith_string_slice(heap, string, items->position, size);
    if (character != NULL) character->is_safe = false; /* Markup gives plain characters too */
    *item = pith_value_string(character);
    items->position += size;
    return true;
}

bool pith_items_next(pith_items *items, pith_heap *heap, pith_value *item) {
    if (!pith_heap_charge(heap, 1)) return false;
    const pith_range *range = items->source.as.range;
    switch (items->source.kind) {
    case PITH_KIND_STRING: return next_of_string(items, heap, item);
    case PITH_KIND_LIST:
    case PITH_KIND_TUPLE: return next_of_list(items->source.as.list, &items->position, item);
    case PITH_KIND_DICT:
        return next_of_dict(items, heap, items->source.as.dict, PITH_VIEW_KEYS, item);
    case PITH_KIND_VIEW:
        return next_of_dict(items, heap, items->source.as.view->dict, items->source.as.view->part,
                            item);
    case PITH_KIND_ITERATOR:
        return next_of_list(items->source.as.iterator->list, &items->source.as.iterator->position,
                            item);
    case PITH_KIND_RANGE:
        if (items->position >= range->n) return false;
        *item = pith_int(pith_range_at(range, items->position++));
        return true;
    default: return false;
    }
}

/* Every number of a range fits into 64 bits, but the way there (index * step) may not: unsigned
 * numbers wrap. */
int64_t pith_range_at(const pith_range *range, size_t index) {
    return (int64_t)((uint64_t)range->start + (uint64_t)index * (uint64_t)range->step);
}

bool pith_value_length(pith_value value, size_t *length) {
    switch (value.kind) {
    case PITH_KIND_UNDEFINED: *length = 0; return true;
    case PITH_KIND_STRING: *length = value.as.string->n_chars; return true;
    case PITH_KIND_LIST:
    case PITH_KIND_TUPLE: *length = value.as.list->n; return true;
    case PITH_KIND_DICT: *length = value.as.dict->n; return true;
    case PITH_KIND_RANGE: *length = value.as.range->n; return true;
    case PITH_KIND_VIEW: *length = value.as.view->dict->n; return true;
    default: return false;
    }
}

pith_list *pith_value_to_list(pith_heap *heap, pith_value value) {
    if (value.kind == PITH_KIND_LIST || value.kind == PITH_KIND_TUPLE) return value.as.list;
    pith_items items;
    pith_value item;
    size_t length = 0;
    if (!pith_items_begin(&items, value)) return NULL;
    (void)pith_value_length(value, &length);
    pith_list *list = pith_list_new(heap, length);
    while (list != NULL && pith_items_next(&items, heap, &item)) {
        if (!pith_list_append(heap, list, item)) return NULL;
    }
    return heap->fault == PITH_FAULT_NONE ? list : NULL;
}
