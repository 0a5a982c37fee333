/* SPDX-License-Identifier: Apache-2.0
 * Keeping tables by state, and making masks of them (matcher_table.h says what they are).
 *
 * Owns: the tables, which are all dropped when they take more than half the memory. Where none can
 * be made, for memory or for work, the thread is walked instead, so that a table never decides
 * whether a matcher fails. Read next: matcher_mask.c. */
#include "sample/matcher_table.h"

#include "base/memory.h"

enum { LEAST_BYTES = 10, /* of a state that is worth a table */ FIRST_SLOTS = 64 };

/* ---- keeping ---- */

static void free_parts(pith_table *table) {
    pith_free(table->bits);
    pith_free(table->levels);
    pith_free(table->ids.data);
    pith_free(table->exits.data);
    table->bits = table->levels = NULL;
    table->ids = table->exits = (pith_needed_list){0};
}

static void free_table(pith_matcher *m, pith_table *table) {
    if (table == NULL) return;
    m->table_bytes -= table->bytes;
    m->used -= table->bytes;
    free_parts(table);
    pith_free(table);
}

void pith_matcher_drop_tables(pith_matcher *matcher) {
    for (uint32_t i = 0; i < matcher->tables_capacity; i++) {
        free_table(matcher, matcher->tables[i]);
        matcher->tables[i] = NULL;
    }
    matcher->n_tables = 0;
}

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

static size_t parts_bytes(const pith_matcher *m, const pith_table *table) {
    size_t words = m->trie->n_words;
    words = (table->bits != NULL) * words + (table->levels != NULL) * words * PITH_TABLE_LEVELS;
    return words * sizeof(uint32_t) +
           ((size_t)table->ids.capacity + table->exits.capacity) * sizeof(pith_needed);
}

static void count_bytes(pith_matcher *m, pith_table *table, size_t bytes) {
    table->bytes += bytes;
    m->table_bytes += bytes;
    m->used += bytes;
}

/* Bytes that a table takes at most, but for its exits and ids of large needs. */
static size_t most_bytes(const pith_matcher *m) {
    return ((size_t)PITH_TABLE_LEVELS + 3) * m->trie->n_words * sizeof(uint32_t) +
           sizeof(pith_table);
}

/* Where the survey comes to a limit, of memory too, the state has no table: its threads are walked.
 */
static void make_table(pith_matcher *m, pith_table *table, uint32_t loop) {
    uint64_t work = m->work;
    table->is_walked = most_bytes(m) > pith_matcher_room(m) || !pith_matcher_survey(m, table, loop);
    if (m->trouble != NULL) {
        m->trouble = NULL;
        m->is_full = false;
        m->work = work;
    }
    size_t bytes = parts_bytes(m, table);
    if (bytes > pith_matcher_room(m)) table->is_walked = true; /* exits beyond measure */
    if (table->is_walked)
        free_parts(table);
    else
        count_bytes(m, table, bytes);
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

static void set_bit(uint32_t *bits, uint32_t id) {
    bits[id / 32] |= 1u << (id % 32);
}

static void add_bits(uint32_t *bits, const uint32_t *more, uint32_t n_words) {
    for (uint32_t i = 0; i < n_words; i++) bits[i] |= more[i];
}

/* Ids of a need of at most `room`. */
static void set_certain(const pith_matcher *m, const pith_table *table, uint32_t room,
                        uint32_t *bits) {
    const uint32_t n_words = m->trie->n_words;
    if (table->bits != NULL && room >= table->most_need) {
        add_bits(bits, table->bits, n_words);
        return;
    }
    if (table->bits != NULL) {
        uint32_t level = room < table->n_levels ? room : table->n_levels - 1;
        add_bits(bits, table->levels + (size_t)level * n_words, n_words);
    }
    for (uint32_t i = 0; i < table->ids.n; i++)
        if (table->ids.data[i].need <= room) set_bit(bits, table->ids.data[i].number);
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
            const pith_needed exit = table->exits.data[i];
            if (exit.need < needs[0] || exit.need > needs[1]) continue;
            for (uint32_t k = trie->first[exit.number]; k < trie->first[exit.number + 1]; k++)
                set_bit(bits, (uint32_t)trie->ids[k]);
            if (!pith_matcher_walk(m, next, exit.number + 1, trie->skip[exit.number], bits))
                return false;
        }
    }
    return true;
}

bool pith_matcher_look_up(pith_matcher *matcher, pith_thread thread, uint32_t *bits,
                          bool *looked_up) {
    const uint32_t stack = (uint32_t)thread, state = (uint32_t)(thread >> 32);
    const pith_frame frame = matcher->frames[stack];
    const bool is_loop = stack != PITH_STACK_EMPTY && (frame.what & PITH_LOOP_BIT) != 0;
    *looked_up = false;
    if (matcher->grammar->states[state].n_bytes < LEAST_BYTES) return true;
    const uint32_t number = is_loop ? frame.what & ~PITH_LOOP_BIT : PITH_NONE;
    const pith_table *table = table_of(matcher, state, number);
    if (table == NULL) return false;
    if (table->is_walked) return true;
    *looked_up = true;
    uint32_t needs[2] = {0, UINT32_MAX};
    if (is_loop) {
        const pith_grammar_loop *loop = &matcher->grammar->loops[number];
        if (frame.count + 1 < loop->min) needs[0] = loop->min - 1 - frame.count;
        if (loop->max != PITH_GRAMMAR_UNBOUNDED) needs[1] = loop->max - 1 - frame.count;
    }
    set_certain(matcher, table, needs[1], bits);
    if (table->exits.n == 0) return true;
    uint32_t after = after_part(matcher, stack);
    if (matcher->trouble != NULL || after == PITH_CONFIG_DEAD) return matcher->trouble == NULL;
    return take_exits(matcher, table, after, needs, bits);
}
