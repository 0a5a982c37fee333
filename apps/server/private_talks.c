/* SPDX-License-Identifier: Apache-2.0
 * Digests of marked talks, in two sets: when the newer is full, the older is dropped.
 *
 *   messages  m1 m2 m3    each that is long by itself; and the talk up to each: m1, m1 m2, ...
 *   prompt    "...."      each beginning of the text
 *
 * Invariant: no text is kept, and the seed is the process's, so digests mean nothing elsewhere.
 * Read next: private_marks.c. */
#include "server/private_talks.h"

#include "base/clock.h"
#include "base/memory.h"
#include "server/fields.h"
#include "server/folded_text.h"

#include <pthread.h>
#include <string.h>

enum {
    SLOTS = 4 * PITH_TALKS_REMEMBERED, /* of a set; a power of two */
    LEAST_MESSAGE = 22                 /* bytes of what is known without what was said before it */
};
#define FNV_PRIME 0x100000001B3u

typedef struct digest_set {
    uint64_t slots[SLOTS]; /* 0: free */
    size_t n;
} digest_set;

struct pith_talks {
    pthread_mutex_t lock; /* of the sets */
    uint64_t seed;
    digest_set *newer, *older;
};

/* ---- Sets ---- */

/* The digest's slot, or the free one where it belongs. */
static uint64_t *slot_of(digest_set *set, uint64_t digest) {
    size_t at = (size_t)(digest ^ digest >> 32) & (SLOTS - 1);
    while (set->slots[at] && set->slots[at] != digest) at = (at + 1) & (SLOTS - 1);
    return &set->slots[at];
}

/* Under the lock. */
static bool has(pith_talks *t, uint64_t digest) {
    return *slot_of(t->newer, digest) || *slot_of(t->older, digest);
}

static bool is_known(pith_talks *t, uint64_t digest) {
    pthread_mutex_lock(&t->lock);
    bool known = has(t, digest);
    pthread_mutex_unlock(&t->lock);
    return known;
}

static void add(pith_talks *t, uint64_t digest) {
    pthread_mutex_lock(&t->lock);
    if (t->newer->n == PITH_TALKS_REMEMBERED) {
        digest_set *full = t->newer;
        t->newer = t->older;
        t->older = full;
        memset(t->newer, 0, sizeof *t->newer);
    }
    uint64_t *slot = slot_of(t->newer, digest);
    t->newer->n += *slot == 0;
    *slot = digest;
    pthread_mutex_unlock(&t->lock);
}

/* ---- What is said ---- */

static void append(pith_buffer *text, const json_t *string) {
    if (json_is_string(string))
        pith_buffer_append(text, json_string_value(string), json_string_length(string));
}

/* The texts of a message: its content, whole or in parts, and the calls that it makes. */
static void append_message(pith_buffer *text, const json_t *message) {
    const json_t *content = json_object_get(message, "content");
    const json_t *calls = json_object_get(message, "tool_calls");
    append(text, content);
    for (size_t i = 0; i < json_array_size(content); i++)
        append(text, json_object_get(json_array_get(content, i), "text"));
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_object_get(json_array_get(calls, i), "function");
        append(text, json_object_get(call, "name"));
        append(text, json_object_get(call, "arguments"));
    }
}

/* Folded, without the space that may be at its end. */
static bool fold(pith_buffer *text, pith_buffer *folded) {
    if (text->data) pith_folded_text_append(folded, text->data, text->size);
    while (folded->size > 0 && folded->data[folded->size - 1] == ' ') folded->size--;
    return !text->failed && !folded->failed;
}

static bool is_system(const json_t *message) {
    const char *role = json_string_value(json_object_get(message, "role"));
    return role && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0);
}

/* 0 is no digest. */
static uint64_t digest_of(const void *data, size_t size, uint64_t seed) {
    uint64_t digest = pith_hash(data, size, seed);
    return digest ? digest : 1;
}

typedef struct digests {
    uint64_t talk;            /* up to this message, with it */
    uint64_t own;             /* of the message alone; 0: too short to be known by itself */
    bool failed, is_left_out; /* left out: instructions, which many talks share */
} digests;

