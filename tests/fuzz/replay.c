/* SPDX-License-Identifier: Apache-2.0
 * Gives every file of a folder to a fuzz target, one test a file, so that what fuzzing once found is found again in every
 * run and with every compiler. Usage: replay_X FOLDER. A folder without files is a failure: it would test nothing.
 * Linked with one fuzz_*.c; see tests/fuzz/CMakeLists.txt. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 4096, PATH_BYTES = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay_file(void **state) {
    const char *path = *state;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    assert_true(size >= 0);
    rewind(file);
    uint8_t *data =
        malloc(size > 0 ? (size_t)size : 1); /* exactly its size: sanitizers see one byte too far */
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)size, file), (size_t)size);
    fclose(file);
    (void)LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

static int by_path(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The folder's files in the order of their names; the list and the names belong to the caller. */
static size_t list_files(const char *folder, char **paths) {
    DIR *directory = opendir(folder);
    if (!directory) return 0;
    size_t n = 0;
    for (struct dirent *entry = readdir(directory); entry && n < MAX_FILES;
         entry = readdir(directory)) {
        if (entry->d_name[0] == '.') continue;
        paths[n] = malloc(PATH_BYTES);
        if (!paths[n]) break;
        snprintf(paths[n++], PATH_BYTES, "%s/%s", folder, entry->d_name);
    }
    closedir(directory);
    qsort(paths, n, sizeof *paths, by_path);
    return n;
}

int main(int argc, char **argv) {
    static char *paths[MAX_FILES];
    static struct CMUnitTest tests[MAX_FILES];
    size_t n = argc == 2 ? list_files(argv[1], paths) : 0;
    if (n == 0) {
        fprintf(stderr, "replay: no files in %s\n", argc == 2 ? argv[1] : "(name one folder)");
        return 1;
    }
    for (size_t i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){.name = strrchr(paths[i], '/') + 1,
                                       .test_func = replay_file,
                                       .initial_state = paths[i]};
    int failed = _cmocka_run_group_tests("replay", tests, n, NULL, NULL);
    for (size_t i = 0; i < n; i++) free(paths[i]);
    return failed;
}
