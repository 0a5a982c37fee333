/* SPDX-License-Identifier: Apache-2.0
 * The list of what left the device. Invariant: a line is written by one call of the system, so
 * lines of several servers that share the file do not mix; the file is the owner's alone (0600),
 * also when somebody made it otherwise. */
#define _GNU_SOURCE /* O_NOFOLLOW, gmtime_r */

#include "server/upstream_log.h"

#include "base/memory.h"
#include "base/sha256.h"
#include "server/fields.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct pith_upstream_log {
    pthread_mutex_t lock; /* of the file */
    char *path;
    int file;
};

static bool open_file(pith_upstream_log *log, pith_error *error) {
    struct stat info;
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    log->file = open(log->path, flags, 0600);
    bool ok = log->file >= 0 && fstat(log->file, &info) == 0;
    if (ok && !S_ISREG(info.st_mode)) {
        pith_fail(error, PITH_ERROR_IO, "%s is no plain file: what leaves is listed there",
                  log->path);
        return false;
    }
    if (ok && (info.st_mode & 077)) ok = fchmod(log->file, 0600) == 0;
    if (!ok)
        pith_fail(error, PITH_ERROR_IO, "%s cannot be written: %s (what leaves is listed there)",
                  log->path, strerror(errno));
    return ok;
}

pith_upstream_log *pith_upstream_log_open(const char *path, pith_error *error) {
    pith_upstream_log *log = pith_alloc_zero(1, sizeof *log);
    if (log) log->path = pith_copy_text(path, strlen(path));
    if (!log || !log->path) {
        pith_free(log);
        pith_fail_memory(error, "the list of what leaves", strlen(path));
        return NULL;
    }
    log->file = -1;
    pthread_mutex_init(&log->lock, NULL);
    if (open_file(log, error)) return log;
    pith_upstream_log_close(log);
    return NULL;
}

void pith_upstream_log_close(pith_upstream_log *log) {
    if (!log) return;
    if (log->file >= 0) close(log->file);
    pthread_mutex_destroy(&log->lock);
    pith_free(log->path);
    pith_free(log);
}

/* The file is large, or was moved away by somebody: begins another. Under the lock. */
static bool turn_over(pith_upstream_log *log, size_t more, pith_error *error) {
    struct stat ours, named;
    bool is_ours = fstat(log->file, &ours) == 0 && stat(log->path, &named) == 0 &&
                   ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
    bool is_full = is_ours && (uint64_t)ours.st_size + more > PITH_UPSTREAM_LOG_MAX;
    if (is_ours && !is_full) return true;
    pith_buffer old = {0};
    pith_buffer_append_format(&old, "%s.1", log->path);
    if (is_full && !old.failed) (void)rename(log->path, old.data);
    pith_buffer_deinit(&old);
    close(log->file);
    return open_file(log, error);
}

static void print_time(char out[32]) {
    struct timespec now = {0};
    struct tm civil = {0};
    char day[24];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &civil);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &civil);
    snprintf(out, 32, "%s.%03dZ", day, (int)(now.tv_nsec / 1000000));
}

/* Releases the JSON. */
static bool append(pith_upstream_log *log, json_t *line, pith_error *error) {
    char *text = line ? pith_json_dump(line) : NULL;
    pith_buffer whole = {0};
    json_decref(line);
    if (text) pith_buffer_append_format(&whole, "%s\n", text);
    pith_json_release(text);
    if (!text || whole.failed) {
        pith_buffer_deinit(&whole);
        pith_fail_memory(error, "the list of what leaves", 0);
        return false;
    }
    pthread_mutex_lock(&log->lock);
    bool ok = turn_over(log, whole.size, error);
    if (ok && write(log->file, whole.data, whole.size) != (ssize_t)whole.size) {
        pith_fail(error, PITH_ERROR_IO, "the list of what leaves cannot be written: %s",
                  strerror(errno));
        ok = false;
    }
    pthread_mutex_unlock(&log->lock);
    pith_buffer_deinit(&whole);
    return ok;
}

bool pith_upstream_log_departure(pith_upstream_log *log, const pith_departure *what,
                                 pith_error *error) {
    pith_sha256 hash;
    char digest[PITH_SHA256_TEXT], time[32];
    pith_sha256_init(&hash);
    pith_sha256_append(&hash, what->body.data, what->body.size);
    pith_sha256_text(&hash, digest);
    print_time(time);
    json_t *line = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:s}", "time", time, "id",
                             what->id, "event", "sending", "path", what->path, "reason",
                             what->reason, "upstream", what->upstream, "model", what->model,
                             "bytes", (json_int_t)what->body.size, "sha256", digest);
    return append(log, line, error);
}

void pith_upstream_log_return(pith_upstream_log *log, const pith_return *what) {
    char time[32];
    print_time(time);
    json_t *line =
        json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:f, s:s*}", "time", time, "id", what->id,
                  "event", "ended", "status", (int)what->status, "sent", (json_int_t)what->sent,
                  "received", (json_int_t)what->received, "ms", what->ms, "error", what->error);
    append(log, line, NULL);
}
