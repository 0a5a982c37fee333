/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays and objects of a schema -> grammar nodes.
 *
 * An object's members come in the order in which the schema describes them, optional ones or not;
 * then keys that nobody described. After the first member written each one begins with a comma, so
 * the members before the first required one need a place to start from each:
 *
 *   a?, b?, c, d?     a rest(1) | b rest(2) | c rest(3)      rest(1) = (, b)? rest(2) ...
 *
 * uniqueItems of a list of values: up to 8 in any order (a place is what has been written), more in
 * the order of the list.
 *
 * Where minProperties or maxProperties say more than that, places are (member, members written so
 * far). Keys that nobody described could come twice and then count as one, so they count for
 * minProperties as one at most; what would need more of them is refused.
 */
#include "sample/json_schema.h"

#include "base/memory.h"

#include <string.h>

enum {
    MAX_PLACES = 1 << 14,
    MAX_UNIQUE = 8,
    MAX_LISTED = 128,
    NOTHING = UINT32_MAX /* no node: it cannot end so */
};

static pith_grammar_node sequence3(pith_json_text *text, pith_grammar_node a, pith_grammar_node b,
                                   pith_grammar_node c) {
    return pith_grammar_sequence(text->builder, (pith_grammar_node[]){a, b, c}, 3);
}

static pith_grammar_node optional(pith_json_text *text, pith_grammar_node node) {
    return pith_grammar_repeat(text->builder, node, 0, 1);
}

static pith_grammar_node enclose(pith_json_text *text, const char *open, pith_grammar_node content,
                                 const char *close) {
    pith_grammar_node parts[5] = {pith_json_write(text, open), text->space, content, text->space,
                                  pith_json_write(text, close)};
    return pith_grammar_sequence(text->builder, parts, 5);
}

/* ---- arrays ---- */

/* Items behind the first ones, each with its comma. */
static pith_grammar_node more_items(pith_schema *schema, uint32_t set, uint32_t min, uint32_t max) {
    pith_json_text *text = schema->text;
    if (max == 0) return pith_grammar_sequence(text->builder, NULL, 0);
    pith_grammar_node one = pith_json_write_two(text, text->comma, pith_schema_use(schema, set));
    return pith_grammar_repeat(text->builder, one, min, max);
}

static uint32_t less(uint32_t count, uint32_t n) {
    if (count == PITH_GRAMMAR_UNBOUNDED) return count;
    return count > n ? count - n : 0;
}

/* At least one item; max is at least 1 and all items up to max can be satisfied. */
static pith_grammar_node some_items(pith_schema *schema, const pith_schema_shape *shape,
                                    uint32_t max) {
    pith_json_text *text = schema->text;
    uint32_t n_first = shape->array.first.n < max ? shape->array.first.n : max;
    uint32_t min = shape->array.min;
    if (n_first == 0) {
        return pith_json_write_two(
            text, pith_schema_use(schema, shape->array.rest),
            more_items(schema, shape->array.rest, less(min, 1), less(max, 1)));
    }
    pith_grammar_node tail =
        more_items(schema, shape->array.rest, less(min, n_first), less(max, n_first));
    for (uint32_t i = n_first; i-- > 1;) {
        uint32_t set = pith_schema_set_of_item(schema, shape, i);
        tail = sequence3(text, text->comma, pith_schema_use(schema, set), tail);
        if (i >= min) tail = optional(text, tail);
    }
    uint32_t set = pith_schema_set_of_item(schema, shape, 0);
    return pith_json_write_two(text, pith_schema_use(schema, set), tail);
}

/* The values that items may have, each once; false after a failure, or where they are no list. */
static bool list_values(pith_schema *schema, const pith_schema_shape *shape, const json_t ***values,
                        uint32_t *n) {
    pith_schema_set set = schema->sets[shape->array.rest];
    bool finite = shape->array.first.n == 0;
    uint32_t capacity = 0;
    *n = 0;
    for (uint32_t i = 0; i < set.n_shapes && finite; i++) {
        const pith_schema_shape *s = &schema->shapes[set.first_shape + i];
        finite = s->kind == PITH_SHAPE_VALUES;
        for (uint32_t k = 0; k < s->values.n && finite; k++) {
            const json_t *value = schema->values[s->values.first + k];
            bool known = false;
            for (uint32_t j = 0; j < *n && !known; j++) {
                known = pith_schema_equal((*values)[j], value);
            }
            if (!pith_schema_work(schema, 1 + *n)) return false;
            if (known) continue;
            const json_t **grown =
                pith_schema_grown(&schema->tree, (void *)*values, &capacity, sizeof *grown, *n);
            if (grown == NULL) return false;
            *values = grown;
            grown[(*n)++] = value;
        }
    }
    if (!finite) {
        return pith_schema_fail(&schema->tree, PITH_ERROR_UNSUPPORTED, shape->node,
                                PITH_WORD_UNIQUE_ITEMS,
                                "supported only where the items are a list of values (enum)");
    }
    return *n >= shape->array.min ||
           pith_schema_fail(&schema->tree, PITH_ERROR_FORMAT, shape->node, PITH_WORD_MIN_ITEMS,
                            "there are fewer values that differ");
}

