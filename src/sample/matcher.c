/* SPDX-License-Identifier: Apache-2.0
 * Following one text: accepting ids, taking them back, asking what may come next.
 *
 * Owns: the matcher, its list of accepted ids, and the rule of failing closed: a call that comes to
 * a limit of memory is tried once more after everything that can be found again was dropped; what
 * fails then, or for too much work, fails the matcher until it is reset, and nothing is allowed.
 * Read next: matcher_mask.c, matcher_step.c. */
#include "sample/matcher_internal.h"

#include "base/memory.h"

#include <string.h>

enum { LEAST_MEMORY = 1 << 18, ONLY_BYTES = 64 /* looked at for a single id */ };

static bool init(pith_matcher *m) {
    m->work_limit = PITH_MATCHER_MASK_WORK;
    m->path = pith_matcher_take(m, ((size_t)m->trie->max_depth + 1) * sizeof *m->path);
    m->none = pith_matcher_take(m, m->trie->n_words * sizeof *m->none);
    m->risen = pith_matcher_take(m, ((size_t)m->trie->max_depth + 1) * sizeof *m->risen);
    if (m->path == NULL || m->risen == NULL || m->none == NULL || !pith_matcher_store_init(m))
        return false;
    pith_matcher_open(m);
    if (!pith_matcher_add(m, m->grammar->start, PITH_STACK_EMPTY)) return false;
    m->start = m->current = pith_matcher_close(m);
    return m->trouble == NULL;
}

pith_status pith_matcher_new(const pith_grammar *grammar, const pith_token_trie *trie,
                             size_t memory, pith_matcher **out, pith_error *error) {
    *out = NULL;
    size_t least = LEAST_MEMORY + 4 * (size_t)trie->n_words * sizeof(uint32_t);
    if (memory < least)
        return pith_fail(error, PITH_ERROR_ARGUMENT,
                         "matcher: %zu bytes of memory for a vocabulary of %d tokens; %zu are "
                         "needed",
                         memory, trie->n_vocab, least);
    pith_matcher *matcher = pith_alloc_zero(1, sizeof *matcher);
    if (matcher == NULL) return pith_fail_memory(error, "a matcher", sizeof *matcher);
    matcher->grammar = pith_grammar_share(grammar);
    matcher->trie = trie;
    matcher->memory = memory;
    if (init(matcher)) {
        *out = matcher;
        return PITH_OK;
    }
    const char *trouble = matcher->trouble;
    bool is_full = matcher->is_full;
    pith_matcher_free(matcher);
    if (trouble == NULL || is_full) return pith_fail_memory(error, "a matcher", memory);
    return pith_fail(error, PITH_ERROR_LIMIT, "matcher: %s at its start; simplify the grammar",
                     trouble);
}

void pith_matcher_free(pith_matcher *matcher) {
    if (matcher == NULL) return;
    for (uint32_t i = 0; i < matcher->n_masks; i++) pith_free(matcher->masks[i].bits);
    pith_matcher_drop_tables(matcher);
    pith_free(matcher->tables);
    pith_matcher_store_deinit(matcher);
    pith_grammar_drop(matcher->grammar);
    pith_free(matcher->todo);
    pith_free(matcher->found);
    pith_free(matcher->marks);
    pith_free(matcher->ids);
    pith_free(matcher->past);
    pith_free(matcher->path);
    pith_free(matcher->risen);
    pith_free(matcher->none);
    pith_free(matcher);
}

void pith_matcher_reset(pith_matcher *matcher) {
    matcher->n_ids = 0;
    matcher->current = matcher->start;
    matcher->finished = false;
    matcher->failed = NULL;
}

/* ---- calls that may meet a limit ---- */

static void begin(pith_matcher *m) {
    m->trouble = NULL;
    m->is_full = false;
    m->work = 0;
}

