/* SPDX-License-Identifier: Apache-2.0
 *
 * Alphabets, and automata made from automata.
 *
 * An alphabet is a partition of the code points: it starts as one class, and every set of the trees
 * splits each class into what lies inside and what lies outside. So its size depends on how many
 * kinds of characters the expressions tell apart, not on how many characters there are.
 *
 * Products are made from the start state outwards, so only pairs that occur cost anything. Every
 * automaton is trimmed when it is made: from each state but 0 an accepting one can be reached.
 * Read next: automaton_make.c.
 */
#include "sample/automaton.h"

#include "base/memory.h"
#include "sample/tuple_table.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ALPHABET_STEPS = 1 << 25 };

/* ---- alphabets ---- */

void pith_alphabet_deinit(pith_alphabet *alphabet) {
    pith_free(alphabet->ranges);
    pith_free(alphabet->class_of);
    *alphabet = (pith_alphabet){0};
}

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The ranges between all borders of all sets; one class so far. */
static pith_status cut(const pith_regex *const *regexes, size_t n, pith_alphabet *out,
                       pith_error *error) {
    size_t n_borders = 3, n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < regexes[i]->n_sets; s++) n_borders += 2 * regexes[i]->sets[s].n;
    }
    uint32_t *borders = pith_alloc_array(n_borders, sizeof *borders);
    out->ranges = pith_alloc_array(n_borders, sizeof *out->ranges);
    out->class_of = pith_alloc_zero(n_borders, sizeof *out->class_of);
    if (borders == NULL || out->ranges == NULL || out->class_of == NULL) {
        pith_free(borders);
        return pith_fail_memory(error, "an alphabet", (uint64_t)n_borders * sizeof *borders);
    }
    borders[n_kept++] = 0, borders[n_kept++] = 0xD800, borders[n_kept++] = 0xE000;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t s = 0; s < regexes[i]->n_sets; s++) {
            const pith_code_set *set = &regexes[i]->sets[s];
            for (size_t r = 0; r < set->n; r++) {
                borders[n_kept++] = set->ranges[r].first;
                borders[n_kept++] = set->ranges[r].last + 1;
            }
        }
    }
    qsort(borders, n_kept, sizeof *borders, by_value);
    for (size_t i = 0; i < n_kept; i++) {
        uint32_t last = i + 1 < n_kept ? borders[i + 1] - 1 : PITH_CODE_LAST;
        if (borders[i] > PITH_CODE_LAST || borders[i] == 0xD800) continue;
        if (i + 1 < n_kept && borders[i + 1] == borders[i]) continue;
        out->ranges[out->n_ranges++] = (pith_code_range){borders[i], last};
    }
    out->n_classes = 1;
    pith_free(borders);
    return PITH_OK;
}

static size_t range_of(const pith_alphabet *alphabet, uint32_t code) {
    size_t low = 0, high = alphabet->n_ranges;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (code < alphabet->ranges[middle].first) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return low;
}

uint32_t pith_alphabet_class(const pith_alphabet *alphabet, uint32_t code) {
    return alphabet->class_of[range_of(alphabet, code)];
}

/* The ranges of each class, those of them that lie in the set, and the class these go to. */
typedef struct refinement {
    uint32_t *size, *inside, *moved; /* [n_ranges] of each class; inside is 0 between splits */
    uint32_t *touched;               /* [n_touched] classes with ranges in the set */
    uint32_t n_touched;
    uint64_t steps;
} refinement;

/* Every range of the set: counted, or moved to its new class. */
static void walk(pith_alphabet *alphabet, const pith_code_set *set, refinement *work, bool move) {
    for (size_t r = 0; r < set->n; r++) {
        size_t i = range_of(alphabet, set->ranges[r].first);
        for (; i < alphabet->n_ranges && alphabet->ranges[i].first <= set->ranges[r].last; i++) {
            uint32_t class = alphabet->class_of[i];
            work->steps++;
            if (move) {
                alphabet->class_of[i] = work->moved[class];
            } else if (work->inside[class]++ == 0) {
                work->touched[work->n_touched++] = class;
            }
        }
    }
}

static void split(pith_alphabet *alphabet, const pith_code_set *set, refinement *work) {
    work->n_touched = 0;
    walk(alphabet, set, work, false);
    for (uint32_t i = 0; i < work->n_touched; i++) {
        uint32_t class = work->touched[i];
        bool whole = work->inside[class] == work->size[class];
        work->moved[class] = whole ? class : alphabet->n_classes++;
    }
    walk(alphabet, set, work, true);
    for (uint32_t i = 0; i < work->n_touched; i++) {
        uint32_t class = work->touched[i];
        if (work->moved[class] != class) {
            work->size[class] -= work->inside[class];
            work->size[work->moved[class]] = work->inside[class];
        }
        work->inside[class] = 0;
    }
}

