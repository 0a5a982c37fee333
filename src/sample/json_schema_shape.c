/* SPDX-License-Identifier: Apache-2.0
 *
 * The keywords of all schemas of an alternative -> shapes, one for each kind of value left.
 *
 * Where a schema has enum or const, the alternative is a list of values, and each of them is
 * checked against everything (json_schema_value.c); so every keyword works next to an enum.
 * Otherwise bounds are intersected and patterns collected. A keyword that cannot be enforced marks
 * the shape and is refused only when the shape is to be written: next to "type": "string" a
 * `contains` is of no interest. Read next: json_schema_object.c.
 */
#include "sample/json_schema.h"

#include "base/memory.h"
#include "sample/json_format.h"

#include <string.h>

void pith_schema_refuse(pith_schema_shape *shape, uint32_t node, pith_schema_word word,
                        const char *why) {
    if (shape->refused_node != PITH_SCHEMA_NONE) return;
    shape->refused_node = node;
    shape->refused_word = word;
    shape->refused_why = why;
}

void pith_schema_note_conflict(pith_schema *schema, const pith_schema_branch *branch, uint32_t node,
                               pith_schema_word word) {
    pith_schema_set *set = &schema->sets[branch->set];
    if (set->conflict != PITH_SCHEMA_NONE) return;
    set->conflict = node;
    set->conflict_word = word;
}

uint32_t pith_schema_count(const pith_schema_entry *entry) {
    double count = json_number_value(entry->value);
    return count >= (double)(UINT32_MAX - 1) ? UINT32_MAX - 1 : (uint32_t)count;
}

/* ---- walking over the keywords of a branch ---- */

typedef bool (*word_reader)(pith_schema *schema, pith_schema_shape *shape, uint32_t node,
                            const pith_schema_entry *entry);

static bool read_words(pith_schema *schema, const pith_schema_branch *branch,
                       pith_schema_shape *shape, word_reader read) {
    for (uint32_t i = 0; i < branch->n_nodes; i++) {
        const pith_schema_node *node = &schema->tree.nodes[branch->nodes[i]];
        for (uint32_t k = 0; k < node->n_entries; k++) {
            const pith_schema_entry *entry = &schema->tree.entries[node->first_entry + k];
            if (!read(schema, shape, branch->nodes[i], entry)) return false;
        }
    }
    return true;
}

static uint8_t kinds_of_shape(const pith_schema_shape *shape, uint8_t kinds) {
    switch (shape->kind) {
    case PITH_SHAPE_NUMBER: return kinds & (PITH_KIND_INTEGER | PITH_KIND_FRACTION);
    case PITH_SHAPE_STRING: return PITH_KIND_STRING;
    case PITH_SHAPE_ARRAY: return PITH_KIND_ARRAY;
    case PITH_SHAPE_OBJECT: return PITH_KIND_OBJECT;
    default: return 0; /* values have been checked one by one */
    }
}

static bool push_shape(pith_schema *schema, const pith_schema_branch *branch,
                       pith_schema_shape *shape) {
    uint8_t kinds = kinds_of_shape(shape, branch->kinds);
    if (schema->n_shapes >= PITH_SCHEMA_MAX_SHAPES) {
        return pith_schema_fail(&schema->tree, PITH_ERROR_LIMIT, shape->node, PITH_WORD_NONE,
                                "its schemas meet in too many combinations");
    }
    shape->against.first = schema->n_words;
    for (uint32_t i = 0; i < branch->n_against; i++) {
        uint32_t node = branch->against[i];
        if (json_is_false(schema->tree.nodes[node].json)) continue;
        if (!(schema->tree.nodes[node].kinds & kinds)) continue;
        if (!pith_schema_push_word(schema, node)) return false;
        shape->against.n++;
    }
    pith_schema_shape *shapes = pith_schema_grown(
        &schema->tree, schema->shapes, &schema->shape_capacity, sizeof *shapes, schema->n_shapes);
    if (shapes == NULL) return false;
    schema->shapes = shapes;
    shapes[schema->n_shapes++] = *shape;
    return true;
}

static pith_schema_shape begin_shape(const pith_schema_branch *branch, pith_shape_kind kind) {
    return (pith_schema_shape){.kind = kind,
                               .node = branch->n_nodes ? branch->nodes[0] : 0,
                               .refused_node = PITH_SCHEMA_NONE};
}

