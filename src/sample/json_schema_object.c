/* SPDX-License-Identifier: Apache-2.0
 *
 * The keywords about objects of all schemas of an alternative -> one shape.
 *
 * A key is described by `properties` of any of the schemas or named by `required`. Its value must
 * satisfy every `properties` and `patternProperties` that speak about it, and additionalProperties
 * of each schema whose own properties and patterns don't. Other keys fall into cells by the
 * patterns they match; what their values must satisfy depends on the cell alone.
 *
 *   properties {a: A}, patternProperties {^x: X}, additionalProperties: D
 *   a: {A}     cell {}: {D}     cell {^x}: {X}
 *
 * An object whose keys somebody described is `closed` where nobody gives additionalProperties:
 * other keys are valid, and are not written.
 */
#include "sample/json_schema.h"

#include "base/memory.h"

#include <string.h>

/* A schema that speaks about a key; the next one, PITH_SCHEMA_NONE: none. */
typedef struct link {
    uint32_t node, next;
} link;

typedef struct member {
    const char *key;
    uint32_t first_link, last_link;
    bool required;
} member;

typedef struct pattern_child {
    uint32_t node;  /* what the value must satisfy */
    uint32_t owner; /* index of the schema that gives it */
    uint32_t bit;
} pattern_child;

typedef struct collection {
    pith_schema *schema;
    const pith_schema_branch *branch;
    pith_schema_shape *shape;
    pith_map by_key;
    member *members;
    link *links;
    pattern_child *children;
    uint32_t *names; /* schemas of propertyNames */
    uint32_t *scratch;
    uint32_t n_members, n_links, n_children, n_names;
    uint32_t member_capacity, link_capacity, child_capacity, name_capacity, scratch_capacity;
    bool described, has_additional;
    uint32_t never; /* the schema false, once one is needed */
} collection;

/* ---- lists ---- */

static member *find_member(collection *c, const char *key) {
    int32_t at;
    int inserted = pith_map_insert(&c->by_key, pith_span_of(key), (int32_t)c->n_members, &at);
    if (inserted < 0) {
        (void)pith_schema_fail_memory(&c->schema->tree);
        return NULL;
    }
    if (inserted == 0) return &c->members[at];
    member *members = pith_schema_grown(&c->schema->tree, c->members, &c->member_capacity,
                                        sizeof *members, c->n_members);
    if (members == NULL) return NULL;
    c->members = members;
    members[c->n_members] = (member){key, PITH_SCHEMA_NONE, PITH_SCHEMA_NONE, false};
    return &members[c->n_members++];
}

static bool add_link(collection *c, member *m, uint32_t node) {
    link *links =
        pith_schema_grown(&c->schema->tree, c->links, &c->link_capacity, sizeof *links, c->n_links);
    if (links == NULL) return false;
    c->links = links;
    links[c->n_links] = (link){node, PITH_SCHEMA_NONE};
    if (m->first_link == PITH_SCHEMA_NONE) {
        m->first_link = c->n_links;
    } else {
        links[m->last_link].next = c->n_links;
    }
    m->last_link = c->n_links++;
    return true;
}

static bool push_word(collection *c, uint32_t **list, uint32_t *capacity, uint32_t *n,
                      uint32_t word) {
    uint32_t *words = pith_schema_grown(&c->schema->tree, *list, capacity, sizeof *words, *n);
    if (words == NULL) return false;
    *list = words;
    words[(*n)++] = word;
    return true;
}

/* ---- reading ---- */

static bool read_properties(collection *c, const pith_schema_entry *entry) {
    for (uint32_t i = 0; i < entry->n_children; i++) {
        member *m = find_member(c, c->schema->tree.nodes[entry->child + i].key);
        if (m == NULL || !add_link(c, m, entry->child + i)) return false;
    }
    return true;
}

static bool read_required(collection *c, const json_t *names) {
    for (size_t i = 0; i < json_array_size(names); i++) {
        const json_t *name = json_array_get(names, i);
        if (strlen(json_string_value(name)) != json_string_length(name)) {
            return pith_schema_fail(&c->schema->tree, PITH_ERROR_UNSUPPORTED, c->shape->node,
                                    PITH_WORD_REQUIRED, "a key with a NUL is not supported");
        }
        member *m = find_member(c, json_string_value(name));
        if (m == NULL) return false;
        m->required = true;
    }
    return true;
}

