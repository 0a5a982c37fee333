/* SPDX-License-Identifier: Apache-2.0
 *
 * $ref: from its text to a node, and cycles.
 *
 * A reference stays in the text: `#`, `#/a/JSON/pointer` (with ~0 ~1 and %XX), `#anchor`, each also
 * behind the root's own $id. Pointers lead through keywords that hold schemas and nowhere else, so
 * what they lead to has been checked as every other schema. Another document is refused: pith
 * fetches nothing.
 */
#include "sample/json_schema_parts.h"

#include "base/memory.h"

#include <string.h>

static bool fail_ref(pith_schema_tree *tree, uint32_t node, const char *what) {
    return pith_schema_fail(tree, PITH_ERROR_UNSUPPORTED, node, PITH_WORD_REF, what);
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* One step of a pointer, decoded; *at moves behind it. false: broken. */
static bool read_step(const char **at, pith_buffer *step) {
    pith_buffer_reset(step);
    pith_buffer_append(step, "", 0);
    for (; **at && **at != '/'; (*at)++) {
        char c = **at;
        if (c == '%') {
            int high = hex_digit((*at)[1]), low = high < 0 ? -1 : hex_digit((*at)[2]);
            if (low < 0) return false;
            c = (char)(high * 16 + low);
            *at += 2;
        }
        if (c == '~') {
            (*at)++;
            if (**at != '0' && **at != '1') return false;
            c = **at == '0' ? '~' : '/';
        }
        pith_buffer_append(step, &c, 1);
    }
    return true;
}

static const char *step_text(const pith_buffer *step) {
    return step->data ? step->data : "";
}

/* The index that a step of digits is (RFC 6901: no sign, no leading zero); UINT32_MAX: it is none.
 */
static uint32_t index_of_step(const char *step) {
    uint32_t index = 0;
    const size_t size = strlen(step);
    if (size == 0 || size > 7 || (step[0] == '0' && size > 1)) return UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        if (step[i] < '0' || step[i] > '9') return UINT32_MAX;
        index = index * 10 + (uint32_t)(step[i] - '0');
    }
    return index;
}

/* The child of the entry that the step names; PITH_SCHEMA_NONE: none. */
static uint32_t find_child(const pith_schema_tree *tree, const pith_schema_entry *entry,
                           const char *step) {
    for (uint32_t i = 0; i < entry->n_children; i++) {
        const pith_schema_node *child = &tree->nodes[entry->child + i];
        if (child->key != NULL && strcmp(child->key, step) == 0) return entry->child + i;
        if (child->key == NULL) {
            const uint32_t index = index_of_step(step);
            return index < entry->n_children ? entry->child + index : PITH_SCHEMA_NONE;
        }
    }
    return PITH_SCHEMA_NONE;
}

/* One keyword, and where it holds several schemas the name of one of them. */
static bool take_step(pith_schema_tree *tree, uint32_t *node, const char **at, pith_buffer *step) {
    const pith_schema_entry *entry = NULL;
    if (!pith_schema_visit(tree, *node)) return false;
    if (!read_step(at, step)) return true;
    const pith_schema_node *n = &tree->nodes[*node];
    *node = PITH_SCHEMA_NONE;
    for (uint32_t i = 0; i < n->n_entries; i++) {
        const pith_schema_entry *each = &tree->entries[n->first_entry + i];
        if (strcmp(pith_schema_word_text(each->word), step_text(step)) == 0) entry = each;
    }
    if (entry == NULL || entry->n_children == 0) return true;
    bool single = tree->nodes[entry->child].key == NULL &&
                  tree->nodes[entry->child].index == PITH_SCHEMA_NONE;
    if (single) {
        *node = entry->child;
    } else if (**at == '/') {
        (*at)++;
        if (read_step(at, step)) *node = find_child(tree, entry, step_text(step));
    }
    return true;
}

static bool follow_pointer(pith_schema_tree *tree, uint32_t node, const char *at,
                           uint32_t *target) {
    pith_buffer step = {0};
    bool good = true;
    *target = 0;
    while (good && *at == '/' && *target != PITH_SCHEMA_NONE) {
        at++;
        good = take_step(tree, target, &at, &step);
    }
    bool failed = step.failed;
    pith_buffer_deinit(&step);
    if (failed) return pith_schema_fail_memory(tree);
    if (good && *target == PITH_SCHEMA_NONE) return fail_ref(tree, node, "no schema stands there");
    return good;
}

/* Looks through all of the text, parts that nobody refers to included. */
static bool collect_anchors(pith_schema_tree *tree) {
    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        if (!pith_schema_visit(tree, i)) return false;
        const pith_schema_entry *entry = pith_schema_entry_of(tree, i, PITH_WORD_ANCHOR);
        if (entry == NULL) continue;
        pith_span name = {json_string_value(entry->value), json_string_length(entry->value)};
        int inserted = pith_map_insert(&tree->anchors, name, (int32_t)i, NULL);
        if (inserted < 0) return pith_schema_fail_memory(tree);
        if (inserted == 0) {
            return pith_schema_fail(tree, PITH_ERROR_FORMAT, i, PITH_WORD_ANCHOR,
                                    "two schemas have this anchor");
        }
    }
    tree->has_anchors = true;
    return true;
}

