/* SPDX-License-Identifier: Apache-2.0
 *
 * The lists that a compilation is made of: sets of schemas, patterns, words and values.
 *
 * A set is a sorted list of nodes, interned, so that the same demands are worked out once, however
 * often they come; recursion through $ref ends because it comes back to a set that is there.
 * Patterns are known by their text and are read when first needed.
 */
#include "sample/json_schema.h"

#include "base/memory.h"
#include "sample/json_format.h"

#include <stdlib.h>
#include <string.h>

void pith_schema_deinit(pith_schema *schema) {
    for (uint32_t i = 0; i < schema->n_patterns; i++) {
        pith_regex_deinit(&schema->patterns[i].regex);
        pith_alphabet_deinit(&schema->patterns[i].alphabet);
        pith_automaton_deinit(&schema->patterns[i].automaton);
    }
    pith_tuple_table_deinit(&schema->set_table);
    pith_free(schema->sets);
    pith_free(schema->shapes);
    pith_free(schema->properties);
    pith_free(schema->cells);
    pith_free(schema->patterns);
    pith_free(schema->values);
    pith_free(schema->words);
    pith_free(schema->queue);
    pith_map_deinit(&schema->pattern_of);
    pith_map_deinit(&schema->format_of);
    pith_schema_tree_deinit(&schema->tree);
    *schema = (pith_schema){0};
}

bool pith_schema_work(pith_schema *schema, uint64_t steps) {
    schema->steps += steps;
    return schema->steps <= schema->step_limit ||
           pith_schema_fail(&schema->tree, PITH_ERROR_LIMIT, 0, PITH_WORD_NONE,
                            "its alternatives take too long to work out");
}

bool pith_schema_push_word(pith_schema *schema, uint32_t word) {
    uint32_t *words = pith_schema_grown(&schema->tree, schema->words, &schema->word_capacity,
                                        sizeof *words, schema->n_words);
    if (words == NULL) return false;
    schema->words = words;
    words[schema->n_words++] = word;
    return true;
}

bool pith_schema_push_value(pith_schema *schema, const json_t *value) {
    const json_t **values =
        pith_schema_grown(&schema->tree, (void *)schema->values, &schema->value_capacity,
                          sizeof *values, schema->n_values);
    if (values == NULL) return false;
    schema->values = values;
    values[schema->n_values++] = value;
    return true;
}

/* ---- sets ---- */

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* false, or {"not": {}}, as it was written before there was false. */
static bool is_false(const pith_schema_tree *tree, uint32_t node) {
    const pith_schema_node *n = &tree->nodes[node];
    if (n->n_entries == 0) return json_is_false(n->json);
    const pith_schema_entry *entry = &tree->entries[n->first_entry];
    return n->n_entries == 1 && entry->word == PITH_WORD_NOT &&
           !tree->nodes[entry->child].has_force;
}

/* What the node demands, or PITH_SCHEMA_NONE where it demands nothing. */
static uint32_t essence(const pith_schema_tree *tree, uint32_t node) {
    while (tree->nodes[node].only_ref) node = tree->nodes[node].ref;
    return tree->nodes[node].has_force ? node : PITH_SCHEMA_NONE;
}

static uint32_t intern(pith_schema *schema, const uint32_t *nodes, uint32_t n) {
    bool is_new;
    uint32_t set = pith_tuple_intern(&schema->set_table, nodes, n, &is_new);
    if (set == PITH_TUPLE_NONE) {
        (void)pith_schema_fail_memory(&schema->tree);
        return PITH_SCHEMA_NONE;
    }
    if (!is_new) return set;
    if (set >= PITH_SCHEMA_MAX_SETS) {
        (void)pith_schema_fail(&schema->tree, PITH_ERROR_LIMIT, 0, PITH_WORD_NONE,
                               "its schemas meet in too many combinations");
        return PITH_SCHEMA_NONE;
    }
    pith_schema_set *sets =
        pith_schema_grown(&schema->tree, schema->sets, &schema->set_capacity, sizeof *sets, set);
    if (sets == NULL) return PITH_SCHEMA_NONE;
    schema->sets = sets;
    sets[set] = (pith_schema_set){.conflict = PITH_SCHEMA_NONE};
    return set;
}

