/* SPDX-License-Identifier: Apache-2.0
 * Every published limit at its value and one past it, and headers that claim more than the file holds: those must be
 * refused before memory is asked for. */
#define _XOPEN_SOURCE 700 /* mkdir, getpid */

#include "gguf_bytes.h"
#include "support/failing_memory.h"
#include "support/gguf_walk.h"

/* What opening may ask of the heap in all, in terms of the file's own bytes: index and lists are a small multiple. */
static void expect_modest(const pith_buffer *file, pith_status status) {
    pith_gguf *gguf;
    pith_error error;
    memory_watch_reset(0);
    assert_int_equal(open_memory(file->data, file->size, &gguf, &error), status);
    uint64_t asked = memory_watch.n_bytes;
    if (asked > 16 * file->size + 16384) {
        print_error("%llu bytes were asked for, the file has %zu\n", (unsigned long long)asked,
                    file->size);
        fail();
    }
    pith_gguf_close(gguf);
}

static void claims_are_refused_without_memory(void **state) {
    (void)state;
    static const uint64_t claims[] = {
        UINT64_C(1) << 60, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX / 8 + 1,
        UINT64_C(1) << 32, 1 << 26,           1000};
    pith_buffer f = {0};
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        uint64_t n = claims[i];
        bool over = n > PITH_GGUF_MAX_ARRAY;
        put_preamble(&f, 3, n, 0);
        expect_modest(&f, n > PITH_GGUF_MAX_TENSORS ? PITH_ERROR_LIMIT : PITH_ERROR_FORMAT);
        refuse_and_reset(&f, n > PITH_GGUF_MAX_TENSORS ? PITH_ERROR_LIMIT : PITH_ERROR_FORMAT,
                         "tensors");
        put_preamble(&f, 3, 0, n);
        expect_modest(&f, n > PITH_GGUF_MAX_KEYS ? PITH_ERROR_LIMIT : PITH_ERROR_FORMAT);
        refuse_and_reset(&f, n > PITH_GGUF_MAX_KEYS ? PITH_ERROR_LIMIT : PITH_ERROR_FORMAT, "keys");
        for (uint32_t kind = 0; kind <= 12; kind++) {
            if (kind == PITH_GGUF_ARRAY) continue;
            put_preamble(&f, 3, 0, 1);
            put_array(&f, "k", kind, n);
            expect_modest(&f, over ? PITH_ERROR_LIMIT : PITH_ERROR_FORMAT);
            refuse_and_reset(&f, over ? PITH_ERROR_LIMIT : PITH_ERROR_FORMAT, "\"k\"");
        }
        put_preamble(&f, 3, 0, 1);
        put_key(&f, "k", PITH_GGUF_STRING);
        put(&f, n, 8);
        expect_modest(&f, PITH_ERROR_FORMAT);
        refuse_and_reset(&f, PITH_ERROR_FORMAT, "are left");
        put_preamble(&f, 3, 0, 1);
        put(&f, n, 8);
        put_zeros(&f, 8);
        expect_modest(&f, n > PITH_GGUF_MAX_KEY_BYTES ? PITH_ERROR_LIMIT : PITH_ERROR_FORMAT);
        pith_buffer_reset(&f);
    }
    pith_buffer_deinit(&f);
}

static void truncation_says_needed_and_left(void **state) {
    (void)state;
    pith_buffer f = {0};
    put_preamble(&f, 3, 0, 1000);
    refuse_and_reset(&f, PITH_ERROR_FORMAT,
                     "the list of keys at byte 24 needs 14000 bytes, 0 are left");
    put_preamble(&f, 3, 1000, 0);
    put_zeros(&f, 7);
    refuse_and_reset(&f, PITH_ERROR_FORMAT,
                     "the list of tensors at byte 24 needs 25000 bytes, 7 are left");
    put_preamble(&f, 3, 0, 1);
    put_array(&f, "k.k", PITH_GGUF_U64, 5);
    put_zeros(&f, 39);
    refuse_and_reset(&f, PITH_ERROR_FORMAT,
                     "the array of \"k.k\" at byte 51 needs 40 bytes, 39 are left");
    pith_buffer_deinit(&f);
}

static void put_long_key(pith_buffer *f, size_t size, char first) {
    put(f, size, 8);
    put(f, (uint8_t)first, 1);
    for (size_t i = 1; i < size; i++) put(f, 'k', 1);
    put(f, PITH_GGUF_U8, 4);
    put(f, 1, 1);
}

