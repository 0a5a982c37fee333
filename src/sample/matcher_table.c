/* SPDX-License-Identifier: Apache-2.0
 * What one state says about the whole vocabulary, whatever the text before it was.
 *
 * A mask differs from the next in little: within a string nearly every token is allowed, however the
 * string came about and whatever follows it. So the vocabulary's tree is walked once for a thread's
 * state, with a stack that ends in the unknown below the top frame. That sorts the ids:
 *
 *   certain   the text stays within the part that the top frame belongs to. With a counter on top:
 *             certain once `need` more rounds may begin, which sorts them by need
 *   exits     the part may end before a byte of the tree: what follows depends on the stack. The
 *             node of that byte is noted, and walked for each mask with the real stack
 *   neither   never allowed
 *
 * A mask is then the certain ids, less those of too large a need, and short walks from the exits,
 * most of which lead nowhere at their first byte. Counters cost nothing more: their counts are
 * relative in a table.
 *
 * Tables are dropped when they take too much memory. Read next: matcher_mask.c. */
#include "sample/matcher_internal.h"

#include "base/memory.h"

#include <string.h>

enum { LEAST_BYTES = 10, /* of a state that is worth a table */ FIRST_SLOTS = 64 };

typedef struct exit_node {
    uint32_t node, need;
} exit_node;

struct pith_table {
    uint32_t state;
    bool is_walked; /* no table could be made */
    uint32_t n_ids, n_needs, n_exits;
    uint32_t *bits;           /* [n_words] of the certain ids; NULL: few */
    int32_t *ids;             /* [n_ids] certain, by need; NULL: bits alone */
    uint32_t *needs;          /* [n_needs + 1] first id of a need; NULL with no counter */
    exit_node *exits;         /* [n_exits] by byte */
    uint32_t exit_first[257]; /* of a byte */
    size_t bytes;             /* of all */
};

/* What a walk finds, in the order of the walk. */
typedef struct findings {
    pith_matcher *m;
    uint32_t loop;      /* the counter on top; PITH_NONE: none */
    bool exits_at[256]; /* bytes that may follow the part */
    exit_node *certain; /* nodes with ids */
    uint32_t n_certain, certain_capacity, n_ids, most_need;
    exit_node *exits;
    uint32_t n_exits, exits_capacity;
    bool failed;
} findings;

/* ---- finding ---- */

static void add_finding(findings *f, bool is_exit, exit_node added) {
    exit_node **list = is_exit ? &f->exits : &f->certain;
    uint32_t *n = is_exit ? &f->n_exits : &f->n_certain;
    uint32_t *capacity = is_exit ? &f->exits_capacity : &f->certain_capacity;
    if (*n == *capacity) {
        uint32_t wanted = *capacity == 0 ? 1024 : *capacity * 2;
        exit_node *grown = pith_realloc(*list, wanted * sizeof *grown);
        if (grown == NULL) {
            f->failed = true;
            return;
        }
        *list = grown;
        *capacity = wanted;
    }
    (*list)[(*n)++] = added;
}

/* Every way in which the part may have ended before the node's byte. */
static void add_exits(findings *f, const pith_config *config, uint32_t risen, uint32_t node) {
    const pith_matcher *m = f->m;
    for (uint32_t i = 0; i < config->n; i++) {
        pith_thread thread = m->threads[config->first + i];
        if (thread >> 32 != 0) break; /* sorted: those that are done come first */
        uint32_t count = f->loop == PITH_NONE ? 0 : m->frames[(uint32_t)thread].count;
        add_finding(f, true, (exit_node){node, risen + count});
    }
}

static bool find_all(findings *f, uint32_t config) {
    pith_matcher *m = f->m;
    const pith_token_trie *trie = m->trie;
    m->path[0] = config;
    m->risen[0] = 0;
    for (uint32_t node = 0; node < trie->n_nodes && !f->failed;) {
        const uint32_t depth = trie->depth[node], above = m->path[depth - 1];
        const uint8_t byte = trie->byte[node];
        if (m->configs[above].done && f->exits_at[byte])
            add_exits(f, &m->configs[above], m->risen[depth - 1], node);
        uint32_t next = pith_matcher_next(m, above, m->grammar->class_of[byte]);
        m->work++;
        if (next == PITH_CONFIG_DEAD) {
            if (m->trouble != NULL) return false;
            node = trie->skip[node];
            continue;
        }
        m->risen[depth] = m->risen[depth - 1] + (next >> PITH_ROW_SHIFT);
        m->path[depth] = next & PITH_ROW_CONFIG;
        const uint32_t n_ids = trie->first[node + 1] - trie->first[node];
        if (n_ids > 0) {
            uint32_t need = m->risen[depth] + m->configs[m->path[depth]].low;
            if (need > f->most_need) f->most_need = need;
            f->n_ids += n_ids;
            add_finding(f, false, (exit_node){node, need});
        }
        node++;
    }
    return !f->failed;
}

