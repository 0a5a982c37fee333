/* SPDX-License-Identifier: Apache-2.0
 * One byte: from the threads of a config to those of the next.
 *
 * Each thread whose state has an edge for the byte goes on; then calls, returns, alternatives and
 * counters are followed until every thread waits for a byte again (the closure). What is reached
 * twice in one closure is followed once.
 *
 * Of two threads that differ by a counter alone, both of which may leave, the lower count allows
 * all that the higher does: the higher is dropped. So a repetition of something that can be read in
 * several ways keeps a few threads, and one of something that may be empty comes to an end.
 *
 * The work of a closure is bounded; past it the matcher fails. Read next: matcher_mask.c. */
#include "sample/matcher_internal.h"

#include "base/memory.h"

#include <string.h>

enum { FIRST_MARKS = 1 << 8, COUNT_KEY = 1u << 31 /* of the state: a mark of a counter */ };

/* ---- marks: what this closure has seen ---- */

static pith_mark *find_mark(const pith_matcher *m, uint64_t key) {
    uint64_t hash = (key ^ key >> 29) * 0x9E3779B97F4A7C15u;
    uint32_t at = (uint32_t)(hash >> 32) & (m->n_marks - 1);
    while (m->marks[at].stamp == m->stamp && m->marks[at].key != key)
        at = (at + 1) & (m->n_marks - 1);
    return &m->marks[at];
}

static bool more_marks(pith_matcher *m) {
    uint32_t n_old = m->n_marks, n = n_old == 0 ? FIRST_MARKS : n_old * 2;
    pith_mark *old = m->marks, *marks = pith_matcher_take(m, n * sizeof *marks);
    if (marks == NULL) return false;
    m->marks = marks;
    m->n_marks = n;
    for (uint32_t i = 0; i < n_old; i++)
        if (old[i].stamp == m->stamp) *find_mark(m, old[i].key) = old[i];
    m->used -= n_old * sizeof *old;
    pith_free(old);
    return true;
}

/* The entry of a key, made with `value` when it is new (*is_new). NULL on trouble. */
static pith_mark *mark(pith_matcher *m, uint64_t key, uint32_t value, bool *is_new) {
    if (m->n_marked * 2 >= m->n_marks && !more_marks(m)) return NULL;
    pith_mark *found = find_mark(m, key);
    *is_new = found->stamp != m->stamp;
    if (*is_new) {
        *found = (pith_mark){.key = key, .stamp = m->stamp, .value = value};
        m->n_marked++;
    }
    return found;
}

static void clear_marks(pith_matcher *m) {
    m->n_marked = 0;
    if (++m->stamp != 0) return;
    memset(m->marks, 0, m->n_marks * sizeof *m->marks);
    m->stamp = 1;
}

void pith_matcher_open(pith_matcher *matcher) {
    matcher->n_todo = matcher->n_found = 0;
    matcher->is_open = false;
    matcher->low = matcher->shift = 0;
    clear_marks(matcher);
}

/* ---- the closure ---- */

static bool find_thread(pith_matcher *m, pith_thread thread) {
    if (m->n_found >= PITH_MATCHER_MAX_THREADS)
        return pith_matcher_give_up(m, "the text can be read in too many ways at once");
    void *grown =
        pith_matcher_grow(m, m->found, &m->found_capacity, sizeof *m->found, m->n_found + 1);
    if (grown == NULL) return false;
    m->found = grown;
    m->found[m->n_found++] = thread;
    return true;
}

bool pith_matcher_add(pith_matcher *matcher, uint32_t state, uint32_t stack) {
    bool is_new;
    if (stack == PITH_NONE) return false;
    pith_thread thread = pith_thread_of(state, stack);
    if (mark(matcher, thread, 0, &is_new) == NULL) return false;
    if (!is_new) return true;
    pith_state_kind kind = (pith_state_kind)matcher->grammar->states[state].kind;
    if (kind == PITH_STATE_EDGES || kind == PITH_STATE_TOKEN || kind == PITH_STATE_DONE)
        return find_thread(matcher, thread);
    void *grown = pith_matcher_grow(matcher, matcher->todo, &matcher->todo_capacity,
                                    sizeof *matcher->todo, matcher->n_todo + 1);
    if (grown == NULL) return false;
    matcher->todo = grown;
    matcher->todo[matcher->n_todo++] = thread;
    return true;
}

/* May the loop be left after this round? Then a lower count stands for a higher. Of a relative
 * count that is known only where any may. */
static bool may_leave(const pith_grammar_loop *loop, uint32_t stack, uint32_t count) {
    return loop->min <= 1 || (stack != PITH_STACK_OPEN && count + 1 >= loop->min);
}

