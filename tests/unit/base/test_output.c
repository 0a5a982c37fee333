/* SPDX-License-Identifier: Apache-2.0
 * base/output.h: a file appears whole or not at all. */
#define _XOPEN_SOURCE 700 /* mkdir, getpid */

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/output.h"
#include "support/failing_memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[400], path[512];

static int make_folder(void **state) {
    (void)state;
    const char *parent = getenv("PITH_BINARY_DIR");
    snprintf(folder, sizeof folder, "%s/output-%d", parent ? parent : ".", (int)getpid());
    snprintf(path, sizeof path, "%s/file", folder);
#if defined(_WIN32)
    return mkdir(folder);
#else
    return mkdir(folder, 0777);
#endif
}

static int remove_folder(void **state) {
    (void)state;
    (void)remove(path);
    return rmdir(folder);
}

static int n_files(void) {
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    int n = 0;
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory))
        n += entry->d_name[0] != '.';
    closedir(directory);
    return n;
}

/* Byte i of every file that this test writes. */
static uint8_t byte_at(size_t i) {
    return (uint8_t)(i * 7 + i / 251);
}

static void expect_file(size_t size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (size_t i = 0; i < size; i++) {
        int byte = fgetc(file);
        if (byte != byte_at(i)) fail_msg("byte %zu is %d, not %d", i, byte, byte_at(i));
    }
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
}

static void bytes_come_out_as_they_went_in(void **state) {
    (void)state;
    enum { MOST = 1 << 20 };
    static const size_t pieces[] = {0, 1,      100, (1 << 18) - 1, 1 << 18, (1 << 18) + 1,
                                    3, 300000, 17};
    uint8_t *data = malloc(MOST);
    assert_non_null(data);
    pith_output *output;
    pith_error error;
    assert_int_equal(pith_output_open(path, &output, &error), PITH_OK);
    size_t total = 0;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        for (size_t k = 0; k < pieces[i]; k++) data[k] = byte_at(total + k);
        assert_int_equal(pith_output_write(output, data, pieces[i], &error), PITH_OK);
        total += pieces[i];
        assert_int_equal(access(path, F_OK), -1); /* not there before commit */
    }
    assert_int_equal(pith_output_commit(output, &error), PITH_OK);
    expect_file(total);
    assert_int_equal(pith_output_write(output, data, 1, &error), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_output_commit(output, &error), PITH_ERROR_ARGUMENT);
    pith_output_close(output);
    expect_file(total);
    assert_int_equal(n_files(), 1);
    free(data);
}

static void without_commit_the_older_file_stays(void **state) {
    (void)state;
    pith_output *output;
    pith_error error;
    uint8_t data[1000];
    for (size_t i = 0; i < sizeof data; i++) data[i] = byte_at(i);
    assert_int_equal(pith_output_open(path, &output, &error), PITH_OK);
    assert_int_equal(pith_output_write(output, data, sizeof data, &error), PITH_OK);
    assert_int_equal(pith_output_commit(output, &error), PITH_OK);
    pith_output_close(output);
    assert_int_equal(pith_output_open(path, &output, &error), PITH_OK);
    assert_int_equal(pith_output_write(output, "newer", 5, &error), PITH_OK);
    assert_int_equal(n_files(), 2);
    pith_output_close(output);
    assert_int_equal(n_files(), 1);
    expect_file(sizeof data);
    pith_output_close(NULL);
}

static void an_empty_file_is_a_file(void **state) {
    (void)state;
    pith_output *output;
    pith_error error;
    assert_int_equal(pith_output_open(path, &output, &error), PITH_OK);
    assert_int_equal(pith_output_commit(output, &error), PITH_OK);
    pith_output_close(output);
    expect_file(0);
}

static void two_writers_of_one_path_do_not_meet(void **state) {
    (void)state;
    pith_output *first, *second;
    pith_error error;
    const uint8_t good[3] = {byte_at(0), byte_at(1), byte_at(2)};
    assert_int_equal(pith_output_open(path, &first, &error), PITH_OK);
    assert_int_equal(pith_output_open(path, &second, &error), PITH_OK);
    assert_int_equal(pith_output_write(first, "xx", 2, &error), PITH_OK);
    assert_int_equal(pith_output_write(second, good, 3, &error), PITH_OK);
    assert_int_equal(pith_output_commit(first, &error), PITH_OK);
    assert_int_equal(pith_output_commit(second, &error), PITH_OK); /* the later commit wins */
    pith_output_close(first);
    pith_output_close(second);
    expect_file(3);
    assert_int_equal(n_files(), 1);
}

static void failures_say_what_and_where(void **state) {
    (void)state;
    pith_output *output;
    pith_error error;
    assert_int_equal(pith_output_open("", &output, &error), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_output_open(NULL, &output, &error), PITH_ERROR_ARGUMENT);
    assert_null(output);
    char deep[600];
    snprintf(deep, sizeof deep, "%s/none/file", folder);
    assert_int_equal(pith_output_open(deep, &output, &error), PITH_ERROR_IO);
    assert_null(output);
    assert_non_null(strstr(error.text, "none/file: cannot be made: its folder does not exist"));
    assert_int_equal(pith_output_open(folder, &output, &error), PITH_OK); /* beside the folder */
    assert_int_equal(pith_output_commit(output, &error), PITH_ERROR_IO);  /* but not over it */
    assert_non_null(strstr(error.text, "putting it in place failed"));
    assert_int_equal(pith_output_write(output, "x", 1, &error), PITH_ERROR_IO);
    pith_output_close(output);
    for (uint64_t n = 1; n <= 3; n++) {
        memory_watch_reset(n);
        pith_status status = pith_output_open(path, &output, &error);
        memory_watch_reset(0);
        assert_int_equal(status, PITH_ERROR_MEMORY);
        assert_null(output);
    }
    assert_int_equal(n_files(), 1);
}

/* The end of a long path is shown, whole characters of it, so that the reason still fits. */
static void long_paths_leave_room_for_the_reason(void **state) {
    (void)state;
    for (int n_letters = 0; n_letters < 2;
         n_letters++) { /* the cut falls within a character once */
        char deep[700] = "/";
        for (int i = 0; i < n_letters; i++) strcat(deep, "x");
        for (int i = 0; i < 300; i++) strcat(deep, "\xC3\xA4");
        strcat(deep, "/file");
        pith_output *output;
        pith_error error;
        assert_int_equal(pith_output_open(deep, &output, &error), PITH_ERROR_IO);
        assert_int_equal((uint8_t)error.text[0], 0xC3);
        assert_non_null(strstr(error.text, "/file: cannot be made: "));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_out_as_they_went_in),
        cmocka_unit_test(without_commit_the_older_file_stays),
        cmocka_unit_test(an_empty_file_is_a_file),
        cmocka_unit_test(two_writers_of_one_path_do_not_meet),
        cmocka_unit_test(failures_say_what_and_where),
        cmocka_unit_test(long_paths_leave_room_for_the_reason),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
