/* SPDX-License-Identifier: Apache-2.0
 * Which instructions this machine has, told as tiers (docs/kernels.md). A tier is granted only
 * when the CPU and the operating system give its whole set. Detection: cpu.c; names: tiers.h. */
#ifndef PITH_CPU_CPU_H
#define PITH_CPU_CPU_H

#include "base/status.h"

/* Bits of a feature mask. `ref` is no bit: plain C is always there. */
enum {
    PITH_CPU_AVX2 = 1u << 0,    /* AVX2 FMA F16C */
    PITH_CPU_AVXVNNI = 1u << 1, /* avx2 + AVX-VNNI */
    PITH_CPU_AVX512 = 1u << 2,  /* avx2 + F BW DQ VL VNNI */
    PITH_CPU_AMX = 1u << 3,     /* avx512 + AMX tile int8 bf16, permission granted */
    PITH_CPU_NEON = 1u << 8,
    PITH_CPU_DOTPROD = 1u << 9,
    PITH_CPU_I8MM = 1u << 10
};

uint32_t pith_cpu_detect(void);
/* Lowers `features` to what the tier called `name` includes ("ref", "avx2", ...; NULL or ""
 * leaves them). An unknown name is an error that lists the known ones. A tier that the machine
 * lacks is an error too. */
pith_status pith_cpu_limit(uint32_t features, const char *name, uint32_t *out, pith_error *error);
/* pith_cpu_detect limited by the environment variable PITH_CPU. */
pith_status pith_cpu_features(uint32_t *out, pith_error *error);
/* "ref avx2 avx512": tiers in the mask. Writes at most capacity bytes. */
void pith_cpu_text(uint32_t features, char *text, size_t capacity);
/* "AMD EPYC ...", NUL-terminated; "unknown" when the system does not say. */
void pith_cpu_model(char *text, size_t capacity);

#endif
