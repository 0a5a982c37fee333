/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks an x86 processor about itself (CPUID, XGETBV); on other machines there is nothing to ask.
 *
 * Invariant: a leaf above the highest one that the processor names is never read (old processors
 * repeat another leaf's values there), and XGETBV is executed only when OSXSAVE says that the
 * system has enabled it. It decides nothing. Read next: tiers.c.
 */
#include "cpu/tiers.h"

#include <string.h>

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

static uint64_t read_xcr0(void) {
    uint32_t low, high;
    __asm__ __volatile__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

pith_cpu_x86 pith_cpu_ask_x86(void) {
    pith_cpu_x86 x86 = {0};
    uint32_t a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d)) x86.leaf1_ecx = c;
    if (x86.leaf1_ecx >> 27 & 1) x86.xcr0 = read_xcr0();
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return x86;
    uint32_t last_subleaf = a;
    x86.leaf7_ebx = b;
    x86.leaf7_ecx = c;
    x86.leaf7_edx = d;
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) x86.leaf7_1_eax = a;
    return x86;
}

void pith_cpu_ask_brand(char *text, size_t capacity) {
    uint32_t words[12];
    char brand[sizeof words + 1] = {0};
    text[0] = 0;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t *w = words + 4 * i;
        if (!__get_cpuid(0x80000002u + i, &w[0], &w[1], &w[2], &w[3])) return;
    }
    memcpy(brand, words, sizeof words);
    const char *start = brand + strspn(brand, " ");
    size_t size = strlen(start);
    while (size && start[size - 1] == ' ') size--;
    if (size > capacity - 1) size = capacity - 1;
    memcpy(text, start, size);
    text[size] = 0;
}

#else

pith_cpu_x86 pith_cpu_ask_x86(void) {
    return (pith_cpu_x86){0};
}

void pith_cpu_ask_brand(char *text, size_t capacity) {
    (void)capacity;
    text[0] = 0;
}

#endif
