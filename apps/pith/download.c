/* SPDX-License-Identifier: Apache-2.0
 * One file from an address to its place: take the lock, look at the first bytes and the headers,
 * hold the space on the disk against the size, fetch the parts (download_run.c), hold the digest
 * against the one that the hub or the catalogue tells, open the file as GGUF, rename it.
 *
 *     .pull/KEY.lock   held while a process works on the file; others wait
 *     .pull/KEY.part   the bytes, in their places
 *     .pull/KEY.json   which of them have come (download_parts.c)
 *
 * Invariant: `target` appears whole and checked, or stays as it was. What is wrong is removed, what
 * is only unfinished is kept. Read next: download_run.c. */
#include "pith/pull.h"

#if PITH_WITH_CURL

#include "base/folder.h"
#include "base/memory.h"
#include "pith/download_run.h"
#include "pith/pull_progress.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { RESTART_LIMIT = 4, LOCK_LOOK_MS = 100, SPARE_BYTES = 8 << 20, MAGIC_BYTES = 4 };

typedef struct download_job {
    const pith_cli_download *what;
    pith_cli_downloaded *done;
    char *lock_path, *part_path, *state_path;
    pith_cli_part_file lock, part;
    pith_cli_file_facts facts;
    pith_cli_parts parts;
    bool ranges, conditional, waited;
    pith_error *error;
} download_job;

static char *key_path(const pith_cli_download *what, const char *ending) {
    pith_buffer path = {0};
    pith_buffer_append_format(&path, "%s/%016" PRIx64 "%s", what->folder,
                              pith_hash(what->target, strlen(what->target), 0), ending);
    char *text = path.failed ? NULL : pith_copy_text(path.data, path.size);
    pith_buffer_deinit(&path);
    return text;
}

static pith_status fail_path(const download_job *job, const char *path, int code) {
    return pith_fail(job->error, PITH_ERROR_IO, "%.160s cannot be written: %s", path,
                     code == ENOSPC ? "the disk is full" : strerror(code));
}

/* Another pith that fetches the same file is waited for, then its result is looked at. */
static pith_status take_lock(download_job *job) {
    int code = pith_cli_part_open(job->lock_path, &job->lock);
    if (code) return fail_path(job, job->lock_path, code);
    while ((code = pith_cli_part_lock(&job->lock)) == EWOULDBLOCK) {
        if (!job->waited)
            fprintf(stderr, "note: another pith is fetching %s; waiting for it\n", job->what->file);
        job->waited = true;
        pith_cli_sleep(LOCK_LOOK_MS);
    }
    /* a file system without locks: two at once are the user's to avoid */
    return PITH_OK;
}

/* ---- What is there already ---- */

/* Whether the target is the file that would be fetched. */
static bool is_there(download_job *job) {
    uint64_t bytes = pith_cli_file_bytes(job->what->target);
    const char *digest = job->facts.digest;
    if (bytes == UINT64_MAX || (job->facts.total != UINT64_MAX && bytes != job->facts.total))
        return false;
    bool same_etag = job->facts.etag[0] && strcmp(job->facts.etag, job->what->etag) == 0;
    if (!digest[0] && !same_etag && !job->waited) return false;
    if (!pith_cli_file_digest(job->what->target, job->done->digest)) return false;
    if (digest[0] && strcmp(job->done->digest, digest) != 0) return false;
    job->done->bytes = bytes;
    job->done->verified = digest[0] != 0;
    job->done->was_there = true;
    return true;
}

/* ---- The first look ---- */

static pith_status refuse_bytes(const download_job *job, const char *bytes, size_t size,
                                const char *type) {
    size_t at = 0;
    while (at < size && strchr(" \t\r\n", bytes[at])) at++;
    if (at < size && bytes[at] == '<')
        return pith_fail(job->error, PITH_ERROR_FORMAT,
                         "%s: the server sent a web page (%.40s), no GGUF file; is the address "
                         "that of the file itself?",
                         job->what->file, type[0] ? type : "HTML");
    return pith_fail(job->error, PITH_ERROR_FORMAT,
                     "%s is no GGUF file: it does not begin with the letters GGUF (%zu bytes "
                     "looked at, type %.40s); nothing was kept",
                     job->what->file, size, type[0] ? type : "not told");
}

/* What the address, the hub and the catalogue say of length and digest must agree. */
static pith_status hold_together(download_job *job, const pith_cli_answer *answer) {
    const pith_cli_download *what = job->what;
    uint64_t wanted = what->bytes ? what->bytes : answer->linked;
    if (what->digest[0] && answer->digest[0] && strcmp(what->digest, answer->digest) != 0)
        return pith_fail(job->error, PITH_ERROR_FORMAT,
                         "%s: the server's file has SHA-256 %.16s..., expected is %.16s...; it was "
                         "replaced there, or is not what it says. Nothing was fetched",
                         what->file, answer->digest, what->digest);
    if (wanted && answer->has_total && wanted != answer->total)
        return pith_fail(job->error, PITH_ERROR_FORMAT,
                         "%s: it should have %" PRIu64 " bytes, but the server has %" PRIu64
                         "; nothing was fetched",
                         what->file, wanted, answer->total);
    snprintf(job->facts.digest, sizeof job->facts.digest, "%s",
             what->digest[0] ? what->digest : answer->digest);
    return PITH_OK;
}

