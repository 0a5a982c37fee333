/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing files on POSIX systems: exclusive creation, complete writes, sync, rename.
 *
 * Invariant: a write that returns 0 has handed over every byte; writes are split, because systems
 * limit one write to about 2 GiB, and retried on EINTR.
 *
 * Read next: output.c, the only user; os_output_windows.c is the other body.
 * */
#if !defined(_WIN32)

#define _POSIX_C_SOURCE   200809L
#define _FILE_OFFSET_BITS 64

#include "base/os_output.h"

#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WRITE_LIMIT = 1 << 30, PATH_LIMIT = 4096 };

int pith_os_output_open(const char *path, intptr_t *handle, bool *exists) {
    int descriptor;
    do {
        descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (descriptor < 0 && errno == EINTR);
    *exists = descriptor < 0 && errno == EEXIST;
    *handle = descriptor;
    return descriptor < 0 ? errno : 0;
}

int pith_os_output_write(intptr_t handle, const void *data, size_t size) {
    const char *at = data;
    while (size > 0) {
        ssize_t n = write((int)handle, at, size < WRITE_LIMIT ? size : WRITE_LIMIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

/* A file system that cannot sync (EINVAL) has nothing to wait for. */
static int sync_descriptor(int descriptor) {
    int result;
    do {
        result = fsync(descriptor);
    } while (result != 0 && errno == EINTR);
    return result == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
}

int pith_os_output_sync(intptr_t handle) {
    return sync_descriptor((int)handle);
}

int pith_os_output_close(intptr_t handle) {
    return close((int)handle) == 0 || errno == EINTR ? 0 : errno;
}

/* The new name is in the directory's own data. Where a directory cannot be opened or synced the
 * rename still stands, so nothing is reported. */
static void sync_directory_of(const char *path) {
    char directory[PATH_LIMIT] = ".";
    const char *slash = strrchr(path, '/');
    if (slash) {
        size_t size = slash == path ? 1 : (size_t)(slash - path);
        if (size >= sizeof directory) return;
        memcpy(directory, path, size);
        directory[size] = '\0';
    }
    int descriptor = open(directory, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    (void)sync_descriptor(descriptor);
    (void)close(descriptor);
}

int pith_os_output_rename(const char *from, const char *to) {
    if (rename(from, to) != 0) return errno;
    sync_directory_of(to);
    return 0;
}

void pith_os_output_remove(const char *path) {
    (void)unlink(path);
}

void pith_os_output_error_text(int code, char *text, size_t capacity) {
    const char *why = NULL;
    switch (code) {
    case ENOENT: why = "its folder does not exist"; break; /* the file itself need not */
    case ENOSPC: why = "the disk is full"; break;
    case EDQUOT: why = "the disk quota is used up"; break;
    case EFBIG: why = "the file is larger than the system allows"; break;
    case EROFS: why = "the disk is read-only"; break;
    case EIO: why = "the device reports a write error"; break;
    default: break;
    }
    if (why)
        (void)snprintf(text, capacity, "%s", why);
    else
        pith_os_error_text(code, text, capacity);
}

#else
typedef int pith_os_output_is_elsewhere;
#endif