/* In any order: a place is the set of values that have been written. */
static pith_grammar_node write_in_any_order(pith_json_text *text, const pith_schema_shape *shape,
                                            const pith_grammar_node *written, uint32_t n) {
    pith_grammar_node after[1 << MAX_UNIQUE], choices[MAX_UNIQUE + 1];
    for (uint32_t used = 1u << n; used-- > 0;) { /* supersets have larger numbers */
        uint32_t count = 0, n_choices = 0;
        for (uint32_t i = 0; i < n; i++) count += used >> i & 1;
        for (uint32_t i = 0; i < n && count < shape->array.max; i++) {
            if (used >> i & 1) continue;
            pith_grammar_node more = pith_json_write_two(text, written[i], after[used | 1u << i]);
            if (count > 0) more = pith_json_write_two(text, text->comma, more);
            choices[n_choices++] = more;
        }
        if (count > 0 && count >= shape->array.min) {
            choices[n_choices++] = pith_grammar_sequence(text->builder, NULL, 0);
        }
        after[used] = pith_grammar_choice(text->builder, choices, n_choices);
    }
    return after[0];
}

/* In the order of the list: a place is (next value, how many have been written); row[count]. */
static pith_grammar_node write_in_order(pith_json_text *text, const pith_schema_shape *shape,
                                        const pith_grammar_node *written, uint32_t n,
                                        pith_grammar_node *row) {
    uint32_t max = shape->array.max < n ? shape->array.max : n;
    for (uint32_t count = 0; count <= max; count++) {
        bool may_end = count > 0 && count >= shape->array.min;
        row[count] = may_end ? pith_grammar_sequence(text->builder, NULL, 0) : NOTHING;
    }
    for (uint32_t i = n; i-- > 0;) {
        for (uint32_t count = 0; count < max; count++) {
            if (row[count + 1] == NOTHING) continue;
            pith_grammar_node more = pith_json_write_two(text, written[i], row[count + 1]);
            if (count > 0) more = pith_json_write_two(text, text->comma, more);
            row[count] =
                row[count] == NOTHING ? more : pith_json_write_either(text, more, row[count]);
        }
    }
    return row[0];
}

static bool emit_unique(pith_schema *schema, const pith_schema_shape *shape,
                        pith_grammar_node *out) {
    pith_json_text *text = schema->text;
    const json_t **values = NULL;
    uint32_t n;
    bool good = list_values(schema, shape, &values, &n);
    if (good && n > MAX_LISTED) {
        good = pith_schema_fail(&schema->tree, PITH_ERROR_LIMIT, shape->node,
                                PITH_WORD_UNIQUE_ITEMS, "more than 128 values");
    }
    pith_grammar_node *written = good ? pith_alloc_array((size_t)n * 2 + 1, sizeof *written) : NULL;
    if (good && written == NULL) good = pith_schema_fail_memory(&schema->tree);
    for (uint32_t i = 0; i < n && good; i++) written[i] = pith_json_write_value(text, values[i]);
    if (good) {
        pith_grammar_node content = n <= MAX_UNIQUE
                                        ? write_in_any_order(text, shape, written, n)
                                        : write_in_order(text, shape, written, n, written + n);
        *out = enclose(text, "[", content, "]");
        if (shape->array.min == 0) {
            *out = pith_json_write_either(text, pith_json_write(text, "[]"), *out);
        }
    }
    pith_free(written);
    pith_free((void *)values);
    return good;
}

bool pith_schema_emit_array(pith_schema *schema, const pith_schema_shape *shape,
                            pith_grammar_node *out) {
    pith_json_text *text = schema->text;
    uint32_t max = shape->array.max;
    for (uint32_t i = 0; i <= shape->array.first.n && i < max; i++) {
        if (!schema->sets[pith_schema_set_of_item(schema, shape, i)].satisfiable) max = i;
    }
    if (shape->array.unique && max > 1) return emit_unique(schema, shape, out);
    pith_grammar_node empty = pith_json_write(text, "[]");
    *out = empty;
    if (max == 0) return true;
    *out = enclose(text, "[", some_items(schema, shape, max), "]");
    if (shape->array.min == 0) *out = pith_json_write_either(text, empty, *out);
    return schema->tree.status == PITH_OK;
}

