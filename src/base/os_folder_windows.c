/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders on Windows: paths are UTF-8 outside and UTF-16 here. A folder has the permissions that
 * its parent hands down, which in a profile are the user's own.
 *
 * Read next: os_folder.c is the other body.
 */
#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN
#include "base/folder.h"

#include "base/memory.h"
#include "base/os.h"

#include <string.h>
#include <windows.h>

/* `path` followed by `more`; NULL when it is not UTF-8 or memory is short. Released with
 * pith_free. */
static wchar_t *wide_path(const char *path, const wchar_t *more) {
    int count = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    size_t extra = wcslen(more);
    wchar_t *wide = count > 0 ? pith_alloc_array((size_t)count + extra, sizeof *wide) : NULL;
    if (!wide) return NULL;
    (void)MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, count);
    memcpy(wide + count - 1, more, (extra + 1) * sizeof *wide);
    return wide;
}

static pith_status fail_path(const char *path, DWORD code, pith_error *error) {
    char why[96];
    pith_os_error_text((int)code, why, sizeof why);
    bool missing = code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND;
    return pith_fail(error, missing ? PITH_ERROR_NOT_FOUND : PITH_ERROR_IO, "%.140s: %s", path,
                     why);
}

static bool is_folder(const wchar_t *wide) {
    DWORD bits = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    return bits != INVALID_FILE_ATTRIBUTES && (bits & FILE_ATTRIBUTE_DIRECTORY);
}

bool pith_folder_exists(const char *path) {
    wchar_t *wide = wide_path(path, L"");
    bool exists = is_folder(wide);
    pith_free(wide);
    return exists;
}

pith_status pith_folder_make(const char *path, pith_error *error) {
    wchar_t *wide = wide_path(path, L"");
    if (!wide) return fail_path(path, ERROR_INVALID_NAME, error);
    DWORD code = 0;
    for (wchar_t *at = wide; *at; at++) {
        wchar_t divider = *at;
        if (at == wide || (divider != L'/' && divider != L'\\')) continue;
        *at = 0;
        (void)CreateDirectoryW(wide, NULL);
        *at = divider;
    }
    if (!CreateDirectoryW(wide, NULL)) code = GetLastError();
    bool exists = code == 0 || is_folder(wide);
    pith_free(wide);
    return exists ? PITH_OK : fail_path(path, code, error);
}

static bool tell(const wchar_t *name, bool (*each)(void *user, const char *name), void *user) {
    int n = WideCharToMultiByte(CP_UTF8, 0, name, -1, NULL, 0, NULL, NULL);
    char *text = n > 0 ? pith_alloc_array((size_t)n, 1) : NULL;
    bool more = text != NULL;
    if (text) WideCharToMultiByte(CP_UTF8, 0, name, -1, text, n, NULL, NULL);
    if (text) more = each(user, text);
    pith_free(text);
    return more;
}

pith_status pith_folder_each(const char *path, bool (*each)(void *user, const char *name),
                             void *user, pith_error *error) {
    WIN32_FIND_DATAW found;
    wchar_t *pattern = wide_path(path, L"/*");
    if (!pattern) return fail_path(path, ERROR_INVALID_NAME, error);
    HANDLE search = FindFirstFileW(pattern, &found);
    DWORD code = search == INVALID_HANDLE_VALUE ? GetLastError() : 0;
    pith_free(pattern);
    if (code) return fail_path(path, code, error);
    while (tell(found.cFileName, each, user) && FindNextFileW(search, &found)) {}
    FindClose(search);
    return PITH_OK;
}

uint64_t pith_folder_room(const char *path) {
    ULARGE_INTEGER bytes;
    wchar_t *wide = wide_path(path, L"");
    bool known = wide && GetDiskFreeSpaceExW(wide, &bytes, NULL, NULL);
    pith_free(wide);
    return known ? bytes.QuadPart : UINT64_MAX;
}

void pith_file_remove(const char *path) {
    wchar_t *wide = wide_path(path, L"");
    if (wide) (void)DeleteFileW(wide);
    pith_free(wide);
}

#else
typedef int pith_os_folder_windows_is_elsewhere;
#endif
