/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine: a loop over instructions with a stack of values.
 *
 * Owns the stack, failures and the plain instructions. Each instruction has one handler; this file
 * holds those of expressions and output, machine_scope.c variables and captures, machine_call.c
 * calls, machine_loop.c loops.
 *
 * Invariants: the parser emits code whose pops and pushes balance on every path; each instruction
 * costs a step, so a template ends; after each instruction a fault of the heap (memory, steps,
 * depth) ends the rendering, so handlers may pass ABSENT values on when memory runs out.
 */
#include "base/memory.h"
#include "chat/native.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- failing ---- */

/* The line of the instruction that is running. */
static uint32_t current_line(const pith_render *render) {
    const pith_instruction *in = render->running;
    return in != NULL ? in->line : 1;
}

bool pith_render_fail(pith_render *render, const char *format, ...) {
    char text[200];
    va_list args;
    if (render->status != PITH_OK) return false;
    if (render->heap.fault != PITH_FAULT_NONE) return pith_machine_report(render); /* the cause */
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    render->status =
        pith_fail(render->error, PITH_ERROR_TEMPLATE, "line %u: %s", current_line(render), text);
    return false;
}

bool pith_render_raise(pith_render *render, const pith_string *message) {
    int size = message->size < 1000 ? (int)message->size : 1000; /* the error holds less */
    if (render->status != PITH_OK) return false;
    render->status = pith_fail(render->error, PITH_ERROR_TEMPLATE, "%.*s", size, message->data);
    return false;
}

bool pith_render_give(pith_value value, pith_value *out) {
    *out = value;
    return value.kind != PITH_KIND_ABSENT;
}

bool pith_machine_report(pith_render *render) {
    if (render->status != PITH_OK) return false;
    uint32_t line = current_line(render);
    pith_error *error = render->error;
    switch (render->heap.fault) {
    case PITH_FAULT_NONE: break;
    case PITH_FAULT_MEMORY:
        render->status = pith_fail_memory(error, "rendering a template", render->heap.used);
        break;
    case PITH_FAULT_OVER_MEMORY:
        render->status = pith_fail(error, PITH_ERROR_LIMIT,
                                   "line %u: the template needs more than %zu bytes of memory",
                                   line, render->heap.limit);
        break;
    case PITH_FAULT_OVER_STEPS:
        render->status =
            pith_fail(error, PITH_ERROR_LIMIT, "line %u: the template needs more than %llu steps",
                      line, (unsigned long long)render->heap.step_limit);
        break;
    case PITH_FAULT_OVER_DEPTH:
        render->status = pith_fail(error, PITH_ERROR_LIMIT,
                                   "line %u: a value is nested more than %d levels deep", line,
                                   PITH_TEMPLATE_MAX_DEPTH);
        break;
    }
    if (render->status == PITH_OK) {
        render->status = pith_fail(error, PITH_ERROR_INTERNAL,
                                   "line %u: an operation failed without a reason", line);
    }
    return false;
}

/* ---- the stack ---- */

bool pith_machine_init(pith_render *render) {
    enum { FIRST_STACK = 64 };
    render->stack = pith_alloc_array(FIRST_STACK, sizeof *render->stack);
    if (render->stack == NULL) {
        pith_heap_fail(&render->heap, PITH_FAULT_MEMORY);
        return false;
    }
    render->stack_capacity = FIRST_STACK;
    render->next = render->program->code;
    return pith_sink_push(render);
}

bool pith_machine_push(pith_render *render, pith_value value) {
    enum { MAX_STACK = 1 << 22 };
    if (render->n_stack == render->stack_capacity) {
        size_t capacity = render->stack_capacity * 2;
        if (capacity > MAX_STACK) {
            pith_heap_fail(&render->heap, PITH_FAULT_OVER_MEMORY);
            return false;
        }
        pith_value *stack = pith_realloc(render->stack, capacity * sizeof *stack);
        if (stack == NULL) {
            pith_heap_fail(&render->heap, PITH_FAULT_MEMORY);
            return false;
        }
        render->stack = stack;
        render->stack_capacity = capacity;
    }
    render->stack[render->n_stack++] = value;
    return true;
}

static pith_value pop(pith_render *render) {
    return render->stack[--render->n_stack];
}

static pith_value *top(pith_render *render) {
    return &render->stack[render->n_stack - 1];
}

static void jump(pith_render *render, int32_t by) {
    render->next += by;
}

/* ---- output ---- */

bool pith_machine_write(pith_render *render, const pith_string *string) {
    pith_builder *builder = &render->sink->builder;
    if (string->size > render->output_limit - builder->size) {
        if (render->status != PITH_OK) return false;
        render->status = pith_fail(render->error, PITH_ERROR_LIMIT,
                                   "line %u: the template writes more than %zu bytes",
                                   current_line(render), render->output_limit);
        return false;
    }
    pith_builder_string(builder, string);
    return pith_heap_charge(&render->heap, string->size / 64);
}

