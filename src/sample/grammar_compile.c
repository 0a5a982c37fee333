/* SPDX-License-Identifier: Apache-2.0
 * Nodes to states: which part is copied to where it is used, which is called; how each kind of node
 * is written.
 *
 *   X{2,9}:  start=ENTER --> body of X --> AGAIN --> body again, or out=next
 *   X*:      start=SPLIT --> body of X --> start
 *                        --> next
 *
 * A part that several places use is called when it is large, or repeats a wide class: what a
 * matcher learns about the inside of a string then holds for all strings. Everything else is
 * copied, and a rule inside itself is always called. A call at the end of a rule is a jump, so that
 * right recursion needs no stack. Counts are counters, except a few rounds of something tiny.
 *
 * Owns: the work list of parts to write, which replaces recursion. Read next: grammar_emit.c,
 * grammar_link.c (the passes over the finished states). */
#include "sample/grammar_compile.h"

#include "base/memory.h"

enum {
    COPY_STATES = 48,   /* a part up to this size is copied */
    UNROLL_STATES = 16, /* rounds of a repetition up to this size together are copied */
    WIDE_CODES = 32,    /* characters of a class that is wide */
    RETURN = 1          /* the state */
};

typedef struct part_facts {
    uint32_t uses;  /* places that have it as a part */
    uint32_t size;  /* states of a copy */
    uint32_t start; /* of the called part; 0: not written yet */
    bool wide;      /* contains a wide class */
    bool repeats;   /* contains a repetition of one */
    bool is_called;
} part_facts;

/* The parts of a node from `from` on, still to be written. */
typedef struct task {
    uint32_t node, from, start, next;
} task;

typedef struct compiler {
    const pith_grammar_builder *b;
    const pith_grammar_facts *facts;
    part_facts *parts; /* [n_items] */
    task *tasks;
    uint32_t n_tasks, tasks_capacity;
    pith_literal *literals; /* of one choice */
    uint32_t literals_capacity;
    uint32_t *targets; /* of one choice */
    uint32_t targets_capacity;
    pith_emitter emitter;
} compiler;

/* ---- what is called ---- */

static uint32_t class_codes(const compiler *c, const pith_item *item) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < item->n && n < WIDE_CODES; i++) {
        const pith_code_range *range = &c->b->ranges[item->first + i];
        n += range->last - range->first + 1;
    }
    return n;
}

static uint32_t class_states(const compiler *c, const pith_item *item) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < item->n; i++)
        if (c->b->ranges[item->first + i].last >= 0x80) n += 3;
    return n == 0 ? 1 : n + 4;
}

static bool unrolls(const compiler *c, const pith_item *item) {
    const part_facts *part = &c->parts[pith_grammar_meant(c->b, item->first)];
    uint32_t rounds = item->max == PITH_GRAMMAR_UNBOUNDED ? item->min : item->max;
    if (part->repeats || rounds > UNROLL_STATES) return false;
    return item->max != PITH_GRAMMAR_UNBOUNDED && rounds * part->size <= UNROLL_STATES;
}

static void judge(compiler *c, uint32_t node) {
    const pith_item *item = &c->b->items[node];
    part_facts *facts = &c->parts[node];
    uint64_t size = 1;
    switch ((pith_item_kind)item->kind) {
    case PITH_ITEM_BYTES: size = item->n; break;
    case PITH_ITEM_CLASS:
        size = class_states(c, item);
        facts->wide = class_codes(c, item) >= WIDE_CODES;
        break;
    case PITH_ITEM_UNTIL:
        size = 2 * (uint64_t)item->n + 1;
        facts->repeats = true;
        break;
    case PITH_ITEM_REPEAT: size = 3; break;
    case PITH_ITEM_SEQUENCE:
    case PITH_ITEM_CHOICE:
    case PITH_ITEM_REFER:
    case PITH_ITEM_TOKEN: break;
    }
    for (uint32_t k = 0; k < pith_grammar_n_parts(c->b, node); k++) {
        const part_facts *part =
            &c->parts[pith_grammar_meant(c->b, pith_grammar_part(c->b, node, k))];
        size += part->is_called ? 1 : part->size;
        if (part->is_called) continue;
        facts->wide |= part->wide;
        facts->repeats |= part->repeats;
    }
    if (item->kind == PITH_ITEM_REPEAT && item->max > 1) {
        facts->repeats |= facts->wide;
        if (unrolls(c, item)) size = UNROLL_STATES;
    }
    facts->size = size < UINT32_MAX / 2 ? (uint32_t)size : UINT32_MAX / 2;
    facts->is_called = c->facts->called[node] ||
                       (facts->uses > 1 && (facts->size > COPY_STATES || facts->repeats));
}

