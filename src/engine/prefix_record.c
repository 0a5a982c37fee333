/* SPDX-License-Identifier: Apache-2.0
 * The recorder of prompts and its worker (prefix_record.h).
 *
 * Invariant: a buffer belongs to the engine's thread while it is FREE or FILLING and to the worker
 * while it is FULL; its state is the only thing that both touch. The worker takes full buffers in
 * the order in which they were handed over, since a part is of use only behind those before it.
 *
 * What is copied is KV that a step has committed, so a prompt that is broken off leaves a shorter
 * part that is right. Blocks that have left a window are marked as missing, nothing else. */
#include "engine/prefix_record.h"

#include "base/clock.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/worker.h"
#include "engine/prefix.h"
#include "engine/prefix_file.h"
#include "engine/prefix_index.h"

#include <string.h>

enum {
    N_BUFFERS = 2,
    PART_BYTES = 8 << 20, /* of a part, unless a single block is larger */
    PART_BLOCKS = 16,
    PLACES_MOST = 16,
    CLOSE_MS = 200,
    DISK_RESERVE = 64 << 20 /* bytes that are left free on the disk */
};

typedef enum buffer_state { FREE, FILLING, FULL } buffer_state;

typedef struct buffer {
    atomic_int state;
    uint64_t number; /* of the order in which they were handed over */
    uint64_t key;
    uint32_t first, n; /* positions */
    int32_t *ids;      /* [n_ctx] */
    uint8_t *kept;     /* [part blocks, n_group] */
    uint8_t *blocks;   /* [part blocks] snapshots, those that are kept */
    size_t used;       /* bytes of blocks */
} buffer;

typedef struct use_note {
    atomic_int state; /* FREE or FULL */
    uint64_t key;
    uint64_t *hashes; /* [n_ctx / 64] */
    size_t n;
} use_note;

enum trouble { NO_TROUBLE, NO_INDEX, NO_ROOM, NOT_WRITTEN };

struct pith_prefix_recorder {
    pith_prefix_setting setting;
    uint32_t part_blocks;
    /* The engine's thread: */
    pith_prefix_task task; /* session NULL: none */
    size_t places[PLACES_MOST];
    uint32_t next; /* position up to which the task is copied */
    buffer *filling;
    uint64_t n_handed_over;
    /* Both: */
    buffer buffers[N_BUFFERS];
    use_note use;
    atomic_int trouble;
    _Atomic uint64_t deadline; /* of the worker, nanoseconds; 0: none */
    pith_worker *worker;
    /* The worker: */
    pith_prefix_index *index;
    bool is_begun;
    uint64_t *hashes; /* [n_ctx / 64] */
};

/* ---- Making it ---- */

static size_t block_bytes(const pith_kv_layout *layout) {
    size_t bytes = 0;
    for (uint32_t g = 0; g < layout->n_group; g++)
        bytes += pith_kv_snapshot_bytes(layout, g, PITH_KV_BLOCK_TOKENS);
    return bytes;
}

static uint32_t part_blocks(const pith_kv_layout *layout, uint32_t n_ctx) {
    size_t bytes = block_bytes(layout), fit = bytes ? PART_BYTES / bytes : PART_BLOCKS;
    uint32_t all = n_ctx / PITH_KV_BLOCK_TOKENS + 1;
    uint32_t most = all < PART_BLOCKS ? all : PART_BLOCKS;
    return fit < 1 ? 1 : fit < most ? (uint32_t)fit : most;
}

uint64_t pith_prefix_recorder_bytes(const pith_kv_layout *layout, uint32_t n_ctx) {
    uint64_t n_blocks = part_blocks(layout, n_ctx);
    uint64_t buffer_bytes = (uint64_t)n_ctx * sizeof(int32_t) + n_blocks * layout->n_group +
                            n_blocks * block_bytes(layout);
    uint64_t places = n_ctx / PITH_KV_BLOCK_TOKENS + 1;
    return sizeof(pith_prefix_recorder) + N_BUFFERS * buffer_bytes + 2 * places * sizeof(uint64_t);
}

static pith_status make_buffers(pith_prefix_recorder *r, pith_error *error) {
    const pith_kv_layout *layout = r->setting.layout;
    size_t n_places = r->setting.n_ctx / PITH_KV_BLOCK_TOKENS + 1;
    bool whole = true;
    for (int i = 0; i < N_BUFFERS; i++) {
        buffer *b = &r->buffers[i];
        atomic_init(&b->state, FREE);
        b->ids = pith_alloc_array(r->setting.n_ctx, sizeof *b->ids);
        b->kept = pith_alloc_zero(r->part_blocks, layout->n_group);
        b->blocks = pith_alloc_array(r->part_blocks, block_bytes(layout));
        whole = whole && b->ids && b->kept && b->blocks;
    }
    atomic_init(&r->use.state, FREE);
    r->use.hashes = pith_alloc_array(n_places, sizeof *r->use.hashes);
    r->hashes = pith_alloc_array(n_places, sizeof *r->hashes);
    if (whole && r->use.hashes && r->hashes) return PITH_OK;
    return pith_fail_memory(error, "storing prompts",
                            pith_prefix_recorder_bytes(layout, r->setting.n_ctx));
}

