/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiers by name, and the machine lowered by PITH_CPU.
 *
 * Invariant: the table below is the one list of tiers; `includes` is closed (a tier includes all
 * that its included tiers include), so lowering is one AND. `ref` is no bit: plain C is always
 * there.
 *
 * It chooses no kernels (kernel does) and keeps nothing: each call asks the machine again.
 * Read next: tiers.c (which bits make a tier), cpuid.c (asking).
 */
#include "cpu/cpu.h"

#include "base/machine.h"
#include "cpu/tiers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cpu_tier {
    const char *name;
    uint32_t bit;
    uint32_t includes; /* with its own bit */
} cpu_tier;

enum {
    WITH_AVX512 = PITH_CPU_AVX2 | PITH_CPU_AVX512,
    WITH_DOTPROD = PITH_CPU_NEON | PITH_CPU_DOTPROD,
};

static const cpu_tier tiers[] = {
    {"ref", 0, 0},
    {"avx2", PITH_CPU_AVX2, PITH_CPU_AVX2},
    {"avxvnni", PITH_CPU_AVXVNNI, PITH_CPU_AVX2 | PITH_CPU_AVXVNNI},
    {"avx512", PITH_CPU_AVX512, WITH_AVX512},
    {"amx", PITH_CPU_AMX, WITH_AVX512 | PITH_CPU_AMX},
    {"neon", PITH_CPU_NEON, PITH_CPU_NEON},
    {"dotprod", PITH_CPU_DOTPROD, WITH_DOTPROD},
    {"i8mm", PITH_CPU_I8MM, WITH_DOTPROD | PITH_CPU_I8MM},
};

enum { N_TIERS = sizeof tiers / sizeof *tiers };

/* Appends whole words only; what does not fit is left out. */
static void list_tiers(uint32_t features, char *text, size_t capacity) {
    size_t size = 0;
    if (capacity) text[0] = 0;
    for (size_t i = 0; i < N_TIERS; i++) {
        if ((tiers[i].bit & features) != tiers[i].bit) continue;
        size_t name_size = strlen(tiers[i].name), gap = size ? 1 : 0;
        if (size + gap + name_size >= capacity) return;
        if (gap) text[size++] = ' ';
        memcpy(text + size, tiers[i].name, name_size + 1);
        size += name_size;
    }
}

uint32_t pith_cpu_detect(void) {
    pith_cpu_x86 x86 = pith_cpu_ask_x86();
    bool amx = pith_cpu_x86_offers_amx(&x86) && pith_machine_permit_amx();
    return pith_cpu_tiers_x86(&x86, amx) | pith_cpu_tiers_arm(pith_machine_arm());
}

pith_status pith_cpu_limit(uint32_t features, const char *name, uint32_t *out, pith_error *error) {
    char names[96];
    *out = 0;
    if (!name || !*name) {
        *out = features;
        return PITH_OK;
    }
    for (size_t i = 0; i < N_TIERS; i++) {
        if (strcmp(name, tiers[i].name) != 0) continue;
        if ((features & tiers[i].includes) != tiers[i].includes) {
            list_tiers(features, names, sizeof names);
            return pith_fail(error, PITH_ERROR_UNSUPPORTED,
                             "PITH_CPU: this machine lacks `%s`; it has: %s", name, names);
        }
        *out = features & tiers[i].includes;
        return PITH_OK;
    }
    list_tiers(UINT32_MAX, names, sizeof names);
    return pith_fail(error, PITH_ERROR_ARGUMENT, "PITH_CPU: `%.40s` is no tier; choose one of: %s",
                     name, names);
}

pith_status pith_cpu_features(uint32_t *out, pith_error *error) {
    return pith_cpu_limit(pith_cpu_detect(), getenv("PITH_CPU"), out, error);
}

void pith_cpu_text(uint32_t features, char *text, size_t capacity) {
    list_tiers(features, text, capacity);
}

void pith_cpu_model(char *text, size_t capacity) {
    if (!capacity) return;
    pith_cpu_ask_brand(text, capacity);
    if (!*text) pith_machine_model(text, capacity);
    if (!*text) (void)snprintf(text, capacity, "unknown");
}
