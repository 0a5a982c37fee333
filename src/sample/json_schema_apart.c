/* SPDX-License-Identifier: Apache-2.0
 *
 * oneOf and not: keeping what is written for a shape apart from what must not hold.
 *
 * Where a proof is found (json_schema_disjoint.c) nothing needs to be done. Else the shape is
 * narrowed; what remains is a part of what is valid, which is all that is promised:
 *
 *   numbers  a bound moves, where the other covers one end of the range or is one end of it
 *   strings  the other's strings are taken away (exactly: automata)
 *   arrays   the empty array is left out, where the first item then tells them apart
 *   objects  of a key that the other requires, its value is kept from what the other allows, down
 *            to leaving it out; or a key that the other forbids, or describes, becomes required
 *
 * What cannot be narrowed is refused by the path of the schema that must not hold.
 */
#include "sample/json_schema.h"

#include "base/memory.h"

#include <string.h>

static bool refuse(pith_schema *schema, uint32_t node) {
    return pith_schema_fail(&schema->tree, PITH_ERROR_UNSUPPORTED, node, PITH_WORD_NONE,
                            "this must not hold for what another schema allows (oneOf, not, if), "
                            "and the two cannot be kept apart");
}

/* ---- numbers ---- */

/* 0: bounds hold for the number; the number is the upper or lower bound, or neither. */
static bool cut_number(pith_json_bounds *bounds, const json_t *value) {
    if (!pith_json_bounds_hold(bounds, value)) return true;
    if (bounds->min && pith_json_compare_numbers(bounds->min, value) == 0) {
        bounds->min_excluded = true;
        return true;
    }
    if (bounds->max && pith_json_compare_numbers(bounds->max, value) == 0) {
        bounds->max_excluded = true;
        return true;
    }
    return false;
}

/* Does `other` hold for everything of `bounds` from some number on, downwards or upwards? */
static bool covers_end(const pith_json_bounds *bounds, const pith_json_bounds *other, bool upper) {
    const json_t *end = upper ? bounds->max : bounds->min;
    const json_t *limit = upper ? other->max : other->min;
    bool open = upper ? bounds->max_excluded : bounds->min_excluded;
    bool limit_open = upper ? other->max_excluded : other->min_excluded;
    if (limit == NULL) return true;
    if (end == NULL) return false;
    int order = pith_json_compare_numbers(limit, end);
    if (!upper) order = -order;
    return order > 0 || (order == 0 && (open || !limit_open));
}

static bool cut_range(pith_json_bounds *bounds, const pith_json_bounds *other) {
    bool whole = (!other->integer || bounds->integer) && other->multiple <= 1;
    if (!whole) return false;
    if (covers_end(bounds, other, true) && other->min != NULL) {
        bounds->max = other->min;
        bounds->max_excluded = !other->min_excluded;
        return true;
    }
    if (covers_end(bounds, other, false) && other->max != NULL) {
        bounds->min = other->max;
        bounds->min_excluded = !other->max_excluded;
        return true;
    }
    return false;
}

/* ---- arrays ---- */

static bool drop_empty(pith_schema *schema, uint32_t index, const pith_schema_shape *other,
                       bool *apart) {
    pith_schema_shape tried = schema->shapes[index];
    *apart = false;
    if (tried.array.min > 0 || tried.array.max == 0) return true;
    tried.array.min = 1;
    if (!pith_schema_are_disjoint(schema, &tried, other, apart)) return false;
    if (*apart) schema->shapes[index] = tried;
    return true;
}

/* ---- objects ---- */

/* A copy of the shape's properties with room for one more, at the end of the list. */
static bool move_properties(pith_schema *schema, uint32_t index) {
    uint32_t first = schema->n_properties, n = schema->shapes[index].object.n_properties;
    for (uint32_t i = 0; i <= n; i++) {
        pith_schema_property *properties =
            pith_schema_grown(&schema->tree, schema->properties, &schema->property_capacity,
                              sizeof *properties, schema->n_properties);
        if (properties == NULL) return false;
        schema->properties = properties;
        uint32_t from = schema->shapes[index].object.first_property + i;
        properties[schema->n_properties++] = i < n ? properties[from] : (pith_schema_property){0};
    }
    schema->shapes[index].object.first_property = first;
    return true;
}

static pith_schema_property *find_property(pith_schema *schema, uint32_t index, const char *key) {
    pith_schema_shape *shape = &schema->shapes[index];
    for (uint32_t i = 0; i < shape->object.n_properties; i++) {
        pith_schema_property *p = &schema->properties[shape->object.first_property + i];
        if (strcmp(p->key, key) == 0) return p;
    }
    return NULL;
}

/* What the key's value must satisfy from now on; PITH_SCHEMA_NONE: the one node `other` alone
 * cannot be told. */
