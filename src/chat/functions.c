/* SPDX-License-Identifier: Apache-2.0
 *
 * Global functions: range, dict, namespace, joiner, cycler, raise_exception, strftime_now.
 *
 * A variable of the context with the same name takes the function's place.
 */
#include "chat/native.h"
#include "chat/strftime.h"

static bool call_range(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"start", "stop", "step"};
    pith_value arguments[3];
    int64_t start, stop, step;
    if (!pith_call_bind(render, call, names, 3, 1, arguments)) return false;
    bool has_start = arguments[1].kind != PITH_KIND_ABSENT;
    if (!pith_argument_int(render, call, "start", arguments[0], 0, &start) ||
        !pith_argument_int(render, call, "stop", arguments[1], 0, &stop) ||
        !pith_argument_int(render, call, "step", arguments[2], 1, &step)) {
        return false;
    }
    if (!has_start) {
        stop = start;
        start = 0;
    }
    if (step == 0) return pith_render_fail(render, "range's step is 0");
    uint64_t distance = 0, stride = step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
    if (step > 0 && start < stop) distance = (uint64_t)stop - (uint64_t)start;
    if (step < 0 && start > stop) distance = (uint64_t)start - (uint64_t)stop;
    uint64_t n = distance == 0 ? 0 : (distance - 1) / stride + 1;
    if (n > PITH_TEMPLATE_MAX_RANGE) {
        return pith_render_fail(render, "range has more than %d numbers", PITH_TEMPLATE_MAX_RANGE);
    }
    pith_range *range = pith_heap_object(&render->heap, sizeof *range);
    if (range == NULL) return false;
    *range = (pith_range){.start = start, .stop = stop, .step = step, .n = (size_t)n};
    *out = (pith_value){PITH_KIND_RANGE, {.range = range}};
    return true;
}

/* ---- dict and namespace ---- */

static bool copy_pairs(pith_render *render, const pith_call *call, pith_value pairs,
                       pith_dict *dict) {
    pith_items items;
    pith_value pair;
    if (!pith_items_begin(&items, pairs)) {
        return pith_render_fail(render, "%s needs a dict or pairs, not %s", call->name,
                                pith_kind_name(pairs.kind));
    }
    while (pith_items_next(&items, &render->heap, &pair)) {
        bool is_pair =
            (pair.kind == PITH_KIND_TUPLE || pair.kind == PITH_KIND_LIST) && pair.as.list->n == 2;
        if (!is_pair)
            return pith_render_fail(render, "%s needs pairs of a key and a value", call->name);
        if (pith_dict_set(&render->heap, dict, pair.as.list->items[0], pair.as.list->items[1]))
            continue;
        if (render->heap.fault != PITH_FAULT_NONE) return false;
        return pith_render_fail(render, "a %s cannot be a key of a dict",
                                pith_kind_name(pair.as.list->items[0].kind));
    }
    return true;
}

static pith_dict *make_dict(pith_render *render, const pith_call *call) {
    pith_dict *dict = pith_dict_new(&render->heap, call->n_keywords);
    if (dict == NULL) return NULL;
    if (call->n_args > 1) {
        pith_render_fail(render, "%s takes at most one value without a name", call->name);
        return NULL;
    }
    if (call->n_args == 1) {
        pith_value source = call->args[0];
        pith_view view = {source.as.dict, PITH_VIEW_ITEMS};
        if (source.kind == PITH_KIND_DICT) source = (pith_value){PITH_KIND_VIEW, {.view = &view}};
        if (!copy_pairs(render, call, source, dict)) return NULL;
    }
    for (size_t i = 0; i < call->n_keywords; i++) {
        if (!pith_dict_set(&render->heap, dict, call->keywords[2 * i], call->keywords[2 * i + 1]))
            return NULL;
    }
    return dict;
}

static bool call_dict(pith_render *render, const pith_call *call, pith_value *out) {
    return pith_render_give(pith_value_dict(make_dict(render, call)), out);
}

static bool call_namespace(pith_render *render, const pith_call *call, pith_value *out) {
    pith_dict *dict = make_dict(render, call);
    if (dict == NULL) return false;
    *out = (pith_value){PITH_KIND_NAMESPACE, {.dict = dict}};
    return true;
}

/* ---- joiner and cycler ---- */

static bool make_cycler(pith_render *render, pith_kind kind, const pith_value *values, size_t n,
                        pith_value *out) {
    pith_cycler *cycler = pith_heap_object(&render->heap, sizeof *cycler);
    pith_list *list = pith_list_new(&render->heap, n);
    if (cycler == NULL || list == NULL) return false;
    for (size_t i = 0; i < n; i++) list->items[i] = values[i];
    list->n = n;
    *cycler = (pith_cycler){.values = list};
    *out = (pith_value){kind, {.cycler = cycler}};
    return true;
}

static bool call_joiner(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"sep"};
    pith_value separator;
    if (!pith_call_bind(render, call, names, 1, 0, &separator)) return false;
    if (separator.kind == PITH_KIND_ABSENT) separator = pith_value_text(&render->heap, ", ");
    return make_cycler(render, PITH_KIND_JOINER, &separator, 1, out);
}

static bool call_cycler(pith_render *render, const pith_call *call, pith_value *out) {
    if (call->n_args == 0 || call->n_keywords > 0)
        return pith_render_fail(render, "cycler needs values to go through");
    return make_cycler(render, PITH_KIND_CYCLER, call->args, call->n_args, out);
}

/* Nothing the first time, the separator from then on. */
static bool call_a_joiner(pith_render *render, const pith_call *call, pith_value *out) {
    pith_cycler *joiner = call->self.as.cycler;
    if (!pith_call_bind_nothing(render, call)) return false;
    if (joiner->position++ == 0) return pith_render_give(pith_value_text(&render->heap, ""), out);
    *out = joiner->values->items[0];
    return true;
}

const pith_function pith_joiner_call = {"a joiner", call_a_joiner};

/* ---- transformers' ---- */

static bool call_raise_exception(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"message"};
    pith_value message;
    (void)out;
    if (!pith_call_bind(render, call, names, 1, 1, &message)) return false;
    const pith_string *text = pith_value_str(render, message);
    return text != NULL && pith_render_raise(render, text);
}

static bool call_strftime_now(pith_render *render, const pith_call *call, pith_value *out) {
    static const char *const names[] = {"format"};
    pith_value argument;
    const pith_string *format;
    pith_civil_time time;
    pith_builder builder;
    if (!pith_call_bind(render, call, names, 1, 1, &argument) ||
        !pith_argument_string(render, call, "format", argument, &format)) {
        return false;
    }
    if (!pith_calendar_local(render->now < 0 ? pith_calendar_now() : render->now, &time)) {
        return pith_render_fail(render, "the time is outside of the calendar");
    }
    pith_builder_init(&builder, &render->heap);
    if (!pith_strftime(&builder, format, &time)) {
        return pith_render_fail(render, "strftime_now's format has a conversion that is not known");
    }
    return pith_render_give(pith_value_string(pith_builder_finish(&builder)), out);
}

const pith_function pith_globals[] = {
    {"range", call_range},
    {"dict", call_dict},
    {"namespace", call_namespace},
    {"joiner", call_joiner},
    {"cycler", call_cycler},
    {"raise_exception", call_raise_exception},
    {"strftime_now", call_strftime_now},
    {NULL, NULL},
};
