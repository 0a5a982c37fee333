/* SPDX-License-Identifier: Apache-2.0
 * What the ARM products must know of a type: how its sums are added up (contract: pith_mul in
 * kernel.h), what its packed codes have too much, its bytes. `type` is always a constant. One chunk
 * is 256 k: a super-block, or as many smaller blocks. Users: codes_128.h and what builds on it. */
#ifndef PITH_KERNEL_ARM_FORMS_128_H
#define PITH_KERNEL_ARM_FORMS_128_H

#include "kernel/chain_form.h"
#include "kernel/kernel.h"
#include "kernel/panel.h"

enum { GROUPS = 8 };

/* Types that are expanded first (expansion_128.h) are multiplied in one of these forms, each named
 * by a type that has it. */
#define FORM_GROUP  PITH_TYPE_Q1_0    /* d a group */
#define FORM_SCALED PITH_TYPE_IQ3_XXS /* a scale a group */
#define FORM_HALVES PITH_TYPE_IQ2_S   /* two scales a group */
#define FORM_FLOATS PITH_TYPE_NVFP4   /* two float scales a group */

/* d stands for the whole chunk. */
ALWAYS_INLINE bool is_super(pith_type type) {
    return has_super_chain(type) || type == FORM_SCALED || type == FORM_HALVES;
}

/* Sub-blocks with a scale of their own in a group of 32. */
ALWAYS_INLINE int n_part(pith_type type) {
    switch (type) {
    case PITH_TYPE_Q2_K:
    case PITH_TYPE_Q3_K:
    case PITH_TYPE_Q6_K:
    case FORM_HALVES:
    case FORM_FLOATS: return 2;
    default: return 1;
    }
}

/* Whole scales of sub-blocks that are not 1. */
ALWAYS_INLINE bool has_scales(pith_type type) {
    return is_super(type) && type != PITH_TYPE_TQ2_0;
}

/* Minima of half a group each. */
ALWAYS_INLINE bool has_half_minima(pith_type type) {
    return has_minima(type) && n_part(type) == 2;
}

/* Whether it is a form. */
ALWAYS_INLINE bool is_form(pith_type type) {
    return type == FORM_GROUP || type == FORM_SCALED || type == FORM_HALVES || type == FORM_FLOATS;
}

/* What packed codes have too much. */
ALWAYS_INLINE int code_offset(pith_type type) {
    switch (type) {
    case PITH_TYPE_TQ2_0: return 1;
    case PITH_TYPE_Q3_K: return 4;
    case PITH_TYPE_Q4_0: return 8;
    case PITH_TYPE_Q5_0: return 16;
    case PITH_TYPE_Q6_K: return 32;
    default: return 0;
    }
}

/* Bytes of a panel block. */
ALWAYS_INLINE size_t block_bytes(pith_type type) {
    switch (type) {
    case PITH_TYPE_Q4_0: return sizeof(pith_panel_q4_0);
    case PITH_TYPE_Q4_1: return sizeof(pith_panel_q4_1);
    case PITH_TYPE_Q5_0: return sizeof(pith_panel_q5_0);
    case PITH_TYPE_Q5_1: return sizeof(pith_panel_q5_1);
    case PITH_TYPE_Q8_0: return sizeof(pith_panel_q8_0);
    case PITH_TYPE_IQ4_NL: return sizeof(pith_panel_iq4_nl);
    case PITH_TYPE_MXFP4: return sizeof(pith_panel_mxfp4);
    case PITH_TYPE_Q2_K: return sizeof(pith_panel_q2_k);
    case PITH_TYPE_Q3_K: return sizeof(pith_panel_q3_k);
    case PITH_TYPE_IQ4_XS: return sizeof(pith_panel_iq4_xs);
    case PITH_TYPE_TQ2_0: return sizeof(pith_panel_tq2_0);
    case PITH_TYPE_Q4_K: return sizeof(pith_panel_q4_k);
    case PITH_TYPE_Q5_K: return sizeof(pith_panel_q5_k);
    default: return sizeof(pith_panel_q6_k);
    }
}

ALWAYS_INLINE size_t chunk_bytes(pith_type type) {
    return is_super(type) ? block_bytes(type) : GROUPS * block_bytes(type);
}

#endif
