/* SPDX-License-Identifier: Apache-2.0
 * SMMLA products of the types that are expanded first: the kernels of mul_expanded_128.h, compiled
 * with the dot product of dot_i8mm.h (smmla). Contract: pith_mul in kernel.h; bits:
 * ref/mul_expanded_ref.c. Up to 2 tokens are left to the
 * dotprod kernels, which need no woven codes. Read next: mul_expanded_128.h. */
#include "kernel/arm/dot_i8mm.h"

#include "kernel/arm/arm.h"
#include "kernel/arm/mul_expanded_128.h"

enum { FEW = 2 };

void pith_mul_nvfp4_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_nvfp4_dotprod(args);
    else
        mul_expanded(args, PITH_TYPE_NVFP4);
}
void pith_mul_iq1_s_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_iq1_s_dotprod(args);
    else
        mul_expanded(args, PITH_TYPE_IQ1_S);
}
void pith_mul_iq1_m_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_iq1_m_dotprod(args);
    else
        mul_expanded(args, PITH_TYPE_IQ1_M);
}
void pith_mul_iq2_xxs_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_iq2_xxs_dotprod(args);
    else
        mul_expanded(args, PITH_TYPE_IQ2_XXS);
}
void pith_mul_iq2_xs_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_iq2_xs_dotprod(args);
    else
        mul_expanded(args, PITH_TYPE_IQ2_XS);
}
void pith_mul_iq2_s_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_iq2_s_dotprod(args);
    else
        mul_expanded(args, PITH_TYPE_IQ2_S);
}
void pith_mul_iq3_xxs_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_iq3_xxs_dotprod(args);
    else
        mul_expanded(args, PITH_TYPE_IQ3_XXS);
}
void pith_mul_iq3_s_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_iq3_s_dotprod(args);
    else
        mul_expanded(args, PITH_TYPE_IQ3_S);
}
void pith_mul_tq1_0_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_tq1_0_dotprod(args);
    else
        mul_expanded(args, PITH_TYPE_TQ1_0);
}
void pith_mul_q1_0_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_q1_0_dotprod(args);
    else
        mul_expanded(args, PITH_TYPE_Q1_0);
}
void pith_mul_q2_0_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_q2_0_dotprod(args);
    else
        mul_expanded(args, PITH_TYPE_Q2_0);
}
