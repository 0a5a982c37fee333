/* SPDX-License-Identifier: Apache-2.0
 * Promises of the safetensors reader: what is well-formed is listed with absolute places; every way
 * in which header, sizes and offsets can be wrong is refused with a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "model/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file of this header and so many bytes of data. */
static pith_status open_made(const char *header, size_t n_data, uint64_t length,
                             pith_safetensors **out, pith_buffer *file, pith_error *error) {
    pith_source *source = NULL;
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(length >> 8 * i);
    *file = (pith_buffer){0};
    pith_buffer_append(file, bytes, 8);
    pith_buffer_append_text(file, header);
    for (size_t i = 0; i < n_data; i++) pith_buffer_append(file, "d", 1);
    assert_false(file->failed);
    assert_int_equal(pith_source_open_memory(file->data, file->size, &source, error), PITH_OK);
    return pith_safetensors_open(source, out, error);
}

static void expect_refusal(const char *header, size_t n_data, pith_status status,
                           const char *words) {
    pith_safetensors *file = NULL;
    pith_buffer bytes;
    pith_error error = {0};
    pith_status found = open_made(header, n_data, strlen(header), &file, &bytes, &error);
    if (found != status || file || !strstr(error.text, words))
        fail_msg("%s: status %d \"%s\", expected %d \"%s\"", header, found, error.text, status,
                 words);
    pith_buffer_deinit(&bytes);
}

static void tensors_are_listed_in_the_order_of_their_data(void **state) {
    const char *header = "{\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
                         "\"__metadata__\":{\"format\":\"pt\"},"
                         "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                         "\"empty\":{\"dtype\":\"I64\",\"shape\":[0,7],\"data_offsets\":[16,16]},"
                         "\"half\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[16,17]}}   ";
    pith_safetensors *file = NULL;
    pith_buffer bytes;
    pith_error error;
    (void)state;
    if (open_made(header, 17, strlen(header), &file, &bytes, &error)) fail_msg("%s", error.text);
    assert_int_equal(pith_safetensors_count(file), 4);
    const char *const names[] = {"a", "b", "empty", "half"};
    const uint64_t sizes[] = {4, 12, 0, 1}, offsets[] = {0, 4, 16, 16};
    for (size_t i = 0; i < 4; i++) {
        const pith_safetensor *tensor = pith_safetensors_at(file, i);
        assert_string_equal(tensor->name, names[i]);
        assert_true(tensor->bytes == sizes[i]);
        assert_true(tensor->offset == 8 + strlen(header) + offsets[i]);
    }
    assert_int_equal(pith_safetensors_at(file, 1)->n_dims, 2);
    assert_true(pith_safetensors_at(file, 1)->shape[1] == 3);
    assert_string_equal(pith_safetensors_at(file, 1)->dtype, "BF16");
    pith_safetensors_close(file);
    pith_buffer_deinit(&bytes);
}

static void types_are_ours_or_not(void **state) {
    pith_type type;
    (void)state;
    assert_true(pith_safetensors_type("F16", &type) && type == PITH_TYPE_F16);
    assert_true(pith_safetensors_type("BF16", &type) && type == PITH_TYPE_BF16);
    assert_true(pith_safetensors_type("F32", &type) && type == PITH_TYPE_F32);
    assert_true(pith_safetensors_type("F64", &type) && type == PITH_TYPE_F64);
    assert_false(pith_safetensors_type("I8", &type));
    assert_false(pith_safetensors_type("", &type));
}

static void headers_that_are_wrong_are_refused(void **state) {
    (void)state;
    expect_refusal("", 0, PITH_ERROR_FORMAT, "no JSON object");
    expect_refusal(" {}", 0, PITH_ERROR_FORMAT, "no JSON object");
    expect_refusal("{", 0, PITH_ERROR_FORMAT, "JSON line");
    expect_refusal("{}x", 0, PITH_ERROR_FORMAT, "JSON line");
    expect_refusal("{\"a\":1}", 0, PITH_ERROR_FORMAT, "no dtype");
    expect_refusal("{\"a\":{},\"a\":{}}", 0, PITH_ERROR_FORMAT, "duplicate");
    expect_refusal("{\"__metadata__\":{\"a\":1}}", 0, PITH_ERROR_FORMAT, "strings only");
    expect_refusal("{\"__metadata__\":[]}", 0, PITH_ERROR_FORMAT, "strings only");
    expect_refusal("{\"a\":[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}", 0, PITH_ERROR_LIMIT, "nested");
}

