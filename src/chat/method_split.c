/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of strings that take them apart or put them together: split, partition, splitlines, join,
 * replace.
 *
 * Parts are slices: they share the bytes and keep their authors. Splitting from the right collects
 * parts in reverse and turns the list around at the end.
 */
#include "chat/methods.h"
#include "chat/search.h"
#include "chat/string_edit.h"
#include "chat/unicode_case.h"

static bool add_slice(pith_heap *heap, pith_list *list, const pith_string *string, size_t from,
                      size_t to) {
    pith_string *slice = pith_string_slice(heap, string, from, to - from);
    return slice != NULL && pith_heap_charge(heap, 1) &&
           pith_list_append(heap, list, pith_value_string(slice));
}

/* ---- split ---- */

static bool is_space_at(const pith_string *string, size_t at, size_t *size) {
    uint32_t code;
    *size = pith_utf8_decode(string->data + at, string->size - at, &code);
    return (pith_unicode_flags(code) & PITH_UNICODE_SPACE) != 0;
}

/* Words between white space; after `limit` splits the rest stays whole, less space before it. */
static bool split_words(pith_heap *heap, const pith_string *string, uint64_t limit,
                        pith_list *parts) {
    size_t at = 0, size;
    for (uint64_t n = 0;; n++) {
        while (at < string->size && is_space_at(string, at, &size)) at += size;
        if (at == string->size) return true;
        if (n == limit) return add_slice(heap, parts, string, at, string->size);
        size_t from = at;
        while (at < string->size && !is_space_at(string, at, &size)) at += size;
        if (!add_slice(heap, parts, string, from, at)) return false;
    }
}

/* The same from the right: all words are found, then the first ones are put together again. */
static bool rsplit_words(pith_heap *heap, const pith_string *string, uint64_t limit,
                         pith_list *parts) {
    pith_list *words = pith_list_new(heap, 4);
    if (words == NULL || !split_words(heap, string, UINT64_MAX, words)) return false;
    size_t first = words->n > limit ? words->n - (size_t)limit : 0;
    if (first > 0) { /* from the start to the end of the last word before them */
        const pith_string *last = words->items[first - 1].as.string;
        if (!add_slice(heap, parts, string, 0, (size_t)(last->data + last->size - string->data)))
            return false;
    }
    for (size_t i = first; i < words->n; i++) {
        if (!pith_list_append(heap, parts, words->items[i])) return false;
    }
    return true;
}

static bool split_at(pith_heap *heap, const pith_string *string, const pith_string *separator,
                     uint64_t limit, pith_list *parts) {
    size_t from = 0;
    for (; limit > 0; limit--) {
        size_t at =
            pith_search_first(heap, pith_string_span(string), pith_string_span(separator), from);
        if (at == SIZE_MAX) break;
        if (!add_slice(heap, parts, string, from, at)) return false;
        from = at + separator->size;
    }
    return add_slice(heap, parts, string, from, string->size);
}

static bool rsplit_at(pith_heap *heap, const pith_string *string, const pith_string *separator,
                      uint64_t limit, pith_list *parts) {
    size_t end = string->size;
    for (; limit > 0; limit--) {
        size_t at =
            pith_search_last(heap, pith_string_span(string), pith_string_span(separator), end);
        if (at == SIZE_MAX) break;
        if (!add_slice(heap, parts, string, at + separator->size, end)) return false;
        end = at;
    }
    if (!add_slice(heap, parts, string, 0, end)) return false;
    for (size_t i = 0; i < parts->n / 2; i++) {
        pith_value swapped = parts->items[i];
        parts->items[i] = parts->items[parts->n - 1 - i];
        parts->items[parts->n - 1 - i] = swapped;
    }
    return true;
}

static bool split(pith_render *render, const pith_call *call, bool from_right, pith_value *out) {
    static const char *const names[] = {"sep", "maxsplit"};
    const pith_string *self = call->self.as.string, *separator = NULL;
    pith_value arguments[2];
    int64_t maximum;
    if (!pith_call_bind(render, call, names, 2, 0, arguments) ||
        !pith_argument_int(render, call, "maxsplit", arguments[1], -1, &maximum)) {
        return false;
    }
    uint64_t limit = maximum < 0 ? UINT64_MAX : (uint64_t)maximum;
    pith_heap *heap = &render->heap;
    pith_list *parts = pith_list_new(heap, 4);
    if (parts == NULL || !pith_heap_charge(heap, self->size / 4)) return false;
    bool ok;
    if (arguments[0].kind == PITH_KIND_ABSENT || arguments[0].kind == PITH_KIND_NONE) {
        ok = from_right ? rsplit_words(heap, self, limit, parts)
                        : split_words(heap, self, limit, parts);
    } else {
        if (!pith_argument_string(render, call, "sep", arguments[0], &separator)) return false;
        if (separator->size == 0)
            return pith_render_fail(render, "%s needs a separator that is not empty", call->name);
        ok = from_right ? rsplit_at(heap, self, separator, limit, parts)
                        : split_at(heap, self, separator, limit, parts);
    }
    return ok && pith_render_give(pith_value_list(parts), out);
}

