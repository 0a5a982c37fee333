/* SPDX-License-Identifier: Apache-2.0
 * Which types are expanded to bytes before they are multiplied, however few the tokens, and by
 * which function. One source for all tiers, as expand_types.h. Users: x86/expansion_256.h,
 * arm/expansion_128.h, which say how each is multiplied then. */
#ifndef PITH_KERNEL_EXPANSION_H
#define PITH_KERNEL_EXPANSION_H

#include "kernel/expand_grids.h"

/* How a type is expanded. */
typedef struct expansion {
    expand_fn *expand;  /* NULL: it is not one of them */
    size_t chunk_bytes; /* panel bytes of 256 k */
} expansion;

ALWAYS_INLINE expansion expansion_of(const pith_type type) {
    switch (type) {
    case PITH_TYPE_NVFP4: return (expansion){expand_nvfp4, 4 * sizeof(pith_panel_nvfp4)};
    case PITH_TYPE_IQ1_S: return (expansion){expand_iq1_s, sizeof(pith_panel_iq1_s)};
    case PITH_TYPE_IQ1_M: return (expansion){expand_iq1_m, sizeof(pith_panel_iq1_m)};
    case PITH_TYPE_IQ2_XXS: return (expansion){expand_iq2_xxs, sizeof(pith_panel_iq2_xxs)};
    case PITH_TYPE_IQ2_XS: return (expansion){expand_iq2_xs, sizeof(pith_panel_iq2_xs)};
    case PITH_TYPE_IQ2_S: return (expansion){expand_iq2_s, sizeof(pith_panel_iq2_s)};
    case PITH_TYPE_IQ3_XXS: return (expansion){expand_iq3_xxs, sizeof(pith_panel_iq3_xxs)};
    case PITH_TYPE_IQ3_S: return (expansion){expand_iq3_s, sizeof(pith_panel_iq3_s)};
    case PITH_TYPE_TQ1_0: return (expansion){expand_tq1_0, sizeof(pith_panel_tq1_0)};
    case PITH_TYPE_Q1_0: return (expansion){expand_q1_0, 2 * sizeof(pith_panel_q1_0)};
    case PITH_TYPE_Q2_0: return (expansion){expand_q2_0, 4 * sizeof(pith_panel_q2_0)};
    default: return (expansion){NULL, 0};
    }
}

#endif