static bool negate_set(pith_schema *schema, uint32_t own, uint32_t other, uint32_t *result) {
    uint32_t n, n_other;
    const uint32_t *others = pith_tuple_get(&schema->set_table, other, &n_other);
    *result = PITH_SCHEMA_NONE;
    if (n_other > 1) return true;
    uint32_t negation = n_other == 0 ? pith_schema_tree_make(&schema->tree, json_false(), 0)
                                     : pith_schema_tree_negate(&schema->tree, others[0]);
    if (negation == PITH_SCHEMA_NONE) return false;
    (void)pith_tuple_get(&schema->set_table, own, &n);
    uint32_t *nodes = pith_alloc_array((size_t)n + 1, sizeof *nodes);
    if (nodes == NULL) return pith_schema_fail_memory(&schema->tree);
    memcpy(nodes, pith_tuple_get(&schema->set_table, own, &n), n * sizeof *nodes);
    nodes[n] = negation;
    *result = pith_schema_set_of(schema, nodes, n + 1);
    pith_free(nodes);
    return *result != PITH_SCHEMA_NONE;
}

/* The key's value, where it is written, does not satisfy what `wanted` is in the other shape. */
static bool narrow_key(pith_schema *schema, uint32_t index, const pith_schema_property *wanted,
                       bool require, bool *apart) {
    uint32_t own, set;
    bool written;
    pith_schema_shape shape = schema->shapes[index];
    if (!pith_schema_set_of_key(schema, &shape, wanted->key, &own, &written)) return false;
    *apart = false;
    if (own == PITH_SCHEMA_NONE || !written) return true;
    if (!negate_set(schema, own, wanted->set, &set)) return false;
    if (set == PITH_SCHEMA_NONE) return true;
    pith_schema_property *p = find_property(schema, index, wanted->key);
    if (p == NULL) {
        if (!move_properties(schema, index)) return false;
        pith_schema_shape *grown = &schema->shapes[index];
        p = &schema->properties[grown->object.first_property + grown->object.n_properties++];
        *p = (pith_schema_property){.key = wanted->key};
    }
    p->set = set;
    p->required = p->required || require;
    *apart = true;
    return true;
}

typedef enum key_choice {
    KEYS_MISSING, /* required by the other, not by the shape: it may be left out */
    KEYS_SHARED,  /* required by both: its value can tell them apart */
    KEYS_OPTIONAL /* described by the other: it must be there with another value */
} key_choice;

static bool narrow_keys(pith_schema *schema, uint32_t index, const pith_schema_shape *other,
                        key_choice choice, bool *apart) {
    *apart = false;
    for (uint32_t i = 0; i < other->object.n_properties && !*apart; i++) {
        pith_schema_property wanted = schema->properties[other->object.first_property + i];
        const pith_schema_property *own = find_property(schema, index, wanted.key);
        bool required = own != NULL && own->required;
        bool fits = choice == KEYS_MISSING  ? wanted.required && !required
                    : choice == KEYS_SHARED ? wanted.required && required
                                            : !wanted.required;
        uint32_t n;
        (void)pith_tuple_get(&schema->set_table, wanted.set, &n);
        if (!fits || (n == 0 && choice != KEYS_MISSING)) continue;
        if (!narrow_key(schema, index, &wanted, choice == KEYS_OPTIONAL, apart)) return false;
    }
    return true;
}

/* A key that `other` forbids and the shape may have. */
static bool require_forbidden(pith_schema *schema, uint32_t index, const pith_schema_shape *other,
                              bool *apart) {
    uint32_t n = schema->shapes[index].object.n_properties;
    *apart = false;
    for (uint32_t i = 0; i < n && !*apart; i++) {
        uint32_t at = schema->shapes[index].object.first_property + i;
        uint32_t set;
        bool written;
        if (!schema->sets[schema->properties[at].set].satisfiable) continue;
        if (!pith_schema_set_of_key(schema, other, schema->properties[at].key, &set, &written)) {
            return false;
        }
        if (set == PITH_SCHEMA_NONE || schema->sets[set].satisfiable) continue;
        schema->properties[at].required = true;
        *apart = true;
    }
    return true;
}

/* ---- values that must not be written ---- */

static bool item_differs(pith_schema *schema, uint32_t set, const json_t *value, bool *differs) {
    uint32_t n;
    bool valid = true;
    (void)pith_tuple_get(&schema->set_table, set, &n);
    for (uint32_t i = 0; i < n && valid; i++) {
        uint32_t node = pith_tuple_get(&schema->set_table, set, &n)[i];
        if (!pith_schema_validate(schema, node, value, &valid)) return false;
    }
    *differs = *differs || !valid;
    return true;
}

static bool array_differs(pith_schema *schema, const pith_schema_shape *shape, const json_t *value,
                          bool *differs) {
    size_t n = json_array_size(value);
    *differs = n < shape->array.min || n > shape->array.max;
    for (size_t i = 0; i < n && !*differs; i++) {
        uint32_t set = pith_schema_set_of_item(schema, shape, (uint32_t)i);
        if (!item_differs(schema, set, json_array_get(value, i), differs)) return false;
    }
    return true;
}

