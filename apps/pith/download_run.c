/* SPDX-License-Identifier: Apache-2.0
 * Fetching the missing parts of a file, several ranges at once, on one thread: libcurl's multi
 * interface moves the bytes, each connection writes its range into its place, the digest follows
 * behind through what has come without a gap, and the counts are kept once a second.
 *
 *     file   [################|#####...........|................|################]
 *              whole            slot 0 >>>>>     slot 1 >          whole
 *     digest  ================>
 *
 * Invariant: a byte is written only after its response was held against what is known of the file:
 * the status, the place and the length in Content-Range, the ETag. Anything else ends the run as
 * CHANGED; parts of two versions are never joined. What cuts a connection off costs another
 * request, with growing waits; only tries in a row that bring nothing are counted.
 * Does not begin or finish files: download.c. */
#include "pith/pull.h"

#if PITH_WITH_CURL

#include "base/clock.h"
#include "base/memory.h"
#include "pith/download_run.h"
#include "pith/pull_progress.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
    SLOT_LIMIT = 16,
    RECEIVE_BYTES = 256 << 10,
    HASH_PIECE = 256 << 10,
    HASH_STEP = 4 << 20, /* bytes hashed between two looks at the network */
    LOOK_MS = 200,
    SAVE_NS = 1000 * 1000 * 1000,
    COUNTS_AS_PROGRESS = 4096 /* bytes */
};

typedef enum run_verdict {
    NOT_SEEN,
    GOES,
    IS_STATUS,
    IS_CHANGED,
    IS_WHOLE_FILE,
    IS_TOO_MUCH,
    IS_DISK
} run_verdict;

typedef struct run_state run_state;

typedef struct run_slot {
    run_state *state;
    CURL *handle; /* NULL: free */
    struct curl_slist *headers;
    pith_cli_answer answer;
    pith_cli_request request;
    size_t part;
    uint64_t first; /* offset in the file of the first byte asked for */
    run_verdict verdict;
} run_slot;

struct run_state {
    pith_cli_run *run;
    CURLM *multi;
    run_slot slots[SLOT_LIMIT];
    size_t n_slots; /* used at once; halved when the server asks for less */
    pith_cli_patience patience;
    uint64_t fresh; /* bytes since the last failure */
    uint64_t saved_ns, saved_come;
    int disk_code; /* errno */
    pith_cli_pull_progress progress;
    pith_cli_run_end end;
    bool ended;
    pith_error *error;
};

/* For messages of what ends a run early. */
static const char *what_stays(const run_state *state) {
    return state->run->ranges
               ? "what came so far is kept, pull again to go on"
               : "nothing could be kept, since this server cannot begin in the middle of a file";
}

static void end_run(run_state *state, pith_cli_run_end end) {
    if (!state->ended) state->end = end;
    state->ended = true;
}

/* ---- What a response is ---- */

static bool same_version(const pith_cli_file_facts *facts, const pith_cli_answer *answer) {
    if (facts->etag[0] && answer->etag[0]) return strcmp(facts->etag, answer->etag) == 0;
    if (facts->modified[0] && answer->modified[0])
        return strcmp(facts->modified, answer->modified) == 0;
    return true;
}

static run_verdict judge(run_slot *slot) {
    const pith_cli_run *run = slot->state->run;
    const pith_cli_file_facts *facts = &run->parts->facts;
    const pith_cli_answer *answer = &slot->answer;
    bool known = facts->total != UINT64_MAX;
    curl_easy_getinfo(slot->handle, CURLINFO_RESPONSE_CODE, &slot->answer.status);
    if (answer->status != 200 && answer->status != 206)
        return answer->status == 416 ? IS_CHANGED : IS_STATUS;
    if (!same_version(facts, answer)) return IS_CHANGED;
    if (known && answer->has_total && answer->total != facts->total) return IS_CHANGED;
    if (!run->ranges) return answer->status == 200 ? GOES : IS_CHANGED;
    if (answer->status == 200) return IS_WHOLE_FILE;
    return answer->has_range && answer->first == slot->first ? GOES : IS_CHANGED;
}

