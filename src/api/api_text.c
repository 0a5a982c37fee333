/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Text and tokens": text to ids, ids to text, special tokens, streaming.
 *
 * Invariant: an id is checked against the vocabulary before it is looked up, so getters answer NULL
 * or false for any number. Tokenizing copies at most `capacity` ids and always tells how many there
 * are. Algorithms are src/token's. Read next: token/token.h, api_prompt.c. */
#include "api/api_text.h"
#include "api/api_argument.h"
#include "base/memory.h"

pith_status pith_copy_ids(const pith_ids *from, int32_t *ids, size_t capacity, size_t *n_ids,
                          pith_error *error) {
    *n_ids = from->size;
    for (size_t i = 0; i < from->size && i < capacity; i++) ids[i] = from->data[i];
    if (from->size <= capacity) return PITH_OK;
    return pith_fail(error, PITH_ERROR_LIMIT, "the text has %zu tokens, there is room for %zu",
                     from->size, capacity);
}

pith_status pith_check_vocabulary(const pith_model *model, pith_error *error) {
    if (!model) return pith_fail_null(error, "model");
    if (model->tokenizer) return PITH_OK;
    return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                     "the model has no vocabulary: it can only be used with ids");
}

pith_status pith_tokenize(const pith_model *model, const char *text, size_t size, unsigned flags,
                          int32_t *ids, size_t capacity, size_t *n_ids, pith_error *error) {
    const unsigned known = PITH_TOKENIZE_ADD_SPECIAL | PITH_TOKENIZE_PARSE_SPECIAL;
    if (!n_ids) return pith_fail_null(error, "n_ids");
    *n_ids = 0;
    pith_status status = pith_check_vocabulary(model, error);
    if (status != PITH_OK) return status;
    if (!text && size > 0) return pith_fail_null(error, "text");
    if (!ids && capacity > 0) return pith_fail_null(error, "ids");
    if ((flags & ~known) != 0) {
        return pith_fail(error, PITH_ERROR_ARGUMENT, "flags %#x has bits that are not known",
                         flags);
    }
    pith_ids found = {0};
    pith_text_span span = {{text, size}, (flags & PITH_TOKENIZE_PARSE_SPECIAL) != 0};
    status = pith_tokenizer_encode(model->tokenizer, &span, 1,
                                   (flags & PITH_TOKENIZE_ADD_SPECIAL) != 0, &found, error);
    if (status == PITH_OK) status = pith_copy_ids(&found, ids, capacity, n_ids, error);
    pith_ids_deinit(&found);
    return status;
}

const char *pith_token_text(const pith_model *model, int32_t id, size_t *size) {
    pith_span text = {NULL, 0};
    if (model && model->tokenizer) text = pith_tokenizer_bytes(model->tokenizer, id);
    if (size) *size = text.size;
    return text.data;
}

const char *pith_token_piece(const pith_model *model, int32_t id) {
    return model && model->tokenizer ? pith_tokenizer_piece(model->tokenizer, id).data : NULL;
}

bool pith_token_is_end(const pith_model *model, int32_t id) {
    return model && pith_model_is_end(model, id);
}

bool pith_token_is_control(const pith_model *model, int32_t id) {
    if (!model || !model->tokenizer || !pith_tokenizer_piece(model->tokenizer, id).data)
        return false;
    return pith_tokenizer_type(model->tokenizer, id) == PITH_TOKEN_CONTROL;
}

int32_t pith_special_token(const pith_model *model, pith_special which) {
    if (!model || !model->tokenizer) return -1;
    if ((int)which < PITH_SPECIAL_BOS || which > PITH_SPECIAL_PAD) return -1;
    return pith_tokenizer_special(model->tokenizer, which);
}

struct pith_detokenizer {
    pith_detok detok;
};

pith_status pith_detokenizer_new(const pith_model *model, bool show_control, pith_detokenizer **out,
                                 pith_error *error) {
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    pith_status status = pith_check_vocabulary(model, error);
    if (status != PITH_OK) return status;
    pith_detokenizer *detokenizer = pith_alloc_zero(1, sizeof *detokenizer);
    if (!detokenizer) return pith_fail_memory(error, "detokenizer", sizeof *detokenizer);
    pith_detok_init(&detokenizer->detok, model->tokenizer, show_control);
    if (!detokenizer->detok.text.data) {
        pith_free(detokenizer);
        return pith_fail_memory(error, "text of a detokenizer", 0);
    }
    *out = detokenizer;
    return PITH_OK;
}

void pith_detokenizer_free(pith_detokenizer *detokenizer) {
    if (!detokenizer) return;
    pith_detok_deinit(&detokenizer->detok);
    pith_free(detokenizer);
}

const char *pith_detokenizer_push(pith_detokenizer *detokenizer, int32_t id, size_t *size) {
    pith_span text = {"", 0};
    if (detokenizer) text = pith_detok_push(&detokenizer->detok, id);
    if (size) *size = text.size;
    return text.data ? text.data : "";
}
