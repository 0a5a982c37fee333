/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises: four kinds of source behave alike; nothing past the size taken at open is read; what
 * cannot be opened is refused with a sentence and without waiting.
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(_WIN32)
#include <direct.h>
#include <fcntl.h>
#include <io.h>
#else
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "base/source.h"

enum { SIZE = 100003 }; /* no multiple of a page */

#if defined(_WIN32)
static const bool residency_is_known = false;
#else
static const bool residency_is_known = true;
#endif

static uint8_t content[SIZE];

static const char *scratch(const char *name) {
    static char path[1024];
    const char *folder = getenv("PITH_BINARY_DIR");
    snprintf(path, sizeof path, "%s/test_source_%s", folder ? folder : ".", name);
    return path;
}

static void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static int fill_content(void **state) {
    (void)state;
    for (size_t i = 0; i < SIZE; i++) content[i] = (uint8_t)(i * 2654435761u >> 13);
    return 0;
}

static int read_content(void *user, uint64_t offset, void *buffer, size_t size) {
    (void)user;
    if (offset + size > SIZE) return 5; /* a source must never ask */
    memcpy(buffer, content + offset, size);
    return 0;
}

static int refuse_to_read(void *user, uint64_t offset, void *buffer, size_t size) {
    (void)user, (void)offset, (void)buffer, (void)size;
    return 9;
}

static void check_resident(const pith_source *source, bool maps) {
    double share = pith_source_resident(source, 0, UINT64_MAX);
    bool unknown = share < 0 && share > -2;
    if (maps && residency_is_known) unknown = false;
    if (!unknown && !(share >= 0 && share <= 1)) fail_msg("resident share %g", share);
    if (!maps && !unknown) fail_msg("a reader cannot know its share, %g", share);
}

/* Every read at, before and past the limits; then the map. */
static void check_source(pith_source *source, const uint8_t *expected, uint64_t size, bool maps) {
    assert_true(pith_source_size(source) == size);
    assert_true(strlen(pith_source_name(source)) > 0);
    uint64_t offsets[] = {0,    1,        4095,           4096,      size / 2, size ? size - 1 : 0,
                          size, size + 1, UINT64_MAX - 1, UINT64_MAX};
    uint64_t sizes[] = {0, 1, 2, 4096, size / 2, size, size + 1};
    static uint8_t buffer[SIZE + 8];
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets * 7; i++) {
        uint64_t offset = offsets[i / 7], n = sizes[i % 7];
        bool fits = offset <= size && n <= size - offset;
        pith_error error = {0};
        memset(buffer, '#', sizeof buffer);
        pith_status status = pith_source_read(source, offset, buffer, (size_t)n, &error);
        if (status != (fits ? PITH_OK : PITH_ERROR_FORMAT)) {
            fail_msg("%llu bytes at %llu of %llu: status %d, %s", (unsigned long long)n,
                     (unsigned long long)offset, (unsigned long long)size, status, error.text);
        }
        if (fits && n) assert_memory_equal(buffer, expected + offset, (size_t)n);
        assert_int_equal(buffer[fits ? n : 0], '#');
        if (!fits) assert_non_null(strstr(error.text, pith_source_name(source)));
        pith_source_prefetch(source, offset, n);
    }
    check_resident(source, maps);
    const uint8_t *map = pith_source_map(source);
    if (!maps) {
        assert_null(map);
        return;
    }
    assert_non_null(map);
    if (size) assert_memory_equal(map, expected, (size_t)size);
    assert_ptr_equal(pith_source_map(source), map);
    check_resident(source, maps);
    pith_source_prefetch(source, 0, size);
    pith_source_prefetch(source, size / 2, UINT64_MAX);
    pith_source_prefetch(source, UINT64_MAX, UINT64_MAX);
}

