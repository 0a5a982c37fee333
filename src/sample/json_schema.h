/* SPDX-License-Identifier: Apache-2.0
 * Inside of the compiler of JSON schemas (2020-12). Four steps, each a loop over a list of work:
 *
 *   1. tree      every schema of the text that matters becomes a node; keywords are checked, $ref
 *                followed, unknown keywords refused                       json_schema_tree.c
 *   2. sets      nodes that one value must satisfy together are a set; $ref, allOf, anyOf, oneOf,
 *                not, if and dependent* are resolved into alternatives, and each of them into
 *                shapes, one for a kind of value                          json_schema_expand.c
 *      shapes    the keywords of all nodes of an alternative, merged      json_schema_shape.c,
 *                                                                         json_schema_object.c
 *   3. what cannot be satisfied is found, by a fixpoint over the sets     json_schema_settle.c
 *   4. sets become rules of the grammar, shapes alternatives of them      json_schema_emit.c
 *
 *   {"anyOf": [A, B], "maxLength": 9}      set {root} --> shape {root, A}, shape {root, B}
 *   "properties": {"k": C} in both A and D     the property's set is {A.C, D.C}
 *
 * oneOf and not: an alternative carries the schemas that its values must not satisfy (`against`).
 * Step 4 proves that they do not, narrows the shape so that they do not, or refuses.
 * Invariant: what is written is valid. The form of what is written: json_text.h. */
#ifndef PITH_SAMPLE_JSON_SCHEMA_H
#define PITH_SAMPLE_JSON_SCHEMA_H

#include "sample/json_schema_tree.h"
#include "sample/json_text.h"

enum {
    PITH_SCHEMA_MAX_SETS = 1 << 16,
    PITH_SCHEMA_MAX_SHAPES = 1 << 17,
    PITH_SCHEMA_MAX_BRANCHES = 1024, /* alternatives of one set */
    PITH_SCHEMA_MAX_NESTING = 128,   /* of schemas and values while checking a value */
    PITH_SCHEMA_MAX_STEPS = 1 << 25, /* of resolving alternatives and checking values */
    PITH_SCHEMA_MAX_PATTERNS = 4     /* of patternProperties that meet in one object */
};

typedef enum pith_shape_kind {
    PITH_SHAPE_VALUES, /* one of a list */
    PITH_SHAPE_NUMBER,
    PITH_SHAPE_STRING,
    PITH_SHAPE_ARRAY,
    PITH_SHAPE_OBJECT
} pith_shape_kind;

/* A stretch of pith_schema.words. */
typedef struct pith_words {
    uint32_t first, n;
} pith_words;

typedef struct pith_schema_property {
    const char *key; /* borrowed of the schema's text */
    uint32_t set;    /* what its value must satisfy */
    bool required;
} pith_schema_property;

/* Keys that nobody declared, by the patterns of patternProperties that they match. */
typedef struct pith_schema_cell {
    uint32_t matched; /* bits: patterns of the shape */
    uint32_t set;     /* of the value */
} pith_schema_cell;

typedef struct pith_schema_shape {
    pith_shape_kind kind;
    uint32_t node;      /* the first of the schemas it was merged from, for messages */
    pith_words against; /* nodes: no value may satisfy one of them */
    /* a keyword that cannot be enforced here; refused when the shape is to be written */
    uint32_t refused_node; /* PITH_SCHEMA_NONE: none */
    pith_schema_word refused_word;
    const char *refused_why;
    bool fits; /* some finite value fits it, as far as is known */
    pith_grammar_node
        made; /* what a NUMBER or STRING is written as without `against`, 0: unknown */
    union {
        pith_words values; /* VALUES: in pith_schema.values */
        pith_json_bounds number;
        struct {
            uint32_t min, max;   /* code points */
            pith_words patterns; /* in pith_schema.patterns: all must match */
        } string;
        struct {
            uint32_t min, max; /* items */
            pith_words first;  /* sets of the first ones */
            uint32_t rest;     /* set of the others */
            bool unique;
        } array;
        struct {
            uint32_t min, max;                     /* properties */
            uint32_t first_property, n_properties; /* in pith_schema.properties */
            pith_words patterns;                   /* of patternProperties */
            uint32_t first_cell, n_cells;          /* in pith_schema.cells */
            uint32_t names;                        /* set that each key must satisfy */
            bool closed; /* keys that match no pattern are valid but are not written */
        } object;
    };
} pith_schema_shape;