static void judge_all(compiler *c) {
    const pith_grammar_facts *facts = c->facts;
    for (uint32_t i = 0; i < facts->n_order; i++)
        for (uint32_t k = 0; k < pith_grammar_n_parts(c->b, facts->order[i]); k++)
            c->parts[pith_grammar_meant(c->b, pith_grammar_part(c->b, facts->order[i], k))].uses++;
    for (uint32_t i = 0; i < facts->n_order; i++)
        c->parts[facts->order[i]].is_called = facts->called[facts->order[i]];
    for (uint32_t i = 0; i < facts->n_order; i++) judge(c, facts->order[i]);
}

/* ---- writing ---- */

static void add_task(compiler *c, task added) {
    void *grown = pith_grammar_grow(c->tasks, &c->tasks_capacity, sizeof *c->tasks, c->n_tasks + 1);
    if (grown == NULL) {
        pith_emit_fail_memory(&c->emitter);
        return;
    }
    c->tasks = grown;
    c->tasks[c->n_tasks++] = added;
}

static void jump(compiler *c, uint32_t start, uint32_t next) {
    pith_emit_split(&c->emitter, start, &next, 1);
}

/* Writes the use of a part, now or later. */
static void use(compiler *c, uint32_t node, uint32_t start, uint32_t next) {
    node = pith_grammar_meant(c->b, node);
    part_facts *part = &c->parts[node];
    if (!part->is_called) {
        add_task(c, (task){node, 0, start, next});
        return;
    }
    if (part->start == 0) {
        part->start = pith_emit_state(&c->emitter);
        add_task(c, (task){node, 0, part->start, RETURN});
    }
    if (c->emitter.status != PITH_OK) return;
    c->emitter.grammar->states[start] =
        (pith_state){.kind = PITH_STATE_CALL, .a = part->start, .b = next};
}

static void write_sequence(compiler *c, const task *t) {
    const pith_item *item = &c->b->items[t->node];
    uint32_t start = t->start;
    if (t->from == item->n) jump(c, start, t->next);
    for (uint32_t k = t->from; k < item->n; k++) {
        uint32_t next = k + 1 < item->n ? pith_emit_state(&c->emitter) : t->next;
        use(c, pith_grammar_part(c->b, t->node, k), start, next);
        start = next;
    }
}

/* The literal that an alternative begins with; its rest becomes a task. */
static bool write_literal(compiler *c, uint32_t node, uint32_t next, pith_literal *out) {
    const pith_item *item = &c->b->items[node];
    if (c->parts[node].is_called) return false;
    if (item->kind == PITH_ITEM_BYTES) {
        *out = (pith_literal){c->b->bytes + item->first, item->n, next};
        return true;
    }
    if (item->kind != PITH_ITEM_SEQUENCE || item->n == 0) return false;
    uint32_t first = pith_grammar_meant(c->b, pith_grammar_part(c->b, node, 0));
    const pith_item *text = &c->b->items[first];
    if (text->kind != PITH_ITEM_BYTES || c->parts[first].is_called) return false;
    *out = (pith_literal){c->b->bytes + text->first, text->n, pith_emit_state(&c->emitter)};
    add_task(c, (task){node, 1, out->then, next});
    return true;
}

