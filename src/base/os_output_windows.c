/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing files on Windows: exclusive creation, complete writes, sync, rename. Paths are UTF-8.
 *
 * Invariant: as in os_output.c, a write that returns 0 has handed over every byte.
 *
 * Read next: output.c, the only user.
 */
#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN
#include "base/os_output.h"

#include "base/memory.h"
#include "base/os.h"

#include <stdio.h>
#include <windows.h>

#define WRITE_LIMIT ((DWORD)1 << 30)

/* NULL when the path is not UTF-8 or memory is short. Released with pith_free. */
static wchar_t *wide_path(const char *path) {
    int count = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    wchar_t *wide = count > 0 ? pith_alloc_array((size_t)count, sizeof *wide) : NULL;
    if (wide) (void)MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, count);
    return wide;
}

int pith_os_output_open(const char *path, intptr_t *handle, bool *exists) {
    *exists = false;
    *handle = -1;
    wchar_t *wide = wide_path(path);
    if (!wide) return ERROR_INVALID_NAME;
    HANDLE file = CreateFileW(wide, GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL,
                              CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    DWORD code = file == INVALID_HANDLE_VALUE ? GetLastError() : 0;
    pith_free(wide);
    *exists = code == ERROR_FILE_EXISTS || code == ERROR_ALREADY_EXISTS;
    *handle = (intptr_t)file;
    return (int)code;
}

int pith_os_output_write(intptr_t handle, const void *data, size_t size) {
    const char *at = data;
    while (size > 0) {
        DWORD n = 0, wanted = size < WRITE_LIMIT ? (DWORD)size : WRITE_LIMIT;
        if (!WriteFile((HANDLE)handle, at, wanted, &n, NULL)) return (int)GetLastError();
        at += n;
        size -= n;
    }
    return 0;
}

int pith_os_output_sync(intptr_t handle) {
    return FlushFileBuffers((HANDLE)handle) ? 0 : (int)GetLastError();
}

int pith_os_output_close(intptr_t handle) {
    return CloseHandle((HANDLE)handle) ? 0 : (int)GetLastError();
}

int pith_os_output_rename(const char *from, const char *to) {
    wchar_t *wide_from = wide_path(from), *wide_to = wide_path(to);
    DWORD code = wide_from && wide_to ? 0 : ERROR_INVALID_NAME;
    if (code == 0 &&
        !MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
        code = GetLastError();
    pith_free(wide_from);
    pith_free(wide_to);
    return (int)code;
}

void pith_os_output_remove(const char *path) {
    wchar_t *wide = wide_path(path);
    if (wide) (void)DeleteFileW(wide);
    pith_free(wide);
}

void pith_os_output_error_text(int code, char *text, size_t capacity) {
    if (code == ERROR_DISK_FULL || code == ERROR_HANDLE_DISK_FULL)
        (void)snprintf(text, capacity, "the disk is full");
    else if (code == ERROR_PATH_NOT_FOUND)
        (void)snprintf(text, capacity, "its folder does not exist");
    else
        pith_os_error_text(code, text, capacity);
}

#else
typedef int pith_os_output_windows_is_elsewhere;
#endif