typedef struct pith_schema_set {
    uint32_t first_shape, n_shapes;
    uint32_t conflict; /* node whose keywords contradict each other, PITH_SCHEMA_NONE: none known */
    pith_schema_word conflict_word;
    bool expanded;
    bool weighed;     /* it is known which numbers and strings fit */
    bool written;     /* may be met by what is written, not only by what must not be satisfied */
    bool satisfiable; /* some finite value fits it */
    bool has_rule;
    pith_grammar_rule rule;
} pith_schema_set;

/* A pattern or format, with what it has been made into so far. */
typedef struct pith_schema_pattern {
    uint32_t node; /* where it stands, for messages */
    pith_schema_word word;
    pith_regex regex;
    bool anchored; /* matches as a whole instead of searching */
    bool has_automaton;
    pith_alphabet alphabet;
    pith_automaton automaton;
} pith_schema_pattern;

/* A compilation. Functions that return false have set status and error of the tree. */
typedef struct pith_schema {
    pith_schema_tree tree;
    pith_json_text *text;
    pith_tuple_table set_table; /* node numbers -> set */
    pith_schema_set *sets;      /* [set_table.n] */
    pith_schema_shape *shapes;  /* [n_shapes] */
    pith_schema_property *properties;
    pith_schema_cell *cells;
    pith_schema_pattern *patterns;
    const json_t **values;
    uint32_t *words;
    uint32_t n_shapes, n_properties, n_cells, n_patterns, n_values, n_words;
    uint32_t set_capacity, shape_capacity, property_capacity, cell_capacity, pattern_capacity,
        value_capacity, word_capacity;
    pith_map pattern_of, format_of; /* text of a pattern, name of a format -> pattern */
    uint32_t n_named; /* shapes for which the sets of what they are against are there */
    uint32_t *queue;  /* [n_queue] sets whose rules are to be written, in turn */
    uint32_t n_queue, queue_capacity;
    uint64_t steps, step_limit; /* of pith_schema_work */
    uint32_t depth;             /* of pith_schema_validate in itself */
    uint32_t listed;            /* the value to be checked comes from the enum of this node */
} pith_schema;

/* ---- json_schema_set.c: what the others are made of ---- */

void pith_schema_deinit(pith_schema *schema); /* the tree and the lists, not the text */
/* Counts work; false past the limit. */
bool pith_schema_work(pith_schema *schema, uint64_t steps);
bool pith_schema_push_word(pith_schema *schema, uint32_t word);
bool pith_schema_push_value(pith_schema *schema, const json_t *value);
/* The set of n nodes, the same for the same demands: `true` is left out, a node that only refers
 * gives way to what it refers to, `false` stays alone. PITH_SCHEMA_NONE after a failure. */
uint32_t pith_schema_set_of(pith_schema *schema, const uint32_t *nodes, uint32_t n);
/* A node that is `false` alone. */
bool pith_schema_set_is_false(const pith_schema *schema, uint32_t set);
/* Of the keyword `pattern`, a key of `patternProperties`, or a format. */
uint32_t pith_schema_pattern_of(pith_schema *schema, uint32_t node, pith_schema_word word,
                                pith_span text);
/* What the next one needs, once; it makes it where it is missing. */
bool pith_schema_make_automaton(pith_schema *schema, uint32_t pattern);
/* Does the string match? */
bool pith_schema_matches(pith_schema *schema, uint32_t pattern, pith_span string, bool *matches);

/* ---- json_schema_expand.c ---- */

/* Makes the shapes of all sets that have none yet, and of the sets that this makes. */
bool pith_schema_expand_all(pith_schema *schema);

/* ---- json_schema_shape.c, json_schema_object.c ---- */

