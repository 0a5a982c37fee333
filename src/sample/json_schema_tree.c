/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of a schema: made when they are first needed, checked from a list of work.
 *
 * Invariant: the children of one keyword are neighbours, so a keyword knows them by the first and
 * their number. What stands below $defs is looked at when a $ref leads there, so a part of a large
 * collection that nobody uses cannot make the whole unusable.
 *
 * A cycle of $ref, allOf, anyOf, oneOf, not, if and the like that never reaches a part of the value
 * says nothing that could be decided; it is refused (json_schema_reference.c).
 * Read next: json_schema_words.c (forms of keywords), json_schema_reference.c ($ref).
 */
#include "sample/json_schema_tree.h"

#include "base/memory.h"
#include "sample/json_schema_parts.h"
#include "sample/schema_part.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 512, SHOWN_BYTES = 130, PATH_STEPS = 64 };

/* ---- text -> JSON ---- */

/* Line of the place where nesting goes too deep or a NUL byte stands between values; 0: none. */
static size_t line_refused(pith_span text, bool *is_nul) {
    size_t depth = 0, line = 1;
    bool in_string = false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        line += c == '\n';
        if (in_string) {
            if (c == '\\') i++;
            in_string = c != '"';
            continue;
        }
        in_string = c == '"';
        if (c == '[' || c == '{') depth++;
        if ((c == ']' || c == '}') && depth > 0) depth--;
        *is_nul = c == 0; /* jansson would take it for the end of a number */
        if (depth > PITH_SCHEMA_MAX_DEPTH || *is_nul) return line;
    }
    return 0;
}

pith_status pith_schema_read(pith_span text, const char *what, json_t **out, pith_error *error) {
    json_error_t reason;
    *out = NULL;
    if (text.size > PITH_GRAMMAR_MAX_TEXT) {
        return pith_fail(error, PITH_ERROR_LIMIT, "JSON schema: %zu bytes, but at most %d are read",
                         text.size, PITH_GRAMMAR_MAX_TEXT);
    }
    bool is_nul = false;
    size_t line = line_refused(text, &is_nul);
    if (is_nul) {
        return pith_fail(error, PITH_ERROR_FORMAT, "%s, line %zu: a NUL byte is no part of JSON",
                         what, line);
    }
    if (line > 0) {
        return pith_fail(error, PITH_ERROR_LIMIT, "%s, line %zu: nested more than %d levels deep",
                         what, line, PITH_SCHEMA_MAX_DEPTH);
    }
    *out = json_loadb(text.size > 0 ? text.data : "", text.size,
                      JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &reason);
    if (*out != NULL) return PITH_OK;
    if (json_error_code(&reason) == json_error_out_of_memory) {
        return pith_fail_memory(error, "a JSON schema", text.size);
    }
    return pith_fail(error, PITH_ERROR_FORMAT, "%s, line %d, column %d: %s", what,
                     reason.line < 1 ? 1 : reason.line, reason.column < 0 ? 0 : reason.column,
                     reason.text);
}

/* ---- messages ---- */

static void append_escaped(pith_buffer *path, const char *key) {
    for (const char *c = key; *c; c++) {
        if (*c == '~' || *c == '/') {
            pith_buffer_append_text(path, *c == '~' ? "~0" : "~1");
        } else {
            pith_buffer_append(path, c, 1);
        }
    }
}

/* The last PATH_STEPS steps of the way to the node. */
static void append_path(pith_buffer *path, const pith_schema_tree *tree, uint32_t node) {
    uint32_t steps[PATH_STEPS], n = 0;
    for (; tree->nodes[node].parent != PITH_SCHEMA_NONE; node = tree->nodes[node].parent) {
        if (tree->nodes[node].word == PITH_WORD_NONE) continue; /* made here */
        if (n < PATH_STEPS) steps[n++] = node;
    }
    pith_buffer_append_text(path, "#");
    while (n > 0) {
        const pith_schema_node *step = &tree->nodes[steps[--n]];
        pith_buffer_append_format(path, "/%s", pith_schema_word_text(step->word));
        if (step->key != NULL) {
            pith_buffer_append_text(path, "/");
            append_escaped(path, step->key);
        } else if (step->index != PITH_SCHEMA_NONE) {
            pith_buffer_append_format(path, "/%u", (unsigned)step->index);
        }
    }
}

bool pith_schema_fail(pith_schema_tree *tree, pith_status status, uint32_t node,
                      pith_schema_word word, const char *what) {
    pith_buffer path = {0};
    if (tree->status != PITH_OK) return false;
    append_path(&path, tree, node);
    if (word != PITH_WORD_NONE) {
        pith_buffer_append_format(&path, "/%s", pith_schema_word_text(word));
    }
    if (path.failed) {
        pith_buffer_deinit(&path);
        return pith_schema_fail_memory(tree);
    }
    const char *shown = path.data;
    const char *cut = "";
    if (path.size > SHOWN_BYTES) { /* the end says more than the beginning */
        shown = path.data + path.size - SHOWN_BYTES;
        while (((uint8_t)*shown & 0xC0) == 0x80) shown++;
        cut = "#...";
    }
    tree->status =
        pith_fail(tree->error, status, "JSON schema, %s%s%s: %s", tree->place, cut, shown, what);
    pith_buffer_deinit(&path);
    return false;
}

