/* SPDX-License-Identifier: Apache-2.0
 *
 * Proofs that no value written for one shape satisfies another.
 *
 * What is written (a) is less than what is valid: an object writes no key that nobody described. So
 * the two sides differ, and {"required": ["x"]} is told from an object that does not know x. A
 * proof needs one difference that every pair has: bounds, lengths, automata that share no string,
 * an item or member that both must have and that differs, a key that one must have and the other
 * cannot. No proof found is no proof that there is none; the caller refuses then.
 */
#include "sample/json_schema.h"

#include <string.h>

enum { MAX_DEPTH = 6 };

/* One question; `below` of them are open. */
typedef struct question {
    pith_schema *schema;
    uint32_t depth;
} question;

static bool sets_disjoint(question q, uint32_t a, uint32_t b, bool *disjoint);

/* ---- what members and items must satisfy ---- */

uint32_t pith_schema_set_of_item(const pith_schema *schema, const pith_schema_shape *shape,
                                 uint32_t index) {
    if (index >= shape->array.first.n) return shape->array.rest;
    return schema->words[shape->array.first.first + index];
}

/* Does the key satisfy propertyNames? */
static bool name_fits(pith_schema *schema, const pith_schema_shape *shape, const char *key,
                      bool *fits) {
    uint32_t n;
    (void)pith_tuple_get(&schema->set_table, shape->object.names, &n);
    *fits = true;
    if (n == 0) return true;
    json_t *name = json_string(key);
    if (name == NULL) return pith_schema_fail_memory(&schema->tree);
    bool good = true;
    for (uint32_t i = 0; i < n && *fits && good; i++) {
        uint32_t node = pith_tuple_get(&schema->set_table, shape->object.names, &n)[i];
        good = pith_schema_validate(schema, node, name, fits);
    }
    json_decref(name);
    return good;
}

bool pith_schema_set_of_key(pith_schema *schema, const pith_schema_shape *shape, const char *key,
                            uint32_t *set, bool *written) {
    uint32_t matched = 0;
    for (uint32_t i = 0; i < shape->object.n_properties; i++) {
        const pith_schema_property *p = &schema->properties[shape->object.first_property + i];
        if (strcmp(p->key, key) != 0) continue;
        *set = p->set;
        *written = schema->sets[p->set].satisfiable;
        return true;
    }
    for (uint32_t i = 0; i < shape->object.patterns.n; i++) {
        bool matches;
        uint32_t pattern = schema->words[shape->object.patterns.first + i];
        if (!pith_schema_matches(schema, pattern, pith_span_of(key), &matches)) return false;
        if (matches && i < 32) matched |= 1u << i;
    }
    *written = matched != 0 || !shape->object.closed;
    *set = PITH_SCHEMA_NONE;
    for (uint32_t i = 0; i < shape->object.n_cells; i++) {
        const pith_schema_cell *cell = &schema->cells[shape->object.first_cell + i];
        if (cell->matched == matched) *set = cell->set;
    }
    if (*set == PITH_SCHEMA_NONE) return true; /* too many patterns: anything may be */
    *written = *written && schema->sets[*set].satisfiable;
    bool fits = true;
    if (*written && !name_fits(schema, shape, key, &fits)) return false;
    *written = *written && fits;
    return true;
}

/* ---- shapes of one kind ---- */

/* Everything of a below everything of b. */
static bool is_below(const pith_json_bounds *a, const pith_json_bounds *b) {
    if (a->max == NULL || b->min == NULL) return false;
    int order = pith_json_compare_numbers(a->max, b->min);
    return order < 0 || (order == 0 && (a->max_excluded || b->min_excluded));
}

static bool arrays_disjoint(question q, const pith_schema_shape *a, const pith_schema_shape *b,
                            bool *disjoint) {
    *disjoint = a->array.min > b->array.max || b->array.min > a->array.max;
    uint32_t n = a->array.min > b->array.min ? a->array.min : b->array.min;
    uint32_t n_first = a->array.first.n > b->array.first.n ? a->array.first.n : b->array.first.n;
    if (n > n_first + 1) n = n_first + 1; /* what follows is all alike */
    for (uint32_t i = 0; i < n && !*disjoint; i++) {
        uint32_t x = pith_schema_set_of_item(q.schema, a, i);
        uint32_t y = pith_schema_set_of_item(q.schema, b, i);
        if (!sets_disjoint(q, x, y, disjoint)) return false;
    }
    return true;
}