static bool follow_anchor(pith_schema_tree *tree, uint32_t node, const char *name,
                          uint32_t *target) {
    int32_t found;
    if (!tree->has_anchors && !collect_anchors(tree)) return false;
    if (!pith_map_find(&tree->anchors, pith_span_of(name), &found)) {
        return fail_ref(tree, node, "no schema has this anchor");
    }
    *target = (uint32_t)found;
    return true;
}

bool pith_schema_follow(pith_schema_tree *tree, uint32_t node, const char *ref, uint32_t *target) {
    int32_t known;
    pith_span whole = pith_span_of(ref);
    if (pith_map_find(&tree->refs, whole, &known)) {
        *target = (uint32_t)known;
        return true;
    }
    const char *fragment = strchr(ref, '#');
    const pith_schema_entry *id = pith_schema_entry_of(tree, 0, PITH_WORD_ID);
    size_t before = fragment ? (size_t)(fragment - ref) : whole.size;
    if (before > 0) {
        const char *root = id ? json_string_value(id->value) : "";
        size_t size = strcspn(root, "#");
        if (size != before || memcmp(root, ref, before) != 0) {
            return fail_ref(tree, node, "only references within the schema are followed");
        }
    }
    const char *at = fragment ? fragment + 1 : "";
    bool good = true;
    *target = 0;
    if (*at == '/') {
        good = follow_pointer(tree, node, at, target);
    } else if (*at) {
        good = follow_anchor(tree, node, at, target);
    }
    if (good && pith_map_insert(&tree->refs, whole, (int32_t)*target, NULL) < 0) {
        return pith_schema_fail_memory(tree);
    }
    return good;
}

/* ---- cycles ---- */

/* Keywords whose schemas speak about the same value as the one they stand in. */
static bool is_in_place(pith_schema_word word) {
    switch (word) {
    case PITH_WORD_REF:
    case PITH_WORD_ALL_OF:
    case PITH_WORD_ANY_OF:
    case PITH_WORD_ONE_OF:
    case PITH_WORD_NOT:
    case PITH_WORD_IF:
    case PITH_WORD_THEN:
    case PITH_WORD_ELSE:
    case PITH_WORD_DEPENDENT_SCHEMAS: return true;
    default: return false;
    }
}

/* A node that is being left behind: which of its edges comes next. */
typedef struct trail {
    uint32_t node, entry, child;
} trail;

enum { UNSEEN = 0, OPEN = 1, CLOSED = 2 };

/* The next node that speaks about the same value; PITH_SCHEMA_NONE: no more. */
static uint32_t next_in_place(const pith_schema_tree *tree, trail *at) {
    const pith_schema_node *node = &tree->nodes[at->node];
    for (; at->entry < node->n_entries; at->entry++, at->child = 0) {
        const pith_schema_entry *entry = &tree->entries[node->first_entry + at->entry];
        if (!is_in_place(entry->word)) continue;
        if (entry->word == PITH_WORD_REF && at->child == 0) {
            at->child = 1;
            return node->ref;
        }
        if (entry->word != PITH_WORD_REF && at->child < entry->n_children) {
            return entry->child + at->child++;
        }
    }
    return PITH_SCHEMA_NONE;
}

/* Depth first from one node; false when it meets a node that is still open. */
static bool walk(pith_schema_tree *tree, uint8_t *seen, trail *trails, uint32_t start) {
    uint32_t n = 0;
    seen[start] = OPEN;
    trails[n++] = (trail){start, 0, 0};
    while (n > 0) {
        uint32_t next = next_in_place(tree, &trails[n - 1]);
        if (next == PITH_SCHEMA_NONE) {
            seen[trails[--n].node] = CLOSED;
        } else if (seen[next] == OPEN) {
            return pith_schema_fail(tree, PITH_ERROR_FORMAT, next, PITH_WORD_NONE,
                                    "this schema leads back to itself for the same value");
        } else if (seen[next] == UNSEEN) {
            seen[next] = OPEN;
            trails[n++] = (trail){next, 0, 0};
        }
    }
    return true;
}

bool pith_schema_check_cycles(pith_schema_tree *tree) {
    uint8_t *seen = pith_alloc_zero(tree->n_nodes, 1);
    trail *trails = pith_alloc_array(tree->n_nodes, sizeof *trails);
    bool good = seen && trails ? true : pith_schema_fail_memory(tree);
    for (uint32_t i = 0; good && i < tree->n_nodes; i++) {
        if (tree->nodes[i].checked && seen[i] == UNSEEN) good = walk(tree, seen, trails, i);
    }
    pith_free(seen);
    pith_free(trails);
    return good;
}
