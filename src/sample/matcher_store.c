/* SPDX-License-Identifier: Apache-2.0
 * What a matcher has learnt: frames, configs, rows, and the memory they take.
 *
 * Invariants: a frame's stack below has a lower number, and a config's threads lie behind those of
 * configs with lower numbers; so what is kept moves down in one pass, in place, and sorted threads
 * stay sorted. `used` is the bytes of all arrays. Does not: know what states mean. Read next:
 * matcher_step.c. */
#include "sample/matcher_internal.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BUCKETS = 1 << 8, PAST_KEPT = 1024 };

bool pith_matcher_give_up(pith_matcher *matcher, const char *why) {
    if (matcher->trouble == NULL) matcher->trouble = why;
    return false;
}

static bool full(pith_matcher *m) {
    if (m->trouble == NULL) m->is_full = true;
    return pith_matcher_give_up(m, "the grammar's states take more memory than they may");
}

void *pith_matcher_take(pith_matcher *matcher, size_t bytes) {
    void *taken = bytes <= pith_matcher_room(matcher) ? pith_alloc_zero(bytes, 1) : NULL;
    if (taken == NULL) {
        full(matcher);
        return NULL;
    }
    matcher->used += bytes;
    return taken;
}

/* Doubles, or grows by less where memory is short. */
void *pith_matcher_grow(pith_matcher *matcher, void *array, uint32_t *capacity,
                        size_t element_bytes, uint32_t needed) {
    if (needed <= *capacity && array != NULL) return array;
    uint64_t wanted = *capacity < 64 ? 64 : (uint64_t)*capacity * 2;
    if (wanted < needed) wanted = needed;
    uint64_t room = pith_matcher_room(matcher) / element_bytes + *capacity;
    if (wanted > room) wanted = room;
    if (wanted < needed || wanted > UINT32_MAX / 2) {
        full(matcher);
        return NULL;
    }
    void *grown = pith_realloc(array, (size_t)wanted * element_bytes);
    if (grown == NULL) {
        full(matcher);
        return NULL;
    }
    matcher->used += ((size_t)wanted - *capacity) * element_bytes;
    *capacity = (uint32_t)wanted;
    return grown;
}

static uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t h = (a ^ b * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
    return h ^ h >> 32;
}

/* ---- frames ---- */

static uint32_t frame_bucket(const pith_matcher *m, const pith_frame *f) {
    uint64_t hash = mix((uint64_t)f->parent << 32 | f->what, f->count);
    return (uint32_t)hash & (m->n_frame_buckets - 1);
}

static void link_frames(pith_matcher *m) {
    memset(m->frame_buckets, 0, m->n_frame_buckets * sizeof *m->frame_buckets);
    for (uint32_t i = 1; i < m->n_frames; i++) {
        uint32_t *bucket = &m->frame_buckets[frame_bucket(m, &m->frames[i])];
        m->frames[i].next = *bucket;
        *bucket = i;
    }
}

/* A larger table where memory allows; else chains grow longer. */
static bool more_buckets(pith_matcher *m, uint32_t **buckets, uint32_t *n) {
    size_t bytes = (size_t)*n * 2 * sizeof **buckets;
    if (bytes > pith_matcher_room(m) / 2) return false;
    uint32_t *grown = pith_alloc(bytes);
    if (grown == NULL) return false;
    m->used += bytes / 2;
    pith_free(*buckets);
    *buckets = grown;
    *n *= 2;
    return true;
}

uint32_t pith_matcher_push(pith_matcher *matcher, uint32_t stack, uint32_t what, uint32_t count) {
    pith_frame frame = {.parent = stack, .what = what, .count = count};
    uint32_t at = frame_bucket(matcher, &frame);
    for (uint32_t i = matcher->frame_buckets[at]; i != 0; i = matcher->frames[i].next) {
        const pith_frame *f = &matcher->frames[i];
        if (f->parent == stack && f->what == what && f->count == count) return i;
    }
    void *grown = pith_matcher_grow(matcher, matcher->frames, &matcher->frames_capacity,
                                    sizeof *matcher->frames, matcher->n_frames + 1);
    if (grown == NULL) return PITH_NONE;
    matcher->frames = grown;
    frame.next = matcher->frame_buckets[at];
    matcher->frames[matcher->n_frames] = frame;
    matcher->frame_buckets[at] = matcher->n_frames++;
    if (matcher->n_frames > matcher->n_frame_buckets &&
        more_buckets(matcher, &matcher->frame_buckets, &matcher->n_frame_buckets))
        link_frames(matcher);
    return matcher->n_frames - 1;
}

/* ---- configs ---- */

static uint32_t threads_bucket(const pith_matcher *m, const pith_thread *threads, uint32_t n) {
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++) hash = mix(hash, threads[i]);
    return (uint32_t)hash & (m->n_config_buckets - 1);
}