/* ---- objects ---- */

typedef struct object_writer {
    pith_schema *schema;
    pith_json_text *text;
    const pith_schema_shape *shape;
    pith_grammar_node *members; /* [n] key, colon, value */
    bool *required;             /* [n] */
    pith_grammar_node *parts;   /* [n + 2] */
    uint32_t n, n_required;
    pith_grammar_node extra; /* a member that nobody described; has_extra: there are some */
    bool has_extra;
} object_writer;

static bool list_members(object_writer *w) {
    for (uint32_t i = 0; i < w->shape->object.n_properties; i++) {
        pith_schema_property p = w->schema->properties[w->shape->object.first_property + i];
        if (!w->schema->sets[p.set].satisfiable) continue;
        pith_grammar_node key = pith_json_write_string(w->text, p.key, strlen(p.key));
        w->members[w->n] =
            sequence3(w->text, key, w->text->colon, pith_schema_use(w->schema, p.set));
        w->required[w->n++] = p.required;
        w->n_required += p.required;
    }
    return w->schema->tree.status == PITH_OK;
}

static bool make_extra(object_writer *w) {
    pith_grammar_node choices[1 << PITH_SCHEMA_MAX_PATTERNS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->shape->object.n_cells; i++) {
        pith_schema_cell cell = w->schema->cells[w->shape->object.first_cell + i];
        pith_grammar_node key = 0;
        bool nothing;
        if (cell.matched == 0 && w->shape->object.closed) continue;
        if (!w->schema->sets[cell.set].satisfiable) continue;
        if (!pith_schema_emit_keys(w->schema, w->shape, cell.matched, &key, &nothing)) return false;
        if (nothing) continue;
        choices[n++] =
            sequence3(w->text, key, w->text->colon, pith_schema_use(w->schema, cell.set));
    }
    w->has_extra = n > 0;
    if (n > 0) w->extra = pith_grammar_choice(w->text->builder, choices, n);
    return w->schema->tree.status == PITH_OK;
}

static pith_grammar_node after_comma(const object_writer *w, pith_grammar_node member) {
    return pith_json_write_two(w->text, w->text->comma, member);
}

/* Members from `from` on, something having been written before. */
static pith_grammar_node rest_of_members(object_writer *w, uint32_t from, uint32_t to,
                                         pith_grammar_node tail) {
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++) {
        pith_grammar_node part = after_comma(w, w->members[i]);
        w->parts[n++] = w->required[i] ? part : optional(w->text, part);
    }
    w->parts[n++] = tail;
    return pith_grammar_sequence(w->text->builder, w->parts, n);
}

/* No count says anything. */
static bool write_plain(object_writer *w, pith_grammar_node *out) {
    pith_json_text *text = w->text;
    pith_grammar_node empty = pith_grammar_sequence(text->builder, NULL, 0), tail = empty;
    uint32_t first = 0, n = 0; /* the first member that is required */
    if (w->has_extra) {
        tail =
            pith_grammar_repeat(text->builder, after_comma(w, w->extra), 0, PITH_GRAMMAR_UNBOUNDED);
    }
    while (first < w->n && !w->required[first]) first++;
    pith_grammar_node *starts = pith_alloc_array((size_t)first + 3, sizeof *starts);
    if (starts == NULL) return pith_schema_fail_memory(&w->schema->tree);
    pith_grammar_node extra_first = w->has_extra ? pith_json_write_two(text, w->extra, tail) : 0;
    pith_grammar_node rest = first < w->n ? rest_of_members(w, first + 1, w->n, tail) : tail;
    if (first < w->n) starts[n++] = pith_json_write_two(text, w->members[first], rest);
    for (uint32_t i = first; i-- > 0;) {
        /* what follows member i: everything from i + 1 on */
        if (i + 1 < w->n) rest = rest_of_members(w, i + 1, i + 2, rest);
        starts[n++] = pith_json_write_two(text, w->members[i], rest);
    }
    if (w->n_required == 0 && w->has_extra) starts[n++] = extra_first;
    pith_grammar_node content = pith_grammar_choice(text->builder, starts, n);
    pith_free(starts);
    pith_grammar_node nothing = pith_json_write(text, "{}");
    *out = n > 0 ? enclose(text, "{", content, "}") : nothing;
    if (n > 0 && w->n_required == 0) *out = pith_json_write_either(text, nothing, *out);
    return true;
}

