/* SPDX-License-Identifier: Apache-2.0
 *
 * Automaton -> grammar nodes of the strings that it accepts.
 *
 * A state becomes the choice of what may follow: a code point of a set and then another state, or
 * the end. States that several others lead to are rules; one that a single other state leads to
 * stands inside of it. Automata number their states in the order in which they are met, so such a
 * state has a larger number than the one it stands in, and going from the last state to the first
 * makes parts before wholes. A state that accepts and only leads to itself is a repetition.
 *
 * `plain` writes the code points as they are, for text that is no JSON.
 */
#include "sample/json_text.h"

#include "base/memory.h"

/* The states that one state leads to, each with its code points. */
typedef struct step {
    uint32_t target;
    pith_code_set set;
} step;

typedef struct automaton_writer {
    pith_json_text *text;
    const pith_automaton *automaton;
    const pith_alphabet *alphabet;
    bool plain;
    uint32_t *n_before;       /* [n_states] states that lead to it */
    uint32_t *met, *place;    /* [n_states] state being written that met it last; its step */
    bool *is_rule;            /* [n_states] */
    pith_grammar_rule *rules; /* [n_states] */
    pith_grammar_node *nodes; /* [n_states] */
    step *steps;              /* [n_states] */
    size_t n_steps;
    pith_grammar_node *choices; /* [n_states + 1] */
} automaton_writer;

static uint32_t target_of(const automaton_writer *w, uint32_t state, size_t range) {
    uint32_t class = w->alphabet->class_of[range];
    return w->automaton->next[(size_t)state * w->automaton->n_classes + class];
}

static void count_before(automaton_writer *w) {
    const pith_automaton *a = w->automaton;
    w->n_before[a->start]++; /* the beginning leads to it */
    for (uint32_t s = 1; s < a->n_states; s++) {
        for (uint32_t c = 0; c < a->n_classes; c++) {
            uint32_t target = a->next[(size_t)s * a->n_classes + c];
            if (target == 0 || w->met[target] == s) continue;
            w->met[target] = s;
            w->n_before[target] += target == s ? 2 : 1;
        }
    }
    for (uint32_t s = 0; s < a->n_states; s++) w->met[s] = 0;
}

static void collect_steps(automaton_writer *w, uint32_t state) {
    w->n_steps = 0;
    for (size_t i = 0; i < w->alphabet->n_ranges; i++) {
        uint32_t target = target_of(w, state, i);
        if (target == 0) continue;
        if (w->met[target] != state) {
            w->met[target] = state;
            w->place[target] = (uint32_t)w->n_steps;
            w->steps[w->n_steps++] = (step){.target = target};
        }
        pith_code_set_add(&w->steps[w->place[target]].set, w->alphabet->ranges[i].first,
                          w->alphabet->ranges[i].last);
    }
}

static pith_grammar_node node_of(const automaton_writer *w, uint32_t state) {
    if (w->nodes[state] != 0) return w->nodes[state];
    return w->is_rule[state] ? pith_grammar_refer(w->text->builder, w->rules[state]) : 0;
}

static pith_grammar_node write_set(automaton_writer *w, const pith_code_set *set) {
    if (set->failed) return 0;
    if (w->plain) return pith_grammar_class(w->text->builder, set->ranges, set->n, false);
    return pith_json_write_set(w->text, set);
}

static bool write_state(automaton_writer *w, uint32_t state) {
    pith_grammar_builder *builder = w->text->builder;
    bool accepts = w->automaton->accepts[state], failed = false;
    size_t n = 0;
    collect_steps(w, state);
    bool is_star = accepts && w->n_steps == 1 && w->steps[0].target == state;
    for (size_t i = 0; i < w->n_steps; i++) {
        pith_code_set *set = &w->steps[i].set;
        pith_code_set_settle(set);
        pith_grammar_node head = write_set(w, set);
        failed = failed || set->failed;
        if (is_star) {
            w->choices[n++] = pith_grammar_repeat(builder, head, 0, PITH_GRAMMAR_UNBOUNDED);
        } else {
            w->choices[n++] = pith_json_write_two(w->text, head, node_of(w, w->steps[i].target));
        }
        pith_code_set_deinit(set);
    }
    if (accepts && !is_star) w->choices[n++] = pith_grammar_sequence(builder, NULL, 0);
    pith_grammar_node node = n == 1 ? w->choices[0] : pith_grammar_choice(builder, w->choices, n);
    if (w->is_rule[state]) {
        pith_grammar_define(builder, w->rules[state], node);
    } else {
        w->nodes[state] = node;
    }
    return !failed;
}

/* Leads only to itself, whatever comes, and accepts. */
static bool is_star(const pith_automaton *a, uint32_t state) {
    for (uint32_t c = 0; c < a->n_classes; c++) {
        uint32_t target = a->next[(size_t)state * a->n_classes + c];
        if (target != 0 && target != state) return false;
    }
    return a->accepts[state];
}

static bool write_all(automaton_writer *w) {
    const pith_automaton *a = w->automaton;
    count_before(w);
    for (uint32_t s = 1; s < a->n_states; s++) {
        w->is_rule[s] = w->n_before[s] > 1 && !is_star(a, s);
        if (w->is_rule[s]) {
            w->rules[s] = pith_grammar_declare(w->text->builder, "string state");
        }
    }
    /* stars first: they may have a smaller number than a state that leads to them */
    for (uint32_t s = a->n_states; s-- > 1;) {
        if (is_star(a, s) && !write_state(w, s)) return false;
    }
    for (uint32_t s = a->n_states; s-- > 1;) {
        if (!is_star(a, s) && !write_state(w, s)) return false;
    }
    return true;
}

pith_status pith_json_write_automaton(pith_json_text *text, const pith_automaton *automaton,
                                      const pith_alphabet *alphabet, bool plain,
                                      pith_grammar_node *out, pith_error *error) {
    size_t n = automaton->n_states;
    automaton_writer w = {
        .text = text,
        .automaton = automaton,
        .alphabet = alphabet,
        .plain = plain,
        .n_before = pith_alloc_zero(n, sizeof *w.n_before),
        .met = pith_alloc_zero(n, sizeof *w.met),
        .place = pith_alloc_zero(n, sizeof *w.place),
        .is_rule = pith_alloc_zero(n, sizeof *w.is_rule),
        .rules = pith_alloc_zero(n, sizeof *w.rules),
        .nodes = pith_alloc_zero(n, sizeof *w.nodes),
        .steps = pith_alloc_zero(n, sizeof *w.steps),
        .choices = pith_alloc_zero(n + 1, sizeof *w.choices),
    };
    bool good =
        w.n_before && w.met && w.place && w.is_rule && w.rules && w.nodes && w.steps && w.choices;
    *out = 0;
    if (good && automaton->start == 0) {
        *out = pith_grammar_choice(text->builder, NULL, 0);
    } else if (good) {
        good = write_all(&w);
        pith_grammar_node content = node_of(&w, automaton->start);
        if (good) *out = plain ? content : pith_json_quote(text, content);
    }
    pith_free(w.n_before);
    pith_free(w.met);
    pith_free(w.place);
    pith_free(w.is_rule);
    pith_free(w.rules);
    pith_free(w.nodes);
    pith_free(w.steps);
    pith_free(w.choices);
    return good && !text->failed ? PITH_OK : pith_fail_memory(error, "a string of a grammar", n);
}
