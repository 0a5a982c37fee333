/* SPDX-License-Identifier: Apache-2.0
 * Inside of the grammar builder (private to the sample room): the nodes, before they become states.
 *
 * A node refers to nodes that were made before it, so that one pass in the order of their numbers
 * sees parts before wholes; only REFER, the use of a rule, may point anywhere. Equal nodes are one
 * node: a part that several places use is compiled once. Read next: grammar_builder.c (making
 * nodes), grammar_check.c (what is refused), grammar_compile.c (nodes to states). */
#ifndef PITH_SAMPLE_GRAMMAR_BUILDER_H
#define PITH_SAMPLE_GRAMMAR_BUILDER_H

#include "sample/grammar_program.h"

enum {
    PITH_GRAMMAR_MAX_PARTS = 1 << 22, /* children of all nodes; ranges of all classes */
    PITH_GRAMMAR_MAX_BYTES = 1 << 24  /* of all literals */
};

typedef enum pith_item_kind {
    PITH_ITEM_BYTES, /* first, n: in `bytes` */
    PITH_ITEM_CLASS, /* first, n: in `ranges`, sorted, apart, without surrogates */
    PITH_ITEM_SEQUENCE,
    PITH_ITEM_CHOICE, /* both: first, n: in `parts` */
    PITH_ITEM_REPEAT, /* first: the node; min, max */
    PITH_ITEM_UNTIL,  /* first, n: in `bytes` */
    PITH_ITEM_REFER,  /* first: the rule */
    PITH_ITEM_TOKEN   /* first: the id; n: 1 when negated */
} pith_item_kind;

typedef struct pith_item {
    uint8_t kind; /* pith_item_kind */
    uint32_t first, n;
    uint32_t min, max;
    uint32_t next; /* of the same hash; 0: none */
} pith_item;

typedef struct pith_rule {
    char *name;            /* owned, its first 120 bytes */
    uint32_t node;         /* 0: not defined */
    uint32_t line, column; /* where it is defined or first used; 0: unknown */
} pith_rule;

struct pith_grammar_builder {
    pith_item *items; /* [n_items], 0 unused */
    uint32_t n_items, items_capacity;
    uint32_t *parts;
    uint32_t n_parts, parts_capacity;
    pith_code_range *ranges;
    uint32_t n_ranges, ranges_capacity;
    char *bytes;
    uint32_t n_bytes, bytes_capacity;
    pith_rule *rules;
    uint32_t n_rules, rules_capacity;
    uint32_t *buckets; /* [n_buckets] first item of a hash */
    uint32_t n_buckets;
    pith_error error; /* the first one; status PITH_OK: none */
};

/* Room for `needed` elements, doubling; NULL without memory, and `array` stays valid. */
void *pith_grammar_grow(void *array, uint32_t *capacity, size_t element_bytes, uint32_t needed);

/* Where a rule stands in a source text, for messages. */
void pith_grammar_place(pith_grammar_builder *builder, pith_grammar_rule rule, uint32_t line,
                        uint32_t column);
/* One token as a whole, or with `negated` any other token. */
pith_grammar_node pith_grammar_token(pith_grammar_builder *builder, uint32_t id, bool negated);
/* The nodes that a node is made of; a REFER of its rule's node. */
uint32_t pith_grammar_n_parts(const pith_grammar_builder *builder, uint32_t node);
uint32_t pith_grammar_part(const pith_grammar_builder *builder, uint32_t node, uint32_t index);
/* The node itself, or what a REFER stands for, which is no REFER. Only of a grammar without left
 * recursion. */
uint32_t pith_grammar_meant(const pith_grammar_builder *builder, uint32_t node);

/* What the checks find out about every node. */
typedef struct pith_grammar_facts {
    uint8_t *ends;     /* [n_items] some text matches it */
    uint8_t *nullable; /* [n_items] the empty text matches it */
    uint8_t *called;   /* [n_items] used inside itself: must be called */
    /* [n_order] what the root reaches and has a text, without REFER; parts before wholes */
    uint32_t *order;
    uint32_t n_order;
} pith_grammar_facts;
/* PITH_OK, or what is wrong with the grammar by the name of a rule. deinit in every case. */
pith_status pith_grammar_check(const pith_grammar_builder *builder, pith_grammar_node root,
                               pith_grammar_facts *facts, pith_error *error);
void pith_grammar_facts_deinit(pith_grammar_facts *facts);
/* Nodes to states. */
pith_status pith_grammar_compile(const pith_grammar_builder *builder,
                                 const pith_grammar_facts *facts, pith_grammar_node root,
                                 pith_grammar **out, pith_error *error);

#endif
