/* SPDX-License-Identifier: Apache-2.0
 * SDOT products of quantized weights: the kernels of mul_integer_128.h, compiled with the dot
 * product of dot_dotprod.h (sdot). Contract: pith_mul in kernel.h; bits:
 * ref/mul_*_ref.c. Only the choice of dot product and the suffix of the names live here. Read
 * next: mul_integer_128.h. */
#include "kernel/arm/dot_dotprod.h"

#include "kernel/arm/arm.h"
#include "kernel/arm/mul_integer_128.h"

void pith_mul_q4_0_dotprod(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_Q4_0);
}
void pith_mul_q4_1_dotprod(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_Q4_1);
}
void pith_mul_q5_0_dotprod(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_Q5_0);
}
void pith_mul_q5_1_dotprod(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_Q5_1);
}
void pith_mul_q8_0_dotprod(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_Q8_0);
}
void pith_mul_q4_k_dotprod(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_Q4_K);
}
void pith_mul_q5_k_dotprod(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_Q5_K);
}
void pith_mul_q6_k_dotprod(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_Q6_K);
}
void pith_mul_iq4_nl_dotprod(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_IQ4_NL);
}
void pith_mul_iq4_xs_dotprod(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_IQ4_XS);
}
void pith_mul_mxfp4_dotprod(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_MXFP4);
}
void pith_mul_q2_k_dotprod(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_Q2_K);
}
void pith_mul_q3_k_dotprod(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_Q3_K);
}
void pith_mul_tq2_0_dotprod(const pith_mul *args) {
    mul_integer(args, PITH_TYPE_TQ2_0);
}