static bool read_patterns(collection *c, const pith_schema_entry *entry, uint32_t owner) {
    for (uint32_t i = 0; i < entry->n_children; i++) {
        const char *key = c->schema->tree.nodes[entry->child + i].key;
        uint32_t pattern =
            pith_schema_pattern_of(c->schema, entry->child + i, PITH_WORD_NONE, pith_span_of(key));
        if (pattern == PITH_SCHEMA_NONE) return false;
        pith_words *known = &c->shape->object.patterns;
        uint32_t bit = 0;
        while (bit < known->n && c->schema->words[known->first + bit] != pattern) bit++;
        if (bit == known->n) {
            if (!pith_schema_push_word(c->schema, pattern)) return false;
            known->n++;
        }
        pattern_child *children = pith_schema_grown(
            &c->schema->tree, c->children, &c->child_capacity, sizeof *children, c->n_children);
        if (children == NULL) return false;
        c->children = children;
        children[c->n_children++] = (pattern_child){entry->child + i, owner, bit};
    }
    return true;
}

/* unevaluatedProperties: false is what a closed object does, where all that describes keys belongs
 * to the schema that says so. */
static void read_unevaluated(collection *c, const pith_schema_entry *entry, uint32_t node) {
    uint32_t n;
    const uint32_t *nodes = pith_tuple_get(&c->schema->set_table, c->branch->set, &n);
    bool alone = n == 1 && nodes[0] == node;
    if (json_is_true(entry->value)) return;
    if (!json_is_false(entry->value) || !alone) {
        pith_schema_refuse(c->shape, node, entry->word,
                           "only false is supported, in a schema that no other is combined with");
    }
    c->described = true;
}

static bool read_word(collection *c, uint32_t owner, const pith_schema_entry *entry) {
    uint32_t node = c->branch->nodes[owner];
    uint32_t count;
    switch (entry->word) {
    case PITH_WORD_PROPERTIES:
        if (!c->schema->tree.nodes[node].made) c->described = true;
        return read_properties(c, entry);
    case PITH_WORD_REQUIRED: return read_required(c, entry->value);
    case PITH_WORD_PATTERN_PROPERTIES: c->described = true; return read_patterns(c, entry, owner);
    case PITH_WORD_ADDITIONAL_PROPERTIES: c->has_additional = true; return true;
    case PITH_WORD_UNEVALUATED_PROPERTIES: read_unevaluated(c, entry, node); return true;
    case PITH_WORD_PROPERTY_NAMES:
        return push_word(c, &c->names, &c->name_capacity, &c->n_names, entry->child);
    case PITH_WORD_MIN_PROPERTIES:
        count = pith_schema_count(entry);
        if (count > c->shape->object.min) c->shape->object.min = count;
        return true;
    case PITH_WORD_MAX_PROPERTIES:
        count = pith_schema_count(entry);
        if (count < c->shape->object.max) c->shape->object.max = count;
        return true;
    default: return true;
    }
}

static bool read_all(collection *c) {
    for (uint32_t i = 0; i < c->branch->n_nodes; i++) {
        uint32_t node = c->branch->nodes[i];
        for (uint32_t k = 0; k < c->schema->tree.nodes[node].n_entries; k++) {
            uint32_t at = c->schema->tree.nodes[node].first_entry + k;
            if (!read_word(c, i, &c->schema->tree.entries[at])) return false;
        }
    }
    return true;
}

/* ---- who speaks about what ---- */

/* Schema `owner` of the branch gives additionalProperties for keys that match these patterns. */
static uint32_t additional_of(const collection *c, uint32_t owner, uint32_t matched) {
    const pith_schema_entry *entry = pith_schema_entry_of(&c->schema->tree, c->branch->nodes[owner],
                                                          PITH_WORD_ADDITIONAL_PROPERTIES);
    if (entry == NULL) return PITH_SCHEMA_NONE;
    for (uint32_t i = 0; i < c->n_children; i++) {
        bool own = c->children[i].owner == owner;
        if (own && c->children[i].bit < 32 && (matched >> c->children[i].bit & 1)) {
            return PITH_SCHEMA_NONE;
        }
    }
    return entry->child;
}

/* Links what patterns, additionalProperties and propertyNames say about a described key. */
static bool link_rest(collection *c, member *m) {
    uint32_t matched = 0;
    for (uint32_t bit = 0; bit < c->shape->object.patterns.n; bit++) {
        bool matches;
        uint32_t pattern = c->schema->words[c->shape->object.patterns.first + bit];
        if (!pith_schema_matches(c->schema, pattern, pith_span_of(m->key), &matches)) return false;
        if (matches && bit < 32) matched |= 1u << bit;
    }
    for (uint32_t i = 0; i < c->n_children; i++) {
        bool speaks = c->children[i].bit < 32 && (matched >> c->children[i].bit & 1);
        if (speaks && !add_link(c, m, c->children[i].node)) return false;
    }
    for (uint32_t i = 0; i < c->branch->n_nodes && c->has_additional; i++) {
        const pith_schema_entry *own =
            pith_schema_entry_of(&c->schema->tree, c->branch->nodes[i], PITH_WORD_PROPERTIES);
        if (own != NULL && json_object_get(own->value, m->key) != NULL) continue;
        uint32_t node = additional_of(c, i, matched);
        if (node != PITH_SCHEMA_NONE && !add_link(c, m, node)) return false;
    }
    bool valid = true;
    json_t *name = c->n_names ? json_string(m->key) : NULL;
    if (c->n_names && name == NULL) return pith_schema_fail_memory(&c->schema->tree);
    bool good = true;
    for (uint32_t i = 0; i < c->n_names && valid && good; i++) {
        good = pith_schema_validate(c->schema, c->names[i], name, &valid);
    }
    json_decref(name);
    if (!good || valid) return good;
    if (c->never == PITH_SCHEMA_NONE) {
        c->never = pith_schema_tree_make(&c->schema->tree, json_false(), c->shape->node);
    }
    return c->never != PITH_SCHEMA_NONE && add_link(c, m, c->never);
}