pith_status pith_alphabet_of(const pith_regex *const *regexes, size_t n, pith_alphabet *out,
                             pith_error *error) {
    *out = (pith_alphabet){0};
    pith_status status = cut(regexes, n, out, error);
    if (status != PITH_OK) return status;
    uint32_t *room = pith_alloc_zero(out->n_ranges, 4 * sizeof *room);
    if (room == NULL) {
        return pith_fail_memory(error, "an alphabet", (uint64_t)out->n_ranges * 4 * sizeof *room);
    }
    refinement work = {
        room, room + out->n_ranges, room + 2 * out->n_ranges, room + 3 * out->n_ranges, 0, 0};
    work.size[0] = (uint32_t)out->n_ranges;
    for (size_t i = 0; i < n && work.steps < MAX_ALPHABET_STEPS; i++) {
        for (uint32_t s = 0; s < regexes[i]->n_sets && work.steps < MAX_ALPHABET_STEPS; s++) {
            split(out, &regexes[i]->sets[s], &work);
        }
    }
    pith_free(room);
    if (work.steps < MAX_ALPHABET_STEPS) return PITH_OK;
    return pith_fail(error, PITH_ERROR_LIMIT,
                     "the expressions tell too many kinds of characters apart");
}

/* ---- automata ---- */

void pith_automaton_deinit(pith_automaton *automaton) {
    pith_free(automaton->next);
    pith_free(automaton->accepts);
    *automaton = (pith_automaton){0};
}

bool pith_automaton_accepts(const pith_automaton *automaton, const pith_alphabet *alphabet,
                            pith_span text) {
    uint32_t state = automaton->start;
    for (size_t at = 0; at < text.size && state != 0;) {
        uint32_t code;
        at += pith_utf8_decode(text.data + at, text.size - at, &code);
        if (code == PITH_UTF8_INVALID) return false;
        uint32_t class = pith_alphabet_class(alphabet, code);
        state = automaton->next[(size_t)state * automaton->n_classes + class];
    }
    return state != 0 && automaton->accepts[state];
}

/* Which states reach an accepting one: backwards over the edges, which are sorted by target. */
static pith_status mark_useful(const pith_automaton *a, bool *useful, pith_error *error) {
    size_t n_cells = (size_t)a->n_states * a->n_classes;
    uint32_t *first = pith_alloc_zero((size_t)a->n_states + 1, sizeof *first);
    uint32_t *from = pith_alloc_array(n_cells + 1, sizeof *from);
    uint32_t *queue = pith_alloc_array(a->n_states, sizeof *queue);
    size_t n_queued = 0;
    bool good = first && from && queue;
    for (size_t i = 0; i < n_cells && good; i++) first[a->next[i]]++;
    for (uint32_t s = 0, sum = 0; s <= a->n_states && good; s++) {
        sum += first[s];
        first[s] = sum; /* the end of its stretch; filling goes downwards */
    }
    for (size_t i = 0; i < n_cells && good; i++) {
        from[--first[a->next[i]]] = (uint32_t)(i / a->n_classes);
    }
    for (uint32_t s = 1; s < a->n_states && good; s++) {
        useful[s] = a->accepts[s];
        if (useful[s]) queue[n_queued++] = s;
    }
    while (n_queued > 0) {
        uint32_t s = queue[--n_queued];
        for (uint32_t i = first[s]; i < first[s + 1]; i++) {
            if (useful[from[i]] || from[i] == 0) continue;
            useful[from[i]] = true;
            queue[n_queued++] = from[i];
        }
    }
    pith_free(first);
    pith_free(from);
    pith_free(queue);
    return good ? PITH_OK : pith_fail_memory(error, "an automaton", n_cells * sizeof *from);
}

pith_status pith_automaton_trim(pith_automaton *a, pith_error *error) {
    bool *useful = pith_alloc_zero(a->n_states, sizeof *useful);
    uint32_t *renamed = pith_alloc_zero(a->n_states, sizeof *renamed);
    pith_status status = PITH_OK;
    uint32_t n = 1;
    if (useful == NULL || renamed == NULL) {
        status = pith_fail_memory(error, "an automaton", a->n_states);
    } else {
        status = mark_useful(a, useful, error);
    }
    for (uint32_t s = 1; s < a->n_states && status == PITH_OK; s++) {
        if (useful[s]) renamed[s] = n++;
    }
    for (uint32_t s = 1; s < a->n_states && status == PITH_OK; s++) {
        if (!useful[s]) continue;
        uint32_t *to = a->next + (size_t)renamed[s] * a->n_classes;
        const uint32_t *row = a->next + (size_t)s * a->n_classes;
        for (uint32_t c = 0; c < a->n_classes; c++) to[c] = renamed[row[c]];
        a->accepts[renamed[s]] = a->accepts[s];
    }
    if (status == PITH_OK) {
        a->start = renamed[a->start];
        a->n_states = n;
    }
    pith_free(useful);
    pith_free(renamed);
    return status;
}

/* ---- products ---- */

/* States of a product: the pairs in the order in which they were met, less the dead one. */
typedef struct product {
    const pith_automaton *a, *b; /* b NULL: the second word counts code points */
    pith_automaton_rule rule;
    uint32_t min, max; /* of the count; max PITH_GRAMMAR_UNBOUNDED */
    pith_tuple_table pairs;
    size_t capacity; /* states that `out` has room for */
} product;