static digests read_message(const json_t *message, uint64_t before, uint64_t seed) {
    pith_buffer text = {0}, folded = {0};
    digests d = {.is_left_out = is_system(message)};
    append_message(&text, message);
    d.failed = !fold(&text, &folded);
    uint64_t own = digest_of(folded.data ? folded.data : "", folded.size, seed);
    d.talk = digest_of(&own, sizeof own, before);
    d.own = folded.size >= LEAST_MESSAGE ? own : 0;
    if (!folded.size) d.is_left_out = true; /* says nothing that could be known again */
    pith_buffer_deinit(&text);
    pith_buffer_deinit(&folded);
    return d;
}

/* Each beginning of a text that is long enough has a digest: FNV-1a, which takes byte by byte. */
static uint64_t digest_step(uint64_t digest, char byte) {
    return (digest ^ (unsigned char)byte) * FNV_PRIME;
}

/* ---- Remembering ---- */

/* What went before the last message may be the beginning of anybody's talk ("hello"). */
static void remember_messages(pith_talks *t, const json_t *messages) {
    uint64_t talk = t->seed;
    size_t n = json_array_size(messages);
    for (size_t i = 0; i < n; i++) {
        digests d = read_message(json_array_get(messages, i), talk, t->seed);
        talk = d.talk;
        if (d.is_left_out || d.failed) continue;
        if (i + 1 == n) add(t, d.talk);
        if (d.own) add(t, d.own);
    }
}

static bool knows_messages(pith_talks *t, const json_t *messages) {
    uint64_t talk = t->seed;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        digests d = read_message(json_array_get(messages, i), talk, t->seed);
        talk = d.talk;
        if (d.failed) return true;
        if (d.is_left_out) continue;
        if (is_known(t, d.talk) || (d.own && is_known(t, d.own))) return true;
    }
    return false;
}

static bool remember_prompt(pith_talks *t, pith_span folded) {
    uint64_t digest = ~t->seed;
    for (size_t i = 0; i < folded.size; i++) digest = digest_step(digest, folded.data[i]);
    if (folded.size >= LEAST_MESSAGE) add(t, digest);
    return false; /* the next one too */
}

static bool knows_prompt(pith_talks *t, pith_span folded) {
    uint64_t digest = ~t->seed;
    bool known = false;
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < folded.size && !known; i++) {
        digest = digest_step(digest, folded.data[i]);
        known = i + 1 >= LEAST_MESSAGE && has(t, digest);
    }
    pthread_mutex_unlock(&t->lock);
    return known;
}

typedef bool (*prompt_use)(pith_talks *t, pith_span folded);

/* Of each prompt of a request. What `use` says of any; `when_short` where memory is. */
static bool each_prompt(pith_talks *t, const json_t *prompts, prompt_use use, bool when_short) {
    size_t n = json_is_array(prompts) ? json_array_size(prompts) : 1;
    bool said = false;
    for (size_t i = 0; i < n && !said; i++) {
        pith_buffer text = {0}, folded = {0};
        append(&text, json_is_array(prompts) ? json_array_get(prompts, i) : prompts);
        said = fold(&text, &folded) ? use(t, (pith_span){folded.data, folded.size}) : when_short;
        pith_buffer_deinit(&text);
        pith_buffer_deinit(&folded);
    }
    return said;
}

void pith_talks_remember(pith_talks *t, const json_t *request) {
    remember_messages(t, json_object_get(request, "messages"));
    each_prompt(t, json_object_get(request, "prompt"), remember_prompt, false);
}

bool pith_talks_knows(pith_talks *t, const json_t *request) {
    pthread_mutex_lock(&t->lock);
    bool any = t->newer->n > 0 || t->older->n > 0;
    pthread_mutex_unlock(&t->lock);
    return any && (knows_messages(t, json_object_get(request, "messages")) ||
                   each_prompt(t, json_object_get(request, "prompt"), knows_prompt, true));
}

/* ---- Life ---- */

pith_talks *pith_talks_new(void) {
    pith_talks *t = pith_alloc_zero(1, sizeof *t);
    if (!t) return NULL;
    pthread_mutex_init(&t->lock, NULL);
    t->seed = pith_clock_ns() * 0x9E3779B97F4A7C15u;
    t->newer = pith_alloc_zero(1, sizeof *t->newer);
    t->older = pith_alloc_zero(1, sizeof *t->older);
    if (t->newer && t->older) return t;
    pith_talks_free(t);
    return NULL;
}

void pith_talks_free(pith_talks *t) {
    if (!t) return;
    pthread_mutex_destroy(&t->lock);
    pith_free(t->newer);
    pith_free(t->older);
    pith_free(t);
}