static bool choice_room(compiler *c, uint32_t n) {
    void *literals = pith_grammar_grow(c->literals, &c->literals_capacity, sizeof *c->literals, n);
    if (literals == NULL) return pith_emit_fail_memory(&c->emitter);
    c->literals = literals;
    void *targets = pith_grammar_grow(c->targets, &c->targets_capacity, sizeof *c->targets, n + 1);
    if (targets == NULL) return pith_emit_fail_memory(&c->emitter);
    c->targets = targets;
    return true;
}

static void write_choice(compiler *c, const task *t) {
    const uint32_t n_parts = pith_grammar_n_parts(c->b, t->node);
    uint32_t n_literals = 0, n = 0;
    if (!choice_room(c, n_parts)) return;
    for (uint32_t k = 0; k < n_parts; k++) {
        uint32_t part = pith_grammar_meant(c->b, pith_grammar_part(c->b, t->node, k));
        if (!c->facts->ends[part]) continue;
        if (write_literal(c, part, t->next, &c->literals[n_literals])) {
            n_literals++;
            continue;
        }
        c->targets[n] = pith_emit_state(&c->emitter);
        use(c, part, c->targets[n++], t->next);
    }
    if (n_literals > 0) {
        uint32_t start = n == 0 ? t->start : pith_emit_state(&c->emitter);
        if (n > 0) c->targets[n++] = start;
        pith_emit_literals(&c->emitter, start, c->literals, n_literals);
    }
    if (n > 0) pith_emit_split(&c->emitter, t->start, c->targets, n);
}

static void write_rounds(compiler *c, const task *t, const pith_item *item) {
    uint32_t start = t->start;
    for (uint32_t k = 0; k < item->max; k++) {
        uint32_t next = k + 1 < item->max ? pith_emit_state(&c->emitter) : t->next;
        if (k >= item->min) {
            uint32_t round = pith_emit_state(&c->emitter);
            pith_emit_split(&c->emitter, start, (const uint32_t[2]){round, t->next}, 2);
            start = round;
        }
        use(c, item->first, start, next);
        start = next;
    }
}

static void write_counted(compiler *c, const task *t, const pith_item *item, uint32_t min) {
    uint32_t enter = min > 0 ? t->start : pith_emit_state(&c->emitter);
    uint32_t body = pith_emit_state(&c->emitter), again = pith_emit_state(&c->emitter);
    uint32_t loop = pith_emit_loop(&c->emitter, (pith_grammar_loop){min, item->max, body, t->next});
    if (c->emitter.status != PITH_OK) return;
    c->emitter.grammar->states[enter] = (pith_state){.kind = PITH_STATE_ENTER, .a = loop};
    c->emitter.grammar->states[again] = (pith_state){.kind = PITH_STATE_AGAIN, .a = loop};
    if (min == 0) pith_emit_split(&c->emitter, t->start, (const uint32_t[2]){enter, t->next}, 2);
    use(c, item->first, body, again);
}

static void write_repeat(compiler *c, const task *t) {
    const pith_item *item = &c->b->items[t->node];
    const uint32_t node = pith_grammar_meant(c->b, item->first);
    uint32_t min = c->facts->nullable[node] ? 0 : item->min;
    if (!c->facts->ends[node]) {
        jump(c, t->start, t->next);
    } else if (item->max == PITH_GRAMMAR_UNBOUNDED && min == 0) {
        uint32_t body = pith_emit_state(&c->emitter);
        pith_emit_split(&c->emitter, t->start, (const uint32_t[2]){body, t->next}, 2);
        use(c, node, body, t->start);
    } else if (item->max == PITH_GRAMMAR_UNBOUNDED && min == 1) {
        uint32_t body = pith_emit_state(&c->emitter), more = pith_emit_state(&c->emitter);
        jump(c, t->start, body);
        pith_emit_split(&c->emitter, more, (const uint32_t[2]){body, t->next}, 2);
        use(c, node, body, more);
    } else if (item->max == 1 || (unrolls(c, item) && !c->facts->nullable[node])) {
        write_rounds(c, t, item);
    } else {
        write_counted(c, t, item, min);
    }
}

