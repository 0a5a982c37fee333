/* SPDX-License-Identifier: Apache-2.0
 * Which float chains the packed types have in the exact contract (pith_mul in kernel.h). `type` is
 * always a constant. Users: x86/codes_256.h, arm/forms_128.h, which add the forms of types that are
 * expanded first. */
#ifndef PITH_KERNEL_CHAIN_FORM_H
#define PITH_KERNEL_CHAIN_FORM_H

#include "kernel/inline.h"
#include "quant/quant.h"

/* A chain of its own for each super-block of 256, times d at its end. */
ALWAYS_INLINE bool has_super_chain(pith_type type) {
    switch (type) {
    case PITH_TYPE_Q2_K:
    case PITH_TYPE_Q3_K:
    case PITH_TYPE_Q4_K:
    case PITH_TYPE_Q5_K:
    case PITH_TYPE_Q6_K:
    case PITH_TYPE_IQ4_XS:
    case PITH_TYPE_TQ2_0: return true;
    default: return false;
    }
}

ALWAYS_INLINE bool has_minima(pith_type type) {
    return type == PITH_TYPE_Q4_1 || type == PITH_TYPE_Q5_1 || type == PITH_TYPE_Q4_K ||
           type == PITH_TYPE_Q5_K || type == PITH_TYPE_Q2_K;
}

#endif
