/* SPDX-License-Identifier: Apache-2.0
 *
 * Tree of a regular expression -> deterministic automaton, in two steps.
 *
 * 1. Parts (Thompson's construction): each node of the tree becomes a fragment with one way in and
 *    one way out. As the nodes below a node are neighbours, so are the parts of its fragment, and a
 *    counted repetition copies a stretch of the array.
 * 2. Sets of parts (the subset construction). A set holds only parts that matter: those that take a
 *    code point, $, and the end.
 *
 * Searching adds a part in front that takes anything and comes back, and makes the end a part that
 * swallows the rest: a set that has it is that part alone. ^ can be passed before the first code
 * point only; $ is passed when asking whether a text may end here, never on the way to more.
 */
#include "sample/automaton.h"

#include "base/memory.h"
#include "sample/tuple_table.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 1 << 16, NOWHERE = 0xFFFFFFFFu, ANY_SET = 0xFFFFFFFFu };

typedef enum part_kind {
    PART_PASS,  /* to a; NOWHERE: stuck */
    PART_SPLIT, /* to a and to b */
    PART_TAKE,  /* a code point of set b, to a */
    PART_START, /* ^, to a */
    PART_END,   /* $, to a */
    PART_MATCH,
    PART_SWALLOW /* a match, whatever follows */
} part_kind;

typedef struct part {
    part_kind kind;
    uint32_t a, b;
} part;

typedef struct fragment {
    uint32_t first; /* where its parts begin */
    uint32_t in, out;
} fragment;

typedef struct maker {
    const pith_regex *regex;
    const pith_alphabet *alphabet;
    part *parts; /* [n_parts] */
    uint32_t n_parts, capacity;
    fragment *fragments; /* [regex->n] */
    uint8_t *members;    /* [n_sets, n_classes] is the class in the set? */
    pith_error *error;
    pith_status status;
    uint64_t steps;
    /* of the subset construction */
    pith_tuple_table sets;
    uint32_t *mark, generation; /* [n_parts] */
    uint32_t *stack;            /* [n_parts] */
    uint32_t *list, n_list;     /* [n_parts] the set being made */
    bool swallows, matches;
} maker;

static bool fail_limit(maker *m) {
    if (m->status == PITH_OK) {
        m->status = pith_fail(m->error, PITH_ERROR_LIMIT,
                              "the expression needs an automaton of more than %d states",
                              PITH_AUTOMATON_MAX_STATES);
    }
    return false;
}

static bool fail_memory(maker *m) {
    if (m->status == PITH_OK) {
        m->status = pith_fail_memory(m->error, "an automaton", m->n_parts * sizeof *m->parts);
    }
    return false;
}

/* ---- parts ---- */

static bool reserve_parts(maker *m, uint32_t n) {
    if (n > MAX_PARTS || m->n_parts + n > MAX_PARTS) return fail_limit(m);
    if (m->n_parts + n <= m->capacity) return true;
    uint32_t capacity = (m->n_parts + n) * 2;
    part *parts = pith_realloc(m->parts, capacity * sizeof *parts);
    if (parts == NULL) return fail_memory(m);
    m->parts = parts;
    m->capacity = capacity;
    return true;
}

/* Room has been reserved. */
static uint32_t put(maker *m, part_kind kind, uint32_t a, uint32_t b) {
    m->parts[m->n_parts] = (part){kind, a, b};
    return m->n_parts++;
}

static bool make_leaf(maker *m, const pith_regex_node *node, fragment *made) {
    if (!reserve_parts(m, 2)) return false;
    part_kind kind = node->kind == PITH_REGEX_SET     ? PART_TAKE
                     : node->kind == PITH_REGEX_START ? PART_START
                     : node->kind == PITH_REGEX_END   ? PART_END
                                                      : PART_PASS;
    made->first = m->n_parts;
    made->in = put(m, kind, m->n_parts + 1, node->set);
    made->out = put(m, PART_PASS, NOWHERE, 0);
    return true;
}

static bool make_sequence(maker *m, const pith_regex_node *node, fragment *made) {
    if (node->child == PITH_REGEX_NONE) return make_leaf(m, node, made);
    *made = m->fragments[node->child];
    uint32_t c = m->regex->nodes[node->child].next;
    for (; c != PITH_REGEX_NONE; c = m->regex->nodes[c].next) {
        m->parts[made->out].a = m->fragments[c].in;
        made->out = m->fragments[c].out;
    }
    return true;
}

