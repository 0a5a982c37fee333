/* SPDX-License-Identifier: Apache-2.0
 *
 * Which sets and shapes some finite value fits.
 *
 * Numbers and strings tell at once. An array or object fits when what it must contain fits, so the
 * answer is a least fixpoint: nothing fits at first, and rounds over all sets add what fits by what
 * is known, until nothing changes. So recursion without an end ({"a": itself, required}) is found
 * in the same way as a contradiction. Sets come after those that lead to them, so going from the
 * last to the first nearly always ends after two rounds.
 *
 * An alternative that nothing fits is left out. A schema as it stands in the text that nothing fits
 * is an error of its author and is refused, unless it is `false` itself.
 */
#include "sample/json_schema.h"

static bool settle_number(pith_schema *schema, pith_schema_shape *shape) {
    bool nothing;
    pith_error reason = {0};
    pith_status status =
        pith_json_write_number(schema->text, &shape->number, &shape->made, &nothing, &reason);
    if (status == PITH_ERROR_MEMORY) return pith_schema_fail_memory(&schema->tree);
    shape->fits = !nothing;
    if (status != PITH_OK) {
        pith_schema_refuse(shape, shape->node, PITH_WORD_NONE,
                           "its bounds or multiples are too large to be enforced");
        shape->fits = true;
    }
    return true;
}

static bool settle_simple(pith_schema *schema, uint32_t set, uint32_t index) {
    pith_schema_shape *shape = &schema->shapes[index];
    bool simple = shape->kind == PITH_SHAPE_NUMBER || shape->kind == PITH_SHAPE_STRING;
    shape->fits = simple || shape->kind == PITH_SHAPE_VALUES;
    if (!simple || !schema->sets[set].written || shape->refused_node != PITH_SCHEMA_NONE) {
        return true;
    }
    if (shape->kind == PITH_SHAPE_NUMBER) {
        if (!settle_number(schema, shape)) return false;
    } else {
        bool nothing;
        if (!pith_schema_emit_string(schema, shape, (pith_words){0}, &shape->made, &nothing)) {
            return false;
        }
        shape->fits = !nothing;
    }
    pith_schema_set *s = &schema->sets[set];
    if (!shape->fits && s->conflict == PITH_SCHEMA_NONE) {
        s->conflict = shape->node;
        s->conflict_word = PITH_WORD_NONE;
    }
    return true;
}

static bool array_fits(const pith_schema *schema, const pith_schema_shape *shape) {
    uint32_t max = shape->array.max;
    for (uint32_t i = 0; i <= shape->array.first.n && i < max; i++) {
        bool last = i == shape->array.first.n;
        if (last && shape->array.min <= i) break;
        if (!schema->sets[pith_schema_set_of_item(schema, shape, i)].satisfiable) max = i;
    }
    return shape->array.min <= max;
}

static bool object_fits(const pith_schema *schema, const pith_schema_shape *shape) {
    uint32_t n = 0, n_required = 0;
    for (uint32_t i = 0; i < shape->object.n_properties; i++) {
        const pith_schema_property *p = &schema->properties[shape->object.first_property + i];
        bool fits = schema->sets[p->set].satisfiable;
        if (p->required && !fits) return false;
        n += fits;
        n_required += p->required;
    }
    bool more = false;
    for (uint32_t i = 0; i < shape->object.n_cells; i++) {
        const pith_schema_cell *cell = &schema->cells[shape->object.first_cell + i];
        bool written = cell->matched != 0 || !shape->object.closed;
        more = more || (written && schema->sets[cell->set].satisfiable);
    }
    return n_required <= shape->object.max && (more || n >= shape->object.min);
}

bool pith_schema_fits(const pith_schema *schema, const pith_schema_shape *shape) {
    if (shape->kind == PITH_SHAPE_ARRAY) return array_fits(schema, shape);
    return shape->kind == PITH_SHAPE_OBJECT ? object_fits(schema, shape) : shape->fits;
}

