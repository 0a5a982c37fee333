/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: native functions, methods, filters, tests, macros, recursive loops.
 *
 * On the stack of a call, from below: what is called (or the filter's subject), values, pairs of
 * name and value, then *args, **kwargs and the caller where the flags say so. Calls with these
 * extras are first laid out plainly.
 *
 * A macro or a recursive loop does not run inside of its call: a frame is pushed and the machine
 * goes on at its code; RETURN pops the frame and pushes what was written. So depth is a number
 * (PITH_TEMPLATE_MAX_DEPTH frames), not C stack.
 */
#include "chat/native.h"

/* ---- laying out ---- */

static bool append_values(pith_render *render, pith_list *list, const pith_value *values,
                          size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!pith_list_append(&render->heap, list, values[i])) return false;
    }
    return true;
}

static bool append_starred(pith_render *render, pith_list *list, pith_value star) {
    pith_items items;
    pith_value item;
    if (!pith_items_begin(&items, star))
        return pith_render_fail(render, "what follows * in a call has no items");
    while (pith_items_next(&items, &render->heap, &item)) {
        if (!pith_list_append(&render->heap, list, item)) return false;
    }
    return render->heap.fault == PITH_FAULT_NONE;
}

static bool append_double_starred(pith_render *render, pith_list *list, pith_value star) {
    if (star.kind != PITH_KIND_DICT)
        return pith_render_fail(render, "what follows ** in a call is not a dict");
    for (size_t i = 0; i < star.as.dict->n; i++) {
        const pith_entry *entry = &star.as.dict->entries[i];
        if (entry->key.kind != PITH_KIND_STRING)
            return pith_render_fail(render, "a name after ** is not a string");
        if (!pith_list_append(&render->heap, list, entry->key) ||
            !pith_list_append(&render->heap, list, entry->value)) {
            return false;
        }
    }
    return true;
}

/* Takes the arguments of `in` off the stack into *call; they stay readable until the next push. */
static bool take_arguments(pith_render *render, const pith_instruction *in, pith_call *call) {
    size_t n = (size_t)in->a, n_pairs = (size_t)in->b;
    bool star = (in->flags & PITH_CALL_STAR) != 0,
         double_star = (in->flags & PITH_CALL_DOUBLE_STAR) != 0;
    bool caller = (in->flags & PITH_CALL_CALLER) != 0;
    size_t n_extra = (size_t)star + double_star + caller;
    pith_value *base = render->stack + render->n_stack - n_extra - 2 * n_pairs - n,
               *extra = base + n + 2 * n_pairs;
    render->n_stack = (size_t)(base - render->stack);
    *call = (pith_call){.args = base, .n_args = n, .keywords = base + n, .n_keywords = n_pairs};
    if (n_extra == 0) return true;
    pith_list *values = pith_list_new(&render->heap, n + 4),
              *pairs = pith_list_new(&render->heap, 2 * n_pairs + 4);
    if (values == NULL || pairs == NULL) return false;
    if (!append_values(render, values, base, n) ||
        !append_values(render, pairs, base + n, 2 * n_pairs))
        return false;
    if (star && !append_starred(render, values, *extra++)) return false;
    if (double_star && !append_double_starred(render, pairs, *extra++)) return false;
    if (caller) {
        pith_value name = pith_value_string(render->program->symbols[PITH_SYMBOL_CALLER]);
        if (!pith_list_append(&render->heap, pairs, name) ||
            !pith_list_append(&render->heap, pairs, *extra)) {
            return false;
        }
    }
    *call = (pith_call){.args = values->items,
                        .n_args = values->n,
                        .keywords = pairs->items,
                        .n_keywords = pairs->n / 2};
    return true;
}

/* ---- frames ---- */

bool pith_frame_push(pith_render *render, const pith_instruction *entry, bool is_captured) {
    if (render->n_frames == PITH_TEMPLATE_MAX_DEPTH) {
        if (render->status == PITH_OK) {
            render->status = pith_fail(render->error, PITH_ERROR_TEMPLATE,
                                       "line %u: macros call each other more than %d levels deep",
                                       render->running->line, PITH_TEMPLATE_MAX_DEPTH);
        }
        return false;
    }
    render->frames[render->n_frames++] = (pith_frame){.back = render->next,
                                                      .scope = render->scope,
                                                      .sink = render->sink,
                                                      .loop = render->loop,
                                                      .is_captured = is_captured};
    render->next = entry;
    return !is_captured || pith_sink_push(render);
}

