/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings of a schema -> grammar nodes.
 *
 * The short ways, where counters stay counters: lengths alone are a repetition of any character;
 * one pattern written ^...$ (or a format) is written as its tree; a pattern ^[class]*$ takes the
 * lengths into its own repetition. Everything else becomes an automaton: patterns that search,
 * several of them, lengths next to a pattern, what is taken away, keys that are none of those
 * declared.
 *
 * The automata of one question share an alphabet, so all expressions that take part are collected
 * first (`work`).
 */
#include "sample/json_schema.h"

#include "base/memory.h"

/* What steps of automata count as: a budget of a second or so. */
enum { AUTOMATON_SHARE = 8, ALPHABET_WORK = 1 << 10, TOO_LARGE_WORK = 1 << 20 };

/* The expressions of one question and what has been made of them so far. */
typedef struct work {
    pith_schema *schema;
    pith_regex *literals; /* [n_literals] of lists of strings, in the order of collecting */
    uint32_t n_literals, literal_capacity;
    pith_alphabet alphabet;
    pith_automaton all; /* of every string */
    pith_status status;
    pith_error reason;
} work;

static bool done(work *w, pith_status status) {
    w->status = status;
    return status == PITH_OK;
}

/* Hands the failure to the schema: where the strings stand that are too much. */
static bool report(work *w, uint32_t node, pith_schema_word word) {
    pith_schema_tree *tree = &w->schema->tree;
    if (tree->status != PITH_OK || w->status == PITH_OK) return tree->status == PITH_OK;
    if (w->status == PITH_ERROR_MEMORY) return pith_schema_fail_memory(tree);
    return pith_schema_fail(tree, w->status, node, word, w->reason.text);
}

static void work_deinit(work *w) {
    for (uint32_t i = 0; i < w->n_literals; i++) pith_regex_deinit(&w->literals[i]);
    pith_free(w->literals);
    pith_alphabet_deinit(&w->alphabet);
    pith_automaton_deinit(&w->all);
}

/* ---- collecting ---- */

/* One expression of all the texts. */
static bool add_literals(work *w, const pith_span *texts, uint32_t n) {
    pith_regex *literals = pith_schema_grown(&w->schema->tree, w->literals, &w->literal_capacity,
                                             sizeof *literals, w->n_literals);
    if (literals == NULL) return false;
    w->literals = literals;
    if (!done(w, pith_regex_of_literals(texts, n, &literals[w->n_literals], &w->reason))) {
        return false;
    }
    w->n_literals++;
    return true;
}

static bool add_strings(work *w, const pith_schema_shape *shape) {
    pith_span *texts = pith_alloc_array(shape->values.n + 1, sizeof *texts);
    uint32_t n = 0;
    if (texts == NULL) return pith_schema_fail_memory(&w->schema->tree);
    for (uint32_t i = 0; i < shape->values.n; i++) {
        const json_t *value = w->schema->values[shape->values.first + i];
        if (!json_is_string(value)) continue;
        texts[n++] = (pith_span){json_string_value(value), json_string_length(value)};
    }
    bool good = add_literals(w, texts, n);
    pith_free(texts);
    return good;
}

static bool add_keys(work *w, const pith_schema_shape *shape) {
    uint32_t n = shape->object.n_properties;
    pith_span *texts = pith_alloc_array(n + 1, sizeof *texts);
    if (texts == NULL) return pith_schema_fail_memory(&w->schema->tree);
    for (uint32_t i = 0; i < n; i++) {
        texts[i] = pith_span_of(w->schema->properties[shape->object.first_property + i].key);
    }
    bool good = add_literals(w, texts, n);
    pith_free(texts);
    return good;
}

/* All patterns of the compilation take part: there are few, and an alphabet is made once for each
 * question. */
static bool make_alphabet(work *w, const pith_words *lists, size_t n_lists) {
    pith_schema *schema = w->schema;
    size_t n = w->n_literals, at = 0;
    for (size_t i = 0; i < n_lists; i++) n += lists[i].n;
    const pith_regex **all = pith_alloc_array(n + 1, sizeof *all);
    if (all == NULL) return pith_schema_fail_memory(&schema->tree);
    for (uint32_t i = 0; i < w->n_literals; i++) all[at++] = &w->literals[i];
    for (size_t i = 0; i < n_lists; i++) {
        for (uint32_t k = 0; k < lists[i].n; k++) {
            all[at++] = &schema->patterns[schema->words[lists[i].first + k]].regex;
        }
    }
    bool good = done(w, pith_alphabet_of(all, n, &w->alphabet, &w->reason)) &&
                done(w, pith_automaton_of_all(&w->alphabet, &w->all, &w->reason)) &&
                pith_schema_work(schema, ALPHABET_WORK + w->alphabet.n_ranges);
    pith_free((void *)all);
    return good;
}

