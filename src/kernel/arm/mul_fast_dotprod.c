/* SPDX-License-Identifier: Apache-2.0
 * Products in the fast contract with SDOT: the kernels of mul_fast_128.h, compiled with the
 * tokens and the dot product of fast_dotprod.h. Contract: pith_mul in kernel.h; bits:
 * ref/mul_fast_ref.c. Only the choice of dot product and the names live here. Read next:
 * mul_fast_128.h. */
#include "kernel/arm/fast_dotprod.h"

#include "kernel/arm/arm.h"
#include "kernel/arm/mul_fast_128.h"

void pith_mul_fast_q4_k_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_Q4_K);
}
void pith_mul_fast_q5_k_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_Q5_K);
}
void pith_mul_fast_q6_k_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_Q6_K);
}
void pith_mul_fast_q2_k_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_Q2_K);
}
void pith_mul_fast_q3_k_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_Q3_K);
}
void pith_mul_fast_iq4_xs_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ4_XS);
}
void pith_mul_fast_tq2_0_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_TQ2_0);
}
void pith_mul_fast_iq1_s_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ1_S);
}
void pith_mul_fast_iq1_m_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ1_M);
}
void pith_mul_fast_iq2_xxs_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ2_XXS);
}
void pith_mul_fast_iq2_xs_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ2_XS);
}
void pith_mul_fast_iq2_s_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ2_S);
}
void pith_mul_fast_iq3_xxs_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ3_XXS);
}
void pith_mul_fast_iq3_s_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_IQ3_S);
}
void pith_mul_fast_tq1_0_dotprod(const pith_mul *args) {
    mul_fast(args, PITH_TYPE_TQ1_0);
}