bool pith_op_return(pith_render *render, const pith_instruction *in) {
    (void)in;
    pith_frame frame = render->frames[--render->n_frames];
    pith_string *text = frame.is_captured ? pith_builder_finish(&render->sink->builder) : NULL;
    render->next = frame.back;
    render->scope = frame.scope;
    render->sink = frame.sink;
    render->loop = frame.loop;
    return !frame.is_captured || pith_machine_push(render, pith_value_string(text));
}

/* ---- macros ---- */

bool pith_op_macro(pith_render *render, const pith_instruction *in) {
    pith_macro *macro = pith_heap_object(&render->heap, sizeof *macro);
    if (macro == NULL) return false;
    *macro = (pith_macro){
        .code = &render->program->macros[in->a], .entry = render->next, .scope = render->scope};
    pith_scope_capture(render->scope);
    render->next += in->b;
    return pith_machine_push(render, (pith_value){PITH_KIND_MACRO, {.macro = macro}});
}

/* The number of the parameter with this name, or n_parameters. */
static size_t find_parameter(const pith_render *render, const pith_macro_code *code,
                             const pith_string *name) {
    size_t i = 0;
    while (i < code->n_parameters &&
           !pith_span_equal(pith_string_span(render->program->symbols[code->parameters[i].symbol]),
                            pith_string_span(name))) {
        i++;
    }
    return i;
}

static bool fail_argument(pith_render *render, const pith_macro_code *code, const char *what,
                          const pith_string *name) {
    return pith_render_fail(render, "the macro '%.*s' %s '%.*s'",
                            (int)(code->name->size < 60 ? code->name->size : 60), code->name->data,
                            what, (int)(name->size < 60 ? name->size : 60), name->data);
}

/* Keyword arguments: parameters, the caller, the rest into kwargs. */
static bool bind_keywords(pith_render *render, const pith_macro_code *code, const pith_call *call,
                          pith_dict *kwargs) {
    for (size_t i = 0; i < call->n_keywords; i++) {
        pith_value key = call->keywords[2 * i], value = call->keywords[2 * i + 1];
        size_t number = find_parameter(render, code, key.as.string);
        if (number < code->n_parameters) {
            if (number < call->n_args)
                return fail_argument(render, code, "is given twice", key.as.string);
            if (!pith_scope_bind(render, render->scope, code->parameters[number].symbol, value))
                return false;
        } else if (code->uses_caller && pith_string_is(key.as.string, "caller")) {
            if (!pith_scope_bind(render, render->scope, PITH_SYMBOL_CALLER, value)) return false;
        } else if (!code->uses_kwargs) {
            return fail_argument(render, code, "takes no argument", key.as.string);
        } else if (!pith_dict_set(&render->heap, kwargs, key, value)) {
            return false;
        }
    }
    return true;
}

static bool bind_undefined(pith_render *render, int32_t symbol) {
    pith_value name = pith_value_string(render->program->symbols[symbol]);
    pith_value value =
        pith_value_undefined(&render->heap, PITH_ABSENCE_NAME, name, PITH_KIND_ABSENT);
    return pith_scope_bind(render, render->scope, symbol, value);
}

static bool is_bound(const pith_scope *scope, int32_t symbol) { /* few: the parser has a limit */
    for (size_t i = 0; i < scope->n; i++) {
        if (scope->bindings[i].symbol == symbol) return true;
    }
    return false;
}

/* Parameters without value and default are undefined. (Those with a default get it from the macro's
 * code.) */
static bool bind_missing(pith_render *render, const pith_macro_code *code, size_t n_given) {
    for (size_t i = n_given; i < code->n_parameters; i++) {
        int32_t symbol = code->parameters[i].symbol;
        if (code->parameters[i].has_default || is_bound(render->scope, symbol)) continue;
        if (!bind_undefined(render, symbol)) return false;
    }
    if (!code->uses_caller || is_bound(render->scope, PITH_SYMBOL_CALLER)) return true;
    return bind_undefined(render, PITH_SYMBOL_CALLER);
}