/* ---- automata ---- */

/* *made op= what the other accepts; the other is freed. */
static bool combine(work *w, pith_automaton *made, pith_automaton *other,
                    pith_automaton_rule rule) {
    pith_automaton both;
    bool good = done(w, pith_automaton_combine(made, other, rule, &both, &w->reason));
    pith_automaton_deinit(other);
    if (!good) return false;
    pith_automaton_deinit(made);
    *made = both;
    return pith_schema_work(w->schema, both.steps / AUTOMATON_SHARE);
}

static bool with_regex(work *w, pith_automaton *made, const pith_regex *regex, bool search,
                       pith_automaton_rule rule) {
    pith_automaton one;
    if (!done(w, pith_automaton_of(regex, &w->alphabet, search, &one, &w->reason))) return false;
    if (!pith_schema_work(w->schema, one.steps / AUTOMATON_SHARE)) {
        pith_automaton_deinit(&one);
        return false;
    }
    return combine(w, made, &one, rule);
}

static bool with_pattern(work *w, pith_automaton *made, uint32_t pattern,
                         pith_automaton_rule rule) {
    const pith_schema_pattern *p = &w->schema->patterns[pattern];
    return with_regex(w, made, &p->regex, p->word != PITH_WORD_FORMAT, rule);
}

static bool begin(work *w, pith_automaton *made) {
    pith_automaton nothing = {.n_classes = w->alphabet.n_classes};
    *made = nothing;
    return done(w, pith_automaton_of_all(&w->alphabet, made, &w->reason));
}

static bool fill_shape(work *w, const pith_schema_shape *shape, uint32_t literal,
                       pith_automaton *made) {
    if (!begin(w, made)) return false;
    if (shape->kind == PITH_SHAPE_VALUES) {
        return with_regex(w, made, &w->literals[literal], false, PITH_AUTOMATON_BOTH);
    }
    for (uint32_t i = 0; i < shape->string.patterns.n; i++) {
        uint32_t pattern = w->schema->words[shape->string.patterns.first + i];
        if (!with_pattern(w, made, pattern, PITH_AUTOMATON_BOTH)) return false;
    }
    if (shape->string.min == 0 && shape->string.max == PITH_GRAMMAR_UNBOUNDED) return true;
    pith_automaton bounded;
    if (!done(w, pith_automaton_bound(made, shape->string.min, shape->string.max, &bounded,
                                      &w->reason))) {
        return false;
    }
    pith_automaton_deinit(made);
    *made = bounded;
    return pith_schema_work(w->schema, bounded.steps / AUTOMATON_SHARE);
}

/* The strings of a shape of strings, or of values (literal: which list they became). *made is empty
 * after a failure. */
static bool make_shape(work *w, const pith_schema_shape *shape, uint32_t literal,
                       pith_automaton *made) {
    if (fill_shape(w, shape, literal, made)) return true;
    pith_automaton_deinit(made);
    return false;
}

static bool write(work *w, const pith_automaton *made, pith_grammar_node *out, bool *nothing) {
    *nothing = made->start == 0;
    return done(
        w, pith_json_write_automaton(w->schema->text, made, &w->alphabet, false, out, &w->reason));
}

/* ---- the short ways ---- */

static pith_grammar_node write_set(void *user, const pith_code_set *set) {
    return pith_json_write_set(user, set);
}

/* The repetition of a class that is all of the pattern; NULL: it is something else. */
static const pith_regex_node *only_repeat(const pith_regex *regex) {
    const pith_regex_node *root = &regex->nodes[regex->n - 1];
    const pith_regex_node *found = NULL;
    if (root->kind != PITH_REGEX_SEQUENCE) found = root;
    for (uint32_t c = root->child; !found && c != PITH_REGEX_NONE; c = regex->nodes[c].next) {
        if (regex->nodes[c].kind >= PITH_REGEX_START) continue;
        if (regex->nodes[c].next == PITH_REGEX_NONE ||
            regex->nodes[regex->nodes[c].next].kind == PITH_REGEX_END) {
            found = &regex->nodes[c];
        }
        break;
    }
    bool fits = found && found->kind == PITH_REGEX_REPEAT &&
                regex->nodes[found->child].kind == PITH_REGEX_SET;
    return fits ? found : NULL;
}

