/* SPDX-License-Identifier: Apache-2.0
 * Writing: the reference file byte for byte, padding and pieces, everything that must be refused, and that a file which
 * was not finished leaves nothing behind and an older file untouched, also when the disk is full. */
#define _XOPEN_SOURCE 700 /* setrlimit */

#include "gguf_bytes.h"
#include "support/failing_memory.h"

#include <dirent.h>
#include <unistd.h>
#if !defined(_WIN32)
#include <signal.h>
#include <sys/resource.h>
#endif

static char folder[400]; /* of this test alone, so that left-over files are seen */

static const char *in_folder(const char *name, char buffer[512]) {
    snprintf(buffer, 512, "%s/%s", folder, name);
    return buffer;
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

static int make_folder(void **state) {
    (void)state;
    return make_scratch_folder("gguf-write", folder, sizeof folder) ? 0 : 1;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

static void expect_file(const char *path, const void *bytes, size_t size) {
    size_t its_size = 0;
    uint8_t *its_bytes = read_whole(path, &its_size);
    assert_non_null(its_bytes);
    assert_int_equal(its_size, size);
    assert_memory_equal(its_bytes, bytes, size);
    free(its_bytes);
}

/* The declarations and data of b3_file (gguf_bytes.h), the data in pieces of `step` bytes. */
static pith_status write_b3(const char *path, uint32_t version, size_t step, pith_error *error) {
    size_t size;
    const uint8_t *b3 = b3_file(&size);
    const pith_span strings[] = {{"hi", 2}, {NULL, 0}};
    const uint64_t a[] = {3, 2}, b[] = {32};
    uint8_t data[24 + 34];
    memcpy(data, b3 + 0x100, 24);
    memcpy(data + 24, b3 + 0x120, 34);
    pith_gguf_writer *w;
    pith_status status = pith_gguf_writer_new(path, version, 32, &w, error);
    if (status) return status;
    status = pith_gguf_write_string(w, "general.architecture", "llama", error);
    if (!status) status = pith_gguf_write_u32(w, "x.u32", 7, error);
    if (!status) status = pith_gguf_write_bool(w, "x.b", true, error);
    if (!status) status = pith_gguf_write_strings(w, "x.s", strings, 2, error);
    if (!status) status = pith_gguf_write_tensor(w, "a.weight", PITH_TYPE_F32, 2, a, error);
    if (!status) status = pith_gguf_write_tensor(w, "b", PITH_TYPE_Q8_0, 1, b, error);
    for (size_t at = 0; at < sizeof data && !status; at += step)
        status = pith_gguf_write_data(w, data + at,
                                      at + step < sizeof data ? step : sizeof data - at, error);
    if (!status) status = pith_gguf_writer_finish(w, error);
    pith_gguf_writer_free(w);
    return status;
}

static void writes_the_reference_file(void **state) {
    (void)state;
    char path[512];
    size_t size;
    const uint8_t *b3 = b3_file(&size);
    pith_error error;
    in_folder("b3.gguf", path);
    static const size_t steps[] = {58, 1, 7, 24, 25, 1000};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_int_equal(write_b3(path, 3, steps[i], &error), PITH_OK);
        expect_file(path, b3, size);
        assert_int_equal(n_files(), 1); /* the older one was replaced */
    }
    uint8_t version_2[352];
    memcpy(version_2, b3, size);
    version_2[4] = 2;
    assert_int_equal(write_b3(path, 2, 58, &error), PITH_OK);
    expect_file(path, version_2, size);
    assert_int_equal(remove(path), 0);
}

static void every_value_type_comes_back(void **state) {
    (void)state;
    char path[512], key[16];
    in_folder("types.gguf", path);
    pith_error error;
    pith_gguf_writer *w;
    uint8_t bytes[24];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i + 1);
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 5, 0, 8, 8, 8};
    assert_int_equal(pith_gguf_writer_new(path, 3, 32, &w, &error), PITH_OK);
    for (int kind = 0; kind <= 12; kind++) {
        if (kind == PITH_GGUF_ARRAY) continue;
        snprintf(key, sizeof key, "s%d", kind);
        assert_int_equal(
            pith_gguf_write_value(w, key, (pith_gguf_kind)kind, bytes, sizes[kind], &error),
            PITH_OK);
        snprintf(key, sizeof key, "a%d", kind);
        if (kind == PITH_GGUF_STRING) continue;
        assert_int_equal(pith_gguf_write_array(w, key, (pith_gguf_kind)kind, bytes, 3, &error),
                         PITH_OK);
    }
    assert_int_equal(pith_gguf_write_array(w, "none", PITH_GGUF_F32, NULL, 0, &error), PITH_OK);
    assert_int_equal(pith_gguf_write_strings(w, "no.strings", NULL, 0, &error), PITH_OK);
    assert_int_equal(pith_gguf_write_f32(w, "f", -0.5f, &error), PITH_OK);
    assert_int_equal(pith_gguf_writer_finish(w, &error), PITH_OK);
    pith_gguf_writer_free(w);

    pith_gguf *gguf;
    assert_int_equal(pith_gguf_open_path(path, &gguf, &error), PITH_OK);
    assert_int_equal(pith_gguf_n_values(gguf), 12 + 11 + 3);
    for (int kind = 0; kind <= 12; kind++) {
        if (kind == PITH_GGUF_ARRAY) continue;
        snprintf(key, sizeof key, "s%d", kind);
        const pith_gguf_value *value = pith_gguf_value_find(gguf, key);
        assert_int_equal(value->kind, kind);
        assert_int_equal(value->size, sizes[kind]);
        assert_memory_equal(value->bytes, bytes, sizes[kind]);
        snprintf(key, sizeof key, "a%d", kind);
        value = pith_gguf_value_find(gguf, key);
        if (kind == PITH_GGUF_STRING) continue;
        assert_int_equal(value->item_kind, kind);
        assert_int_equal(value->size, 3 * sizes[kind]);
        assert_memory_equal(value->bytes, bytes, 3 * sizes[kind]);
    }
    float f = 0;
    assert_int_equal(pith_gguf_get_f32(gguf, "f", &f, NULL, &error), PITH_OK);
    assert_true(f == -0.5f);
    pith_gguf_close(gguf);
    assert_int_equal(remove(path), 0);
}