static pith_status look(download_job *job) {
    char bytes[PITH_CLI_PEEK];
    size_t size = 0;
    pith_cli_answer answer;
    pith_cli_request request = {.url = job->what->url,
                                .token = job->what->token,
                                .range = "0-511",
                                .timeout = job->what->timeout};
    pith_status status = pith_cli_fetch_peek(&request, bytes, &size, &answer, job->error);
    if (status) return status;
    if (size < MAGIC_BYTES || memcmp(bytes, "GGUF", MAGIC_BYTES) != 0)
        return refuse_bytes(job, bytes, size, answer.type);
    job->facts = (pith_cli_file_facts){0};
    job->facts.total = answer.has_total ? answer.total : UINT64_MAX;
    memcpy(job->facts.etag, answer.etag, sizeof job->facts.etag);
    memcpy(job->facts.modified, answer.modified, sizeof job->facts.modified);
    status = hold_together(job, &answer);
    /* ranges of a file whose versions nobody can tell apart could be ranges of two files */
    bool told_apart = answer.etag[0] || answer.modified[0] || job->facts.digest[0];
    job->ranges = answer.status == 206 && answer.has_total && told_apart;
    job->conditional = true;
    return status;
}

static pith_status hold_space(const download_job *job) {
    char need[32], have[32];
    uint64_t come = pith_cli_parts_come(&job->parts), total = job->facts.total;
    uint64_t room = pith_folder_room(job->what->folder);
    if (total == UINT64_MAX || room == UINT64_MAX || total - come + SPARE_BYTES <= room)
        return PITH_OK;
    pith_cli_bytes_text(total - come, need, sizeof need);
    pith_cli_bytes_text(room, have, sizeof have);
    return pith_fail(job->error, PITH_ERROR_LIMIT,
                     "%s needs %s more, but the disk of %.90s has %s free; `pith rm` makes room, "
                     "PITH_HOME chooses another disk",
                     job->what->file, need, job->what->folder, have);
}

/* ---- Fetching ---- */

static void drop_part(download_job *job) {
    pith_cli_part_close(&job->part);
    pith_cli_remove_file(job->part_path);
    pith_cli_remove_file(job->state_path);
}

/* Opens the part file and decides what of it counts. */
static pith_status prepare(download_job *job) {
    pith_cli_part_close(&job->part);
    int code = pith_cli_part_open(job->part_path, &job->part);
    if (code) return fail_path(job, job->part_path, code);
    pith_cli_parts_deinit(&job->parts);
    uint64_t wanted = job->ranges ? job->what->part_bytes : UINT64_MAX; /* else one part */
    bool whole = pith_cli_parts_init(&job->parts, &job->facts, wanted);
    if (whole && job->ranges)
        whole = pith_cli_parts_load(&job->parts, job->state_path, pith_cli_part_size(&job->part));
    if (!whole) return pith_fail_memory(job->error, "the parts of a file", 0);
    job->done->resumed = pith_cli_parts_come(&job->parts);
    if (job->done->resumed == 0) {
        pith_cli_remove_file(job->state_path);
        code = pith_cli_part_cut(&job->part, 0);
        if (code) return fail_path(job, job->part_path, code);
    }
    return hold_space(job);
}

static pith_cli_run_end run(download_job *job, char digest[PITH_SHA256_TEXT]) {
    pith_cli_run run = {.what = job->what,
                        .parts = &job->parts,
                        .file = &job->part,
                        .state_path = job->state_path,
                        .ranges = job->ranges,
                        .conditional = job->conditional};
    pith_sha256_init(&run.hash);
    /* so that `pith list` and `pith rm` know of it from the start */
    (void)pith_cli_parts_save(&job->parts, job->state_path, job->what);
    pith_cli_run_end end = pith_cli_run_parts(&run, job->error);
    job->done->transferred += run.transferred;
    if (end == PITH_CLI_RUN_WHOLE) pith_sha256_text(&run.hash, digest);
    if (end == PITH_CLI_RUN_FAILED && !job->ranges) drop_part(job);
    return end;
}

/* The digest that came is not the one that should. After a resumed run the fault may lie in what
 * was kept (a power cut): then once more from the start. */
static bool may_begin_anew(download_job *job) {
    bool resumed = job->done->resumed > 0;
    drop_part(job);
    if (resumed)
        fprintf(stderr, "note: %s: what was kept from before is damaged; it is fetched anew\n",
                job->what->file);
    return resumed;
}