/* true: done one way or another; *is_short tells whether the string has been written. */
static bool write_short(work *w, const pith_schema_shape *shape, pith_grammar_node *out,
                        bool *nothing, bool *is_short) {
    pith_json_text *text = w->schema->text;
    uint32_t min = shape->string.min, max = shape->string.max;
    *is_short = true;
    if (shape->string.patterns.n == 0) {
        bool any = min == 0 && max == PITH_GRAMMAR_UNBOUNDED;
        *out = any ? text->any_string : pith_json_write_lengths(text, min, max);
        return true;
    }
    const pith_schema_pattern *p =
        &w->schema->patterns[w->schema->words[shape->string.patterns.first]];
    *is_short = shape->string.patterns.n == 1 && p->anchored;
    if (!*is_short) return true;
    const pith_regex_node *repeat = only_repeat(&p->regex);
    if (repeat != NULL) {
        if (repeat->min > min) min = repeat->min;
        if (repeat->max < max) max = repeat->max;
        *nothing = min > max;
        if (*nothing) return true;
        const pith_code_set *set = &p->regex.sets[p->regex.nodes[repeat->child].set];
        pith_grammar_node one = pith_json_write_set(text, set);
        *out = pith_json_quote(text, pith_grammar_repeat(text->builder, one, min, max));
        return true;
    }
    *is_short = min == 0 && max == PITH_GRAMMAR_UNBOUNDED;
    if (!*is_short) return true;
    pith_regex_writer writer = {write_set, text};
    pith_grammar_node content;
    pith_status status = pith_regex_emit(&p->regex, text->builder, &writer, &content, &w->reason);
    *is_short = status == PITH_OK;
    if (status == PITH_ERROR_MEMORY) return done(w, status);
    *out = *is_short ? pith_json_quote(text, content) : 0;
    return true;
}

/* ---- strings ---- */

static bool emit_automaton(work *w, const pith_schema_shape *shape, pith_words without,
                           pith_grammar_node *out, bool *nothing) {
    pith_schema *schema = w->schema;
    pith_automaton made = {0}, other = {0};
    uint32_t literal = 0;
    pith_words *lists = pith_alloc_array((size_t)without.n + 1, sizeof *lists);
    if (lists == NULL) return pith_schema_fail_memory(&schema->tree);
    bool good = true;
    lists[0] = shape->string.patterns;
    for (uint32_t i = 0; i < without.n && good; i++) {
        const pith_schema_shape *s = &schema->shapes[schema->words[without.first + i]];
        lists[i + 1] = s->kind == PITH_SHAPE_STRING ? s->string.patterns : (pith_words){0};
        if (s->kind == PITH_SHAPE_VALUES) good = add_strings(w, s);
    }
    good = good && make_alphabet(w, lists, (size_t)without.n + 1) && make_shape(w, shape, 0, &made);
    for (uint32_t i = 0; i < without.n && good; i++) {
        const pith_schema_shape *s = &schema->shapes[schema->words[without.first + i]];
        good =
            make_shape(w, s, literal, &other) && combine(w, &made, &other, PITH_AUTOMATON_WITHOUT);
        literal += s->kind == PITH_SHAPE_VALUES;
    }
    good = good && write(w, &made, out, nothing);
    pith_automaton_deinit(&made);
    pith_free(lists);
    return good;
}

bool pith_schema_emit_string(pith_schema *schema, const pith_schema_shape *shape,
                             pith_words without, pith_grammar_node *out, bool *nothing) {
    work w = {.schema = schema};
    bool is_short = false, good = true;
    *out = 0;
    *nothing = false;
    if (without.n == 0) good = write_short(&w, shape, out, nothing, &is_short);
    if (good && !is_short) good = emit_automaton(&w, shape, without, out, nothing);
    uint32_t node = shape->node;
    pith_schema_word word = PITH_WORD_NONE;
    if (shape->string.patterns.n > 0) {
        const pith_schema_pattern *p =
            &schema->patterns[schema->words[shape->string.patterns.first]];
        node = p->node;
        word = p->word;
    }
    if (!good) (void)report(&w, node, word);
    work_deinit(&w);
    return good && schema->tree.status == PITH_OK;
}

bool pith_schema_strings_disjoint(pith_schema *schema, const pith_schema_shape *a,
                                  const pith_schema_shape *b, bool *disjoint) {
    work w = {.schema = schema};
    pith_automaton made = {0}, other = {0};
    *disjoint = a->string.min > b->string.max || b->string.min > a->string.max;
    bool simple = a->string.patterns.n == 0 && b->string.patterns.n == 0;
    if (*disjoint || simple) return true;
    pith_words lists[2] = {a->string.patterns, b->string.patterns};
    bool good = make_alphabet(&w, lists, 2) && make_shape(&w, a, 0, &made) &&
                make_shape(&w, b, 0, &other) && combine(&w, &made, &other, PITH_AUTOMATON_BOTH);
    if (good) *disjoint = made.start == 0;
    /* too large to tell: then it is not certain */
    if (!good && w.status == PITH_ERROR_LIMIT && schema->tree.status == PITH_OK) {
        good = pith_schema_work(schema, TOO_LARGE_WORK);
    }
    if (!good) (void)report(&w, a->node, PITH_WORD_NONE);
    pith_automaton_deinit(&made);
    work_deinit(&w);
    return good;
}