/* ---- values ---- */

/* Takes the value when the whole branch allows it. */
static bool offer_value(pith_schema *schema, const pith_schema_branch *branch, const json_t *value,
                        bool check_nodes, pith_words *values) {
    bool valid = true;
    if (!(pith_schema_kind_of(value) & branch->kinds)) return true;
    for (uint32_t i = 0; i < branch->n_nodes && valid && check_nodes; i++) {
        if (!pith_schema_validate(schema, branch->nodes[i], value, &valid)) return false;
    }
    for (uint32_t i = 0; i < branch->n_against && valid; i++) {
        if (!pith_schema_validate(schema, branch->against[i], value, &valid)) return false;
        valid = !valid;
    }
    if (!valid) return true;
    values->n++;
    return pith_schema_push_value(schema, value);
}

static bool add_values(pith_schema *schema, const pith_schema_branch *branch, uint32_t node,
                       const pith_schema_entry *entry) {
    pith_schema_shape shape = begin_shape(branch, PITH_SHAPE_VALUES);
    shape.values.first = schema->n_values;
    bool is_list = entry->word == PITH_WORD_ENUM;
    size_t n = is_list ? json_array_size(entry->value) : 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *value = is_list ? json_array_get(entry->value, i) : entry->value;
        if (!offer_value(schema, branch, value, true, &shape.values)) return false;
    }
    if (shape.values.n > 0) return push_shape(schema, branch, &shape);
    pith_schema_note_conflict(schema, branch, node, entry->word);
    return true;
}

/* null, true, false: nothing but `against` limits them. */
static bool add_simple(pith_schema *schema, const pith_schema_branch *branch) {
    pith_schema_shape shape = begin_shape(branch, PITH_SHAPE_VALUES);
    shape.values.first = schema->n_values;
    json_t *const simple[] = {json_true(), json_false(), json_null()}; /* jansson's own, for ever */
    for (size_t i = 0; i < 3; i++) {
        if (!offer_value(schema, branch, simple[i], false, &shape.values)) return false;
    }
    return shape.values.n == 0 || push_shape(schema, branch, &shape);
}

/* ---- numbers ---- */

static const char int32_bounds[] = "[-2147483648,2147483647]";

/* Bounds of formats are values of the schema too: they live with what was made. */
static bool bound_bits(pith_schema *schema, pith_json_bounds *bounds) {
    json_t *limits = json_loads(int32_bounds, 0, NULL);
    if (limits == NULL || json_array_append_new(schema->tree.made, limits) != 0) {
        return pith_schema_fail_memory(&schema->tree);
    }
    const json_t *min = json_array_get(limits, 0), *max = json_array_get(limits, 1);
    if (!bounds->min || pith_json_compare_numbers(bounds->min, min) < 0) {
        bounds->min = min;
        bounds->min_excluded = false;
    }
    if (!bounds->max || pith_json_compare_numbers(bounds->max, max) > 0) {
        bounds->max = max;
        bounds->max_excluded = false;
    }
    return true;
}

static void raise_min(pith_json_bounds *bounds, const json_t *value, bool excluded) {
    int order = bounds->min ? pith_json_compare_numbers(value, bounds->min) : 1;
    if (order > 0) bounds->min_excluded = excluded;
    if (order == 0) bounds->min_excluded = bounds->min_excluded || excluded;
    if (order > 0) bounds->min = value;
}

static void lower_max(pith_json_bounds *bounds, const json_t *value, bool excluded) {
    int order = bounds->max ? pith_json_compare_numbers(value, bounds->max) : -1;
    if (order < 0) bounds->max_excluded = excluded;
    if (order == 0) bounds->max_excluded = bounds->max_excluded || excluded;
    if (order < 0) bounds->max = value;
}

/* The least common multiple; what is no integer, or too large, cannot be enforced. */
static void join_multiple(pith_schema_shape *shape, uint32_t node, const json_t *value) {
    double factor = json_number_value(value);
    if (!pith_json_is_integer(value) || factor > 1e15) {
        pith_schema_refuse(shape, node, PITH_WORD_MULTIPLE_OF,
                           "only integers up to 10^15 are supported");
        return;
    }
    int64_t a = shape->number.multiple, b = (int64_t)factor;
    int64_t x = a, y = b;
    while (y != 0) {
        int64_t rest = x % y;
        x = y, y = rest;
    }
    a /= x; /* what both have in common */
    if (a > (int64_t)1e18 / b) {
        pith_schema_refuse(shape, node, PITH_WORD_MULTIPLE_OF, "a common multiple above 10^18");
        return;
    }
    shape->number.multiple = a * b;
    shape->number.integer = true;
}