static size_t on_body(char *data, size_t one, size_t size, void *user) {
    run_slot *slot = user;
    run_state *state = slot->state;
    pith_cli_parts *parts = state->run->parts;
    size_t n = one * size;
    uint64_t *done = &parts->done[slot->part];
    state->run->transferred += n;
    if (slot->verdict == NOT_SEEN) slot->verdict = judge(slot);
    if (slot->verdict == GOES && n > pith_cli_parts_length(parts, slot->part) - *done)
        slot->verdict = IS_TOO_MUCH;
    if (slot->verdict != GOES) return 0;
    int code = pith_cli_part_write(state->run->file,
                                   pith_cli_parts_first(parts, slot->part) + *done, data, n);
    if (code) {
        state->disk_code = code;
        slot->verdict = IS_DISK;
        return 0;
    }
    *done += n;
    state->fresh += n;
    /* without ranges a cut connection loses everything: that it began again is no progress */
    if (state->run->ranges && state->fresh >= COUNTS_AS_PROGRESS) state->patience.failed = 0;
    return n;
}

/* ---- Slots ---- */

static bool is_taken(const run_state *state, size_t part) {
    for (size_t i = 0; i < SLOT_LIMIT; i++)
        if (state->slots[i].handle && state->slots[i].part == part) return true;
    return false;
}

/* The first part that is not whole and not being fetched; n: none. */
static size_t next_part(const run_state *state) {
    const pith_cli_parts *parts = state->run->parts;
    size_t i = 0;
    while (i < parts->n &&
           (parts->done[i] == pith_cli_parts_length(parts, i) || is_taken(state, i)))
        i++;
    return i;
}

static void free_slot(run_slot *slot) {
    if (slot->handle) curl_multi_remove_handle(slot->state->multi, slot->handle);
    pith_cli_fetch_end(slot->handle, slot->headers);
    slot->handle = NULL;
    slot->headers = NULL;
}

/* If-Range takes strong ETags and dates; a weak ETag is compared by us alone. */
static const char *validator_of(const pith_cli_file_facts *facts) {
    if (facts->etag[0] == '"') return facts->etag;
    return facts->etag[0] ? NULL : facts->modified;
}