bool pith_schema_fail_memory(pith_schema_tree *tree) {
    if (tree->status == PITH_OK) {
        tree->status = pith_fail_memory(tree->error, "a JSON schema", 0);
    }
    return false;
}

void *pith_schema_grown(pith_schema_tree *tree, void *array, uint32_t *capacity, size_t size,
                        uint32_t used) {
    if (used < *capacity) return array;
    uint32_t wanted = *capacity ? *capacity * 2 : 32;
    size_t bytes;
    void *grown = NULL;
    if (wanted > *capacity && pith_size_mul(wanted, size, &bytes)) {
        grown = pith_realloc(array, bytes);
    }
    if (grown == NULL) {
        (void)pith_schema_fail_memory(tree);
        return NULL;
    }
    *capacity = wanted;
    return grown;
}

/* ---- nodes ---- */

/* PITH_SCHEMA_NONE after a failure. */
static uint32_t add_node(pith_schema_tree *tree, pith_schema_node node) {
    if (tree->n_nodes >= PITH_SCHEMA_MAX_NODES) {
        (void)pith_schema_fail(tree, PITH_ERROR_LIMIT, 0, PITH_WORD_NONE, "too many schemas");
        return PITH_SCHEMA_NONE;
    }
    pith_schema_node *nodes =
        pith_schema_grown(tree, tree->nodes, &tree->node_capacity, sizeof *nodes, tree->n_nodes);
    if (nodes == NULL) return PITH_SCHEMA_NONE;
    tree->nodes = nodes;
    node.ref = PITH_SCHEMA_NONE;
    node.kinds = PITH_KIND_ALL;
    nodes[tree->n_nodes] = node;
    return tree->n_nodes++;
}

static bool add_child(pith_schema_tree *tree, pith_schema_entry *entry, pith_schema_node node) {
    if (!json_is_object(node.json) && !json_is_boolean(node.json)) {
        return pith_schema_fail(tree, PITH_ERROR_FORMAT, node.parent, node.word,
                                "a schema is an object, true or false");
    }
    uint32_t child = add_node(tree, node);
    if (child == PITH_SCHEMA_NONE) return false;
    if (entry->n_children++ == 0) entry->child = child;
    return true;
}

bool pith_schema_add_children(pith_schema_tree *tree, uint32_t parent, pith_schema_entry *entry,
                              pith_schema_form form) {
    json_t *value = (json_t *)(uintptr_t)entry->value; /* its iterators want no const */
    pith_schema_node node = {.parent = parent, .word = entry->word, .index = PITH_SCHEMA_NONE};
    if (form == PITH_FORM_SCHEMA) {
        node.json = value;
        return add_child(tree, entry, node);
    }
    if (form == PITH_FORM_SCHEMA_LIST) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            node.json = json_array_get(value, i);
            node.index = (uint32_t)i;
            if (!add_child(tree, entry, node)) return false;
        }
        return true;
    }
    for (void *at = json_object_iter(value); at; at = json_object_iter_next(value, at)) {
        node.json = json_object_iter_value(at);
        node.key = json_object_iter_key(at);
        if (!add_child(tree, entry, node)) return false;
    }
    return true;
}

/* The keywords of a node, once. */
bool pith_schema_visit(pith_schema_tree *tree, uint32_t node) {
    if (tree->nodes[node].visited) return true;
    json_t *object = (json_t *)(uintptr_t)tree->nodes[node].json; /* see above */
    tree->nodes[node].visited = true;
    tree->nodes[node].first_entry = tree->n_entries;
    if (!json_is_object(object)) {
        tree->nodes[node].has_force = json_is_false(object);
        return true;
    }
    uint32_t first = tree->n_entries, n = (uint32_t)json_object_size(object);
    for (uint32_t i = 0; i < n; i++) {
        pith_schema_entry *entries = pith_schema_grown(tree, tree->entries, &tree->entry_capacity,
                                                       sizeof *entries, tree->n_entries);
        if (entries == NULL) return false;
        tree->entries = entries;
        tree->n_entries++;
    }
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        pith_schema_entry entry = {.value = json_object_iter_value(at)};
        if (!pith_schema_read_word(tree, node, json_object_iter_key(at), &entry)) return false;
        tree->entries[first + tree->nodes[node].n_entries++] = entry;
    }
    pith_schema_settle_node(tree, node);
    return true;
}

const pith_schema_entry *pith_schema_entry_of(const pith_schema_tree *tree, uint32_t node,
                                              pith_schema_word word) {
    const pith_schema_node *n = &tree->nodes[node];
    for (uint32_t i = 0; i < n->n_entries; i++) {
        if (tree->entries[n->first_entry + i].word == word) {
            return &tree->entries[n->first_entry + i];
        }
    }
    return NULL;
}

