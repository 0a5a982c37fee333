/* SPDX-License-Identifier: Apache-2.0
 * Inside of the tree of a JSON schema: its three files (tree, words, reference) for each other. */
#ifndef PITH_SAMPLE_JSON_SCHEMA_PARTS_H
#define PITH_SAMPLE_JSON_SCHEMA_PARTS_H

#include "sample/json_schema_tree.h"

/* What the value of a keyword must be. */
typedef enum pith_schema_form {
    PITH_FORM_NOTE,    /* anything: it says nothing about values */
    PITH_FORM_REFUSED, /* known, and cannot be enforced */
    PITH_FORM_VALUE,
    PITH_FORM_VALUES, /* a list with something in it */
    PITH_FORM_BOOLEAN,
    PITH_FORM_NUMBER,
    PITH_FORM_FACTOR, /* a number above 0 */
    PITH_FORM_COUNT,  /* an integer from 0 */
    PITH_FORM_STRING,
    PITH_FORM_FORMAT, /* a name that json_format.c knows */
    PITH_FORM_TYPE,
    PITH_FORM_NAMES,     /* a list of strings, none twice */
    PITH_FORM_NAMES_MAP, /* such lists by name */
    PITH_FORM_NAME,
    PITH_FORM_ID,
    PITH_FORM_REF,
    PITH_FORM_DEFS, /* schemas by name that are looked at when they are used */
    PITH_FORM_SCHEMA,
    PITH_FORM_SCHEMA_LIST, /* with something in it */
    PITH_FORM_SCHEMA_MAP
} pith_schema_form;

bool pith_schema_visit(pith_schema_tree *tree, uint32_t node);
bool pith_schema_add_children(pith_schema_tree *tree, uint32_t parent, pith_schema_entry *entry,
                              pith_schema_form form);
/* Fills word and children; entry->value is given. */
bool pith_schema_read_word(pith_schema_tree *tree, uint32_t node, const char *name,
                           pith_schema_entry *entry);
/* Sets kinds, has_force and only_ref once all entries are there. */
void pith_schema_settle_node(pith_schema_tree *tree, uint32_t node);
/* The node that a $ref leads to. */
bool pith_schema_follow(pith_schema_tree *tree, uint32_t node, const char *ref, uint32_t *target);
/* Refuses schemas that lead to themselves for the same value. */
bool pith_schema_check_cycles(pith_schema_tree *tree);

#endif
