/* SPDX-License-Identifier: Apache-2.0
 * pith.h, version and errors, and the system's part of "Looking inside": what this machine and
 * this build can do. */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "api/api_argument.h"
#include "base/clock.h"
#include "base/pool.h"
#include "cpu/cpu.h"
#include "engine/engine.h"
#include "kernel/kernel.h"
#include "model/model.h"

#include <jansson.h>
#include <pcre2.h>
#include <stdio.h>
#include <utf8proc.h>

#define TEXT_OF(x)            #x
#define NUMBER_TEXT(x)        TEXT_OF(x)
#define VERSION_TEXT(a, b, c) NUMBER_TEXT(a) "." NUMBER_TEXT(b) "." NUMBER_TEXT(c)

const char *pith_version(void) {
    return VERSION_TEXT(PITH_VERSION_MAJOR, PITH_VERSION_MINOR, PITH_VERSION_PATCH);
}

pith_status pith_system_describe(pith_system_info *out, pith_error *error) {
    uint32_t features = 0;
    if (!out) return pith_fail_null(error, "out");
    *out = (pith_system_info){0};
    pith_status status = pith_cpu_features(&features, error);
    if (status != PITH_OK) return status;
    pith_cpu_model(out->cpu, sizeof out->cpu);
    pith_cpu_text(features, out->features, sizeof out->features);
    out->n_cores = pith_cpu_count();
    out->n_threads = pith_thread_count();
    out->memory_bytes = pith_memory_total();
    out->memory_available_bytes = pith_memory_available();
    return PITH_OK;
}

void pith_system_name(char *text, size_t capacity) {
    char cpu[96], tiers[64];
    uint32_t features = 0;
    if (!text || capacity == 0) return;
    (void)pith_cpu_features(&features, NULL); /* an unknown PITH_CPU: no tiers */
    pith_cpu_model(cpu, sizeof cpu);
    pith_cpu_text(features, tiers, sizeof tiers);
    snprintf(text, capacity, "%s: %s", cpu, tiers);
}

bool pith_system_kernel(size_t index, const char **slot, const char **kernel) {
    uint32_t features = 0;
    const char *unwanted;
    if (pith_cpu_features(&features, NULL) != PITH_OK) return false;
    return pith_kernels_name(features, index, slot ? slot : &unwanted, kernel ? kernel : &unwanted);
}

bool pith_system_library(size_t index, const char **name, const char **version) {
    const char *const libraries[][2] = {
        {"PCRE2", NUMBER_TEXT(PCRE2_MAJOR) "." NUMBER_TEXT(PCRE2_MINOR)},
        {"utf8proc", utf8proc_version()},
        {"jansson", JANSSON_VERSION},
        {"SQLite", pith_prefix_library()}, /* the last: it may be missing */
    };
    if (index >= sizeof libraries / sizeof libraries[0] || !libraries[index][1]) return false;
    if (name) *name = libraries[index][0];
    if (version) *version = libraries[index][1];
    return true;
}

const char *pith_system_architecture(size_t index) {
    return pith_architecture_name(index);
}