static void test_path(void **state) {
    (void)state;
    const char *path = scratch("path");
    write_file(path, content, SIZE);
    pith_source *source = NULL;
    assert_int_equal(pith_source_open_path(path, &source, NULL), PITH_OK);
    assert_string_equal(pith_source_name(source), path);
    check_source(source, content, SIZE, true);
    pith_source_close(source);
    remove(path);
}

static void test_empty_file(void **state) {
    (void)state;
    const char *path = scratch("empty");
    write_file(path, "", 0);
    pith_source *source = NULL;
    assert_int_equal(pith_source_open_path(path, &source, NULL), PITH_OK);
    check_source(source, content, 0, true);
    assert_true(pith_source_resident(source, 0, UINT64_MAX) == 1);
    pith_source_close(source);
    remove(path);
}

static int open_descriptor(const char *path) {
#if defined(_WIN32)
    return _open(path, _O_RDONLY | _O_BINARY);
#else
    return open(path, O_RDONLY);
#endif
}

static void test_descriptor_with_offset(void **state) {
    (void)state;
    static const uint64_t offsets[] = {0, 1, 4095, 4096, 4097, SIZE - 1, SIZE};
    const char *path = scratch("descriptor");
    write_file(path, content, SIZE);
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        for (uint64_t size = SIZE - offsets[i];; size /= 2) {
            int descriptor = open_descriptor(path);
            assert_true(descriptor >= 0);
            pith_source *source = NULL;
            assert_int_equal(
                pith_source_open_descriptor(descriptor, offsets[i], size, &source, NULL), PITH_OK);
            close(descriptor); /* the source has its own */
            check_source(source, content + offsets[i], size, true);
            pith_source_close(source);
            if (size < 1000) break;
        }
    }
    remove(path);
}

