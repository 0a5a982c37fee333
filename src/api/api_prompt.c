/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Chat templates": messages to a prompt whose spans remember who wrote them, and the
 * prompt to ids.
 *
 * Invariant: a control token in the ids of a prompt was written by the template. What a user
 * wrote stays text, however it looks. BOS comes exactly once where the vocabulary asks for one,
 * also when the template prints it. */
#include "api/api_argument.h"
#include "api/api_text.h"
#include "base/memory.h"
#include "chat/chat.h"

#include <string.h>

struct pith_prompt {
    pith_rendered rendered;
};

/* Sets bos_token and eos_token where the caller did not. */
static pith_status add_specials(const pith_model *model, json_t *context, pith_error *error) {
    static const struct {
        const char *name;
        pith_special which;
    } specials[] = {{"bos_token", PITH_SPECIAL_BOS}, {"eos_token", PITH_SPECIAL_EOS}};
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        if (!model || !model->tokenizer || json_object_get(context, specials[i].name)) continue;
        int32_t id = pith_tokenizer_special(model->tokenizer, specials[i].which);
        pith_span piece = pith_tokenizer_piece(model->tokenizer, id);
        json_t *text = json_stringn_nocheck(piece.data ? piece.data : "", piece.size);
        if (json_object_set_new(context, specials[i].name, text) != 0) {
            return pith_fail_memory(error, "special tokens of a template", piece.size);
        }
    }
    return PITH_OK;
}

static pith_status render(const pith_model *model, const char *template_text, json_t *context,
                          pith_rendered *rendered, pith_error *error) {
    static const char *const trusted[] = {"bos_token", "eos_token", NULL};
    pith_template *template = NULL;
    if (!json_is_object(context)) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "context_json is not an object");
    }
    pith_status status = add_specials(model, context, error);
    if (status == PITH_OK) {
        status = pith_template_new(pith_span_of(template_text), &template, error);
    }
    if (status == PITH_OK) {
        status = pith_template_render(template, context, trusted, -1, rendered, error);
    }
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

/* The spans of the text from byte `from` on. */
static size_t spans_from(const pith_rendered *rendered, size_t from, pith_text_span *spans) {
    size_t n = 0;
    for (size_t i = 0; i < rendered->n_spans; i++) {
        const pith_rendered_span *span = &rendered->spans[i];
        size_t skip = from > span->offset ? from - span->offset : 0;
        if (skip >= span->size) continue;
        spans[n++] = (pith_text_span){
            {rendered->text.data + span->offset + skip, span->size - skip}, !span->is_user};
    }
    return n;
}

/* Puts BOS in front unless it is there. */
static bool add_bos(const pith_tokenizer *tokenizer, pith_ids *ids) {
    int32_t bos = pith_tokenizer_special(tokenizer, PITH_SPECIAL_BOS);
    if (!pith_tokenizer_adds_bos(tokenizer) || bos < 0) return true;
    if (ids->size > 0 && ids->data[0] == bos) return true;
    if (!pith_ids_append(ids, bos)) return false;
    memmove(ids->data + 1, ids->data, (ids->size - 1) * sizeof *ids->data);
    ids->data[0] = bos;
    return true;
}

static pith_status encode_from(const pith_model *model, const pith_rendered *rendered, size_t from,
                               pith_ids *ids, pith_error *error) {
    pith_text_span *spans = pith_alloc_array(rendered->n_spans, sizeof *spans);
    if (!spans)
        return pith_fail_memory(error, "spans of a prompt", rendered->n_spans * sizeof *spans);
    size_t n_spans = spans_from(rendered, from, spans);
    pith_status status = pith_tokenizer_encode(model->tokenizer, spans, n_spans, false, ids, error);
    pith_free(spans);
    if (status == PITH_OK && from == 0 && !add_bos(model->tokenizer, ids)) {
        return pith_fail_memory(error, "ids of a prompt", ids->size * sizeof *ids->data);
    }
    return status;
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
    status = encode_from(model, &prompt->rendered, from, &found, error);
    if (status == PITH_OK) status = pith_copy_ids(&found, ids, capacity, n_ids, error);
    pith_ids_deinit(&found);
    return status;
}

pith_status pith_prompt_tokenize(const pith_model *model, const pith_prompt *prompt, int32_t *ids,
                                 size_t capacity, size_t *n_ids, pith_error *error) {
    return pith_prompt_tokenize_from(model, prompt, 0, ids, capacity, n_ids, error);
}
