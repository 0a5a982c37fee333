/* SPDX-License-Identifier: Apache-2.0
 *
 * Files on POSIX systems: open, positioned reads, direct reads (Linux), mapping, residency.
 *
 * Invariant: only regular files are opened, and opening never blocks (a FIFO without a writer is
 * refused, not waited for). Reads are split, because systems limit one read to about 2 GiB, and
 * retried on EINTR.
 *
 * Read next: source.c; os_file_windows.c is the other body.
 */
#if !defined(_WIN32)

#if defined(__linux__)
#define _GNU_SOURCE
#else
#define _DARWIN_C_SOURCE
#define _BSD_SOURCE
#endif
#define _FILE_OFFSET_BITS 64

#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_LIMIT = 1 << 30, RESIDENT_CHUNK = 4096 /* pages asked for at once */ };

void pith_os_error_text(int code, char *text, size_t capacity) {
    const char *sentence = NULL;
    switch (code) {
    case ENOENT: sentence = "there is no such file"; break;
    case ENOTDIR: sentence = "a part of the path is not a directory"; break;
    case EACCES:
    case EPERM: sentence = "permission denied"; break;
    case EISDIR: sentence = "is a directory"; break;
    case EMFILE:
    case ENFILE: sentence = "too many files are open"; break;
    case ENAMETOOLONG: sentence = "the path is too long"; break;
    case ELOOP: sentence = "too many symbolic links"; break;
    case EIO: sentence = "the device reports a read error"; break;
    case EBADF: sentence = "not an open descriptor"; break;
    case ENOMEM: sentence = "out of memory"; break;
    default: break;
    }
    if (sentence) {
        (void)snprintf(text, capacity, "%s", sentence);
    } else { /* strerror may share one buffer between threads */
        (void)snprintf(text, capacity, "system error %d", code);
    }
}

static pith_status fail_open(const char *name, int code, pith_error *error) {
    char why[64];
    pith_os_error_text(code, why, sizeof why);
    bool missing = code == ENOENT || code == ENOTDIR;
    return pith_fail(error, missing ? PITH_ERROR_NOT_FOUND : PITH_ERROR_IO, "%s: %s", name, why);
}

/* In nanoseconds where the system counts them. */
static uint64_t changed_at(const struct stat *info) {
#if defined(__APPLE__)
    const struct timespec at = info->st_mtimespec;
#else
    const struct timespec at = info->st_mtim;
#endif
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* Takes the size of an open descriptor; closes it when it is no regular file. */
static pith_status adopt(int descriptor, const char *name, pith_os_file *out, pith_error *error) {
    struct stat info;
    if (fstat(descriptor, &info) != 0) {
        int code = errno;
        close(descriptor);
        return fail_open(name, code, error);
    }
    if (S_ISREG(info.st_mode)) {
        *out = (pith_os_file){
            .handle = descriptor, .size = (uint64_t)info.st_size, .changed = changed_at(&info)};
        return PITH_OK;
    }
    close(descriptor);
    if (S_ISDIR(info.st_mode)) {
        return pith_fail(error, PITH_ERROR_IO, "%s: is a directory; name a file in it", name);
    }
    return pith_fail(error, PITH_ERROR_IO,
                     "%s: is a pipe or a device, not a regular file; save it to a file first",
                     name);
}

pith_status pith_os_file_open(const char *path, pith_os_file *out, pith_error *error) {
    int descriptor;
    do descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) return fail_open(path, errno, error);
    return adopt(descriptor, path, out, error);
}

pith_status pith_os_file_duplicate(int descriptor, pith_os_file *out, pith_error *error) {
    int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return fail_open("descriptor", errno, error);
    return adopt(copy, "descriptor", out, error);
}

void pith_os_file_close(pith_os_file *file) {
    close((int)file->handle);
}

int pith_os_file_read(const pith_os_file *file, uint64_t offset, void *buffer, size_t size) {
    char *at = buffer;
    while (size) {
        size_t part = size < READ_LIMIT ? size : READ_LIMIT;
        ssize_t n = pread((int)file->handle, at, part, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return -1;
        at += n;
        offset += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

/* Through /proc, because it is certain to be the same file, whatever its path names by now. */
bool pith_os_file_open_direct(const pith_os_file *file, pith_os_file *out) {
#if defined(O_DIRECT) && defined(__linux__)
    char path[40];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", (int)file->handle);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_DIRECT);
    if (descriptor < 0) return false;
    *out = (pith_os_file){.handle = descriptor, .size = file->size};
    return true;
#else
    (void)file, (void)out;
    return false;
#endif
}

int64_t pith_os_file_read_direct(const pith_os_file *direct, uint64_t offset, void *buffer,
                                 size_t size) {
    ssize_t n;
    do n = pread((int)direct->handle, buffer, size < READ_LIMIT ? size : READ_LIMIT, (off_t)offset);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -1 : (int64_t)n;
}

void pith_os_file_prefetch(const pith_os_file *file, uint64_t offset, uint64_t size) {
#if defined(POSIX_FADV_WILLNEED)
    (void)posix_fadvise((int)file->handle, (off_t)offset, (off_t)size, POSIX_FADV_WILLNEED);
#else
    (void)file, (void)offset, (void)size;
#endif
}

static uint64_t page_size(void) {
    long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (uint64_t)size : 4096;
}

bool pith_os_view_open(const pith_os_file *file, uint64_t offset, uint64_t size,
                       pith_os_view *out) {
    *out = (pith_os_view){0};
    uint64_t before = offset % page_size();
    if (size == 0 || size > SIZE_MAX - before) return false;
    size_t base_size = (size_t)(before + size);
    void *base =
        mmap(NULL, base_size, PROT_READ, MAP_SHARED, (int)file->handle, (off_t)(offset - before));
    if (base == MAP_FAILED) return false;
    *out = (pith_os_view){
        .data = (const uint8_t *)base + before, .size = size, .base = base, .base_size = base_size};
    return true;
}

void pith_os_view_close(pith_os_view *view) {
    if (view->base) munmap(view->base, view->base_size);
    *view = (pith_os_view){0};
}

void pith_os_view_prefetch(const pith_os_view *view, uint64_t offset, uint64_t size) {
    uint64_t first = (uint64_t)(view->data - (const uint8_t *)view->base) + offset;
    uint64_t before = first % page_size();
    (void)madvise((char *)view->base + (first - before), (size_t)(size + before), MADV_WILLNEED);
}

/* Since Linux 5.2 a file that we may neither own nor write is always reported as resident. */
double pith_os_view_resident(const pith_os_view *view, uint64_t offset, uint64_t size) {
    if (size == 0) return 1;
#if defined(__linux__)
    unsigned char pages[RESIDENT_CHUNK];
#else
    char pages[RESIDENT_CHUNK];
#endif
    uint64_t start = (uint64_t)(view->data - (const uint8_t *)view->base) + offset;
    uint64_t page = page_size(), before = start % page, n_resident = 0;
    uint64_t n_pages = (before + size + page - 1) / page;
    char *base = (char *)view->base + (start - before);
    for (uint64_t first = 0; first < n_pages; first += RESIDENT_CHUNK) {
        uint64_t n = n_pages - first < RESIDENT_CHUNK ? n_pages - first : RESIDENT_CHUNK;
        if (mincore(base + first * page, (size_t)(n * page), (void *)pages) != 0) return -1;
        for (uint64_t i = 0; i < n; i++) n_resident += (unsigned)pages[i] & 1u;
    }
    return (double)n_resident / (double)n_pages;
}

#else
typedef int pith_os_file_is_elsewhere;
#endif