static void write_until(compiler *c, const task *t) {
    const pith_item *item = &c->b->items[t->node];
    if (item->n > 0) {
        pith_emit_until(&c->emitter, t->start, t->next, c->b->bytes + item->first, item->n);
        return;
    }
    uint32_t any = pith_emit_state(&c->emitter);
    pith_emit_edges(&c->emitter, any, &(pith_edge){0, 255, t->start}, 1);
    pith_emit_split(&c->emitter, t->start, (const uint32_t[2]){any, t->next}, 2);
}

static void write_task(compiler *c, const task *t) {
    const pith_item *item = &c->b->items[t->node];
    switch ((pith_item_kind)item->kind) {
    case PITH_ITEM_BYTES:
        pith_emit_bytes(&c->emitter, t->start, t->next, c->b->bytes + item->first, item->n);
        break;
    case PITH_ITEM_CLASS:
        pith_emit_class(&c->emitter, t->start, t->next, c->b->ranges + item->first, item->n);
        break;
    case PITH_ITEM_SEQUENCE: write_sequence(c, t); break;
    case PITH_ITEM_CHOICE: write_choice(c, t); break;
    case PITH_ITEM_REPEAT: write_repeat(c, t); break;
    case PITH_ITEM_UNTIL: write_until(c, t); break;
    case PITH_ITEM_REFER: use(c, t->node, t->start, t->next); break;
    case PITH_ITEM_TOKEN:
        c->emitter.grammar->states[t->start] = (pith_state){
            .kind = PITH_STATE_TOKEN, .negated = item->n != 0, .a = item->first, .b = t->next};
        c->emitter.grammar->has_tokens = true;
        break;
    }
}

static void write_all(compiler *c, uint32_t root) {
    pith_grammar *g = c->emitter.grammar;
    (void)pith_emit_state(&c->emitter); /* DONE */
    (void)pith_emit_state(&c->emitter); /* RETURN */
    g->start = pith_emit_state(&c->emitter);
    if (c->emitter.status != PITH_OK) return;
    g->states[0].kind = PITH_STATE_DONE;
    g->states[RETURN].kind = PITH_STATE_RETURN;
    use(c, root, g->start, 0);
    while (c->n_tasks > 0 && c->emitter.status == PITH_OK) {
        task next = c->tasks[--c->n_tasks];
        write_task(c, &next);
    }
    if (c->emitter.status == PITH_OK) pith_grammar_link(&c->emitter);
}

pith_status pith_grammar_compile(const pith_grammar_builder *builder,
                                 const pith_grammar_facts *facts, pith_grammar_node root,
                                 pith_grammar **out, pith_error *error) {
    *out = NULL;
    compiler c = {.b = builder, .facts = facts, .emitter = {.error = error}};
    c.emitter.grammar = pith_alloc_zero(1, sizeof *c.emitter.grammar);
    c.parts = pith_alloc_zero(builder->n_items, sizeof *c.parts);
    if (c.emitter.grammar == NULL || c.parts == NULL) {
        pith_free(c.emitter.grammar);
        pith_free(c.parts);
        return pith_fail_memory(error, "a grammar", builder->n_items * sizeof *c.parts);
    }
    atomic_init(&c.emitter.grammar->n_owners, 1);
    judge_all(&c);
    write_all(&c, root);
    pith_free(c.parts);
    pith_free(c.tasks);
    pith_free(c.literals);
    pith_free(c.targets);
    if (c.emitter.status == PITH_OK)
        *out = c.emitter.grammar;
    else
        pith_grammar_drop(c.emitter.grammar);
    return c.emitter.status;
}
