/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises: every half converts exactly and comes back; conversion to half and bfloat16 rounds
 * to nearest, ties to even, compared with a definition by search among neighbours in double
 * arithmetic.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/float16.h"

/* IEEE 754 by the book: sign, exponent, fraction. */
static double value_of_half(uint16_t h) {
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double magnitude = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) magnitude = fraction ? (double)NAN : (double)INFINITY;
    return h >> 15 ? -magnitude : magnitude;
}

static void test_every_half_is_exact_and_returns(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = pith_f32_of_f16((uint16_t)h);
        double expected = value_of_half((uint16_t)h);
        if (isnan(expected)) {
            if (!isnan(f)) fail_msg("%04x is NaN, not %g", h, (double)f);
            uint16_t back = pith_f16_of_f32(f);
            if ((back & 0x7C00) != 0x7C00 || !(back & 0x3FF)) fail_msg("NaN %04x -> %04x", h, back);
            if ((back ^ h) & 0x8000) fail_msg("NaN %04x lost its sign", h);
            continue;
        }
        if ((double)f != expected || !signbit(f) != !(h >> 15)) {
            fail_msg("%04x is %g, not %g", h, expected, (double)f);
        }
        if (pith_f16_of_f32(f) != h) fail_msg("%04x came back as %04x", h, pith_f16_of_f32(f));
    }
}

/* Between each half and the next: the tie goes to the even one, anything beside it to the nearer
 * one. */
static void test_half_ties(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x7BFF; h++) {
        double low = value_of_half((uint16_t)h), high = value_of_half((uint16_t)(h + 1));
        float middle = (float)((low + high) / 2); /* exact: 12 significant bits */
        assert_true((double)middle == (low + high) / 2);
        uint16_t even = (uint16_t)(h & 1 ? h + 1 : h);
        for (int sign = 0; sign < 2; sign++) {
            uint16_t mark = (uint16_t)(sign << 15);
            float s = sign ? -1.0f : 1.0f;
            if (pith_f16_of_f32(s * middle) != (even | mark)) fail_msg("tie above %04x", h);
            if (pith_f16_of_f32(s * nextafterf(middle, 0)) != (h | mark)) {
                fail_msg("just below the tie above %04x", h);
            }
            if (pith_f16_of_f32(s * nextafterf(middle, INFINITY)) != ((h + 1) | mark)) {
                fail_msg("just above the tie above %04x", h);
            }
        }
    }
}

static void test_half_limits(void **state) {
    (void)state;
    assert_int_equal(pith_f16_of_f32(65504.0f), 0x7BFF);
    assert_int_equal(pith_f16_of_f32(nextafterf(65520.0f, 0)), 0x7BFF);
    assert_int_equal(pith_f16_of_f32(65520.0f), 0x7C00);
    assert_int_equal(pith_f16_of_f32(-65520.0f), 0xFC00);
    assert_int_equal(pith_f16_of_f32(INFINITY), 0x7C00);
    assert_int_equal(pith_f16_of_f32(-INFINITY), 0xFC00);
    assert_int_equal(pith_f16_of_f32(0x1p-25f), 0); /* tie between 0 and the smallest */
    assert_int_equal(pith_f16_of_f32(nextafterf(0x1p-25f, 1)), 1);
    assert_int_equal(pith_f16_of_f32(-0x1p-26f), 0x8000);
    assert_int_equal(pith_f16_of_f32(0x1p-149f), 0);
    assert_int_equal(pith_f16_of_f32(3.4e38f), 0x7C00);
    assert_int_equal(pith_f16_of_f32(pith_f32_of_bits(0x7F800001)) & 0x7E00, 0x7E00);
    assert_int_equal(pith_f16_of_f32(pith_f32_of_bits(0xFFFFFFFF)) & 0xFE00, 0xFE00);
}

static void test_bfloat_returns_and_rounds(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = pith_f32_of_bf16((uint16_t)h);
        assert_int_equal(pith_bits_of_f32(f), h << 16);
        uint16_t back = pith_bf16_of_f32(f);
        if (isnan(f)) {
            if (!isnan(pith_f32_of_bf16(back))) fail_msg("NaN %04x -> %04x", h, back);
            continue;
        }
        if (back != h) fail_msg("%04x came back as %04x", h, back);
        if ((h & 0x7FFF) >= 0x7F80) continue;
        uint32_t tie = h << 16 | 0x8000;
        uint16_t even = (uint16_t)(h & 1 ? h + 1 : h);
        if (pith_bf16_of_f32(pith_f32_of_bits(tie)) != even) fail_msg("tie above %04x", h);
        if (pith_bf16_of_f32(pith_f32_of_bits(tie - 1)) != h) fail_msg("below %04x's tie", h);
        if (pith_bf16_of_f32(pith_f32_of_bits(tie + 1)) != h + 1) fail_msg("above %04x's tie", h);
    }
    /* a NaN whose upper half has no fraction bits must not become infinity */
    assert_true(isnan(pith_f32_of_bf16(pith_bf16_of_f32(pith_f32_of_bits(0x7F800001)))));
    assert_true(isnan(pith_f32_of_bf16(pith_bf16_of_f32(pith_f32_of_bits(0x7FFFFFFF)))));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_half_is_exact_and_returns),
        cmocka_unit_test(test_half_ties),
        cmocka_unit_test(test_half_limits),
        cmocka_unit_test(test_bfloat_returns_and_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