static void lengths_of_keys_and_names(void **state) {
    (void)state;
    pith_buffer f = {0};
    put_preamble(&f, 3, 0, 1);
    put_long_key(&f, PITH_GGUF_MAX_KEY_BYTES, 'a');
    accept_and_reset(&f);
    put_preamble(&f, 3, 0, 1);
    put_long_key(&f, PITH_GGUF_MAX_KEY_BYTES + 1, 'a');
    refuse_and_reset(&f, PITH_ERROR_LIMIT, "has 65536 bytes, 1 to 65535 are allowed");
    char name[PITH_GGUF_MAX_NAME_BYTES + 2];
    for (size_t size = PITH_GGUF_MAX_NAME_BYTES; size <= PITH_GGUF_MAX_NAME_BYTES + 1; size++) {
        memset(name, 'n', size);
        name[size] = '\0';
        put_preamble(&f, 3, 1, 0);
        put_tensor(&f, name, (dims){1, {8}}, PITH_TYPE_F32, 0);
        put_padding(&f, 32);
        put_zeros(&f, 32);
        if (size == PITH_GGUF_MAX_NAME_BYTES)
            accept_and_reset(&f);
        else
            refuse_and_reset(&f, PITH_ERROR_LIMIT, "has 128 bytes, 1 to 127 are allowed");
    }
    pith_buffer_deinit(&f);
}

static void numbers_of_keys(void **state) {
    (void)state;
    for (uint64_t n = PITH_GGUF_MAX_KEYS; n <= PITH_GGUF_MAX_KEYS + 1; n++) {
        pith_buffer f = {0};
        put_preamble(&f, 3, 0, n);
        for (uint64_t i = 0; i < n; i++) {
            char key[16];
            snprintf(key, sizeof key, "%llx", (unsigned long long)i);
            put_key(&f, key, PITH_GGUF_U8);
            put(&f, 1, 1);
        }
        expect_modest(&f, n == PITH_GGUF_MAX_KEYS ? PITH_OK : PITH_ERROR_LIMIT);
        if (n == PITH_GGUF_MAX_KEYS)
            expect_good(&f);
        else
            expect_refused(&f, PITH_ERROR_LIMIT,
                           "the header claims 65537 keys, at most 65536 are allowed");
        pith_buffer_deinit(&f);
    }
}

static void numbers_of_tensors(void **state) {
    (void)state;
    for (uint64_t n = PITH_GGUF_MAX_TENSORS; n <= PITH_GGUF_MAX_TENSORS + 1; n++) {
        pith_buffer f = {0};
        put_preamble(&f, 3, n, 0);
        for (uint64_t i = 0; i < n; i++) {
            char name[16];
            snprintf(name, sizeof name, "%llx", (unsigned long long)i);
            put_tensor(&f, name, (dims){0, {0}}, PITH_TYPE_I8,
                       (n - 1 - i) * 32); /* backwards: the slow way */
        }
        put_padding(&f, 32);
        size_t header = f.size, total = header + (size_t)n * 32;
        uint8_t *file = calloc(1, total);
        assert_non_null(file);
        memcpy(file, f.data, header);
        pith_gguf *gguf;
        pith_error error;
        memory_watch_reset(0);
        pith_status status = open_memory(file, total, &gguf, &error);
        assert_true(memory_watch.n_bytes < 16 * header);
        assert_int_equal(status, n == PITH_GGUF_MAX_TENSORS ? PITH_OK : PITH_ERROR_LIMIT);
        if (status == PITH_OK)
            assert_int_equal(pith_gguf_tensor_find(gguf, "fffff")->offset, header);
        pith_gguf_close(gguf);
        free(file);
        pith_buffer_deinit(&f);
    }
}

/* A file of zeros after `head`; the zeros are not touched unless the reader reads them. */
static pith_status open_with_zeros(const pith_buffer *head, uint64_t n_zeros, pith_error *error,
                                   bool *ran) {
    uint8_t *file = calloc(1, head->size + (size_t)n_zeros);
    *ran = file != NULL;
    if (!file) return PITH_ERROR_MEMORY;
    memcpy(file, head->data, head->size);
    pith_gguf *gguf;
    pith_status status = open_memory(file, head->size + (size_t)n_zeros, &gguf, error);
    pith_gguf_close(gguf);
    free(file);
    return status;
}

