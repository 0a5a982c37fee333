/* SPDX-License-Identifier: Apache-2.0
 * From the context of a chat template to ids: a model's special tokens are filled in, the template
 * is rendered, and what it rendered is tokenized.
 *
 * Invariant: a control token in the ids of a prompt was written by the template. What a user
 * wrote stays text, however it looks. BOS comes exactly once where the vocabulary asks for one,
 * also when the template prints it. */
#include "base/memory.h"
#include "engine/engine.h"

#include <string.h>

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

pith_status pith_prompt_compose(const pith_model *model, const pith_template *tpl, json_t *context,
                                int64_t now, pith_rendered *out, pith_error *error) {
    static const char *const trusted[] = {"bos_token", "eos_token", NULL};
    pith_status status = add_specials(model, context, error);
    if (status != PITH_OK) return status;
    return pith_template_render(tpl, context, trusted, now, out, error);
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

pith_status pith_prompt_encode(const pith_model *model, const pith_rendered *rendered, size_t from,
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