static bool fill_slot(run_state *state, run_slot *slot, size_t part) {
    const pith_cli_run *run = state->run;
    const pith_cli_parts *parts = run->parts;
    uint64_t end = pith_cli_parts_first(parts, part) + pith_cli_parts_length(parts, part);
    *slot = (run_slot){.state = state, .part = part};
    slot->first = pith_cli_parts_first(parts, part) + parts->done[part];
    slot->request = (pith_cli_request){
        .url = run->what->url, .token = run->what->token, .timeout = run->what->timeout};
    if (run->ranges) {
        slot->request.validator = run->conditional ? validator_of(&parts->facts) : NULL;
        snprintf(slot->request.range, sizeof slot->request.range, "%" PRIu64 "-%" PRIu64,
                 slot->first, end - 1);
    }
    slot->handle = pith_cli_fetch_begin(&slot->request, &slot->answer, &slot->headers);
    if (!slot->handle) return false;
    curl_easy_setopt(slot->handle, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(slot->handle, CURLOPT_WRITEDATA, slot);
    curl_easy_setopt(slot->handle, CURLOPT_PRIVATE, slot);
    curl_easy_setopt(slot->handle, CURLOPT_BUFFERSIZE, (long)RECEIVE_BYTES);
    return curl_multi_add_handle(state->multi, slot->handle) == CURLM_OK;
}

static void fill_slots(run_state *state) {
    if (pith_cli_patience_left(&state->patience) > 0) return;
    for (size_t i = 0; i < state->n_slots && !state->ended; i++) {
        size_t part = next_part(state);
        if (state->slots[i].handle || part == state->run->parts->n) continue;
        if (fill_slot(state, &state->slots[i], part)) continue;
        free_slot(&state->slots[i]);
        pith_fail_memory(state->error, "a connection", 0);
        end_run(state, PITH_CLI_RUN_FAILED);
    }
}

/* ---- The end of a transfer ---- */

static void fail_disk(run_state *state) {
    const char *target = state->run->what->target;
    int code = state->disk_code;
    pith_fail(state->error, PITH_ERROR_IO, "%.120s cannot be written: %s; %s", target,
              code == ENOSPC  ? "the disk is full"
              : code == EFBIG ? "the file is larger than the system allows"
                              : strerror(code),
              what_stays(state));
    end_run(state, PITH_CLI_RUN_FAILED);
}

/* Nothing more will come of it. */
static void fail_transfer(run_state *state, const run_slot *slot, CURLcode code) {
    const pith_cli_parts *parts = state->run->parts;
    if (code == CURLE_OK && slot->verdict != IS_STATUS)
        pith_fail(state->error, PITH_ERROR_IO,
                  "%.80s: the server sends %" PRIu64 " of %" PRIu64
                  " bytes and no more, %d times; %s",
                  state->run->what->file, pith_cli_parts_come(parts), parts->facts.total,
                  (int)state->patience.limit + 1, what_stays(state));
    else
        (void)pith_cli_fetch_explain(&slot->request, &slot->answer, code, state->error);
    end_run(state, PITH_CLI_RUN_FAILED);
}

/* Begins a file anew that can only be fetched whole. */
static void begin_anew(run_state *state) {
    pith_cli_parts_reset(state->run->parts);
    pith_sha256_init(&state->run->hash);
    state->run->hashed = 0;
}

static void retry_later(run_state *state, const run_slot *slot, CURLcode code) {
    long status = slot->answer.status;
    bool asked = slot->verdict == IS_STATUS || slot->verdict == NOT_SEEN;
    bool busy = asked && (status == 429 || status == 503);
    /* an address that was signed for a while may have to be asked for again */
    bool denied = asked && (status == 401 || status == 403);
    bool may = pith_cli_fetch_may_repeat(code, asked ? status : 0) || denied ||
               (code == CURLE_OK && !asked) || (code == CURLE_OK && status / 100 == 2);
    state->fresh = 0;
    if (busy && state->n_slots > 1) state->n_slots /= 2;
    if (!may || !pith_cli_patience_take(&state->patience, busy ? slot->answer.retry_after : 0)) {
        fail_transfer(state, slot, code);
        return;
    }
    if (!state->run->ranges) begin_anew(state);
}

static void finish_transfer(run_state *state, run_slot *slot, CURLcode code) {
    pith_cli_parts *parts = state->run->parts;
    curl_off_t wait = 0;
    curl_easy_getinfo(slot->handle, CURLINFO_RESPONSE_CODE, &slot->answer.status);
    curl_easy_getinfo(slot->handle, CURLINFO_RETRY_AFTER, &wait);
    slot->answer.retry_after = wait > 0 && wait < 1 << 30 ? (long)wait : 0;
    if (slot->verdict == NOT_SEEN && slot->answer.status == 416) slot->verdict = IS_CHANGED;
    if (parts->facts.total == UINT64_MAX && code == CURLE_OK && slot->verdict == GOES)
        parts->facts.total = parts->done[0]; /* the end of the answer is the end of the file */
    bool whole = parts->done[slot->part] == pith_cli_parts_length(parts, slot->part);
    if (slot->verdict == IS_DISK)
        fail_disk(state);
    else if (slot->verdict == IS_CHANGED || slot->verdict == IS_TOO_MUCH)
        end_run(state, PITH_CLI_RUN_CHANGED);
    else if (slot->verdict == IS_WHOLE_FILE)
        end_run(state, PITH_CLI_RUN_NO_RANGES);
    else if (!whole)
        retry_later(state, slot, code);
    free_slot(slot);
}

static void take_messages(run_state *state) {
    int left = 0;
    for (CURLMsg *message; (message = curl_multi_info_read(state->multi, &left));) {
        run_slot *slot = NULL;
        if (message->msg != CURLMSG_DONE) continue;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&slot);
        if (slot) finish_transfer(state, slot, code);
    }
}

/* ---- Beside the network ---- */

/* The digest follows the bytes. Whether more is waiting. */
static bool hash_some(run_state *state, uint64_t limit) {
    pith_cli_run *run = state->run;
    uint64_t end = pith_cli_parts_prefix(run->parts);
    static const size_t piece = HASH_PIECE;
    char *buffer = run->hashed < end ? pith_alloc(piece) : NULL;
    for (uint64_t n = 0; buffer && n < limit && run->hashed < end;) {
        uint64_t left = end - run->hashed;
        int64_t got =
            pith_cli_part_read(run->file, run->hashed, buffer, left < piece ? (size_t)left : piece);
        if (got <= 0) {
            state->disk_code = got < 0 ? errno : EIO;
            fail_disk(state);
            break;
        }
        pith_sha256_append(&run->hash, buffer, (size_t)got);
        run->hashed += (uint64_t)got;
        n += (uint64_t)got;
    }
    if (!buffer && run->hashed < end) {
        pith_fail_memory(state->error, "the digest", piece);
        end_run(state, PITH_CLI_RUN_FAILED);
    }
    pith_free(buffer);
    return run->hashed < end && !state->ended;
}

