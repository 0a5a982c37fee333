/* SPDX-License-Identifier: Apache-2.0
 * What differs between systems for the program: the arguments' encoding, the names of files,
 * terminals, folders. Everything outside this file sees UTF-8 and plain bytes.
 * Does not read or write: input.c and cli_output.c do. */
#if !defined(_WIN32)
#define _DEFAULT_SOURCE /* POSIX and BSD names under -std=c11 */
#endif

#include "base/memory.h"
#include "pith/option_value.h"

#include <errno.h>
#include <string.h>

#if defined(_WIN32)

#include <windows.h>
/* after windows.h */
#include <direct.h>
#include <dirent.h>
#include <fcntl.h>
#include <io.h>
#include <shellapi.h>
#include <sys/stat.h>

/* NULL when the text is not UTF-8 or memory is short. */
static wchar_t *wide_text(const char *text) {
    int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *wide = n > 0 ? pith_alloc_array((size_t)n, sizeof *wide) : NULL;
    if (wide) MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, n);
    return wide;
}

static char *utf8_text(const wchar_t *wide) {
    int n = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    char *text = n > 0 ? pith_alloc_array((size_t)n, 1) : NULL;
    if (text) WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, n, NULL, NULL);
    return text;
}

/* The texts live until the program ends. Without memory the arguments stay as they are. */
void pith_cli_host_open(int *argc, char ***argv) {
    int n = 0;
    _setmode(0, _O_BINARY);
    _setmode(1, _O_BINARY);
    SetConsoleOutputCP(CP_UTF8);
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &n);
    char **texts = wide ? pith_alloc_zero((size_t)n + 1, sizeof *texts) : NULL;
    bool whole = texts && n == *argc;
    for (int i = 0; whole && i < n; i++) {
        texts[i] = utf8_text(wide[i]);
        whole = texts[i] != NULL;
    }
    if (whole) *argv = texts;
    LocalFree(wide);
}

char *pith_cli_variable(const char *name) {
    wchar_t *wide = wide_text(name), *value = wide ? _wgetenv(wide) : NULL;
    char *text = value && value[0] ? utf8_text(value) : NULL;
    pith_free(wide);
    return text;
}

int pith_cli_each_name(const char *folder, bool (*each)(void *user, const char *name), void *user) {
    wchar_t *wide = wide_text(folder);
    _WDIR *dir = wide ? _wopendir(wide) : NULL;
    int code = dir ? 0 : wide ? errno : EINVAL;
    pith_free(wide);
    for (struct _wdirent *entry; dir && (entry = _wreaddir(dir));) {
        char *name = utf8_text(entry->d_name);
        bool more = name && each(user, name);
        if (!name) code = ENOMEM;
        pith_free(name);
        if (!more) break;
    }
    if (dir) _wclosedir(dir);
    return code;
}

FILE *pith_cli_open_file(const char *path, const char *mode) {
    wchar_t *wide = wide_text(path), *wide_mode = wide_text(mode);
    FILE *file = wide && wide_mode ? _wfopen(wide, wide_mode) : NULL;
    if (!wide) errno = EINVAL;
    pith_free(wide);
    pith_free(wide_mode);
    return file;
}

int pith_cli_try_read(const char *path) {
    enum { MAY_READ = 4 };
    wchar_t *wide = wide_text(path);
    int code = !wide ? EINVAL : _waccess(wide, MAY_READ) == 0 ? 0 : errno;
    pith_free(wide);
    return code;
}

bool pith_cli_is_terminal(FILE *file) {
    return _isatty(_fileno(file)) != 0;
}

bool pith_cli_is_device(const char *path) {
    struct _stat64 info;
    wchar_t *wide = wide_text(path);
    bool known = wide && _wstat64(wide, &info) == 0;
    pith_free(wide);
    return known && !(info.st_mode & (_S_IFREG | _S_IFDIR));
}

void pith_cli_sleep(int milliseconds) {
    if (milliseconds > 0) Sleep((DWORD)milliseconds);
}

static unsigned process_number(void) {
    return (unsigned)GetCurrentProcessId();
}

