/* SPDX-License-Identifier: Apache-2.0
 * Promise: the masks of 64 bytes say of each byte what a plain comparison says, with the
 * processor's vectors here and with plain words in test_byte_block_plain.c. */
#include "base/byte_block.h"
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static uint64_t plain_between(const char *data, uint8_t fold, uint8_t first, uint8_t last) {
    uint64_t mask = 0;
    for (unsigned i = 0; i < PITH_BYTE_BLOCK; i++) {
        uint8_t byte = (uint8_t)data[i] | fold;
        if (byte >= first && byte <= last) mask |= UINT64_C(1) << i;
    }
    return mask;
}

static void same(const char *what, uint64_t got, uint64_t wanted, unsigned first, unsigned last) {
    if (got != wanted)
        fail_msg("%s %02X-%02X: %016llx, plainly %016llx", what, first, last,
                 (unsigned long long)got, (unsigned long long)wanted);
}

/* Every byte value at every place, every pair of borders that matters. */
static void masks_equal_plain_comparisons(void **state) {
    (void)state;
    static const uint8_t borders[] = {0,   1,    '\t', '\r', ' ',  '\'', '0',  '9', 'a',
                                      'z', 0x7E, 0x7F, 0x80, 0x81, 0xC2, 0xFE, 0xFF};
    const size_t n = sizeof borders;
    char data[PITH_BYTE_BLOCK];
    for (unsigned shift = 0; shift < 256; shift++) {
        for (unsigned i = 0; i < PITH_BYTE_BLOCK; i++) data[i] = (char)(shift + 5 * i);
        const pith_byte_block block = pith_byte_block_load(data);
        same("high", pith_byte_block_high(&block), plain_between(data, 0, 0x80, 0xFF), 0x80, 0xFF);
        for (size_t a = 0; a < n; a++) {
            uint8_t first = borders[a];
            same("equal", pith_byte_block_equal(&block, first),
                 plain_between(data, 0, first, first), first, first);
            for (size_t b = a; b < n; b++) {
                uint8_t last = borders[b];
                same("between", pith_byte_block_between(&block, 0, first, last),
                     plain_between(data, 0, first, last), first, last);
                same("folded", pith_byte_block_between(&block, 0x20, first, last),
                     plain_between(data, 0x20, first, last), first, last);
            }
        }
    }
}

static void bits_are_found_and_counted(void **state) {
    (void)state;
    pith_rng rng;
    pith_rng_init(&rng, 7);
    for (unsigned round = 0; round < 4096; round++) {
        uint64_t mask = pith_rng_next(&rng) & pith_rng_next(&rng) & pith_rng_next(&rng);
        if (round < 64) mask = UINT64_C(1) << round;
        if (round == 64) mask = UINT64_MAX;
        unsigned count = 0, low = 64, high = 0;
        for (unsigned i = 0; i < 64; i++) {
            if (!(mask >> i & 1)) continue;
            count++;
            high = i;
            if (low == 64) low = i;
        }
        assert_int_equal(pith_count_bits(mask), count);
        if (!mask) continue;
        assert_int_equal(pith_lowest_bit(mask), low);
        assert_int_equal(pith_highest_bit(mask), high);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_equal_plain_comparisons),
        cmocka_unit_test(bits_are_found_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
