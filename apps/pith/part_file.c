/* SPDX-License-Identifier: Apache-2.0
 * Files that are fetched in parts: reading and writing at any place, locks, durable renames. One
 * body for POSIX and one for Windows, as in host.c; paths are UTF-8.
 * Invariant: a write that returns 0 has handed over every byte. Read next: download.c. */
#if !defined(_WIN32)
#define _DEFAULT_SOURCE      /* flock under -std=c11 */
#define _FILE_OFFSET_BITS 64 /* files above 2 GiB on 32-bit systems */
#endif

#include "pith/part_file.h"

#include "base/memory.h"
#include "base/sha256.h"
#include "pith/cli.h"

#include <errno.h>
#include <string.h>

enum { PIECE_LIMIT = 1 << 30, HASH_PIECE = 256 << 10 };

#if defined(_WIN32)

#include <windows.h>

static wchar_t *wide_path(const char *path) {
    int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    wchar_t *wide = n > 0 ? pith_alloc_array((size_t)n, sizeof *wide) : NULL;
    if (wide) MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, n);
    return wide;
}

/* The errno that says the same as the system's last error. */
static int last_error(void) {
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND: return ENOENT;
    case ERROR_ACCESS_DENIED: return EACCES;
    case ERROR_LOCK_VIOLATION:
    case ERROR_SHARING_VIOLATION: return EWOULDBLOCK;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: return ENOSPC;
    default: return EIO;
    }
}

int pith_cli_part_open(const char *path, pith_cli_part_file *out) {
    wchar_t *wide = wide_path(path);
    if (!wide) return EINVAL;
    HANDLE handle = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE,
                                FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                                OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
    int code = handle == INVALID_HANDLE_VALUE ? last_error() : 0;
    pith_free(wide);
    *out = (pith_cli_part_file){(intptr_t)handle, code == 0};
    return code;
}

void pith_cli_part_close(pith_cli_part_file *file) {
    if (file->is_open) CloseHandle((HANDLE)file->handle);
    file->is_open = false;
}

static OVERLAPPED place_of(uint64_t offset) {
    OVERLAPPED place = {0};
    place.Offset = (DWORD)offset;
    place.OffsetHigh = (DWORD)(offset >> 32);
    return place;
}

int pith_cli_part_write(const pith_cli_part_file *file, uint64_t offset, const void *data,
                        size_t size) {
    for (const char *at = data; size > 0;) {
        OVERLAPPED place = place_of(offset);
        DWORD n = 0, wanted = size < PIECE_LIMIT ? (DWORD)size : PIECE_LIMIT;
        if (!WriteFile((HANDLE)file->handle, at, wanted, &n, &place)) return last_error();
        at += n;
        offset += n;
        size -= n;
    }
    return 0;
}

int64_t pith_cli_part_read(const pith_cli_part_file *file, uint64_t offset, void *data,
                           size_t size) {
    OVERLAPPED place = place_of(offset);
    DWORD n = 0, wanted = size < PIECE_LIMIT ? (DWORD)size : PIECE_LIMIT;
    if (ReadFile((HANDLE)file->handle, data, wanted, &n, &place)) return n;
    return GetLastError() == ERROR_HANDLE_EOF ? 0 : -1;
}

uint64_t pith_cli_part_size(const pith_cli_part_file *file) {
    LARGE_INTEGER size;
    return GetFileSizeEx((HANDLE)file->handle, &size) ? (uint64_t)size.QuadPart : UINT64_MAX;
}

int pith_cli_part_cut(const pith_cli_part_file *file, uint64_t size) {
    LARGE_INTEGER end = {.QuadPart = (LONGLONG)size};
    bool cut = SetFilePointerEx((HANDLE)file->handle, end, NULL, FILE_BEGIN) &&
               SetEndOfFile((HANDLE)file->handle);
    return cut ? 0 : last_error();
}

int pith_cli_part_sync(const pith_cli_part_file *file) {
    return FlushFileBuffers((HANDLE)file->handle) ? 0 : last_error();
}

int pith_cli_part_lock(const pith_cli_part_file *file) {
    OVERLAPPED place = place_of(0);
    bool locked = LockFileEx((HANDLE)file->handle,
                             LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &place);
    return locked ? 0 : last_error();
}

