/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of schemas -> alternatives without $ref, allOf, anyOf, oneOf, not, if and dependent*.
 *
 * A draft is an alternative that is being worked out: schemas that hold (`nodes`), those that wait
 * to be looked at, keywords that still have to choose (`choices`), and schemas that must not hold.
 * Looking at a schema settles what is certain; then the first choice makes a draft for each of its
 * alternatives. Drafts stand on a stack, and the kinds of values that are left end hopeless ones
 * at once, so {"anyOf": [strings]} next to {"type": "object"} costs nothing.
 *
 *   oneOf: [A, B, C]   A against B, C | B against A, C | C against A, B
 *   not: A             against A
 *   if A then B else C A, B | C against A
 *   dependentRequired  {"k": ["a"]}: without k | with k and a
 *
 * The number of alternatives of a set is limited: products that explode are refused.
 */
#include "sample/json_schema.h"

#include "base/memory.h"

#include <string.h>

/* A list of words that grows. */
typedef struct list {
    uint32_t *words;
    uint32_t n, capacity;
} list;

typedef struct draft {
    list nodes, waiting, choices, against; /* choices: entry, node, place in a map: three each */
    uint8_t kinds;
} draft;

typedef struct expansion {
    pith_schema *schema;
    uint32_t set;
    draft *drafts; /* [capacity], n of them in use; the lists of the others are kept */
    uint32_t n, capacity;
    uint32_t n_made;
} expansion;

static bool push(expansion *e, list *to, uint32_t word) {
    uint32_t *words =
        pith_schema_grown(&e->schema->tree, to->words, &to->capacity, sizeof *words, to->n);
    if (words == NULL) return false;
    to->words = words;
    words[to->n++] = word;
    return true;
}

static bool push_all(expansion *e, list *to, const list *from, uint32_t skipped) {
    for (uint32_t i = skipped; i < from->n; i++) {
        if (!push(e, to, from->words[i])) return false;
    }
    return true;
}

static void free_draft(draft *d) {
    pith_free(d->nodes.words);
    pith_free(d->waiting.words);
    pith_free(d->choices.words);
    pith_free(d->against.words);
    *d = (draft){0};
}

static bool add_draft(expansion *e) {
    draft *drafts =
        pith_schema_grown(&e->schema->tree, e->drafts, &e->capacity, sizeof *drafts, e->n);
    if (drafts == NULL) return false;
    e->drafts = drafts;
    drafts[e->n++] = (draft){.kinds = PITH_KIND_ALL};
    return true;
}

/* ---- looking at schemas ---- */

static bool has(const list *l, uint32_t word) {
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->words[i] == word) return true;
    }
    return false;
}

static bool push_choice(expansion *e, draft *d, uint32_t entry, uint32_t node, uint32_t place) {
    return push(e, &d->choices, entry) && push(e, &d->choices, node) && push(e, &d->choices, place);
}

/* What the keyword means for the draft; entry: its number. */
static bool look_at_word(expansion *e, draft *d, uint32_t node, uint32_t entry) {
    const pith_schema_tree *tree = &e->schema->tree;
    const pith_schema_entry *word = &tree->entries[entry];
    uint32_t n = word->n_children;
    switch (word->word) {
    case PITH_WORD_REF: return push(e, &d->waiting, tree->nodes[node].ref);
    case PITH_WORD_ALL_OF:
        for (uint32_t i = 0; i < n; i++) {
            if (!push(e, &d->waiting, word->child + i)) return false;
        }
        return true;
    case PITH_WORD_ANY_OF:
    case PITH_WORD_ONE_OF: return push_choice(e, d, entry, node, 0);
    case PITH_WORD_NOT:
        if (!tree->nodes[word->child].has_force) d->kinds = 0;
        return push(e, &d->against, word->child);
    case PITH_WORD_IF:
        if (pith_schema_entry_of(tree, node, PITH_WORD_THEN) == NULL &&
            pith_schema_entry_of(tree, node, PITH_WORD_ELSE) == NULL) {
            return true;
        }
        return push_choice(e, d, entry, node, 0);
    case PITH_WORD_DEPENDENT_SCHEMAS:
    case PITH_WORD_DEPENDENT_REQUIRED:
        if (!(d->kinds & PITH_KIND_OBJECT)) return true;
        for (uint32_t i = 0; i < json_object_size(word->value); i++) {
            if (!push_choice(e, d, entry, node, i)) return false;
        }
        return true;
    default: return true;
    }
}