/* After a call with trouble: true when it is worth trying again. */
static bool retries(pith_matcher *m, bool is_second) {
    if (m->is_full && !is_second) {
        pith_matcher_collect(m);
        begin(m);
        return true;
    }
    m->failed = m->trouble;
    return false;
}

/* The config after the id; DEAD when it is not allowed and when the matcher has failed. */
static uint32_t after_id(pith_matcher *m, int32_t id) {
    begin(m);
    for (bool again = false;; again = true) {
        uint32_t config = pith_matcher_step_id(m, m->current, id);
        if (m->trouble == NULL) return config;
        if (!retries(m, again)) return PITH_CONFIG_DEAD;
    }
}

static bool is_open(const pith_matcher *m, int32_t id) {
    return m->failed == NULL && !m->finished && id >= 0 && id < m->trie->n_vocab;
}

static bool ends_text(const pith_matcher *m, int32_t id) {
    return pith_trie_is_end(m->trie, id) && m->configs[m->current].done;
}

bool pith_matcher_allows(pith_matcher *matcher, int32_t id) {
    if (!is_open(matcher, id)) return false;
    return after_id(matcher, id) != PITH_CONFIG_DEAD || ends_text(matcher, id);
}

const uint32_t *pith_matcher_mask(pith_matcher *matcher) {
    if (matcher->failed != NULL || matcher->finished) return matcher->none;
    begin(matcher);
    for (bool again = false;; again = true) {
        const uint32_t *mask = pith_matcher_find_mask(matcher);
        if (mask != NULL) return mask;
        if (!retries(matcher, again)) return matcher->none;
    }
}

static bool grow_past(pith_matcher *m) {
    void *ids = pith_matcher_grow(m, m->ids, &m->ids_capacity, sizeof *m->ids, m->n_ids + 1);
    if (ids == NULL) return false;
    m->ids = ids;
    void *past = pith_matcher_grow(m, m->past, &m->past_capacity, sizeof *m->past, m->n_ids + 1);
    if (past == NULL) return false;
    m->past = past;
    return true;
}

bool pith_matcher_accept(pith_matcher *matcher, int32_t id) {
    if (!is_open(matcher, id)) return false;
    begin(matcher);
    for (bool again = false; !grow_past(matcher); again = true)
        if (!retries(matcher, again)) return false;
    uint32_t next = after_id(matcher, id);
    bool ends = next == PITH_CONFIG_DEAD && ends_text(matcher, id);
    if (matcher->failed != NULL || (next == PITH_CONFIG_DEAD && !ends)) return false;
    matcher->ids[matcher->n_ids] = id;
    matcher->past[matcher->n_ids++] = matcher->current;
    matcher->finished = ends;
    if (!ends) matcher->current = next;
    return true;
}

/* Reads the first n ids anew. */
static bool replay(pith_matcher *m, uint32_t n) {
    m->current = m->start;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t next = after_id(m, m->ids[i]);
        if (next == PITH_CONFIG_DEAD) return false;
        m->past[i] = m->current;
        m->current = next;
    }
    return true;
}

void pith_matcher_rewind(pith_matcher *matcher, size_t n) {
    if (n > matcher->n_ids) n = matcher->n_ids;
    if (n == 0) return;
    matcher->n_ids -= (uint32_t)n;
    matcher->finished = false;
    matcher->failed = NULL;
    uint32_t config = matcher->past[matcher->n_ids];
    if (config != PITH_NONE)
        matcher->current = config;
    else if (!replay(matcher, matcher->n_ids) && matcher->failed == NULL)
        matcher->failed = "the text could not be read again";
}

size_t pith_matcher_length(const pith_matcher *matcher) {
    return matcher->n_ids;
}

bool pith_matcher_may_end(const pith_matcher *matcher) {
    return matcher->failed == NULL && !matcher->finished && matcher->configs[matcher->current].done;
}

/* ---- what must come ---- */

