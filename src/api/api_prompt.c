/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Chat templates": messages to a prompt whose spans remember who wrote them, and the
 * prompt to ids (src/engine/prompt.c). */
#include "api/api_argument.h"
#include "api/api_text.h"
#include "base/memory.h"
#include "engine/engine.h"

struct pith_prompt {
    pith_rendered rendered;
};

static pith_status render(const pith_model *model, const char *template_text, json_t *context,
                          pith_rendered *rendered, pith_error *error) {
    pith_template *template = NULL;
    if (!json_is_object(context)) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "context_json is not an object");
    }
    pith_status status = pith_template_new(pith_span_of(template_text), &template, error);
    if (status == PITH_OK)
        status = pith_prompt_compose(model, template, context, -1, rendered, error);
    pith_template_free(template);
    return status;
}

pith_status pith_prompt_render(const pith_model *model, const char *template_text,
                               const char *context_json, pith_prompt **out, pith_error *error) {
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    if (!model && !template_text) return pith_fail_null(error, "model, with template_text,");
    if (!context_json) return pith_fail_null(error, "context_json");
    if (!template_text) template_text = model->chat_template;
    if (!template_text) {
        return pith_fail(error, PITH_ERROR_NOT_FOUND,
                         "the model has no chat template: give one, or use the text as it stands");
    }
    pith_prompt *prompt = pith_alloc_zero(1, sizeof *prompt);
    if (!prompt) return pith_fail_memory(error, "prompt", sizeof *prompt);
    json_t *context = NULL;
    pith_status status = pith_json_parse(pith_span_of(context_json), &context, error);
    if (status == PITH_OK) status = render(model, template_text, context, &prompt->rendered, error);
    json_decref(context);
    if (status != PITH_OK) {
        pith_prompt_free(prompt);
        return status;
    }
    *out = prompt;
    return PITH_OK;
}

void pith_prompt_free(pith_prompt *prompt) {
    if (!prompt) return;
    pith_rendered_deinit(&prompt->rendered);
    pith_free(prompt);
}

const char *pith_prompt_text(const pith_prompt *prompt, size_t *size) {
    const pith_buffer *text = prompt ? &prompt->rendered.text : NULL;
    if (size) *size = text ? text->size : 0;
    return text && text->data ? text->data : "";
}

pith_status pith_prompt_tokenize_from(const pith_model *model, const pith_prompt *prompt,
                                      size_t from, int32_t *ids, size_t capacity, size_t *n_ids,
                                      pith_error *error) {
    if (!n_ids) return pith_fail_null(error, "n_ids");
    *n_ids = 0;
    pith_status status = pith_check_vocabulary(model, error);
    if (status != PITH_OK) return status;
    if (!prompt) return pith_fail_null(error, "prompt");
    if (!ids && capacity > 0) return pith_fail_null(error, "ids");
    if (from > prompt->rendered.text.size) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "from is %zu, but the prompt has %zu bytes",
                         from, prompt->rendered.text.size);
    }
    pith_ids found = {0};
    status = pith_prompt_encode(model, &prompt->rendered, from, &found, error);
    if (status == PITH_OK) status = pith_copy_ids(&found, ids, capacity, n_ids, error);
    pith_ids_deinit(&found);
    return status;
}

pith_status pith_prompt_tokenize(const pith_model *model, const pith_prompt *prompt, int32_t *ids,
                                 size_t capacity, size_t *n_ids, pith_error *error) {
    return pith_prompt_tokenize_from(model, prompt, 0, ids, capacity, n_ids, error);
}