uint32_t pith_schema_set_of(pith_schema *schema, const uint32_t *nodes, uint32_t n) {
    enum { SMALL = 16 };
    uint32_t small[SMALL], kept = 0;
    uint32_t *list = n <= SMALL ? small : pith_alloc_array(n, sizeof *list);
    if (list == NULL) {
        (void)pith_schema_fail_memory(&schema->tree);
        return PITH_SCHEMA_NONE;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t node = essence(&schema->tree, nodes[i]);
        if (node == PITH_SCHEMA_NONE) continue;
        list[kept++] = node;
        if (!is_false(&schema->tree, node)) continue;
        list[0] = node;
        kept = 1;
        break;
    }
    if (kept > 1) qsort(list, kept, sizeof *list, by_number);
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < kept; i++) {
        if (i == 0 || list[i] != list[i - 1]) list[distinct++] = list[i];
    }
    uint32_t set = intern(schema, list, distinct);
    if (list != small) pith_free(list);
    return set;
}

bool pith_schema_set_is_false(const pith_schema *schema, uint32_t set) {
    uint32_t n;
    const uint32_t *nodes = pith_tuple_get(&schema->set_table, set, &n);
    return n == 1 && is_false(&schema->tree, nodes[0]);
}

/* ---- patterns ---- */

enum { PROPERTY_WORK = 1 << 17 }; /* what finding the characters of a \p{...} counts as */

static bool read_pattern(pith_schema *schema, pith_schema_pattern *pattern, pith_span text) {
    pith_error reason = {0};
    pith_status status = pith_regex_parse(text, &pattern->regex, &reason);
    if (status == PITH_OK) {
        if (!pith_schema_work(schema, text.size + PROPERTY_WORK * pattern->regex.n_properties)) {
            pith_regex_deinit(&pattern->regex);
            return false;
        }
        pattern->anchored = pattern->anchored || pith_regex_is_anchored(&pattern->regex);
        return true;
    }
    if (status == PITH_ERROR_MEMORY) return pith_schema_fail_memory(&schema->tree);
    return pith_schema_fail(&schema->tree, status, pattern->node, pattern->word, reason.text);
}

uint32_t pith_schema_pattern_of(pith_schema *schema, uint32_t node, pith_schema_word word,
                                pith_span text) {
    bool is_format = word == PITH_WORD_FORMAT;
    pith_map *map = is_format ? &schema->format_of : &schema->pattern_of;
    int32_t known;
    if (pith_map_find(map, text, &known)) return (uint32_t)known;
    pith_schema_pattern *patterns =
        pith_schema_grown(&schema->tree, schema->patterns, &schema->pattern_capacity,
                          sizeof *patterns, schema->n_patterns);
    if (patterns == NULL) return PITH_SCHEMA_NONE;
    schema->patterns = patterns;
    pith_schema_pattern *pattern = &patterns[schema->n_patterns];
    *pattern = (pith_schema_pattern){.node = node, .word = word, .anchored = is_format};
    pith_span source = is_format ? pith_span_of(pith_json_format_pattern(text.data)) : text;
    if (!read_pattern(schema, pattern, source)) return PITH_SCHEMA_NONE;
    if (pith_map_insert(map, text, (int32_t)schema->n_patterns, NULL) < 0) {
        pith_regex_deinit(&pattern->regex);
        (void)pith_schema_fail_memory(&schema->tree);
        return PITH_SCHEMA_NONE;
    }
    return schema->n_patterns++;
}

bool pith_schema_make_automaton(pith_schema *schema, uint32_t pattern) {
    pith_schema_pattern *p = &schema->patterns[pattern];
    if (p->has_automaton) return true;
    const pith_regex *regex = &p->regex;
    pith_error reason = {0};
    pith_status status = pith_alphabet_of(&regex, 1, &p->alphabet, &reason);
    if (status == PITH_OK) {
        status = pith_automaton_of(regex, &p->alphabet, p->word != PITH_WORD_FORMAT, &p->automaton,
                                   &reason);
    }
    if (status == PITH_ERROR_MEMORY) return pith_schema_fail_memory(&schema->tree);
    if (status != PITH_OK) {
        return pith_schema_fail(&schema->tree, status, p->node, p->word, reason.text);
    }
    p->has_automaton = true;
    return pith_schema_work(schema, p->automaton.steps / 8);
}

bool pith_schema_matches(pith_schema *schema, uint32_t pattern, pith_span string, bool *matches) {
    const pith_schema_pattern *p = &schema->patterns[pattern];
    if (!pith_schema_make_automaton(schema, pattern)) return false;
    *matches = pith_automaton_accepts(&p->automaton, &p->alphabet, string);
    return pith_schema_work(schema, string.size + 1);
}
