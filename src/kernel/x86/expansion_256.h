/* SPDX-License-Identifier: Apache-2.0
 * In which form of codes_256.h the types that are expanded first (expansion.h) are multiplied.
 * Users: mul_expanded_256.h, mul_fast_avxvnni.c. */
#ifndef PITH_KERNEL_X86_EXPANSION_256_H
#define PITH_KERNEL_X86_EXPANSION_256_H

#include "kernel/x86/codes_256.h"
#include "kernel/x86/words_avx2.h"

#include "kernel/expansion.h"

/* Whose form the codes have: of other types their own. */
ALWAYS_INLINE pith_type form_of(const pith_type type) {
    switch (type) {
    case PITH_TYPE_NVFP4: return FORM_FLOATS;
    case PITH_TYPE_Q1_0:
    case PITH_TYPE_Q2_0: return FORM_GROUP;
    case PITH_TYPE_IQ1_S:
    case PITH_TYPE_IQ1_M:
    case PITH_TYPE_IQ3_S:
    case PITH_TYPE_TQ1_0: return FORM_HALVES;
    case PITH_TYPE_IQ2_XXS:
    case PITH_TYPE_IQ2_XS:
    case PITH_TYPE_IQ2_S:
    case PITH_TYPE_IQ3_XXS: return FORM_HALVES_BOOK;
    default: return type;
    }
}

#endif