static void work(void *user);

pith_status pith_prefix_recorder_new(const pith_prefix_setting *setting, pith_prefix_recorder **out,
                                     pith_error *error) {
    *out = NULL;
    pith_prefix_recorder *r = pith_alloc_zero(1, sizeof *r);
    if (!r) return pith_fail_memory(error, "storing prompts", sizeof *r);
    r->setting = *setting;
    r->part_blocks = part_blocks(setting->layout, setting->n_ctx);
    atomic_init(&r->trouble, NO_TROUBLE);
    atomic_init(&r->deadline, 0);
    pith_status status = make_buffers(r, error);
    if (status == PITH_OK) status = pith_worker_new(work, r, &r->worker, error);
    if (status == PITH_OK)
        *out = r;
    else
        pith_prefix_recorder_free(r);
    return status;
}

void pith_prefix_recorder_free(pith_prefix_recorder *recorder) {
    if (!recorder) return;
    atomic_store(&recorder->deadline, pith_clock_ns() + CLOSE_MS * 1000000ull);
    pith_worker_free(recorder->worker);
    pith_prefix_index_close(recorder->index);
    for (int i = 0; i < N_BUFFERS; i++) {
        pith_free(recorder->buffers[i].ids);
        pith_free(recorder->buffers[i].kept);
        pith_free(recorder->buffers[i].blocks);
    }
    pith_free(recorder->use.hashes);
    pith_free(recorder->hashes);
    pith_free(recorder);
}

const char *pith_prefix_recorder_note(const pith_prefix_recorder *recorder) {
    static const char *const notes[] = {
        [NO_TROUBLE] = "",
        [NO_INDEX] = "prompts are not kept: the cache folder's index cannot be written",
        [NO_ROOM] = "prompts are not kept: the disk of the cache folder is nearly full",
        [NOT_WRITTEN] = "prompts are not kept: a file in the cache folder could not be written",
    };
    return notes[atomic_load(&recorder->trouble)];
}

/* ---- The engine's thread ---- */

void pith_prefix_record_begin(pith_prefix_recorder *r, const pith_prefix_task *task) {
    if (r->task.session || task->first >= task->end) return;
    r->task = *task;
    r->task.n_places = task->n_places < PLACES_MOST ? task->n_places : PLACES_MOST;
    if (r->task.n_places) memcpy(r->places, task->places, r->task.n_places * sizeof *r->places);
    r->next = task->first;
}

static buffer *free_buffer(pith_prefix_recorder *r) {
    for (int i = 0; i < N_BUFFERS; i++) {
        buffer *b = &r->buffers[i];
        if (atomic_load(&b->state) != FREE) continue;
        atomic_store(&b->state, FILLING);
        b->key = r->task.key;
        b->first = b->n = r->next;
        b->used = 0;
        return b;
    }
    return NULL;
}

static void hand_over(pith_prefix_recorder *r) {
    buffer *b = r->filling;
    r->filling = NULL;
    memcpy(b->ids, r->task.session->ids, b->n * sizeof *b->ids);
    b->number = r->n_handed_over++;
    atomic_store(&b->state, FULL);
    pith_worker_wake(r->worker);
}

/* Whether rows behind a place that matters see the block. */
static bool is_wanted(const pith_prefix_recorder *r, uint32_t group, uint32_t block) {
    const pith_kv_layout *layout = r->setting.layout;
    if (r->task.n_places == 0 || layout->group_window[group] == 0) return true;
    for (size_t i = 0; i <= r->task.n_places; i++) {
        size_t place = i < r->task.n_places ? r->places[i] : r->task.end;
        if (place > r->task.end) continue;
        if (block >= pith_kv_first_block(layout, group, (uint32_t)place) &&
            (size_t)block * PITH_KV_BLOCK_TOKENS < place)
            return true;
    }
    return false;
}

/* Copies n tokens of the block that begins at `next`. */
static void copy_block(pith_prefix_recorder *r, uint32_t n) {
    const pith_kv_layout *layout = r->setting.layout;
    buffer *b = r->filling;
    uint32_t block = r->next / PITH_KV_BLOCK_TOKENS;
    uint8_t *kept = b->kept + (size_t)(block - b->first / PITH_KV_BLOCK_TOKENS) * layout->n_group;
    for (uint32_t g = 0; g < layout->n_group; g++) {
        kept[g] = is_wanted(r, g, block) &&
                  pith_kv_snapshot_write(r->task.session->kv, g, block, n, b->blocks + b->used);
        if (kept[g]) b->used += pith_kv_snapshot_bytes(layout, g, n);
    }
    r->next += n;
    b->n = r->next;
}

