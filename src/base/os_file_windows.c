/* SPDX-License-Identifier: Apache-2.0
 *
 * Files on Windows: open, positioned reads, mapping. Paths are UTF-8 outside and UTF-16 here.
 *
 * Invariant: only disk files are opened; a duplicated descriptor is opened anew where the system
 * can, so that our reads do not move the caller's position. How much of a file is cached cannot be
 * asked: residency is unknown, and no read passes the cache by. Paths longer than the system's
 * limit are refused by the system.
 *
 * Read next: source.c; os_file.c is the other body.
 */
#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN
#define _WIN32_WINNT 0x0602

#include "base/os.h"

#include "base/memory.h"

#include <io.h>
#include <stdio.h>
#include <windows.h>

enum { READ_LIMIT = 1 << 30, SHARE_ALL = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE };

void pith_os_error_text(int code, char *text, size_t capacity) {
    const char *sentence = NULL;
    switch (code) {
    case ERROR_FILE_NOT_FOUND: sentence = "there is no such file"; break;
    case ERROR_PATH_NOT_FOUND: sentence = "a part of the path does not exist"; break;
    case ERROR_ACCESS_DENIED: sentence = "permission denied"; break;
    case ERROR_SHARING_VIOLATION: sentence = "another program has locked it"; break;
    case ERROR_TOO_MANY_OPEN_FILES: sentence = "too many files are open"; break;
    case ERROR_INVALID_NAME: sentence = "the path is not a valid name"; break;
    case ERROR_FILENAME_EXCED_RANGE: sentence = "the path is too long"; break;
    case ERROR_INVALID_HANDLE: sentence = "not an open descriptor"; break;
    case ERROR_NOT_ENOUGH_MEMORY: sentence = "out of memory"; break;
    default: break;
    }
    if (sentence) {
        (void)snprintf(text, capacity, "%s", sentence);
    } else {
        (void)snprintf(text, capacity, "system error %d", code);
    }
}

static pith_status fail_open(const char *name, DWORD code, pith_error *error) {
    char why[64];
    pith_os_error_text((int)code, why, sizeof why);
    bool missing = code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND;
    if (code == ERROR_NOT_ENOUGH_MEMORY)
        return pith_fail(error, PITH_ERROR_MEMORY, "%s: %s", name, why);
    return pith_fail(error, missing ? PITH_ERROR_NOT_FOUND : PITH_ERROR_IO, "%s: %s", name, why);
}

/* NULL when the path is not UTF-8 or memory is short; *code says which. Released with pith_free. */
static wchar_t *wide_path(const char *path, DWORD *code) {
    int count = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    wchar_t *wide = count > 0 ? pith_alloc_array((size_t)count, sizeof *wide) : NULL;
    *code = count > 0 ? ERROR_NOT_ENOUGH_MEMORY : ERROR_INVALID_NAME;
    if (wide) (void)MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, count);
    return wide;
}

/* Takes the size of an open handle; closes it when it is no disk file. */
static pith_status adopt(HANDLE handle, const char *name, pith_os_file *out, pith_error *error) {
    LARGE_INTEGER size;
    FILETIME changed = {0, 0};
    if (GetFileType(handle) != FILE_TYPE_DISK) {
        CloseHandle(handle);
        return pith_fail(error, PITH_ERROR_IO,
                         "%s: is a pipe or a device, not a regular file; save it to a file first",
                         name);
    }
    if (!GetFileSizeEx(handle, &size)) {
        DWORD code = GetLastError();
        CloseHandle(handle);
        return fail_open(name, code, error);
    }
    (void)GetFileTime(handle, NULL, NULL, &changed);
    *out =
        (pith_os_file){.handle = (intptr_t)handle,
                       .size = (uint64_t)size.QuadPart,
                       .changed = (uint64_t)changed.dwHighDateTime << 32 | changed.dwLowDateTime};
    return PITH_OK;
}

pith_status pith_os_file_open(const char *path, pith_os_file *out, pith_error *error) {
    DWORD code;
    wchar_t *wide = wide_path(path, &code);
    if (!wide) return fail_open(path, code, error);
    DWORD attributes = GetFileAttributesW(wide);
    if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY)) {
        pith_free(wide);
        return pith_fail(error, PITH_ERROR_IO, "%s: is a directory; name a file in it", path);
    }
    HANDLE handle = CreateFileW(wide, GENERIC_READ, SHARE_ALL, NULL, OPEN_EXISTING,
                                FILE_ATTRIBUTE_NORMAL, NULL);
    code = handle == INVALID_HANDLE_VALUE ? GetLastError() : 0;
    pith_free(wide);
    if (code) return fail_open(path, code, error);
    return adopt(handle, path, out, error);
}

