/* SPDX-License-Identifier: Apache-2.0
 * A folder that stands for the root of a Linux system, with the files of /proc and /sys that a
 * test puts there. POSIX only; the file that includes this defines _XOPEN_SOURCE 700 and has
 * included cmocka.h before. */
#ifndef TESTS_SUPPORT_FAKE_ROOT_H
#define TESTS_SUPPORT_FAKE_ROOT_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[512];

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info, (void)kind, (void)where;
    return remove(path);
}

static void clear_root(void) {
    (void)nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Makes root/path with this text, and the folders on the way. */
static void put(const char *path, const char *text) {
    char name[1024];
    snprintf(name, sizeof name, "%s%s", root, path);
    for (char *slash = strchr(name + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(name, 0700);
        *slash = '/';
    }
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* A setup and a teardown of cmocka: an empty root, named after the process. */
static int make_root(void **state) {
    (void)state;
    const char *folder = getenv("PITH_BINARY_DIR");
    snprintf(root, sizeof root, "%s/fake_root_%ld", folder ? folder : ".", (long)getpid());
    clear_root();
    return 0;
}

static int remove_root(void **state) {
    (void)state;
    clear_root();
    return 0;
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

#endif
