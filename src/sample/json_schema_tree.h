/* SPDX-License-Identifier: Apache-2.0
 * The schemas of a JSON schema text as nodes: each keeps where it stands, its keywords in order and
 * the node that its $ref leads to. Keywords that are unknown or of the wrong form are refused here;
 * whether a keyword can be enforced is known only where it meets others (json_schema.h).
 *
 *   {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": true}}
 *   [0] root --properties--> [1] a --$ref--> [2] x
 */
#ifndef PITH_SAMPLE_JSON_SCHEMA_TREE_H
#define PITH_SAMPLE_JSON_SCHEMA_TREE_H

#include "base/map.h"
#include "sample/grammar.h"

#include <jansson.h>

enum {
    PITH_SCHEMA_MAX_DEPTH = 256, /* nesting of the text's arrays and objects */
    PITH_SCHEMA_MAX_NODES = 1 << 17,
    PITH_SCHEMA_NONE = UINT32_MAX
};

/* Keywords: name, what its value must be. In the order of strcmp. */
#define PITH_SCHEMA_WORDS(X)                                                                       \
    X(ANCHOR, "$anchor", NAME)                                                                     \
    X(COMMENT, "$comment", NOTE)                                                                   \
    X(DEFS, "$defs", DEFS)                                                                         \
    X(DYNAMIC_ANCHOR, "$dynamicAnchor", REFUSED)                                                   \
    X(DYNAMIC_REF, "$dynamicRef", REFUSED)                                                         \
    X(ID, "$id", ID)                                                                               \
    X(REF, "$ref", REF)                                                                            \
    X(SCHEMA, "$schema", NOTE)                                                                     \
    X(VOCABULARY, "$vocabulary", REFUSED)                                                          \
    X(ADDITIONAL_PROPERTIES, "additionalProperties", SCHEMA)                                       \
    X(ALL_OF, "allOf", SCHEMA_LIST)                                                                \
    X(ANY_OF, "anyOf", SCHEMA_LIST)                                                                \
    X(CONST, "const", VALUE)                                                                       \
    X(CONTAINS, "contains", SCHEMA)                                                                \
    X(CONTENT_ENCODING, "contentEncoding", REFUSED)                                                \
    X(CONTENT_MEDIA_TYPE, "contentMediaType", REFUSED)                                             \
    X(CONTENT_SCHEMA, "contentSchema", REFUSED)                                                    \
    X(DEFAULT, "default", NOTE)                                                                    \
    X(DEFINITIONS, "definitions", DEFS)                                                            \
    X(DEPENDENT_REQUIRED, "dependentRequired", NAMES_MAP)                                          \
    X(DEPENDENT_SCHEMAS, "dependentSchemas", SCHEMA_MAP)                                           \
    X(DEPRECATED, "deprecated", NOTE)                                                              \
    X(DESCRIPTION, "description", NOTE)                                                            \
    X(ELSE, "else", SCHEMA)                                                                        \
    X(ENUM, "enum", VALUES)                                                                        \
    X(EXAMPLES, "examples", NOTE)                                                                  \
    X(EXCLUSIVE_MAXIMUM, "exclusiveMaximum", NUMBER)                                               \
    X(EXCLUSIVE_MINIMUM, "exclusiveMinimum", NUMBER)                                               \
    X(FORMAT, "format", FORMAT)                                                                    \
    X(IF, "if", SCHEMA)                                                                            \
    X(ITEMS, "items", SCHEMA)                                                                      \
    X(MAX_CONTAINS, "maxContains", COUNT)                                                          \
    X(MAX_ITEMS, "maxItems", COUNT)                                                                \
    X(MAX_LENGTH, "maxLength", COUNT)                                                              \
    X(MAX_PROPERTIES, "maxProperties", COUNT)                                                      \
    X(MAXIMUM, "maximum", NUMBER)                                                                  \
    X(MIN_CONTAINS, "minContains", COUNT)                                                          \
    X(MIN_ITEMS, "minItems", COUNT)                                                                \
    X(MIN_LENGTH, "minLength", COUNT)                                                              \
    X(MIN_PROPERTIES, "minProperties", COUNT)                                                      \
    X(MINIMUM, "minimum", NUMBER)                                                                  \
    X(MULTIPLE_OF, "multipleOf", FACTOR)                                                           \
    X(NOT, "not", SCHEMA)                                                                          \
    X(ONE_OF, "oneOf", SCHEMA_LIST)                                                                \
    X(PATTERN, "pattern", STRING)                                                                  \
    X(PATTERN_PROPERTIES, "patternProperties", SCHEMA_MAP)                                         \
    X(PREFIX_ITEMS, "prefixItems", SCHEMA_LIST)                                                    \
    X(PROPERTIES, "properties", SCHEMA_MAP)                                                        \
    X(PROPERTY_NAMES, "propertyNames", SCHEMA)                                                     \
    X(READ_ONLY, "readOnly", NOTE)                                                                 \
    X(REQUIRED, "required", NAMES)                                                                 \
    X(THEN, "then", SCHEMA)                                                                        \
    X(TITLE, "title", NOTE)                                                                        \
    X(TYPE, "type", TYPE)                                                                          \
    X(UNEVALUATED_ITEMS, "unevaluatedItems", SCHEMA)                                               \
    X(UNEVALUATED_PROPERTIES, "unevaluatedProperties", SCHEMA)                                     \
    X(UNIQUE_ITEMS, "uniqueItems", BOOLEAN)                                                        \
    X(WRITE_ONLY, "writeOnly", NOTE)