static bool objects_disjoint(question q, const pith_schema_shape *a, const pith_schema_shape *b,
                             bool *disjoint) {
    pith_schema *schema = q.schema;
    uint32_t set;
    bool written;
    *disjoint = a->object.min > b->object.max || b->object.min > a->object.max;
    for (uint32_t i = 0; i < b->object.n_properties && !*disjoint; i++) {
        pith_schema_property p = schema->properties[b->object.first_property + i];
        if (!p.required) continue;
        if (!pith_schema_set_of_key(schema, a, p.key, &set, &written)) return false;
        *disjoint = !written;
        if (written && set != PITH_SCHEMA_NONE && !sets_disjoint(q, set, p.set, disjoint)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < a->object.n_properties && !*disjoint; i++) {
        pith_schema_property p = schema->properties[a->object.first_property + i];
        if (!p.required) continue;
        if (!pith_schema_set_of_key(schema, b, p.key, &set, &written)) return false;
        if (set != PITH_SCHEMA_NONE && !sets_disjoint(q, p.set, set, disjoint)) return false;
    }
    return true;
}

static bool shapes_disjoint(question q, const pith_schema_shape *a, const pith_schema_shape *b,
                            bool *disjoint) {
    *disjoint = a->kind != b->kind;
    if (*disjoint) return true;
    switch (a->kind) {
    case PITH_SHAPE_NUMBER:
        *disjoint = is_below(&a->number, &b->number) || is_below(&b->number, &a->number);
        return true;
    case PITH_SHAPE_STRING: return pith_schema_strings_disjoint(q.schema, a, b, disjoint);
    case PITH_SHAPE_ARRAY: return arrays_disjoint(q, a, b, disjoint);
    case PITH_SHAPE_OBJECT: return objects_disjoint(q, a, b, disjoint);
    default: return true;
    }
}

/* ---- sets ---- */

/* No value of the list satisfies the set. */
static bool values_apart(pith_schema *schema, const pith_schema_shape *values, uint32_t set,
                         bool *apart) {
    uint32_t n;
    (void)pith_tuple_get(&schema->set_table, set, &n);
    *apart = true;
    for (uint32_t i = 0; i < values->values.n && *apart; i++) {
        const json_t *value = schema->values[values->values.first + i];
        bool valid = true;
        for (uint32_t k = 0; k < n && valid; k++) {
            uint32_t node = pith_tuple_get(&schema->set_table, set, &n)[k];
            if (!pith_schema_validate(schema, node, value, &valid)) return false;
        }
        *apart = !valid;
    }
    return true;
}

static bool pair_disjoint(question q, uint32_t a, uint32_t b, uint32_t x, uint32_t y,
                          bool *disjoint) {
    pith_schema_shape first = q.schema->shapes[x], second = q.schema->shapes[y];
    *disjoint = !first.fits || !second.fits;
    if (*disjoint) return true;
    if (first.kind == PITH_SHAPE_VALUES) return values_apart(q.schema, &first, b, disjoint);
    if (second.kind == PITH_SHAPE_VALUES) return values_apart(q.schema, &second, a, disjoint);
    return shapes_disjoint(q, &first, &second, disjoint);
}

/* Recursive, at most MAX_DEPTH deep: deeper differences are not looked for. */
static bool sets_disjoint(question q, uint32_t a, uint32_t b, bool *disjoint) {
    pith_schema_set first = q.schema->sets[a], second = q.schema->sets[b];
    *disjoint = !first.satisfiable || !second.satisfiable;
    if (*disjoint || a == b || q.depth >= MAX_DEPTH) return true;
    if (!pith_schema_work(q.schema, (uint64_t)first.n_shapes * second.n_shapes * 16)) return false;
    q.depth++;
    *disjoint = true;
    for (uint32_t i = 0; i < first.n_shapes && *disjoint; i++) {
        for (uint32_t k = 0; k < second.n_shapes && *disjoint; k++) {
            if (!pair_disjoint(q, a, b, first.first_shape + i, second.first_shape + k, disjoint)) {
                return false;
            }
        }
    }
    return true;
}

bool pith_schema_are_disjoint(pith_schema *schema, const pith_schema_shape *a,
                              const pith_schema_shape *b, bool *disjoint) {
    return shapes_disjoint((question){schema, 0}, a, b, disjoint);
}