static bool object_differs(pith_schema *schema, const pith_schema_shape *shape, const json_t *value,
                           bool *differs) {
    json_t *object = (json_t *)(uintptr_t)value; /* its iterators want no const */
    *differs = false;
    for (uint32_t i = 0; i < shape->object.n_properties; i++) {
        const pith_schema_property *p = &schema->properties[shape->object.first_property + i];
        *differs = *differs || (p->required && json_object_get(value, p->key) == NULL);
    }
    void *at = json_object_iter(object);
    for (; at != NULL && !*differs; at = json_object_iter_next(object, at)) {
        uint32_t set;
        bool written;
        const char *key = json_object_iter_key(at);
        if (!pith_schema_set_of_key(schema, shape, key, &set, &written)) return false;
        *differs = !written;
        if (*differs || set == PITH_SCHEMA_NONE) continue;
        if (!item_differs(schema, set, json_object_iter_value(at), differs)) return false;
    }
    return true;
}

static bool apart_from_value(pith_schema *schema, uint32_t index, const json_t *value,
                             bool *apart) {
    pith_schema_shape *shape = &schema->shapes[index];
    *apart = true;
    switch (shape->kind) {
    case PITH_SHAPE_NUMBER:
        if (json_is_number(value)) *apart = cut_number(&shape->number, value);
        return true;
    case PITH_SHAPE_ARRAY:
        return !json_is_array(value) || array_differs(schema, shape, value, apart);
    case PITH_SHAPE_OBJECT:
        return !json_is_object(value) || object_differs(schema, shape, value, apart);
    default: return true; /* strings are taken away when they are written */
    }
}

/* ---- the whole ---- */

static bool apart_from_shape(pith_schema *schema, uint32_t index, const pith_schema_shape *other,
                             bool *apart) {
    pith_schema_shape shape = schema->shapes[index];
    if (!pith_schema_are_disjoint(schema, &shape, other, apart)) return false;
    if (*apart) return true;
    switch (shape.kind) {
    case PITH_SHAPE_NUMBER:
        *apart = cut_range(&schema->shapes[index].number, &other->number);
        return true;
    case PITH_SHAPE_ARRAY: return drop_empty(schema, index, other, apart);
    case PITH_SHAPE_OBJECT:
        return narrow_keys(schema, index, other, KEYS_MISSING, apart) &&
               (*apart || require_forbidden(schema, index, other, apart)) &&
               (*apart || narrow_keys(schema, index, other, KEYS_SHARED, apart)) &&
               (*apart || narrow_keys(schema, index, other, KEYS_OPTIONAL, apart));
    default: return true;
    }
}

static bool apart_from(pith_schema *schema, uint32_t index, uint32_t other_index,
                       pith_words *strings, bool *apart) {
    pith_schema_shape other = schema->shapes[other_index];
    pith_shape_kind kind = schema->shapes[index].kind;
    *apart = true;
    if (!other.fits) return true;
    if (kind == PITH_SHAPE_STRING &&
        (other.kind == PITH_SHAPE_STRING || other.kind == PITH_SHAPE_VALUES)) {
        strings->n++;
        return pith_schema_push_word(schema, other_index);
    }
    if (other.kind != PITH_SHAPE_VALUES) {
        return apart_from_shape(schema, index, &other, apart);
    }
    for (uint32_t i = 0; i < other.values.n && *apart; i++) {
        const json_t *value = schema->values[other.values.first + i];
        if (!apart_from_value(schema, index, value, apart)) return false;
    }
    return true;
}

/* A shape of its own to narrow: the original stays what other proofs go by. */
static bool copy_shape(pith_schema *schema, uint32_t *index) {
    pith_schema_shape *shapes = pith_schema_grown(
        &schema->tree, schema->shapes, &schema->shape_capacity, sizeof *shapes, schema->n_shapes);
    if (shapes == NULL) return false;
    schema->shapes = shapes;
    shapes[schema->n_shapes] = shapes[*index];
    shapes[schema->n_shapes].made = 0;
    *index = schema->n_shapes++;
    return shapes[*index].kind != PITH_SHAPE_OBJECT || move_properties(schema, *index);
}

bool pith_schema_keep_apart(pith_schema *schema, uint32_t *index, pith_words *strings) {
    pith_words against = schema->shapes[*index].against;
    *strings = (pith_words){schema->n_words, 0};
    if (against.n == 0) return true;
    if (!copy_shape(schema, index)) return false;
    uint32_t shape = *index;
    for (uint32_t i = 0; i < against.n; i++) {
        uint32_t node = schema->words[against.first + i];
        uint32_t set = pith_schema_set_of(schema, &node, 1);
        if (set == PITH_SCHEMA_NONE) return false;
        for (uint32_t k = 0; k < schema->sets[set].n_shapes; k++) {
            bool apart;
            uint32_t other = schema->sets[set].first_shape + k;
            if (!apart_from(schema, shape, other, strings, &apart)) return false;
            if (!apart) return refuse(schema, node);
        }
    }
    return pith_schema_expand_all(schema) && pith_schema_settle(schema);
}