typedef enum pith_schema_word {
#define PITH_SCHEMA_WORD(name, text, form) PITH_WORD_##name,
    PITH_SCHEMA_WORDS(PITH_SCHEMA_WORD)
#undef PITH_SCHEMA_WORD
        PITH_WORD_NONE
} pith_schema_word;

/* Kinds of values, as bits. A number is INTEGER when it has nothing behind the point. */
enum {
    PITH_KIND_NULL = 1,
    PITH_KIND_BOOLEAN = 2,
    PITH_KIND_INTEGER = 4,
    PITH_KIND_FRACTION = 8, /* a number that is no integer */
    PITH_KIND_STRING = 16,
    PITH_KIND_ARRAY = 32,
    PITH_KIND_OBJECT = 64,
    PITH_KIND_ALL = 127
};

typedef struct pith_schema_entry {
    pith_schema_word word;
    const json_t *value;
    uint32_t child, n_children; /* nodes, neighbours in the order of the text */
} pith_schema_entry;

typedef struct pith_schema_node {
    const json_t *json;    /* an object or a boolean */
    uint32_t parent;       /* PITH_SCHEMA_NONE: the root */
    pith_schema_word word; /* where it stands in its parent */
    const char *key;       /* in an object: its key; else NULL */
    uint32_t index;        /* in a list */
    uint32_t first_entry, n_entries;
    uint32_t ref;      /* PITH_SCHEMA_NONE: none */
    uint32_t negation; /* pith_schema_tree_negate has made it; 0: not yet */
    uint8_t kinds;     /* that `type` allows */
    bool visited;      /* entries are there */
    bool checked;      /* it and all below have been */
    bool has_force;    /* some keyword says something about values */
    bool only_ref;     /* $ref is the only one that does */
    bool made;         /* not of the text: its `properties` describe nothing */
} pith_schema_node;

typedef struct pith_schema_tree {
    json_t *root;
    const char *place; /* prefix of messages, as "tools[0], " */
    pith_error *error;
    pith_status status;
    pith_schema_node *nodes;
    pith_schema_entry *entries;
    uint32_t n_nodes, n_entries, node_capacity, entry_capacity;
    json_t *made;     /* array: owns the schemas that were made here */
    pith_map refs;    /* text of a $ref -> node */
    pith_map anchors; /* name -> node */
    bool has_anchors; /* all of the text has been looked through for them */
    bool has_ref, has_inner_id;
    uint32_t inner_id; /* a node with an $id that is not the root */
} pith_schema_tree;

/* Takes the json over. Makes node 0 and all that it leads to, and checks them. */
bool pith_schema_tree_init(pith_schema_tree *tree, json_t *json, const char *place,
                           pith_error *error);
void pith_schema_tree_deinit(pith_schema_tree *tree);
/* A schema made by the compiler, which stands where `parent` does. Takes the json over; NULL is
 * allowed and fails. PITH_SCHEMA_NONE without memory. */
uint32_t pith_schema_tree_make(pith_schema_tree *tree, json_t *json, uint32_t parent);

/* The schema {"not": node}, the same one each time. */
uint32_t pith_schema_tree_negate(pith_schema_tree *tree, uint32_t node);

const pith_schema_entry *pith_schema_entry_of(const pith_schema_tree *tree, uint32_t node,
                                              pith_schema_word word); /* NULL: it has none */
const char *pith_schema_word_text(pith_schema_word word);
/* Of a schema that is `true` or `false` (PITH_WORD_NONE: `word` is left out of the path), return
 * false: the sentence "JSON schema, PLACE#/path/word: what". */
bool pith_schema_fail(pith_schema_tree *tree, pith_status status, uint32_t node,
                      pith_schema_word word, const char *what);
bool pith_schema_fail_memory(pith_schema_tree *tree);
/* Room for one element more than `used`; the array may move. NULL without memory. */
void *pith_schema_grown(pith_schema_tree *tree, void *array, uint32_t *capacity, size_t size,
                        uint32_t used);

#endif