static void test_descriptor_promises_too_much(void **state) {
    (void)state;
    const char *path = scratch("short");
    write_file(path, content, SIZE);
    int descriptor = open_descriptor(path);
    static const uint64_t rows[][2] = {{0, SIZE + 1}, {1, SIZE},       {SIZE, 1},
                                       {SIZE + 1, 0}, {UINT64_MAX, 1}, {2, UINT64_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pith_error error = {0};
        pith_source *source = (pith_source *)&error;
        assert_int_equal(
            pith_source_open_descriptor(descriptor, rows[i][0], rows[i][1], &source, &error),
            PITH_ERROR_FORMAT);
        assert_null(source);
        assert_non_null(strstr(error.text, "100003"));
    }
    close(descriptor);
    remove(path);
    pith_error error = {0};
    pith_source *source = NULL;
    assert_int_equal(pith_source_open_descriptor(-1, 0, 0, &source, &error), PITH_ERROR_IO);
    assert_int_equal(pith_source_open_descriptor(descriptor, 0, 0, &source, &error), PITH_ERROR_IO);
    assert_true(strlen(error.text) > 0);
}

static void test_memory(void **state) {
    (void)state;
    pith_source *source = NULL;
    assert_int_equal(pith_source_open_memory(content, SIZE, &source, NULL), PITH_OK);
    check_source(source, content, SIZE, true);
    assert_ptr_equal(pith_source_map(source), content);
    assert_true(pith_source_resident(source, 0, UINT64_MAX) == 1);
    pith_source_close(source);
    assert_int_equal(pith_source_open_memory(NULL, 0, &source, NULL), PITH_OK);
    check_source(source, content, 0, true);
    pith_source_close(source);
    assert_int_equal(pith_source_open_memory(NULL, 1, &source, NULL), PITH_ERROR_ARGUMENT);
    assert_null(source);
}

static void test_reader(void **state) {
    (void)state;
    pith_reader reader = {sizeof reader, NULL, read_content, SIZE};
    pith_source *source = NULL;
    assert_int_equal(pith_source_open_reader(&reader, &source, NULL), PITH_OK);
    check_source(source, content, SIZE, false);
    pith_source_close(source);
    reader.read_at = refuse_to_read;
    pith_error error = {0};
    char byte;
    assert_int_equal(pith_source_open_reader(&reader, &source, NULL), PITH_OK);
    assert_int_equal(pith_source_read(source, 3, &byte, 1, &error), PITH_ERROR_IO);
    assert_non_null(strstr(error.text, "9"));
    assert_int_equal(pith_source_read(source, 3, &byte, 0, &error), PITH_OK);
    pith_source_close(source);
    reader.read_at = NULL;
    assert_int_equal(pith_source_open_reader(&reader, &source, NULL), PITH_ERROR_ARGUMENT);
    reader = (pith_reader){sizeof reader - 1, NULL, read_content, SIZE};
    assert_int_equal(pith_source_open_reader(&reader, &source, NULL), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_source_open_reader(NULL, &source, NULL), PITH_ERROR_ARGUMENT);
    assert_null(source);
}

static void refused(const char *path, pith_status expected, const char *words) {
    pith_error error = {0};
    pith_source *source = (pith_source *)&error;
    pith_status status = pith_source_open_path(path, &source, &error);
    if (status != expected) fail_msg("%s: status %d, %s", path, status, error.text);
    assert_null(source);
    if (!strstr(error.text, words)) fail_msg("`%s` does not say `%s`", error.text, words);
}

static void test_what_is_no_file(void **state) {
    (void)state;
    refused(NULL, PITH_ERROR_ARGUMENT, "empty");
    refused("", PITH_ERROR_ARGUMENT, "empty");
    refused("no/such/file.gguf", PITH_ERROR_NOT_FOUND, "no/such/file.gguf: ");
    refused(".", PITH_ERROR_IO, "directory");
#if !defined(_WIN32)
    refused("none.gguf", PITH_ERROR_NOT_FOUND, "none.gguf: there is no such file");
    const char *path = scratch("fifo");
    remove(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused(path, PITH_ERROR_IO, "pipe"); /* and does not wait for a writer */
    remove(path);
    refused("/dev/null", PITH_ERROR_IO, "device");
    path = scratch("plain");
    write_file(path, "x", 1);
    char below[1100];
    snprintf(below, sizeof below, "%s/x", path);
    refused(below, PITH_ERROR_NOT_FOUND, "not a directory");
    remove(path);
#endif
}

#if !defined(_WIN32)
static void test_file_cut_short_while_open(void **state) {
    (void)state;
    const char *path = scratch("cut");
    write_file(path, content, SIZE);
    pith_source *source = NULL;
    assert_int_equal(pith_source_open_path(path, &source, NULL), PITH_OK);
    assert_int_equal(truncate(path, 1000), 0);
    uint8_t buffer[64];
    pith_error error = {0};
    assert_int_equal(pith_source_read(source, 936, buffer, 64, NULL), PITH_OK);
    assert_int_equal(pith_source_read(source, 937, buffer, 64, &error), PITH_ERROR_IO);
    assert_non_null(strstr(error.text, "100003"));
    assert_true(pith_source_size(source) == SIZE);
    assert_int_equal(pith_source_read(source, SIZE, buffer, 1, NULL), PITH_ERROR_FORMAT);
    pith_source_close(source);
    remove(path);
}
#endif

static void test_fresh_file_is_resident(void **state) {
    (void)state;
    const char *path = scratch("resident");
    write_file(path, content, SIZE);
    pith_source *source = NULL;
    assert_int_equal(pith_source_open_path(path, &source, NULL), PITH_OK);
    double before = pith_source_resident(source, 0, UINT64_MAX);
    if (before >= 0) assert_true(before > 0.99);
    pith_source_close(source);
    remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_empty_file),
        cmocka_unit_test(test_descriptor_with_offset),
        cmocka_unit_test(test_descriptor_promises_too_much),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_reader),
        cmocka_unit_test(test_what_is_no_file),
#if !defined(_WIN32)
        cmocka_unit_test(test_file_cut_short_while_open),
#endif
        cmocka_unit_test(test_fresh_file_is_resident),
    };
    return cmocka_run_group_tests(tests, fill_content, NULL);
}
