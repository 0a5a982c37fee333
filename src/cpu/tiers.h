/* SPDX-License-Identifier: Apache-2.0
 * Private to cpu: what a processor says of itself, and the tiers that follow from it. Asking and
 * deciding are two steps so that tests can decide for processors they do not run on. */
#ifndef PITH_CPU_TIERS_H
#define PITH_CPU_TIERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pith_cpu_x86 { /* registers of the CPUID leaves; 0 where a leaf is missing */
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx, leaf7_ecx, leaf7_edx; /* subleaf 0 */
    uint32_t leaf7_1_eax;                     /* subleaf 1 */
    uint64_t xcr0;                            /* state that the system saves; 0 without OSXSAVE */
} pith_cpu_x86;

/* `amx_permitted` counts only where the processor and XCR0 offer AMX: ask with
 * pith_cpu_x86_offers_amx first. */
uint32_t pith_cpu_tiers_x86(const pith_cpu_x86 *x86, bool amx_permitted);
bool pith_cpu_x86_offers_amx(const pith_cpu_x86 *x86);
/* machine: bits of pith_machine_arm. */
uint32_t pith_cpu_tiers_arm(uint32_t machine);

/* This machine; zero where it is no x86. */
pith_cpu_x86 pith_cpu_ask_x86(void);
/* The brand string, "" where there is none. capacity > 0. */
void pith_cpu_ask_brand(char *text, size_t capacity);

#endif