/* ---- the whole ---- */

typedef struct work_list {
    uint32_t *nodes;
    uint32_t n, capacity;
} work_list;

static bool push(pith_schema_tree *tree, work_list *list, uint32_t node) {
    uint32_t *nodes = pith_schema_grown(tree, list->nodes, &list->capacity, sizeof *nodes, list->n);
    if (nodes == NULL) return false;
    list->nodes = nodes;
    nodes[list->n++] = node;
    return true;
}

/* Visits the node, follows its $ref and lists what it leads to. */
static bool check_node(pith_schema_tree *tree, work_list *list, uint32_t node) {
    if (tree->nodes[node].checked) return true;
    tree->nodes[node].checked = true;
    if (!pith_schema_visit(tree, node)) return false;
    for (uint32_t i = 0; i < tree->nodes[node].n_entries; i++) {
        const pith_schema_entry *entry = &tree->entries[tree->nodes[node].first_entry + i];
        if (entry->word == PITH_WORD_DEFS || entry->word == PITH_WORD_DEFINITIONS) continue;
        uint32_t child = entry->child, n = entry->n_children;
        if (entry->word == PITH_WORD_REF) {
            if (!pith_schema_follow(tree, node, json_string_value(entry->value), &child)) {
                return false;
            }
            tree->nodes[node].ref = child;
            n = 1;
        }
        for (uint32_t k = 0; k < n; k++) {
            if (!push(tree, list, child + k)) return false;
        }
    }
    return true;
}

static bool check_all(pith_schema_tree *tree, uint32_t node) {
    work_list list = {0};
    bool good = push(tree, &list, node);
    while (good && list.n > 0) good = check_node(tree, &list, list.nodes[--list.n]);
    pith_free(list.nodes);
    return good;
}

uint32_t pith_schema_tree_make(pith_schema_tree *tree, json_t *json, uint32_t parent) {
    if (json == NULL || json_array_append_new(tree->made, json) != 0) {
        (void)pith_schema_fail_memory(tree);
        return PITH_SCHEMA_NONE;
    }
    uint32_t node = add_node(tree, (pith_schema_node){.json = json,
                                                      .parent = parent,
                                                      .word = PITH_WORD_NONE,
                                                      .index = PITH_SCHEMA_NONE,
                                                      .made = true});
    return node != PITH_SCHEMA_NONE && check_all(tree, node) ? node : PITH_SCHEMA_NONE;
}

uint32_t pith_schema_tree_negate(pith_schema_tree *tree, uint32_t node) {
    if (tree->nodes[node].negation != 0) return tree->nodes[node].negation;
    uint32_t made = pith_schema_tree_make(tree, json_object(), node);
    if (made == PITH_SCHEMA_NONE) return made;
    pith_schema_entry *entries = pith_schema_grown(tree, tree->entries, &tree->entry_capacity,
                                                   sizeof *entries, tree->n_entries);
    if (entries == NULL) return PITH_SCHEMA_NONE;
    tree->entries = entries;
    entries[tree->n_entries] = (pith_schema_entry){
        .word = PITH_WORD_NOT, .value = tree->nodes[node].json, .child = node, .n_children = 1};
    tree->nodes[made].first_entry = tree->n_entries++;
    tree->nodes[made].n_entries = 1;
    tree->nodes[made].has_force = true;
    tree->nodes[node].negation = made;
    return made;
}

bool pith_schema_tree_init(pith_schema_tree *tree, json_t *json, const char *place,
                           pith_error *error) {
    *tree = (pith_schema_tree){
        .root = json, .place = place, .error = error, .made = json_array(), .inner_id = 0};
    uint32_t root = add_node(tree, (pith_schema_node){.json = json,
                                                      .parent = PITH_SCHEMA_NONE,
                                                      .word = PITH_WORD_NONE,
                                                      .index = PITH_SCHEMA_NONE});
    if (root == PITH_SCHEMA_NONE) return false;
    if (tree->made == NULL) return pith_schema_fail_memory(tree);
    if (!json_is_object(json) && !json_is_boolean(json)) {
        return pith_schema_fail(tree, PITH_ERROR_FORMAT, root, PITH_WORD_NONE,
                                "a schema is an object, true or false");
    }
    if (!check_all(tree, root)) return false;
    if (tree->has_ref && tree->has_inner_id) {
        return pith_schema_fail(tree, PITH_ERROR_UNSUPPORTED, tree->inner_id, PITH_WORD_ID,
                                "schemas that give themselves an address below the root are not "
                                "supported together with $ref");
    }
    return pith_schema_check_cycles(tree);
}

void pith_schema_tree_deinit(pith_schema_tree *tree) {
    json_decref(tree->root);
    json_decref(tree->made);
    pith_free(tree->nodes);
    pith_free(tree->entries);
    pith_map_deinit(&tree->refs);
    pith_map_deinit(&tree->anchors);
    *tree = (pith_schema_tree){0};
}
