/* SPDX-License-Identifier: Apache-2.0
 * SMMLA products of quantized weights: the kernels of mul_integer_128.h, compiled with the dot
 * product of dot_i8mm.h. It multiplies two tokens at a time and needs codes woven for that, which
 * pays from 3 tokens on; fewer go to the dotprod kernels. Contract: pith_mul in kernel.h; bits:
 * ref/mul_*_ref.c. Read next: mul_integer_128.h. */
#include "kernel/arm/dot_i8mm.h"

#include "kernel/arm/arm.h"
#include "kernel/arm/mul_integer_128.h"

enum { FEW = 2 };

void pith_mul_q4_0_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_q4_0_dotprod(args);
    else
        mul_integer(args, PITH_TYPE_Q4_0);
}
void pith_mul_q4_1_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_q4_1_dotprod(args);
    else
        mul_integer(args, PITH_TYPE_Q4_1);
}
void pith_mul_q5_0_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_q5_0_dotprod(args);
    else
        mul_integer(args, PITH_TYPE_Q5_0);
}
void pith_mul_q5_1_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_q5_1_dotprod(args);
    else
        mul_integer(args, PITH_TYPE_Q5_1);
}
void pith_mul_q8_0_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_q8_0_dotprod(args);
    else
        mul_integer(args, PITH_TYPE_Q8_0);
}
void pith_mul_q4_k_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_q4_k_dotprod(args);
    else
        mul_integer(args, PITH_TYPE_Q4_K);
}
void pith_mul_q5_k_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_q5_k_dotprod(args);
    else
        mul_integer(args, PITH_TYPE_Q5_K);
}
void pith_mul_q6_k_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_q6_k_dotprod(args);
    else
        mul_integer(args, PITH_TYPE_Q6_K);
}
void pith_mul_iq4_nl_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_iq4_nl_dotprod(args);
    else
        mul_integer(args, PITH_TYPE_IQ4_NL);
}
void pith_mul_iq4_xs_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_iq4_xs_dotprod(args);
    else
        mul_integer(args, PITH_TYPE_IQ4_XS);
}
void pith_mul_mxfp4_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_mxfp4_dotprod(args);
    else
        mul_integer(args, PITH_TYPE_MXFP4);
}
void pith_mul_q2_k_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_q2_k_dotprod(args);
    else
        mul_integer(args, PITH_TYPE_Q2_K);
}
void pith_mul_q3_k_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_q3_k_dotprod(args);
    else
        mul_integer(args, PITH_TYPE_Q3_K);
}
void pith_mul_tq2_0_i8mm(const pith_mul *args) {
    if (args->n <= FEW)
        pith_mul_tq2_0_dotprod(args);
    else
        mul_integer(args, PITH_TYPE_TQ2_0);
}