/* Everything that waits. kinds become 0 where nothing is left. */
static bool look_at_all(expansion *e, draft *d) {
    const pith_schema_tree *tree = &e->schema->tree;
    for (uint32_t i = 0; i < d->waiting.n && d->kinds != 0; i++) {
        uint32_t node = d->waiting.words[i];
        if (!pith_schema_work(e->schema, 1 + d->nodes.n / 8)) return false;
        if (json_is_false(tree->nodes[node].json)) d->kinds = 0;
        if (!tree->nodes[node].has_force || has(&d->nodes, node)) continue;
        if (!push(e, &d->nodes, node)) return false;
        d->kinds &= tree->nodes[node].kinds;
        uint32_t first = tree->nodes[node].first_entry, n = tree->nodes[node].n_entries;
        for (uint32_t k = 0; k < n; k++) {
            if (!look_at_word(e, d, node, first + k)) return false;
        }
    }
    d->waiting.n = 0;
    return true;
}

/* ---- choosing ---- */

/* A draft like `from` without its first choice. */
static draft *branch_off(expansion *e, const draft *from) {
    if (!add_draft(e)) return NULL;
    draft *d = &e->drafts[e->n - 1];
    d->kinds = from->kinds;
    bool good = push_all(e, &d->nodes, &from->nodes, 0) &&
                push_all(e, &d->choices, &from->choices, 3) &&
                push_all(e, &d->against, &from->against, 0);
    if (good && !pith_schema_work(e->schema, 8 + d->nodes.n + d->choices.n + d->against.n)) {
        return NULL;
    }
    return good ? d : NULL;
}

static bool choose_list(expansion *e, const draft *from, const pith_schema_entry *word) {
    for (uint32_t i = word->n_children; i-- > 0;) { /* the first one on top */
        const pith_schema_node *child = &e->schema->tree.nodes[word->child + i];
        if (json_is_false(child->json) || !(child->kinds & from->kinds)) continue;
        draft *d = branch_off(e, from);
        if (d == NULL || !push(e, &d->waiting, word->child + i)) return false;
        for (uint32_t k = 0; k < word->n_children && word->word == PITH_WORD_ONE_OF; k++) {
            const pith_schema_node *other = &e->schema->tree.nodes[word->child + k];
            if (k == i || !(other->kinds & child->kinds & from->kinds)) continue;
            if (!push(e, &d->against, word->child + k)) return false;
        }
    }
    return true;
}

static bool choose_if(expansion *e, const draft *from, const pith_schema_entry *word,
                      uint32_t node) {
    const pith_schema_tree *tree = &e->schema->tree;
    const pith_schema_entry *then = pith_schema_entry_of(tree, node, PITH_WORD_THEN);
    const pith_schema_entry *other = pith_schema_entry_of(tree, node, PITH_WORD_ELSE);
    draft *d = branch_off(e, from);
    if (d == NULL || !push(e, &d->against, word->child)) return false;
    if (other != NULL && !push(e, &d->waiting, other->child)) return false;
    d = branch_off(e, from);
    if (d == NULL || !push(e, &d->waiting, word->child)) return false;
    return then == NULL || push(e, &d->waiting, then->child);
}

/* {"properties": {key: false}} or {"required": [key, ...]} */
static uint32_t make_presence(pith_schema *schema, uint32_t node, const char *key, bool present,
                              const json_t *names) {
    json_t *made = present ? json_pack("{s:[s]}", "required", key)
                           : json_pack("{s:{s:b}}", "properties", key, 0);
    json_t *required = present && made ? json_object_get(made, "required") : NULL;
    for (size_t i = 0; required != NULL && i < json_array_size(names); i++) {
        if (json_array_append(required, json_array_get(names, i)) != 0) {
            json_decref(made);
            made = NULL;
            break;
        }
    }
    return pith_schema_tree_make(&schema->tree, made, node);
}

