/* SPDX-License-Identifier: Apache-2.0
 * Builds GGUF files byte by byte, right or wrong ones, and opens them from memory and through callbacks. It shares no
 * code with the reader or the writer under test. */
#ifndef PITH_TESTS_GGUF_BYTES_H
#define PITH_TESTS_GGUF_BYTES_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include "base/text.h"
#include "gguf/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A small file as the reference writer wrote it. */
static inline const uint8_t *b3_file(size_t *size) {
    static const char hex[] = "47475546030000000200000000000000040000000000000014000000000000006765"
                              "6e6572616c2e6172636869746563"
                              "747572650800000005000000000000006c6c616d610500000000000000782e753332"
                              "0400000007000000030000000000"
                              "0000782e6207000000010300000000000000782e7309000000080000000200000000"
                              "0000000200000000000000686900"
                              "000000000000000800000000000000612e7765696768740200000003000000000000"
                              "0002000000000000000000000000"
                              "00000000000000010000000000000062010000002000000000000000080000002000"
                              "0000000000000000000000000000"
                              "00000000000000000000000000000000000000000000803f00000040000040400000"
                              "80400000a0400000000000000000"
                              "003c000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
                              "0000000000000000000000000000"
                              "00000000000000000000000000000000";
    static uint8_t bytes[sizeof hex / 2];
    for (size_t i = 0; i < sizeof bytes; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        bytes[i] = (uint8_t)byte;
    }
    *size = sizeof bytes;
    return bytes;
}

static inline void put(pith_buffer *file, uint64_t value, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; i++) {
        uint8_t byte = (uint8_t)(value >> 8 * i);
        pith_buffer_append(file, &byte, 1);
    }
}

static inline void put_text(pith_buffer *file, const char *text) {
    put(file, strlen(text), 8);
    pith_buffer_append(file, text, strlen(text));
}

static inline void put_zeros(pith_buffer *file, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; i++) put(file, 0, 1);
}

static inline void put_preamble(pith_buffer *file, uint32_t version, uint64_t n_tensors,
                                uint64_t n_kv) {
    pith_buffer_append(file, "GGUF", 4);
    put(file, version, 4);
    put(file, n_tensors, 8);
    put(file, n_kv, 8);
}

static inline void put_key(pith_buffer *file, const char *key, uint32_t kind) {
    put_text(file, key);
    put(file, kind, 4);
}

static inline void put_u32(pith_buffer *file, const char *key, uint32_t value) {
    put_key(file, key, PITH_GGUF_U32);
    put(file, value, 4);
}

static inline void put_u16(pith_buffer *file, const char *key, uint16_t value) {
    put_key(file, key, PITH_GGUF_U16);
    put(file, value, 2);
}

static inline void put_array(pith_buffer *file, const char *key, uint32_t item, uint64_t n_items) {
    put_key(file, key, PITH_GGUF_ARRAY);
    put(file, item, 4);
    put(file, n_items, 8);
}

typedef struct dims {
    uint32_t n;
    uint64_t ne[5];
} dims;

static inline void put_tensor(pith_buffer *file, const char *name, dims shape, uint32_t type,
                              uint64_t offset) {
    put_text(file, name);
    put(file, shape.n, 4);
    for (uint32_t i = 0; i < shape.n && i < 5; i++) put(file, shape.ne[i], 8);
    put(file, type, 4);
    put(file, offset, 8);
}

static inline void put_padding(pith_buffer *file, size_t alignment) {
    while (file->size % alignment != 0) put(file, 0, 1);
}

/* ---- Opening ------------------------------------------------------------------------------------------------ */

typedef struct byte_range {
    const uint8_t *data;
    uint64_t size;
    uint64_t n_read; /* bytes that were asked for */
} byte_range;

static inline int read_range(void *user, uint64_t offset, void *buffer, size_t size) {
    byte_range *range = user;
    if (offset > range->size || size > range->size - offset) return 1;
    memcpy(buffer, range->data + offset, size);
    range->n_read += size;
    return 0;
}

static inline pith_status open_memory(const void *data, size_t size, pith_gguf **out,
                                      pith_error *error) {
    pith_source *source;
    pith_status status = pith_source_open_memory(data, size, &source, error);
    return status ? status : pith_gguf_open_source(source, out, error);
}

