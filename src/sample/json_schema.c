/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON schema -> grammar: the steps of json_schema.h in their order.
 *
 * Read next: json_schema.h (the idea), json_schema_tree.c, json_schema_expand.c, json_text.h (the
 * form in which JSON is written).
 */
#include "sample/json_schema.h"

#include "sample/schema_part.h"

static bool compile(pith_schema *schema, bool object, pith_grammar_node *out) {
    uint32_t nodes[2] = {0, 0}, n = 1;
    if (object) {
        nodes[n++] = pith_schema_tree_make(&schema->tree, json_pack("{s:s}", "type", "object"), 0);
        if (nodes[1] == PITH_SCHEMA_NONE) return false;
    }
    uint32_t root = pith_schema_set_of(schema, nodes, n);
    if (root == PITH_SCHEMA_NONE) return false;
    if (pith_schema_set_is_false(schema, root)) {
        return pith_schema_fail(&schema->tree, PITH_ERROR_FORMAT, 0, PITH_WORD_NONE,
                                "no value satisfies false");
    }
    return pith_schema_expand_all(schema) && pith_schema_settle(schema) &&
           pith_schema_refuse_contradictions(schema, root) && pith_schema_emit(schema, root, out);
}

pith_grammar_node pith_schema_part(pith_json_text *text, json_t *json, bool object,
                                   const char *place, pith_error *error) {
    pith_schema schema = {
        .text = text, .listed = PITH_SCHEMA_NONE, .step_limit = PITH_SCHEMA_MAX_STEPS};
    pith_grammar_node node = 0;
    bool good =
        pith_schema_tree_init(&schema.tree, json, place, error) && compile(&schema, object, &node);
    if (good && text->failed) good = pith_schema_fail_memory(&schema.tree);
    pith_schema_deinit(&schema);
    return good ? node : 0;
}

pith_grammar_node pith_grammar_add_schema(pith_grammar_builder *builder, const char *json,
                                          size_t size, pith_error *error) {
    json_t *root;
    pith_json_text text;
    pith_grammar_node node = 0;
    if (pith_schema_read((pith_span){json, size}, "JSON schema", &root, error) != PITH_OK) return 0;
    if (pith_json_text_init(&text, builder, error) == PITH_OK) {
        node = pith_schema_part(&text, root, false, "", error);
    } else {
        json_decref(root);
    }
    pith_json_text_deinit(&text);
    return node;
}

pith_status pith_grammar_from_schema(const char *json, size_t size, pith_grammar **out,
                                     pith_error *error) {
    return pith_grammar_from_part(pith_grammar_add_schema, json, size, out, error);
}