static bool read_number(pith_schema *schema, pith_schema_shape *shape, uint32_t node,
                        const pith_schema_entry *entry) {
    switch (entry->word) {
    case PITH_WORD_MINIMUM: raise_min(&shape->number, entry->value, false); return true;
    case PITH_WORD_MAXIMUM: lower_max(&shape->number, entry->value, false); return true;
    case PITH_WORD_EXCLUSIVE_MINIMUM: raise_min(&shape->number, entry->value, true); return true;
    case PITH_WORD_EXCLUSIVE_MAXIMUM: lower_max(&shape->number, entry->value, true); return true;
    case PITH_WORD_MULTIPLE_OF: join_multiple(shape, node, entry->value); return true;
    case PITH_WORD_FORMAT:
        /* int64 holds every integer that is written */
        if (pith_json_format_bits(json_string_value(entry->value)) != 32) return true;
        return bound_bits(schema, &shape->number);
    default: return true;
    }
}

static bool add_number(pith_schema *schema, const pith_schema_branch *branch) {
    pith_schema_shape shape = begin_shape(branch, PITH_SHAPE_NUMBER);
    shape.number =
        (pith_json_bounds){.multiple = 1, .integer = !(branch->kinds & PITH_KIND_FRACTION)};
    if (!read_words(schema, branch, &shape, read_number)) return false;
    const pith_json_bounds *b = &shape.number;
    int order = b->min && b->max ? pith_json_compare_numbers(b->min, b->max) : -1;
    if (order > 0 || (order == 0 && (b->min_excluded || b->max_excluded))) {
        pith_schema_note_conflict(schema, branch, shape.node, PITH_WORD_NONE);
        return true;
    }
    return push_shape(schema, branch, &shape);
}

/* ---- strings ---- */

static bool read_string(pith_schema *schema, pith_schema_shape *shape, uint32_t node,
                        const pith_schema_entry *entry) {
    uint32_t count;
    switch (entry->word) {
    case PITH_WORD_MIN_LENGTH:
        count = pith_schema_count(entry);
        if (count > shape->string.min) shape->string.min = count;
        return true;
    case PITH_WORD_MAX_LENGTH:
        count = pith_schema_count(entry);
        if (count < shape->string.max) shape->string.max = count;
        return true;
    case PITH_WORD_FORMAT:
        if (pith_json_format_pattern(json_string_value(entry->value)) == NULL) return true;
        break;
    case PITH_WORD_PATTERN: break;
    default: return true;
    }
    pith_span text = {json_string_value(entry->value), json_string_length(entry->value)};
    uint32_t pattern = pith_schema_pattern_of(schema, node, entry->word, text);
    if (pattern == PITH_SCHEMA_NONE) return false;
    for (uint32_t i = 0; i < shape->string.patterns.n; i++) {
        if (schema->words[shape->string.patterns.first + i] == pattern) return true;
    }
    shape->string.patterns.n++;
    return pith_schema_push_word(schema, pattern);
}

static bool add_string(pith_schema *schema, const pith_schema_branch *branch) {
    pith_schema_shape shape = begin_shape(branch, PITH_SHAPE_STRING);
    shape.string.max = PITH_GRAMMAR_UNBOUNDED;
    shape.string.patterns.first = schema->n_words;
    if (!read_words(schema, branch, &shape, read_string)) return false;
    if (shape.string.min > shape.string.max) {
        pith_schema_note_conflict(schema, branch, shape.node, PITH_WORD_NONE);
        return true;
    }
    return push_shape(schema, branch, &shape);
}

/* ---- arrays ---- */

