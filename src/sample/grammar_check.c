/* SPDX-License-Identifier: Apache-2.0
 * What is wrong with a grammar, and what compiling must know of its nodes.
 *
 * Refused by a rule's name: a rule that is used and not defined; left recursion (a rule that can
 * come back to itself before a byte is read, also behind parts that may be empty); a rule that can
 * never end (each of its texts would contain another text of it). A part that nothing matches is
 * no fault as such: what cannot be completed is left out, and only a root without any text is
 * refused. Rules that the root does not reach are checked too and cost nothing.
 *
 * Every question is one pass over nodes and their parts, with explicit stacks. Read next:
 * grammar_compile.c. */
#include "sample/grammar_builder.h"

#include "base/memory.h"

#include <string.h>

/* For each node the nodes that it is a part of. */
typedef struct wholes {
    uint32_t *first; /* [n_items + 1] in list */
    uint32_t *list;
} wholes;

/* Room for one question. */
typedef struct check {
    const pith_grammar_builder *b;
    wholes wholes;
    uint32_t *need;  /* [n_items] parts that must still hold */
    uint32_t *stack; /* [n_items] */
    uint32_t *at;    /* [n_items] part that the node on the stack comes to next */
    uint8_t *colour; /* [n_items] 0 new, 1 on the stack, 2 done */
    uint8_t *could;  /* [n_items] ends, or would if "nothing" could */
} check;

uint32_t pith_grammar_n_parts(const pith_grammar_builder *builder, uint32_t node) {
    const pith_item *item = &builder->items[node];
    switch ((pith_item_kind)item->kind) {
    case PITH_ITEM_SEQUENCE:
    case PITH_ITEM_CHOICE: return item->n;
    case PITH_ITEM_REPEAT:
    case PITH_ITEM_REFER: return 1;
    case PITH_ITEM_BYTES:
    case PITH_ITEM_CLASS:
    case PITH_ITEM_UNTIL:
    case PITH_ITEM_TOKEN: break;
    }
    return 0;
}

uint32_t pith_grammar_part(const pith_grammar_builder *builder, uint32_t node, uint32_t index) {
    const pith_item *item = &builder->items[node];
    if (item->kind == PITH_ITEM_REPEAT) return item->first;
    if (item->kind == PITH_ITEM_REFER) return builder->rules[item->first].node;
    return builder->parts[item->first + index];
}

static pith_status refuse(const pith_rule *rule, const char *what, pith_error *error) {
    if (rule->line == 0)
        return pith_fail(error, PITH_ERROR_FORMAT, "grammar: rule \"%s\" %s", rule->name, what);
    return pith_fail(error, PITH_ERROR_FORMAT, "grammar: line %u, column %u: rule \"%s\" %s",
                     rule->line, rule->column, rule->name, what);
}

static pith_status check_defined(const pith_grammar_builder *b, pith_error *error) {
    for (uint32_t i = 1; i < b->n_items; i++) {
        if (b->items[i].kind != PITH_ITEM_REFER) continue;
        const pith_rule *rule = &b->rules[b->items[i].first];
        if (rule->node == 0) return refuse(rule, "is used, but not defined", error);
    }
    return PITH_OK;
}

static bool find_wholes(const pith_grammar_builder *b, wholes *out) {
    out->first = pith_alloc_zero((size_t)b->n_items + 2, sizeof *out->first);
    if (out->first == NULL) return false;
    uint32_t *count = out->first + 2; /* shifted, so that filling in moves it into place */
    size_t n = 0;
    for (uint32_t i = 1; i < b->n_items; i++) {
        uint32_t n_parts = pith_grammar_n_parts(b, i);
        for (uint32_t k = 0; k < n_parts; k++) {
            count[pith_grammar_part(b, i, k)]++;
        }
        n += n_parts;
    }
    for (uint32_t i = 1; i < b->n_items; i++) out->first[i + 1] += out->first[i];
    out->list = pith_alloc_array(n, sizeof *out->list);
    if (out->list == NULL) return false;
    for (uint32_t i = 1; i < b->n_items; i++)
        for (uint32_t k = 0; k < pith_grammar_n_parts(b, i); k++)
            out->list[out->first[pith_grammar_part(b, i, k) + 1]++] = i;
    return true;
}