static void lengths_of_strings_and_arrays(void **state) {
    (void)state;
    pith_buffer head = {0};
    pith_error error;
    bool ran;
    for (uint64_t extra = 0; extra < 2; extra++) {
        put_preamble(&head, 3, 0, 1);
        put_key(&head, "s", PITH_GGUF_STRING);
        put(&head, PITH_GGUF_MAX_STRING_BYTES + extra, 8);
        pith_status status =
            open_with_zeros(&head, PITH_GGUF_MAX_STRING_BYTES + extra, &error, &ran);
        if (ran) assert_int_equal(status, extra ? PITH_ERROR_LIMIT : PITH_OK);
        pith_buffer_reset(&head);
        put_preamble(&head, 3, 0, 1);
        put_array(&head, "a", PITH_GGUF_I8, PITH_GGUF_MAX_ARRAY + extra);
        status = open_with_zeros(&head, PITH_GGUF_MAX_ARRAY + extra, &error, &ran);
        if (ran) assert_int_equal(status, extra ? PITH_ERROR_LIMIT : PITH_OK);
        pith_buffer_reset(&head);
        put_preamble(&head, 3, 0, 1); /* a string within an array is limited too */
        put_array(&head, "a", PITH_GGUF_STRING, 1);
        put(&head, PITH_GGUF_MAX_STRING_BYTES + extra, 8);
        status = open_with_zeros(&head, PITH_GGUF_MAX_STRING_BYTES + extra, &error, &ran);
        if (ran) assert_int_equal(status, extra ? PITH_ERROR_LIMIT : PITH_OK);
        pith_buffer_reset(&head);
    }
    pith_buffer_deinit(&head);
}

/* The header may be 2^30 bytes: arrays that are skipped make it that long without being read. */
static void length_of_the_header(void **state) {
    (void)state;
    for (uint64_t extra = 0; extra < 2; extra++) {
        uint64_t total = PITH_GGUF_MAX_HEADER_BYTES + extra;
        uint8_t *file = calloc(1, (size_t)total + 64);
        if (!file) skip();
        pith_buffer part = {0};
        put_preamble(&part, 3, 0, 16);
        memcpy(file, part.data, part.size);
        uint64_t at = part.size;
        for (uint64_t i = 0; i < 16; i++) {
            char key[2] = {(char)('a' + i), '\0'};
            uint64_t n = i < 15 ? PITH_GGUF_MAX_ARRAY : total - at - 25;
            pith_buffer_reset(&part);
            put_array(&part, key, PITH_GGUF_U8, n);
            assert_int_equal(part.size, 25);
            memcpy(file + at, part.data, part.size);
            at += part.size + n;
        }
        assert_int_equal(at, total);
        pith_gguf *gguf;
        pith_error error;
        pith_status status = open_memory(file, total + 64, &gguf, &error);
        assert_int_equal(status, extra ? PITH_ERROR_LIMIT : PITH_OK);
        if (extra)
            assert_non_null(
                strstr(error.text, "the header goes on to byte 1073741825, at most 1073741824"));
        pith_gguf_close(gguf);
        pith_buffer_deinit(&part);
        free(file);
    }
}

static void values_of_the_alignment(void **state) {
    (void)state;
    static const struct {
        uint32_t alignment;
        pith_status status;
    } cases[] = {{0, PITH_ERROR_FORMAT},
                 {1, PITH_OK},
                 {2, PITH_OK},
                 {3, PITH_ERROR_FORMAT},
                 {8, PITH_OK},
                 {24, PITH_ERROR_FORMAT},
                 {1 << 20, PITH_OK},
                 {(1 << 20) - 1, PITH_ERROR_FORMAT},
                 {(1 << 20) + 1, PITH_ERROR_FORMAT},
                 {1 << 21, PITH_ERROR_FORMAT},
                 {UINT32_C(1) << 31, PITH_ERROR_FORMAT}};
    pith_buffer f = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_preamble(&f, 3, 1, 1);
        put_u32(&f, "general.alignment", cases[i].alignment);
        put_tensor(&f, "t", (dims){1, {1}}, PITH_TYPE_I8, 0);
        if (cases[i].status == PITH_OK) put_padding(&f, cases[i].alignment);
        put(&f, 5, 1);
        if (cases[i].status == PITH_OK)
            accept_and_reset(&f);
        else
            refuse_and_reset(&f, PITH_ERROR_FORMAT, "key \"general.alignment\" holds");
    }
    put_preamble(&f, 3, 0, 1);
    put_key(&f, "general.alignment", PITH_GGUF_STRING);
    put_text(&f, "32");
    refuse_and_reset(&f, PITH_ERROR_FORMAT,
                     "key \"general.alignment\" holds str, an integer is needed");
    pith_buffer_deinit(&f);
}

