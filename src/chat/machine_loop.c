/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops at run time, and the variable `loop`.
 *
 * A loop goes through a list of its items (shared when a list is looped over). Each item gets a
 * scope; the scope is used again for the next item unless something captured it. LOOP_NEXT restores
 * the scope and the sink that were around the loop, so `continue` is a jump to it and `break` a
 * jump to LOOP_END, wherever in the body they stand.
 *
 * Invariant: render->loop is the innermost running loop of the current call; LOOP_END puts the
 * outer one back.
 */
#include "chat/native.h"

#include <string.h>

bool pith_op_loop_enter(pith_render *render, const pith_instruction *in) {
    const pith_instruction *entry = render->next;
    render->next += in->a;
    return pith_frame_push(render, entry, false);
}

bool pith_op_loop_begin(pith_render *render, const pith_instruction *in) {
    pith_value source = render->stack[--render->n_stack];
    pith_loop *loop = pith_heap_object(&render->heap, sizeof *loop);
    pith_list *items = pith_value_to_list(&render->heap, source);
    if (loop == NULL) return false;
    if (items == NULL) {
        if (render->heap.fault != PITH_FAULT_NONE) return false;
        return pith_render_fail(render, "cannot loop over a %s", pith_kind_name(source.kind));
    }
    *loop = (pith_loop){.outer = render->loop,
                        .items = items,
                        .index = SIZE_MAX,
                        .depth = render->loop_depth,
                        .scope = render->scope,
                        .sink = render->sink,
                        .entry = (in->flags & 1) != 0 ? in : NULL};
    render->loop_depth = 0;
    render->loop = loop;
    if (loop->entry != NULL) pith_scope_capture(render->scope);
    return true;
}

/* A scope for the next item; the last one again when nothing holds on to it. */
static bool renew_body(pith_render *render, pith_loop *loop) {
    if (loop->body != NULL && !loop->body->is_captured) {
        loop->body->n = 0;
        render->scope = loop->body;
        return true;
    }
    loop->body = pith_scope_push(render, loop->scope);
    return loop->body != NULL;
}

bool pith_op_loop_next(pith_render *render, const pith_instruction *in) {
    pith_loop *loop = render->loop;
    render->sink = loop->sink;
    render->scope = loop->scope;
    loop->index++;
    if (loop->index >= loop->items->n) {
        render->next += in->a;
        return true;
    }
    if ((in->flags & 1) != 0) loop->has_run = true;
    pith_value self = {PITH_KIND_LOOP, {.loop = loop}};
    return renew_body(render, loop) &&
           pith_scope_bind(render, loop->body, PITH_SYMBOL_LOOP, self) &&
           pith_machine_push(render, loop->items->items[loop->index]);
}

bool pith_op_loop_keep(pith_render *render, const pith_instruction *in) {
    (void)in;
    pith_loop *loop = render->loop;
    if (loop->kept == NULL) loop->kept = pith_list_new(&render->heap, 4);
    if (loop->kept == NULL) return false;
    if (!pith_value_truth(render->stack[--render->n_stack])) return true;
    return pith_list_append(&render->heap, loop->kept, loop->items->items[loop->index]);
}

bool pith_op_loop_rewind(pith_render *render, const pith_instruction *in) {
    (void)in;
    pith_loop *loop = render->loop;
    if (loop->kept == NULL) loop->kept = pith_list_new(&render->heap, 0);
    if (loop->kept == NULL) return false;
    loop->items = loop->kept;
    loop->index = SIZE_MAX;
    return true;
}

bool pith_op_loop_check(pith_render *render, const pith_instruction *in) {
    if (pith_value_truth(render->stack[--render->n_stack])) {
        render->loop->has_run = true;
    } else {
        render->next += in->a;
    }
    return true;
}

bool pith_op_loop_end(pith_render *render, const pith_instruction *in) {
    pith_loop *loop = render->loop;
    render->scope = loop->scope;
    render->sink = loop->sink;
    render->loop = loop->outer;
    if (loop->has_run) render->next += in->a;
    return true;
}

/* ---- the variable `loop` ---- */

static bool cycle(pith_render *render, const pith_call *call, pith_value *out) {
    if (call->n_args == 0)
        return pith_render_fail(render, "loop.cycle() needs at least one argument");
    *out = call->args[call->self.as.loop->index % call->n_args];
    return true;
}

static bool changed(pith_render *render, const pith_call *call, pith_value *out) {
    pith_loop *loop = call->self.as.loop;
    pith_list *now = pith_list_new(&render->heap, call->n_args);
    if (now == NULL) return false;
    for (size_t i = 0; i < call->n_args; i++) now->items[i] = call->args[i];
    now->n = call->n_args;
    bool is_same = loop->changed != NULL && loop->changed->n == now->n;
    for (size_t i = 0; i < now->n && is_same; i++) {
        is_same = pith_value_equal(&render->heap, now->items[i], loop->changed->items[i]);
    }
    loop->changed = now;
    *out = pith_bool(!is_same);
    return true;
}

static const pith_function loop_methods[] = {{"cycle", cycle}, {"changed", changed}, {NULL, NULL}};

static bool give_neighbour(pith_render *render, const pith_loop *loop, bool exists, size_t index,
                           pith_value *out) {
    if (exists) {
        *out = loop->items->items[index];
        return true;
    }
    pith_value text = pith_value_text(&render->heap, "there is no such item in the loop");
    return pith_render_give(
        pith_value_undefined(&render->heap, PITH_ABSENCE_TEXT, text, PITH_KIND_ABSENT), out);
}

static bool give_number(size_t number, pith_value *out) {
    *out = pith_int((int64_t)number);
    return true;
}

bool pith_loop_attribute(pith_render *render, pith_loop *loop, const pith_string *name,
                         pith_value *out) {
    size_t n = loop->items->n,
           index = loop->index < n ? loop->index : n - (n > 0); /* behind the end: the last */
    if (pith_string_is(name, "index")) return give_number(index + 1, out);
    if (pith_string_is(name, "index0")) return give_number(index, out);
    if (pith_string_is(name, "revindex")) return give_number(n - index, out);
    if (pith_string_is(name, "revindex0")) return give_number(n - index - (n > 0), out);
    if (pith_string_is(name, "length")) return give_number(n, out);
    if (pith_string_is(name, "depth")) return give_number(loop->depth + 1, out);
    if (pith_string_is(name, "depth0")) return give_number(loop->depth, out);
    if (pith_string_is(name, "previtem"))
        return give_neighbour(render, loop, index > 0, index - 1, out);
    if (pith_string_is(name, "nextitem"))
        return give_neighbour(render, loop, index + 1 < n, index + 1, out);
    *out = (pith_value){.kind = PITH_KIND_ABSENT};
    if (pith_string_is(name, "first")) *out = pith_bool(index == 0);
    if (pith_string_is(name, "last")) *out = pith_bool(index + 1 >= n);
    if (out->kind != PITH_KIND_ABSENT) return true;
    const pith_function *function = pith_function_find(loop_methods, pith_string_span(name));
    if (function == NULL) return true;
    pith_method *method = pith_heap_object(&render->heap, sizeof *method);
    if (method == NULL) return false;
    *method = (pith_method){{PITH_KIND_LOOP, {.loop = loop}}, function};
    *out = (pith_value){PITH_KIND_METHOD, {.method = method}};
    return true;
}