static bool add_property(collection *c, const member *m) {
    pith_schema *schema = c->schema;
    uint32_t n = 0;
    for (uint32_t i = m->first_link; i != PITH_SCHEMA_NONE; i = c->links[i].next) {
        if (!push_word(c, &c->scratch, &c->scratch_capacity, &n, c->links[i].node)) return false;
    }
    uint32_t set = pith_schema_set_of(schema, c->scratch, n);
    if (set == PITH_SCHEMA_NONE) return false;
    pith_schema_property *properties =
        pith_schema_grown(&schema->tree, schema->properties, &schema->property_capacity,
                          sizeof *properties, schema->n_properties);
    if (properties == NULL) return false;
    schema->properties = properties;
    properties[schema->n_properties++] = (pith_schema_property){m->key, set, m->required};
    return true;
}

static bool add_cell(collection *c, uint32_t matched) {
    pith_schema *schema = c->schema;
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_children; i++) {
        if (!(matched >> c->children[i].bit & 1)) continue;
        if (!push_word(c, &c->scratch, &c->scratch_capacity, &n, c->children[i].node)) return false;
    }
    for (uint32_t i = 0; i < c->branch->n_nodes && c->has_additional; i++) {
        uint32_t node = additional_of(c, i, matched);
        if (node == PITH_SCHEMA_NONE) continue;
        if (!push_word(c, &c->scratch, &c->scratch_capacity, &n, node)) return false;
    }
    uint32_t set = pith_schema_set_of(schema, c->scratch, n);
    if (set == PITH_SCHEMA_NONE) return false;
    pith_schema_cell *cells = pith_schema_grown(
        &schema->tree, schema->cells, &schema->cell_capacity, sizeof *cells, schema->n_cells);
    if (cells == NULL) return false;
    schema->cells = cells;
    cells[schema->n_cells++] = (pith_schema_cell){matched, set};
    return true;
}

static bool settle(collection *c, bool *empty) {
    pith_schema_shape *shape = c->shape;
    for (uint32_t i = 0; i < c->n_members; i++) {
        if (!link_rest(c, &c->members[i])) return false;
    }
    shape->object.first_property = c->schema->n_properties;
    shape->object.n_properties = c->n_members;
    for (uint32_t i = 0; i < c->n_members; i++) {
        if (!add_property(c, &c->members[i])) return false;
    }
    /* more keys must come than were described: then others are written after all */
    bool enough = c->n_members >= shape->object.min;
    shape->object.closed = c->described && !c->has_additional && enough;
    shape->object.first_cell = c->schema->n_cells;
    uint32_t n_patterns = shape->object.patterns.n;
    if (n_patterns > PITH_SCHEMA_MAX_PATTERNS) {
        pith_schema_refuse(shape, shape->node, PITH_WORD_PATTERN_PROPERTIES,
                           "more than 4 patterns meet in one object");
        n_patterns = 0;
    }
    for (uint32_t matched = 0; matched < 1u << n_patterns; matched++) {
        if (!add_cell(c, matched)) return false;
    }
    shape->object.n_cells = c->schema->n_cells - shape->object.first_cell;
    shape->object.names = pith_schema_set_of(c->schema, c->names, c->n_names);
    if (shape->object.names == PITH_SCHEMA_NONE) return false;
    *empty = shape->object.min > shape->object.max;
    if (*empty) pith_schema_note_conflict(c->schema, c->branch, shape->node, PITH_WORD_NONE);
    return true;
}

bool pith_schema_fill_object(pith_schema *schema, const pith_schema_branch *branch,
                             pith_schema_shape *shape, bool *empty) {
    collection c = {.schema = schema, .branch = branch, .shape = shape, .never = PITH_SCHEMA_NONE};
    shape->object.max = PITH_GRAMMAR_UNBOUNDED;
    shape->object.patterns.first = schema->n_words;
    bool good = read_all(&c) && settle(&c, empty);
    pith_map_deinit(&c.by_key);
    pith_free(c.members);
    pith_free(c.links);
    pith_free(c.children);
    pith_free(c.names);
    pith_free(c.scratch);
    return good;
}
