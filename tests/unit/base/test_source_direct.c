/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises: reading past the page cache delivers the bytes that other reads deliver, at every
 * alignment and at the file's end, and leaves no pages behind; a system that refuses it, at opening
 * or at any read, is read from as usual; a file cut short gives a sentence.
 */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if !defined(_WIN32)
#include <fcntl.h>
#include <unistd.h>
#endif

#include "base/memory.h"
#include "base/source.h"

enum { UNIT = PITH_SOURCE_UNIT, SIZE = 100003, ROOM = SIZE + 3 * UNIT };

static uint8_t content[SIZE];
static pith_region region; /* the buffer of all reads; 2 MiB aligned */

static int prepare(void **state) {
    (void)state;
    for (size_t i = 0; i < SIZE; i++) content[i] = (uint8_t)(i * 2654435761u >> 11);
    return pith_region_open(&region, ROOM, false) ? 0 : -1;
}

static int clean_up(void **state) {
    (void)state;
    pith_region_close(&region);
    return 0;
}

static const char *scratch(const char *name) {
    static char path[1024];
    const char *folder = getenv("PITH_BINARY_DIR");
    snprintf(path, sizeof path, "%s/test_source_direct_%s", folder ? folder : ".", name);
    return path;
}

static void write_file(const char *path, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Out of the page cache, where the system has a way; nothing depends on its success. */
static void evict(const char *path) {
#if defined(POSIX_FADV_DONTNEED)
    int descriptor = open(path, O_RDWR);
    assert_true(descriptor >= 0);
    (void)fsync(descriptor);
    (void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    close(descriptor);
#else
    (void)path;
#endif
}

static void expect_piece(pith_source *source, uint64_t offset, size_t size,
                         const uint8_t *expected) {
    const uint8_t *data = NULL;
    pith_error error = {0};
    memset(region.data, '#', ROOM);
    if (pith_source_read_piece(source, offset, size, region.data, &data, &error))
        fail_msg("%zu bytes at %llu: %s", size, (unsigned long long)offset, error.text);
    assert_true(data >= region.data && data + size <= region.data + size + 2 * UNIT);
    if (size && memcmp(data, expected + offset, size) != 0)
        fail_msg("%zu bytes at %llu differ", size, (unsigned long long)offset);
    for (size_t i = size + 2 * UNIT; i < ROOM; i++)
        if (region.data[i] != '#')
            fail_msg("%zu bytes at %llu: byte %zu of the buffer was written", size,
                     (unsigned long long)offset, i);
}

/* All pieces that begin and end around the borders of units and of the source. */
static void expect_pieces(pith_source *source, const char *path, size_t size,
                          const uint8_t *expected) {
    const size_t marks[] = {0,        1,        UNIT - 1, UNIT,         UNIT + 1,
                            size / 2, size - 1, size,     2 * UNIT - 1, 2 * UNIT};
    enum { N = sizeof marks / sizeof *marks };
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            if (marks[i] > marks[j] || marks[j] > size) continue;
            evict(path);
            expect_piece(source, marks[i], marks[j] - marks[i], expected);
        }
}

static void sizes_around_a_unit_are_read_whole(void **state) {
    (void)state;
    const size_t sizes[] = {1,        UNIT - 1,     UNIT, UNIT + 1, 2 * UNIT - 1,
                            2 * UNIT, 2 * UNIT + 1, SIZE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *path = scratch("size");
        write_file(path, sizes[i]);
        pith_source *source = NULL;
        assert_int_equal(pith_source_open_path(path, &source, NULL), PITH_OK);
        if (!pith_source_begin_direct(source)) print_message("no direct reads here\n");
        expect_pieces(source, path, sizes[i], content);
        pith_source_close(source);
        remove(path);
    }
}

static void no_pages_are_left_behind(void **state) {
    (void)state;
    const char *path = scratch("pages");
    write_file(path, SIZE);
    pith_source *source = NULL;
    assert_int_equal(pith_source_open_path(path, &source, NULL), PITH_OK);
    bool direct = pith_source_begin_direct(source);
    assert_true(pith_source_begin_direct(source) == direct);
    evict(path);
    double before = pith_source_resident(source, 0, UINT64_MAX);
    expect_piece(source, 5, SIZE - 5, content);
    double after = pith_source_resident(source, 0, UINT64_MAX);
    if (direct && before == 0 && after > 0) fail_msg("%g of the file was left in memory", after);
    if (!direct || before != 0) print_message("this file system shows nothing\n");
    pith_source_close(source);
    remove(path);
}

#if !defined(_WIN32)
static void a_descriptor_with_an_odd_offset(void **state) {
    (void)state;
    enum { START = 1003, PART = 3 * UNIT + 5 };
    const char *path = scratch("offset");
    write_file(path, SIZE);
    int descriptor = open(path, O_RDONLY);
    pith_source *source = NULL;
    assert_int_equal(pith_source_open_descriptor(descriptor, START, PART, &source, NULL), PITH_OK);
    close(descriptor);
    (void)pith_source_begin_direct(source);
    expect_pieces(source, path, PART, content + START);
    pith_source_close(source);
    remove(path);
}

/* A buffer at an odd address is what systems refuse; they may refuse for reasons of their own. */
static void a_refused_read_is_done_otherwise(void **state) {
    (void)state;
    const char *path = scratch("refused");
    write_file(path, SIZE);
    pith_source *source = NULL;
    assert_int_equal(pith_source_open_path(path, &source, NULL), PITH_OK);
    bool direct = pith_source_begin_direct(source);
    evict(path);
    double before = pith_source_resident(source, 0, UINT64_MAX);
    const uint8_t *data = NULL;
    assert_int_equal(pith_source_read_piece(source, 3, 20000, region.data + 1, &data, NULL),
                     PITH_OK);
    assert_memory_equal(data, content + 3, 20000);
    if (direct && before == 0 && pith_source_resident(source, 3, 20000) == 0)
        print_message("this system takes odd buffers\n");
    expect_pieces(source, path, SIZE, content);
    pith_source_close(source);
    remove(path);
}

static void a_file_cut_short_gives_a_sentence(void **state) {
    (void)state;
    const char *path = scratch("cut");
    write_file(path, SIZE);
    pith_source *source = NULL;
    assert_int_equal(pith_source_open_path(path, &source, NULL), PITH_OK);
    (void)pith_source_begin_direct(source);
    assert_int_equal(truncate(path, UNIT + 100), 0);
    const struct {
        uint64_t offset;
        size_t size;
        pith_status expected;
    } cases[] = {{0, UNIT + 100, PITH_OK},       {UNIT + 99, 1, PITH_OK},
                 {0, UNIT + 101, PITH_ERROR_IO}, {UNIT + 100, 1, PITH_ERROR_IO},
                 {UNIT, UNIT, PITH_ERROR_IO},    {5 * UNIT, 10, PITH_ERROR_IO},
                 {0, SIZE, PITH_ERROR_IO},       {0, SIZE + 1, PITH_ERROR_FORMAT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint8_t *data = NULL;
        pith_error error = {0};
        evict(path);
        pith_status status = pith_source_read_piece(source, cases[i].offset, cases[i].size,
                                                    region.data, &data, &error);
        if (status != cases[i].expected) fail_msg("case %zu: %d, %s", i, status, error.text);
        if (status == PITH_OK) assert_memory_equal(data, content + cases[i].offset, cases[i].size);
        if (status == PITH_ERROR_IO) assert_non_null(strstr(error.text, "changed while in use"));
    }
    pith_source_close(source);
    remove(path);
}
#endif

static int read_content(void *user, uint64_t offset, void *buffer, size_t size) {
    (void)user;
    if (offset + size > SIZE) return 5;
    memcpy(buffer, content + offset, size);
    return 0;
}

static void sources_without_a_file_have_none(void **state) {
    (void)state;
    pith_reader reader = {sizeof reader, NULL, read_content, SIZE};
    pith_source *sources[3] = {NULL, NULL, NULL};
    const char *path = scratch("empty");
    write_file(path, 0);
    assert_int_equal(pith_source_open_memory(content, SIZE, &sources[0], NULL), PITH_OK);
    assert_int_equal(pith_source_open_reader(&reader, &sources[1], NULL), PITH_OK);
    assert_int_equal(pith_source_open_path(path, &sources[2], NULL), PITH_OK);
    for (int i = 0; i < 3; i++) {
        const uint8_t *data = NULL;
        size_t size = (size_t)pith_source_size(sources[i]);
        assert_false(pith_source_begin_direct(sources[i]));
        expect_piece(sources[i], 0, size, content);
        expect_piece(sources[i], size, 0, content);
        if (size) expect_piece(sources[i], 7, size - 7, content);
        assert_int_equal(pith_source_read_piece(sources[i], 1, size, region.data, &data, NULL),
                         PITH_ERROR_FORMAT);
        pith_source_close(sources[i]);
    }
    remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_around_a_unit_are_read_whole),
        cmocka_unit_test(no_pages_are_left_behind),
#if !defined(_WIN32)
        cmocka_unit_test(a_descriptor_with_an_odd_offset),
        cmocka_unit_test(a_refused_read_is_done_otherwise),
        cmocka_unit_test(a_file_cut_short_gives_a_sentence),
#endif
        cmocka_unit_test(sources_without_a_file_have_none),
    };
    return cmocka_run_group_tests(tests, prepare, clean_up);
}