/* Behind the last member, `count` of them having been written. */
static pith_grammar_node end_members(const object_writer *w, uint32_t count) {
    pith_json_text *text = w->text;
    uint32_t min = less(w->shape->object.min, count), max = less(w->shape->object.max, count);
    bool can_end = min == 0 && count > 0;
    if (min > 1 || (min == 1 && (!w->has_extra || max == 0))) return NOTHING;
    if (!w->has_extra || max == 0) {
        return can_end ? pith_grammar_sequence(text->builder, NULL, 0) : NOTHING;
    }
    pith_grammar_node more = after_comma(w, w->extra);
    if (count > 0) return pith_grammar_repeat(text->builder, more, min, max);
    more = pith_grammar_repeat(text->builder, more, 0, less(max, 1));
    return pith_json_write_two(text, w->extra, more);
}

/* Places (member, count); a count beyond `most` says nothing more. */
static bool write_counted(object_writer *w, pith_grammar_node *out) {
    pith_json_text *text = w->text;
    uint32_t min = w->shape->object.min, max = w->shape->object.max;
    uint32_t most = max == PITH_GRAMMAR_UNBOUNDED ? min : max > min ? max : min;
    if (most > w->n) most = w->n;
    size_t n_places = ((size_t)w->n + 1) * (most + 1);
    if (n_places > MAX_PLACES) {
        return pith_schema_fail(&w->schema->tree, PITH_ERROR_LIMIT, w->shape->node, PITH_WORD_NONE,
                                "minProperties or maxProperties of too many properties");
    }
    pith_grammar_node *row = pith_alloc_zero((size_t)most + 2, sizeof *row);
    if (row == NULL) return pith_schema_fail_memory(&w->schema->tree);
    for (uint32_t c = 0; c <= most; c++) row[c] = end_members(w, c);
    row[most + 1] = NOTHING;
    for (uint32_t i = w->n; i-- > 0;) {
        for (uint32_t c = 0; c <= most; c++) { /* row[c + 1] is still that of member i + 1 */
            uint32_t next = c < most ? c + 1 : max == PITH_GRAMMAR_UNBOUNDED ? most : most + 1;
            bool may = c < max && row[next] != NOTHING;
            pith_grammar_node with = NOTHING;
            if (may) {
                with = pith_json_write_two(text, w->members[i], row[next]);
                if (c > 0) with = after_comma(w, with);
            }
            if (w->required[i]) {
                row[c] = with;
            } else if (with != NOTHING) {
                bool both = row[c] != NOTHING;
                row[c] = both ? pith_json_write_either(text, with, row[c]) : with;
            }
        }
    }
    pith_grammar_node content = row[0];
    pith_free(row);
    bool may_be_empty = min == 0 && w->n_required == 0;
    if (content == NOTHING && !may_be_empty) {
        return pith_schema_fail(&w->schema->tree, PITH_ERROR_UNSUPPORTED, w->shape->node,
                                PITH_WORD_MIN_PROPERTIES,
                                "more keys would be needed than the schema describes, and keys "
                                "that nobody describes cannot be kept apart");
    }
    bool some = content != NOTHING;
    *out = some ? enclose(text, "{", content, "}") : pith_json_write(text, "{}");
    if (some && may_be_empty) {
        *out = pith_json_write_either(text, pith_json_write(text, "{}"), *out);
    }
    return true;
}

bool pith_schema_emit_object(pith_schema *schema, const pith_schema_shape *shape,
                             pith_grammar_node *out) {
    size_t n = shape->object.n_properties;
    object_writer w = {.schema = schema,
                       .text = schema->text,
                       .shape = shape,
                       .members = pith_alloc_array(n + 1, sizeof *w.members),
                       .required = pith_alloc_array(n + 1, sizeof *w.required),
                       .parts = pith_alloc_array(n + 2, sizeof *w.parts)};
    bool good = w.members && w.required && w.parts ? true : pith_schema_fail_memory(&schema->tree);
    good = good && list_members(&w) && make_extra(&w);
    if (good) {
        bool counted =
            shape->object.min > w.n_required || (shape->object.max != PITH_GRAMMAR_UNBOUNDED &&
                                                 (w.has_extra || shape->object.max < w.n));
        good = counted ? write_counted(&w, out) : write_plain(&w, out);
    }
    pith_free(w.members);
    pith_free(w.required);
    pith_free(w.parts);
    return good;
}
