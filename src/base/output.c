/* SPDX-License-Identifier: Apache-2.0
 *
 * Files written whole or not at all.
 *
 * Invariant: `path` itself is touched only by the rename in commit, after all bytes were written
 * and synced. A failed write removes the temporary file at once, so that a full disk is not kept
 * full by half a file.
 *
 * The temporary file lies beside `path`, because a rename must not cross file systems. Its name
 * holds the time and an address, and is tried again when it is taken. Read next: os_output.c.
 * */
#include "base/output.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/os_output.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { GATHER_BYTES = 1 << 18, NAME_TRIES = 16, NAME_EXTRA = 32, SHOWN_BYTES = 100 };

struct pith_output {
    char *path, *part; /* where it is to be, where it is written */
    intptr_t handle;
    bool is_open, failed, committed;
    uint64_t n_written; /* bytes that the system took */
    size_t n_gathered;
    uint8_t gathered[GATHER_BYTES];
};

/* The end of a long path, so that the reason still fits into the message. */
static const char *shown_path(const char *path) {
    size_t size = strlen(path);
    if (size <= SHOWN_BYTES) return path;
    const char *at = path + size - SHOWN_BYTES;
    while (((uint8_t)*at & 0xC0) == 0x80) at++; /* not within a character */
    return at;
}

static pith_status fail_output(pith_output *output, const char *what, int code, pith_error *error) {
    char why[96];
    pith_os_output_error_text(code, why, sizeof why);
    output->failed = true;
    if (output->is_open) {
        (void)pith_os_output_close(output->handle);
        output->is_open = false;
        pith_os_output_remove(output->part);
    }
    if (!output->n_written)
        return pith_fail(error, PITH_ERROR_IO, "%s: %s: %s", shown_path(output->path), what, why);
    return pith_fail(error, PITH_ERROR_IO, "%s: %s after %" PRIu64 " bytes: %s",
                     shown_path(output->path), what, output->n_written, why);
}

static pith_status open_part(pith_output *output, size_t part_bytes, pith_error *error) {
    int code = 0;
    bool exists = true;
    for (int i = 0; i < NAME_TRIES && exists; i++) {
        uint64_t salt[3] = {pith_clock_ns(), (uint64_t)(uintptr_t)output, (uint64_t)i};
        uint32_t tag = (uint32_t)pith_hash(salt, sizeof salt, 0);
        snprintf(output->part, part_bytes, "%s.%08" PRIx32 ".part", output->path, tag);
        code = pith_os_output_open(output->part, &output->handle, &exists);
    }
    if (code != 0) return fail_output(output, "cannot be made", code, error);
    output->is_open = true;
    return PITH_OK;
}

pith_status pith_output_open(const char *path, pith_output **out, pith_error *error) {
    *out = NULL;
    if (!path || !*path)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "the path is empty; name a file");
    size_t path_bytes = strlen(path), part_bytes = path_bytes + NAME_EXTRA;
    pith_output *output = pith_alloc(sizeof *output);
    if (!output) return pith_fail_memory(error, "an output file", sizeof *output);
    memset(output, 0, offsetof(pith_output, gathered));
    output->path = pith_copy_text(path, path_bytes);
    output->part = pith_alloc(part_bytes);
    pith_status status = output->path && output->part
                             ? open_part(output, part_bytes, error)
                             : pith_fail_memory(error, "an output file", part_bytes);
    if (status == PITH_OK)
        *out = output;
    else
        pith_output_close(output);
    return status;
}

static pith_status write_out(pith_output *output, const void *data, size_t size,
                             pith_error *error) {
    if (size == 0) return PITH_OK;
    int code = pith_os_output_write(output->handle, data, size);
    if (code != 0) return fail_output(output, "writing failed", code, error);
    output->n_written += size;
    return PITH_OK;
}

static pith_status write_gathered(pith_output *output, pith_error *error) {
    size_t size = output->n_gathered;
    output->n_gathered = 0;
    return write_out(output, output->gathered, size, error);
}

static pith_status check_usable(const pith_output *output, pith_error *error) {
    if (output->committed)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "%s was committed already",
                         shown_path(output->path));
    if (output->failed)
        return pith_fail(error, PITH_ERROR_IO, "%s: an earlier write failed",
                         shown_path(output->path));
    return PITH_OK;
}

pith_status pith_output_write(pith_output *output, const void *data, size_t size,
                              pith_error *error) {
    pith_status status = check_usable(output, error);
    if (status == PITH_OK && size > GATHER_BYTES - output->n_gathered)
        status = write_gathered(output, error);
    if (status) return status;
    if (size >= GATHER_BYTES) return write_out(output, data, size, error);
    if (size) memcpy(output->gathered + output->n_gathered, data, size);
    output->n_gathered += size;
    return PITH_OK;
}

pith_status pith_output_commit(pith_output *output, pith_error *error) {
    pith_status status = check_usable(output, error);
    if (status == PITH_OK) status = write_gathered(output, error);
    if (status) return status;
    int code = pith_os_output_sync(output->handle);
    if (code != 0) return fail_output(output, "making it durable failed", code, error);
    output->is_open = false;
    code = pith_os_output_close(output->handle);
    if (code == 0) code = pith_os_output_rename(output->part, output->path);
    if (code == 0) {
        output->committed = true;
        return PITH_OK;
    }
    pith_os_output_remove(output->part);
    return fail_output(output, "putting it in place failed", code, error);
}

void pith_output_close(pith_output *output) {
    if (!output) return;
    if (output->is_open) {
        (void)pith_os_output_close(output->handle);
        pith_os_output_remove(output->part);
    }
    pith_free(output->path);
    pith_free(output->part);
    pith_free(output);
}