/* Begins a round with `count` whole rounds behind it, unless one with fewer is on its way. */
static bool add_round(pith_matcher *m, uint32_t loop_number, uint32_t stack, uint32_t count) {
    const pith_grammar_loop *loop = &m->grammar->loops[loop_number];
    if (may_leave(loop, stack, count)) {
        bool is_new;
        uint64_t key = pith_thread_of(loop_number | COUNT_KEY, stack);
        pith_mark *least = mark(m, key, count, &is_new);
        if (least == NULL) return false;
        if (!is_new && least->value <= count) return true;
        least->value = count;
    }
    return pith_matcher_add(m, loop->body,
                            pith_matcher_push(m, stack, PITH_LOOP_BIT | loop_number, count));
}

/* A round has ended. */
static bool follow_again(pith_matcher *m, uint32_t loop_number, uint32_t stack) {
    const pith_grammar_loop *loop = &m->grammar->loops[loop_number];
    const pith_frame frame = m->frames[stack];
    uint32_t count = frame.count + 1;
    if (frame.parent == PITH_STACK_OPEN) /* it may end, or go on: the count decides later */
        return pith_matcher_add(m, 0, stack) && add_round(m, loop_number, frame.parent, count);
    if (count >= loop->min && !pith_matcher_add(m, loop->out, frame.parent)) return false;
    if (loop->max == PITH_GRAMMAR_UNBOUNDED) { /* from min on nothing changes any more */
        uint32_t most = loop->min > 0 ? loop->min - 1 : 0;
        return add_round(m, loop_number, frame.parent, count < most ? count : most);
    }
    return count >= loop->max || add_round(m, loop_number, frame.parent, count);
}

static bool follow(pith_matcher *m, pith_thread thread) {
    const uint32_t stack = (uint32_t)thread;
    const pith_state state = m->grammar->states[thread >> 32];
    switch ((pith_state_kind)state.kind) {
    case PITH_STATE_SPLIT:
        for (uint32_t i = 0; i < state.b; i++)
            if (!pith_matcher_add(m, m->grammar->targets[state.a + i], stack)) return false;
        m->work += state.b;
        return true;
    case PITH_STATE_CALL:
        return pith_matcher_add(m, state.a, pith_matcher_push(m, stack, state.b, 0));
    case PITH_STATE_RETURN:
        if (stack == PITH_STACK_BELOW) return pith_matcher_add(m, 0, stack);
        return pith_matcher_add(m, m->frames[stack].what, m->frames[stack].parent);
    case PITH_STATE_ENTER: return add_round(m, state.a, stack, 0);
    case PITH_STATE_AGAIN: return follow_again(m, state.a, stack);
    case PITH_STATE_DONE:
    case PITH_STATE_EDGES:
    case PITH_STATE_TOKEN: break;
    }
    return true;
}

/* The loop whose counter is on top and may leave, as a key without the count. */
static bool counter_key(const pith_matcher *m, pith_thread thread, uint64_t *key) {
    const pith_frame *frame = &m->frames[(uint32_t)thread];
    if (frame->what == PITH_NONE || (frame->what & PITH_LOOP_BIT) == 0) return false;
    if (!may_leave(&m->grammar->loops[frame->what & ~PITH_LOOP_BIT], frame->parent, frame->count))
        return false;
    *key = pith_thread_of((uint32_t)(thread >> 32) | COUNT_KEY, frame->parent);
    return true;
}

/* Of found threads that differ by the counter alone, the lowest stays. A state belongs to one loop,
 * so state and stack below tell. */
static bool drop_higher(pith_matcher *m) {
    uint64_t key;
    bool is_new, any = false;
    clear_marks(m);
    for (uint32_t i = 0; i < m->n_found; i++) {
        if (!counter_key(m, m->found[i], &key)) continue;
        uint32_t count = m->frames[(uint32_t)m->found[i]].count;
        pith_mark *least = mark(m, key, count, &is_new);
        if (least == NULL) return false;
        any |= !is_new;
        if (count < least->value) least->value = count;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; any && i < m->n_found; i++) {
        bool keep = !counter_key(m, m->found[i], &key) ||
                    find_mark(m, key)->value == m->frames[(uint32_t)m->found[i]].count;
        if (keep) m->found[n++] = m->found[i];
    }
    if (any) m->n_found = n;
    return true;
}

/* Relative counts: their least, which is taken off where no thread has more on its stack than the
 * counter. So reading one more character leads back to the same config. */
