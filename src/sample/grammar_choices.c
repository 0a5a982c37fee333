/* SPDX-License-Identifier: Apache-2.0
 * The simplest grammar: one of some texts, to the byte.
 *
 * Owns nothing but the list of nodes. The builder makes one tree of bytes of the texts, so that
 * thousands cost what a few do. A text that is given twice is one. Read next: grammar_literals.c.
 * */
#include "sample/grammar.h"

#include "base/memory.h"

pith_status pith_grammar_from_choices(const char *const *texts, const size_t *sizes, size_t n,
                                      pith_grammar **out, pith_error *error) {
    *out = NULL;
    if (n == 0) return pith_fail(error, PITH_ERROR_ARGUMENT, "choices: there are none");
    pith_grammar_builder *builder;
    pith_status status = pith_grammar_builder_new(&builder, error);
    if (status != PITH_OK) return status;
    pith_grammar_node *nodes = pith_alloc_array(n, sizeof *nodes);
    if (nodes == NULL) {
        status = pith_fail_memory(error, "choices", n * sizeof *nodes);
    } else {
        for (size_t i = 0; i < n; i++) nodes[i] = pith_grammar_bytes(builder, texts[i], sizes[i]);
        status = pith_grammar_build(builder, pith_grammar_choice(builder, nodes, n), out, error);
    }
    pith_free(nodes);
    pith_grammar_builder_free(builder);
    return status;
}