bool pith_method_split(pith_render *render, const pith_call *call, pith_value *out) {
    return split(render, call, false, out);
}

bool pith_method_rsplit(pith_render *render, const pith_call *call, pith_value *out) {
    return split(render, call, true, out);
}

bool pith_method_splitlines(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"keepends"};
    pith_value argument;
    if (!pith_call_bind(render, call, names, 1, 0, &argument)) return false;
    bool keeps_ends = pith_value_truth(argument);
    return pith_render_give(
        pith_value_list(pith_string_lines(&render->heap, call->self.as.string, keeps_ends)), out);
}

/* ---- partition ---- */

static bool partition(pith_render *render, const pith_call *call, bool from_right,
                      pith_value *out) {
    static const char *const names[] = {"sep"};
    const pith_string *self = call->self.as.string, *separator;
    pith_value argument;
    pith_heap *heap = &render->heap;
    if (!pith_call_bind(render, call, names, 1, 1, &argument) ||
        !pith_argument_string(render, call, "sep", argument, &separator)) {
        return false;
    }
    if (separator->size == 0)
        return pith_render_fail(render, "%s needs a separator that is not empty", call->name);
    pith_span text = pith_string_span(self), needle = pith_string_span(separator);
    size_t at = from_right ? pith_search_last(heap, text, needle, self->size)
                           : pith_search_first(heap, text, needle, 0);
    size_t end = at + separator->size;
    if (at == SIZE_MAX) at = end = from_right ? 0 : self->size;
    pith_list *parts = pith_list_new(heap, 3);
    if (parts == NULL || !add_slice(heap, parts, self, 0, at) ||
        !add_slice(heap, parts, self, at, end) || !add_slice(heap, parts, self, end, self->size)) {
        return false;
    }
    return pith_render_give(pith_value_tuple(parts), out);
}

bool pith_method_partition(pith_render *render, const pith_call *call, pith_value *out) {
    return partition(render, call, false, out);
}

bool pith_method_rpartition(pith_render *render, const pith_call *call, pith_value *out) {
    return partition(render, call, true, out);
}

/* ---- putting together ---- */

bool pith_method_join(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"iterable"};
    const pith_string *self = call->self.as.string;
    pith_value source, item;
    pith_items items;
    pith_builder builder;
    if (!pith_call_bind(render, call, names, 1, 1, &source)) return false;
    if (!pith_items_begin(&items, source)) {
        return pith_render_fail(render, "join needs something with items, not %s",
                                pith_kind_name(source.kind));
    }
    pith_builder_init(&builder, &render->heap);
    for (size_t n = 0; pith_items_next(&items, &render->heap, &item); n++) {
        if (item.kind != PITH_KIND_STRING) {
            if (item.kind == PITH_KIND_ABSENT) return false;
            return pith_render_fail(render, "join needs strings, but item %zu is a %s", n,
                                    pith_kind_name(item.kind));
        }
        const pith_string *text = self->is_safe ? pith_value_escape(render, item) : item.as.string;
        if (text == NULL) return false;
        if (n > 0) pith_builder_string(&builder, self);
        pith_builder_string(&builder, text);
    }
    pith_string *joined = pith_builder_finish(&builder);
    if (joined == NULL) return false;
    joined->is_safe = self->is_safe;
    *out = pith_value_string(joined);
    return true;
}

bool pith_method_replace(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"old", "new", "count"};
    const pith_string *self = call->self.as.string, *old, *with;
    pith_value arguments[3];
    int64_t limit;
    if (!pith_call_bind(render, call, names, 3, 2, arguments) ||
        !pith_argument_string(render, call, "old", arguments[0], &old) ||
        !pith_argument_string(render, call, "new", arguments[1], &with) ||
        !pith_argument_int(render, call, "count", arguments[2], -1, &limit)) {
        return false;
    }
    if (self->is_safe) {
        old = pith_value_escape(render, arguments[0]);
        with = pith_value_escape(render, arguments[1]);
        if (old == NULL || with == NULL) return false;
    }
    return pith_render_give(
        pith_value_string(pith_string_replace(&render->heap, self, old, with, limit)), out);
}