/* One alternative: the schemas that hold, those that must not, the kinds that are left. */
typedef struct pith_schema_branch {
    const uint32_t *nodes, *against;
    uint32_t n_nodes, n_against;
    uint8_t kinds;
    uint32_t set; /* that it is an alternative of */
} pith_schema_branch;

bool pith_schema_add_shapes(pith_schema *schema, const pith_schema_branch *branch);
/* Fills the shape; *empty: nothing can fit it. */
bool pith_schema_fill_object(pith_schema *schema, const pith_schema_branch *branch,
                             pith_schema_shape *shape, bool *empty);
/* The keyword cannot be enforced where the shape is written; the first one counts. */
void pith_schema_refuse(pith_schema_shape *shape, uint32_t node, pith_schema_word word,
                        const char *why);
void pith_schema_note_conflict(pith_schema *schema, const pith_schema_branch *branch, uint32_t node,
                               pith_schema_word word);
uint32_t pith_schema_count(const pith_schema_entry *entry); /* of a COUNT, at most 2^32 - 2 */

/* ---- json_schema_value.c ---- */

/* Is the value valid? Every keyword counts, also those that cannot be written. */
bool pith_schema_validate(pith_schema *schema, uint32_t node, const json_t *value, bool *valid);
uint8_t pith_schema_kind_of(const json_t *value);
bool pith_schema_equal(const json_t *a, const json_t *b); /* 1 and 1.0 are equal */

/* ---- json_schema_settle.c ---- */

/* Can the shape be satisfied, by what is known of the sets? */
bool pith_schema_fits(const pith_schema *schema, const pith_schema_shape *shape);
/* Fills `fits` and `satisfiable`. */
bool pith_schema_settle(pith_schema *schema);
/* Refuses written schemas that contradict themselves. */
bool pith_schema_refuse_contradictions(pith_schema *schema, uint32_t root);

/* ---- json_schema_apart.c, json_schema_disjoint.c ---- */

/* Makes *shape one of which nothing satisfies what it is `against` (a narrowed copy), or refuses.
 * Strings are narrowed when they are written: *strings, shapes to take away, lies in
 * pith_schema.words. */
bool pith_schema_keep_apart(pith_schema *schema, uint32_t *shape, pith_words *strings);
/* The set that the value of a key must satisfy, whoever described it; *written: such a member may
 * be written. */
bool pith_schema_set_of_key(pith_schema *schema, const pith_schema_shape *shape, const char *key,
                            uint32_t *set, bool *written);
/* What an array's item must satisfy. */
uint32_t pith_schema_set_of_item(const pith_schema *schema, const pith_schema_shape *shape,
                                 uint32_t index);
/* Is it certain that no value written for a satisfies b? Both are of one kind, and no VALUES. */
bool pith_schema_are_disjoint(pith_schema *schema, const pith_schema_shape *a,
                              const pith_schema_shape *b, bool *disjoint);

/* ---- json_schema_emit.c, json_schema_string.c, json_schema_members.c ---- */

bool pith_schema_emit(pith_schema *schema, uint32_t root, pith_grammar_node *out);
/* The rule of a set that can be satisfied; listed to be written. 0 after a failure. */
pith_grammar_node pith_schema_use(pith_schema *schema, uint32_t set);
/* without: shapes of strings or values; *nothing: no string is left. */
bool pith_schema_emit_string(pith_schema *schema, const pith_schema_shape *shape,
                             pith_words without, pith_grammar_node *out, bool *nothing);
bool pith_schema_strings_disjoint(pith_schema *schema, const pith_schema_shape *a,
                                  const pith_schema_shape *b, bool *disjoint);
/* Keys of the cell: none of the shape's properties. */
bool pith_schema_emit_keys(pith_schema *schema, const pith_schema_shape *shape, uint32_t matched,
                           pith_grammar_node *out, bool *nothing);
bool pith_schema_emit_array(pith_schema *schema, const pith_schema_shape *shape,
                            pith_grammar_node *out);
bool pith_schema_emit_object(pith_schema *schema, const pith_schema_shape *shape,
                             pith_grammar_node *out);

#endif
