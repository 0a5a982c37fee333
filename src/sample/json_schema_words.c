/* SPDX-License-Identifier: Apache-2.0
 *
 * The keywords of JSON schema and the forms of their values.
 *
 * What is not in the list is refused: an unknown keyword could be a constraint, and one that is not
 * enforced is worse than none. Notes (title, default, examples, ...) say nothing about values and
 * are passed over. Counts may be written 2.0; numbers of another form are refused.
 */
#include "sample/json_schema_parts.h"

#include "sample/json_format.h"
#include "sample/json_text.h"

#include <string.h>

static const struct {
    const char *text;
    pith_schema_form form;
} words[] = {
#define PITH_SCHEMA_WORD(name, text, form) {text, PITH_FORM_##form},
    PITH_SCHEMA_WORDS(PITH_SCHEMA_WORD)
#undef PITH_SCHEMA_WORD
};

const char *pith_schema_word_text(pith_schema_word word) {
    return word < PITH_WORD_NONE ? words[word].text : "";
}

static pith_schema_word find_word(const char *name) {
    size_t low = 0, high = PITH_WORD_NONE;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, words[middle].text);
        if (order == 0) return (pith_schema_word)middle;
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return PITH_WORD_NONE;
}

/* ---- forms ---- */

static uint8_t kind_of_name(const char *name) {
    static const struct {
        const char *name;
        uint8_t kinds;
    } kinds[] = {{"null", PITH_KIND_NULL},       {"boolean", PITH_KIND_BOOLEAN},
                 {"integer", PITH_KIND_INTEGER}, {"number", PITH_KIND_INTEGER | PITH_KIND_FRACTION},
                 {"string", PITH_KIND_STRING},   {"array", PITH_KIND_ARRAY},
                 {"object", PITH_KIND_OBJECT}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (name != NULL && strcmp(name, kinds[i].name) == 0) return kinds[i].kinds;
    }
    return 0;
}

/* The kinds that a value of `type` allows; 0 when it is none. */
static uint8_t kinds_of(const json_t *value) {
    uint8_t all = 0;
    if (json_is_string(value)) return kind_of_name(json_string_value(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        uint8_t kinds = kind_of_name(json_string_value(json_array_get(value, i)));
        if (kinds == 0) return 0;
        all |= kinds;
    }
    return all;
}

static bool is_count(const json_t *value) {
    if (json_is_integer(value)) return json_integer_value(value) >= 0;
    return json_is_real(value) && json_real_value(value) >= 0 && pith_json_is_integer(value);
}

static bool is_name_list(const json_t *value) {
    bool all = json_is_array(value);
    for (size_t i = 0; all && i < json_array_size(value); i++) {
        all = json_is_string(json_array_get(value, i));
    }
    return all;
}

static bool is_name_map(const json_t *value) {
    json_t *object = (json_t *)(uintptr_t)value; /* its iterators want no const */
    bool all = json_is_object(value);
    for (void *at = json_object_iter(object); all && at; at = json_object_iter_next(object, at)) {
        all = is_name_list(json_object_iter_value(at));
    }
    return all;
}

/* What is wrong with the value, NULL for nothing. */
static const char *fault_of(pith_schema_form form, const json_t *value) {
    switch (form) {
    case PITH_FORM_NOTE:
    case PITH_FORM_VALUE:
    case PITH_FORM_SCHEMA: return NULL;
    case PITH_FORM_REFUSED: return "this keyword is not supported";
    case PITH_FORM_VALUES:
        return json_array_size(value) > 0 ? NULL : "it must be a list with at least one value";
    case PITH_FORM_BOOLEAN: return json_is_boolean(value) ? NULL : "it must be true or false";
    case PITH_FORM_NUMBER: return json_is_number(value) ? NULL : "it must be a number";
    case PITH_FORM_FACTOR:
        return json_is_number(value) && json_number_value(value) > 0 ? NULL : "it must be above 0";
    case PITH_FORM_COUNT: return is_count(value) ? NULL : "it must be an integer from 0";
    case PITH_FORM_STRING:
    case PITH_FORM_NAME:
    case PITH_FORM_ID:
    case PITH_FORM_REF: return json_is_string(value) ? NULL : "it must be a string";
    case PITH_FORM_FORMAT:
        if (!json_is_string(value)) return "it must be a string";
        return pith_json_format_is_known(json_string_value(value)) ? NULL
                                                                   : "this format is not supported";
    case PITH_FORM_TYPE:
        return kinds_of(value) ? NULL
                               : "it must be null, boolean, integer, number, string, array, object "
                                 "or a list of these";
    case PITH_FORM_NAMES: return is_name_list(value) ? NULL : "it must be a list of strings";
    case PITH_FORM_NAMES_MAP:
        return is_name_map(value) ? NULL : "it must be an object of lists of strings";
    case PITH_FORM_SCHEMA_LIST:
        return json_array_size(value) > 0 ? NULL : "it must be a list with at least one schema";
    default: return json_is_object(value) ? NULL : "it must be an object";
    }
}

bool pith_schema_read_word(pith_schema_tree *tree, uint32_t node, const char *name,
                           pith_schema_entry *entry) {
    entry->word = find_word(name);
    if (entry->word == PITH_WORD_NONE) {
        pith_buffer what = {0};
        pith_buffer_append_format(&what, "the keyword \"%.60s\" is unknown and cannot be enforced",
                                  name);
        if (what.failed) return pith_schema_fail_memory(tree);
        (void)pith_schema_fail(tree, PITH_ERROR_UNSUPPORTED, node, PITH_WORD_NONE, what.data);
        pith_buffer_deinit(&what);
        return false;
    }
    pith_schema_form form = words[entry->word].form;
    const char *fault = fault_of(form, entry->value);
    if (fault != NULL) {
        bool known =
            form == PITH_FORM_REFUSED || (form == PITH_FORM_FORMAT && json_is_string(entry->value));
        return pith_schema_fail(tree, known ? PITH_ERROR_UNSUPPORTED : PITH_ERROR_FORMAT, node,
                                entry->word, fault);
    }
    if (form == PITH_FORM_REF) tree->has_ref = true;
    if (form == PITH_FORM_ID && node != 0 && !tree->has_inner_id) {
        tree->has_inner_id = true;
        tree->inner_id = node;
    }
    return form < PITH_FORM_DEFS || pith_schema_add_children(tree, node, entry, form);
}

void pith_schema_settle_node(pith_schema_tree *tree, uint32_t node) {
    pith_schema_node *n = &tree->nodes[node];
    bool has_ref = false, has_other = false;
    for (uint32_t i = 0; i < n->n_entries; i++) {
        const pith_schema_entry *entry = &tree->entries[n->first_entry + i];
        pith_schema_form form = words[entry->word].form;
        if (entry->word == PITH_WORD_TYPE) n->kinds &= kinds_of(entry->value);
        if (form == PITH_FORM_REF) {
            has_ref = true;
        } else if (form != PITH_FORM_NOTE && form != PITH_FORM_DEFS && form != PITH_FORM_ID &&
                   form != PITH_FORM_NAME) {
            has_other = true;
        }
    }
    n->has_force = has_ref || has_other;
    n->only_ref = has_ref && !has_other;
}
