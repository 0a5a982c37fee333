/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of schemas -> rules of the grammar.
 *
 * A set that something uses gets a rule, named by the path of its first schema, and stands in a
 * queue until it is written; so recursion of schemas becomes recursion of rules. Its alternatives
 * are those shapes that some value fits. Here, and not before, a keyword that cannot be enforced is
 * refused: the shape it belongs to would really be written.
 */
#include "sample/json_schema.h"

#include "base/memory.h"

#include <stdio.h>

enum { NAME_BYTES = 64 };

/* "properties/name" of the set's first schema: rules are told apart by it in messages. */
static void name_set(const pith_schema *schema, uint32_t set, char name[NAME_BYTES]) {
    uint32_t n;
    const uint32_t *nodes = pith_tuple_get(&schema->set_table, set, &n);
    if (n == 0 || nodes[0] == 0) {
        (void)snprintf(name, NAME_BYTES, "%s", n == 0 ? "any value" : "the schema");
        return;
    }
    const pith_schema_node *node = &schema->tree.nodes[nodes[0]];
    (void)snprintf(name, NAME_BYTES, "%s%s%.40s", pith_schema_word_text(node->word),
                   node->key ? "/" : "", node->key ? node->key : "");
}

pith_grammar_node pith_schema_use(pith_schema *schema, uint32_t set) {
    pith_schema_set *s = &schema->sets[set];
    char name[NAME_BYTES];
    if (!s->has_rule) {
        uint32_t *queue = pith_schema_grown(&schema->tree, schema->queue, &schema->queue_capacity,
                                            sizeof *queue, schema->n_queue);
        if (queue == NULL) return 0;
        schema->queue = queue;
        queue[schema->n_queue++] = set;
        name_set(schema, set, name);
        s->rule = pith_grammar_declare(schema->text->builder, name);
        s->has_rule = true;
    }
    return pith_grammar_refer(schema->text->builder, s->rule);
}

/* One of a list of values. */
static bool emit_values(pith_schema *schema, const pith_schema_shape *shape,
                        pith_grammar_node *out) {
    pith_grammar_node *choices = pith_alloc_array(shape->values.n, sizeof *choices);
    if (choices == NULL) return pith_schema_fail_memory(&schema->tree);
    for (uint32_t i = 0; i < shape->values.n; i++) {
        choices[i] = pith_json_write_value(schema->text, schema->values[shape->values.first + i]);
    }
    *out = pith_grammar_choice(schema->text->builder, choices, shape->values.n);
    pith_free(choices);
    return true;
}

static bool emit_number(pith_schema *schema, const pith_schema_shape *shape, pith_grammar_node *out,
                        bool *nothing) {
    pith_error reason = {0};
    pith_status status =
        pith_json_write_number(schema->text, &shape->number, out, nothing, &reason);
    if (status == PITH_OK) return true;
    if (status == PITH_ERROR_MEMORY) return pith_schema_fail_memory(&schema->tree);
    return pith_schema_fail(&schema->tree, status, shape->node, PITH_WORD_NONE, reason.text);
}

static bool emit_shape(pith_schema *schema, uint32_t index, pith_grammar_node *out, bool *nothing) {
    pith_words strings;
    if (!pith_schema_keep_apart(schema, &index, &strings)) return false;
    pith_schema_shape shape = schema->shapes[index];
    *nothing = !pith_schema_fits(schema, &shape);
    if (*nothing) return true;
    *out = shape.made;
    if (shape.made != 0) return true;
    switch (shape.kind) {
    case PITH_SHAPE_VALUES: return emit_values(schema, &shape, out);
    case PITH_SHAPE_NUMBER: return emit_number(schema, &shape, out, nothing);
    case PITH_SHAPE_STRING: return pith_schema_emit_string(schema, &shape, strings, out, nothing);
    case PITH_SHAPE_ARRAY: return pith_schema_emit_array(schema, &shape, out);
    default: return pith_schema_emit_object(schema, &shape, out);
    }
}

static bool emit_set(pith_schema *schema, uint32_t set) {
    pith_schema_set s = schema->sets[set];
    uint32_t n = 0;
    pith_grammar_node *choices = pith_alloc_array((size_t)s.n_shapes + 1, sizeof *choices);
    if (choices == NULL) return pith_schema_fail_memory(&schema->tree);
    bool good = true;
    for (uint32_t i = 0; i < s.n_shapes && good; i++) {
        const pith_schema_shape *shape = &schema->shapes[s.first_shape + i];
        bool nothing;
        if (!shape->fits) continue;
        if (shape->refused_node != PITH_SCHEMA_NONE) {
            good = pith_schema_fail(&schema->tree, PITH_ERROR_UNSUPPORTED, shape->refused_node,
                                    shape->refused_word, shape->refused_why);
            break;
        }
        good = emit_shape(schema, s.first_shape + i, &choices[n], &nothing);
        n += good && !nothing;
    }
    if (good && n == 0 && set == schema->queue[0]) {
        good = pith_schema_fail(&schema->tree, PITH_ERROR_FORMAT, 0, PITH_WORD_NONE,
                                "no value satisfies all of it");
    }
    if (good) {
        pith_grammar_builder *builder = schema->text->builder;
        pith_grammar_node node = n == 1 ? choices[0] : pith_grammar_choice(builder, choices, n);
        pith_grammar_define(builder, schema->sets[set].rule, node);
    }
    pith_free(choices);
    return good;
}

bool pith_schema_emit(pith_schema *schema, uint32_t root, pith_grammar_node *out) {
    *out = pith_schema_use(schema, root);
    for (uint32_t i = 0; i < schema->n_queue; i++) {
        if (!emit_set(schema, schema->queue[i])) return false;
    }
    return schema->tree.status == PITH_OK;
}