/* Bytes that may come after a loop; all where it ends a part whose surroundings are not known. */
static bool find_exit_bytes(findings *f) {
    pith_matcher *m = f->m;
    memset(f->exits_at, f->loop == PITH_NONE, sizeof f->exits_at);
    if (f->loop == PITH_NONE) return true;
    pith_matcher_open(m);
    if (!pith_matcher_add(m, m->grammar->loops[f->loop].out, PITH_STACK_BELOW)) return false;
    const pith_config config = m->configs[pith_matcher_close(m)];
    for (uint32_t i = 0; i < config.n; i++) {
        const pith_state *state = &m->grammar->states[m->threads[config.first + i] >> 32];
        if (state->kind == PITH_STATE_DONE) memset(f->exits_at, 1, sizeof f->exits_at);
        for (uint32_t k = 0; state->kind == PITH_STATE_EDGES && k < state->b; k++) {
            const pith_edge *edge = &m->grammar->edges[state->a + k];
            memset(f->exits_at + edge->first, 1, (size_t)(edge->last - edge->first) + 1);
        }
    }
    return m->trouble == NULL;
}

static bool find(findings *f, uint32_t state) {
    pith_matcher *m = f->m;
    if (!find_exit_bytes(f)) return false;
    pith_matcher_open(m);
    uint32_t stack = PITH_STACK_BELOW;
    if (f->loop != PITH_NONE) {
        stack = pith_matcher_push(m, PITH_STACK_OPEN, PITH_LOOP_BIT | f->loop, 0);
        m->is_open = true;
    }
    if (!pith_matcher_add(m, state, stack)) return false;
    uint32_t config = pith_matcher_close(m);
    return m->trouble == NULL && find_all(f, config);
}

/* ---- keeping ---- */

static void *take(pith_matcher *m, pith_table *table, size_t n, size_t element_bytes) {
    void *taken = pith_alloc_zero(n, element_bytes);
    if (taken == NULL) return NULL;
    table->bytes += n * element_bytes;
    m->table_bytes += n * element_bytes;
    m->used += n * element_bytes;
    return taken;
}

static void free_table(pith_matcher *m, pith_table *table) {
    if (table == NULL) return;
    m->table_bytes -= table->bytes;
    m->used -= table->bytes;
    pith_free(table->bits);
    pith_free(table->ids);
    pith_free(table->needs);
    pith_free(table->exits);
    pith_free(table);
}

void pith_matcher_drop_tables(pith_matcher *matcher) {
    for (uint32_t i = 0; i < matcher->tables_capacity; i++) {
        free_table(matcher, matcher->tables[i]);
        matcher->tables[i] = NULL;
    }
    matcher->n_tables = 0;
}

/* Certain ids, sorted by need. */
static bool keep_ids(pith_table *table, const findings *f, bool by_need) {
    const pith_token_trie *trie = f->m->trie;
    uint32_t *at = by_need ? table->needs : NULL, n = 0;
    for (uint32_t i = 0; by_need && i < f->n_certain; i++) {
        uint32_t node = f->certain[i].node;
        at[f->certain[i].need + 1] += trie->first[node + 1] - trie->first[node];
    }
    for (uint32_t k = 0; by_need && k < f->most_need + 1; k++) at[k + 1] += at[k];
    for (uint32_t i = 0; i < f->n_certain; i++) {
        uint32_t node = f->certain[i].node;
        for (uint32_t k = trie->first[node]; k < trie->first[node + 1]; k++) {
            uint32_t id = (uint32_t)trie->ids[k];
            if (table->bits != NULL) table->bits[id / 32] |= 1u << (id % 32);
            if (table->ids != NULL)
                table->ids[by_need ? at[f->certain[i].need]++ : n++] = (int32_t)id;
        }
    }
    /* filling moved each start to the next one's */
    for (uint32_t k = f->most_need + 1; by_need && k > 0; k--) at[k] = at[k - 1];
    if (by_need) at[0] = 0;
    return true;
}

