/* SPDX-License-Identifier: Apache-2.0
 *
 * Is a given value valid? Asked for the values of enum and const, for keys (propertyNames) and for
 * what an alternative must not satisfy, so that those keywords work next to all others; and of
 * values that come from elsewhere (schema_check.c).
 *
 * This is the plain reading of JSON schema: every keyword is checked on the value. It recurses, at
 * most PITH_SCHEMA_MAX_NESTING deep; values were read with the limits of schemas
 * (pith_schema_read), so their depth is limited too. What it looks at is counted as work. Numbers
 * are compared by value, strings by code points.
 */
#include "sample/json_schema.h"

#include "sample/json_format.h"

#include <math.h>
#include <string.h>

uint8_t pith_schema_kind_of(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_NULL: return PITH_KIND_NULL;
    case JSON_TRUE:
    case JSON_FALSE: return PITH_KIND_BOOLEAN;
    case JSON_STRING: return PITH_KIND_STRING;
    case JSON_ARRAY: return PITH_KIND_ARRAY;
    case JSON_OBJECT: return PITH_KIND_OBJECT;
    default: return pith_json_is_integer(value) ? PITH_KIND_INTEGER : PITH_KIND_FRACTION;
    }
}

/* Recursive, at most as deep as the values. Adds to *steps what it looked at. */
static bool equal(const json_t *a, const json_t *b, uint64_t *steps) {
    ++*steps;
    if (json_is_number(a) && json_is_number(b)) return pith_json_compare_numbers(a, b) == 0;
    if (json_typeof(a) != json_typeof(b)) return false;
    if (json_is_array(a)) {
        bool same = json_array_size(a) == json_array_size(b);
        for (size_t i = 0; same && i < json_array_size(a); i++) {
            same = equal(json_array_get(a, i), json_array_get(b, i), steps);
        }
        return same;
    }
    if (json_is_string(a)) *steps += json_string_length(a) / 64;
    if (!json_is_object(a)) return json_equal(a, b);
    json_t *object = (json_t *)(uintptr_t)a; /* its iterators want no const */
    bool same = json_object_size(a) == json_object_size(b);
    for (void *at = json_object_iter(object); same && at; at = json_object_iter_next(object, at)) {
        const json_t *other = json_object_get(b, json_object_iter_key(at));
        same = other != NULL && equal(json_object_iter_value(at), other, steps);
    }
    return same;
}

bool pith_schema_equal(const json_t *a, const json_t *b) {
    uint64_t steps = 0;
    return equal(a, b, &steps);
}

/* One value against one keyword of one schema. */
typedef struct check {
    pith_schema *schema;
    uint32_t node;
    pith_schema_entry entry;
    const json_t *value;
} check;

static bool refuse(const check *c, const char *why) {
    return pith_schema_fail(&c->schema->tree, PITH_ERROR_UNSUPPORTED, c->node, c->entry.word, why);
}

/* ---- simple values ---- */

/* Is the value among the first n of a list? */
static bool check_listed(const check *c, const json_t *list, size_t n, const json_t *value,
                         bool *listed) {
    uint64_t steps = 0;
    *listed = false;
    for (size_t i = 0; i < n && !*listed; i++) {
        *listed = equal(json_array_get(list, i), value, &steps);
    }
    return pith_schema_work(c->schema, steps);
}

static bool check_equal(const check *c, bool *valid) {
    uint64_t steps = 0;
    *valid = equal(c->entry.value, c->value, &steps);
    return pith_schema_work(c->schema, steps);
}

static bool is_multiple(const json_t *value, const json_t *factor) {
    if (json_is_integer(value) && json_is_integer(factor)) {
        return json_integer_value(value) % json_integer_value(factor) == 0;
    }
    double quotient = json_number_value(value) / json_number_value(factor);
    return fabs(quotient - floor(quotient + 0.5)) <= 1e-9 * fabs(quotient);
}

/* Is the number within those of `bits` bits? Of 0 bits: any is. */
static bool fits_bits(const json_t *value, int bits) {
    double number = json_number_value(value);
    if (bits == 32) return number >= -2147483648.0 && number <= 2147483647.0;
    if (bits != 64 || json_is_integer(value)) return true;
    return number >= -9223372036854775808.0 && number < 9223372036854775808.0;
}