/* ---- keys ---- */

/* The strings of the set of propertyNames; other kinds of values are no names. */
static bool with_names(work *w, uint32_t set, uint32_t literal, pith_automaton *made) {
    pith_schema *schema = w->schema;
    pith_schema_set names = schema->sets[set];
    pith_automaton any = {0}, one;
    bool first = true;
    for (uint32_t i = 0; i < names.n_shapes; i++) {
        const pith_schema_shape *s = &schema->shapes[names.first_shape + i];
        if (s->kind != PITH_SHAPE_STRING && s->kind != PITH_SHAPE_VALUES) continue;
        if (s->kind == PITH_SHAPE_STRING && s->against.n > 0) {
            pith_automaton_deinit(&any);
            return pith_schema_fail(&schema->tree, PITH_ERROR_UNSUPPORTED, s->node, PITH_WORD_NONE,
                                    "not and oneOf are not supported for keys");
        }
        bool good = make_shape(w, s, literal, &one);
        literal += s->kind == PITH_SHAPE_VALUES;
        if (good && !first) good = combine(w, &any, &one, PITH_AUTOMATON_EITHER);
        if (good && first) any = one;
        if (!good) {
            pith_automaton_deinit(&any);
            return false;
        }
        first = false;
    }
    if (!first) return combine(w, made, &any, PITH_AUTOMATON_BOTH);
    pith_automaton_deinit(made); /* no string is a name */
    *made = (pith_automaton){0};
    return true;
}

static bool make_keys(work *w, const pith_schema_shape *shape, uint32_t matched,
                      pith_automaton *made) {
    uint32_t n_names;
    bool has_keys = shape->object.n_properties > 0;
    (void)pith_tuple_get(&w->schema->set_table, shape->object.names, &n_names);
    if (!begin(w, made)) return false;
    for (uint32_t i = 0; i < shape->object.patterns.n; i++) {
        uint32_t pattern = w->schema->words[shape->object.patterns.first + i];
        bool is_matched = matched >> i & 1;
        if (!with_pattern(w, made, pattern,
                          is_matched ? PITH_AUTOMATON_BOTH : PITH_AUTOMATON_WITHOUT)) {
            return false;
        }
    }
    if (has_keys && !with_regex(w, made, &w->literals[0], false, PITH_AUTOMATON_WITHOUT)) {
        return false;
    }
    return n_names == 0 || with_names(w, shape->object.names, has_keys, made);
}

static bool collect_keys(work *w, const pith_schema_shape *shape) {
    pith_schema *schema = w->schema;
    pith_schema_set names = schema->sets[shape->object.names];
    uint32_t n_names;
    (void)pith_tuple_get(&schema->set_table, shape->object.names, &n_names);
    if (n_names == 0) names.n_shapes = 0;
    if (shape->object.n_properties > 0 && !add_keys(w, shape)) return false;
    pith_words *lists = pith_alloc_zero((size_t)names.n_shapes + 1, sizeof *lists);
    if (lists == NULL) return pith_schema_fail_memory(&schema->tree);
    bool good = true;
    lists[0] = shape->object.patterns;
    for (uint32_t i = 0; i < names.n_shapes && good; i++) {
        const pith_schema_shape *s = &schema->shapes[names.first_shape + i];
        if (s->kind == PITH_SHAPE_STRING) lists[i + 1] = s->string.patterns;
        if (s->kind == PITH_SHAPE_VALUES) good = add_strings(w, s);
    }
    good = good && make_alphabet(w, lists, (size_t)names.n_shapes + 1);
    pith_free(lists);
    return good;
}

bool pith_schema_emit_keys(pith_schema *schema, const pith_schema_shape *shape, uint32_t matched,
                           pith_grammar_node *out, bool *nothing) {
    work w = {.schema = schema};
    pith_automaton made = {0};
    uint32_t n_names;
    (void)pith_tuple_get(&schema->set_table, shape->object.names, &n_names);
    *nothing = false;
    if (shape->object.n_properties == 0 && shape->object.patterns.n == 0 && n_names == 0) {
        *out = schema->text->any_string;
        return true;
    }
    bool good = collect_keys(&w, shape) && make_keys(&w, shape, matched, &made);
    if (good && made.n_states == 0) {
        *nothing = true;
    } else if (good) {
        good = write(&w, &made, out, nothing);
    }
    if (!good) (void)report(&w, shape->node, PITH_WORD_NONE);
    pith_automaton_deinit(&made);
    work_deinit(&w);
    return good && schema->tree.status == PITH_OK;
}