static bool bind_varargs(pith_render *render, const pith_macro_code *code, const pith_call *call) {
    size_t n_named = code->n_parameters < call->n_args ? code->n_parameters : call->n_args;
    if (call->n_args > n_named && !code->uses_varargs) {
        return pith_render_fail(render, "the macro '%.*s' takes %zu arguments, not %zu",
                                (int)(code->name->size < 60 ? code->name->size : 60),
                                code->name->data, code->n_parameters, call->n_args);
    }
    for (size_t i = 0; i < n_named; i++) {
        if (!pith_scope_bind(render, render->scope, code->parameters[i].symbol, call->args[i]))
            return false;
    }
    if (!code->uses_varargs) return true;
    pith_list *rest = pith_list_new(&render->heap, call->n_args - n_named);
    if (rest == NULL || !append_values(render, rest, call->args + n_named, call->n_args - n_named))
        return false;
    return pith_scope_bind(render, render->scope, PITH_SYMBOL_VARARGS, pith_value_tuple(rest));
}

static bool call_macro(pith_render *render, pith_macro *macro, const pith_call *call) {
    const pith_macro_code *code = macro->code;
    if (!pith_heap_charge(&render->heap, code->n_parameters * (call->n_keywords + 1))) return false;
    if (!pith_frame_push(render, macro->entry, true) ||
        pith_scope_push(render, macro->scope) == NULL)
        return false;
    render->loop = NULL;
    pith_dict *kwargs = code->uses_kwargs ? pith_dict_new(&render->heap, 0) : NULL;
    if (code->uses_kwargs && kwargs == NULL) return false;
    if (kwargs != NULL &&
        !pith_scope_bind(render, render->scope, PITH_SYMBOL_KWARGS, pith_value_dict(kwargs))) {
        return false;
    }
    return bind_varargs(render, code, call) && bind_keywords(render, code, call, kwargs) &&
           bind_missing(render, code, call->n_args);
}

static bool call_loop(pith_render *render, pith_loop *loop, const pith_call *call) {
    if (loop->entry == NULL)
        return pith_render_fail(render,
                                "the loop is not recursive: write {%% for ... recursive %%}");
    if (call->n_args != 1 || call->n_keywords != 0)
        return pith_render_fail(render, "loop() takes one argument");
    pith_value items = call->args[0];
    if (!pith_frame_push(render, loop->entry, true)) return false;
    render->scope = loop->scope;
    render->loop_depth = loop->depth + 1;
    return pith_machine_push(render, items);
}

/* ---- instructions ---- */

static bool call_native(pith_render *render, const pith_function *function, pith_call *call) {
    pith_value result = {.kind = PITH_KIND_ABSENT};
    call->name = function->name;
    return function->native(render, call, &result) && pith_machine_push(render, result);
}

bool pith_op_call(pith_render *render, const pith_instruction *in) {
    pith_call call;
    if (!take_arguments(render, in, &call)) return false;
    pith_value callee = render->stack[--render->n_stack];
    switch (callee.kind) {
    case PITH_KIND_MACRO: return call_macro(render, callee.as.macro, &call);
    case PITH_KIND_LOOP: return call_loop(render, callee.as.loop, &call);
    case PITH_KIND_FUNCTION: return call_native(render, callee.as.function, &call);
    case PITH_KIND_METHOD:
        call.self = callee.as.method->self;
        return call_native(render, callee.as.method->function, &call);
    case PITH_KIND_JOINER: call.self = callee; return call_native(render, &pith_joiner_call, &call);
    case PITH_KIND_UNDEFINED: return pith_render_fail_undefined(render, callee);
    default: return pith_render_fail(render, "a %s cannot be called", pith_kind_name(callee.kind));
    }
}

bool pith_op_filter(pith_render *render, const pith_instruction *in) {
    pith_call call;
    if (!take_arguments(render, in, &call)) return false;
    call.self = render->stack[--render->n_stack];
    return call_native(render, &pith_filters[in->extra], &call);
}

bool pith_op_test(pith_render *render, const pith_instruction *in) {
    pith_call call;
    if (!take_arguments(render, in, &call)) return false;
    call.self = render->stack[--render->n_stack];
    return call_native(render, &pith_tests[in->extra], &call);
}
