/* SPDX-License-Identifier: Apache-2.0
 * The registry: each architecture that this build runs, sorted by name. HACKING.md, "Adding an
 * architecture", goes through what a new family touches. */
#include "model/architecture.h"

static const pith_arch *const registry[] = {
    &pith_arch_gemma3,
    &pith_arch_llama,
    &pith_arch_qwen2,
};

enum { N_ARCHITECTURES = sizeof registry / sizeof registry[0] };

const pith_arch *pith_architecture_find(pith_span name) {
    for (size_t i = 0; i < N_ARCHITECTURES; i++) {
        if (pith_span_is(name, registry[i]->name)) return registry[i];
    }
    return NULL;
}

const char *pith_architecture_name(size_t index) {
    return index < N_ARCHITECTURES ? registry[index]->name : NULL;
}