static bool lower_counts(pith_matcher *m) {
    bool is_flat = true;
    uint32_t low = UINT16_MAX;
    for (uint32_t i = 0; i < m->n_found; i++) {
        uint32_t stack = (uint32_t)m->found[i];
        for (; m->frames[stack].parent != PITH_STACK_OPEN; stack = m->frames[stack].parent)
            is_flat = false;
        if (m->frames[stack].count < low) low = m->frames[stack].count;
    }
    m->low = low;
    if (!is_flat || low == 0 || low >= UINT32_MAX >> PITH_ROW_SHIFT) return true;
    for (uint32_t i = 0; i < m->n_found; i++) {
        const pith_frame frame = m->frames[(uint32_t)m->found[i]];
        uint32_t stack = pith_matcher_push(m, PITH_STACK_OPEN, frame.what, frame.count - low);
        if (stack == PITH_NONE) return false;
        m->found[i] = pith_thread_of((uint32_t)(m->found[i] >> 32), stack);
    }
    m->low = 0;
    m->shift = low;
    return true;
}

uint32_t pith_matcher_close(pith_matcher *matcher) {
    uint64_t limit = matcher->work + PITH_MATCHER_STEP_WORK;
    if (matcher->work_limit < limit) limit = matcher->work_limit;
    while (matcher->n_todo > 0 && matcher->trouble == NULL) {
        if (++matcher->work > limit) {
            pith_matcher_give_up(matcher, "the text can be read in too many ways");
            break;
        }
        if (!follow(matcher, matcher->todo[--matcher->n_todo])) break;
    }
    if (matcher->trouble == NULL && matcher->n_found > 1) (void)drop_higher(matcher);
    if (matcher->trouble == NULL && matcher->is_open) (void)lower_counts(matcher);
    return matcher->trouble == NULL ? pith_matcher_intern(matcher) : PITH_CONFIG_DEAD;
}

/* ---- steps ---- */

static bool make_row(pith_matcher *m, uint32_t config) {
    const uint32_t n = m->grammar->n_classes;
    void *grown = pith_matcher_grow(m, m->rows, &m->rows_capacity, sizeof *m->rows, m->n_rows + n);
    if (grown == NULL) return false;
    m->rows = grown;
    m->configs[config].row = m->n_rows;
    memset(m->rows + m->n_rows, 0xFF, n * sizeof *m->rows);
    m->n_rows += n;
    return true;
}

uint32_t pith_matcher_step(pith_matcher *matcher, uint32_t config, uint32_t class) {
    if (matcher->configs[config].row == PITH_NONE && !make_row(matcher, config))
        return PITH_CONFIG_DEAD;
    const uint8_t byte = matcher->grammar->byte_of[class];
    const uint32_t first = matcher->configs[config].first, n = matcher->configs[config].n;
    pith_matcher_open(matcher);
    matcher->is_open = matcher->configs[config].is_open;
    for (uint32_t i = 0; i < n; i++) {
        pith_thread thread = matcher->threads[first + i];
        const pith_state *state = &matcher->grammar->states[thread >> 32];
        if (state->kind != PITH_STATE_EDGES) continue;
        uint32_t target = pith_grammar_target(matcher->grammar, state, byte);
        if (target != PITH_GRAMMAR_NOWHERE && !pith_matcher_add(matcher, target, (uint32_t)thread))
            return PITH_CONFIG_DEAD;
    }
    matcher->work += n;
    uint32_t next = pith_matcher_close(matcher);
    if (matcher->trouble != NULL) return PITH_CONFIG_DEAD;
    next |= matcher->shift << PITH_ROW_SHIFT;
    matcher->rows[matcher->configs[config].row + class] = next;
    return next;
}

static bool takes_token(const pith_matcher *m, const pith_state *state, int32_t id) {
    if (state->kind != PITH_STATE_TOKEN) return false;
    if (!state->negated) return state->a == (uint32_t)id;
    return state->a != (uint32_t)id && !pith_trie_is_end(m->trie, id);
}

uint32_t pith_matcher_step_id(pith_matcher *matcher, uint32_t config, int32_t id) {
    const pith_span piece = pith_trie_piece(matcher->trie, id);
    uint32_t read = piece.size > 0 ? config : PITH_CONFIG_DEAD;
    for (size_t i = 0; i < piece.size && read != PITH_CONFIG_DEAD; i++)
        read = pith_matcher_next(matcher, read, matcher->grammar->class_of[(uint8_t)piece.data[i]]);
    if (!matcher->configs[config].tokens || matcher->trouble != NULL) return read;
    pith_matcher_open(matcher);
    for (uint32_t i = 0; i < matcher->configs[read].n; i++) {
        pith_thread thread = matcher->threads[matcher->configs[read].first + i];
        if (!pith_matcher_add(matcher, (uint32_t)(thread >> 32), (uint32_t)thread))
            return PITH_CONFIG_DEAD;
    }
    for (uint32_t i = 0; i < matcher->configs[config].n; i++) {
        pith_thread thread = matcher->threads[matcher->configs[config].first + i];
        const pith_state *state = &matcher->grammar->states[thread >> 32];
        if (takes_token(matcher, state, id) &&
            !pith_matcher_add(matcher, state->b, (uint32_t)thread))
            return PITH_CONFIG_DEAD;
    }
    return pith_matcher_close(matcher);
}