static void keep_exits(pith_table *table, const findings *f) {
    const pith_token_trie *trie = f->m->trie;
    uint32_t *at = table->exit_first;
    for (uint32_t i = 0; i < f->n_exits; i++) at[trie->byte[f->exits[i].node] + 1]++;
    for (uint32_t byte = 0; byte < 256; byte++) at[byte + 1] += at[byte];
    for (uint32_t i = 0; i < f->n_exits; i++)
        table->exits[at[trie->byte[f->exits[i].node]]++] = f->exits[i];
    for (uint32_t byte = 256; byte > 0; byte--) at[byte] = at[byte - 1];
    at[0] = 0;
}

static bool keep(pith_table *table, const findings *f) {
    pith_matcher *m = f->m;
    const bool by_need = f->loop != PITH_NONE && f->most_need > 0;
    const bool is_few = f->n_ids <= m->trie->n_words;
    table->n_ids = f->n_ids;
    table->n_needs = by_need ? f->most_need + 1 : 1;
    table->n_exits = f->n_exits;
    if (!is_few) table->bits = take(m, table, m->trie->n_words, sizeof *table->bits);
    if (is_few || by_need) table->ids = take(m, table, f->n_ids, sizeof *table->ids);
    if (by_need) table->needs = take(m, table, (size_t)f->most_need + 2, sizeof *table->needs);
    table->exits = take(m, table, f->n_exits, sizeof *table->exits);
    if ((!is_few && !table->bits) || ((is_few || by_need) && !table->ids) ||
        (by_need && !table->needs) || !table->exits)
        return false;
    keep_exits(table, f);
    return keep_ids(table, f, by_need);
}

/* ---- the tables by state ---- */

static pith_table **slot_of(pith_table **slots, uint32_t n_slots, uint32_t state) {
    uint32_t at = state * 0x9E3779B1u & (n_slots - 1);
    while (slots[at] != NULL && slots[at]->state != state) at = (at + 1) & (n_slots - 1);
    return &slots[at];
}

static bool more_slots(pith_matcher *m) {
    uint32_t n = m->tables_capacity == 0 ? FIRST_SLOTS : m->tables_capacity * 2;
    pith_table **slots = pith_matcher_take(m, n * sizeof(pith_table *));
    if (slots == NULL) return false;
    for (uint32_t i = 0; i < m->tables_capacity; i++)
        if (m->tables[i] != NULL) *slot_of(slots, n, m->tables[i]->state) = m->tables[i];
    m->used -= m->tables_capacity * sizeof(pith_table *);
    pith_free(m->tables);
    m->tables = slots;
    m->tables_capacity = n;
    return true;
}

/* Walks the tree for the state. Where that comes to a limit the state has no table. */
static void make_table(pith_matcher *m, pith_table *table, uint32_t loop) {
    findings f = {.m = m, .loop = loop};
    uint64_t work = m->work;
    table->is_walked = !find(&f, table->state);
    size_t room = m->memory / 2;
    size_t needed = ((size_t)f.n_ids + m->trie->n_words) * 4 + f.n_exits * sizeof *f.exits;
    if (needed > room || needed > m->memory - m->used) table->is_walked = true;
    if (!table->is_walked) table->is_walked = !keep(table, &f);
    if (m->trouble != NULL) {
        m->trouble = NULL;
        m->is_full = false;
        m->work = work;
    }
    pith_free(f.certain);
    pith_free(f.exits);
}

/* NULL on trouble. */
static const pith_table *table_of(pith_matcher *m, uint32_t state, uint32_t loop) {
    if (m->table_bytes > m->memory / 2) pith_matcher_drop_tables(m);
    if (m->n_tables * 2 >= m->tables_capacity && !more_slots(m)) return NULL;
    pith_table **slot = slot_of(m->tables, m->tables_capacity, state);
    if (*slot != NULL) return *slot;
    pith_table *table = pith_matcher_take(m, sizeof *table);
    if (table == NULL) return NULL;
    table->bytes = sizeof *table;
    table->state = state;
    m->table_bytes += sizeof *table;
    m->n_tables++;
    *slot = table;
    make_table(m, table, loop);
    return table;
}

