/* SPDX-License-Identifier: Apache-2.0
 *
 * From feature bits to tiers.
 *
 * Invariant: a tier is granted only when every instruction set that its files are compiled for
 * (cmake/flags.cmake) is there and the system saves the registers it uses; a tier never comes
 * without the tiers it includes.
 *
 *   avx2     FMA F16C AVX2                        XCR0 SSE, AVX (bits 1, 2)
 *   avxvnni  avx2 + AVX-VNNI
 *   avx512   avx2 + F BW DQ VL VNNI               XCR0 opmask, ZMM low, ZMM high (5, 6, 7)
 *   amx      avx512 + AMX-TILE -INT8 -BF16        XCR0 tile config, tile data (17, 18), permission
 *   neon     Advanced SIMD
 *   dotprod  neon + DotProd FP16
 *   i8mm     dotprod + I8MM
 *
 * Bits: Intel SDM vol. 2A, CPUID; vol. 1 chapter 13 (XCR0). Read next: cpu.c.
 */
#include "cpu/tiers.h"

#include "base/machine.h"
#include "cpu/cpu.h"

#define BIT(n) (1u << (n))

static bool all(uint64_t value, uint64_t bits) {
    return (value & bits) == bits;
}

static bool gives_avx2(const pith_cpu_x86 *x86) {
    uint32_t leaf1 = BIT(12) | BIT(27) | BIT(28) | BIT(29); /* FMA OSXSAVE AVX F16C */
    return all(x86->leaf1_ecx, leaf1) && all(x86->leaf7_ebx, BIT(5)) && all(x86->xcr0, 0x6);
}

static bool gives_avx512(const pith_cpu_x86 *x86) {
    uint32_t leaf7 = BIT(16) | BIT(17) | BIT(30) | BIT(31); /* F DQ BW VL */
    return gives_avx2(x86) && all(x86->leaf7_ebx, leaf7) && all(x86->leaf7_ecx, BIT(11)) &&
           all(x86->xcr0, 0xE6);
}

bool pith_cpu_x86_offers_amx(const pith_cpu_x86 *x86) {
    uint32_t leaf7 = BIT(22) | BIT(24) | BIT(25); /* BF16 TILE INT8 */
    return gives_avx512(x86) && all(x86->leaf7_edx, leaf7) && all(x86->xcr0, 0x60000);
}

uint32_t pith_cpu_tiers_x86(const pith_cpu_x86 *x86, bool amx_permitted) {
    uint32_t tiers = 0;
    if (gives_avx2(x86)) tiers |= PITH_CPU_AVX2;
    if (gives_avx2(x86) && all(x86->leaf7_1_eax, BIT(4))) tiers |= PITH_CPU_AVXVNNI;
    if (gives_avx512(x86)) tiers |= PITH_CPU_AVX512;
    if (pith_cpu_x86_offers_amx(x86) && amx_permitted) tiers |= PITH_CPU_AMX;
    return tiers;
}

uint32_t pith_cpu_tiers_arm(uint32_t machine) {
    if (!all(machine, PITH_MACHINE_ARM_SIMD)) return 0;
    if (!all(machine, PITH_MACHINE_ARM_DOTPROD | PITH_MACHINE_ARM_FP16)) return PITH_CPU_NEON;
    uint32_t tiers = PITH_CPU_NEON | PITH_CPU_DOTPROD;
    return all(machine, PITH_MACHINE_ARM_I8MM) ? tiers | PITH_CPU_I8MM : tiers;
}