static bool read_array(pith_schema *schema, pith_schema_shape *shape, uint32_t node,
                       const pith_schema_entry *entry) {
    uint32_t count;
    (void)schema;
    switch (entry->word) {
    case PITH_WORD_MIN_ITEMS:
        count = pith_schema_count(entry);
        if (count > shape->array.min) shape->array.min = count;
        break;
    case PITH_WORD_MAX_ITEMS:
        count = pith_schema_count(entry);
        if (count < shape->array.max) shape->array.max = count;
        break;
    case PITH_WORD_PREFIX_ITEMS:
        if (entry->n_children > shape->array.first.n) shape->array.first.n = entry->n_children;
        break;
    case PITH_WORD_UNIQUE_ITEMS:
        if (json_is_true(entry->value)) shape->array.unique = true;
        break;
    case PITH_WORD_CONTAINS:
    case PITH_WORD_UNEVALUATED_ITEMS:
        pith_schema_refuse(shape, node, entry->word, "this keyword is not supported");
        break;
    default: break;
    }
    return true;
}

/* What the item at `index` must satisfy; PITH_SCHEMA_NONE: what comes behind all prefixItems. */
static uint32_t set_of_item(pith_schema *schema, const pith_schema_branch *branch, uint32_t index) {
    uint32_t *nodes = pith_alloc_array(branch->n_nodes + 1, sizeof *nodes), n = 0;
    if (nodes == NULL) {
        (void)pith_schema_fail_memory(&schema->tree);
        return PITH_SCHEMA_NONE;
    }
    for (uint32_t i = 0; i < branch->n_nodes; i++) {
        const pith_schema_entry *first =
            pith_schema_entry_of(&schema->tree, branch->nodes[i], PITH_WORD_PREFIX_ITEMS);
        const pith_schema_entry *rest =
            pith_schema_entry_of(&schema->tree, branch->nodes[i], PITH_WORD_ITEMS);
        if (first != NULL && index < first->n_children) {
            nodes[n++] = first->child + index;
        } else if (rest != NULL) {
            nodes[n++] = rest->child;
        }
    }
    uint32_t set = pith_schema_set_of(schema, nodes, n);
    pith_free(nodes);
    return set;
}

static bool add_array(pith_schema *schema, const pith_schema_branch *branch) {
    pith_schema_shape shape = begin_shape(branch, PITH_SHAPE_ARRAY);
    shape.array.max = PITH_GRAMMAR_UNBOUNDED;
    if (!read_words(schema, branch, &shape, read_array)) return false;
    if (shape.array.min > shape.array.max) {
        pith_schema_note_conflict(schema, branch, shape.node, PITH_WORD_NONE);
        return true;
    }
    uint32_t n_first = shape.array.first.n;
    shape.array.first.first = schema->n_words;
    for (uint32_t i = 0; i < n_first; i++) {
        uint32_t set = set_of_item(schema, branch, i);
        if (set == PITH_SCHEMA_NONE || !pith_schema_push_word(schema, set)) return false;
    }
    shape.array.rest = set_of_item(schema, branch, PITH_SCHEMA_NONE);
    return shape.array.rest != PITH_SCHEMA_NONE && push_shape(schema, branch, &shape);
}

static bool add_object(pith_schema *schema, const pith_schema_branch *branch) {
    pith_schema_shape shape = begin_shape(branch, PITH_SHAPE_OBJECT);
    bool empty = false;
    if (!pith_schema_fill_object(schema, branch, &shape, &empty)) return false;
    return empty || push_shape(schema, branch, &shape);
}

bool pith_schema_add_shapes(pith_schema *schema, const pith_schema_branch *branch) {
    for (uint32_t i = 0; i < branch->n_nodes; i++) {
        static const pith_schema_word lists[] = {PITH_WORD_CONST, PITH_WORD_ENUM};
        for (size_t k = 0; k < 2; k++) {
            const pith_schema_entry *entry =
                pith_schema_entry_of(&schema->tree, branch->nodes[i], lists[k]);
            if (entry != NULL) return add_values(schema, branch, branch->nodes[i], entry);
        }
    }
    uint8_t kinds = branch->kinds;
    if ((kinds & (PITH_KIND_NULL | PITH_KIND_BOOLEAN)) && !add_simple(schema, branch)) return false;
    if ((kinds & (PITH_KIND_INTEGER | PITH_KIND_FRACTION)) && !add_number(schema, branch)) {
        return false;
    }
    if ((kinds & PITH_KIND_STRING) && !add_string(schema, branch)) return false;
    if ((kinds & PITH_KIND_ARRAY) && !add_array(schema, branch)) return false;
    return !(kinds & PITH_KIND_OBJECT) || add_object(schema, branch);
}