static bool pair_is_dead(const product *p, const uint32_t pair[2]) {
    if (p->b == NULL) return pair[0] == 0 || (pair[1] > p->max);
    if (p->rule == PITH_AUTOMATON_EITHER) return pair[0] == 0 && pair[1] == 0;
    return pair[0] == 0 || (p->rule == PITH_AUTOMATON_BOTH && pair[1] == 0);
}

static bool pair_accepts(const product *p, const uint32_t pair[2]) {
    bool first = p->a->accepts[pair[0]];
    if (p->b == NULL) return first && pair[1] >= p->min;
    bool second = p->b->accepts[pair[1]];
    if (p->rule == PITH_AUTOMATON_EITHER) return first || second;
    return first && second == (p->rule == PITH_AUTOMATON_BOTH);
}

static pith_status too_large(pith_error *error) {
    return pith_fail(error, PITH_ERROR_LIMIT,
                     "the expression needs an automaton of more than %d states or %d cells",
                     PITH_AUTOMATON_MAX_STATES, PITH_AUTOMATON_MAX_CELLS);
}

/* The state of a pair; makes room for its row. */
static pith_status state_of(product *p, const uint32_t pair[2], pith_automaton *out,
                            uint32_t *state, pith_error *error) {
    *state = 0;
    if (pair_is_dead(p, pair)) return PITH_OK;
    uint32_t number = pith_tuple_intern(&p->pairs, pair, 2, NULL);
    if (number == PITH_TUPLE_NONE) return pith_fail_memory(error, "an automaton", 0);
    *state = number + 1;
    if (*state < out->n_states) return PITH_OK;
    if (*state >= PITH_AUTOMATON_MAX_STATES ||
        (size_t)(*state + 1) * out->n_classes > PITH_AUTOMATON_MAX_CELLS) {
        return too_large(error);
    }
    if (*state >= p->capacity) {
        size_t capacity = p->capacity * 2 + 16;
        uint32_t *next = pith_realloc(out->next, capacity * out->n_classes * sizeof *next);
        if (next != NULL) out->next = next;
        bool *accepts = pith_realloc(out->accepts, capacity * sizeof *accepts);
        if (accepts != NULL) out->accepts = accepts;
        if (next == NULL || accepts == NULL) {
            return pith_fail_memory(error, "an automaton", capacity * out->n_classes);
        }
        p->capacity = capacity;
    }
    out->accepts[*state] = pair_accepts(p, pair);
    out->n_states = *state + 1;
    return PITH_OK;
}

static pith_status fill_row(product *p, uint32_t state, pith_automaton *out, pith_error *error) {
    uint32_t n, pair[2];
    memcpy(pair, pith_tuple_get(&p->pairs, state - 1, &n), sizeof pair);
    const uint32_t *first = p->a->next + (size_t)pair[0] * out->n_classes;
    const uint32_t *second = p->b ? p->b->next + (size_t)pair[1] * out->n_classes : NULL;
    uint32_t count = pair[1] + 1;
    if (p->max == PITH_GRAMMAR_UNBOUNDED && count > p->min) count = p->min;
    for (uint32_t c = 0; c < out->n_classes; c++) {
        uint32_t target[2] = {first[c], second ? second[c] : count};
        uint32_t to;
        pith_status status = state_of(p, target, out, &to, error);
        if (status != PITH_OK) return status;
        out->next[(size_t)state * out->n_classes + c] = to;
    }
    return PITH_OK;
}

static pith_status make_product(product *p, pith_automaton *out, pith_error *error) {
    uint32_t pair[2] = {p->a->start, p->b ? p->b->start : 0};
    *out = (pith_automaton){.n_states = 1, .n_classes = p->a->n_classes};
    out->next = pith_alloc_zero(out->n_classes, sizeof *out->next);
    out->accepts = pith_alloc_zero(1, sizeof *out->accepts);
    p->capacity = 1;
    pith_status status = PITH_OK;
    if (out->next == NULL || out->accepts == NULL) {
        status = pith_fail_memory(error, "an automaton", out->n_classes);
    }
    if (status == PITH_OK) status = state_of(p, pair, out, &out->start, error);
    for (uint32_t s = 1; s < out->n_states && status == PITH_OK; s++) {
        status = fill_row(p, s, out, error);
    }
    pith_tuple_table_deinit(&p->pairs);
    if (status == PITH_OK) status = pith_automaton_trim(out, error);
    if (status != PITH_OK) pith_automaton_deinit(out);
    return status;
}

pith_status pith_automaton_combine(const pith_automaton *a, const pith_automaton *b,
                                   pith_automaton_rule rule, pith_automaton *out,
                                   pith_error *error) {
    product p = {.a = a, .b = b, .rule = rule};
    return make_product(&p, out, error);
}

pith_status pith_automaton_bound(const pith_automaton *automaton, uint32_t min, uint32_t max,
                                 pith_automaton *out, pith_error *error) {
    product p = {.a = automaton, .min = min, .max = max};
    return make_product(&p, out, error);
}