static void link_configs(pith_matcher *m) {
    memset(m->config_buckets, 0, m->n_config_buckets * sizeof *m->config_buckets);
    for (uint32_t i = 1; i < m->n_configs; i++) {
        pith_config *config = &m->configs[i];
        uint32_t *bucket =
            &m->config_buckets[threads_bucket(m, m->threads + config->first, config->n)];
        config->next = *bucket;
        *bucket = i;
    }
}

static int by_number(const void *a, const void *b) {
    const pith_thread x = *(const pith_thread *)a, y = *(const pith_thread *)b;
    return x < y ? -1 : x > y;
}

static void sort_threads(pith_thread *list, uint32_t n) {
    if (n > 16) {
        qsort(list, n, sizeof *list, by_number);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        pith_thread moved = list[i];
        uint32_t k = i;
        for (; k > 0 && list[k - 1] > moved; k--) list[k] = list[k - 1];
        list[k] = moved;
    }
}

uint32_t pith_matcher_intern(pith_matcher *matcher) {
    pith_matcher *m = matcher;
    const uint32_t n = m->n_found;
    if (n == 0) return PITH_CONFIG_DEAD;
    sort_threads(m->found, n);
    uint32_t at = threads_bucket(m, m->found, n);
    for (uint32_t i = m->config_buckets[at]; i != 0; i = m->configs[i].next) {
        const pith_config *config = &m->configs[i];
        if (config->n == n &&
            memcmp(m->threads + config->first, m->found, n * sizeof *m->found) == 0)
            return i;
    }
    if (m->n_configs >= PITH_ROW_CONFIG) {
        full(m);
        return PITH_CONFIG_DEAD;
    }
    void *grown = pith_matcher_grow(m, m->configs, &m->configs_capacity, sizeof *m->configs,
                                    m->n_configs + 1);
    if (grown == NULL) return PITH_CONFIG_DEAD;
    m->configs = grown;
    grown = pith_matcher_grow(m, m->threads, &m->threads_capacity, sizeof *m->threads,
                              m->n_threads + n);
    if (grown == NULL) return PITH_CONFIG_DEAD;
    m->threads = grown;
    pith_config config = {.first = m->n_threads,
                          .n = n,
                          .row = PITH_NONE,
                          .next = m->config_buckets[at],
                          .low = (uint16_t)m->low,
                          .is_open = m->is_open};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t state = (uint32_t)(m->found[i] >> 32);
        config.done |= m->grammar->states[state].kind == PITH_STATE_DONE;
        config.tokens |= m->grammar->states[state].kind == PITH_STATE_TOKEN;
        m->threads[m->n_threads++] = m->found[i];
    }
    m->configs[m->n_configs] = config;
    m->config_buckets[at] = m->n_configs++;
    if (m->n_configs > m->n_config_buckets &&
        more_buckets(m, &m->config_buckets, &m->n_config_buckets))
        link_configs(m);
    return m->n_configs - 1;
}

/* ---- forgetting ---- */

/* Marks by `row`, which is dropped anyway: 1 kept, 0 not. */
static void mark_configs(pith_matcher *m) {
    for (uint32_t i = 0; i < m->n_configs; i++) m->configs[i].row = 0;
    m->configs[PITH_CONFIG_DEAD].row = m->configs[m->start].row = 1;
    m->configs[m->current].row = 1;
    for (uint32_t i = 0; i < m->n_ids; i++)
        if (m->past[i] != PITH_NONE) m->configs[m->past[i]].row = 1;
}

/* Frames that kept configs need move down; `next` of the old place says where to. */
static void move_frames(pith_matcher *m) {
    for (uint32_t i = 0; i < m->n_frames; i++) m->frames[i].next = 0;
    m->frames[PITH_STACK_BELOW].next = m->frames[PITH_STACK_OPEN].next = 1;
    for (uint32_t i = 0; i < m->n_configs; i++) {
        const pith_config *config = &m->configs[i];
        for (uint32_t k = 0; config->row != 0 && k < config->n; k++)
            m->frames[(uint32_t)m->threads[config->first + k]].next = 1;
    }
    for (uint32_t i = m->n_frames; i-- > 1;)
        if (m->frames[i].next != 0) m->frames[m->frames[i].parent].next = 1;
    m->frames[PITH_STACK_EMPTY].next = 0; /* stays where it is */
    uint32_t n = 1;
    for (uint32_t i = 1; i < m->n_frames; i++) {
        if (m->frames[i].next == 0) continue;
        pith_frame frame = m->frames[i];
        frame.parent = m->frames[frame.parent].next;
        m->frames[i].next = n;
        frame.next = m->frames[n].next; /* the place that is overwritten, n <= i, moved too */
        m->frames[n++] = frame;
    }
    m->n_frames = n;
}

