/* SPDX-License-Identifier: Apache-2.0
 * Promise of prefix_file.c: what is written is read; a file that is cut anywhere, that has any byte
 * changed, that is of another key, layout or version, is refused, and nothing of it is used; one
 * that rests reads as before when it wakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "engine/prefix_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 64, N = 150, N_BLOCK = 2, N_GROUP = 2, KEY = 77, FRONT = 40 + N * 4 + 4 * 8 };

static const pith_kv_shape shapes[] = {{1, 32, 32, 0}, {1, 32, 32, 70}};

typedef struct fixture {
    pith_kv_layout layout;
    int32_t ids[N];
    uint8_t kept[N_BLOCK * N_GROUP];
    uint8_t *blocks;
    pith_prefix_part part;
    char path[1100];
    uint8_t *bytes; /* of the file */
    size_t size;
} fixture;

static bool always(void *user) {
    (void)user;
    return true;
}

static bool never(void *user) {
    (void)user;
    return false;
}

static pith_status open_bytes(const uint8_t *bytes, size_t size, const pith_kv_layout *layout,
                              uint64_t key, pith_prefix_file *out) {
    pith_source *source;
    pith_error error = {0};
    assert_int_equal(pith_source_open_memory(bytes, size, &source, NULL), PITH_OK);
    pith_status status = pith_prefix_file_open(source, layout, key, out, &error);
    assert_int_equal(error.status, status);
    if (status != PITH_OK) assert_null(out->ids);
    return status;
}

static int open_fixture(void **state) {
    fixture *f = pith_alloc_zero(1, sizeof *f);
    const char *build = getenv("PITH_BINARY_DIR");
    pith_source *source;
    assert_non_null(f);
    snprintf(f->path, sizeof f->path, "%s/test_prefix_file.kv1", build ? build : ".");
    assert_int_equal(pith_kv_layout_init(&f->layout, PITH_KV_STORE_F16, shapes, 2, NULL), PITH_OK);
    size_t bytes = 2 * pith_kv_snapshot_bytes(&f->layout, 0, N);
    f->blocks = pith_alloc(bytes);
    for (size_t i = 0; i < bytes; i++) f->blocks[i] = (uint8_t)(i * i);
    for (int32_t i = 0; i < N; i++) f->ids[i] = i * 3;
    f->kept[0] = f->kept[1] = f->kept[2] = 1; /* group 1 lacks the last block */
    f->part = (pith_prefix_part){&f->layout, KEY, FIRST, N, f->ids, f->kept, f->blocks};
    assert_int_equal(pith_prefix_part_write(&f->part, f->path, always, NULL, NULL), PITH_OK);
    assert_int_equal(pith_source_open_path(f->path, &source, NULL), PITH_OK);
    f->size = (size_t)pith_source_size(source);
    assert_int_equal(f->size, pith_prefix_part_bytes(&f->part));
    f->bytes = pith_alloc(f->size);
    assert_int_equal(pith_source_read(source, 0, f->bytes, f->size, NULL), PITH_OK);
    pith_source_close(source);
    *state = f;
    return 0;
}

static int close_fixture(void **state) {
    fixture *f = *state;
    remove(f->path);
    pith_kv_layout_deinit(&f->layout);
    pith_free(f->blocks);
    pith_free(f->bytes);
    pith_free(f);
    return 0;
}

static void what_is_written_is_read(void **state) {
    fixture *f = *state;
    pith_prefix_file file;
    uint8_t buffer[1 << 14];
    const uint8_t *expected = f->blocks;
    assert_int_equal(open_bytes(f->bytes, f->size, &f->layout, KEY, &file), PITH_OK);
    assert_int_equal(file.first, FIRST);
    assert_int_equal(file.n, N);
    assert_memory_equal(file.ids, f->ids, sizeof f->ids);
    for (uint32_t block = 1; block < 3; block++) {
        uint32_t tokens = block == 1 ? 64 : N - 128;
        assert_int_equal(pith_prefix_file_tokens(&file, block), tokens);
        for (uint32_t g = 0; g < N_GROUP; g++) {
            bool kept = f->kept[(block - 1) * N_GROUP + g];
            assert_int_equal(pith_prefix_file_has(&file, g, block), kept);
            if (!kept) continue;
            size_t bytes = pith_kv_snapshot_bytes(&f->layout, g, tokens);
            assert_int_equal(pith_prefix_file_read(&file, g, block, buffer, NULL), PITH_OK);
            assert_memory_equal(buffer, expected, bytes);
            expected += bytes;
        }
    }
    assert_false(pith_prefix_file_has(&file, 0, 0));
    assert_false(pith_prefix_file_has(&file, 0, 3));
    pith_prefix_file_close(&file);
}

