/* SPDX-License-Identifier: Apache-2.0
 * In which form of forms_128.h the types that are expanded first (expansion.h) are multiplied.
 * Users: mul_expanded_128.h, requantize_128.h. */
#ifndef PITH_KERNEL_ARM_EXPANSION_128_H
#define PITH_KERNEL_ARM_EXPANSION_128_H

#include "kernel/arm/forms_128.h"
#include "kernel/arm/words_neon.h"

#include "kernel/expansion.h"

/* Whose form the codes have: of other types their own. */
ALWAYS_INLINE pith_type form_of(const pith_type type) {
    switch (type) {
    case PITH_TYPE_NVFP4: return FORM_FLOATS;
    case PITH_TYPE_Q1_0:
    case PITH_TYPE_Q2_0: return FORM_GROUP;
    case PITH_TYPE_IQ1_S:
    case PITH_TYPE_IQ2_XXS:
    case PITH_TYPE_IQ3_XXS:
    case PITH_TYPE_IQ3_S:
    case PITH_TYPE_TQ1_0: return FORM_SCALED;
    case PITH_TYPE_IQ1_M:
    case PITH_TYPE_IQ2_XS:
    case PITH_TYPE_IQ2_S: return FORM_HALVES;
    default: return type;
    }
}

#endif
