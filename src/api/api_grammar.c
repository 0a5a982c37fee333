/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Constrained output": grammars from their four kinds of texts.
 *
 * Invariant: a grammar that was handed out can be enforced as a whole; what cannot is refused here.
 * Grammars are src/sample's, the model's vocabulary is asked through src/engine. */
#include "api/api_argument.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "sample/grammar.h"

#include <string.h>

static int32_t find_token(void *user, const char *text, size_t size) {
    return pith_model_find_token(user, (pith_span){text, size});
}

static pith_status from_gbnf(const pith_model *model, pith_span text, pith_grammar **out,
                             pith_error *error) {
    pith_grammar_tokens tokens = {(void *)(uintptr_t)model, find_token};
    return pith_grammar_from_gbnf(text.data, text.size, model ? &tokens : NULL, out, error);
}

/* One choice a line; a line break at the end begins no other. */
static pith_status from_lines(pith_span text, pith_grammar **out, pith_error *error) {
    size_t n = 1, k = 0;
    if (text.size > 0 && text.data[text.size - 1] == '\n') text.size--;
    for (size_t i = 0; i < text.size; i++) n += text.data[i] == '\n';
    const char **texts = pith_alloc_array(n, sizeof *texts);
    size_t *sizes = pith_alloc_array(n, sizeof *sizes);
    pith_status status;
    if (texts == NULL || sizes == NULL) {
        status = pith_fail_memory(error, "choices", n * (sizeof *texts + sizeof *sizes));
    } else {
        for (size_t i = 0, first = 0; i <= text.size; i++) {
            if (i < text.size && text.data[i] != '\n') continue;
            texts[k] = text.data + first;
            sizes[k++] = i - first;
            first = i + 1;
        }
        status = pith_grammar_from_choices(texts, sizes, n, out, error);
    }
    pith_free(texts);
    pith_free(sizes);
    return status;
}

pith_status pith_grammar_new(const pith_model *model, pith_grammar_kind kind, const char *text,
                             size_t size, pith_grammar **out, pith_error *error) {
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    if (!text) return pith_fail_null(error, "text");
    if (size > PITH_GRAMMAR_MAX_TEXT)
        return pith_fail(error, PITH_ERROR_LIMIT, "the grammar has %zu bytes; at most %d are read",
                         size, PITH_GRAMMAR_MAX_TEXT);
    switch (kind) {
    case PITH_GRAMMAR_GBNF: return from_gbnf(model, (pith_span){text, size}, out, error);
    case PITH_GRAMMAR_JSON_SCHEMA: return pith_grammar_from_schema(text, size, out, error);
    case PITH_GRAMMAR_REGEX: return pith_grammar_from_regex(text, size, out, error);
    case PITH_GRAMMAR_CHOICES: return from_lines((pith_span){text, size}, out, error);
    }
    return pith_fail(error, PITH_ERROR_ARGUMENT, "%d is no kind of grammar", (int)kind);
}

void pith_grammar_free(pith_grammar *grammar) {
    pith_grammar_drop(grammar);
}
