/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of a regular expression -> tree.
 *
 * Invariant: a node is appended after its children, so the nodes below it are the ones right in
 * front of it. Open groups stand on a stack of frames with a limit; nothing recurses.
 *
 *   frame   alternatives so far: first_alternative -> next -> ...
 *           items of the one being read: first_item -> ... -> before_last -> last_item
 *
 * A quantifier wraps the last item, which is why before_last is kept. Lazy quantifiers describe the
 * same texts as greedy ones. Escapes and classes are read in regex_class.c.
 */
#include "sample/regex_parser.h"

#include "base/memory.h"

#include <string.h>

typedef struct frame {
    uint32_t first_alternative, last_alternative, n_alternatives;
    uint32_t first_item, before_last, last_item, n_items;
    size_t offset; /* of the parenthesis */
} frame;

typedef struct group_stack {
    frame *frames;
    size_t n, capacity;
} group_stack;

void pith_regex_deinit(pith_regex *regex) {
    for (uint32_t i = 0; i < regex->n_sets; i++) pith_code_set_deinit(&regex->sets[i]);
    pith_free(regex->sets);
    pith_free(regex->nodes);
    *regex = (pith_regex){0};
}

bool pith_regex_fail(pith_regex_parser *parser, pith_status status, size_t offset,
                     const char *what) {
    if (parser->status == PITH_OK) {
        parser->status =
            status == PITH_ERROR_MEMORY
                ? pith_fail_memory(parser->error, "a regular expression", parser->text.size)
                : pith_fail(parser->error, status, "regular expression, offset %zu: %s", offset,
                            what);
    }
    return false;
}

static bool no_memory(pith_regex_parser *parser) {
    return pith_regex_fail(parser, PITH_ERROR_MEMORY, 0, "");
}

/* ---- nodes ---- */

static bool add_node(pith_regex_parser *parser, pith_regex_node node, uint32_t *index) {
    pith_regex *regex = parser->regex;
    if (regex->n == regex->capacity) {
        uint32_t capacity = regex->capacity ? regex->capacity * 2 : 16;
        if (capacity > PITH_GRAMMAR_MAX_NODES) {
            return pith_regex_fail(parser, PITH_ERROR_LIMIT, parser->at, "too many parts");
        }
        pith_regex_node *nodes = pith_realloc(regex->nodes, capacity * sizeof *nodes);
        if (nodes == NULL) return no_memory(parser);
        regex->nodes = nodes;
        regex->capacity = capacity;
    }
    node.next = PITH_REGEX_NONE;
    *index = regex->n;
    regex->nodes[regex->n++] = node;
    return true;
}

/* Takes the set over; *index is the one equal set of the tree. */
static bool intern_set(pith_regex_parser *parser, pith_code_set *set, uint32_t *index) {
    pith_regex *regex = parser->regex;
    pith_code_set_settle(set);
    if (regex->n_sets == regex->set_capacity) {
        uint32_t capacity = regex->set_capacity ? regex->set_capacity * 2 : 8;
        pith_code_set *sets = pith_realloc(regex->sets, capacity * sizeof *sets);
        if (sets == NULL) set->failed = true;
        if (sets != NULL) {
            regex->sets = sets;
            regex->set_capacity = capacity;
        }
    }
    pith_span key = {(const char *)set->ranges, set->n * sizeof *set->ranges};
    int32_t known = 0;
    int inserted =
        set->failed ? -1 : pith_map_insert(&parser->sets, key, (int32_t)regex->n_sets, &known);
    if (inserted <= 0) pith_code_set_deinit(set);
    if (inserted < 0) return no_memory(parser);
    if (inserted > 0) regex->sets[regex->n_sets++] = *set;
    *index = (uint32_t)known;
    return true;
}

static void append_item(pith_regex *regex, frame *group, uint32_t item) {
    if (group->n_items++ == 0) {
        group->first_item = item;
    } else {
        regex->nodes[group->last_item].next = item;
        group->before_last = group->last_item;
    }
    group->last_item = item;
}

