/* SPDX-License-Identifier: Apache-2.0
 * Making a table: one walk over the vocabulary's tree from one state.
 *
 * Owns: what is certain, with which need, and where the exits are. Subtrees all of whose characters
 * lead from a config back to itself, as letters do within a string, are taken as a whole: their
 * needs follow from the number of characters. Only bytes that may follow the part in any of its
 * surroundings make an exit. Read next: matcher_table.c. */
#include "sample/matcher_table.h"

#include "base/memory.h"

#include <string.h>

enum { MOST_PARTS = 64, MOST_SITES = 1024, MEMOS = 8, LEAST_RUN = 4 /* nodes */ };

/* Which characters lead from a config back to it. */
typedef struct turning {
    uint32_t config; /* PITH_NONE: nothing is known */
    uint32_t kinds;  /* bits of pith_token_trie.kinds */
    uint32_t rise;   /* of relative counts by each character */
} turning;

typedef struct survey {
    pith_matcher *m;
    pith_table *table;
    uint32_t loop; /* the counter on top; PITH_NONE: none */
    bool is_counted;
    bool follows[256]; /* bytes that may come after the part */
    turning turnings[MEMOS];
    bool failed; /* memory */
} survey;

/* ---- what may follow ---- */

/* Parts whose surroundings are to be looked at. */
typedef struct part_list {
    uint32_t parts[MOST_PARTS];
    uint32_t n, n_sites;
    bool is_full;
} part_list;

static void add_part(part_list *list, uint32_t part) {
    for (uint32_t i = 0; i < list->n; i++)
        if (list->parts[i] == part) return;
    list->is_full |= list->n == MOST_PARTS;
    if (!list->is_full) list->parts[list->n++] = part;
}

/* Bytes that may come at the site. */
static bool add_site(survey *s, const pith_grammar_site *site, part_list *list) {
    pith_matcher *m = s->m;
    if (site->next == PITH_GRAMMAR_NOWHERE) {
        add_part(list, site->part);
        return true;
    }
    pith_matcher_open(m);
    if (!pith_matcher_add(m, site->next, PITH_STACK_BELOW)) return false;
    const uint32_t number = pith_matcher_close(m); /* which may move the configs */
    const pith_config config = m->configs[number];
    if (config.done) add_part(list, site->part);
    for (uint32_t i = 0; i < config.n; i++) {
        const pith_state *state = &m->grammar->states[m->threads[config.first + i] >> 32];
        for (uint32_t k = 0; state->kind == PITH_STATE_EDGES && k < state->b; k++) {
            const pith_edge *edge = &m->grammar->edges[state->a + k];
            memset(s->follows + edge->first, 1, (size_t)(edge->last - edge->first) + 1);
        }
    }
    return m->trouble == NULL;
}

static bool add_sites(survey *s, uint32_t part, bool rounds, part_list *list) {
    const pith_grammar *g = s->m->grammar;
    uint32_t first = g->part_sites[part], end = g->part_sites[part + 1];
    list->n_sites += end - first;
    list->is_full |= list->n_sites > MOST_SITES;
    for (uint32_t i = first; i < end && !list->is_full; i++)
        if ((rounds || !g->sites[i].is_round) && !add_site(s, &g->sites[i], list)) return false;
    return true;
}

/* Of the part itself more rounds are no way out; of those around it they are. */
static bool find_follows(survey *s, uint32_t part) {
    part_list list = {.n = 0};
    if (!add_sites(s, part, false, &list)) return false;
    for (uint32_t i = 0; i < list.n; i++)
        if (!add_sites(s, list.parts[i], true, &list)) return false;
    if (list.is_full) memset(s->follows, 1, sizeof s->follows); /* too many to ask all */
    return true;
}

/* ---- lists ---- */

static void append(survey *s, pith_needed_list *list, uint32_t number, uint32_t need) {
    if (list->n == list->capacity) {
        uint32_t wanted = list->capacity == 0 ? 256 : list->capacity * 2;
        pith_needed *grown = pith_realloc(list->data, wanted * sizeof *grown);
        if (grown == NULL) {
            s->failed = true;
            return;
        }
        list->data = grown;
        list->capacity = wanted;
    }
    list->data[list->n++] = (pith_needed){number, need};
}