static void an_alignment_is_written_and_used(void **state) {
    (void)state;
    char path[512];
    in_folder("aligned.gguf", path);
    pith_error error;
    static const uint32_t alignments[] = {1, 8, 64, 4096, 1 << 20};
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        for (int named = 0; named < 2; named++) {
            pith_gguf_writer *w;
            const uint64_t ne[] = {5}, none[] = {0, 3};
            assert_int_equal(pith_gguf_writer_new(path, 3, alignments[i], &w, &error), PITH_OK);
            if (named)
                assert_int_equal(pith_gguf_write_u32(w, "general.alignment", alignments[i], &error),
                                 PITH_OK);
            assert_int_equal(pith_gguf_write_tensor(w, "none", PITH_TYPE_F32, 2, none, &error),
                             PITH_OK);
            assert_int_equal(pith_gguf_write_tensor(w, "a", PITH_TYPE_I8, 1, ne, &error), PITH_OK);
            assert_int_equal(pith_gguf_write_tensor(w, "b", PITH_TYPE_I8, 1, ne, &error), PITH_OK);
            assert_int_equal(pith_gguf_write_tensor(w, "last", PITH_TYPE_I8, 1, none, &error),
                             PITH_OK);
            assert_int_equal(pith_gguf_write_data(w, "01234abcde", 10, &error), PITH_OK);
            assert_int_equal(pith_gguf_writer_finish(w, &error), PITH_OK);
            pith_gguf_writer_free(w);
            pith_gguf *gguf;
            assert_int_equal(pith_gguf_open_path(path, &gguf, &error), PITH_OK);
            assert_int_equal(pith_gguf_alignment(gguf), alignments[i]);
            assert_int_equal(pith_gguf_n_values(gguf), 1);
            const pith_gguf_tensor *b = pith_gguf_tensor_find(gguf, "b");
            assert_int_equal(b->offset % alignments[i], 0);
            char text[5];
            assert_int_equal(pith_gguf_tensor_read(gguf, b, 0, text, 5, &error), PITH_OK);
            assert_memory_equal(text, "abcde", 5);
            assert_int_equal(pith_source_size(pith_gguf_source(gguf, 0)) % alignments[i], 0);
            pith_gguf_close(gguf);
        }
    }
    assert_int_equal(remove(path), 0);
}