static inline pith_status open_callbacks(byte_range *range, pith_gguf **out, pith_error *error) {
    pith_reader reader = {
        .size = sizeof reader, .user = range, .read_at = read_range, .total_bytes = range->size};
    pith_source *source;
    pith_status status = pith_source_open_reader(&reader, &source, error);
    return status ? status : pith_gguf_open_source(source, out, error);
}

/* Opens in place; checks that reading through callbacks says the same. Returns NULL with *error filled on failure. */
static inline pith_gguf *open_both(const void *data, size_t size, pith_error *error) {
    pith_gguf *mapped = NULL, *windowed = NULL;
    byte_range range = {data, size, 0};
    pith_error other = {PITH_OK, ""};
    pith_status status = open_memory(data, size, &mapped, error);
    pith_status its_status = open_callbacks(&range, &windowed, &other);
    assert_int_equal(status, its_status);
    if (status != PITH_OK) {
        assert_null(mapped);
        assert_null(windowed);
        assert_int_equal(error->status, status);
        assert_int_equal(other.status, status);
        const char *text = strchr(error->text, ' '), *its_text = strchr(other.text, ' ');
        assert_non_null(text);
        assert_non_null(its_text);
        assert_string_equal(text, its_text); /* after the file's name */
        return NULL;
    }
    assert_int_equal(pith_gguf_n_values(mapped), pith_gguf_n_values(windowed));
    assert_int_equal(pith_gguf_n_tensors(mapped), pith_gguf_n_tensors(windowed));
    pith_gguf_close(windowed);
    return mapped;
}

static inline void expect_good(const pith_buffer *file) {
    pith_error error = {PITH_OK, ""};
    assert_false(file->failed);
    pith_gguf *gguf = open_both(file->data, file->size, &error);
    if (!gguf) print_error("%s\n", error.text);
    assert_non_null(gguf);
    pith_gguf_close(gguf);
}

/* The file is refused with this status and a sentence that holds `part`. */
static inline void expect_refused(const pith_buffer *file, pith_status status, const char *part) {
    pith_error error = {PITH_OK, ""};
    assert_false(file->failed);
    pith_gguf *gguf = open_both(file->data, file->size, &error);
    assert_null(gguf);
    if (error.status != status || !strstr(error.text, part)) {
        print_error("expected %d \"%s\"\n     got %d \"%s\"\n", (int)status, part,
                    (int)error.status, error.text);
        fail();
    }
}

/* As expect_refused, then empties the buffer for the next case. */
static inline void refuse_and_reset(pith_buffer *file, pith_status status, const char *part) {
    expect_refused(file, status, part);
    pith_buffer_reset(file);
}

static inline void accept_and_reset(pith_buffer *file) {
    expect_good(file);
    pith_buffer_reset(file);
}

static inline bool make_folder_at(const char *path) {
#if defined(_WIN32)
    return mkdir(path) == 0;
#else
    return mkdir(path, 0777) == 0;
#endif
}

/* A folder for one test program in the build folder; removed with rmdir. */
static inline bool make_scratch_folder(const char *name, char *path, size_t capacity) {
    const char *parent = getenv("PITH_BINARY_DIR");
    snprintf(path, capacity, "%s/%s-%d", parent ? parent : ".", name, (int)getpid());
    return make_folder_at(path);
}

/* A path for a file of this test in the build folder. */
static inline const char *scratch_path(const char *name, char buffer[512]) {
    const char *folder = getenv("PITH_BINARY_DIR");
    snprintf(buffer, 512, "%s/%s", folder ? folder : ".", name);
    return buffer;
}

static inline void write_file(const char *path, const void *data, size_t size) {
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

/* The whole file; NULL when there is none. Freed by the caller. */
static inline uint8_t *read_whole(const char *path, size_t *size) {
    FILE *in = fopen(path, "rb");
    if (!in) return NULL;
    fseek(in, 0, SEEK_END);
    long end = ftell(in);
    rewind(in);
    uint8_t *data = malloc(end > 0 ? (size_t)end : 1);
    assert_non_null(data);
    *size = fread(data, 1, (size_t)end, in);
    assert_int_equal(*size, (size_t)end);
    fclose(in);
    return data;
}

#endif
