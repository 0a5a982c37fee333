/* SPDX-License-Identifier: Apache-2.0
 * A model's vocabulary as the tree that constrained output walks, and what a grammar may ask of it.
 *
 * The tree is made when it is first asked for, which takes some 40 ms for 150,000 tokens, and lives
 * as long as the model. A model is shared between threads: two that come at once both make one, the
 * first to publish it wins and the other's is thrown away. Tokens that only a template writes
 * (control, unused) have no text here, so that no grammar lets a model write them; ids that end a
 * reply end the text. Read next: sample/grammar.h. */
#include "engine/engine.h"

#include "base/memory.h"
#include "sample/grammar.h"

static bool has_text(const pith_model *model, int32_t id) {
    pith_token_type type = pith_tokenizer_type(model->tokenizer, id);
    return type == PITH_TOKEN_NORMAL || type == PITH_TOKEN_USER_DEFINED || type == PITH_TOKEN_BYTE;
}

static pith_status make_trie(const pith_model *model, pith_token_trie **out, pith_error *error) {
    const size_t n_known = pith_tokenizer_size(model->tokenizer);
    const size_t n = model->hparams.n_vocab > 0 ? model->hparams.n_vocab : n_known;
    pith_span *pieces = pith_alloc_zero(n, sizeof *pieces);
    bool *is_end = pith_alloc_zero(n, sizeof *is_end);
    pith_status status;
    if (pieces == NULL || is_end == NULL) {
        status = pith_fail_memory(error, "the vocabulary's tree", n * sizeof *pieces);
    } else {
        for (size_t i = 0; i < n && i < n_known; i++) {
            is_end[i] = pith_model_is_end(model, (int32_t)i);
            if (has_text(model, (int32_t)i))
                pieces[i] = pith_tokenizer_bytes(model->tokenizer, (int32_t)i);
        }
        status = pith_token_trie_new(pieces, is_end, (int32_t)n, out, error);
    }
    pith_free(pieces);
    pith_free(is_end);
    return status;
}

/* The one part of a model that is written after it was opened. */
static pith_model_trie *trie_of(const pith_model *model) {
    return &((pith_model *)(uintptr_t)model)->trie;
}

pith_status pith_model_get_trie(const pith_model *model, const pith_token_trie **out,
                                pith_error *error) {
    pith_model_trie *kept = trie_of(model);
    pith_token_trie *trie = atomic_load_explicit(kept, memory_order_acquire);
    *out = trie;
    if (trie != NULL) return PITH_OK;
    if (model->tokenizer == NULL || pith_tokenizer_size(model->tokenizer) == 0)
        return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                         "the model has no vocabulary that a grammar could choose from");
    pith_status status = make_trie(model, &trie, error);
    if (status != PITH_OK) return status;
    pith_token_trie *other = NULL;
    if (!atomic_compare_exchange_strong_explicit(kept, &other, trie, memory_order_acq_rel,
                                                 memory_order_acquire)) {
        pith_token_trie_free(trie);
        trie = other;
    }
    *out = trie;
    return PITH_OK;
}

void pith_model_drop_trie(pith_model *model) {
    pith_token_trie_free(atomic_exchange_explicit(&model->trie, NULL, memory_order_acq_rel));
}

int32_t pith_model_find_token(const pith_model *model, pith_span text) {
    if (model->tokenizer == NULL) return -1;
    int32_t named = pith_tokenizer_find(model->tokenizer, text);
    if (named >= 0) return named;
    pith_ids ids = {0};
    pith_text_span span = {text, true};
    pith_status status = pith_tokenizer_encode(model->tokenizer, &span, 1, false, &ids, NULL);
    int32_t id = status == PITH_OK && ids.size == 1 ? ids.data[0] : -1;
    pith_ids_deinit(&ids);
    return id;
}