static void wrong_declarations_are_refused(void **state) {
    (void)state;
    char path[512], name[PITH_GGUF_MAX_NAME_BYTES + 2];
    in_folder("refused.gguf", path);
    pith_error error;
    pith_gguf_writer *w;
    const uint64_t ne[] = {32, 2, 1, 1, 1}, odd[] = {33}, large[] = {UINT64_C(1) << 62, 8};
    static const uint32_t bad_alignments[] = {0, 3, 24, 1 << 21, UINT32_MAX};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(pith_gguf_writer_new(path, 3, bad_alignments[i], &w, &error),
                         PITH_ERROR_ARGUMENT);
    for (uint32_t version = 0; version < 6; version++)
        if (version != 2 && version != 3)
            assert_int_equal(pith_gguf_writer_new(path, version, 32, &w, &error),
                             PITH_ERROR_ARGUMENT);
    assert_null(w);
    assert_int_equal(n_files(), 0);
    assert_int_equal(pith_gguf_writer_new(path, 3, 32, &w, &error), PITH_OK);
    assert_int_equal(pith_gguf_write_u32(w, "k", 1, &error), PITH_OK);
    assert_int_equal(pith_gguf_write_u32(w, "k", 1, &error), PITH_ERROR_ARGUMENT);
    assert_string_equal(error.text, "key \"k\" is written twice");
    assert_int_equal(pith_gguf_write_u32(w, "", 1, &error), PITH_ERROR_LIMIT);
    assert_int_equal(pith_gguf_write_u32(w, "\xFF", 1, &error), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_write_value(w, "v", PITH_GGUF_U32, "abc", 3, &error),
                     PITH_ERROR_ARGUMENT);
    assert_string_equal(error.text, "key \"v\": 3 bytes were given, its type has 4");
    assert_int_equal(pith_gguf_write_value(w, "v", PITH_GGUF_ARRAY, "abc", 3, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_write_value(w, "v", (pith_gguf_kind)13, "abc", 3, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_write_array(w, "v", PITH_GGUF_STRING, "abc", 3, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_write_array(w, "v", PITH_GGUF_ARRAY, "abc", 3, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(
        pith_gguf_write_array(w, "v", PITH_GGUF_U8, "abc", PITH_GGUF_MAX_ARRAY + 1, &error),
        PITH_ERROR_LIMIT);
    assert_int_equal(pith_gguf_write_u32(w, "general.alignment", 64, &error), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_write_string(w, "general.alignment", "32", &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_write_array(w, "general.alignment", PITH_GGUF_U32, ne, 1, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_write_tensor(w, "t", PITH_TYPE_F32, 1, ne, &error), PITH_OK);
    assert_int_equal(pith_gguf_write_tensor(w, "t", PITH_TYPE_F32, 1, ne, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_write_tensor(w, "u", PITH_TYPE_F32, 0, ne, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_write_tensor(w, "u", PITH_TYPE_F32, 5, ne, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_write_tensor(w, "u", PITH_TYPE_Q8_0, 1, odd, &error),
                     PITH_ERROR_ARGUMENT);
    assert_string_equal(error.text,
                        "tensor \"u\" has rows of 33 elements, Q8_0 needs a multiple of 32");
    assert_int_equal(pith_gguf_write_tensor(w, "u", (pith_type)4, 1, ne, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_write_tensor(w, "u", PITH_TYPE_I8, 2, large, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_write_tensor(w, "u", PITH_TYPE_F64, 1, large, &error),
                     PITH_ERROR_ARGUMENT);
    for (size_t size = PITH_GGUF_MAX_NAME_BYTES; size <= PITH_GGUF_MAX_NAME_BYTES + 1; size++) {
        memset(name, 'n', size);
        name[size] = '\0';
        assert_int_equal(pith_gguf_write_tensor(w, name, PITH_TYPE_F32, 1, ne, &error),
                         size == PITH_GGUF_MAX_NAME_BYTES ? PITH_OK : PITH_ERROR_LIMIT);
    }
    pith_gguf_writer_free(w);
    assert_int_equal(n_files(), 0);
}

/* Sizes that fit alone but not together. */
static void the_file_does_not_grow_past_64_bits(void **state) {
    (void)state;
    char path[512];
    in_folder("large.gguf", path);
    pith_error error;
    pith_gguf_writer *w;
    const uint64_t ne[] = {UINT64_C(1) << 62};
    assert_int_equal(pith_gguf_writer_new(path, 3, 32, &w, &error), PITH_OK);
    assert_int_equal(pith_gguf_write_tensor(w, "a", PITH_TYPE_I8, 1, ne, &error), PITH_OK);
    assert_int_equal(pith_gguf_write_tensor(w, "b", PITH_TYPE_I8, 1, ne, &error), PITH_OK);
    assert_int_equal(pith_gguf_write_tensor(w, "c", PITH_TYPE_I8, 1, ne, &error), PITH_OK);
    assert_int_equal(pith_gguf_write_tensor(w, "d", PITH_TYPE_I8, 1, ne, &error),
                     PITH_ERROR_ARGUMENT);
    assert_non_null(strstr(error.text, "makes the file larger than 2^64"));
    pith_gguf_writer_free(w);
}

static void numbers_of_keys_and_lengths_of_strings_are_limited(void **state) {
    (void)state;
    char path[512], key[16];
    in_folder("limits.gguf", path);
    pith_error error;
    pith_gguf_writer *w;
    assert_int_equal(pith_gguf_writer_new(path, 3, 32, &w, &error), PITH_OK);
    size_t size = (size_t)PITH_GGUF_MAX_STRING_BYTES + 1;
    char *text = calloc(1, size);
    const pith_span items[] = {{"a", 1}, {text, size}};
    if (text) {
        assert_int_equal(pith_gguf_write_value(w, "s", PITH_GGUF_STRING, text, size, &error),
                         PITH_ERROR_LIMIT);
        assert_int_equal(pith_gguf_write_strings(w, "s", items, 2, &error), PITH_ERROR_LIMIT);
        assert_string_equal(
            error.text, "key \"s\" has a string of 268435457 bytes, at most 268435456 are allowed");
    }
    free(text);
    for (int i = 0; i <= PITH_GGUF_MAX_KEYS; i++) {
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(pith_gguf_write_bool(w, key, true, &error),
                         i < PITH_GGUF_MAX_KEYS ? PITH_OK : PITH_ERROR_LIMIT);
    }
    assert_string_equal(error.text,
                        "key \"k65536\" would be number 65537, at most 65536 are allowed");
    assert_int_equal(pith_gguf_writer_finish(w, &error), PITH_OK);
    pith_gguf_writer_free(w);
    pith_gguf *gguf;
    assert_int_equal(pith_gguf_open_path(path, &gguf, &error), PITH_OK);
    assert_int_equal(pith_gguf_n_values(gguf), PITH_GGUF_MAX_KEYS);
    pith_gguf_close(gguf);
    assert_int_equal(remove(path), 0);
}

/* A record that could not be ended must not get into a file, also when the caller goes on. */
static void a_caller_who_ignores_errors_gets_no_file(void **state) {
    (void)state;
    char path[512];
    in_folder("ignored.gguf", path);
    static const uint8_t bytes[100000];
    pith_error error;
    pith_gguf_writer *w;
    assert_int_equal(pith_gguf_writer_new(path, 3, 32, &w, &error), PITH_OK);
    assert_int_equal(pith_gguf_write_u32(w, "first", 1, &error), PITH_OK);
    memory_watch_reset(1); /* the buffer cannot grow */
    assert_int_equal(pith_gguf_write_array(w, "k", PITH_GGUF_U8, bytes, sizeof bytes, &error),
                     PITH_ERROR_MEMORY);
    memory_watch_reset(0);
    assert_int_equal(pith_gguf_write_data(w, bytes, 0, &error), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_writer_finish(w, &error), PITH_ERROR_ARGUMENT);
    assert_string_equal(error.text, "a key could not be written before");
    pith_gguf_writer_free(w);
    pith_gguf_writer_free(NULL);
    assert_int_equal(n_files(), 0);
}

static void too_little_or_too_much_data_is_refused(void **state) {
    (void)state;
    char path[512];
    in_folder("data.gguf", path);
    write_file(path, "older", 5);
    pith_error error;
    pith_gguf_writer *w;
    const uint64_t ne[] = {4};
    const float data[5] = {1, 2, 3, 4, 5};
    assert_int_equal(pith_gguf_writer_new(path, 3, 32, &w, &error), PITH_OK);
    assert_int_equal(pith_gguf_write_tensor(w, "t", PITH_TYPE_F32, 1, ne, &error), PITH_OK);
    assert_int_equal(pith_gguf_write_data(w, data, 15, &error), PITH_OK);
    assert_int_equal(pith_gguf_writer_finish(w, &error), PITH_ERROR_ARGUMENT);
    assert_string_equal(error.text, "tensor \"t\" has 15 of its 16 bytes");
    assert_int_equal(pith_gguf_write_u32(w, "late", 1, &error), PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_write_tensor(w, "late", PITH_TYPE_F32, 1, ne, &error),
                     PITH_ERROR_ARGUMENT);
    assert_int_equal(pith_gguf_write_data(w, data, 2, &error), PITH_ERROR_ARGUMENT);
    assert_string_equal(error.text, "1 bytes came after the last of 1 tensors was full");
    pith_gguf_writer_free(w);
    expect_file(path, "older", 5);
    assert_int_equal(n_files(), 1);
    assert_int_equal(remove(path), 0);
}

static void a_folder_that_is_not_there_is_reported(void **state) {
    (void)state;
    char path[512];
    pith_error error;
    pith_gguf_writer *w;
    in_folder("no/such/folder.gguf", path);
    assert_int_equal(pith_gguf_writer_new(path, 3, 32, &w, &error), PITH_ERROR_IO);
    assert_null(w);
    assert_int_equal(pith_gguf_writer_new("", 3, 32, &w, &error), PITH_ERROR_ARGUMENT);
    assert_true(make_folder_at(in_folder("is-a-folder", path)));
    assert_int_equal(write_b3(path, 3, 58, &error), PITH_ERROR_IO); /* the rename fails */
    assert_int_equal(n_files(), 1);
    assert_int_equal(rmdir(path), 0);
}

/* A limit on the size of files stands in for a full disk: write() fails the same way. */
static void a_full_disk_is_reported_and_nothing_is_left(void **state) {
    (void)state;
#if defined(_WIN32)
    skip();
#else
    char path[512];
    in_folder("full.gguf", path);
    write_file(path, "older", 5);
    struct rlimit before, small = {0, 0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    static uint8_t zeros[1 << 16];
    const uint64_t ne[] = {64 * sizeof zeros};
    pith_error error;
    pith_gguf_writer *w;
    assert_int_equal(pith_gguf_writer_new(path, 3, 32, &w, &error), PITH_OK);
    assert_int_equal(pith_gguf_write_tensor(w, "t", PITH_TYPE_I8, 1, ne, &error), PITH_OK);
    small.rlim_cur = 1 << 20;
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    pith_status status = PITH_OK;
    int n_written = 0;
    for (; n_written < 64 && status == PITH_OK; n_written++)
        status = pith_gguf_write_data(w, zeros, sizeof zeros, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, PITH_ERROR_IO);
    assert_true(n_written > 10 && n_written < 32);
    assert_non_null(strstr(error.text, "writing failed after "));
    assert_non_null(strstr(error.text, "the file is larger than the system allows"));
    assert_int_equal(n_files(), 1); /* the half-written file is gone before the writer is */
    assert_int_equal(pith_gguf_write_data(w, zeros, 1, &error), PITH_ERROR_IO);
    assert_int_equal(pith_gguf_writer_finish(w, &error), PITH_ERROR_ARGUMENT);
    pith_gguf_writer_free(w);
    expect_file(path, "older", 5);
    assert_int_equal(remove(path), 0);
#endif
}

static void each_allocation_refused(void **state) {
    (void)state;
    char path[512];
    in_folder("memory.gguf", path);
    pith_status status = PITH_ERROR_MEMORY;
    uint64_t n = 0;
    while (status != PITH_OK) {
        pith_error error = {PITH_OK, ""};
        memory_watch_reset(++n);
        status = write_b3(path, 3, 58, &error);
        memory_watch_reset(0);
        if (status != PITH_OK) {
            assert_int_equal(status, PITH_ERROR_MEMORY);
            assert_int_equal(n_files(), 0);
        }
    }
    assert_true(n > 10);
    assert_int_equal(n_files(), 1);
    size_t size;
    const uint8_t *b3 = b3_file(&size);
    expect_file(path, b3, size);
    assert_int_equal(remove(path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_the_reference_file),
        cmocka_unit_test(every_value_type_comes_back),
        cmocka_unit_test(an_alignment_is_written_and_used),
        cmocka_unit_test(wrong_declarations_are_refused),
        cmocka_unit_test(the_file_does_not_grow_past_64_bits),
        cmocka_unit_test(numbers_of_keys_and_lengths_of_strings_are_limited),
        cmocka_unit_test(a_caller_who_ignores_errors_gets_no_file),
        cmocka_unit_test(too_little_or_too_much_data_is_refused),
        cmocka_unit_test(a_folder_that_is_not_there_is_reported),
        cmocka_unit_test(a_full_disk_is_reported_and_nothing_is_left),
        cmocka_unit_test(each_allocation_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
