/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises: a buffer is always NUL-terminated and survives a failed allocation unchanged; spans
 * compare by bytes; the hash is SipHash-1-3 and the same everywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void test_spans(void **state) {
    (void)state;
    pith_span none = {NULL, 0}, abc = pith_span_of("abc");
    assert_int_equal(abc.size, 3);
    assert_true(pith_span_is(abc, "abc"));
    assert_false(pith_span_is(abc, "ab"));
    assert_false(pith_span_is(abc, "abd"));
    assert_false(pith_span_is(abc, "abcd"));
    assert_true(pith_span_is(none, ""));
    assert_true(pith_span_equal(none, pith_span_of("")));
    assert_true(pith_span_equal((pith_span){"a\0b", 3}, (pith_span){"a\0b", 3}));
    assert_false(pith_span_equal((pith_span){"a\0b", 3}, (pith_span){"a\0c", 3}));
    assert_int_equal(pith_span_of(NULL).size, 0);
}

static void test_buffer_grows_and_stays_terminated(void **state) {
    (void)state;
    pith_buffer buffer = {0};
    for (size_t i = 0; i < 5000; i++) {
        char c = (char)('a' + i % 26);
        pith_buffer_append(&buffer, &c, 1);
        assert_int_equal(buffer.size, i + 1);
        assert_int_equal(buffer.data[i + 1], 0);
        assert_true(buffer.size < buffer.capacity);
    }
    for (size_t i = 0; i < 5000; i++) assert_int_equal(buffer.data[i], 'a' + i % 26);
    assert_false(buffer.failed);
    pith_buffer_reset(&buffer);
    assert_string_equal(buffer.data, "");
    pith_buffer_append_text(&buffer, "one");
    pith_buffer_append_format(&buffer, " %s %d", "two", 3);
    pith_buffer_append_format(&buffer, "%s", "");
    assert_string_equal(buffer.data, "one two 3");
    assert_int_equal(buffer.size, 9);
    pith_buffer_deinit(&buffer);
    assert_null(buffer.data);
    assert_int_equal(buffer.capacity, 0);
}

static void test_format_fits_at_every_length(void **state) {
    (void)state;
    char text[300];
    for (int n = 0; n < 299; n++) {
        pith_buffer buffer = {0};
        memset(text, 'y', (size_t)n);
        text[n] = 0;
        pith_buffer_append_format(&buffer, "%s", text);
        assert_string_equal(buffer.data, text);
        assert_int_equal(buffer.size, n);
        pith_buffer_deinit(&buffer);
    }
}

static void test_empty_append_makes_text(void **state) {
    (void)state;
    pith_buffer buffer = {0};
    pith_buffer_append(&buffer, NULL, 0);
    assert_string_equal(buffer.data, "");
    pith_buffer_deinit(&buffer);
    pith_buffer_reset(&buffer);
    pith_buffer_deinit(&buffer);
}

static void test_failed_append_is_remembered(void **state) {
    (void)state;
    pith_buffer buffer = {0};
    pith_buffer_append_text(&buffer, "kept");
    pith_buffer_append(&buffer, "x", SIZE_MAX); /* overflows the size */
    assert_true(buffer.failed);
    assert_string_equal(buffer.data, "kept");
    pith_buffer_append_text(&buffer, "more");
    pith_buffer_append_format(&buffer, "%d", 1);
    assert_string_equal(buffer.data, "kept");
    pith_buffer_reset(&buffer);
    pith_buffer_append_text(&buffer, "again");
    assert_string_equal(buffer.data, "again");
    assert_false(buffer.failed);
    pith_buffer_deinit(&buffer);
}

/* Values from an implementation of SipHash-1-3 of its own (key: seed and its complement,
 * little-endian words). */
static void test_hash_values(void **state) {
    (void)state;
    static const struct {
        const char *data;
        size_t size;
        uint64_t seed, hash;
    } rows[] = {
        {"", 0, 0x0u, 0x6b3c89e238a4996eu},
        {"a", 1, 0x0u, 0x429be242cfb091afu},
        {"a", 1, 0x1u, 0xda4c87dc03dbe8bdu},
        {"1234567", 7, 0x7u, 0xac25ddb9965fe9fbu},
        {"12345678", 8, 0x7u, 0x7769b8e5b840f69u},
        {"123456789", 9, 0xffffffffffffffffu, 0xa05f7d572500cb2u},
        {"the quick brown fox jumps over the lazy dog", 43, 0x123456789abcdefu,
         0xce6696751b5fe08eu},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t hash = pith_hash(rows[i].data, rows[i].size, rows[i].seed);
        if (hash != rows[i].hash) {
            fail_msg("row %zu: %#llx, expected %#llx", i, (unsigned long long)hash,
                     (unsigned long long)rows[i].hash);
        }
    }
}

static void test_hash_depends_on_each_bit(void **state) {
    (void)state;
    unsigned char bytes[40] = {0};
    for (size_t size = 0; size <= sizeof bytes; size++) {
        uint64_t hash = pith_hash(bytes, size, 1);
        assert_true(hash != pith_hash(bytes, size, 2));
        if (size) assert_true(hash != pith_hash(bytes, size - 1, 1));
        for (size_t bit = 0; bit < 8 * size; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            assert_true(hash != pith_hash(bytes, size, 1));
            bytes[bit / 8] = 0;
        }
    }
}

static void test_space_is_that_of_the_c_locale(void **state) {
    (void)state;
    for (int c = -128; c < 128; c++)
        assert_int_equal(pith_is_space((char)c), c > 0 && strchr(" \t\n\v\f\r", c) != NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_buffer_grows_and_stays_terminated),
        cmocka_unit_test(test_format_fits_at_every_length),
        cmocka_unit_test(test_empty_append_makes_text),
        cmocka_unit_test(test_failed_append_is_remembered),
        cmocka_unit_test(test_hash_values),
        cmocka_unit_test(test_hash_depends_on_each_bit),
        cmocka_unit_test(test_space_is_that_of_the_c_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