static bool add_set(pith_regex_parser *parser, frame *group, pith_code_set *set, size_t offset) {
    uint32_t item;
    pith_regex_node node = {
        .kind = PITH_REGEX_SET, .child = PITH_REGEX_NONE, .offset = (uint32_t)offset};
    if (!intern_set(parser, set, &node.set) || !add_node(parser, node, &item)) return false;
    append_item(parser->regex, group, item);
    return true;
}

static bool add_code(pith_regex_parser *parser, frame *group, uint32_t code, size_t offset) {
    pith_code_set set = {0};
    pith_code_set_add(&set, code, code);
    return add_set(parser, group, &set, offset);
}

static bool close_alternative(pith_regex_parser *parser, frame *group) {
    uint32_t alternative = group->first_item;
    if (group->n_items != 1) {
        pith_regex_node node = {.kind = PITH_REGEX_SEQUENCE,
                                .child = group->n_items ? group->first_item : PITH_REGEX_NONE,
                                .offset = (uint32_t)group->offset};
        if (!add_node(parser, node, &alternative)) return false;
    }
    if (group->n_alternatives++ == 0) {
        group->first_alternative = alternative;
    } else {
        parser->regex->nodes[group->last_alternative].next = alternative;
    }
    group->last_alternative = alternative;
    group->n_items = 0;
    return true;
}

static bool close_group(pith_regex_parser *parser, frame *group, uint32_t *index) {
    if (!close_alternative(parser, group)) return false;
    *index = group->first_alternative;
    if (group->n_alternatives == 1) return true;
    pith_regex_node node = {.kind = PITH_REGEX_CHOICE,
                            .child = group->first_alternative,
                            .offset = (uint32_t)group->offset};
    return add_node(parser, node, index);
}

static bool push_frame(pith_regex_parser *parser, group_stack *stack, size_t offset) {
    if (stack->n > PITH_GRAMMAR_MAX_NESTING) {
        return pith_regex_fail(parser, PITH_ERROR_LIMIT, offset, "groups are nested too deep");
    }
    if (stack->n == stack->capacity) {
        size_t capacity = stack->capacity ? stack->capacity * 2 : 8;
        frame *frames = pith_realloc(stack->frames, capacity * sizeof *frames);
        if (frames == NULL) return no_memory(parser);
        stack->frames = frames;
        stack->capacity = capacity;
    }
    stack->frames[stack->n++] = (frame){.offset = offset};
    return true;
}

/* ---- quantifiers ---- */

static bool read_number(pith_regex_parser *parser, size_t *at, uint32_t *out) {
    size_t start = *at;
    uint64_t number = 0;
    while (*at < parser->text.size && parser->text.data[*at] >= '0' &&
           parser->text.data[*at] <= '9') {
        number = number * 10 + (uint64_t)(parser->text.data[(*at)++] - '0');
        if (number > PITH_GRAMMAR_MAX_COUNT) number = (uint64_t)PITH_GRAMMAR_MAX_COUNT + 1;
    }
    *out = (uint32_t)number;
    return *at > start;
}

/* {m} {m,} {m,n} at parser->at; false where it is none of them: the brace is then a character. */
static bool read_braces(pith_regex_parser *parser, uint32_t *min, uint32_t *max, size_t *end) {
    size_t at = parser->at + 1;
    if (!read_number(parser, &at, min)) return false;
    *max = *min;
    if (at < parser->text.size && parser->text.data[at] == ',') {
        at++;
        if (!read_number(parser, &at, max)) *max = PITH_GRAMMAR_UNBOUNDED;
    }
    if (at >= parser->text.size || parser->text.data[at] != '}') return false;
    *end = at + 1;
    return true;
}

/* *end: behind the quantifier at parser->at, 0 where there is none. */
static void find_quantifier(pith_regex_parser *parser, uint32_t *min, uint32_t *max, size_t *end) {
    *min = 0, *max = PITH_GRAMMAR_UNBOUNDED, *end = 0;
    if (parser->at >= parser->text.size) return;
    switch (parser->text.data[parser->at]) {
    case '*': break;
    case '+': *min = 1; break;
    case '?': *max = 1; break;
    case '{':
        if (!read_braces(parser, min, max, end)) *end = 0;
        return;
    default: return;
    }
    *end = parser->at + 1;
}