static void set_bit(uint32_t *bits, uint32_t id) {
    bits[id / 32] |= 1u << (id % 32);
}

/* Level `need` holds the ids of that need alone until fill_levels. */
static void add_id(survey *s, uint32_t id, uint32_t need) {
    pith_table *table = s->table;
    if (table->bits == NULL)
        append(s, &table->ids, id, need);
    else if (table->levels == NULL)
        set_bit(table->bits, id);
    else if (need < PITH_TABLE_LEVELS)
        set_bit(table->levels + (size_t)need * s->m->trie->n_words, id);
    else
        append(s, &table->ids, id, need);
}

/* The list has become long: bits. */
static void turn_into_bits(survey *s) {
    const size_t n_words = s->m->trie->n_words;
    pith_needed_list few = s->table->ids;
    s->table->ids = (pith_needed_list){0};
    s->table->bits = pith_alloc_zero(n_words, sizeof(uint32_t));
    if (s->is_counted)
        s->table->levels = pith_alloc_zero(n_words * PITH_TABLE_LEVELS, sizeof(uint32_t));
    s->failed |= s->table->bits == NULL || (s->is_counted && s->table->levels == NULL);
    for (uint32_t i = 0; i < few.n && !s->failed; i++)
        add_id(s, few.data[i].number, few.data[i].need);
    pith_free(few.data);
}

static void add_ids(survey *s, uint32_t first, uint32_t end, uint32_t need) {
    const pith_token_trie *trie = s->m->trie;
    if (first == end) return;
    if (need > s->table->most_need) s->table->most_need = need;
    if (s->table->bits == NULL && s->table->ids.n + (end - first) > trie->n_words / 2)
        turn_into_bits(s);
    for (uint32_t i = first; i < end && !s->failed; i++) add_id(s, (uint32_t)trie->ids[i], need);
}

/* Every way in which the part may have ended before the node's byte. */
static void add_exits(survey *s, const pith_config *config, uint32_t risen, uint32_t node) {
    const pith_matcher *m = s->m;
    for (uint32_t i = 0; i < config->n; i++) {
        pith_thread thread = m->threads[config->first + i];
        if (thread >> 32 != 0) break; /* sorted: those that are done come first */
        uint32_t count = s->loop == PITH_NONE ? 0 : m->frames[(uint32_t)thread].count;
        append(s, &s->table->exits, node, risen + count);
    }
}

/* ---- characters that lead back ---- */

/* Well-formed UTF-8 (base/utf8.c): after each first byte the range of the second. */
static const struct {
    uint8_t first, last, low, high, n_more;
} forms[] = {{0xC2, 0xDF, 0x80, 0xBF, 1}, {0xE0, 0xE0, 0xA0, 0xBF, 2}, {0xE1, 0xEC, 0x80, 0xBF, 2},
             {0xED, 0xED, 0x80, 0x9F, 2}, {0xEE, 0xEF, 0x80, 0xBF, 2}, {0xF0, 0xF0, 0x90, 0xBF, 3},
             {0xF1, 0xF3, 0x80, 0xBF, 3}, {0xF4, 0xF4, 0x80, 0x8F, 3}};
enum { N_FORMS = sizeof forms / sizeof *forms };

/* Do all bytes of [low, high] and n_more - 1 behind them lead to `back`, without a rise? Depth: at
 * most 3. */
static bool rest_leads_back(survey *s, uint32_t config, const uint8_t range[2], uint32_t n_more,
                            uint32_t back) {
    static const uint8_t any[2] = {0x80, 0xBF};
    pith_matcher *m = s->m;
    if (m->configs[config].done || m->configs[config].low != 0) return false;
    for (uint32_t byte = range[0]; byte <= range[1]; byte++) {
        uint32_t class = m->grammar->class_of[byte];
        if (byte > range[0] && class == m->grammar->class_of[byte - 1]) continue;
        uint32_t next = pith_matcher_next(m, config, class);
        if (next == PITH_CONFIG_DEAD || next > PITH_ROW_CONFIG) return false;
        if (n_more == 1 ? next != back : !rest_leads_back(s, next, any, n_more - 1, back))
            return false;
    }
    return true;
}