static bool move_file(const char *from, const char *to) {
    wchar_t *a = wide_text(from), *b = wide_text(to);
    bool moved = a && b && MoveFileExW(a, b, MOVEFILE_REPLACE_EXISTING);
    pith_free(a);
    pith_free(b);
    return moved;
}

void pith_cli_remove_file(const char *path) {
    wchar_t *wide = wide_text(path);
    if (wide) (void)_wremove(wide);
    pith_free(wide);
}

int pith_cli_make_folder(const char *path) {
    wchar_t *wide = wide_text(path);
    int code = !wide || _wmkdir(wide) != 0 ? errno : 0;
    pith_free(wide);
    return code == EEXIST ? 0 : code;
}

#else

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A standard stream that came closed would be the next file that is opened: a model read as a
 * prompt, a message written into an output. Its number is taken here, by something that refuses
 * what the stream is for. */
static void hold_closed_streams(void) {
    for (int n = 0; n <= 2; n++) {
        if (fcntl(n, F_GETFD) != -1 || errno != EBADF) continue;
        int held = open("/dev/null", n == 0 ? O_WRONLY : O_RDONLY);
        if (held >= 0 && held != n) close(held);
    }
}

void pith_cli_host_open(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    hold_closed_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file too large for a limit is a failed write, told as such */
}

char *pith_cli_variable(const char *name) {
    const char *value = getenv(name);
    return value && value[0] ? pith_copy_text(value, strlen(value)) : NULL;
}

int pith_cli_each_name(const char *folder, bool (*each)(void *user, const char *name), void *user) {
    DIR *dir = opendir(folder);
    if (!dir) return errno;
    for (struct dirent *entry; (entry = readdir(dir)) && each(user, entry->d_name);) {}
    closedir(dir);
    return 0;
}

FILE *pith_cli_open_file(const char *path, const char *mode) {
    return fopen(path, mode);
}

int pith_cli_try_read(const char *path) {
    return access(path, R_OK) == 0 ? 0 : errno;
}

bool pith_cli_is_terminal(FILE *file) {
    return isatty(fileno(file)) != 0;
}

bool pith_cli_is_device(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

void pith_cli_sleep(int milliseconds) {
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    while (milliseconds > 0 && nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

static unsigned process_number(void) {
    return (unsigned)getpid();
}

static bool move_file(const char *from, const char *to) {
    return rename(from, to) == 0;
}

void pith_cli_remove_file(const char *path) {
    (void)remove(path);
}

int pith_cli_make_folder(const char *path) {
    return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : errno;
}

#endif

#if defined(_WIN32)
#define VARIABLES _environ
#else
extern char **environ;
#define VARIABLES environ
#endif

bool pith_cli_each_variable(bool (*each)(void *user, const char *name), void *user) {
    for (char **at = VARIABLES; at && *at; at++) {
        char name[128];
        size_t size = strcspn(*at, "=");
        if (size >= sizeof name) size = sizeof name - 1;
        memcpy(name, *at, size);
        name[size] = 0;
        if (!each(user, name)) return false;
    }
    return true;
}

int pith_cli_make_folders(const char *path) {
    char *part = pith_copy_text(path, strlen(path));
    int code = part ? 0 : ENOMEM;
    for (char *at = part; part && *at; at++) {
        if (at == part || *at != '/') continue;
        *at = 0;
        code = pith_cli_make_folder(part); /* the last one decides: a parent may be read-only */
        *at = '/';
    }
    if (part) code = pith_cli_make_folder(part);
    pith_free(part);
    return code;
}

bool pith_cli_replace_file(const char *path, const char *data, size_t size) {
    pith_buffer name = {0};
    pith_buffer_append_format(&name, "%s.%u.part", path, process_number());
    FILE *file = name.failed ? NULL : pith_cli_open_file(name.data, "wb");
    bool written = file && fwrite(data, 1, size, file) == size;
    if (file && fclose(file) != 0) written = false;
    bool moved = written && move_file(name.data, path);
    if (file && !moved) pith_cli_remove_file(name.data);
    pith_buffer_deinit(&name);
    return moved;
}
