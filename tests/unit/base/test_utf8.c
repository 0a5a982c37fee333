/* SPDX-License-Identifier: Apache-2.0
 *
 * Promise: exactly the well-formed byte sequences of Unicode's table 3-7 are characters. Every
 * code point, every two- and three-byte sequence, and the four-byte ones around each limit are
 * compared with a slow definition that decodes loosely and then refuses overlong forms,
 * surrogates and values above 10FFFF.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

/* The slow definition. */
static size_t slow_decode(const uint8_t *b, size_t size, uint32_t *code) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = b[0] < 0x80   ? 1
                    : b[0] < 0xC0 ? 0
                    : b[0] < 0xE0 ? 2
                    : b[0] < 0xF0 ? 3
                    : b[0] < 0xF8 ? 4
                                  : 0;
    *code = PITH_UTF8_INVALID;
    if (length == 1) {
        *code = b[0];
        return 1;
    }
    if (length == 0 || length > size) return 1;
    uint32_t value = b[0] & ((1u << (7 - length)) - 1);
    for (size_t i = 1; i < length; i++) {
        if (b[i] >> 6 != 2) return 1;
        value = value * 64 + b[i] % 64;
    }
    if (value < smallest[length] || value > 0x10FFFF || value / 0x800 == 0xD800 / 0x800) return 1;
    *code = value;
    return length;
}

static void compare(const uint8_t *bytes, size_t size) {
    uint32_t code, expected;
    size_t expected_length = slow_decode(bytes, size, &expected);
    size_t length = pith_utf8_decode((const char *)bytes, size, &code);
    if (length != expected_length || code != expected) {
        fail_msg("%02x %02x %02x %02x of %zu: %zu %x, expected %zu %x", bytes[0], bytes[1],
                 bytes[2], bytes[3], size, length, code, expected_length, expected);
    }
}

static void test_every_code_point_returns(void **state) {
    (void)state;
    for (uint32_t code = 0; code <= 0x110010; code++) {
        char bytes[5] = {'#', '#', '#', '#', '#'};
        size_t length = pith_utf8_encode(code, bytes);
        bool exists = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
        size_t expected = !exists ? 0 : code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        if (length != expected) fail_msg("%x has length %zu, expected %zu", code, length, expected);
        if (bytes[length] != '#') fail_msg("%x wrote past its %zu bytes", code, length);
        uint32_t back = 0;
        if (length == 0) continue;
        if (pith_utf8_decode(bytes, length, &back) != length || back != code) {
            fail_msg("%x came back as %x", code, back);
        }
        if (pith_utf8_incomplete(bytes, length) != 0) fail_msg("%x is called incomplete", code);
        for (size_t n = 1; n < length; n++) { /* each cut is ill-formed alone, and incomplete */
            if (pith_utf8_decode(bytes, n, &back) != 1 || back != PITH_UTF8_INVALID) {
                fail_msg("%x cut to %zu bytes is %x", code, n, back);
            }
            if (pith_utf8_incomplete(bytes, n) != n) fail_msg("%x cut to %zu is not held", code, n);
        }
    }
    char bytes[4];
    assert_int_equal(pith_utf8_encode(0xFFFFFFFF, bytes), 0);
}

static void test_every_short_sequence(void **state) {
    (void)state;
    for (uint32_t n = 0; n < 1u << 24; n++) {
        uint8_t bytes[4] = {(uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, 0x80};
        uint32_t code, expected;
        size_t expected_length = slow_decode(bytes, 3, &expected);
        size_t length = pith_utf8_decode((const char *)bytes, 3, &code);
        if (length != expected_length || code != expected) compare(bytes, 3);
        if ((n & 0xFF) == 0) compare(bytes, 2);
        if ((n & 0xFFFF) == 0) compare(bytes, 1);
    }
}

static void test_four_byte_limits(void **state) {
    (void)state;
    static const uint8_t edges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
    for (uint32_t first = 0xEE; first <= 0xFF; first++) {
        for (uint32_t second = 0; second < 256; second++) {
            for (size_t i = 0; i < sizeof edges * sizeof edges; i++) {
                uint8_t bytes[4] = {(uint8_t)first, (uint8_t)second, edges[i / sizeof edges],
                                    edges[i % sizeof edges]};
                compare(bytes, 4);
                compare(bytes, 3);
            }
        }
    }
}

static void test_known_ill_formed(void **state) {
    (void)state;
    static const char *const rows[] = {
        "\xC0\xAF",
        "\xE0\x80\xAF",
        "\xF0\x80\x80\xAF", /* overlong "/" */
        "\xC1\xBF",
        "\xE0\x9F\xBF",
        "\xF0\x8F\xBF\xBF", /* largest overlong forms */
        "\xED\xA0\x80",
        "\xED\xBF\xBF", /* surrogates */
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xFF",
        "\xFE", /* above 10FFFF */
        "\x80",
        "\xBF",
        "\xE2\x28\xA1",
        "\xF0\x9F\x98 ", /* stray and broken */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t code = 0;
        assert_int_equal(pith_utf8_decode(rows[i], strlen(rows[i]), &code), 1);
        assert_int_equal(code, PITH_UTF8_INVALID);
        assert_int_equal(pith_utf8_incomplete(rows[i], strlen(rows[i])), 0);
    }
}

/* incomplete(data) = n means: some continuation makes the last n bytes a character, and n is the
 * largest such. */
static size_t slow_incomplete(const uint8_t *bytes, size_t size) {
    static const uint8_t fill[] = {0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF};
    for (size_t n = size < 3 ? size : 3; n > 0; n--) {
        for (size_t more = 1; n + more <= 4; more++) {
            for (size_t i = 0; i < sizeof fill; i++) {
                uint8_t whole[4];
                uint32_t code;
                memset(whole, fill[i], sizeof whole);
                memcpy(whole, bytes + size - n, n);
                if (slow_decode(whole, n + more, &code) == n + more) return n;
            }
        }
    }
    return 0;
}

static void test_incomplete_tails(void **state) {
    (void)state;
    for (uint32_t n = 0; n < 1u << 24; n++) {
        uint8_t bytes[3] = {(uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
        if (n % 7 && bytes[0] < 0xC0 && bytes[1] < 0xC0 && bytes[2] < 0xC0) continue;
        if ((n & 0x0F) > 1 && (n & 0x0F) < 0x0F) continue; /* edges of the last byte suffice */
        size_t expected = slow_incomplete(bytes, 3);
        size_t held = pith_utf8_incomplete((const char *)bytes, 3);
        if (held != expected) {
            fail_msg("%02x %02x %02x: %zu, expected %zu", bytes[0], bytes[1], bytes[2], held,
                     expected);
        }
    }
    assert_int_equal(pith_utf8_incomplete("", 0), 0);
    assert_int_equal(pith_utf8_incomplete("ab\xF0\x9F\x98", 5), 3);
    assert_int_equal(pith_utf8_incomplete("ab\xF0\x9F\x98\x80", 6), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point_returns),
        cmocka_unit_test(test_every_short_sequence),
        cmocka_unit_test(test_four_byte_limits),
        cmocka_unit_test(test_known_ill_formed),
        cmocka_unit_test(test_incomplete_tails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