int pith_cli_move_file(const char *from, const char *to) {
    wchar_t *a = wide_path(from), *b = wide_path(to);
    int code = a && b ? 0 : EINVAL;
    if (code == 0 && !MoveFileExW(a, b, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
        code = last_error();
    pith_free(a);
    pith_free(b);
    return code;
}

void pith_cli_remove_folder(const char *path) {
    wchar_t *wide = wide_path(path);
    if (wide) (void)RemoveDirectoryW(wide);
    pith_free(wide);
}

uint64_t pith_cli_file_bytes(const char *path) {
    WIN32_FILE_ATTRIBUTE_DATA info;
    wchar_t *wide = wide_path(path);
    bool known = wide && GetFileAttributesExW(wide, GetFileExInfoStandard, &info) &&
                 !(info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY);
    pith_free(wide);
    return known ? (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow : UINT64_MAX;
}

#else

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int pith_cli_part_open(const char *path, pith_cli_part_file *out) {
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    *out = (pith_cli_part_file){descriptor, descriptor >= 0};
    return descriptor < 0 ? errno : 0;
}

void pith_cli_part_close(pith_cli_part_file *file) {
    if (file->is_open) close((int)file->handle);
    file->is_open = false;
}

int pith_cli_part_write(const pith_cli_part_file *file, uint64_t offset, const void *data,
                        size_t size) {
    for (const char *at = data; size > 0;) {
        ssize_t n =
            pwrite((int)file->handle, at, size < PIECE_LIMIT ? size : PIECE_LIMIT, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        at += n;
        offset += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

int64_t pith_cli_part_read(const pith_cli_part_file *file, uint64_t offset, void *data,
                           size_t size) {
    ssize_t n;
    do {
        n = pread((int)file->handle, data, size < PIECE_LIMIT ? size : PIECE_LIMIT, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    return n;
}

uint64_t pith_cli_part_size(const pith_cli_part_file *file) {
    struct stat info;
    return fstat((int)file->handle, &info) == 0 ? (uint64_t)info.st_size : UINT64_MAX;
}

int pith_cli_part_cut(const pith_cli_part_file *file, uint64_t size) {
    return ftruncate((int)file->handle, (off_t)size) == 0 ? 0 : errno;
}

/* A file system that cannot sync (EINVAL) has nothing to wait for. */
static int sync_descriptor(int descriptor) {
    return fsync(descriptor) == 0 || errno == EINVAL || errno == EINTR ? 0 : errno;
}

int pith_cli_part_sync(const pith_cli_part_file *file) {
    return sync_descriptor((int)file->handle);
}

int pith_cli_part_lock(const pith_cli_part_file *file) {
    if (flock((int)file->handle, LOCK_EX | LOCK_NB) == 0) return 0;
    return errno == EAGAIN ? EWOULDBLOCK : errno;
}

/* The new name is in the folder's own data; a folder that cannot be synced is no failure. */
static void sync_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    size_t size = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    char *folder = slash ? pith_copy_text(path, size) : pith_copy_text(".", 1);
    int descriptor = folder ? open(folder, O_RDONLY | O_CLOEXEC) : -1;
    if (descriptor >= 0) {
        (void)sync_descriptor(descriptor);
        close(descriptor);
    }
    pith_free(folder);
}

int pith_cli_move_file(const char *from, const char *to) {
    if (rename(from, to) != 0) return errno;
    sync_folder_of(to);
    return 0;
}

void pith_cli_remove_folder(const char *path) {
    (void)rmdir(path);
}

uint64_t pith_cli_file_bytes(const char *path) {
    struct stat info;
    bool known = stat(path, &info) == 0 && S_ISREG(info.st_mode);
    return known ? (uint64_t)info.st_size : UINT64_MAX;
}

#endif

bool pith_cli_file_digest(const char *path, char out[65]) {
    pith_sha256 hash;
    FILE *file = pith_cli_open_file(path, "rb");
    char *buffer = file ? pith_alloc(HASH_PIECE) : NULL;
    size_t n = 0;
    pith_sha256_init(&hash);
    while (buffer && (n = fread(buffer, 1, HASH_PIECE, file)) > 0)
        pith_sha256_append(&hash, buffer, n);
    bool whole = buffer && !ferror(file);
    if (file) fclose(file);
    pith_free(buffer);
    if (whole) pith_sha256_text(&hash, out);
    return whole;
}
