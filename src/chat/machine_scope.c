/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables and captured output.
 *
 * Scopes stand as they do in the template: a name is looked for from the inside out, the last place
 * being the root scope, where the context's variables and the global functions are. What is set in
 * a scope is gone with it.
 *
 *   root array [symbol]  <-  scope of a loop's body  <-  scope of a set block ...
 *
 * Invariants: a lookup in a long scope costs steps; a macro made in a scope marks it and all around
 * it as captured, so that a loop does not use the scope again for the next item while the macro
 * still sees it.
 */
#include "chat/native.h"

#include <string.h>

static pith_value *find_in(pith_render *render, pith_scope *scope, int32_t symbol) {
    for (size_t i = 0; i < scope->n; i++) {
        if (scope->bindings[i].symbol != symbol) continue;
        if (i >= 8) (void)pith_heap_charge(&render->heap, i / 8);
        return &scope->bindings[i].value;
    }
    if (scope->n >= 8) (void)pith_heap_charge(&render->heap, scope->n / 8);
    return NULL;
}

static pith_value find(pith_render *render, int32_t symbol) {
    for (pith_scope *scope = render->scope; scope != NULL; scope = scope->outer) {
        const pith_value *value = find_in(render, scope, symbol);
        if (value != NULL) return *value;
    }
    return render->root[symbol];
}

bool pith_scope_bind(pith_render *render, pith_scope *scope, int32_t symbol, pith_value value) {
    if (scope == NULL) {
        render->root[symbol] = value;
        return true;
    }
    pith_value *bound = find_in(render, scope, symbol);
    if (bound != NULL) {
        *bound = value;
        return true;
    }
    if (scope->n == scope->capacity) {
        size_t capacity = scope->capacity == 0 ? 4 : scope->capacity * 2;
        pith_binding *bindings = pith_heap_array(&render->heap, capacity, sizeof *bindings);
        if (bindings == NULL) return false;
        if (scope->n > 0) memcpy(bindings, scope->bindings, scope->n * sizeof *bindings);
        scope->bindings = bindings;
        scope->capacity = capacity;
    }
    scope->bindings[scope->n++] = (pith_binding){symbol, value};
    return true;
}

pith_scope *pith_scope_push(pith_render *render, pith_scope *outer) {
    pith_scope *scope = pith_heap_object(&render->heap, sizeof *scope);
    if (scope == NULL) return NULL;
    *scope = (pith_scope){.outer = outer};
    render->scope = scope;
    return scope;
}

void pith_scope_capture(pith_scope *scope) {
    for (; scope != NULL && !scope->is_captured; scope = scope->outer) scope->is_captured = true;
}

bool pith_op_load(pith_render *render, const pith_instruction *in) {
    pith_value value = find(render, in->a);
    if (value.kind == PITH_KIND_ABSENT) {
        pith_value name = pith_value_string(render->program->symbols[in->a]);
        value = pith_value_undefined(&render->heap, PITH_ABSENCE_NAME, name, PITH_KIND_ABSENT);
    }
    return pith_machine_push(render, value);
}

bool pith_op_store(pith_render *render, const pith_instruction *in) {
    return pith_scope_bind(render, render->scope, in->a, render->stack[--render->n_stack]);
}

bool pith_op_store_field(pith_render *render, const pith_instruction *in) {
    pith_value target = find(render, in->a), value = render->stack[--render->n_stack];
    if (target.kind != PITH_KIND_NAMESPACE) {
        return pith_render_fail(render,
                                "only the fields of a namespace can be set, not those of a %s",
                                pith_kind_name(target.kind));
    }
    return pith_dict_set(&render->heap, target.as.dict, render->program->constants[in->b], value);
}

bool pith_op_if_bound(pith_render *render, const pith_instruction *in) {
    if (find_in(render, render->scope, in->a) != NULL) render->next += in->b;
    return true;
}

bool pith_op_scope_push(pith_render *render, const pith_instruction *in) {
    (void)in;
    return pith_scope_push(render, render->scope) != NULL;
}

bool pith_op_scope_pop(pith_render *render, const pith_instruction *in) {
    (void)in;
    render->scope = render->scope->outer;
    return true;
}

bool pith_sink_push(pith_render *render) {
    pith_sink *sink = pith_heap_object(&render->heap, sizeof *sink);
    if (sink == NULL) return false;
    sink->outer = render->sink;
    pith_builder_init(&sink->builder, &render->heap);
    render->sink = sink;
    return true;
}

bool pith_op_capture(pith_render *render, const pith_instruction *in) {
    return pith_op_scope_push(render, in) && pith_sink_push(render);
}

bool pith_op_capture_end(pith_render *render, const pith_instruction *in) {
    pith_string *text = pith_builder_finish(&render->sink->builder);
    render->sink = render->sink->outer;
    return pith_op_scope_pop(render, in) && pith_machine_push(render, pith_value_string(text));
}