/* ---- using ---- */

static void set_bit(uint32_t *bits, int32_t id) {
    bits[id / 32] |= 1u << (id % 32);
}

/* Ids of a need of at most `room`. */
static void set_certain(const pith_matcher *m, const pith_table *table, uint32_t room,
                        uint32_t *bits) {
    uint32_t n_ids = table->n_ids;
    if (table->needs != NULL && room < table->n_needs - 1) n_ids = table->needs[room + 1];
    if (table->bits == NULL || n_ids < table->n_ids / 2) {
        for (uint32_t i = 0; i < n_ids; i++) set_bit(bits, table->ids[i]);
        return;
    }
    /* bits may hold ids of other threads already: those that are taken off come back */
    for (uint32_t i = n_ids; i < table->n_ids; i++) {
        uint32_t id = (uint32_t)table->ids[i];
        table->bits[id / 32] &= ~(1u << (id % 32));
    }
    for (uint32_t i = 0; i < m->trie->n_words; i++) bits[i] |= table->bits[i];
    for (uint32_t i = n_ids; i < table->n_ids; i++) set_bit(table->bits, table->ids[i]);
}

/* The config after the part that the thread is in, with the real stack; DEAD where the text is over
 * and on trouble. */
static uint32_t after_part(pith_matcher *m, uint32_t stack) {
    const pith_frame frame = m->frames[stack];
    if (stack == PITH_STACK_EMPTY) return PITH_CONFIG_DEAD;
    bool is_loop = (frame.what & PITH_LOOP_BIT) != 0;
    uint32_t state = is_loop ? m->grammar->loops[frame.what & ~PITH_LOOP_BIT].out : frame.what;
    pith_matcher_open(m);
    if (!pith_matcher_add(m, state, frame.parent)) return PITH_CONFIG_DEAD;
    return pith_matcher_close(m);
}

/* needs: the least and the most rounds that must begin before the exit. */
static bool take_exits(pith_matcher *m, const pith_table *table, uint32_t after,
                       const uint32_t needs[2], uint32_t *bits) {
    const pith_token_trie *trie = m->trie;
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t i = table->exit_first[byte], end = table->exit_first[byte + 1];
        if (i == end) continue;
        uint32_t next = pith_matcher_next(m, after, m->grammar->class_of[byte]);
        if (m->trouble != NULL) return false;
        for (; next != PITH_CONFIG_DEAD && i < end; i++) {
            const exit_node exit = table->exits[i];
            if (exit.need < needs[0] || exit.need > needs[1]) continue;
            for (uint32_t k = trie->first[exit.node]; k < trie->first[exit.node + 1]; k++)
                set_bit(bits, trie->ids[k]);
            if (!pith_matcher_walk(m, next, exit.node + 1, trie->skip[exit.node], bits))
                return false;
        }
    }
    return true;
}

bool pith_matcher_look_up(pith_matcher *matcher, pith_thread thread, uint32_t *bits, bool *walked) {
    const uint32_t stack = (uint32_t)thread, state = (uint32_t)(thread >> 32);
    const pith_frame frame = matcher->frames[stack];
    const bool is_loop = stack != PITH_STACK_EMPTY && (frame.what & PITH_LOOP_BIT) != 0;
    *walked = false;
    if (matcher->grammar->states[state].n_bytes < LEAST_BYTES) return true;
    const uint32_t number = is_loop ? frame.what & ~PITH_LOOP_BIT : PITH_NONE;
    const pith_table *table = table_of(matcher, state, number);
    if (table == NULL) return false;
    if (table->is_walked) return true;
    *walked = true;
    uint32_t needs[2] = {0, UINT32_MAX};
    if (is_loop) {
        const pith_grammar_loop *loop = &matcher->grammar->loops[number];
        if (frame.count + 1 < loop->min) needs[0] = loop->min - 1 - frame.count;
        if (loop->max != PITH_GRAMMAR_UNBOUNDED) needs[1] = loop->max - 1 - frame.count;
    }
    set_certain(matcher, table, needs[1], bits);
    if (table->n_exits == 0) return true;
    uint32_t after = after_part(matcher, stack);
    if (matcher->trouble != NULL || after == PITH_CONFIG_DEAD) return matcher->trouble == NULL;
    return take_exits(matcher, table, after, needs, bits);
}