static bool check_number(const check *c, bool *valid) {
    const json_t *limit = c->entry.value;
    switch (c->entry.word) {
    case PITH_WORD_MINIMUM: *valid = pith_json_compare_numbers(c->value, limit) >= 0; break;
    case PITH_WORD_MAXIMUM: *valid = pith_json_compare_numbers(c->value, limit) <= 0; break;
    case PITH_WORD_EXCLUSIVE_MINIMUM:
        *valid = pith_json_compare_numbers(c->value, limit) > 0;
        break;
    case PITH_WORD_EXCLUSIVE_MAXIMUM:
        *valid = pith_json_compare_numbers(c->value, limit) < 0;
        break;
    case PITH_WORD_MULTIPLE_OF: *valid = is_multiple(c->value, limit); break;
    case PITH_WORD_FORMAT:
        *valid = fits_bits(c->value, pith_json_format_bits(json_string_value(limit)));
        break;
    default: break;
    }
    return true;
}

static bool count_code_points(const check *c, size_t *n) {
    const char *text = json_string_value(c->value);
    size_t size = json_string_length(c->value);
    *n = 0;
    if (!pith_schema_work(c->schema, size / 16)) return false;
    for (size_t i = 0; i < size; i++) *n += (text[i] & 0xC0) != 0x80;
    return true;
}

static bool check_string(const check *c, bool *valid) {
    pith_span text = {json_string_value(c->value), json_string_length(c->value)};
    pith_span source = {json_string_value(c->entry.value), json_string_length(c->entry.value)};
    size_t n;
    switch (c->entry.word) {
    case PITH_WORD_MIN_LENGTH:
        if (!count_code_points(c, &n)) return false;
        *valid = n >= pith_schema_count(&c->entry);
        return true;
    case PITH_WORD_MAX_LENGTH:
        if (!count_code_points(c, &n)) return false;
        *valid = n <= pith_schema_count(&c->entry);
        return true;
    case PITH_WORD_FORMAT:
        if (pith_json_format_pattern(source.data) == NULL) return true;
        break;
    case PITH_WORD_PATTERN: break;
    default: return true;
    }
    uint32_t pattern = pith_schema_pattern_of(c->schema, c->node, c->entry.word, source);
    return pattern != PITH_SCHEMA_NONE && pith_schema_matches(c->schema, pattern, text, valid);
}

/* ---- arrays ---- */

static bool all_differ(const check *c, bool *valid) {
    bool is_twice = false;
    for (size_t i = 1; i < json_array_size(c->value) && !is_twice; i++) {
        if (!check_listed(c, c->value, i, json_array_get(c->value, i), &is_twice)) return false;
    }
    *valid = !is_twice;
    return true;
}

static bool check_contains(const check *c, bool *valid) {
    const pith_schema_entry *min =
        pith_schema_entry_of(&c->schema->tree, c->node, PITH_WORD_MIN_CONTAINS);
    const pith_schema_entry *max =
        pith_schema_entry_of(&c->schema->tree, c->node, PITH_WORD_MAX_CONTAINS);
    size_t least = min ? pith_schema_count(min) : 1, most = max ? pith_schema_count(max) : SIZE_MAX;
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(c->value); i++) {
        bool holds;
        const json_t *item = json_array_get(c->value, i);
        if (!pith_schema_validate(c->schema, c->entry.child, item, &holds)) return false;
        n += holds;
    }
    *valid = n >= least && n <= most;
    return true;
}

/* Items from `first` on, each against the schema; those of prefixItems each against its own. */
static bool check_items(const check *c, size_t first, bool *valid) {
    bool each = c->entry.word == PITH_WORD_PREFIX_ITEMS;
    size_t n = json_array_size(c->value);
    if (each && n > c->entry.n_children) n = c->entry.n_children;
    for (size_t i = first; i < n && *valid; i++) {
        uint32_t child = c->entry.child + (each ? (uint32_t)i : 0);
        if (!pith_schema_validate(c->schema, child, json_array_get(c->value, i), valid)) {
            return false;
        }
    }
    return true;
}

static bool check_array(const check *c, bool *valid) {
    const pith_schema_entry *first;
    size_t n = json_array_size(c->value);
    switch (c->entry.word) {
    case PITH_WORD_MIN_ITEMS: *valid = n >= pith_schema_count(&c->entry); return true;
    case PITH_WORD_MAX_ITEMS: *valid = n <= pith_schema_count(&c->entry); return true;
    case PITH_WORD_UNIQUE_ITEMS: return json_is_false(c->entry.value) || all_differ(c, valid);
    case PITH_WORD_CONTAINS: return check_contains(c, valid);
    case PITH_WORD_PREFIX_ITEMS: return check_items(c, 0, valid);
    case PITH_WORD_ITEMS:
        first = pith_schema_entry_of(&c->schema->tree, c->node, PITH_WORD_PREFIX_ITEMS);
        return check_items(c, first ? first->n_children : 0, valid);
    case PITH_WORD_UNEVALUATED_ITEMS:
        return json_is_true(c->entry.value) || refuse(c, "not supported next to enum and const");
    default: return true;
    }
}