void pith_prefix_record_follow(pith_prefix_recorder *r, const pith_session *session,
                               uint32_t most) {
    if (r->task.session != session || !session) return;
    uint32_t computed = pith_kv_sequence_length(session->kv);
    for (uint32_t i = 0; i < most && r->next < r->task.end; i++) {
        uint32_t left = r->task.end - r->next;
        uint32_t n = left < PITH_KV_BLOCK_TOKENS ? left : PITH_KV_BLOCK_TOKENS;
        if (computed < r->next + n) return;
        if (!r->filling) r->filling = free_buffer(r);
        if (!r->filling) return;
        copy_block(r, n);
        bool is_full = r->filling->n - r->filling->first >= r->part_blocks * PITH_KV_BLOCK_TOKENS;
        if (is_full || r->next == r->task.end) hand_over(r);
    }
}

void pith_prefix_record_end(pith_prefix_recorder *r, const pith_session *session) {
    if (r->task.session != session || !session) return;
    if (r->filling && r->filling->n > r->filling->first)
        hand_over(r);
    else if (r->filling)
        atomic_store(&r->filling->state, FREE);
    r->filling = NULL;
    r->task.session = NULL;
}

void pith_prefix_record_use(pith_prefix_recorder *r, uint64_t key, const uint64_t *hashes,
                            size_t n) {
    if (atomic_load(&r->use.state) != FREE) return;
    r->use.key = key;
    r->use.n = n;
    memcpy(r->use.hashes, hashes, n * sizeof *hashes);
    atomic_store(&r->use.state, FULL);
    pith_worker_wake(r->worker);
}

/* ---- The worker ---- */

/* Asked between writes. */
static bool go_on(void *user) {
    const pith_prefix_recorder *r = user;
    uint64_t deadline = atomic_load(&r->deadline);
    return deadline == 0 || pith_clock_ns() < deadline;
}

static buffer *next_full(pith_prefix_recorder *r) {
    buffer *next = NULL;
    for (int i = 0; i < N_BUFFERS; i++) {
        buffer *b = &r->buffers[i];
        if (atomic_load(&b->state) == FULL && (!next || b->number < next->number)) next = b;
    }
    return next;
}

static enum trouble write_file(pith_prefix_recorder *r, int64_t id, const pith_prefix_part *part) {
    char *path = pith_prefix_index_path(r->index, id);
    pith_error error = {0};
    if (!path) return NOT_WRITTEN;
    pith_status status = pith_prefix_part_write(part, path, go_on, r, &error);
    size_t n = part->n / PITH_KV_BLOCK_TOKENS, begin = part->first / PITH_KV_BLOCK_TOKENS;
    pith_prefix_places places = {r->hashes, n, begin > 0 ? begin - 1 : 0};
    if (status != PITH_OK || !pith_prefix_index_publish(r->index, id, part->key, &places)) {
        pith_prefix_index_remove(r->index, id);
        if (status == PITH_OK) pith_file_remove(path); /* also where the index cannot be written */
    }
    pith_free(path);
    return status == PITH_OK || status == PITH_ERROR_CANCELLED ? NO_TROUBLE : NOT_WRITTEN;
}

static enum trouble store(pith_prefix_recorder *r, const buffer *b) {
    const pith_prefix_part part = {.layout = r->setting.layout,
                                   .key = b->key,
                                   .first = b->first,
                                   .n = b->n,
                                   .ids = b->ids,
                                   .kept = b->kept,
                                   .blocks = b->blocks};
    if (!r->index || !pith_prefix_index_may_write(r->index)) return NO_INDEX;
    pith_prefix_hash_places(b->ids, b->n, r->hashes);
    pith_prefix_entry entry = {.key = b->key,
                               .first = b->first,
                               .n = b->n,
                               .ids_hash = pith_hash(b->ids, b->n * sizeof *b->ids, b->key),
                               .bytes = pith_prefix_part_bytes(&part),
                               .model = r->setting.model,
                               .settings = r->setting.settings};
    uint64_t room = pith_folder_room(r->setting.folder);
    if (room < entry.bytes || room - entry.bytes < DISK_RESERVE) return NO_ROOM;
    int64_t id = pith_prefix_index_reserve(r->index, &entry, r->setting.quota);
    return id ? write_file(r, id, &part) : NO_TROUBLE;
}

/* The worker's own connection, when it is first needed: an engine that only starts waits for
 * nothing. */
static void begin_work(pith_prefix_recorder *r) {
    r->is_begun = true;
    if (pith_prefix_index_open(r->setting.folder, &r->index, NULL) == PITH_OK)
        pith_prefix_index_sweep(r->index);
}

/* pith_worker: does all that there is to do. */
static void work(void *user) {
    pith_prefix_recorder *r = user;
    for (buffer *b; (b = next_full(r));) {
        if (!r->is_begun) begin_work(r);
        enum trouble trouble = go_on(r) ? store(r, b) : NO_TROUBLE;
        atomic_store(&r->trouble, (int)trouble);
        atomic_store(&b->state, FREE);
    }
    if (atomic_load(&r->use.state) != FULL) return;
    if (!r->is_begun) begin_work(r);
    if (r->index && go_on(r))
        pith_prefix_index_touch(r->index, r->use.key, r->use.hashes, r->use.n);
    atomic_store(&r->use.state, FREE);
}