static bool make_choice(maker *m, const pith_regex_node *node, fragment *made) {
    uint32_t n = 1;
    for (uint32_t c = node->child; c != PITH_REGEX_NONE; c = m->regex->nodes[c].next) n++;
    if (!reserve_parts(m, n + 1)) return false;
    made->first = node->child == PITH_REGEX_NONE ? m->n_parts : m->fragments[node->child].first;
    made->in = put(m, PART_PASS, NOWHERE, 0);
    made->out = put(m, PART_PASS, NOWHERE, 0);
    for (uint32_t c = node->child; c != PITH_REGEX_NONE; c = m->regex->nodes[c].next) {
        m->parts[m->fragments[c].out].a = made->out;
        if (m->parts[made->in].a == NOWHERE) {
            m->parts[made->in].a = m->fragments[c].in;
        } else {
            m->parts[made->in].a = put(m, PART_SPLIT, m->fragments[c].in, m->parts[made->in].a);
        }
    }
    return true;
}

/* Parts first..end once more at the end of the array. */
static fragment copy_fragment(maker *m, fragment from, uint32_t end) {
    uint32_t shift = m->n_parts - from.first;
    for (uint32_t i = from.first; i < end; i++) {
        part p = m->parts[i];
        if (p.a != NOWHERE) p.a += shift;
        if (p.kind == PART_SPLIT) p.b += shift;
        m->parts[m->n_parts++] = p;
    }
    return (fragment){from.first + shift, from.in + shift, from.out + shift};
}

static bool make_repeat(maker *m, const pith_regex_node *node, fragment *made) {
    fragment one = m->fragments[node->child];
    uint32_t end = m->n_parts, size = end - one.first;
    bool unbounded = node->max == PITH_GRAMMAR_UNBOUNDED;
    uint64_t copies = unbounded ? (node->min > 1 ? node->min : 1) : node->max;
    if (copies * (size + 1) + 2 > MAX_PARTS) return fail_limit(m);
    if (!reserve_parts(m, (uint32_t)copies * (size + 1) + 2)) return false;
    made->first = one.first;
    uint32_t out = put(m, PART_PASS, NOWHERE, 0), before = NOWHERE;
    made->in = made->out = out;
    fragment clean = one; /* never linked before it is copied: the last copy is the original */
    for (uint32_t i = 0; i < copies; i++) {
        fragment each = i + 1 < copies ? copy_fragment(m, clean, end) : clean;
        uint32_t in = each.in;
        if (i >= node->min) in = put(m, PART_SPLIT, each.in, out);
        if (before == NOWHERE) {
            made->in = in;
        } else {
            m->parts[before].a = in;
        }
        before = each.out;
        if (i + 1 == copies) {
            m->parts[before].a = unbounded ? put(m, PART_SPLIT, each.in, out) : out;
        }
    }
    return true;
}

static bool make_parts(maker *m) {
    for (uint32_t i = 0; i < m->regex->n; i++) {
        const pith_regex_node *node = &m->regex->nodes[i];
        fragment made = {0};
        bool good = node->kind == PITH_REGEX_SEQUENCE ? make_sequence(m, node, &made)
                    : node->kind == PITH_REGEX_CHOICE ? make_choice(m, node, &made)
                    : node->kind == PITH_REGEX_REPEAT ? make_repeat(m, node, &made)
                                                      : make_leaf(m, node, &made);
        if (!good) return false;
        m->fragments[i] = made;
    }
    return true;
}

/* The way in for the whole expression, or NOWHERE. */
static uint32_t close_parts(maker *m, bool search) {
    if (!make_parts(m) || !reserve_parts(m, 4)) return NOWHERE;
    fragment whole = m->fragments[m->regex->n - 1];
    m->parts[whole.out].a = put(m, search ? PART_SWALLOW : PART_MATCH, NOWHERE, 0);
    if (!search) return whole.in;
    uint32_t again = put(m, PART_SPLIT, whole.in, NOWHERE);
    m->parts[again].b = put(m, PART_TAKE, again, ANY_SET);
    return again;
}

/* ---- sets of parts ---- */

/* Adds the part and what can be reached without taking anything. at_end: passing $, to see whether
 * the text may end; then only `matches` is of interest. */
