/* SPDX-License-Identifier: Apache-2.0
 *
 * Promise: a tier is granted only when processor and system give its whole set. Feature words of
 * real processors are written down here; each bit of a set is then taken away in turn and the
 * tier must go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/machine.h"
#include "cpu/cpu.h"
#include "cpu/tiers.h"

#define BIT(n) (1u << (n))

static const uint32_t leaf1 = BIT(12) | BIT(27) | BIT(28) | BIT(29);
static const uint32_t leaf7_avx512 = BIT(5) | BIT(16) | BIT(17) | BIT(30) | BIT(31);
static const uint32_t amx_bits = BIT(22) | BIT(24) | BIT(25);

static pith_cpu_x86 haswell(void) {
    return (pith_cpu_x86){leaf1, BIT(5), 0, 0, 0, 7};
}
static pith_cpu_x86 skylake_server(void) {
    return (pith_cpu_x86){leaf1, leaf7_avx512, 0, 0, 0, 0xE7};
}
static pith_cpu_x86 zen4(void) {
    return (pith_cpu_x86){leaf1, leaf7_avx512, BIT(11), 0, 0, 0xE7};
}
static pith_cpu_x86 alder_lake(void) {
    return (pith_cpu_x86){leaf1, BIT(5), 0, 0, BIT(4), 7};
}
static pith_cpu_x86 sapphire_rapids(void) {
    return (pith_cpu_x86){leaf1, leaf7_avx512, BIT(11), amx_bits, BIT(4), 0x600E7};
}

static const uint32_t with_avx512 = PITH_CPU_AVX2 | PITH_CPU_AVX512;

static void test_real_processors(void **state) {
    (void)state;
    pith_cpu_x86 none = {0}, x86 = haswell();
    assert_int_equal(pith_cpu_tiers_x86(&none, true), 0);
    assert_int_equal(pith_cpu_tiers_x86(&x86, true), PITH_CPU_AVX2);
    x86 = skylake_server(); /* no VNNI: not our avx512 */
    assert_int_equal(pith_cpu_tiers_x86(&x86, true), PITH_CPU_AVX2);
    x86 = zen4();
    assert_int_equal(pith_cpu_tiers_x86(&x86, true), with_avx512);
    x86 = alder_lake();
    assert_int_equal(pith_cpu_tiers_x86(&x86, true), PITH_CPU_AVX2 | PITH_CPU_AVXVNNI);
    x86 = sapphire_rapids();
    assert_int_equal(pith_cpu_tiers_x86(&x86, true), with_avx512 | PITH_CPU_AVXVNNI | PITH_CPU_AMX);
    assert_int_equal(pith_cpu_tiers_x86(&x86, false), with_avx512 | PITH_CPU_AVXVNNI);
}

/* Clears each bit of *word in turn; afterwards `lost` must not be granted, for each set bit in
 * `bits`. */
static void each_bit_matters(pith_cpu_x86 *x86, uint32_t *word, uint32_t bits, uint32_t lost) {
    assert_int_equal(pith_cpu_tiers_x86(x86, true) & lost, lost);
    for (int i = 0; i < 32; i++) {
        if (!(bits >> i & 1)) continue;
        *word ^= BIT(i);
        uint32_t tiers = pith_cpu_tiers_x86(x86, true);
        if (tiers & lost) fail_msg("bit %d of a feature word is missing, tiers are %#x", i, tiers);
        *word ^= BIT(i);
    }
}

static void test_each_bit_is_needed(void **state) {
    (void)state;
    uint32_t every = with_avx512 | PITH_CPU_AVXVNNI | PITH_CPU_AMX;
    pith_cpu_x86 x86 = sapphire_rapids();
    each_bit_matters(&x86, &x86.leaf1_ecx, leaf1, every);
    each_bit_matters(&x86, &x86.leaf7_ebx, BIT(5), every);
    each_bit_matters(&x86, &x86.leaf7_ebx, leaf7_avx512 & ~BIT(5), PITH_CPU_AVX512 | PITH_CPU_AMX);
    each_bit_matters(&x86, &x86.leaf7_ecx, BIT(11), PITH_CPU_AVX512 | PITH_CPU_AMX);
    each_bit_matters(&x86, &x86.leaf7_edx, amx_bits, PITH_CPU_AMX);
    each_bit_matters(&x86, &x86.leaf7_1_eax, BIT(4), PITH_CPU_AVXVNNI);
}

static void test_each_saved_state_is_needed(void **state) {
    (void)state;
    static const struct {
        int bit;
        uint32_t lost;
    } rows[] = {
        {1, PITH_CPU_AVX2 | PITH_CPU_AVXVNNI | PITH_CPU_AVX512 | PITH_CPU_AMX},
        {2, PITH_CPU_AVX2 | PITH_CPU_AVXVNNI | PITH_CPU_AVX512 | PITH_CPU_AMX},
        {5, PITH_CPU_AVX512 | PITH_CPU_AMX},
        {6, PITH_CPU_AVX512 | PITH_CPU_AMX},
        {7, PITH_CPU_AVX512 | PITH_CPU_AMX},
        {17, PITH_CPU_AMX},
        {18, PITH_CPU_AMX},
    };
    pith_cpu_x86 full = sapphire_rapids();
    uint32_t whole = pith_cpu_tiers_x86(&full, true);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pith_cpu_x86 x86 = full;
        x86.xcr0 &= ~((uint64_t)1 << rows[i].bit);
        assert_int_equal(pith_cpu_tiers_x86(&x86, true), whole & ~rows[i].lost);
    }
}

static void test_amx_is_asked_for_only_where_offered(void **state) {
    (void)state;
    pith_cpu_x86 x86 = zen4();
    assert_false(pith_cpu_x86_offers_amx(&x86));
    x86 = sapphire_rapids();
    assert_true(pith_cpu_x86_offers_amx(&x86));
    x86.xcr0 = 0xE7;
    assert_false(pith_cpu_x86_offers_amx(&x86));
}

static void test_arm_tiers_are_nested(void **state) {
    (void)state;
    uint32_t simd = PITH_MACHINE_ARM_SIMD, half = PITH_MACHINE_ARM_FP16;
    uint32_t dot = PITH_MACHINE_ARM_DOTPROD, i8mm = PITH_MACHINE_ARM_I8MM;
    assert_int_equal(pith_cpu_tiers_arm(0), 0);
    assert_int_equal(pith_cpu_tiers_arm(half | dot | i8mm), 0);
    assert_int_equal(pith_cpu_tiers_arm(simd), PITH_CPU_NEON);
    assert_int_equal(pith_cpu_tiers_arm(simd | dot | i8mm), PITH_CPU_NEON);
    assert_int_equal(pith_cpu_tiers_arm(simd | half | i8mm), PITH_CPU_NEON);
    assert_int_equal(pith_cpu_tiers_arm(simd | half | dot), PITH_CPU_NEON | PITH_CPU_DOTPROD);
    assert_int_equal(pith_cpu_tiers_arm(simd | half | dot | i8mm),
                     PITH_CPU_NEON | PITH_CPU_DOTPROD | PITH_CPU_I8MM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_processors),
        cmocka_unit_test(test_each_bit_is_needed),
        cmocka_unit_test(test_each_saved_state_is_needed),
        cmocka_unit_test(test_amx_is_asked_for_only_where_offered),
        cmocka_unit_test(test_arm_tiers_are_nested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