/* truth: set where a node holds by itself; need: how many parts make a node hold. Afterwards it
 * is set for all that hold. */
static void solve(check *c, uint8_t *truth) {
    uint32_t n_stack = 0;
    for (uint32_t i = 1; i < c->b->n_items; i++)
        if (truth[i]) c->stack[n_stack++] = i;
    while (n_stack > 0) {
        uint32_t part = c->stack[--n_stack];
        for (uint32_t k = c->wholes.first[part]; k < c->wholes.first[part + 1]; k++) {
            uint32_t whole = c->wholes.list[k];
            if (truth[whole] || --c->need[whole] > 0) continue;
            truth[whole] = 1;
            c->stack[n_stack++] = whole;
        }
    }
}

typedef enum question { ENDS, COULD_END, NULLABLE } question;

static void ask(check *c, question asked, uint8_t *truth) {
    const pith_grammar_builder *b = c->b;
    for (uint32_t i = 1; i < b->n_items; i++) {
        const pith_item *item = &b->items[i];
        bool holds = asked != NULLABLE, nothing = false;
        c->need[i] = 1;
        switch ((pith_item_kind)item->kind) {
        case PITH_ITEM_BYTES:
        case PITH_ITEM_TOKEN: break;
        case PITH_ITEM_UNTIL: holds = true; break;
        case PITH_ITEM_CLASS: nothing = item->n == 0; break;
        case PITH_ITEM_CHOICE:
            holds = false;
            nothing = item->n == 0;
            break;
        case PITH_ITEM_SEQUENCE:
            holds = item->n == 0;
            c->need[i] = item->n;
            break;
        case PITH_ITEM_REPEAT: holds = item->min == 0; break;
        case PITH_ITEM_REFER: holds = false; break;
        }
        if (nothing) holds = asked == COULD_END;
        truth[i] = holds;
    }
    solve(c, truth);
}

/* ---- left recursion ---- */

/* Parts of the node that may come first: [0, n). */
static uint32_t n_first_parts(const pith_grammar_builder *b, const uint8_t *nullable,
                              uint32_t node) {
    uint32_t n = pith_grammar_n_parts(b, node);
    if (b->items[node].kind != PITH_ITEM_SEQUENCE) return n;
    for (uint32_t k = 0; k < n; k++)
        if (!nullable[pith_grammar_part(b, node, k)]) return k + 1;
    return n;
}

/* The cycle is the stack from `node` on. */
static pith_status refuse_cycle(const check *c, uint32_t n_stack, uint32_t node,
                                pith_error *error) {
    uint32_t k = n_stack;
    while (k > 0 && c->stack[k - 1] != node) k--;
    for (k = k > 0 ? k - 1 : 0; k < n_stack; k++) {
        const pith_item *item = &c->b->items[c->stack[k]];
        if (item->kind == PITH_ITEM_REFER)
            return refuse(&c->b->rules[item->first],
                          "is left recursive: it can begin with itself; write it as a repetition",
                          error);
    }
    return pith_fail(error, PITH_ERROR_INTERNAL, "grammar: a node is a part of itself");
}

static pith_status check_left(check *c, const uint8_t *nullable, pith_error *error) {
    const pith_grammar_builder *b = c->b;
    memset(c->colour, 0, b->n_items);
    for (uint32_t start = 1; start < b->n_items; start++) {
        uint32_t n_stack = 0;
        if (c->colour[start] != 0) continue;
        c->colour[start] = 1;
        c->at[start] = 0;
        c->stack[n_stack++] = start;
        while (n_stack > 0) {
            uint32_t node = c->stack[n_stack - 1];
            if (c->at[node] >= n_first_parts(b, nullable, node)) {
                c->colour[node] = 2;
                n_stack--;
                continue;
            }
            uint32_t part = pith_grammar_part(b, node, c->at[node]++);
            if (c->colour[part] == 1) return refuse_cycle(c, n_stack, part, error);
            if (c->colour[part] == 2) continue;
            c->colour[part] = 1;
            c->at[part] = 0;
            c->stack[n_stack++] = part;
        }
    }
    return PITH_OK;
}