static void cut_files_are_refused(void **state) {
    fixture *f = *state;
    pith_prefix_file file;
    for (size_t size = 0; size < f->size; size++)
        assert_int_equal(open_bytes(f->bytes, size, &f->layout, KEY, &file), PITH_ERROR_FORMAT);
    uint8_t *longer = pith_alloc_zero(1, f->size + 1);
    memcpy(longer, f->bytes, f->size);
    assert_int_equal(open_bytes(longer, f->size + 1, &f->layout, KEY, &file), PITH_ERROR_FORMAT);
    pith_free(longer);
}

static void changed_bytes_are_found(void **state) {
    fixture *f = *state;
    pith_prefix_file file;
    uint8_t buffer[1 << 14];
    for (size_t i = 0; i < f->size; i++) {
        f->bytes[i] = (uint8_t)(f->bytes[i] ^ (1u << (i % 8)));
        pith_status status = open_bytes(f->bytes, f->size, &f->layout, KEY, &file);
        if (i < FRONT) {
            assert_int_equal(status, PITH_ERROR_FORMAT);
        } else {
            int n_bad = 0;
            assert_int_equal(status, PITH_OK);
            for (uint32_t at = 0; at < N_BLOCK * N_GROUP; at++) {
                uint32_t block = 1 + at / N_GROUP;
                if (!pith_prefix_file_has(&file, at % N_GROUP, block)) continue;
                n_bad += pith_prefix_file_read(&file, at % N_GROUP, block, buffer, NULL) ==
                         PITH_ERROR_FORMAT;
            }
            assert_int_equal(n_bad, 1);
            pith_prefix_file_close(&file);
        }
        f->bytes[i] = (uint8_t)(f->bytes[i] ^ (1u << (i % 8)));
    }
}

static void other_keys_and_layouts_are_refused(void **state) {
    fixture *f = *state;
    pith_prefix_file file;
    pith_kv_layout other;
    assert_int_equal(open_bytes(f->bytes, f->size, &f->layout, KEY + 1, &file), PITH_ERROR_FORMAT);
    assert_int_equal(pith_kv_layout_init(&other, PITH_KV_STORE_F32, shapes, 2, NULL), PITH_OK);
    assert_int_equal(open_bytes(f->bytes, f->size, &other, KEY, &file), PITH_ERROR_FORMAT);
    pith_kv_layout_deinit(&other);
    assert_int_equal(pith_kv_layout_init(&other, PITH_KV_STORE_F16, shapes, 1, NULL), PITH_OK);
    assert_int_equal(open_bytes(f->bytes, f->size, &other, KEY, &file), PITH_ERROR_FORMAT);
    pith_kv_layout_deinit(&other);
}

/* A file that rests knows what it has, and reads the same when it is given its source again; with
 * another file's it reads nothing. */
static void files_rest_and_wake(void **state) {
    fixture *f = *state;
    pith_prefix_file file;
    pith_source *source;
    uint8_t buffer[1 << 14];
    assert_int_equal(open_bytes(f->bytes, f->size, &f->layout, KEY, &file), PITH_OK);
    pith_prefix_file_rest(&file);
    assert_null(file.source);
    assert_null(file.ids);
    assert_true(pith_prefix_file_has(&file, 0, 1));
    assert_false(pith_prefix_file_has(&file, 1, 2));
    pith_prefix_file_rest(&file); /* twice is once */
    assert_int_equal(pith_source_open_memory(f->bytes, f->size, &source, NULL), PITH_OK);
    pith_prefix_file_wake(&file, source);
    assert_int_equal(pith_prefix_file_read(&file, 0, 1, buffer, NULL), PITH_OK);
    assert_memory_equal(buffer, f->blocks, pith_kv_snapshot_bytes(&f->layout, 0, 64));
    for (size_t size = 0; size <= f->size; size += f->size) { /* empty, then all bytes others */
        uint8_t *other = pith_alloc(f->size);
        for (size_t i = 0; i < f->size; i++) other[i] = (uint8_t)(f->bytes[i] + 1);
        assert_int_equal(pith_source_open_memory(other, size, &source, NULL), PITH_OK);
        pith_prefix_file_wake(&file, source);
        assert_int_equal(pith_prefix_file_read(&file, 0, 1, buffer, NULL), PITH_ERROR_FORMAT);
        pith_prefix_file_rest(&file);
        pith_free(other);
    }
    pith_prefix_file_close(&file);
}

static void what_is_given_up_leaves_no_file(void **state) {
    fixture *f = *state;
    pith_source *source;
    remove(f->path);
    assert_int_equal(pith_prefix_part_write(&f->part, f->path, never, NULL, NULL),
                     PITH_ERROR_CANCELLED);
    assert_int_equal(pith_source_open_path(f->path, &source, NULL), PITH_ERROR_NOT_FOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_read, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(cut_files_are_refused, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(changed_bytes_are_found, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(other_keys_and_layouts_are_refused, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(files_rest_and_wake, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(what_is_given_up_leaves_no_file, open_fixture,
                                        close_fixture),
    };
    return cmocka_run_group_tests_name("files of stored prefixes", tests, NULL, NULL);
}