static pith_status fail_digest(const download_job *job, const char *digest) {
    return pith_fail(job->error, PITH_ERROR_FORMAT,
                     "%s: what came has SHA-256 %.16s..., expected is %.16s...; it was deleted. "
                     "Pull again; if it stays, the server's file is damaged",
                     job->what->file, digest, job->facts.digest);
}

/* What a run that is not whole leads to; PITH_OK: another one. */
static pith_status follow(download_job *job, pith_cli_run_end end) {
    if (end == PITH_CLI_RUN_FAILED) return job->error->status;
    if (end == PITH_CLI_RUN_NO_RANGES) {
        /* It knew ranges at the first look, but not with a condition. The digest tells a mixture
         * too; without one, or without ranges after all, the file comes in one piece. */
        job->ranges = job->conditional && job->facts.digest[0];
        job->conditional = false;
        if (!job->ranges) drop_part(job);
        return PITH_OK;
    }
    fprintf(stderr, "note: %s changed on the server; it is fetched anew\n", job->what->file);
    drop_part(job);
    return look(job);
}

/* Runs until the part file is whole and has its digest, or something is wrong for good. */
static pith_status fetch(download_job *job) {
    char digest[PITH_SHA256_TEXT];
    int n_changes = 0;
    for (int i = 0; n_changes < RESTART_LIMIT && i < 3 * RESTART_LIMIT; i++) {
        pith_status status = prepare(job);
        if (status) return status;
        pith_cli_run_end end = run(job, digest);
        n_changes += end == PITH_CLI_RUN_CHANGED;
        if (end == PITH_CLI_RUN_WHOLE) {
            bool right = !job->facts.digest[0] || strcmp(digest, job->facts.digest) == 0;
            if (right) memcpy(job->done->digest, digest, sizeof digest);
            if (right) return PITH_OK;
            if (!may_begin_anew(job)) return fail_digest(job, digest);
        } else {
            status = follow(job, end);
            if (status) return status;
        }
    }
    return pith_fail(job->error, PITH_ERROR_IO,
                     "%s: the file on the server changed %d times while it was fetched; nothing "
                     "was kept",
                     job->what->file, RESTART_LIMIT);
}

/* ---- Finishing ---- */

/* A file that nobody vouches for must open; one that is what its publisher says is kept even when
 * this pith cannot read it. */
static pith_status check_model(download_job *job) {
    pith_error error = {0};
    pith_file *file = NULL;
    if (!job->what->alone || pith_file_open(job->part_path, &file, &error) == PITH_OK) {
        pith_file_close(file);
        return PITH_OK;
    }
    if (job->facts.digest[0] || error.status == PITH_ERROR_LIMIT) {
        fprintf(stderr, "note: %s is kept, but this pith cannot read it\n", job->what->file);
        return PITH_OK;
    }
    const char *why = strstr(error.text, ".part: "); /* the name of the part says nothing */
    drop_part(job);
    return pith_fail(job->error, PITH_ERROR_FORMAT, "%s is damaged and was deleted: %.150s",
                     job->what->file, why ? why + 7 : error.text);
}

static pith_status put_in_place(download_job *job) {
    int code = pith_cli_part_sync(&job->part);
    if (code) return fail_path(job, job->part_path, code);
    pith_status status = check_model(job);
    if (status) return status;
    job->done->bytes = pith_cli_part_size(&job->part);
    pith_cli_part_close(&job->part);
    code = pith_cli_move_file(job->part_path, job->what->target);
    if (code) return fail_path(job, job->what->target, code);
    pith_cli_remove_file(job->state_path);
    job->done->verified = job->facts.digest[0] != 0;
    return PITH_OK;
}

static pith_status work(download_job *job) {
    pith_status status = take_lock(job);
    if (status == PITH_OK) status = look(job);
    if (status) return status;
    memcpy(job->done->etag, job->facts.etag, sizeof job->done->etag);
    if (is_there(job)) return PITH_OK;
    status = fetch(job);
    memcpy(job->done->etag, job->facts.etag, sizeof job->done->etag);
    return status ? status : put_in_place(job);
}

pith_status pith_cli_download_file(const pith_cli_download *what, pith_cli_downloaded *done,
                                   pith_error *error) {
    pith_error ignored = {0};
    download_job job = {.what = what, .done = done, .error = error ? error : &ignored};
    *done = (pith_cli_downloaded){0};
    job.lock_path = key_path(what, ".lock");
    job.part_path = key_path(what, ".part");
    job.state_path = key_path(what, ".json");
    bool whole = job.lock_path && job.part_path && job.state_path;
    pith_status status = whole ? work(&job) : pith_fail_memory(error, "a path", 0);
    pith_cli_part_close(&job.part);
    pith_cli_part_close(&job.lock);
    pith_cli_parts_deinit(&job.parts);
    pith_free(job.lock_path);
    pith_free(job.part_path);
    pith_free(job.state_path);
    return status;
}

#else
typedef int pith_download_is_elsewhere;
#endif
