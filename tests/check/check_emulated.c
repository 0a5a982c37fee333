/* SPDX-License-Identifier: Apache-2.0
 * Tiers that the machine at hand may lack, compiled a second time against instructions that it has.
 * Invariant: the kernels are the shipped sources, only their dot product is another instruction with the same result. */
#include "check.h"

const char *check_emulated(size_t index, uint32_t machine, uint32_t *features,
                           pith_kernels *kernels) {
    (void)index;
    (void)machine;
    (void)features;
    (void)kernels;
    return NULL;
}
