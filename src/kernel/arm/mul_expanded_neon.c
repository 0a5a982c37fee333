/* SPDX-License-Identifier: Apache-2.0
 * NEON products of the types that are expanded first: the kernels of mul_expanded_128.h, compiled
 * with the dot product of dot_neon.h (smull, smlal). Contract: pith_mul in kernel.h; bits:
 * ref/mul_expanded_ref.c. Only the choice of dot product and the
 * suffix of the names live here. Read next: mul_expanded_128.h. */
#include "kernel/arm/dot_neon.h"

#include "kernel/arm/arm.h"
#include "kernel/arm/mul_expanded_128.h"

void pith_mul_nvfp4_neon(const pith_mul *args) {
    mul_expanded(args, PITH_TYPE_NVFP4);
}
void pith_mul_iq1_s_neon(const pith_mul *args) {
    mul_expanded(args, PITH_TYPE_IQ1_S);
}
void pith_mul_iq1_m_neon(const pith_mul *args) {
    mul_expanded(args, PITH_TYPE_IQ1_M);
}
void pith_mul_iq2_xxs_neon(const pith_mul *args) {
    mul_expanded(args, PITH_TYPE_IQ2_XXS);
}
void pith_mul_iq2_xs_neon(const pith_mul *args) {
    mul_expanded(args, PITH_TYPE_IQ2_XS);
}
void pith_mul_iq2_s_neon(const pith_mul *args) {
    mul_expanded(args, PITH_TYPE_IQ2_S);
}
void pith_mul_iq3_xxs_neon(const pith_mul *args) {
    mul_expanded(args, PITH_TYPE_IQ3_XXS);
}
void pith_mul_iq3_s_neon(const pith_mul *args) {
    mul_expanded(args, PITH_TYPE_IQ3_S);
}
void pith_mul_tq1_0_neon(const pith_mul *args) {
    mul_expanded(args, PITH_TYPE_TQ1_0);
}
void pith_mul_q1_0_neon(const pith_mul *args) {
    mul_expanded(args, PITH_TYPE_Q1_0);
}
void pith_mul_q2_0_neon(const pith_mul *args) {
    mul_expanded(args, PITH_TYPE_Q2_0);
}