static void dimensions_do_not_overflow(void **state) {
    (void)state;
    const uint64_t most = INT64_MAX;
    const struct {
        dims shape;
        uint32_t type;
        const char *text; /* NULL: accepted */
    } cases[] = {
        {{0, {0}}, PITH_TYPE_I8, NULL},
        {{4, {1, 1, 1, 1}}, PITH_TYPE_I8, NULL},
        {{5, {1, 1, 1, 1, 1}},
         PITH_TYPE_I8,
         "has a number of dimensions of 5, at most 4 are allowed"},
        {{UINT32_MAX, {1}}, PITH_TYPE_I8, "has a number of dimensions of 4294967295"},
        {{1, {most + 1}}, PITH_TYPE_I8, "has a dimension of 9223372036854775808"},
        {{1, {UINT64_MAX}}, PITH_TYPE_I8, "has a dimension of 18446744073709551615"},
        {{1, {most}}, PITH_TYPE_I8, "ends at byte"},
        {{1, {most}}, PITH_TYPE_I16, "is too large with rows of 9223372036854775807"},
        {{1, {UINT64_C(1) << 62}}, PITH_TYPE_F64, "is too large"},
        {{2, {UINT64_C(1) << 32, UINT64_C(1) << 31}},
         PITH_TYPE_I8,
         "has too many elements with its dimension of 2147483648"},
        {{2, {UINT64_C(1) << 32, (UINT64_C(1) << 31) - 1}}, PITH_TYPE_I8, "ends at byte"},
        {{4, {UINT64_C(1) << 32, UINT64_C(1) << 32, 1, 0}}, PITH_TYPE_I8, "has too many elements"},
        {{4, {0, most, 3, 1}}, PITH_TYPE_I8, "has too many elements"},
        {{4, {1 << 20, 1 << 20, 1 << 20, 7}}, PITH_TYPE_F32, "is too large"},
        {{2, {0, 5}}, PITH_TYPE_F32, NULL},
        {{2, {5, 0}}, PITH_TYPE_F32, NULL},
        {{1, {0}}, PITH_TYPE_Q4_K, NULL},
        {{1, {255}}, PITH_TYPE_Q4_K, "has rows of 255 elements, Q4_K needs a multiple of 256"},
        {{1, {257}}, PITH_TYPE_Q4_K, "has rows of 257 elements"},
    };
    pith_buffer f = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_preamble(&f, 3, 1, 0);
        put_tensor(&f, "t", cases[i].shape, cases[i].type, 0);
        put_padding(&f, 32);
        put_zeros(&f, 32);
        if (cases[i].text)
            refuse_and_reset(&f, PITH_ERROR_FORMAT, cases[i].text);
        else
            accept_and_reset(&f);
    }
    const uint64_t offsets[] = {UINT64_MAX - 31, UINT64_C(1) << 63, most - 31, 32};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        put_preamble(&f, 3, 1, 0);
        put_tensor(&f, "t", (dims){1, {8}}, PITH_TYPE_F32, offsets[i]);
        put_padding(&f, 32);
        put_zeros(&f, 32);
        refuse_and_reset(&f, PITH_ERROR_FORMAT, i == 0 ? "ends beyond 2^64" : "ends at byte");
    }
    put_preamble(&f, 3, 1, 0); /* no bytes, but a place that wraps */
    put_tensor(&f, "t", (dims){1, {0}}, PITH_TYPE_F32, UINT64_MAX - 31);
    put_padding(&f, 32);
    refuse_and_reset(&f, PITH_ERROR_FORMAT, "ends beyond 2^64");
    pith_buffer_deinit(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_are_refused_without_memory),
        cmocka_unit_test(truncation_says_needed_and_left),
        cmocka_unit_test(lengths_of_keys_and_names),
        cmocka_unit_test(numbers_of_keys),
        cmocka_unit_test(numbers_of_tensors),
        cmocka_unit_test(lengths_of_strings_and_arrays),
        cmocka_unit_test(length_of_the_header),
        cmocka_unit_test(values_of_the_alignment),
        cmocka_unit_test(dimensions_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
