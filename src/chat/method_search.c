/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of strings that look for another string: find, count, startswith, ...
 *
 * Positions are characters, as in Python; start and end may count from the end of the string. They
 * are turned into bytes once, the search itself works on bytes.
 */
#include "chat/methods.h"
#include "chat/search.h"

#include <string.h>

/* (sub, start=0, end=len): the part that is looked at. is_outside: start lies behind the end,
 * nothing can be found. */
typedef struct search_range {
    size_t from, to; /* bytes */
    bool is_outside;
} search_range;

static int64_t resolve(int64_t position, size_t n) {
    if (position < 0) position += (int64_t)n;
    return position < 0 ? 0 : position;
}

static bool take_range(pith_render *render, const pith_call *call, pith_value *sub,
                       search_range *range) {
    static const char *const names[] = {"sub", "start", "end"};
    const pith_string *self = call->self.as.string;
    pith_value arguments[3];
    int64_t start, end, n = (int64_t)self->n_chars;
    if (!pith_call_bind(render, call, names, 3, 1, arguments)) return false;
    for (int i = 1; i < 3; i++) {
        if (arguments[i].kind == PITH_KIND_NONE) arguments[i].kind = PITH_KIND_ABSENT;
    }
    if (!pith_argument_int(render, call, "start", arguments[1], 0, &start) ||
        !pith_argument_int(render, call, "end", arguments[2], n, &end)) {
        return false;
    }
    *sub = arguments[0];
    start = resolve(start, self->n_chars);
    end = resolve(end, self->n_chars);
    if (end > n) end = n;
    range->is_outside = start > end;
    range->from = range->is_outside ? 0 : pith_string_offset(self, (size_t)start);
    range->to = range->is_outside ? 0 : pith_string_offset(self, (size_t)end);
    return pith_heap_charge(&render->heap, self->n_chars == self->size ? 1 : 1 + self->size / 4);
}

/* The byte offset of `sub` in the range; SIZE_MAX: it is not there. */
static bool locate(pith_render *render, const pith_call *call, bool from_right, size_t *at) {
    const pith_string *self = call->self.as.string, *sub;
    pith_value argument;
    search_range range;
    if (!take_range(render, call, &argument, &range) ||
        !pith_argument_string(render, call, "sub", argument, &sub)) {
        return false;
    }
    *at = SIZE_MAX;
    if (range.is_outside) return true;
    pith_span text = {self->data, range.to};
    if (from_right) {
        *at = pith_search_last(&render->heap, text, pith_string_span(sub), range.to);
        if (*at != SIZE_MAX && *at < range.from) *at = SIZE_MAX;
    } else {
        *at = pith_search_first(&render->heap, text, pith_string_span(sub), range.from);
    }
    return render->heap.fault == PITH_FAULT_NONE;
}

static bool find(pith_render *render, const pith_call *call, bool from_right, bool must_be_there,
                 pith_value *out) {
    size_t at;
    if (!locate(render, call, from_right, &at)) return false;
    if (at == SIZE_MAX && must_be_there)
        return pith_render_fail(render, "%s: the string is not there", call->name);
    *out = pith_int(at == SIZE_MAX ? -1 : (int64_t)pith_string_index(call->self.as.string, at));
    return true;
}

bool pith_method_find(pith_render *render, const pith_call *call, pith_value *out) {
    return find(render, call, false, false, out);
}

bool pith_method_index(pith_render *render, const pith_call *call, pith_value *out) {
    return find(render, call, false, true, out);
}

bool pith_method_rfind(pith_render *render, const pith_call *call, pith_value *out) {
    return find(render, call, true, false, out);
}

bool pith_method_rindex(pith_render *render, const pith_call *call, pith_value *out) {
    return find(render, call, true, true, out);
}

bool pith_method_count(pith_render *render, const pith_call *call, pith_value *out) {
    const pith_string *self = call->self.as.string, *sub;
    pith_value argument;
    search_range range;
    int64_t n = 0;
    if (!take_range(render, call, &argument, &range) ||
        !pith_argument_string(render, call, "sub", argument, &sub)) {
        return false;
    }
    if (range.is_outside) {
        *out = pith_int(0);
        return true;
    }
    if (sub->size == 0) {
        *out = pith_int(
            (int64_t)pith_string_count_chars(self->data + range.from, range.to - range.from) + 1);
        return true;
    }
    pith_span text = {self->data, range.to};
    for (size_t at = range.from;; n++) {
        at = pith_search_first(&render->heap, text, pith_string_span(sub), at);
        if (at == SIZE_MAX) break;
        at += sub->size;
    }
    *out = pith_int(n);
    return true;
}

static bool has_affix(pith_heap *heap, const pith_string *self, search_range range,
                      const pith_string *affix, bool at_end) {
    if (range.is_outside || affix->size > range.to - range.from) return false;
    if (!pith_heap_charge(heap, 1 + affix->size / 64)) return false;
    const char *at = self->data + (at_end ? range.to - affix->size : range.from);
    return affix->size == 0 || memcmp(at, affix->data, affix->size) == 0;
}

/* A string, or a tuple of strings of which one is enough. */
static bool test_affix(pith_render *render, const pith_call *call, bool at_end, pith_value *out) {
    const pith_string *self = call->self.as.string, *affix;
    pith_value argument;
    search_range range;
    bool result = false;
    if (!take_range(render, call, &argument, &range)) return false;
    if (argument.kind == PITH_KIND_TUPLE) {
        for (size_t i = 0; i < argument.as.list->n && !result; i++) {
            if (!pith_argument_string(render, call, "sub", argument.as.list->items[i], &affix))
                return false;
            result = has_affix(&render->heap, self, range, affix, at_end);
        }
    } else {
        if (!pith_argument_string(render, call, "sub", argument, &affix)) return false;
        result = has_affix(&render->heap, self, range, affix, at_end);
    }
    *out = pith_bool(result);
    return true;
}

bool pith_method_startswith(pith_render *render, const pith_call *call, pith_value *out) {
    return test_affix(render, call, false, out);
}

bool pith_method_endswith(pith_render *render, const pith_call *call, pith_value *out) {
    return test_affix(render, call, true, out);
}

static bool remove_affix(pith_render *render, const pith_call *call, bool at_end, pith_value *out) {
    static const char *const names[] = {"affix"};
    const pith_string *self = call->self.as.string, *affix;
    pith_value argument;
    if (!pith_call_bind(render, call, names, 1, 1, &argument) ||
        !pith_argument_string(render, call, "affix", argument, &affix)) {
        return false;
    }
    *out = call->self;
    if (affix->size == 0 ||
        !has_affix(&render->heap, self, (search_range){0, self->size, false}, affix, at_end))
        return true;
    size_t from = at_end ? 0 : affix->size, size = self->size - affix->size;
    return pith_render_give(pith_value_string(pith_string_slice(&render->heap, self, from, size)),
                            out);
}

bool pith_method_removeprefix(pith_render *render, const pith_call *call, pith_value *out) {
    return remove_affix(render, call, false, out);
}

bool pith_method_removesuffix(pith_render *render, const pith_call *call, pith_value *out) {
    return remove_affix(render, call, true, out);
}