static bool choose_presence(expansion *e, const draft *from, pith_schema_entry word, uint32_t node,
                            uint32_t place) {
    json_t *map = (json_t *)(uintptr_t)word.value; /* its iterators want no const */
    void *at = json_object_iter(map);
    for (uint32_t i = 0; i < place; i++) at = json_object_iter_next(map, at);
    const char *key = json_object_iter_key(at);
    const json_t *names = word.n_children ? NULL : json_object_iter_value(at);
    uint32_t absent = make_presence(e->schema, node, key, false, NULL);
    uint32_t present = make_presence(e->schema, node, key, true, names);
    if (absent == PITH_SCHEMA_NONE || present == PITH_SCHEMA_NONE) return false;
    draft *d = branch_off(e, from);
    if (d == NULL || !push(e, &d->waiting, absent)) return false;
    d = branch_off(e, from);
    if (d == NULL || !push(e, &d->waiting, present)) return false;
    return word.n_children == 0 || push(e, &d->waiting, word.child + place);
}

static bool choose(expansion *e, const draft *from) {
    uint32_t node = from->choices.words[1], place = from->choices.words[2];
    pith_schema_entry word = e->schema->tree.entries[from->choices.words[0]];
    switch (word.word) {
    case PITH_WORD_IF: return choose_if(e, from, &word, node);
    case PITH_WORD_DEPENDENT_REQUIRED:
    case PITH_WORD_DEPENDENT_SCHEMAS: return choose_presence(e, from, word, node, place);
    default: return choose_list(e, from, &word);
    }
}

/* ---- sets ---- */

static bool finish(expansion *e, const draft *d) {
    if (++e->n_made > PITH_SCHEMA_MAX_BRANCHES) {
        return pith_schema_fail(&e->schema->tree, PITH_ERROR_LIMIT,
                                d->nodes.n ? d->nodes.words[0] : 0, PITH_WORD_NONE,
                                "its anyOf, oneOf and the like make more than 1024 alternatives");
    }
    pith_schema_branch branch = {d->nodes.words, d->against.words, d->nodes.n,
                                 d->against.n,   d->kinds,         e->set};
    return pith_schema_add_shapes(e->schema, &branch);
}

/* The draft on top: looked at, then written down or replaced by its alternatives. */
static bool step(expansion *e) {
    draft d = e->drafts[--e->n];
    bool good = look_at_all(e, &d);
    if (good && d.kinds != 0) good = d.choices.n == 0 ? finish(e, &d) : choose(e, &d);
    free_draft(&d);
    return good;
}

static bool expand(pith_schema *schema, uint32_t set) {
    expansion e = {.schema = schema, .set = set};
    uint32_t n;
    (void)pith_tuple_get(&schema->set_table, set, &n);
    schema->sets[set].first_shape = schema->n_shapes;
    bool good = add_draft(&e);
    for (uint32_t i = 0; good && i < n; i++) {
        uint32_t node = pith_tuple_get(&schema->set_table, set, &n)[i];
        good = push(&e, &e.drafts[0].waiting, node);
    }
    while (good && e.n > 0) good = step(&e);
    while (e.n > 0) free_draft(&e.drafts[--e.n]);
    pith_free(e.drafts);
    schema->sets[set].n_shapes = schema->n_shapes - schema->sets[set].first_shape;
    schema->sets[set].expanded = true;
    return good;
}

static bool expand_new(pith_schema *schema, bool written) {
    for (uint32_t set = 0; set < schema->set_table.n; set++) {
        if (schema->sets[set].expanded) continue;
        schema->sets[set].written = written;
        if (!expand(schema, set)) return false;
    }
    return true;
}

/* The sets of what shapes are against, for the proofs; expanding one may bring others. */
bool pith_schema_expand_all(pith_schema *schema) {
    if (!expand_new(schema, true)) return false;
    while (schema->n_named < schema->n_shapes) {
        pith_words against = schema->shapes[schema->n_named++].against;
        for (uint32_t i = 0; i < against.n; i++) {
            uint32_t node = schema->words[against.first + i];
            if (pith_schema_set_of(schema, &node, 1) == PITH_SCHEMA_NONE) return false;
        }
        if (schema->n_named == schema->n_shapes && !expand_new(schema, false)) return false;
    }
    return true;
}