/* Without a digest, counts must never be ahead of the disk: nothing would tell. */
static void save_counts(run_state *state, bool always) {
    pith_cli_run *run = state->run;
    uint64_t now = pith_clock_ns(), come = pith_cli_parts_come(run->parts);
    if (!run->ranges || come == state->saved_come) return;
    if (!always && now - state->saved_ns < SAVE_NS) return;
    if (!run->parts->facts.digest[0]) (void)pith_cli_part_sync(run->file);
    (void)pith_cli_parts_save(run->parts, run->state_path, run->what);
    state->saved_ns = pith_clock_ns();
    state->saved_come = come;
}

static bool is_whole(const run_state *state) {
    return pith_cli_parts_whole(state->run->parts) &&
           state->run->hashed == state->run->parts->facts.total;
}

static void move_bytes(run_state *state) {
    int running = 0;
    fill_slots(state);
    if (curl_multi_perform(state->multi, &running) != CURLM_OK) {
        pith_fail(state->error, PITH_ERROR_IO, "libcurl could not go on");
        end_run(state, PITH_CLI_RUN_FAILED);
    }
    take_messages(state);
    bool more = !state->ended && hash_some(state, HASH_STEP);
    save_counts(state, false);
    state->progress.waiting_ms = pith_cli_patience_left(&state->patience);
    pith_cli_pull_progress_step(&state->progress, pith_cli_parts_come(state->run->parts),
                                state->run->parts->facts.total);
    if (pith_cli_interrupted()) {
        pith_fail(state->error, PITH_ERROR_CANCELLED, "%.80s: stopped; %s", state->run->what->file,
                  what_stays(state));
        end_run(state, PITH_CLI_RUN_FAILED);
    }
    int wait = pith_cli_patience_left(&state->patience);
    bool may_fill =
        next_part(state) < state->run->parts->n && wait == 0 && (size_t)running < state->n_slots;
    if (state->ended || more || may_fill || is_whole(state)) return;
    curl_multi_poll(state->multi, NULL, 0, wait > 0 && wait < LOOK_MS ? wait : LOOK_MS, NULL);
}

pith_cli_run_end pith_cli_run_parts(pith_cli_run *run, pith_error *error) {
    run_state *state = pith_alloc_zero(1, sizeof *state);
    if (state) state->multi = curl_multi_init();
    if (!state || !state->multi) {
        pith_free(state);
        pith_fail_memory(error, "connections", sizeof *state);
        return PITH_CLI_RUN_FAILED;
    }
    /* a connection for each range: over one, HTTP/2 would share the speed of one */
    curl_multi_setopt(state->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    int32_t wanted = run->ranges ? run->what->n_connections : 1;
    state->run = run;
    state->error = error;
    state->n_slots = wanted < 1 ? 1 : wanted > SLOT_LIMIT ? SLOT_LIMIT : (size_t)wanted;
    state->patience = (pith_cli_patience){.limit = run->what->tries};
    state->progress = pith_cli_pull_progress_start(run->what->file);
    state->saved_ns = pith_clock_ns();
    pith_cli_interrupt_count(true);
    while (!state->ended && !is_whole(state)) move_bytes(state);
    pith_cli_interrupt_count(false);
    for (size_t i = 0; i < SLOT_LIMIT; i++) free_slot(&state->slots[i]);
    pith_cli_pull_progress_end(&state->progress);
    if (!state->ended) state->end = PITH_CLI_RUN_WHOLE;
    if (state->end == PITH_CLI_RUN_FAILED || state->end == PITH_CLI_RUN_WHOLE)
        save_counts(state, true);
    pith_cli_run_end end = state->end;
    curl_multi_cleanup(state->multi);
    pith_free(state);
    return end;
}

#else
typedef int pith_download_run_is_elsewhere;
#endif
