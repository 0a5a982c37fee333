/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders on POSIX systems.
 *
 * Invariant: a folder that is made here is the user's alone (0700), since what is kept in it is
 * made of their texts; folders that were there before keep their permissions.
 *
 * Read next: os_folder_windows.c is the other body.
 */
#if !defined(_WIN32)

#define _POSIX_C_SOURCE   200809L
#define _FILE_OFFSET_BITS 64

#include "base/folder.h"

#include "base/memory.h"
#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static pith_status fail_path(const char *path, int code, pith_error *error) {
    char why[96];
    pith_os_error_text(code, why, sizeof why);
    pith_status status = code == ENOENT ? PITH_ERROR_NOT_FOUND : PITH_ERROR_IO;
    return pith_fail(error, status, "%.140s: %s", path, why);
}

bool pith_folder_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

pith_status pith_folder_make(const char *path, pith_error *error) {
    if (pith_folder_exists(path)) return PITH_OK;
    char *part = pith_copy_text(path, strlen(path));
    if (!part) return pith_fail_memory(error, "a path", strlen(path));
    int code = 0;
    for (char *at = part; *at; at++) {
        if (at == part || *at != '/') continue;
        *at = 0;
        (void)mkdir(part, 0700); /* the last one decides: a parent may be read-only */
        *at = '/';
    }
    if (mkdir(part, 0700) != 0) code = errno;
    pith_free(part);
    if (code == 0 || pith_folder_exists(path)) return PITH_OK;
    return fail_path(path, code == EEXIST ? ENOTDIR : code, error);
}

pith_status pith_folder_each(const char *path, bool (*each)(void *user, const char *name),
                             void *user, pith_error *error) {
    DIR *folder = opendir(path);
    if (!folder) return fail_path(path, errno, error);
    for (struct dirent *entry; (entry = readdir(folder)) && each(user, entry->d_name);) {}
    (void)closedir(folder);
    return PITH_OK;
}

uint64_t pith_folder_room(const char *path) {
    struct statvfs info;
    if (statvfs(path, &info) != 0) return UINT64_MAX;
    uint64_t unit = info.f_frsize ? info.f_frsize : info.f_bsize, bytes;
    return pith_u64_mul(unit, info.f_bavail, &bytes) ? bytes : UINT64_MAX;
}

void pith_file_remove(const char *path) {
    (void)unlink(path);
}

#else
typedef int pith_os_folder_is_elsewhere;
#endif
