/* SPDX-License-Identifier: Apache-2.0
 * All tokens at once: which ids keep the text allowed.
 *
 * The vocabulary's tree is walked together with the configs; where a byte is not allowed the whole
 * subtree is left out. Threads that allow many bytes are looked up in tables instead, which cost a
 * whole walk once. Masks are kept by config, the oldest is replaced. The work of one mask is
 * bounded; past it the matcher fails. Read next: matcher_table.c, matcher.c. */
#include "sample/matcher_internal.h"

#include <string.h>

enum { MOST_LOOKED_UP = 16 /* threads; more of them are walked together */ };

static void set_ids(const pith_token_trie *trie, uint32_t first, uint32_t last, uint32_t *bits) {
    for (uint32_t i = first; i < last; i++) {
        uint32_t id = (uint32_t)trie->ids[i];
        bits[id / 32] |= 1u << (id % 32);
    }
}

bool pith_matcher_walk(pith_matcher *matcher, uint32_t config, uint32_t node, uint32_t end,
                       uint32_t *bits) {
    pith_matcher *m = matcher;
    const pith_token_trie *trie = m->trie;
    if (node >= end) return true;
    const uint32_t above = trie->depth[node] - 1u;
    m->path[above] = config;
    while (node < end) {
        uint32_t depth = trie->depth[node];
        uint32_t class = m->grammar->class_of[trie->byte[node]];
        uint32_t next = pith_matcher_next(m, m->path[depth - 1], class);
        m->work++;
        if (next == PITH_CONFIG_DEAD) {
            if (m->trouble != NULL) return false;
            node = trie->skip[node];
            continue;
        }
        m->path[depth] = next;
        set_ids(trie, trie->first[node], trie->first[node + 1], bits);
        node++;
    }
    return true;
}

static void set_tokens(const pith_matcher *m, const pith_config *config, uint32_t *bits) {
    for (uint32_t i = 0; i < config->n; i++) {
        const pith_state *state = &m->grammar->states[m->threads[config->first + i] >> 32];
        if (state->kind != PITH_STATE_TOKEN) continue;
        if (!state->negated) {
            if (state->a < (uint32_t)m->trie->n_vocab) bits[state->a / 32] |= 1u << (state->a % 32);
            continue;
        }
        for (int32_t id = 0; id < m->trie->n_vocab; id++)
            if ((uint32_t)id != state->a && !pith_trie_is_end(m->trie, id))
                bits[id / 32] |= 1u << (id % 32);
    }
}

/* Threads one by one where they have tables; the others together, as one config. */
static bool set_threads(pith_matcher *m, const pith_config *config, uint32_t *bits) {
    pith_thread others[MOST_LOOKED_UP];
    uint32_t n = 0;
    for (uint32_t i = 0; i < config->n; i++) {
        bool looked_up;
        pith_thread thread = m->threads[config->first + i];
        if (!pith_matcher_look_up(m, thread, bits, &looked_up)) return false;
        if (!looked_up) others[n++] = thread;
    }
    pith_matcher_open(m);
    for (uint32_t i = 0; i < n; i++)
        if (!pith_matcher_add(m, (uint32_t)(others[i] >> 32), (uint32_t)others[i])) return false;
    uint32_t rest = pith_matcher_close(m);
    return m->trouble == NULL && pith_matcher_walk(m, rest, 0, m->trie->n_nodes, bits);
}

static bool fill(pith_matcher *m, uint32_t number, uint32_t *bits) {
    const pith_token_trie *trie = m->trie;
    const pith_config config = m->configs[number];
    memset(bits, 0, trie->n_words * sizeof *bits);
    if (config.tokens) set_tokens(m, &config, bits);
    if (config.done)
        for (uint32_t i = 0; i < trie->n_ends; i++)
            bits[trie->ends[i] / 32] |= 1u << (trie->ends[i] % 32);
    if (config.n > MOST_LOOKED_UP) return pith_matcher_walk(m, number, 0, trie->n_nodes, bits);
    return set_threads(m, &config, bits);
}

/* The place for one more mask: a new one, or the oldest. */
static pith_mask *mask_place(pith_matcher *m) {
    if (m->n_masks < PITH_MATCHER_MASKS &&
        m->trie->n_words * sizeof(uint32_t) < pith_matcher_room(m) / 4) {
        pith_mask *place = &m->masks[m->n_masks];
        place->bits = pith_matcher_take(m, m->trie->n_words * sizeof *place->bits);
        if (place->bits != NULL) m->n_masks++;
    }
    if (m->n_masks == 0) {
        (void)pith_matcher_give_up(m, "the memory given does not hold a mask");
        return NULL;
    }
    if (m->next_mask >= m->n_masks) m->next_mask = 0;
    return &m->masks[m->next_mask++];
}

const uint32_t *pith_matcher_find_mask(pith_matcher *matcher) {
    for (uint32_t i = 0; i < matcher->n_masks; i++)
        if (matcher->masks[i].config == matcher->current) return matcher->masks[i].bits;
    pith_mask *place = mask_place(matcher);
    if (place == NULL) return NULL;
    place->config = PITH_NONE;
    if (!fill(matcher, matcher->current, place->bits)) return NULL;
    place->config = matcher->current;
    return place->bits;
}