/* Kept configs and their threads move down; `next` of the old place says where to. */
static void move_configs(pith_matcher *m) {
    uint32_t n = 0, n_threads = 0;
    for (uint32_t i = 0; i < m->n_configs; i++) {
        pith_config config = m->configs[i];
        if (config.row == 0) continue;
        for (uint32_t k = 0; k < config.n; k++) {
            pith_thread thread = m->threads[config.first + k];
            uint32_t stack = m->frames[(uint32_t)thread].next;
            m->threads[n_threads + k] = pith_thread_of((uint32_t)(thread >> 32), stack);
        }
        config.first = n_threads;
        config.row = PITH_NONE;
        n_threads += config.n;
        m->configs[i].next = n;
        config.next = m->configs[n].next;
        m->configs[n++] = config;
    }
    m->start = m->configs[m->start].next;
    m->current = m->configs[m->current].next;
    for (uint32_t i = 0; i < m->n_ids; i++)
        if (m->past[i] != PITH_NONE) m->past[i] = m->configs[m->past[i]].next;
    m->n_configs = n;
    m->n_threads = n_threads;
}

static void *shrink(pith_matcher *m, void *array, uint32_t *capacity, size_t element_bytes,
                    uint32_t needed) {
    uint32_t wanted = needed < 32 ? 64 : needed * 2;
    if (wanted >= *capacity) return array;
    void *smaller = pith_realloc(array, wanted * element_bytes);
    if (smaller == NULL) return array;
    m->used -= (*capacity - wanted) * element_bytes;
    *capacity = wanted;
    return smaller;
}

static void collect_once(pith_matcher *m) {
    mark_configs(m);
    move_frames(m);
    move_configs(m);
    m->n_rows = 0;
    for (uint32_t i = 0; i < m->n_masks; i++) m->masks[i].config = PITH_NONE;
    m->frames = shrink(m, m->frames, &m->frames_capacity, sizeof *m->frames, m->n_frames);
    m->configs = shrink(m, m->configs, &m->configs_capacity, sizeof *m->configs, m->n_configs);
    m->threads = shrink(m, m->threads, &m->threads_capacity, sizeof *m->threads, m->n_threads);
    m->rows = shrink(m, m->rows, &m->rows_capacity, sizeof *m->rows, 0);
    link_frames(m);
    link_configs(m);
}

void pith_matcher_collect(pith_matcher *matcher) {
    pith_matcher_drop_tables(matcher);
    collect_once(matcher);
    if (matcher->used <= matcher->memory / 2 || matcher->n_ids <= PAST_KEPT) return;
    for (uint32_t i = 0; i < matcher->n_ids - PAST_KEPT; i++) matcher->past[i] = PITH_NONE;
    collect_once(matcher);
}

bool pith_matcher_store_init(pith_matcher *matcher) {
    pith_matcher *m = matcher;
    m->n_frame_buckets = m->n_config_buckets = FIRST_BUCKETS;
    m->frame_buckets = pith_matcher_take(m, FIRST_BUCKETS * sizeof *m->frame_buckets);
    m->config_buckets = pith_matcher_take(m, FIRST_BUCKETS * sizeof *m->config_buckets);
    m->frames = pith_matcher_grow(m, NULL, &m->frames_capacity, sizeof *m->frames, 2);
    m->configs = pith_matcher_grow(m, NULL, &m->configs_capacity, sizeof *m->configs, 1);
    m->threads = pith_matcher_grow(m, NULL, &m->threads_capacity, sizeof *m->threads, 1);
    m->rows = pith_matcher_grow(m, NULL, &m->rows_capacity, sizeof *m->rows, 1);
    if (!m->frame_buckets || !m->config_buckets || !m->frames || !m->configs || !m->threads ||
        !m->rows)
        return false;
    m->frames[PITH_STACK_EMPTY] = (pith_frame){.what = PITH_NONE};
    m->configs[PITH_CONFIG_DEAD] = (pith_config){.row = PITH_NONE};
    m->n_frames = m->n_configs = 1;
    return pith_matcher_push(m, PITH_STACK_EMPTY, PITH_NONE, 0) == PITH_STACK_BELOW &&
           pith_matcher_push(m, PITH_STACK_EMPTY, PITH_NONE, 1) == PITH_STACK_OPEN;
}

void pith_matcher_store_deinit(pith_matcher *matcher) {
    pith_free(matcher->frame_buckets);
    pith_free(matcher->config_buckets);
    pith_free(matcher->frames);
    pith_free(matcher->configs);
    pith_free(matcher->threads);
    pith_free(matcher->rows);
}
