/* SPDX-License-Identifier: Apache-2.0
 *
 * Promise: no read goes past the end, whatever its size; a refused read moves nothing and is
 * remembered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cursor.h"

static const uint8_t bytes[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF,
                                  0x00, 0x00, 0xC0, 0x3F, 0xFE, 0xFF, 0xFF, 0xFF};

static void test_numbers_are_little_endian(void **state) {
    (void)state;
    for (size_t shift = 0; shift < 8; shift++) { /* any alignment */
        uint8_t moved[32];
        memcpy(moved + shift, bytes, sizeof bytes);
        pith_cursor c = pith_cursor_over(moved + shift, sizeof bytes);
        assert_int_equal(pith_cursor_read_u8(&c), 0x01);
        assert_int_equal(pith_cursor_read_u16(&c), 0x4523);
        assert_int_equal(pith_cursor_read_u32(&c), 0xCDAB8967);
        pith_cursor_skip(&c, 1);
        assert_true(pith_cursor_read_f32(&c) == 1.5f);
        assert_int_equal(pith_cursor_read_u32(&c), 0xFFFFFFFE);
        assert_int_equal(pith_cursor_remaining(&c), 0);
        assert_false(c.failed);
        c = pith_cursor_over(moved + shift, sizeof bytes);
        assert_true(pith_cursor_read_u64(&c) == 0xEFCDAB8967452301u);
    }
    uint64_t bits = 0x3FF8000000000000u;
    uint8_t number[8];
    for (int i = 0; i < 8; i++) number[i] = (uint8_t)(bits >> 8 * i);
    pith_cursor c = pith_cursor_over(number, 8);
    assert_true(pith_cursor_read_f64(&c) == 1.5);
}

/* Each reader on each size below, at and above what it needs. */
static void test_reads_stop_at_the_end(void **state) {
    (void)state;
    static const size_t needs[] = {1, 2, 4, 8, 4, 8};
    for (int reader = 0; reader < 6; reader++) {
        for (size_t size = 0; size <= 9; size++) {
            pith_cursor c = pith_cursor_over(bytes, size);
            double value = 0;
            switch (reader) {
            case 0: value = pith_cursor_read_u8(&c); break;
            case 1: value = pith_cursor_read_u16(&c); break;
            case 2: value = pith_cursor_read_u32(&c); break;
            case 3: value = (double)pith_cursor_read_u64(&c); break;
            case 4: value = (double)pith_cursor_read_f32(&c); break;
            default: value = pith_cursor_read_f64(&c); break;
            }
            bool fits = size >= needs[reader];
            assert_int_equal(c.failed, !fits);
            assert_int_equal(c.position, fits ? needs[reader] : 0);
            assert_int_equal(pith_cursor_remaining(&c), fits ? size - needs[reader] : size);
            if (!fits) assert_true(value == 0);
        }
    }
}

static void test_byte_runs_are_bounded(void **state) {
    (void)state;
    static const uint64_t too_many[] = {
        17, 1u << 20, (uint64_t)1 << 32, ((uint64_t)1 << 32) + 1, UINT64_MAX - 15, UINT64_MAX};
    for (size_t i = 0; i < sizeof too_many / sizeof *too_many; i++) {
        pith_cursor c = pith_cursor_over(bytes, sizeof bytes);
        pith_span span = pith_cursor_read_bytes(&c, too_many[i]);
        assert_null(span.data);
        assert_int_equal(span.size, 0);
        assert_true(c.failed);
        assert_int_equal(c.position, 0);
        c = pith_cursor_over(bytes, sizeof bytes);
        pith_cursor_skip(&c, 5);
        pith_cursor_skip(&c, too_many[i] - 4);
        assert_true(c.failed);
        assert_int_equal(c.position, 5);
    }
    pith_cursor c = pith_cursor_over(bytes, sizeof bytes);
    pith_span span = pith_cursor_read_bytes(&c, 16);
    assert_ptr_equal(span.data, bytes);
    assert_int_equal(span.size, 16);
    span = pith_cursor_read_bytes(&c, 0);
    assert_non_null(span.data);
    assert_int_equal(span.size, 0);
    assert_false(c.failed);
}

static void test_failure_is_remembered(void **state) {
    (void)state;
    pith_cursor c = pith_cursor_over(bytes, 3);
    assert_int_equal(pith_cursor_read_u32(&c), 0);
    assert_true(c.failed);
    assert_int_equal(pith_cursor_read_u16(&c), 0x2301); /* fits, and is delivered */
    assert_true(c.failed);
    pith_cursor empty = pith_cursor_over(NULL, 0);
    assert_int_equal(pith_cursor_remaining(&empty), 0);
    assert_int_equal(pith_cursor_read_bytes(&empty, 0).size, 0);
    assert_false(empty.failed);
    assert_int_equal(pith_cursor_read_u8(&empty), 0);
    assert_true(empty.failed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_little_endian),
        cmocka_unit_test(test_reads_stop_at_the_end),
        cmocka_unit_test(test_byte_runs_are_bounded),
        cmocka_unit_test(test_failure_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
