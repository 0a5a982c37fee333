/* SPDX-License-Identifier: Apache-2.0
 *
 * Tree of a regular expression -> grammar nodes.
 *
 * A regular expression given for a whole reply matches the whole of it, as if it stood between ^
 * and $; those two may be written, at the ends only. (Searching, as JSON schema's `pattern` does,
 * is the business of automaton.h.)
 *
 * Two loops over the tree: from the root down, which nodes touch the beginning and the end of the
 * text; from the leaves up, the grammar nodes. Counts stay counters of the grammar.
 * Read next: regex_parse.c, regex.h.
 */
#include "sample/regex.h"

#include "base/memory.h"

enum { AT_START = 1, AT_END = 2 };

/* What is known of each node. */
typedef struct emission {
    const pith_regex *regex;
    uint8_t *edges;              /* [n] AT_START | AT_END: nothing can stand before, behind */
    bool *is_narrow;             /* [n] matches the empty text only */
    pith_grammar_node *made;     /* [n] */
    pith_grammar_node *children; /* [n] room for the children of one node */
} emission;

static bool narrow(const pith_regex *regex, const bool *is_narrow, uint32_t i) {
    const pith_regex_node *node = &regex->nodes[i];
    if (node->kind == PITH_REGEX_SET) return false;
    for (uint32_t c = node->child; c != PITH_REGEX_NONE; c = regex->nodes[c].next) {
        if (!is_narrow[c]) return false;
    }
    return true;
}

/* Hands the edges of a sequence to its children. */
static void spread_sequence(emission *work, uint32_t i) {
    const pith_regex *regex = work->regex;
    uint32_t first = PITH_REGEX_NONE, last = PITH_REGEX_NONE; /* of the children with width */
    for (uint32_t c = regex->nodes[i].child; c != PITH_REGEX_NONE; c = regex->nodes[c].next) {
        if (work->is_narrow[c]) continue;
        if (first == PITH_REGEX_NONE) first = c;
        last = c;
    }
    bool before = true, behind = first == PITH_REGEX_NONE;
    for (uint32_t c = regex->nodes[i].child; c != PITH_REGEX_NONE; c = regex->nodes[c].next) {
        if (c == last) behind = true;
        uint8_t mine = (uint8_t)((before ? AT_START : 0) | (behind ? AT_END : 0));
        work->edges[c] = work->edges[i] & mine;
        if (c == first) before = false;
    }
}

static void spread_edges(emission *work) {
    const pith_regex *regex = work->regex;
    for (uint32_t i = 0; i < regex->n; i++) work->is_narrow[i] = narrow(regex, work->is_narrow, i);
    work->edges[regex->n - 1] = AT_START | AT_END;
    for (uint32_t i = regex->n; i-- > 0;) {
        const pith_regex_node *node = &regex->nodes[i];
        if (node->kind == PITH_REGEX_SEQUENCE) {
            spread_sequence(work, i);
            continue;
        }
        uint8_t edges = work->edges[i];
        if (node->kind == PITH_REGEX_REPEAT && node->max > 1) edges = 0;
        for (uint32_t c = node->child; c != PITH_REGEX_NONE; c = regex->nodes[c].next) {
            work->edges[c] = edges;
        }
    }
}

static pith_status check_anchors(const emission *work, pith_error *error) {
    for (uint32_t i = 0; i < work->regex->n; i++) {
        const pith_regex_node *node = &work->regex->nodes[i];
        bool start = node->kind == PITH_REGEX_START && !(work->edges[i] & AT_START);
        bool end = node->kind == PITH_REGEX_END && !(work->edges[i] & AT_END);
        if (!start && !end) continue;
        return pith_fail(error, PITH_ERROR_UNSUPPORTED, "regular expression, offset %u: %s",
                         (unsigned)node->offset,
                         start ? "^ stands where the text cannot begin"
                               : "$ stands where the text cannot end");
    }
    return PITH_OK;
}

