/* SPDX-License-Identifier: Apache-2.0
 * One rendering: its heap, the machine's stacks, and how native functions report failure.
 *
 * Nothing here recurses. A macro call pushes a frame; captures (set blocks, macros) are a chain of
 * sinks; scopes are a chain towards the root scope, which is an array with one place per symbol. */
#ifndef PITH_CHAT_RENDER_H
#define PITH_CHAT_RENDER_H

#include "chat/chat.h"
#include "chat/program.h"

typedef struct pith_binding {
    int32_t symbol;
    pith_value value;
} pith_binding;

typedef struct pith_scope pith_scope;
struct pith_scope {         /* any but the root, which is pith_render.root */
    pith_scope *outer;      /* where it stands in the template; NULL: the root */
    pith_binding *bindings; /* [n] */
    size_t n, capacity;
    bool is_captured; /* a macro or loop made inside may outlive it: it must not be used again */
};

typedef struct pith_sink pith_sink;
struct pith_sink { /* where output goes */
    pith_sink *outer;
    pith_builder builder;
};

struct pith_macro {
    const pith_macro_code *code;
    const pith_instruction *entry;
    pith_scope *scope; /* where it was defined */
};

struct pith_loop {
    pith_loop *outer; /* running around this one, in the same call */
    const pith_list *items;
    size_t index;                  /* of the current item; SIZE_MAX before the first */
    size_t depth;                  /* 0, and one more in each recursive call */
    pith_list *kept;               /* items that passed the loop's `if`, while they are chosen */
    pith_scope *scope;             /* around the loop */
    pith_scope *body;              /* of the current item */
    pith_sink *sink;               /* around the loop */
    const pith_instruction *entry; /* of a recursive loop: its LOOP_BEGIN */
    const pith_list *changed;      /* what loop.changed() was last asked about */
    bool has_run;                  /* the body ran */
};

typedef struct pith_frame {
    const pith_instruction *back; /* where to continue */
    pith_scope *scope;
    pith_sink *sink;
    pith_loop *loop;
    bool is_captured; /* push what was written */
} pith_frame;

/* What is rendered, and how far it may go: the published limits, or less (tests, fuzzing). */
typedef struct pith_render_task {
    const json_t *context;
    const char *const *trusted; /* as in pith_template_render; may be NULL */
    int64_t now;
    size_t memory_limit, output_limit; /* bytes */
    uint64_t step_limit;
} pith_render_task;
pith_status pith_template_render_task(const pith_template *tpl, const pith_render_task *task,
                                      pith_rendered *out, pith_error *error);

typedef struct pith_render pith_render;
struct pith_render {
    pith_heap heap;
    const pith_program *program;
    const pith_instruction *running, *next;
    pith_value *root;  /* [n_symbols] variables of the outermost scope; ABSENT: not set */
    pith_scope *scope; /* NULL: the root */
    pith_sink *sink;
    pith_loop *loop;
    size_t loop_depth; /* of the next loop to begin */
    pith_value *stack; /* [stack_capacity], owned */
    size_t n_stack, stack_capacity;
    pith_frame frames[PITH_TEMPLATE_MAX_DEPTH];
    size_t n_frames;
    size_t n_native; /* filters that call filters, at the moment */
    size_t output_limit;
    int64_t now; /* for strftime_now; -1: the clock */
    pith_status status;
    pith_error *error;
};

/* "line N: sentence", PITH_ERROR_TEMPLATE. Always false, so that a function ends with `return
 * pith_render_fail(...)`. */
bool pith_render_fail(pith_render *render, const char *format, ...) PITH_PRINTF(2, 3);
/* The template's own message, as it is. */
bool pith_render_raise(pith_render *render, const pith_string *message);
/* What a use of an undefined value does. */
bool pith_render_fail_undefined(pith_render *render, pith_value undefined);
/* Puts value into *out; false when it is ABSENT, which means that memory ran out. */
bool pith_render_give(pith_value value, pith_value *out);

/* ---- machine.c, machine_scope.c, machine_call.c, machine_loop.c ---- */

bool pith_machine_init(pith_render *render); /* the stack and the outermost sink */
bool pith_machine_run(pith_render *render);
/* Turns a fault of the heap into a sentence, unless there is one already. Always false. */
bool pith_machine_report(pith_render *render);
bool pith_machine_push(pith_render *render, pith_value value);
bool pith_machine_write(pith_render *render, const pith_string *string);

/* An instruction's work. */
typedef bool pith_handler(pith_render *render, const pith_instruction *in);
pith_handler pith_op_load, pith_op_store, pith_op_store_field, pith_op_scope_push,
    pith_op_scope_pop;
pith_handler pith_op_capture, pith_op_capture_end, pith_op_if_bound;
pith_handler pith_op_call, pith_op_filter, pith_op_test, pith_op_macro, pith_op_return;
pith_handler pith_op_loop_enter, pith_op_loop_begin, pith_op_loop_next, pith_op_loop_keep,
    pith_op_loop_rewind;
pith_handler pith_op_loop_check, pith_op_loop_end;

pith_scope *pith_scope_push(pith_render *render,
                            pith_scope *outer); /* becomes the current one; NULL without memory */
bool pith_scope_bind(pith_render *render, pith_scope *scope, int32_t symbol, pith_value value);
void pith_scope_capture(pith_scope *scope); /* and all around it */
bool pith_sink_push(pith_render *render);
/* Pops a frame's worth: pushes a frame that continues at `entry`. */
bool pith_frame_push(pith_render *render, const pith_instruction *entry, bool is_captured);
/* loop.index, loop.cycle, ...; ABSENT when there is no such attribute. */
bool pith_loop_attribute(pith_render *render, pith_loop *loop, const pith_string *name,
                         pith_value *out);

/* ---- operators.c, access.c, repr.c ---- */

bool pith_operator_binary(pith_render *render, pith_binary op, pith_value a, pith_value b,
                          pith_value *out);
bool pith_operator_unary(pith_render *render, pith_unary op, pith_value a, pith_value *out);
bool pith_operator_compare(pith_render *render, pith_comparison op, pith_value a, pith_value b,
                           bool *out);
/* value.name and value[key]: missing gives an undefined value. */
bool pith_access_attribute(pith_render *render, pith_value value, const pith_string *name,
                           pith_value *out);
bool pith_access_item(pith_render *render, pith_value value, pith_value key, pith_value *out);
bool pith_access_slice(pith_render *render, pith_value value, const pith_value part[3],
                       pith_value *out);

/* str(value); the string itself when it is one. NULL after a failure. */
const pith_string *pith_value_str(pith_render *render, pith_value value);
/* Appends str(value) or repr(value). */
bool pith_value_print(pith_render *render, pith_builder *builder, pith_value value);
bool pith_value_repr(pith_render *render, pith_builder *builder, pith_value value);
/* HTML-escaped, unless it is marked safe already; marked safe. */
const pith_string *pith_value_escape(pith_render *render, pith_value value);

#endif