static bool other_characters_lead_back(survey *s, uint32_t config, uint32_t rise) {
    pith_matcher *m = s->m;
    for (uint32_t i = 0; i < N_FORMS; i++) {
        const uint8_t second[2] = {forms[i].low, forms[i].high};
        for (uint32_t byte = forms[i].first; byte <= forms[i].last; byte++) {
            uint32_t class = m->grammar->class_of[byte];
            if (m->configs[config].done && s->follows[byte]) return false;
            if (byte > forms[i].first && class == m->grammar->class_of[byte - 1]) continue;
            uint32_t next = pith_matcher_next(m, config, class);
            if (next == PITH_CONFIG_DEAD || next >> PITH_ROW_SHIFT != rise) return false;
            if (!rest_leads_back(s, next & PITH_ROW_CONFIG, second, forms[i].n_more, config))
                return false;
        }
    }
    return true;
}

/* Bytes below 80 that do not lead back with the same rise, as kinds. */
static uint32_t leading_away(survey *s, uint32_t config, uint32_t rise) {
    pith_matcher *m = s->m;
    uint32_t kinds = 0;
    for (uint32_t byte = 0; byte < 0x80; byte++) {
        uint32_t next = pith_matcher_next(m, config, m->grammar->class_of[byte]);
        bool leads_out = m->configs[config].done && s->follows[byte];
        if (leads_out || next != (config | rise << PITH_ROW_SHIFT))
            kinds |= pith_trie_kind((uint8_t)byte);
    }
    return kinds;
}

static const turning *turning_of(survey *s, uint32_t config) {
    turning *known = &s->turnings[config % MEMOS];
    if (known->config == config) return known;
    const pith_config *c = &s->m->configs[config];
    *known = (turning){.config = config};
    if (c->is_open && c->low != 0) return known;
    uint32_t next = pith_matcher_next(s->m, config, s->m->grammar->class_of['e']);
    if ((next & PITH_ROW_CONFIG) != config) return known; /* no text that goes on and on */
    known->rise = next >> PITH_ROW_SHIFT;
    if (known->rise > 1) return known;
    known->kinds = PITH_TRIE_ASCII & ~leading_away(s, config, known->rise);
    if (other_characters_lead_back(s, config, known->rise)) known->kinds |= PITH_TRIE_OTHER;
    return known;
}

/* The ids of nodes [node, end), which need as many rounds more as they have characters. */
static void take_counted(survey *s, uint32_t node, uint32_t end) {
    const pith_token_trie *trie = s->m->trie;
    const size_t n_words = trie->n_words;
    uint32_t *risen = s->m->risen, *levels = s->table->levels;
    uint32_t most = s->table->most_need;
    for (; node < end; node++) {
        const uint32_t depth = trie->depth[node], first = trie->first[node + 1];
        const uint32_t need = risen[depth - 1] + ((trie->byte[node] & 0xC0) != 0x80);
        risen[depth] = need;
        uint32_t i = trie->first[node];
        if (i < first && need > most) most = need;
        if (levels == NULL || need >= PITH_TABLE_LEVELS) {
            add_ids(s, i, first, need);
            levels = s->table->levels; /* the list may have become bits */
            continue;
        }
        for (; i < first; i++) set_bit(levels + need * n_words, (uint32_t)trie->ids[i]);
    }
    s->table->most_need = most;
}

/* Takes the whole subtree of the node. */
static void take_run(survey *s, uint32_t node, uint32_t rise) {
    const pith_token_trie *trie = s->m->trie;
    const uint32_t end = trie->skip[node];
    if (rise > 0)
        take_counted(s, node, end);
    else
        add_ids(s, trie->first[node], trie->first[end], s->m->risen[trie->depth[node] - 1]);
}

/* Takes the subtree of the node when all of it leads back to the config before it. */
static bool takes_run(survey *s, uint32_t node) {
    const pith_token_trie *trie = s->m->trie;
    if (trie->skip[node] - node < LEAST_RUN || (trie->byte[node] & 0xC0) == 0x80) return false;
    const turning *t = turning_of(s, s->m->path[trie->depth[node] - 1]);
    if (s->m->trouble != NULL || (trie->kinds[node] & ~t->kinds) != 0) return false;
    take_run(s, node, t->rise);
    s->m->work += trie->skip[node] - node;
    return true;
}