static pith_grammar_node emit_node(const emission *work, pith_grammar_builder *builder,
                                   const pith_regex_writer *writer, uint32_t i) {
    const pith_regex_node *node = &work->regex->nodes[i];
    size_t n = 0;
    for (uint32_t c = node->child; c != PITH_REGEX_NONE; c = work->regex->nodes[c].next) {
        bool anchor = work->regex->nodes[c].kind >= PITH_REGEX_START;
        if (!anchor || node->kind != PITH_REGEX_SEQUENCE) work->children[n++] = work->made[c];
    }
    switch (node->kind) {
    case PITH_REGEX_SET: return writer->set(writer->user, &work->regex->sets[node->set]);
    case PITH_REGEX_CHOICE: return pith_grammar_choice(builder, work->children, n);
    case PITH_REGEX_REPEAT:
        return pith_grammar_repeat(builder, work->children[0], node->min, node->max);
    default: return pith_grammar_sequence(builder, work->children, n);
    }
}

static pith_status emission_init(emission *work, const pith_regex *regex, pith_error *error) {
    *work = (emission){
        .regex = regex,
        .edges = pith_alloc_zero(regex->n, sizeof *work->edges),
        .is_narrow = pith_alloc_zero(regex->n, sizeof *work->is_narrow),
        .made = pith_alloc_zero(regex->n, sizeof *work->made),
        .children = pith_alloc_zero(regex->n, sizeof *work->children),
    };
    if (work->edges && work->is_narrow && work->made && work->children) return PITH_OK;
    return pith_fail_memory(error, "a regular expression", (uint64_t)regex->n * 10);
}

static void emission_deinit(emission *work) {
    pith_free(work->edges);
    pith_free(work->is_narrow);
    pith_free(work->made);
    pith_free(work->children);
}

pith_status pith_regex_emit(const pith_regex *regex, pith_grammar_builder *builder,
                            const pith_regex_writer *writer, pith_grammar_node *out,
                            pith_error *error) {
    emission work;
    *out = 0;
    pith_status status = emission_init(&work, regex, error);
    if (status == PITH_OK) {
        spread_edges(&work);
        status = check_anchors(&work, error);
    }
    for (uint32_t i = 0; i < regex->n && status == PITH_OK; i++) {
        work.made[i] = emit_node(&work, builder, writer, i);
    }
    if (status == PITH_OK) *out = work.made[regex->n - 1];
    emission_deinit(&work);
    return status;
}

/* ^...$, or a choice of such. */
static bool holds(const pith_regex *regex, const bool *held, uint32_t i) {
    const pith_regex_node *node = &regex->nodes[i];
    uint32_t last = node->child;
    if (node->child == PITH_REGEX_NONE) return false;
    if (node->kind == PITH_REGEX_SEQUENCE) {
        while (regex->nodes[last].next != PITH_REGEX_NONE) last = regex->nodes[last].next;
        return regex->nodes[node->child].kind == PITH_REGEX_START &&
               regex->nodes[last].kind == PITH_REGEX_END;
    }
    if (node->kind != PITH_REGEX_CHOICE) return false;
    for (uint32_t c = node->child; c != PITH_REGEX_NONE; c = regex->nodes[c].next) {
        if (!held[c]) return false;
    }
    return true;
}

bool pith_regex_is_anchored(const pith_regex *regex) {
    bool *held = pith_alloc_zero(regex->n, sizeof *held);
    if (held == NULL) return false; /* the longer way is right too */
    for (uint32_t i = 0; i < regex->n; i++) held[i] = holds(regex, held, i);
    bool anchored = held[regex->n - 1];
    pith_free(held);
    return anchored;
}

/* ---- for a whole reply ---- */

static pith_grammar_node write_code(void *user, const pith_code_set *set) {
    return pith_grammar_class(user, set->ranges, set->n, false);
}

pith_grammar_node pith_grammar_add_regex(pith_grammar_builder *builder, const char *text,
                                         size_t size, pith_error *error) {
    pith_regex regex;
    pith_regex_writer writer = {write_code, builder};
    pith_grammar_node node = 0;
    if (pith_regex_parse((pith_span){text, size}, &regex, error) != PITH_OK) return 0;
    (void)pith_regex_emit(&regex, builder, &writer, &node, error);
    pith_regex_deinit(&regex);
    return node;
}

pith_status pith_grammar_from_regex(const char *text, size_t size, pith_grammar **out,
                                    pith_error *error) {
    return pith_grammar_from_part(pith_grammar_add_regex, text, size, out, error);
}