static bool op_text(pith_render *render, const pith_instruction *in) {
    return pith_machine_write(render, render->program->constants[in->a].as.string);
}

static bool op_print(pith_render *render, const pith_instruction *in) {
    (void)in;
    const pith_string *string = pith_value_str(render, pop(render));
    return string != NULL && pith_machine_write(render, string);
}

/* ---- values ---- */

static bool op_const(pith_render *render, const pith_instruction *in) {
    return pith_machine_push(render, render->program->constants[in->a]);
}

static bool op_undefined(pith_render *render, const pith_instruction *in) {
    pith_value text = render->program->constants[in->a];
    return pith_machine_push(
        render, pith_value_undefined(&render->heap, PITH_ABSENCE_TEXT, text, PITH_KIND_ABSENT));
}

static bool op_attribute(pith_render *render, const pith_instruction *in) {
    const pith_string *name = render->program->constants[in->a].as.string;
    return pith_access_attribute(render, *top(render), name, top(render));
}

static bool op_item(pith_render *render, const pith_instruction *in) {
    (void)in;
    pith_value key = pop(render);
    return pith_access_item(render, *top(render), key, top(render));
}

static bool op_slice(pith_render *render, const pith_instruction *in) {
    (void)in;
    pith_value parts[3];
    for (int i = 2; i >= 0; i--) parts[i] = pop(render);
    return pith_access_slice(render, *top(render), parts, top(render));
}

/* Takes the top n values off the stack as a list. */
static pith_list *take_list(pith_render *render, size_t n) {
    pith_list *list = pith_list_new(&render->heap, n);
    if (list == NULL) return NULL;
    render->n_stack -= n;
    for (size_t i = 0; i < n; i++) list->items[i] = render->stack[render->n_stack + i];
    list->n = n;
    return list;
}

static bool op_list(pith_render *render, const pith_instruction *in) {
    return pith_machine_push(render, pith_value_list(take_list(render, (size_t)in->a)));
}

static bool op_tuple(pith_render *render, const pith_instruction *in) {
    return pith_machine_push(render, pith_value_tuple(take_list(render, (size_t)in->a)));
}

static bool op_dict(pith_render *render, const pith_instruction *in) {
    size_t n = (size_t)in->a;
    pith_dict *dict = pith_dict_new(&render->heap, n);
    const pith_value *pairs = render->stack + render->n_stack - 2 * n;
    for (size_t i = 0; i < n && dict != NULL; i++) {
        if (pith_dict_set(&render->heap, dict, pairs[2 * i], pairs[2 * i + 1])) continue;
        if (render->heap.fault != PITH_FAULT_NONE) return false;
        return pith_render_fail(render, "a %s cannot be a key of a dict",
                                pith_kind_name(pairs[2 * i].kind));
    }
    render->n_stack -= 2 * n;
    return pith_machine_push(render, pith_value_dict(dict));
}

static bool op_unpack(pith_render *render, const pith_instruction *in) {
    pith_value value = pop(render), item;
    pith_items items;
    size_t n = (size_t)in->a, base = render->n_stack, got = 0;
    if (!pith_items_begin(&items, value)) {
        if (value.kind == PITH_KIND_UNDEFINED) return pith_render_fail_undefined(render, value);
        return pith_render_fail(render, "cannot unpack a %s", pith_kind_name(value.kind));
    }
    for (; got <= n && pith_items_next(&items, &render->heap, &item); got++) {
        if (!pith_machine_push(render, item)) return false;
    }
    if (render->heap.fault != PITH_FAULT_NONE) return false;
    if (got != n) {
        return pith_render_fail(render, "cannot unpack: %s than %zu values",
                                got > n ? "more" : "fewer", n);
    }
    for (size_t i = 0; i < n / 2; i++) { /* the first one on top */
        pith_value swapped = render->stack[base + i];
        render->stack[base + i] = render->stack[base + n - 1 - i];
        render->stack[base + n - 1 - i] = swapped;
    }
    return true;
}

/* ---- operators and jumps ---- */

static bool op_binary(pith_render *render, const pith_instruction *in) {
    pith_value right = pop(render);
    return pith_operator_binary(render, (pith_binary)in->a, *top(render), right, top(render));
}

static bool op_unary(pith_render *render, const pith_instruction *in) {
    return pith_operator_unary(render, (pith_unary)in->a, *top(render), top(render));
}

static bool op_compare(pith_render *render, const pith_instruction *in) {
    pith_value right = pop(render);
    bool result;
    if (!pith_operator_compare(render, (pith_comparison)in->a, *top(render), right, &result))
        return false;
    *top(render) = pith_bool(result);
    return true;
}