/* ---- the walk ---- */

static bool walk(survey *s, uint32_t config) {
    pith_matcher *m = s->m;
    const pith_token_trie *trie = m->trie;
    m->path[0] = config;
    m->risen[0] = 0;
    for (uint32_t node = 0; node < trie->n_nodes && !s->failed; m->work++) {
        const uint32_t depth = trie->depth[node], above = m->path[depth - 1];
        const uint8_t byte = trie->byte[node];
        if (takes_run(s, node)) {
            node = trie->skip[node];
            continue;
        }
        if (m->configs[above].done && s->follows[byte])
            add_exits(s, &m->configs[above], m->risen[depth - 1], node);
        uint32_t next = pith_matcher_next(m, above, m->grammar->class_of[byte]);
        if (m->trouble != NULL) return false;
        if (next == PITH_CONFIG_DEAD) {
            node = trie->skip[node];
            continue;
        }
        m->risen[depth] = m->risen[depth - 1] + (next >> PITH_ROW_SHIFT);
        m->path[depth] = next & PITH_ROW_CONFIG;
        if (trie->first[node] < trie->first[node + 1])
            add_ids(s, trie->first[node], trie->first[node + 1],
                    m->risen[depth] + m->configs[m->path[depth]].low);
        node++;
    }
    return !s->failed;
}

static bool survey_state(survey *s) {
    pith_matcher *m = s->m;
    uint32_t stack = PITH_STACK_BELOW;
    if (!find_follows(s, m->grammar->states[s->table->state].part)) return false;
    pith_matcher_open(m);
    if (s->loop != PITH_NONE) {
        stack = pith_matcher_push(m, PITH_STACK_OPEN, PITH_LOOP_BIT | s->loop, 0);
        m->is_open = true;
    }
    if (!pith_matcher_add(m, s->table->state, stack)) return false;
    uint32_t config = pith_matcher_close(m);
    return m->trouble == NULL && walk(s, config);
}

/* ---- the table ---- */

/* Afterwards a level holds those of lower needs too, and `bits` all. */
static void fill_levels(pith_table *table, uint32_t n_words) {
    if (table->levels == NULL) return;
    uint32_t n =
        table->most_need + 1 < PITH_TABLE_LEVELS ? table->most_need + 1 : PITH_TABLE_LEVELS;
    for (size_t i = n_words; i < (size_t)n * n_words; i++)
        table->levels[i] |= table->levels[i - n_words];
    memcpy(table->bits, table->levels + (size_t)(n - 1) * n_words, n_words * sizeof *table->bits);
    for (uint32_t i = 0; i < table->ids.n; i++) set_bit(table->bits, table->ids.data[i].number);
    table->n_levels = n;
}

static bool sort_exits(pith_table *table, const pith_token_trie *trie) {
    const pith_needed_list found = table->exits;
    uint32_t *at = table->exit_first;
    pith_needed *sorted = pith_alloc_array(found.n, sizeof *sorted);
    if (sorted == NULL) return false;
    for (uint32_t i = 0; i < found.n; i++) at[trie->byte[found.data[i].number] + 1]++;
    for (uint32_t byte = 0; byte < 256; byte++) at[byte + 1] += at[byte];
    for (uint32_t i = 0; i < found.n; i++)
        sorted[at[trie->byte[found.data[i].number]]++] = found.data[i];
    for (uint32_t byte = 256; byte > 0; byte--) at[byte] = at[byte - 1];
    at[0] = 0;
    pith_free(table->exits.data);
    table->exits = (pith_needed_list){sorted, found.n, found.n};
    return true;
}

bool pith_matcher_survey(pith_matcher *matcher, pith_table *table, uint32_t loop) {
    const pith_grammar *g = matcher->grammar;
    survey s = {.m = matcher, .table = table, .loop = loop};
    s.is_counted = loop != PITH_NONE && g->bodies[g->loops[loop].body].is_counted;
    for (uint32_t i = 0; i < MEMOS; i++) s.turnings[i].config = PITH_NONE;
    if (!survey_state(&s) || !sort_exits(table, matcher->trie)) return false;
    fill_levels(table, matcher->trie->n_words);
    return true;
}