static bool quantify(pith_regex_parser *parser, frame *group) {
    uint32_t min, max, item;
    size_t end, offset = parser->at;
    find_quantifier(parser, &min, &max, &end);
    if (end == 0) return true;
    if (min > PITH_GRAMMAR_MAX_COUNT ||
        (max != PITH_GRAMMAR_UNBOUNDED && max > PITH_GRAMMAR_MAX_COUNT)) {
        return pith_regex_fail(parser, PITH_ERROR_LIMIT, offset, "a count above 1048576");
    }
    if (min > max) {
        return pith_regex_fail(parser, PITH_ERROR_FORMAT, offset, "the counts are out of order");
    }
    parser->at = end;
    if (parser->at < parser->text.size && parser->text.data[parser->at] == '?') parser->at++;
    size_t again;
    uint32_t unused_min, unused_max;
    find_quantifier(parser, &unused_min, &unused_max, &again);
    if (again != 0) {
        return pith_regex_fail(parser, PITH_ERROR_FORMAT, parser->at,
                               "a quantifier behind a quantifier");
    }
    pith_regex_node node = {.kind = PITH_REGEX_REPEAT,
                            .child = group->last_item,
                            .min = min,
                            .max = max,
                            .offset = (uint32_t)offset};
    if (!add_node(parser, node, &item)) return false;
    if (group->n_items == 1) {
        group->first_item = item;
    } else {
        parser->regex->nodes[group->before_last].next = item;
    }
    group->last_item = item;
    return true;
}

/* ---- groups and items ---- */

/* Behind "(?": what kind of group. */
static bool open_special(pith_regex_parser *parser, size_t offset) {
    pith_span text = parser->text;
    char c = parser->at < text.size ? text.data[parser->at] : 0;
    char d = parser->at + 1 < text.size ? text.data[parser->at + 1] : 0;
    if (c == ':') {
        parser->at++;
        return true;
    }
    if (c == '=' || c == '!') {
        return pith_regex_fail(parser, PITH_ERROR_UNSUPPORTED, offset,
                               "looking ahead is not supported");
    }
    if (c == '<' && (d == '=' || d == '!')) {
        return pith_regex_fail(parser, PITH_ERROR_UNSUPPORTED, offset,
                               "looking behind is not supported");
    }
    if (c != '<') {
        return pith_regex_fail(parser, PITH_ERROR_UNSUPPORTED, offset,
                               "a group that begins with (? and neither : nor <name>");
    }
    size_t start = ++parser->at;
    while (parser->at < text.size && text.data[parser->at] != '>') {
        char e = text.data[parser->at++];
        bool fits = (e >= 'a' && e <= 'z') || (e >= 'A' && e <= 'Z') || e == '_' || e == '$' ||
                    (e >= '0' && e <= '9' && parser->at - 1 > start);
        if (!fits) break;
    }
    if (parser->at == start || parser->at >= text.size || text.data[parser->at] != '>') {
        return pith_regex_fail(parser, PITH_ERROR_FORMAT, offset, "the group's name is broken");
    }
    parser->at++;
    return true;
}

static bool open_group(pith_regex_parser *parser, group_stack *stack) {
    size_t offset = parser->at++;
    if (parser->at < parser->text.size && parser->text.data[parser->at] == '?') {
        parser->at++;
        if (!open_special(parser, offset)) return false;
    }
    return push_frame(parser, stack, offset);
}

static bool end_group(pith_regex_parser *parser, group_stack *stack) {
    uint32_t item;
    if (stack->n == 1) {
        return pith_regex_fail(parser, PITH_ERROR_FORMAT, parser->at, "a ) without its (");
    }
    if (!close_group(parser, &stack->frames[stack->n - 1], &item)) return false;
    stack->n--;
    parser->at++;
    frame *outer = &stack->frames[stack->n - 1];
    append_item(parser->regex, outer, item);
    return quantify(parser, outer);
}

static bool add_anchor(pith_regex_parser *parser, frame *group, pith_regex_kind kind) {
    uint32_t item, min, max;
    size_t end;
    pith_regex_node node = {.kind = kind, .child = PITH_REGEX_NONE, .offset = (uint32_t)parser->at};
    if (!add_node(parser, node, &item)) return false;
    append_item(parser->regex, group, item);
    parser->at++;
    find_quantifier(parser, &min, &max, &end);
    return end == 0 ||
           pith_regex_fail(parser, PITH_ERROR_FORMAT, parser->at, "a quantifier behind ^ or $");
}