static bool reach(maker *m, uint32_t from, bool at_start, bool at_end) {
    uint32_t n = 0;
    m->stack[n++] = from;
    while (n > 0) {
        uint32_t i = m->stack[--n];
        if (i == NOWHERE || m->mark[i] == m->generation) continue;
        m->mark[i] = m->generation;
        if (++m->steps > PITH_AUTOMATON_MAX_STEPS) return fail_limit(m);
        part p = m->parts[i];
        switch (p.kind) {
        case PART_TAKE: break;
        case PART_PASS: m->stack[n++] = p.a; continue;
        case PART_SPLIT:
            m->stack[n++] = p.b;
            if (m->mark[p.a] != m->generation) m->stack[n++] = p.a;
            continue;
        case PART_START:
            if (at_start) m->stack[n++] = p.a;
            continue;
        case PART_END:
            if (at_end) m->stack[n++] = p.a;
            break;
        case PART_SWALLOW:
            m->swallows = m->swallows || !at_end;
            m->matches = true;
            break;
        case PART_MATCH: m->matches = true; break;
        }
        if (!at_end) m->list[m->n_list++] = i;
    }
    return true;
}

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Most lists are in order as they are found. */
static void sort_list(maker *m) {
    for (uint32_t i = 1; i < m->n_list; i++) {
        if (m->list[i - 1] < m->list[i]) continue;
        qsort(m->list, m->n_list, sizeof *m->list, by_number);
        return;
    }
}

/* May a text end in the set in `list`? */
static bool settle_matches(maker *m, bool at_start) {
    if (m->matches) return true;
    m->generation++;
    for (uint32_t i = 0; i < m->n_list; i++) {
        if (m->parts[m->list[i]].kind != PART_END) continue;
        if (!reach(m, m->list[i], at_start, true)) return false;
    }
    return true;
}

static void begin_set(maker *m) {
    m->generation++;
    m->n_list = 0;
    m->swallows = m->matches = false;
}

/* The automaton's state for the set in `list`; its row is filled later. */
static bool state_of(maker *m, pith_automaton *out, uint32_t *state, bool at_start) {
    bool is_new;
    uint32_t key;
    *state = 0;
    if (m->n_list == 0) return true;
    if (m->swallows) { /* one state for all of them */
        key = NOWHERE;
        m->list[0] = key, m->n_list = 1;
    } else {
        sort_list(m);
        if (!settle_matches(m, at_start)) return false;
    }
    uint32_t number = pith_tuple_intern(&m->sets, m->list, m->n_list, &is_new);
    if (number == PITH_TUPLE_NONE) return fail_memory(m);
    *state = number + 1;
    if (!is_new) return true;
    if (*state >= PITH_AUTOMATON_MAX_STATES ||
        (size_t)(*state + 1) * out->n_classes > PITH_AUTOMATON_MAX_CELLS) {
        return fail_limit(m);
    }
    if ((*state & (*state - 1)) == 0) { /* room for twice as many */
        size_t capacity = (size_t)*state * 2;
        uint32_t *next = pith_realloc(out->next, capacity * out->n_classes * sizeof *next);
        if (next != NULL) out->next = next;
        bool *accepts = pith_realloc(out->accepts, capacity * sizeof *accepts);
        if (accepts != NULL) out->accepts = accepts;
        if (next == NULL || accepts == NULL) return fail_memory(m);
    }
    out->accepts[*state] = m->matches;
    out->n_states = *state + 1;
    return true;
}

static bool is_member(const maker *m, uint32_t set, uint32_t class) {
    return set == ANY_SET || m->members[(size_t)set * m->alphabet->n_classes + class];
}

static bool fill_row(maker *m, pith_automaton *out, uint32_t state) {
    for (uint32_t class = 0; class < out->n_classes; class ++) {
        uint32_t n, to;
        const uint32_t *parts = pith_tuple_get(&m->sets, state - 1, &n);
        if (parts[0] == NOWHERE) {
            out->next[(size_t)state * out->n_classes + class] = state;
            continue;
        }
        begin_set(m);
        m->steps += n;
        if (m->steps > PITH_AUTOMATON_MAX_STEPS) return fail_limit(m);
        for (uint32_t i = 0; i < n; i++) {
            part p = m->parts[parts[i]];
            if (p.kind != PART_TAKE || !is_member(m, p.b, class)) continue;
            if (!reach(m, p.a, false, false)) return false;
        }
        if (!state_of(m, out, &to, false)) return false;
        out->next[(size_t)state * out->n_classes + class] = to;
    }
    return true;
}