/* true when the set's answer changed. */
static bool settle_round(pith_schema *schema, uint32_t set) {
    pith_schema_set *s = &schema->sets[set];
    bool satisfiable = false;
    for (uint32_t i = 0; i < s->n_shapes; i++) {
        pith_schema_shape *shape = &schema->shapes[s->first_shape + i];
        shape->fits = pith_schema_fits(schema, shape);
        satisfiable = satisfiable || shape->fits;
    }
    bool changed = satisfiable && !s->satisfiable;
    s->satisfiable = satisfiable;
    return changed;
}

/* A single schema of the text that is not `false`. */
static bool is_error(const pith_schema *schema, uint32_t set, uint32_t *node) {
    uint32_t n;
    const uint32_t *nodes = pith_tuple_get(&schema->set_table, set, &n);
    if (n != 1 || schema->sets[set].satisfiable || !schema->sets[set].written) return false;
    *node = nodes[0];
    return !pith_schema_set_is_false(schema, set) && !schema->tree.nodes[nodes[0]].made;
}

/* The key without which no object of the set is complete, NULL: that is not the reason. */
static const char *key_to_blame(const pith_schema *schema, uint32_t set) {
    for (uint32_t i = 0; i < schema->sets[set].n_shapes; i++) {
        const pith_schema_shape *shape = &schema->shapes[schema->sets[set].first_shape + i];
        if (shape->kind != PITH_SHAPE_OBJECT) continue;
        for (uint32_t k = 0; k < shape->object.n_properties; k++) {
            const pith_schema_property *p = &schema->properties[shape->object.first_property + k];
            if (p->required && !schema->sets[p->set].satisfiable) return p->key;
        }
    }
    return NULL;
}

static bool refuse_endless(pith_schema *schema, uint32_t set, uint32_t node) {
    const char *key = key_to_blame(schema, set);
    pith_buffer what = {0};
    pith_buffer_append_text(&what, "no finite value satisfies it");
    if (key != NULL) {
        pith_buffer_append_format(&what, ": \"%.60s\" is required and nothing satisfies it", key);
    }
    if (what.failed) return pith_schema_fail_memory(&schema->tree);
    (void)pith_schema_fail(&schema->tree, PITH_ERROR_FORMAT, node, PITH_WORD_NONE, what.data);
    pith_buffer_deinit(&what);
    return false;
}

bool pith_schema_refuse_contradictions(pith_schema *schema, uint32_t root) {
    pith_schema_tree *tree = &schema->tree;
    uint32_t node = 0;
    for (uint32_t set = schema->set_table.n; set-- > 0;) { /* the innermost first */
        const pith_schema_set *s = &schema->sets[set];
        if (!is_error(schema, set, &node) || s->conflict == PITH_SCHEMA_NONE) continue;
        return pith_schema_fail(tree, PITH_ERROR_FORMAT, s->conflict, s->conflict_word,
                                "its keywords contradict each other: no value satisfies them");
    }
    for (uint32_t set = schema->set_table.n; set-- > 0;) {
        if (!is_error(schema, set, &node) || schema->sets[set].n_shapes > 0) continue;
        return pith_schema_fail(tree, PITH_ERROR_FORMAT, node, PITH_WORD_NONE,
                                "no value satisfies all of it");
    }
    for (uint32_t set = 0; set < schema->set_table.n; set++) {
        if (is_error(schema, set, &node)) return refuse_endless(schema, set, node);
    }
    if (schema->sets[root].satisfiable) return true;
    return pith_schema_fail(tree, PITH_ERROR_FORMAT, 0, PITH_WORD_NONE, "no value satisfies it");
}

bool pith_schema_settle(pith_schema *schema) {
    for (uint32_t set = 0; set < schema->set_table.n; set++) {
        if (schema->sets[set].weighed) continue;
        schema->sets[set].weighed = true;
        for (uint32_t i = 0; i < schema->sets[set].n_shapes; i++) {
            if (!settle_simple(schema, set, schema->sets[set].first_shape + i)) return false;
        }
    }
    for (bool changed = true; changed;) {
        changed = false;
        if (!pith_schema_work(schema, schema->set_table.n)) return false;
        for (uint32_t set = schema->set_table.n; set-- > 0;) {
            changed = settle_round(schema, set) || changed;
        }
    }
    return true;
}
