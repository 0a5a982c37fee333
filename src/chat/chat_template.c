/* SPDX-License-Identifier: Apache-2.0
 *
 * The room's front: compiling and rendering.
 *
 *   text -> lexer -> tokens -> parser -> program          once
 *   program + context -> machine -> text with authors     for each prompt
 *
 * Invariants: a compiled template is never written to; a rendering owns its heap, stack and frames
 * and frees them on every path; on failure the result is empty.
 *
 * Read next: parser.h, program.h, machine.c, string_value.h.
 */
#include "base/memory.h"
#include "chat/context.h"
#include "chat/native.h"
#include "chat/parser.h"

#include <string.h>

struct pith_template {
    pith_program program;
};

static pith_status compile(pith_span text, pith_program *program, pith_error *error) {
    pith_tokens tokens;
    if (!pith_program_init(program)) return pith_fail_memory(error, "a template", text.size);
    program->source = pith_heap_text(&program->heap, text.size);
    if (program->source == NULL) return pith_fail_memory(error, "a template", text.size);
    program->source_size = pith_lexer_normalize(text, program->source);
    pith_status status =
        pith_lexer_run((pith_span){program->source, program->source_size}, &tokens, error);
    if (status != PITH_OK) return status;
    status = pith_parser_run(&tokens, program, error);
    pith_tokens_deinit(&tokens);
    return status;
}

pith_status pith_template_new(pith_span text, pith_template **out, pith_error *error) {
    *out = NULL;
    if (text.size > PITH_TEMPLATE_MAX_BYTES) {
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "a template has %zu bytes, but at most %d are allowed", text.size,
                         PITH_TEMPLATE_MAX_BYTES);
    }
    pith_template *tpl = pith_alloc_zero(1, sizeof *tpl);
    if (tpl == NULL) return pith_fail_memory(error, "a template", sizeof *tpl);
    pith_status status = compile(text, &tpl->program, error);
    if (status == PITH_OK) {
        *out = tpl;
    } else {
        pith_template_free(tpl);
    }
    return status;
}

void pith_template_free(pith_template *tpl) {
    if (tpl == NULL) return;
    pith_program_deinit(&tpl->program);
    pith_free(tpl);
}

/* ---- rendering ---- */

static void load_globals(pith_render *render) {
    for (size_t i = 0; i < render->program->n_symbols; i++) {
        pith_span name = pith_string_span(render->program->symbols[i]);
        const pith_function *function = pith_function_find(pith_globals, name);
        render->root[i] = (pith_value){.kind = PITH_KIND_ABSENT};
        if (function != NULL)
            render->root[i] = (pith_value){PITH_KIND_FUNCTION, {.function = function}};
    }
}

static bool prepare(pith_render *render, const pith_render_task *task) {
    render->root = pith_heap_array(&render->heap, render->program->n_symbols, sizeof *render->root);
    if (render->root == NULL) return false;
    load_globals(render);
    return pith_context_load(render, task->context, task->trusted) && pith_machine_init(render);
}

/* The text of the outermost sink, with its spans. */
static pith_status give_result(pith_render *render, pith_rendered *out) {
    const pith_string *text = pith_builder_finish(&render->sink->builder);
    if (text == NULL)
        return pith_fail_memory(render->error, "a rendered template", render->heap.used);
    size_t n = text->size == 0 ? 0 : text->n_pieces == 0 ? 1 : text->n_pieces;
    pith_buffer_append(&out->text, text->data, text->size);
    out->spans = pith_alloc_array(n, sizeof *out->spans);
    if (out->text.failed || out->spans == NULL) {
        pith_rendered_deinit(out);
        return pith_fail_memory(render->error, "a rendered template", text->size);
    }
    out->n_spans = n;
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        size_t end = text->n_pieces == 0 ? text->size : text->pieces[i].end;
        bool is_user = text->n_pieces == 0 ? text->is_user : text->pieces[i].is_user;
        out->spans[i] = (pith_rendered_span){from, end - from, is_user};
        from = end;
    }
    return PITH_OK;
}

pith_status pith_template_render_task(const pith_template *tpl, const pith_render_task *task,
                                      pith_rendered *out, pith_error *error) {
    *out = (pith_rendered){.n_spans = 0};
    if (!json_is_object(task->context)) {
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "the context of a template must be a JSON object");
    }
    pith_render *render = pith_alloc_zero(1, sizeof *render);
    if (render == NULL) return pith_fail_memory(error, "rendering a template", sizeof *render);
    pith_heap_init(&render->heap, task->memory_limit, task->step_limit);
    render->program = &tpl->program;
    render->output_limit = task->output_limit;
    render->now = task->now;
    render->error = error;
    pith_status status;
    if (!prepare(render, task)) {
        pith_machine_report(render);
        status = render->status;
    } else {
        status = pith_machine_run(render) ? give_result(render, out) : render->status;
    }
    pith_free(render->stack);
    pith_heap_deinit(&render->heap);
    pith_free(render);
    return status;
}

pith_status pith_template_render(const pith_template *tpl, const json_t *context,
                                 const char *const *trusted, int64_t now, pith_rendered *out,
                                 pith_error *error) {
    pith_render_task task = {.context = context,
                             .trusted = trusted,
                             .now = now,
                             .memory_limit = PITH_TEMPLATE_MAX_MEMORY,
                             .output_limit = PITH_TEMPLATE_MAX_OUTPUT,
                             .step_limit = PITH_TEMPLATE_MAX_STEPS};
    return pith_template_render_task(tpl, &task, out, error);
}

void pith_rendered_deinit(pith_rendered *rendered) {
    pith_buffer_deinit(&rendered->text);
    pith_free(rendered->spans);
    *rendered = (pith_rendered){.n_spans = 0};
}