static pith_status check_ends(const check *c, const uint8_t *ends, uint32_t root,
                              pith_error *error) {
    const pith_grammar_builder *b = c->b;
    for (uint32_t i = 0; i < b->n_rules; i++) {
        uint32_t node = b->rules[i].node;
        if (node != 0 && !c->could[node])
            return refuse(&b->rules[i], "can never end: each of its texts contains another", error);
    }
    if (ends[root]) return PITH_OK;
    return pith_fail(error, PITH_ERROR_FORMAT, "grammar: no text at all is allowed by it");
}

/* ---- what the root reaches ---- */

uint32_t pith_grammar_meant(const pith_grammar_builder *builder, uint32_t node) {
    while (builder->items[node].kind == PITH_ITEM_REFER)
        node = builder->rules[builder->items[node].first].node;
    return node;
}

/* Every cycle passes a node that is on the stack when it comes up again: those are called, all
 * others may be copied to where they are used. */
static void find_order(check *c, uint32_t root, pith_grammar_facts *facts) {
    const pith_grammar_builder *b = c->b;
    memset(c->colour, 0, b->n_items);
    uint32_t n_stack = 0;
    root = pith_grammar_meant(b, root);
    c->colour[root] = 1;
    c->at[root] = 0;
    c->stack[n_stack++] = root;
    while (n_stack > 0) {
        uint32_t node = c->stack[n_stack - 1];
        if (c->at[node] == pith_grammar_n_parts(b, node)) {
            c->colour[node] = 2;
            facts->order[facts->n_order++] = node;
            n_stack--;
            continue;
        }
        uint32_t part = pith_grammar_meant(b, pith_grammar_part(b, node, c->at[node]++));
        if (!facts->ends[part]) continue;
        if (c->colour[part] == 1) facts->called[part] = 1;
        if (c->colour[part] != 0) continue;
        c->colour[part] = 1;
        c->at[part] = 0;
        c->stack[n_stack++] = part;
    }
}

static bool allocate(check *c, pith_grammar_facts *facts) {
    const size_t n = c->b->n_items;
    facts->ends = pith_alloc_zero(n, 1);
    facts->nullable = pith_alloc_zero(n, 1);
    facts->called = pith_alloc_zero(n, 1);
    facts->order = pith_alloc_array(n, sizeof *facts->order);
    c->need = pith_alloc_array(n, sizeof *c->need);
    c->stack = pith_alloc_array(n, sizeof *c->stack);
    c->at = pith_alloc_array(n, sizeof *c->at);
    c->colour = pith_alloc_zero(n, 1);
    c->could = pith_alloc_zero(n, 1);
    return facts->ends && facts->nullable && facts->called && facts->order && c->need && c->stack &&
           c->at && c->colour && c->could && find_wholes(c->b, &c->wholes);
}

pith_status pith_grammar_check(const pith_grammar_builder *builder, pith_grammar_node root,
                               pith_grammar_facts *facts, pith_error *error) {
    check c = {.b = builder};
    pith_status status = check_defined(builder, error);
    if (status != PITH_OK) return status;
    if (!allocate(&c, facts)) {
        status = pith_fail_memory(error, "checking a grammar", (uint64_t)builder->n_items * 40);
    } else {
        ask(&c, NULLABLE, facts->nullable);
        ask(&c, ENDS, facts->ends);
        ask(&c, COULD_END, c.could);
        status = check_left(&c, facts->nullable, error);
        if (status == PITH_OK) status = check_ends(&c, facts->ends, root, error);
        if (status == PITH_OK) find_order(&c, root, facts);
    }
    pith_free(c.wholes.first);
    pith_free(c.wholes.list);
    pith_free(c.need);
    pith_free(c.stack);
    pith_free(c.at);
    pith_free(c.colour);
    pith_free(c.could);
    return status;
}

void pith_grammar_facts_deinit(pith_grammar_facts *facts) {
    pith_free(facts->ends);
    pith_free(facts->nullable);
    pith_free(facts->called);
    pith_free(facts->order);
    *facts = (pith_grammar_facts){0};
}