pith_status pith_os_file_duplicate(int descriptor, pith_os_file *out, pith_error *error) {
    intptr_t given = descriptor >= 0 ? _get_osfhandle(descriptor) : -1;
    if (given == -1 || given == -2) return fail_open("descriptor", ERROR_INVALID_HANDLE, error);
    HANDLE copy = ReOpenFile((HANDLE)given, GENERIC_READ, SHARE_ALL, 0), self = GetCurrentProcess();
    if (copy == INVALID_HANDLE_VALUE &&
        !DuplicateHandle(self, (HANDLE)given, self, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS)) {
        return fail_open("descriptor", GetLastError(), error);
    }
    return adopt(copy, "descriptor", out, error);
}

void pith_os_file_close(pith_os_file *file) {
    CloseHandle((HANDLE)file->handle);
}

int pith_os_file_read(const pith_os_file *file, uint64_t offset, void *buffer, size_t size) {
    char *at = buffer;
    while (size) {
        DWORD n = 0, part = size < READ_LIMIT ? (DWORD)size : READ_LIMIT;
        OVERLAPPED where = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
        if (!ReadFile((HANDLE)file->handle, at, part, &n, &where)) {
            DWORD code = GetLastError();
            return code == ERROR_HANDLE_EOF ? -1 : (int)code;
        }
        if (n == 0) return -1;
        at += n;
        offset += n;
        size -= n;
    }
    return 0;
}

bool pith_os_file_open_direct(const pith_os_file *file, pith_os_file *out) {
    (void)file, (void)out;
    return false;
}

int64_t pith_os_file_read_direct(const pith_os_file *direct, uint64_t offset, void *buffer,
                                 size_t size) {
    (void)direct, (void)offset, (void)buffer, (void)size;
    return -1;
}

void pith_os_file_prefetch(const pith_os_file *file, uint64_t offset, uint64_t size) {
    (void)file, (void)offset, (void)size;
}

bool pith_os_view_open(const pith_os_file *file, uint64_t offset, uint64_t size,
                       pith_os_view *out) {
    *out = (pith_os_view){0};
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    uint64_t before = offset % system.dwAllocationGranularity, first = offset - before;
    if (size == 0 || size > SIZE_MAX - before) return false;
    HANDLE mapping = CreateFileMappingW((HANDLE)file->handle, NULL, PAGE_READONLY, 0, 0, NULL);
    if (!mapping) return false;
    size_t base_size = (size_t)(before + size);
    void *base =
        MapViewOfFile(mapping, FILE_MAP_READ, (DWORD)(first >> 32), (DWORD)first, base_size);
    CloseHandle(mapping); /* the view keeps it alive */
    if (!base) return false;
    *out = (pith_os_view){
        .data = (const uint8_t *)base + before, .size = size, .base = base, .base_size = base_size};
    return true;
}

void pith_os_view_close(pith_os_view *view) {
    if (view->base) UnmapViewOfFile(view->base);
    *view = (pith_os_view){0};
}

void pith_os_view_prefetch(const pith_os_view *view, uint64_t offset, uint64_t size) {
    typedef struct range {
        void *start;
        SIZE_T size;
    } range;
    typedef BOOL(WINAPI * prefetch_memory)(HANDLE, ULONG_PTR, range *, ULONG);
    HMODULE kernel = GetModuleHandleW(L"kernel32.dll");
    void *address = kernel ? (void *)GetProcAddress(kernel, "PrefetchVirtualMemory") : NULL;
    if (!address) return;
    prefetch_memory prefetch = (prefetch_memory)address;
    range wanted = {(uint8_t *)view->base + (view->data - (const uint8_t *)view->base) + offset,
                    (SIZE_T)size};
    (void)prefetch(GetCurrentProcess(), 1, &wanted, 0);
}

double pith_os_view_resident(const pith_os_view *view, uint64_t offset, uint64_t size) {
    (void)view, (void)offset, (void)size;
    return -1;
}

#else
typedef int pith_os_file_windows_is_elsewhere;
#endif