#define ONE(dtype, shape, offsets)                                                                 \
    "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void tensors_that_are_wrong_are_refused(void **state) {
    (void)state;
    expect_refusal(ONE("Q4", "[1]", "[0,4]"), 4, PITH_ERROR_UNSUPPORTED, "dtype Q4");
    expect_refusal(ONE("F32", "1", "[0,4]"), 4, PITH_ERROR_FORMAT, "shape");
    expect_refusal(ONE("F32", "[-1]", "[0,4]"), 4, PITH_ERROR_FORMAT, "not possible");
    expect_refusal(ONE("F32", "[1.0]", "[0,4]"), 4, PITH_ERROR_FORMAT, "not possible");
    expect_refusal(ONE("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, PITH_ERROR_FORMAT, "at most 8");
    expect_refusal(ONE("F32", "[4294967296,4294967296]", "[0,0]"), 0, PITH_ERROR_FORMAT,
                   "not possible");
    expect_refusal(ONE("F4", "[3]", "[0,1]"), 1, PITH_ERROR_FORMAT, "end at a byte");
    expect_refusal(ONE("F32", "[1]", "[0]"), 4, PITH_ERROR_FORMAT, "data_offsets");
    expect_refusal(ONE("F32", "[1]", "[4,0]"), 4, PITH_ERROR_FORMAT, "data_offsets");
    expect_refusal(ONE("F32", "[1]", "[0,\"4\"]"), 4, PITH_ERROR_FORMAT, "data_offsets");
    expect_refusal(ONE("F32", "[1]", "[0,4]"), 3, PITH_ERROR_FORMAT, "cut short");
    expect_refusal(ONE("F32", "[2]", "[0,4]"), 4, PITH_ERROR_FORMAT, "needs 8 bytes");
    expect_refusal(ONE("F32", "[1]", "[1,5]"), 5, PITH_ERROR_FORMAT, "begins at byte 1");
    expect_refusal(ONE("F32", "[1]", "[0,4]"), 5, PITH_ERROR_FORMAT, "its data has 5");
    expect_refusal("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                   "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}",
                   6, PITH_ERROR_FORMAT, "b begins at byte 2 of the data, expected 4");
}

static void names_are_limited(void **state) {
    (void)state;
    for (size_t n = PITH_SAFETENSORS_MAX_NAME; n <= PITH_SAFETENSORS_MAX_NAME + 1; n++) {
        pith_buffer header = {0}, bytes;
        pith_safetensors *file = NULL;
        pith_error error;
        pith_buffer_append_text(&header, "{\"");
        for (size_t i = 0; i < n; i++) pith_buffer_append(&header, "n", 1);
        pith_buffer_append_text(&header,
                                "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}");
        pith_status status = open_made(header.data, 0, header.size, &file, &bytes, &error);
        assert_int_equal(status, n <= PITH_SAFETENSORS_MAX_NAME ? PITH_OK : PITH_ERROR_FORMAT);
        pith_safetensors_close(file);
        pith_buffer_deinit(&header);
        pith_buffer_deinit(&bytes);
    }
}

static void lengths_are_held_against_the_file(void **state) {
    static const struct {
        uint64_t length;
        pith_status status;
        const char *words;
    } cases[] = {{2, PITH_OK, ""},
                 {3, PITH_ERROR_FORMAT, "cut short"},
                 {PITH_SAFETENSORS_MAX_HEADER, PITH_ERROR_FORMAT, "cut short"},
                 {PITH_SAFETENSORS_MAX_HEADER + 1, PITH_ERROR_LIMIT, "at most"},
                 {UINT64_MAX, PITH_ERROR_LIMIT, "at most"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pith_safetensors *file = NULL;
        pith_buffer bytes;
        pith_error error = {0};
        pith_status status = open_made("{}", 0, cases[i].length, &file, &bytes, &error);
        if (status != cases[i].status || (status && !strstr(error.text, cases[i].words)))
            fail_msg("length %llu: %d \"%s\"", (unsigned long long)cases[i].length, status,
                     error.text);
        pith_safetensors_close(file);
        pith_buffer_deinit(&bytes);
    }
    for (size_t n = 0; n < 8; n++) { /* not even a length */
        pith_source *source = NULL;
        pith_safetensors *file = NULL;
        assert_int_equal(pith_source_open_memory("\0\0\0\0\0\0\0", n, &source, NULL), PITH_OK);
        assert_int_equal(pith_safetensors_open(source, &file, NULL), PITH_ERROR_FORMAT);
        assert_null(file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_listed_in_the_order_of_their_data),
        cmocka_unit_test(types_are_ours_or_not),
        cmocka_unit_test(headers_that_are_wrong_are_refused),
        cmocka_unit_test(tensors_that_are_wrong_are_refused),
        cmocka_unit_test(names_are_limited),
        cmocka_unit_test(lengths_are_held_against_the_file),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