/* ---- objects ---- */

static bool check_all(const check *c, const json_t *names, bool *valid) {
    for (size_t i = 0; i < json_array_size(names) && *valid; i++) {
        *valid = json_object_get(c->value, json_string_value(json_array_get(names, i))) != NULL;
    }
    return pith_schema_work(c->schema, json_array_size(names));
}

static bool check_named(const check *c, bool *valid) {
    if (!pith_schema_work(c->schema, c->entry.n_children)) return false;
    for (uint32_t i = 0; i < c->entry.n_children && *valid; i++) {
        uint32_t child = c->entry.child + i;
        const json_t *member = json_object_get(c->value, c->schema->tree.nodes[child].key);
        if (member == NULL) continue;
        if (c->entry.word == PITH_WORD_DEPENDENT_SCHEMAS) member = c->value;
        if (!pith_schema_validate(c->schema, child, member, valid)) return false;
    }
    return true;
}

/* Does some pattern of the schema's patternProperties match the key? check_value: and the value
 * must then satisfy its schema. */
static bool match_key(const check *c, const char *key, const json_t *check_value, bool *matched,
                      bool *valid) {
    const pith_schema_entry *entry =
        pith_schema_entry_of(&c->schema->tree, c->node, PITH_WORD_PATTERN_PROPERTIES);
    *matched = false;
    for (uint32_t i = 0; entry != NULL && i < entry->n_children && *valid; i++) {
        uint32_t child = entry->child + i;
        bool matches;
        uint32_t pattern = pith_schema_pattern_of(c->schema, child, PITH_WORD_NONE,
                                                  pith_span_of(c->schema->tree.nodes[child].key));
        if (pattern == PITH_SCHEMA_NONE ||
            !pith_schema_matches(c->schema, pattern, pith_span_of(key), &matches)) {
            return false;
        }
        *matched = *matched || matches;
        if (!matches || check_value == NULL) continue;
        if (!pith_schema_validate(c->schema, child, check_value, valid)) return false;
    }
    return true;
}

static bool check_key(const check *c, const char *key, const json_t *member, bool *valid) {
    bool matched, unused = true;
    switch (c->entry.word) {
    case PITH_WORD_PATTERN_PROPERTIES: return match_key(c, key, member, &matched, valid);
    case PITH_WORD_PROPERTY_NAMES: {
        json_t *name = json_string(key);
        if (name == NULL) return pith_schema_fail_memory(&c->schema->tree);
        bool good = pith_schema_validate(c->schema, c->entry.child, name, valid);
        json_decref(name);
        return good;
    }
    default: {
        const pith_schema_entry *own =
            pith_schema_entry_of(&c->schema->tree, c->node, PITH_WORD_PROPERTIES);
        if (own != NULL && json_object_get(own->value, key) != NULL) return true;
        if (!match_key(c, key, NULL, &matched, &unused)) return false;
        return matched || pith_schema_validate(c->schema, c->entry.child, member, valid);
    }
    }
}

static bool check_keys(const check *c, bool *valid) {
    json_t *object = (json_t *)(uintptr_t)c->value; /* its iterators want no const */
    void *at = json_object_iter(object);
    for (; at != NULL && *valid; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        if (!check_key(c, key, json_object_iter_value(at), valid)) return false;
    }
    return true;
}

static bool check_dependent(const check *c, bool *valid) {
    json_t *map = (json_t *)(uintptr_t)c->entry.value; /* its iterators want no const */
    void *at = json_object_iter(map);
    for (; at != NULL && *valid; at = json_object_iter_next(map, at)) {
        if (json_object_get(c->value, json_object_iter_key(at)) == NULL) continue;
        if (!check_all(c, json_object_iter_value(at), valid)) return false;
    }
    return pith_schema_work(c->schema, json_object_size(map));
}