/* The first set is no tuple that could come again: a text may end in it in its own way (^$). */
static bool make_sets(maker *m, uint32_t in, pith_automaton *out) {
    begin_set(m);
    if (!reach(m, in, true, false)) return false;
    if (!m->swallows) m->list[m->n_list++] = in; /* a mark: no other set has this part twice */
    uint32_t n_real = m->n_list - (m->swallows ? 0 : 1);
    if (n_real == 0) return true;
    if (!state_of(m, out, &out->start, true)) return false;
    for (uint32_t s = 1; s < out->n_states; s++) {
        if (!fill_row(m, out, s)) return false;
    }
    return true;
}

static bool fill_members(maker *m) {
    size_t n_classes = m->alphabet->n_classes;
    if ((uint64_t)m->regex->n_sets * m->alphabet->n_ranges > PITH_AUTOMATON_MAX_STEPS) {
        return fail_limit(m);
    }
    m->members = pith_alloc_zero(m->regex->n_sets + 1, n_classes);
    if (m->members == NULL) return fail_memory(m);
    for (uint32_t s = 0; s < m->regex->n_sets; s++) {
        const pith_code_set *set = &m->regex->sets[s];
        size_t r = 0;
        for (size_t i = 0; i < m->alphabet->n_ranges && r < set->n; i++) {
            uint32_t first = m->alphabet->ranges[i].first;
            while (r < set->n && set->ranges[r].last < first) r++;
            if (r < set->n && set->ranges[r].first <= first) {
                m->members[s * n_classes + m->alphabet->class_of[i]] = 1;
            }
        }
    }
    return true;
}

static bool make(maker *m, bool search, pith_automaton *out) {
    m->fragments = pith_alloc_zero(m->regex->n, sizeof *m->fragments);
    if (m->fragments == NULL) return fail_memory(m);
    if (!fill_members(m)) return false;
    uint32_t in = close_parts(m, search);
    if (in == NOWHERE) return false;
    size_t n = (size_t)m->n_parts + 2;
    m->mark = pith_alloc_zero(n, sizeof *m->mark);
    m->stack = pith_alloc_array(n * 2, sizeof *m->stack);
    m->list = pith_alloc_array(n, sizeof *m->list);
    out->next = pith_alloc_zero(m->alphabet->n_classes, sizeof *out->next);
    out->accepts = pith_alloc_zero(1, sizeof *out->accepts);
    if (!m->mark || !m->stack || !m->list || !out->next || !out->accepts) return fail_memory(m);
    out->n_states = 1;
    return make_sets(m, in, out);
}

pith_status pith_automaton_of(const pith_regex *regex, const pith_alphabet *alphabet, bool search,
                              pith_automaton *out, pith_error *error) {
    maker m = {.regex = regex, .alphabet = alphabet, .error = error};
    *out = (pith_automaton){.n_classes = alphabet->n_classes};
    (void)make(&m, search, out);
    if (m.status == PITH_OK) m.status = pith_automaton_trim(out, error);
    out->steps = m.steps + (uint64_t)out->n_states * out->n_classes;
    if (m.status != PITH_OK) pith_automaton_deinit(out);
    pith_free(m.parts);
    pith_free(m.fragments);
    pith_free(m.members);
    pith_free(m.mark);
    pith_free(m.stack);
    pith_free(m.list);
    pith_tuple_table_deinit(&m.sets);
    return m.status;
}

pith_status pith_automaton_of_all(const pith_alphabet *alphabet, pith_automaton *out,
                                  pith_error *error) {
    *out = (pith_automaton){.n_states = 2, .n_classes = alphabet->n_classes, .start = 1};
    out->next = pith_alloc_zero(alphabet->n_classes, 2 * sizeof *out->next);
    out->accepts = pith_alloc_zero(2, sizeof *out->accepts);
    if (out->next == NULL || out->accepts == NULL) {
        pith_automaton_deinit(out);
        return pith_fail_memory(error, "an automaton", alphabet->n_classes);
    }
    for (uint32_t c = 0; c < out->n_classes; c++) out->next[out->n_classes + c] = 1;
    out->accepts[1] = true;
    return PITH_OK;
}