/* The one byte that may follow the config; -1 when there are several, or the text may end. */
static int only_byte(pith_matcher *m, uint32_t config) {
    int only = -1;
    if (m->configs[config].done || m->configs[config].tokens) return -1;
    for (uint32_t i = 0; i < m->configs[config].n; i++) {
        pith_thread thread = m->threads[m->configs[config].first + i];
        const pith_state *state = &m->grammar->states[thread >> 32];
        if (state->n_bytes != 1) return -1;
        int byte = m->grammar->edges[state->a].first;
        if (only >= 0 && only != byte) return -1;
        only = byte;
    }
    return only;
}

/* Nothing may follow the config: the text is complete. */
static bool is_last(const pith_matcher *m, uint32_t config) {
    return m->configs[config].done && m->configs[config].n == 1;
}

static size_t forced_bytes(pith_matcher *m, char *bytes, size_t capacity, bool *is_whole) {
    uint32_t config = m->current;
    size_t n = 0;
    for (; n < capacity; n++) {
        int byte = only_byte(m, config);
        if (byte < 0) break;
        config = pith_matcher_next(m, config, m->grammar->class_of[byte]);
        if (m->trouble != NULL) break;
        bytes[n] = (char)byte;
    }
    *is_whole = is_last(m, config);
    return n;
}

size_t pith_matcher_forced(pith_matcher *matcher, char *bytes, size_t capacity, bool *is_whole) {
    *is_whole = false;
    if (matcher->failed != NULL || matcher->finished) return 0;
    begin(matcher);
    for (bool again = false;; again = true) {
        size_t n = forced_bytes(matcher, bytes, capacity, is_whole);
        if (matcher->trouble == NULL) return n;
        bool is_tried = again || !matcher->is_full;
        if (!is_tried) pith_matcher_collect(matcher);
        begin(matcher);
        if (!is_tried) continue;
        /* A place ahead that cannot be read: the text may end before, so this is no failure. */
        *is_whole = false;
        return 0;
    }
}

static uint32_t child_of(const pith_token_trie *trie, uint32_t node, char byte) {
    uint32_t child = node + 1;
    while (child < trie->skip[node] && trie->byte[child] != (uint8_t)byte)
        child = trie->skip[child];
    return child < trie->skip[node] ? child : PITH_NONE;
}

/* Of the ids whose bytes are a start of bytes [n > 0], the one there is; -1 otherwise. When longer
 * ones may come too (is_whole false) there must be none. */
static int32_t only_along(const pith_token_trie *trie, const char *bytes, size_t n, bool is_whole) {
    uint32_t node = trie->branch[(uint8_t)bytes[0]];
    int32_t only = -1;
    for (size_t i = 1; node != PITH_NONE; i++) {
        uint32_t n_ids = trie->first[node + 1] - trie->first[node];
        if (n_ids > 1 || (n_ids == 1 && only >= 0)) return -1;
        if (n_ids == 1) only = trie->ids[trie->first[node]];
        if (i == n) return is_whole || trie->skip[node] == node + 1 ? only : -1;
        node = child_of(trie, node, bytes[i]);
    }
    return only;
}

int32_t pith_matcher_only(pith_matcher *matcher) {
    char bytes[ONLY_BYTES];
    bool is_whole;
    size_t n = pith_matcher_forced(matcher, bytes, sizeof bytes, &is_whole);
    if (n > 0) return only_along(matcher->trie, bytes, n, is_whole);
    return is_whole && matcher->trie->n_ends == 1 ? matcher->trie->ends[0] : -1;
}

const char *pith_matcher_failed(const pith_matcher *matcher) {
    return matcher->failed;
}

/* ---- as a filter ---- */

static bool filter_allows(void *user, int32_t id) {
    return pith_matcher_allows(user, id);
}

static const uint32_t *filter_mask(void *user) {
    return pith_matcher_mask(user);
}

static int32_t filter_only(void *user) {
    return pith_matcher_only(user);
}

pith_token_filter pith_matcher_filter(pith_matcher *matcher) {
    return (pith_token_filter){matcher, filter_allows, filter_mask, filter_only};
}