static bool check_object(const check *c, bool *valid) {
    size_t n = json_object_size(c->value);
    switch (c->entry.word) {
    case PITH_WORD_MIN_PROPERTIES: *valid = n >= pith_schema_count(&c->entry); return true;
    case PITH_WORD_MAX_PROPERTIES: *valid = n <= pith_schema_count(&c->entry); return true;
    case PITH_WORD_REQUIRED: return check_all(c, c->entry.value, valid);
    case PITH_WORD_PROPERTIES:
    case PITH_WORD_DEPENDENT_SCHEMAS: return check_named(c, valid);
    case PITH_WORD_DEPENDENT_REQUIRED: return check_dependent(c, valid);
    case PITH_WORD_PATTERN_PROPERTIES:
    case PITH_WORD_ADDITIONAL_PROPERTIES:
    case PITH_WORD_PROPERTY_NAMES: return check_keys(c, valid);
    case PITH_WORD_UNEVALUATED_PROPERTIES:
        return json_is_true(c->entry.value) || refuse(c, "not supported next to enum and const");
    default: return true;
    }
}

/* ---- any value ---- */

/* How many of the schemas hold. */
static bool count_valid(const check *c, uint32_t *n) {
    *n = 0;
    for (uint32_t i = 0; i < c->entry.n_children; i++) {
        bool holds;
        if (!pith_schema_validate(c->schema, c->entry.child + i, c->value, &holds)) return false;
        *n += holds;
    }
    return true;
}

static bool check_if(const check *c, bool *valid) {
    bool holds;
    if (!pith_schema_validate(c->schema, c->entry.child, c->value, &holds)) return false;
    const pith_schema_entry *branch =
        pith_schema_entry_of(&c->schema->tree, c->node, holds ? PITH_WORD_THEN : PITH_WORD_ELSE);
    return branch == NULL || pith_schema_validate(c->schema, branch->child, c->value, valid);
}

static bool check_any(const check *c, bool *valid) {
    uint32_t n;
    switch (c->entry.word) {
    case PITH_WORD_TYPE:
        *valid = c->schema->tree.nodes[c->node].kinds & pith_schema_kind_of(c->value);
        return true;
    case PITH_WORD_ENUM:
        /* a value of a long list is not looked for in that list */
        if (c->node == c->schema->listed && c->schema->depth == 1) return true;
        return check_listed(c, c->entry.value, json_array_size(c->entry.value), c->value, valid);
    case PITH_WORD_CONST: return check_equal(c, valid);
    case PITH_WORD_REF:
        return pith_schema_validate(c->schema, c->schema->tree.nodes[c->node].ref, c->value, valid);
    case PITH_WORD_IF: return check_if(c, valid);
    case PITH_WORD_ALL_OF:
    case PITH_WORD_ANY_OF:
    case PITH_WORD_ONE_OF:
    case PITH_WORD_NOT:
        if (!count_valid(c, &n)) return false;
        *valid = c->entry.word == PITH_WORD_ALL_OF   ? n == c->entry.n_children
                 : c->entry.word == PITH_WORD_ANY_OF ? n > 0
                 : c->entry.word == PITH_WORD_ONE_OF ? n == 1
                                                     : n == 0;
        return true;
    default: return true;
    }
}

static bool check_word(const check *c, bool *valid) {
    if (!check_any(c, valid) || !*valid) return c->schema->tree.status == PITH_OK;
    switch (pith_schema_kind_of(c->value)) {
    case PITH_KIND_INTEGER:
    case PITH_KIND_FRACTION: return check_number(c, valid);
    case PITH_KIND_STRING: return check_string(c, valid);
    case PITH_KIND_ARRAY: return check_array(c, valid);
    case PITH_KIND_OBJECT: return check_object(c, valid);
    default: return true;
    }
}

bool pith_schema_validate(pith_schema *schema, uint32_t node, const json_t *value, bool *valid) {
    *valid = true;
    if (json_is_boolean(schema->tree.nodes[node].json)) {
        *valid = json_is_true(schema->tree.nodes[node].json);
        return true;
    }
    if (schema->depth >= PITH_SCHEMA_MAX_NESTING) {
        return pith_schema_fail(&schema->tree, PITH_ERROR_LIMIT, node, PITH_WORD_NONE,
                                "schemas or values are nested too deep");
    }
    if (!pith_schema_work(schema, 1 + schema->tree.nodes[node].n_entries)) return false;
    schema->depth++;
    bool good = true;
    for (uint32_t i = 0; i < schema->tree.nodes[node].n_entries && good && *valid; i++) {
        uint32_t at = schema->tree.nodes[node].first_entry + i;
        check c = {schema, node, schema->tree.entries[at], value};
        good = check_word(&c, valid);
    }
    schema->depth--;
    return good;
}
