/* SPDX-License-Identifier: Apache-2.0
 *
 * Is a JSON text valid by a schema? Asked of arguments that no grammar held to their schema.
 *
 * The schema is read as for a grammar (json_schema_tree.c) and values are checked as the compiler
 * checks those of enum and const (json_schema_value.c), so there is one reading of each keyword.
 * Nothing is written, so more schemas can be checked than enforced: alternatives need not be kept
 * apart.
 *
 * Invariant: what cannot be decided of some value is refused when the check is made, so the answer
 * does not depend on what was asked before. A value that takes too long is not valid.
 */
#include "sample/json_schema.h"

#include "base/memory.h"
#include "sample/json_format.h"
#include "sample/schema_part.h"

#include <string.h>

/* Of making the patterns, and of each value: some hundredths of a second at most. */
enum { MOST_STEPS = 1 << 20 };

struct pith_schema_check {
    pith_schema schema;
};

static bool make_pattern(pith_schema *schema, uint32_t node, pith_schema_word word,
                         const char *text) {
    uint32_t pattern = pith_schema_pattern_of(schema, node, word, pith_span_of(text));
    return pattern != PITH_SCHEMA_NONE && pith_schema_make_automaton(schema, pattern);
}

/* What a keyword needs before values are checked by it. */
static bool prepare(pith_schema *schema, uint32_t node, const pith_schema_entry *entry) {
    const char *text = json_string_value(entry->value);
    switch (entry->word) {
    case PITH_WORD_PATTERN: return make_pattern(schema, node, entry->word, text);
    case PITH_WORD_FORMAT:
        return pith_json_format_pattern(text) == NULL ||
               make_pattern(schema, node, entry->word, text);
    case PITH_WORD_PATTERN_PROPERTIES:
        for (uint32_t child = entry->child; child < entry->child + entry->n_children; child++) {
            if (!make_pattern(schema, child, PITH_WORD_NONE, schema->tree.nodes[child].key))
                return false;
        }
        return true;
    case PITH_WORD_UNEVALUATED_ITEMS:
    case PITH_WORD_UNEVALUATED_PROPERTIES:
        return json_is_true(entry->value) ||
               pith_schema_fail(&schema->tree, PITH_ERROR_UNSUPPORTED, node, entry->word,
                                "values cannot be checked by this keyword");
    default: return true;
    }
}

static bool prepare_all(pith_schema *schema) {
    for (uint32_t node = 0; node < schema->tree.n_nodes; node++) {
        const pith_schema_node *n = &schema->tree.nodes[node];
        for (uint32_t i = 0; i < n->n_entries; i++) {
            if (!prepare(schema, node, &schema->tree.entries[n->first_entry + i])) return false;
        }
    }
    return true;
}

pith_status pith_schema_check_new(json_t *schema, pith_schema_check **out, pith_error *error) {
    pith_schema_check *check = pith_alloc_zero(1, sizeof *check);
    *out = NULL;
    if (check == NULL) return pith_fail_memory(error, "a check of values", sizeof *check);
    check->schema = (pith_schema){.listed = PITH_SCHEMA_NONE, .step_limit = MOST_STEPS};
    if (pith_schema_tree_init(&check->schema.tree, json_incref(schema), "", error) &&
        prepare_all(&check->schema)) {
        check->schema.tree.error = NULL; /* it ends with this call */
        *out = check;
        return PITH_OK;
    }
    pith_status status = check->schema.tree.status;
    pith_schema_check_free(check);
    return status;
}

void pith_schema_check_free(pith_schema_check *check) {
    if (check == NULL) return;
    pith_schema_deinit(&check->schema);
    pith_free(check);
}

pith_status pith_schema_check_text(pith_schema_check *check, pith_span text, bool *valid) {
    pith_schema *schema = &check->schema;
    json_t *value;
    *valid = false;
    pith_status status = pith_schema_read(text, "a value", &value, NULL);
    if (status != PITH_OK) return status == PITH_ERROR_MEMORY ? status : PITH_OK;
    bool holds;
    schema->tree.status = PITH_OK;
    schema->steps = 0;
    *valid = pith_schema_validate(schema, 0, value, &holds) && holds;
    json_decref(value);
    return schema->tree.status == PITH_ERROR_MEMORY ? PITH_ERROR_MEMORY : PITH_OK;
}