/* One character, class or escape, with its quantifier. */
static bool read_item(pith_regex_parser *parser, frame *group) {
    size_t offset = parser->at;
    char c = parser->text.data[offset];
    pith_code_set set = {0};
    uint32_t code = 0;
    if (c == '.') {
        parser->at++;
        (void)pith_code_set_add_class(&set, '.');
    } else if (c == '[') {
        if (!pith_regex_read_class(parser, &set)) {
            pith_code_set_deinit(&set);
            return false;
        }
    } else if (c == '\\') {
        bool is_code = false;
        if (!pith_regex_read_escape(parser, false, &set, &code, &is_code)) {
            pith_code_set_deinit(&set);
            return false;
        }
        if (is_code) return add_code(parser, group, code, offset) && quantify(parser, group);
    } else {
        if (!pith_regex_read_code(parser, &code)) return false;
        return add_code(parser, group, code, offset) && quantify(parser, group);
    }
    return add_set(parser, group, &set, offset) && quantify(parser, group);
}

static bool read_one(pith_regex_parser *parser, group_stack *stack) {
    frame *group = &stack->frames[stack->n - 1];
    switch (parser->text.data[parser->at]) {
    case '(': return open_group(parser, stack);
    case ')': return end_group(parser, stack);
    case '|': parser->at++; return close_alternative(parser, group);
    case '^': return add_anchor(parser, group, PITH_REGEX_START);
    case '$': return add_anchor(parser, group, PITH_REGEX_END);
    case '*':
    case '+':
    case '?':
        return pith_regex_fail(parser, PITH_ERROR_FORMAT, parser->at,
                               "a quantifier with nothing before it");
    default: return read_item(parser, group);
    }
}

static bool read_all(pith_regex_parser *parser, group_stack *stack) {
    uint32_t root;
    if (parser->text.size > PITH_GRAMMAR_MAX_TEXT) {
        return pith_regex_fail(parser, PITH_ERROR_LIMIT, PITH_GRAMMAR_MAX_TEXT,
                               "longer than 1 MiB");
    }
    if (!push_frame(parser, stack, 0)) return false;
    while (parser->at < parser->text.size) {
        if (!read_one(parser, stack)) return false;
    }
    if (stack->n > 1) {
        return pith_regex_fail(parser, PITH_ERROR_FORMAT, stack->frames[stack->n - 1].offset,
                               "a ( without its )");
    }
    return close_group(parser, &stack->frames[0], &root);
}

pith_status pith_regex_parse(pith_span text, pith_regex *out, pith_error *error) {
    *out = (pith_regex){0};
    pith_regex_parser parser = {.text = text, .regex = out, .error = error};
    group_stack stack = {0};
    (void)read_all(&parser, &stack);
    pith_free(stack.frames);
    pith_map_deinit(&parser.sets);
    if (parser.status != PITH_OK) pith_regex_deinit(out);
    return parser.status;
}

/* ---- literals ---- */

static bool add_literal(pith_regex_parser *parser, frame *group, pith_span text) {
    parser->text = text;
    for (parser->at = 0; parser->at < text.size;) {
        uint32_t code;
        if (!pith_regex_read_code(parser, &code) || !add_code(parser, group, code, 0)) return false;
    }
    return close_alternative(parser, group);
}

pith_status pith_regex_of_literals(const pith_span *texts, size_t n, pith_regex *out,
                                   pith_error *error) {
    *out = (pith_regex){0};
    pith_regex_parser parser = {.regex = out, .error = error};
    frame group = {0};
    uint32_t root;
    bool good = true;
    for (size_t i = 0; i < n && good; i++) good = add_literal(&parser, &group, texts[i]);
    if (good) {
        pith_regex_node node = {.kind = PITH_REGEX_CHOICE,
                                .child = n > 0 ? group.first_alternative : PITH_REGEX_NONE};
        good = add_node(&parser, node, &root);
    }
    pith_map_deinit(&parser.sets);
    if (!good) pith_regex_deinit(out);
    return parser.status;
}