static bool op_chain(pith_render *render, const pith_instruction *in) {
    pith_value right = pop(render);
    bool result;
    if (!pith_operator_compare(render, (pith_comparison)in->b, *top(render), right, &result))
        return false;
    *top(render) = result ? right : pith_bool(false);
    if (!result) jump(render, in->a);
    return true;
}

static bool op_jump(pith_render *render, const pith_instruction *in) {
    jump(render, in->a);
    return true;
}

static bool op_jump_if_false(pith_render *render, const pith_instruction *in) {
    if (!pith_value_truth(pop(render))) jump(render, in->a);
    return true;
}

static bool op_and_or(pith_render *render, const pith_instruction *in) {
    if (pith_value_truth(*top(render)) == (in->op == PITH_OPCODE_OR)) {
        jump(render, in->a);
    } else {
        render->n_stack--;
    }
    return true;
}

static bool op_missing(pith_render *render, const pith_instruction *in) {
    const pith_string *name = render->program->constants[in->a].as.string;
    const char *what = in->op == PITH_OPCODE_NO_TEST ? "test" : "filter";
    return pith_render_fail(render, "there is no %s named '%.*s'", what,
                            (int)(name->size < 60 ? name->size : 60), name->data);
}

static bool op_halt(pith_render *render, const pith_instruction *in) {
    (void)in;
    render->next = NULL;
    return true;
}

static pith_handler *const handlers[PITH_OPCODE_COUNT] = {
    [PITH_OPCODE_HALT] = op_halt,
    [PITH_OPCODE_TEXT] = op_text,
    [PITH_OPCODE_PRINT] = op_print,
    [PITH_OPCODE_CONST] = op_const,
    [PITH_OPCODE_LOAD] = pith_op_load,
    [PITH_OPCODE_STORE] = pith_op_store,
    [PITH_OPCODE_STORE_FIELD] = pith_op_store_field,
    [PITH_OPCODE_UNPACK] = op_unpack,
    [PITH_OPCODE_ATTRIBUTE] = op_attribute,
    [PITH_OPCODE_ITEM] = op_item,
    [PITH_OPCODE_SLICE] = op_slice,
    [PITH_OPCODE_LIST] = op_list,
    [PITH_OPCODE_TUPLE] = op_tuple,
    [PITH_OPCODE_DICT] = op_dict,
    [PITH_OPCODE_BINARY] = op_binary,
    [PITH_OPCODE_UNARY] = op_unary,
    [PITH_OPCODE_COMPARE] = op_compare,
    [PITH_OPCODE_CHAIN] = op_chain,
    [PITH_OPCODE_JUMP] = op_jump,
    [PITH_OPCODE_JUMP_IF_FALSE] = op_jump_if_false,
    [PITH_OPCODE_AND] = op_and_or,
    [PITH_OPCODE_OR] = op_and_or,
    [PITH_OPCODE_UNDEFINED] = op_undefined,
    [PITH_OPCODE_CALL] = pith_op_call,
    [PITH_OPCODE_FILTER] = pith_op_filter,
    [PITH_OPCODE_TEST] = pith_op_test,
    [PITH_OPCODE_NO_FILTER] = op_missing,
    [PITH_OPCODE_NO_TEST] = op_missing,
    [PITH_OPCODE_MACRO] = pith_op_macro,
    [PITH_OPCODE_IF_BOUND] = pith_op_if_bound,
    [PITH_OPCODE_RETURN] = pith_op_return,
    [PITH_OPCODE_SCOPE_PUSH] = pith_op_scope_push,
    [PITH_OPCODE_SCOPE_POP] = pith_op_scope_pop,
    [PITH_OPCODE_CAPTURE] = pith_op_capture,
    [PITH_OPCODE_CAPTURE_END] = pith_op_capture_end,
    [PITH_OPCODE_LOOP_ENTER] = pith_op_loop_enter,
    [PITH_OPCODE_LOOP_BEGIN] = pith_op_loop_begin,
    [PITH_OPCODE_LOOP_NEXT] = pith_op_loop_next,
    [PITH_OPCODE_LOOP_KEEP] = pith_op_loop_keep,
    [PITH_OPCODE_LOOP_REWIND] = pith_op_loop_rewind,
    [PITH_OPCODE_LOOP_CHECK] = pith_op_loop_check,
    [PITH_OPCODE_LOOP_END] = pith_op_loop_end,
};

bool pith_machine_run(pith_render *render) {
    while (render->next != NULL) {
        const pith_instruction *in = render->running = render->next++;
        bool ok = handlers[in->op](render, in);
        if (!pith_heap_charge(&render->heap, 1) || !ok) return pith_machine_report(render);
    }
    return true;
}
