/* SPDX-License-Identifier: Apache-2.0
 * How the types that are expanded first are expanded, and in which form of codes_256.h they are
 * multiplied then. Users: mul_expanded_256.h, mul_fast_avxvnni.c. */
#ifndef PITH_KERNEL_X86_EXPANSION_256_H
#define PITH_KERNEL_X86_EXPANSION_256_H

#include "kernel/x86/codes_256.h"
#include "kernel/x86/words_avx2.h"

#include "kernel/x86/expand_grids.h"

/* How a type is expanded. */
typedef struct expansion {
    expand_fn *expand;
    size_t chunk_bytes; /* panel bytes of 256 k */
    pith_type form;     /* FORM_ of codes_256.h */
} expansion;

ALWAYS_INLINE expansion expansion_of(const pith_type type) {
    switch (type) {
    case PITH_TYPE_NVFP4:
        return (expansion){expand_nvfp4, 4 * sizeof(pith_panel_nvfp4), FORM_FLOATS};
    case PITH_TYPE_IQ1_S: return (expansion){expand_iq1_s, sizeof(pith_panel_iq1_s), FORM_HALVES};
    case PITH_TYPE_IQ1_M: return (expansion){expand_iq1_m, sizeof(pith_panel_iq1_m), FORM_HALVES};
    case PITH_TYPE_IQ2_XXS:
        return (expansion){expand_iq2_xxs, sizeof(pith_panel_iq2_xxs), FORM_HALVES_BOOK};
    case PITH_TYPE_IQ2_XS:
        return (expansion){expand_iq2_xs, sizeof(pith_panel_iq2_xs), FORM_HALVES_BOOK};
    case PITH_TYPE_IQ2_S:
        return (expansion){expand_iq2_s, sizeof(pith_panel_iq2_s), FORM_HALVES_BOOK};
    case PITH_TYPE_IQ3_XXS:
        return (expansion){expand_iq3_xxs, sizeof(pith_panel_iq3_xxs), FORM_HALVES_BOOK};
    case PITH_TYPE_IQ3_S: return (expansion){expand_iq3_s, sizeof(pith_panel_iq3_s), FORM_HALVES};
    case PITH_TYPE_TQ1_0: return (expansion){expand_tq1_0, sizeof(pith_panel_tq1_0), FORM_HALVES};
    case PITH_TYPE_Q1_0: return (expansion){expand_q1_0, 2 * sizeof(pith_panel_q1_0), FORM_GROUP};
    case PITH_TYPE_Q2_0: return (expansion){expand_q2_0, 4 * sizeof(pith_panel_q2_0), FORM_GROUP};
    default: return (expansion){NULL, 0, type}; /* not one of them */
    }
}

#endif
